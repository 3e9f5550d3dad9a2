package datastore

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
)

// What says of most records how long they are kept: keys of the configuration.
const (
	keyRuns  = "retention.runs, retention.driftRuns"
	keyEnded = "retention.pullRequests"
)

// removal is one kind of records that a sweep removes, and the key that says so.
type removal struct{ records, key string }

// removals counts what a sweep has removed. It is gone for good: the log has it, above all
// of the first sweep after a key was set or got another default.
type removals map[removal]int

func (r removals) add(records, key string, removed int) {
	r[removal{records, key}] += removed
}

func (r removals) report(ctx context.Context, log *slog.Logger) {
	byName := func(a, b removal) int { return cmp.Or(cmp.Compare(a.records, b.records), cmp.Compare(a.key, b.key)) }
	for _, of := range slices.SortedFunc(maps.Keys(r), byName) {
		if r[of] > 0 {
			log.InfoContext(ctx, "records were older than they are kept, and were removed",
				"records", of.records, "removed", r[of], "key", of.key)
		}
	}
}
