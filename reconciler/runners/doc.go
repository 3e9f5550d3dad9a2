// Package runners owns which runners and rules are in force: what the documents of the
// tracked branches say, next to what is on record. A document that is gone or wrong leaves
// the last good one in force, with what is wrong on its record; names belong to the
// repository that defined them first; a runner that something needs stays.
//
// The intake calls it with each tree that it reads, of a branch or of a pull request. It
// pins no environment and hands out no run: the store pins with the first run, by the rules
// that are in force, and only a person moves an environment.
package runners
