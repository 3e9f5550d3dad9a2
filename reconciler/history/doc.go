// Package history reads the runs of a cluster that a decision, and what people
// are shown, look back on.
//
// It owns which runs these are: as many as decision.HistoryDepth, and never
// without those that wrote. The reconciler calls it to observe, the publisher to
// show; it decides nothing and writes nothing.
package history
