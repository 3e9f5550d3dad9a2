// Package secrets looks up the values of a root module's secret variables, where the
// cluster's document says that they are: in the run's credentials, in a file of one of its
// secret folders, or in a store, which is a command that the configuration names.
//
// It owns the bounds of such values and the words for one that is missing. The
// attempt asks it once, before an engine starts, and has every value redacted from then on.
// It never reads what the assignment does not allow, runs no shell, and keeps nothing.
package secrets
