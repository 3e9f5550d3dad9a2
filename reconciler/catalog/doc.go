// Package catalog says what one tree of a repository says of clusters.
//
// It owns the reading of the files that may define clusters, the map from names to
// documents, what each document resolves to (digest, state location, template, faults),
// and the difference between two trees. Documents of files that two trees share are
// parsed once, and what was resolved from content that they share is resolved once:
// work grows with what changed. The reconciler reads a catalog for each head that it
// processes; impact and upgrades read those of other repositories. Nothing in here
// reads or writes a record, and nothing asks a forge.
package catalog
