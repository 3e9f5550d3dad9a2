// Package edit changes YAML files that people have written: it finds the documents of a file,
// puts one in another's place, and sets single keys of one.
//
// It owns how little of a text changes: what a change is not about stays as it is written,
// where that can be proven. Package runnerdoc and the rooms that propose changes of documents
// call it. It knows no kind of document, and does not say whether what comes of a change is
// valid.
package edit
