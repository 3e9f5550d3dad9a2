// Package proposals is what pull requests of ours are made from: the branch and its one commit,
// by which it is known later (PullRequest), and what people ask for that becomes one: a change
// of the document of a cluster or of a runner.
//
// reconciler/propose, reconciler/runners and reconciler/upgrade make proposals, gitsource and
// the packages below forge bring them to a repository. It is pure, and knows the vocabulary,
// the documents of runners and nobody else. It never decides whether something is proposed.
package proposals
