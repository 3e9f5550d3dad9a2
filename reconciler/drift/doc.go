// Package drift checks clusters for drift: it queues the checks that are due, judges what
// they have found, and records it.
//
// A Keeper owns the schedule (one replica at a time has it), how many checks may wait,
// which cluster cannot be checked and why, and the part of a cluster's record that says
// what was found. Before an apply that reverts drift is queued, it reserves that apply in
// the record.
//
// The reconciler calls Run; the act of a decision calls Record, CheckAgain and Reserve;
// commands and the API ask for checks and reports. A Keeper never decides what follows
// from drift, and posts nothing.
package drift
