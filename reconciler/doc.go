// Package reconciler moves a fleet of clusters towards what Git says.
//
// Requests name a repository, a pull request or a cluster, never what happened to it.
// What this package holds are the rooms that keep the fleet, and the wires between them:
// intake reads Git and the forges into records, act observes, decides and queues runs,
// dispatch hands them to agents and records how they end, publish keeps true what the
// forges show, drift checks, commands do what people ask for. Each room says in its
// doc.go what it owns; none of them knows another one: they meet in the files wire_*.go,
// by the ports that they declare.
//
// A Reconciler decides nothing itself.
package reconciler
