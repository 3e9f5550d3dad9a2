package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestEngineOfTheLastApply: what plans and applies after an apply is told its
// engine, also if that apply did not end well: it has written the state.
func TestEngineOfTheLastApply(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"infra/prod/main.tf": "# two\n"})
	f.execute(withEngine)
	f.post()
	f.merge(1, byMerge)
	f.execute(func(a protocol.Assignment) protocol.Result {
		if a.Kind != holdfast.RunApply || a.PinName != "terraform" || a.PinVersion != "1.9.8" || a.Exact || a.Modules != "" {
			t.Errorf("the merge leads to %+v", a)
		}
		result := failing(a)
		result.EngineName, result.EngineVersion = "terraform", "1.10.0"
		return result
	})
	if rec := f.cluster("prod"); rec.Applied.EngineVersion != "1.9.8" {
		t.Fatalf("applied is %+v", rec.Applied)
	}
	a := f.claim()
	if a.Kind.Writes() || a.PinName != "terraform" || a.PinVersion != "1.10.0" {
		t.Errorf("what remains is planned as %+v, want the engine that has written the state", a)
	}
}

// TestEngineOfAnApplyThatDied: an apply whose agent died before it could say its engine
// has had that of the plan which it was to match. A first apply is on no other record.
func TestEngineOfAnApplyThatDied(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]func(*fleet, protocol.Assignment){
		"its agent started again": func(f *fleet, a protocol.Assignment) {
			f.finish(a, protocol.Result{Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled, Applying: true})
		},
		"it was given up": func(f *fleet, a protocol.Assignment) {
			run, err := f.store.Run(t.Context(), a.Run)
			f.must(err)
			f.must(f.r.Dispatcher().Kill(t.Context(), run, "nobody hears of it"))
			f.settle()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, map[string]string{"README.md": "hello"})
			f.look()
			f.open(1, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": "# one\n"})
			f.executeAll(withEngine)
			f.merge(1, byMerge)
			first := f.claim()
			if first.Kind != holdfast.RunApply || first.PinName != "" {
				t.Fatalf("the merge leads to %+v", first)
			}
			dies(f, first)
			f.clock.Advance(time.Hour)
			f.api("alice", holdfast.VerbPlan, "prod")
			remainder := f.claim()
			if remainder.PinName != "terraform" || remainder.PinVersion != "1.9.8" {
				t.Errorf("what remains is handed out as %+v, want the engine of the plan that was reviewed", remainder)
			}
			f.finish(remainder, withEngine(remainder))

			f.open(2, map[string]string{"infra/prod/main.tf": "# two\n"})
			f.executeAll(func(a protocol.Assignment) protocol.Result {
				result := withEngine(a)
				result.EngineName, result.EngineVersion = "tofu", "1.10.0"
				return result
			})
			f.post()
			if !strings.Contains(f.comment(2), "**changes the engine of prod** from terraform 1.9.8 to tofu 1.10.0") {
				t.Errorf("the comment says\n%s", f.comment(2))
			}
		})
	}
}

// TestAnotherEngineIsReported: the comment says that a merge changes the engine which
// writes the state, also if the plan changes nothing.
func TestAnotherEngineIsReported(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"terraform": false, "tofu": true} {
		for _, status := range []holdfast.RunStatus{holdfast.RunPlanned, holdfast.RunNoChanges} {
			f := built(t, twoClusters())
			f.open(1, map[string]string{"infra/prod/main.tf": "# two\n"})
			f.executeAll(func(a protocol.Assignment) protocol.Result {
				result := withEngine(a)
				result.EngineName, result.EngineVersion, result.Status = name, "1.10.0", status
				return result
			})
			f.post()
			if got := strings.Contains(f.comment(1), "**changes the engine of prod** from terraform 1.9.8 to tofu 1.10.0"); got != want {
				t.Errorf("%s, %s: the comment says\n%s", name, status, f.comment(1))
			}
		}
	}
}

// TestAnotherStateIsReported: the comment says that a merge would give a cluster another state.
func TestAnotherStateIsReported(t *testing.T) {
	t.Parallel()
	const elsewhere = "terraform {\n  backend \"s3\" {\n    bucket = \"b\"\n    key    = \"k\"\n    region = \"eu-west-1\"\n  }\n}\n"
	for name, change := range map[string]struct {
		text  string
		moved bool
	}{"the same": {"# two\n", false}, "another": {elsewhere, true}} {
		f := built(t, twoClusters())
		f.open(1, map[string]string{"infra/prod/main.tf": change.text})
		f.executeAll(func(a protocol.Assignment) protocol.Result {
			result := withEngine(a)
			result.Status = holdfast.RunNoChanges
			return result
		})
		f.post()
		if got := strings.Contains(f.comment(1), "`prod`: its state is clusters/prod and would be s3:bucket=b,key=k"); got != change.moved {
			t.Errorf("%s: the comment says\n%s", name, f.comment(1))
		}
	}
}
