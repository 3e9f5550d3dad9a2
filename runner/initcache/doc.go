// Package initcache keeps what an engine's init prepared, so that no provider or
// module is fetched for a run if it was for one before.
//
// It owns the prepared folders: they are copies, made when the engine that
// fetched them is dead, of files of the agent that no engine can write, and they
// are held against their hashes when they are published, when an agent uses them
// for the first time, and whenever a file is not the one that it has seen. The
// runner calls it before and after an init. It never starts an engine, and never
// decides what a prepared folder is good for: its caller makes the keys.
package initcache
