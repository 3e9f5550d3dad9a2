package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
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
	f.execute(func(a holdfast.Assignment) holdfast.Result {
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

// TestAnotherEngineIsReported: the comment says that a merge changes the engine which
// writes the state, also if the plan changes nothing.
func TestAnotherEngineIsReported(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"terraform": false, "tofu": true} {
		for _, status := range []holdfast.RunStatus{holdfast.RunPlanned, holdfast.RunNoChanges} {
			f := built(t, twoClusters())
			f.open(1, map[string]string{"infra/prod/main.tf": "# two\n"})
			f.executeAll(func(a holdfast.Assignment) holdfast.Result {
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

// TestAnotherStateIsReported: the comment says that a merge gives a cluster another state,
// also if the plan, which is of that one, changes nothing.
func TestAnotherStateIsReported(t *testing.T) {
	t.Parallel()
	const elsewhere = "terraform {\n  backend \"s3\" {\n    bucket = \"b\"\n    key    = \"k\"\n    region = \"eu-west-1\"\n  }\n}\n"
	for name, change := range map[string]struct {
		text  string
		moved bool
	}{"the same": {"# two\n", false}, "another": {elsewhere, true}} {
		f := built(t, twoClusters())
		f.open(1, map[string]string{"infra/prod/main.tf": change.text})
		f.executeAll(func(a holdfast.Assignment) holdfast.Result {
			result := withEngine(a)
			result.Status = holdfast.RunNoChanges
			return result
		})
		f.post()
		if got := strings.Contains(f.comment(1), "**moves the state of prod** from `clusters/prod` to `s3:bucket=b,key=k`"); got != change.moved {
			t.Errorf("%s: the comment says\n%s", name, f.comment(1))
		}
	}
}
