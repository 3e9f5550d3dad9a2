package reconciler_test

import (
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
