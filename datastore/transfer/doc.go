// Package transfer copies the records of an installation from SQLite to PostgreSQL while no
// server runs, and hands its data folder over to the new database.
//
// It owns that nothing is lost: which tables and columns there are is read from the schemas of
// both databases, what it does not know is an error, everything is one transaction, and before
// its end all that arrived is read back and compared. Until then the source is not changed, and
// a copy that was interrupted can be begun again.
//
// It decrypts nothing but the identity, to refuse a wrong key. Blobs stay where they are: their
// names begin with the identity, which is copied.
package transfer
