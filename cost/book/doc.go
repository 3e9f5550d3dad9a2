// Package book is a price book: what an organisation pays, in a YAML file of its own, with
// its discounts on list prices.
//
// It owns how the file is read, with a fault at line and column for everything that is wrong
// with it, and which price counts: one of the book before any list price, and a list price
// less the first discount that is for it. The commands and the server put it in front of the
// other tables of a chain. It is pure, and knows no list price itself.
package book
