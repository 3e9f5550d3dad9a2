// Package queue hands out what is to be looked at, and wakes those who wait.
//
// A Queue holds keys, never what happened to them, so that a thing that is asked
// for twice is looked at once; Work calls a function for each of them, again and
// later each time if it fails. A Broadcast wakes everybody who waits for a change; a Line
// has one of those who wait for the same look on behalf of all.
// Locks have what is done about one thing done in turn, and a Trouble has what fails again and
// again logged now and then. All of them live in memory:
// the reconciler and its rooms own one for each kind of work, and ask for everything
// again at start. Nothing in here knows what a key stands for, or writes a record.
package queue
