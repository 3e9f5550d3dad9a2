package reconciler_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// TestSteadyStatesAreNotWritten: to ask again about a cluster where nothing has
// happened writes no record, no history and no run.
func TestSteadyStatesAreNotWritten(t *testing.T) {
	t.Parallel()
	closed := `apply: {windows: [{kind: allow, schedule: "0 22 * * *", duration: 1h}]}`
	both := drifted(changes{change(group, holdfast.ActionUpdate, "size 3 5", "zone a b")}, change(group, holdfast.ActionReplace, "size 5 3", "zone b a"))
	for name, story := range map[string]func(f *fleet){
		"drift reported": func(f *fleet) { f.says(hourly); f.drift(scaled("5")) },
		"drift held":     func(f *fleet) { f.drift(both) },
		"revert queued":  func(f *fleet) { f.drift(scaled("5")) },
		"revert failed":  func(f *fleet) { f.drift(scaled("5")); f.execute(failing) },
		"revert planned": func(f *fleet) { f.drift(scaled("5")); f.execute(planned) },
		"revert done":    func(f *fleet) { f.drift(scaled("5")); f.execute(good) },
		"window":         func(f *fleet) { f.says(reverted, closed); f.drift(scaled("5")) },
		"window old":     func(f *fleet) { f.says(reverted, closed); f.drift(scaled("5")); f.clock.Advance(3 * time.Hour) },
		"old held":       func(f *fleet) { f.drift(both); f.clock.Advance(3 * time.Hour) },
		"suspended":      func(f *fleet) { f.drift(scaled("5")); f.suspend("prod", true, "a", "") },
		"unreviewed": func(f *fleet) {
			f.repo.Commit(master, "x", map[string]string{"infra/prod/main.tf": module("z")})
			f.look()
			f.execute(planned)
		},
		"apply failed": func(f *fleet) {
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.merge(1, byMerge)
			f.execute(failing)
		},
		"apply transient": func(f *fleet) {
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.merge(1, byMerge)
			f.execute(transient)
		},
		"check failing": func(f *fleet) { f.later(); f.fails() },
		"invalid":       func(f *fleet) { f.says("nonsense: 1") },
		"removed": func(f *fleet) {
			f.drift(scaled("5"))
			f.repo.Commit(master, "x", map[string]string{"clusters/prod.yaml": gitserver.Delete})
			f.look()
		},
		"throttled": func(f *fleet) {
			f.says("provider: aws")
			for _, n := range []string{"a", "b", "c"} {
				f.r.Dispatcher().ObserveProvider(f.t.Context(), holdfast.Run{ID: n, Cluster: n, Status: holdfast.RunErrored, RunSpec: holdfast.RunSpec{Document: holdfast.Cluster{Provider: "aws"}}, RunOutcome: holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "plan", Cause: "Throttled"}}})
			}
			f.repo.Commit(master, "x", map[string]string{"infra/prod/main.tf": module("z")})
			f.look()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := driftFleet(t, reverted)
			story(f)
			f.settle()
			f.ask("prod")
			before, runs := f.cluster("prod"), len(f.runs("prod"))
			for range 3 {
				f.clock.Advance(time.Second)
				f.ask("prod")
			}
			if n := f.cluster("prod").Version - before.Version; n != 0 || len(f.runs("prod")) != runs {
				t.Errorf("%s, %s: written %d times; runs: %v", before.Phase, before.Waiting, n, f.runs("prod"))
			}
		})
	}
}
