// Package github speaks to GitHub.com and GitHub Enterprise Server: pull
// requests, comments, commit statuses and permissions, with the credential of
// a GitHub App or of a token.
//
// The number of calls for a pull request does not depend on how many clusters
// it touches: one comment, one status for each context, one read.
//
// A [Client] is one installation or token, and has a file for each kind of thing:
// comments.go, statuses.go, pullrequests.go and so on; limits.go and transport.go
// keep to GitHub's rate limits and ask only for what has changed. The reconciler
// calls it through the ports of its rooms. It stores nothing and decides nothing;
// an answer that it does not understand is an error, never "none".
package github
