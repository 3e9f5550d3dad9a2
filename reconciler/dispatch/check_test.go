package dispatch_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
)

// TestOutcomeOfItsKind: of what an agent reports nothing counts that its run
// cannot come to.
func TestOutcomeOfItsKind(t *testing.T) {
	t.Parallel()
	reviewed := []holdfast.Review{{Run: "run-seen"}}
	refused := map[string]struct {
		kind   holdfast.RunKind
		result protocol.Result
	}{
		"a plan that has applied":   {holdfast.RunPlan, protocol.Result{Status: holdfast.RunApplied}},
		"a check that has applied":  {holdfast.RunDrift, protocol.Result{Status: holdfast.RunApplied}},
		"a release that plans":      {holdfast.RunUnlock, protocol.Result{Status: holdfast.RunPlanned}},
		"a release that applies":    {holdfast.RunUnlock, protocol.Result{Status: holdfast.RunApplied, Applying: true}},
		"a plan that applies":       {holdfast.RunPlan, protocol.Result{Status: holdfast.RunErrored, Applying: true}},
		"a check that applies":      {holdfast.RunDrift, protocol.Result{Status: holdfast.RunNoChanges, Applying: true}},
		"a plan that was compared":  {holdfast.RunPlan, protocol.Result{Status: holdfast.RunPlanned, Reason: holdfast.ReasonPlanChanged}},
		"no end":                    {holdfast.RunPlan, protocol.Result{Status: holdfast.RunRunning}},
		"a status of its own":       {holdfast.RunApply, protocol.Result{Status: "approved"}},
		"a digest that is a text":   {holdfast.RunPlan, protocol.Result{Status: holdfast.RunPlanned, InputDigest: "as reviewed\n"}},
		"an engine of its own":      {holdfast.RunPlan, protocol.Result{Status: holdfast.RunPlanned, EngineName: "sh"}},
		"a version that is a text":  {holdfast.RunPlan, protocol.Result{Status: holdfast.RunPlanned, EngineName: "tofu", EngineVersion: "1.10.0 <b>"}},
		"equal to what is not seen": {holdfast.RunApply, protocol.Result{Status: holdfast.RunApplied, Matched: "run-other"}},
	}
	for name, tc := range refused {
		run := holdfast.Run{Kind: tc.kind, RunSpec: holdfast.RunSpec{Reviews: reviewed}}
		got, why := dispatch.Checked(run, tc.result)
		if why == "" || got.Status != holdfast.RunErrored || got.Reason != holdfast.CauseInvalidOutcome ||
			got.Failure == nil || got.Failure.Transient || got.Applying {
			t.Errorf("%s: taken as %+v (%s)", name, got, why)
		}
	}
	// What an apply may have changed is not forgotten with it.
	if got, _ := dispatch.Checked(holdfast.Run{Kind: holdfast.RunApply}, protocol.Result{Status: "x", Applying: true}); !got.Applying {
		t.Error("an apply that had begun counts as one that had not")
	}
	for _, kind := range []holdfast.RunKind{holdfast.RunState, holdfast.RunUnlock} {
		if got, why := dispatch.Checked(holdfast.Run{Kind: kind}, protocol.Result{Status: holdfast.RunApplied}); got.Status != holdfast.RunApplied {
			t.Errorf("%s that was done is taken as %+v (%s)", kind, got, why)
		}
	}
	for _, kind := range []holdfast.RunKind{holdfast.RunPlan, holdfast.RunDrift, holdfast.RunApply, holdfast.RunDestroy} {
		for _, status := range []holdfast.RunStatus{
			holdfast.RunPlanned, holdfast.RunNoChanges, holdfast.RunErrored, holdfast.RunCanceled, holdfast.RunInterrupted,
		} {
			result := protocol.Result{
				Status: status, InputDigest: holdfast.DigestOf(nil), EngineName: "terraform", EngineVersion: "1.12.0-beta1",
				Failure: &holdfast.Failure{Step: "plan", Cause: "Throttled", Transient: true}, Steps: []protocol.Step{{Name: "init", Duration: time.Second}},
			}
			got, why := dispatch.Checked(holdfast.Run{Kind: kind}, result)
			if !reflect.DeepEqual(got, result) || why != "" {
				t.Errorf("%s that ends %s is taken as %+v (%s)", kind, status, got, why)
			}
		}
	}
}

