// Package breaker holds back the runs of a provider that throttles or is out of order.
//
// It owns when a breaker opens, how long a break lasts, and which run is let through to find
// out whether the provider has recovered. The records decide, for all replicas. Package
// dispatch asks it before it hands out a run, reports how attempts end, and passes on what
// other replicas say. It hands out nothing itself and wakes nobody.
package breaker
