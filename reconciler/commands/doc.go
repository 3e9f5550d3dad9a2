// Package commands does what people ask for: in comments of pull requests, through the
// API, on the command line.
//
// A Handler owns the commands that are stored: it carries out those of a pull request one
// after another, in the order in which they were given, and those of the API at once. It
// checks who may, refuses with a reason, and answers each.
// An Operator does what operators ask for without a comment: locks, suspensions, transfers
// of clusters, another look.
//
// The reconciler calls Run; the webhook's deliveries and polls call CommandStored; the
// API calls the rest. Nothing in here decides about a cluster: what a person asks for is
// handed to the decision as an Ask.
package commands
