// Package local starts an agent of the server's own machine and keeps one running. The
// agent is a process of its own session: it outlives the server, however that ends,
// continues with what it executes, and is adopted by the next one.
//
// It owns the process: starting, adopting, asking whether it lives, replacing one
// that no longer answers, stopping. `holdfast serve` calls it. It never speaks the agents' protocol,
// and knows nothing of runs: an agent that it starts claims as any other does.
package local
