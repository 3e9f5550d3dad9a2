// Package lock excludes and wakes: Redis does it across the replicas of a server, be it
// alone, behind Sentinel or a Cluster, Memory within a single process. Both keep locks
// that belong to an owner and end automatically, and carry hints from one replica to
// the others.
//
// A lock here is a courtesy between replicas, not the last word: what must never
// happen twice is guarded by the records.
//
// The reconciler's dispatcher takes a lock for each attempt, and all that wait
// listen for hints. A lost Redis stops new locks, never work that has begun. It
// knows nothing of clusters and runs: keys and owners are strings of its callers.
package lock
