// Package replica is what the servers of one database know of one another, and ask of one
// another: who there is, who leads what for how long (Lease), what a leader is to look at (Ask),
// and which agents another one has heard of.
//
// datastore/peers keeps and delivers it, reconciler/leader and reconciler/relay use it, the API
// lists replicas. It is pure, and knows the vocabulary, the agents' protocol and nobody else.
package replica
