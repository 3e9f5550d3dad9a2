// Package statements is how queries are made, run and explained when they fail.
//
// It owns what queries were compiled to, for one pool of connections, as compiling takes
// SQLite longer than most queries do: the compiled statements, how many of them are kept,
// and when a query that is new in a transaction is compiled: after it, when the connection
// is free again. The datastore runs all its queries through it, each pool of connections
// through one Pool. It also owns the conditions of a query, what errors of SQLite
// mean (a disk that is full, a database that is damaged or busy), and what PostgreSQL wants
// otherwise: the numbers of parameters, and text without what it cannot keep.
//
// It knows no table and no record, opens and closes no database, and begins no transaction.
package statements
