// Package cache keeps the prices that sources have published lately, in memory and in a file:
// the link of a chain between the price book and the embedded table.
//
// It owns which prices are wanted (those that somebody has looked up), when they are asked
// for again, and that what was known stays when a source fails. Lookups never wait: what is
// not there is fetched in the background, for the next one. It never makes up a price, and
// asks a source for nothing that nobody has looked up.
package cache
