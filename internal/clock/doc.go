// Package clock is where a process takes the time from.
//
// It owns that the clock of a process can be wrong in tests, and in no release: a server
// or an agent of the end-to-end tests reads from a file how far it is off, which no other
// binary looks for. The command calls it, once, and hands what it returns to all that
// records the time or compares it with a record; durations are measured without it. The
// reconciler asks it whether the clock was set back meanwhile. It knows no other package.
package clock
