// Package claimant knows who may claim runs: agents with a token of the configuration, and
// agents with a key of a runner's document.
//
// It owns what a credential is bound to (an id, kinds of runs, projects, a runner) and holds
// claims against that. The server's listener of agents calls it; it answers nobody itself,
// writes no record, and knows nothing of attempts: those have their own credentials.
package claimant
