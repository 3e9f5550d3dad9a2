// Package location owns the names of states: which arguments of each backend say which
// state it is, and how they are written without credentials. The same state has the same
// name wherever its backend is written, and two states have two.
//
// Package templates calls it for each cluster; the names are what runs lock, what a
// repository is allowed, and what tells that a cluster would move to another state. It
// reads no code and no environment, and never writes a secret into a name.
package location
