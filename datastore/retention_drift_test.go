package datastore_test

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
)

// TestFailedChecksTakeNothingAway: what the last good check found is told while
// the later ones fail, however many they are.
func TestFailedChecksTakeNothingAway(t *testing.T) {
	t.Parallel()
	p := openPast(t, memory.Dir(t), datastore.Retention{DriftRuns: 2})
	found := []string{p.run(holdfast.RunDrift, nil).ID, p.run(holdfast.RunDrift, nil).ID, p.run(holdfast.RunDrift, nil).ID}
	var failed []string
	for range 5 {
		failed = append(failed, p.run(holdfast.RunDrift, func(run *holdfast.Run) {
			run.Status, run.FinishedAt = holdfast.RunErrored, run.CreatedAt
		}).ID)
	}
	p.sweep()
	if diff := differ(slices.Concat(found[1:], failed[3:]), p.left()); diff != "" {
		t.Errorf("checks after Sweep() (-want +got):\n%s", diff)
	}
}
