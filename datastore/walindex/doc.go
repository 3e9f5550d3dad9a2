// Package walindex gives the index of SQLite's write-ahead log its place on the disk.
//
// SQLite maps that file (holdfast.db-shm) into memory. It extends the file by writing
// the last byte of each page of 4 KiB, which allocates the whole page only where blocks
// are as large. Elsewhere, and on file systems that allocate late, a page without its
// blocks is found by a write to memory, and on a full disk that write ends the process
// with SIGBUS: no error can be returned for it. Blocks that are allocated beforehand
// turn this into an error message at the start.
//
// The datastore reserves the index when it opens a database. This package never reads
// or writes what is in the file.
package walindex
