// Package local is a forge for plain Git repositories that have none: every
// branch besides the tracked one is a pull request, a merge is a push, and
// comments and statuses live in Holdfast's own store, where the CLI shows them.
//
// The reconciler calls it through the same ports as any other code host. It owns
// the rules by which branches become pull requests, and the numbers of these; it
// never writes to a repository, and never decides what follows from a merge.
package local
