// Package decision owns the rules: what is done next about one cluster, and why.
//
// It owns the rules of [Decide] and their order, what they ask of an [Input], the
// guards that come after them all, the judge of drift, and the derivation of
// phases and conditions. All of it is pure: an Input carries the clock and every
// record that may count, and the same Input always gives the same [Decision].
//
// The reconciler calls it: it observes, asks, acts, and records what follows. This
// package never reads a store, Git or a clock, never starts or cancels anything,
// and words nothing for people beyond the reason and its detail.
package decision
