// Package places owns where the states of clusters are: which place a cluster gets, that it
// keeps the one that it has had since its first apply, and the runs that move a state to
// another one.
//
// A block in the code goes first, then spec.state of the document, then the storage of the
// environment's runner, then Holdfast's own backend. Intake and the act of a decision ask
// where a state is to be; the runners ask what a document or a rule would move; the API asks
// for migrations. It reads no state and talks to no backend: agents do, with the credentials
// of the cluster's applies.
package places
