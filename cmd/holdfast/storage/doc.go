// Package storage has the commands that work on what a server has stored, on the server's machine and
// without the server: copying records to another database, checking blobs, backups.
//
// It owns their flags, their words and what they print. What they do is in rooms of the datastore.
package storage
