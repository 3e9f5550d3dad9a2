// Package migrations has the tables of the datastore, for each database, and brings those of
// one up to date.
//
// It owns the files, in a folder for each database, that a database which a newer version has
// written is refused, and that one server alone migrates. It knows no record: the datastore
// says whether a database is the right one before it is touched.
package migrations
