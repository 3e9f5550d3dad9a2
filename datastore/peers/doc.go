// Package peers is what the replicas of one database tell one another by way of it: who
// leads which repository, what one asks of the one that leads, which agents were heard of,
// and which branches and tags a repository had when it was last fetched.
//
// It owns these tables and the names of leases that are not those of the server itself; all
// times are of the database's clock. Each of its methods is one statement, or two of which
// the second one only reads, and may be called again after an error.
//
// The datastore opens it, the reconciler calls it. It never reads what others have in the
// database, except for the owner of a cluster, and it is there with PostgreSQL only: of
// SQLite there is one server.
package peers
