// Package lineage says what clusters have to do with one another: which depend on
// which, which continue another one under a new name, and which share a state.
//
// It owns the reading of these relations from the records and from what a tree says,
// and the words for what is wrong with a document in the company of others. Intake
// asks it before a document is recorded, observation before a decision is made, commands
// before a pull request speaks for a cluster, the server for the family of a cluster.
//
// It writes no record, asks for no decision and talks to no forge. A Reader keeps
// nothing: each answer is as the records are now.
package lineage
