// Package semver owns how versions of templates compare: which text is an exact
// version, which of several is the newest, which a cluster may be moved to, and
// whether that may break it.
//
// The reconciler and the packages of documents and templates call it. It reads no
// tags and keeps none: what is available is given.
package semver
