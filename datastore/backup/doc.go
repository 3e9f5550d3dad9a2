// Package backup writes an installation that keeps its records in SQLite to one file, while its
// server runs, and puts it back.
//
// It owns the format of that file, that what is in it is of one moment, and that a restored
// installation is in place as a whole or not at all. It needs no key: what is encrypted stays
// encrypted.
package backup
