// Package runner is the agent: it claims runs from a server, has each executed, and
// reports its outcome. This package is the face of its rooms.
//
// An Agent claims runs, keeps its slots and its grace, and delivers outcomes through package
// uplink; it lives on while the server is unavailable. An Executor, which is package
// attempt's, executes one attempt. What reads, compares and redacts plans is pure and in its
// own rooms. Package local starts agents on the server's machine. The commands call this
// package; it never starts an engine itself, and knows nothing of clusters but what an
// assignment says.
package runner
