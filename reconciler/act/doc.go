// Package act makes decisions about clusters and carries them out: it observes Git
// and the records, asks decision.Decide, and queues a durable run, records an outcome,
// or records why a cluster waits.
//
// A Loop owns one decision at a time about one thing, what a run is filled with (the
// root module, what is compared, which engine), and what its attempt starts from. It
// holds back a queued run that must not start any longer.
//
// The reconciler calls Reconcile for each request; commands call it with what a person
// asks for; the dispatcher asks Assignment and Stopped, the publisher Foresee. A Loop
// executes nothing, posts nothing, and reads no forge except for whether an approval
// is still valid.
package act
