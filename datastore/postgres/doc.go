// Package postgres is what the datastore needs to know of PostgreSQL: how it is connected
// to, what its errors mean, transactions that are tried again, and which server has a
// database.
//
// It owns the sessions: their timeouts, the password that each is opened with, and that
// those of a server which has become a standby are not used again. It owns when a
// transaction may be tried again and when nobody knows whether it took effect, and the
// lease that keeps a second server away.
//
// It knows no table but that of leases, and makes no query: the datastore does, through the
// room statements.
package postgres
