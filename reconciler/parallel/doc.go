// Package parallel does a number of equal pieces of work at once.
//
// It owns the goroutines of one call, and waits for them. The rooms that read or
// assess many clusters call it: catalog, impact, upgrade and published. None of its
// goroutines outlives its call, and it never decides what the work is.
package parallel
