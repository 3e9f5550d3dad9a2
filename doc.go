// Package holdfast is the vocabulary of Holdfast, a GitOps reconciler for
// fleets of Kubernetes clusters: clusters, revisions, runs, plans, pull
// requests, and the records and messages that the packages exchange.
//
// It imports the standard library only, starts nothing, and
// holds no global state. Every other package may import it.
//
// Each kind of thing has a file of its name: cluster.go, run.go, plan.go (what
// people are shown of a plan), reason.go and reason_table.go (why something waits
// or failed, with all words for it), record.go (what is stored).
//
// Words that not everybody needs are in packages next to this one, which know it and
// start nothing either: protocol (what server and agents say to each other), runnerspec
// (runners and their rules), plandoc (what plans would do), proposals (pull requests of
// ours), rollout (how versions of templates reach clusters), outgoing (posts and
// notifications), rootmodule (what we write into root modules), statelock (locks on
// states) and replica (what servers of one database say to each other).
package holdfast
