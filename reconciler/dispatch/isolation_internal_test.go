package dispatch

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestWeakAgentsGetNoRuns: an agent has a run only with an isolation that is demanded, or
// if nothing works for it: then its run says why. One that is refused is told what to do,
// is listed with that, and does not count as one that executes such runs.
func TestWeakAgentsGetNoRuns(t *testing.T) {
	t.Parallel()
	landlock := []string{"slots", "range", "user-namespace", "landlock"}
	for name, test := range map[string]struct {
		demanded  []string
		isolation string
		admitted  bool
	}{
		"the demanded mode":         {landlock, "landlock", true},
		"a stronger one":            {landlock, "slots", true},
		"a weaker one":              {landlock, "users", false},
		"none":                      {landlock, protocol.IsolationNone, false},
		"an agent that names none":  {landlock, "", false},
		"a made up one":             {landlock, "bubble", false},
		"nothing works":             {landlock, protocol.IsolationUnavailable, true},
		"nothing is demanded: none": {nil, protocol.IsolationNone, true},
		"nothing is demanded: old":  {nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &waitingRuns{}
			store.queue("run-1")
			d := dispatcherOf(t, store)
			d.demanded = test.demanded
			a, err := d.Claim(t.Context(), protocol.ClaimRequest{
				Agent: "a", Isolation: test.isolation, Kinds: []holdfast.RunKind{holdfast.RunPlan},
			})
			heard := d.Heard()[0]
			if test.admitted {
				if err != nil || a.Run != "run-1" || heard.Refused != "" || !d.takes(holdfast.LocalRunner, holdfast.RunPlan, "", false) || d.refusedFor(holdfast.LocalRunner, holdfast.RunPlan, "") != nil {
					t.Errorf("run %q, %v; heard %+v", a.Run, err, heard)
				}
				return
			}
			if !errors.Is(err, holdfast.ErrForbidden) || len(store.read) > 0 || d.takes(holdfast.LocalRunner, holdfast.RunPlan, "", false) {
				t.Fatalf("run %q, %v; read %v", a.Run, err, store.read)
			}
			for _, want := range []string{test.isolation, "slots, range, user-namespace, landlock", "--isolation landlock", "holdfast.yaml"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if why := d.refusedFor(holdfast.LocalRunner, holdfast.RunPlan, ""); !heard.Living || heard.Refused != err.Error() || why == nil {
				t.Errorf("heard %+v, %v", heard, why)
			}
			if why := d.refusedFor(holdfast.LocalRunner, holdfast.RunApply, ""); why != nil {
				t.Errorf("it does not claim applies: %v", why)
			}
		})
	}
}
