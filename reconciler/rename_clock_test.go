package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestClockIsSetBackAfterARename: runs are told apart by their order, of what a
// cluster was called before, too.
func TestClockIsSetBackAfterARename(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.clock.Advance(48 * time.Hour)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	f.executeAll(good)
	renamed := strings.NewReplacer("{name: prod}", "{name: live, renamedFrom: prod}").Replace(document("prod", hourly))
	f.repo.Commit(master, "another name", map[string]string{"clusters/prod.yaml": renamed})
	f.look()
	if rec := f.cluster("live"); rec.Applied.Run == "" {
		t.Fatalf("it was not renamed: %+v", rec)
	}
	f.executeAll(func(protocol.Assignment) protocol.Result { return protocol.Result{Status: holdfast.RunNoChanges} })
	f.clock.Advance(-24 * time.Hour)
	f.restart()
	f.look()
	f.later()
	f.checks(scaled("5"))
	f.pass() // is not repeated
	rec := f.cluster("live")
	if rec.Drift.Status != holdfast.DriftFound || len(f.runs("live")) != 1 {
		t.Errorf("the record says %+v; runs:\n%s", rec.Drift, strings.Join(f.runs("live"), "\n"))
	}
}
