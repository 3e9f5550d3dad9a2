// Package flock holds and releases the kernel's advisory lock on an open file
// (flock(2)).
//
// It owns that a lock has at most one exclusive holder and is free once its
// holder released it or ended, however it ended. Closing the file is not enough:
// a process that is being started has a copy of each open file between its fork
// and its exec, and the copy holds the lock until then. Release therefore
// unlocks before it closes. A Lock is such a file with its holder's name in it.
// The datastore, the store of repositories and agents call it. Only Wait waits, and a
// file is never removed.
package flock
