// Package costs is what people read of costs in a terminal.
//
// It owns the words and tables for the cost of a plan. The commands that estimate without a
// server and those that show runs of one call it. It estimates nothing and knows no price.
package costs
