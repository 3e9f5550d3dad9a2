// Package rescue puts right what failed attempts have left of their states: a
// state that an engine wrote and its backend does not have, and locks of backends
// that are not ours.
//
// It owns the runs of kinds state and unlock: which are queued, for what, and when one
// is tried again. The store holds back everything else on a cluster while there is such
// a state; the reconciler shows why. The sweep of the reconciler calls Pass; the API
// calls the rest for people. Nothing in here talks to a backend, or reads a state:
// agents do, with the cluster's credentials for applies. A lock of a state that only a
// pull request has is released with that code, and the credentials for plans.
package rescue
