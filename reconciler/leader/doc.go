// Package leader says which replica leads a repository: the one that polls it, takes it in,
// decides about its clusters and writes to its code host.
//
// It owns the leases: who leads has one that ends by the database's clock, and takes itself
// for the leader for a shorter time than that. It takes what nobody leads, gives away what it
// leads more of than others, and everything when the replica ends. It says of replicas that
// have died silently that they have.
//
// The reconciler calls it, and is notified of what it leads from now on before it does. A Keeper
// without leases is of a server that is alone: it leads everything from the start.
//
// It never looks at what is led. That two replicas take themselves for the leader for a
// moment, since one was stopped in the middle of its work, is not prevented here: records are
// written only as they were read.
package leader
