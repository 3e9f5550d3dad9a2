// Package mergequeue judges the groups of a merge queue: whether the commit that
// the queue would make the head of the tracked branch equals what the pull
// requests in it have planned. It owns the words and the rules; it is pure. The
// reconciler calls it for each group that it sees among a repository's branches. It
// never plans: what nobody has planned is red, and planned when it is the turn of
// its pull request.
package mergequeue
