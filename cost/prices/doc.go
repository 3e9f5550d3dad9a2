// Package prices is the table of list prices that is part of the program: the last link of
// a chain, so that costs are known without any network.
//
// Its files, in tables/, are written by internal/priceimport and have the origin and the
// date of each number. A cloud's file is decoded when it is first asked for. It is pure, and
// never makes up a price: what no origin has, it does not have.
package prices