// TestWordsOfAnOutcome: a reason is one that there is, and texts have bounds.
func TestWordsOfAnOutcome(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1<<20)
	got, why := dispatch.Checked(holdfast.Run{Kind: holdfast.RunApply}, protocol.Result{
		Status: holdfast.RunErrored, Reason: "reviewed by alice", Detail: long, Applying: true,
		Steps: []protocol.Step{{Name: "apply", Duration: time.Minute}, {Name: long}, {Name: "plan", Duration: -1}},
		Failure: &holdfast.Failure{
			Step: "mine", Summary: long, Detail: long, Hint: long, Cause: "Because", Transient: true, Address: long,
			Diagnostics: make([]holdfast.Diagnostic, 5000), Completed: make([]string, 5000), Unrecorded: []string{long, "aws_vpc.main"},
		},
	})
	switch f := got.Failure; {
	case why != "" || got.Status != holdfast.RunErrored || !got.Applying:
		t.Errorf("refused as a whole: %s, %s", got.Status, why)
	case got.Reason != holdfast.CauseInvalidOutcome || f.Cause != holdfast.CauseInvalidOutcome || f.Transient || f.Step != "":
		t.Errorf("reason %q, cause %q, transient %t, step %q", got.Reason, f.Cause, f.Transient, f.Step)
	case len(got.Detail)+len(f.Summary)+len(f.Detail)+len(f.Hint)+len(f.Address)+len(f.Unrecorded[0]) > 128<<10:
		t.Errorf("texts of %d, %d, %d and %d bytes", len(got.Detail), len(f.Summary), len(f.Detail), len(f.Hint))
	case len(f.Diagnostics) > 100 || len(f.Completed) > 1000 || f.Unrecorded[1] != "aws_vpc.main":
		t.Errorf("%d diagnostics, %d that were completed, unrecorded %q", len(f.Diagnostics), len(f.Completed), f.Unrecorded[1:])
	case len(got.Steps) != 1 || got.Steps[0].Name != "apply":
		t.Errorf("steps %+v", got.Steps)
	}
}

// An address that is too long to be kept, or is not among those that are kept, is one that
// the next plan cannot be compared with: what may exist is not all known then.
func TestWhatIsCutOfAnApplyIsLost(t *testing.T) {
	t.Parallel()
	long := `cloud_network.b["` + strings.Repeat("x", 3000) + `"]`
	for name, tc := range map[string]struct {
		failure holdfast.Failure
		lost    bool
	}{
		"whole":                {holdfast.Failure{Unrecorded: []string{"cloud_network.a"}, Completed: []string{"cloud_network.b: created"}}, false},
		"a long address":       {holdfast.Failure{Unrecorded: []string{"cloud_network.a", long}}, true},
		"a long one that is":   {holdfast.Failure{Completed: []string{long + holdfast.CreatedSuffix}}, true},
		"one that is not text": {holdfast.Failure{Unrecorded: []string{"cloud_network.b[\"\xff\"]"}}, true},
		"more than are kept":   {holdfast.Failure{Unrecorded: slices.Repeat([]string{"cloud_network.a"}, 1001)}, true},
		"lost before":          {holdfast.Failure{ProgressLost: true}, true},
		"a long one that goes": {holdfast.Failure{Remaining: []string{long}}, false},
	} {
		result := protocol.Result{Status: holdfast.RunInterrupted, Applying: true, Failure: &tc.failure}
		got, why := dispatch.Checked(holdfast.Run{Kind: holdfast.RunApply}, result)
		if why != "" || got.Failure == nil || got.Failure.ProgressLost != tc.lost {
			t.Errorf("%s: taken as %+v (%s), want progress lost %t", name, got.Failure, why, tc.lost)
		}
	}
}
