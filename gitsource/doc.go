// Package gitsource reads Git repositories: it keeps a bare mirror of each,
// brings it up to date, and answers what a revision contains, what differs
// between two, and what merging them would give. It makes commits of proposals
// and pushes their branches. It needs no work tree, and knows nothing of what the
// files mean.
//
// A [Source] is the mirror of one repository. fetch.go brings it up to date,
// tree.go and its neighbours read a revision, merge.go merges three trees,
// commit.go and push.go make commits and push them. What a repository may contain is bounded:
// hostile ones end with an error, not with the memory of the server. The
// reconciler and the local forge call it. No Git type leaves it.
package gitsource
