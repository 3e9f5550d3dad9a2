// Package history reads the runs of a cluster, what they have left, and the pull requests
// that were merged for it, that a decision, and what people are shown, look back on.
//
// It owns which these are: as many runs as decision.HistoryDepth, and never
// without those that wrote; as many merges as wait. And it owns for how long something
// may not be readable before it counts as not kept (Patient). The reconciler calls it to observe, the publisher to
// show; it decides nothing and writes nothing.
package history
