// Package agenda holds what is to be looked at: repositories and pull requests, and the
// decisions about clusters that changes have made necessary.
//
// It owns the two queues behind the reconciler and the rules of what follows from a
// change: whose decision may be another one since a run has ended, a cluster has
// settled, or a provider's runs are held back. Every room of the reconciler adds to
// it; only the reconciler takes from it.
//
// An entry says which, never what happened. Nothing in here decides, reads Git or
// writes a record.
package agenda
