//go:build linux

// Package stage is the first program of a sandbox: what is started in the new
// namespaces, makes them a sandbox, starts the engine, reaps what dies and says
// how the engine ended. It is the program that imports it, started again with
// Mark in its environment: the initialisation of this package sees the mark
// and never returns.
//
// It imports nothing but syscall and what syscall imports, so that it
// initialises before nearly every other package of the program: a start costs
// about a millisecond, however large the program is.
//
// Only package sandbox starts it. It never reads configuration, never opens a
// connection, and takes every instruction from the descriptor that it was
// started with.
package stage
