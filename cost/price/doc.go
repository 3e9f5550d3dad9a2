// Package price is what something costs, by whom that was said and when: keys, prices,
// tables of them, and the chain in which tables are asked one after another.
//
// Package cost asks a chain; packages prices, book, cache and sources make the tables in
// it. It is pure: it reads no file, no clock and no network, and never decides what a
// resource is billed by.
package price
