// Package gate tells whether a pull request meets what apply.requires asks for.
//
// It owns the reading of approvals, of requests for changes, and of the forge's last
// word about a merge: which of them count for which plan, and which do no longer. The
// reconciler asks it before it applies a merge and when it takes a pull request in; the
// publisher asks it for what people are shown. Of is pure; a Keeper asks the forge
// whether approvals are still in force. Nothing in here writes a record or decides what
// happens to a cluster.
package gate
