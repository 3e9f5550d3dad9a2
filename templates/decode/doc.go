// Package decode owns how documents are read, those of clusters and those of
// templates: YAML as bytes, within limits, to nodes with the lines and columns that
// editors show; of which kind a document is, and which only resembles one of ours;
// its fields, one key after the other.
//
// Packages document, templates and modules call it. What is wrong becomes a fault at
// its place and reading continues, so that a document's faults are reported all at once.
// It never knows which keys a kind of document has, and repeats no value that may be
// a secret.
package decode
