// Package waiver reads documents of kind Waiver: what a policy says does not count, for some
// clusters, until a day.
//
// It owns what such a document must contain and which clusters it is for. Package
// reconciler/policies reads them next to policies. It knows no clock and no pull request, and
// never decides whether an apply may begin.
package waiver
