// Package statements keeps what queries were compiled to, for one pool of connections:
// compiling takes SQLite longer than most queries do.
//
// It owns the compiled statements, how many of them are kept, and when a query that is
// new in a transaction is compiled: after it, when the connection is free again. The
// datastore runs all its queries through it, each pool of connections through one Pool.
//
// It knows no table and no record, opens and closes no database, begins no transaction
// and changes no query.
package statements
