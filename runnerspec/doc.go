// Package runnerspec is what is known of runners, the places where agents execute runs: their
// documents, the rules that choose one for an environment, and which of both are in force.
//
// templates/runnerdoc reads the documents, reconciler/runners decides which are in force,
// datastore keeps the records, and those that start agents for single runs (runner/kubernetes,
// runner/ecs, reconciler/launch) do as a document says. It is pure, knows the vocabulary and
// nobody else, and never says where a run is executed: that is the pin of its environment,
// holdfast.Environment.
package runnerspec
