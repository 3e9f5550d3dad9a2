// Package fleet answers questions about all clusters at once: which match a search, how
// many are in each phase, project and so on, and which wait for a person.
//
// It owns a list of all clusters' summaries in memory, by name, and keeps it current by
// the feed of changes: a question reads what has changed since the one before, and a page
// of ten thousand clusters costs milliseconds. The API's handlers for clusters call it. It
// never decides who may see what: a Filter is given the projects, and everything it counts
// or returns is of these alone. It never opens a record.
package fleet
