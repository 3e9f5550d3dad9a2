// Package home is the folder in which a store has what is not in its database, and which it
// has to itself: its lock, and which database its records are in.
//
// It owns that a folder whose records are in a database elsewhere is opened with no other one:
// a start without the setting would begin again, and plan and apply what nobody asked for. And
// that a folder with records in SQLite is not left behind by a start with another database.
//
// It opens no database. The datastore does, and has the folder remember it.
package home
