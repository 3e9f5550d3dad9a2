// Package nearest finds what somebody probably meant who misspelled a name: the
// keys of documents, flags, verbs of commands, names of clusters and versions.
//
// Whatever reports an unknown word calls it. It works on bytes, knows no words of
// its own, and never decides that a word is wrong.
package nearest
