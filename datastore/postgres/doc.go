// Package postgres is what the datastore needs to know of PostgreSQL: how it is connected
// to, what its errors mean, transactions that are tried again, and which servers have a
// database.
//
// It owns the sessions: their timeouts, the password that each is opened with, and that
// those of a server which has become a standby are not used again. It owns when a
// transaction may be tried again and when nobody knows whether it took effect; the signs of
// life by which servers share a database, or keep others away; and the time of the database,
// which stands for that of all servers.
//
// It knows no tables but those of leases and of servers, and makes no query of others: the
// datastore does, through the room statements.
package postgres
