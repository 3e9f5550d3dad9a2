package reconciler_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// While a server runs its clock is set back: what has failed is tried again when it would
// have been, and not that much later.
func TestTheClockIsSetBackWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	look := f.r.WatchClock(t.Context())
	if run := f.execute(transient); run.Status != holdfast.RunRetrying {
		t.Fatalf("the plan is %s", run.Status)
	}
	f.clock.Advance(-10 * time.Minute)
	look()
	if a := f.claim(); a.Run != "" {
		t.Error("it is tried again at once")
	}
	f.clock.Advance(15 * time.Second) // the first pause is one of 10
	if a := f.claim(); a.Run == "" {
		t.Errorf("it is not tried again at its time: %v", f.runs("prod"))
	}
}
