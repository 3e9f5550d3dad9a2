// Package intake records what Git and the forges say: of a tracked branch what each
// cluster should be, of a pull request what merging it would change.
//
// An Intake owns what was last fetched of each repository, which repositories were
// taken in once, and what has to be looked at again although no head has moved. It
// brings the records of clusters, pull requests and repositories up to date and asks
// the agenda for a decision about each cluster of which there is news. It polls, as
// deliveries get lost, and judges the groups of merge queues.
//
// The reconciler calls Take for each look that was asked for, and Poll. An Intake
// never decides what is done with a cluster, never queues a run and posts nothing.
package intake
