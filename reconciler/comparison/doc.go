// Package comparison says what the change from one tree of a repository to another one
// would do to clusters: which ones it adds, changes and removes, and what is wrong with it.
//
// It owns the comparison of documents with one another and with what is on record
// (Comparer): which clusters differ by what they render, whether one whose document is gone
// is removed or in doubt, and which settings change that no plan shows. Intake calls it, for
// pull requests, merges, groups of merge queues, and changes that are only foreseen.
//
// It reads Git through catalogs only, writes no record, asks for no decision, and keeps
// nothing: which trees are compared, and what follows, is decided by its caller.
package comparison
