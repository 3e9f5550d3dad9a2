package decision_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// A plan was reviewed if the comment that stood at the merge showed it.
func TestReviewedPlan(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 12, 0, second, 0, time.UTC) }
	plan := func(id string, status holdfast.RunStatus, posted int) holdfast.Run {
		run := holdfast.Run{ID: id, Kind: holdfast.RunPlan, Status: status}
		run.Revision = "head"
		if posted > 0 {
			run.PostedAt = at(posted)
		}
		return run
	}
	first := plan("run-1", holdfast.RunPlanned, 1)
	for name, test := range map[string]struct {
		runs    []holdfast.Run // newest first
		unshown []time.Time
		want    string
	}{
		"shown":                     {runs: []holdfast.Run{first}, want: "run-1"},
		"not shown":                 {runs: []holdfast.Run{plan("run-1", holdfast.RunPlanned, 0)}},
		"shown later":               {runs: []holdfast.Run{plan("run-1", holdfast.RunPlanned, 11)}},
		"shown at the merge":        {runs: []holdfast.Run{plan("run-1", holdfast.RunPlanned, 10)}, want: "run-1"},
		"no longer shown":           {runs: []holdfast.Run{first}, unshown: []time.Time{at(5)}},
		"not shown from the merge":  {runs: []holdfast.Run{first}, unshown: []time.Time{at(10)}},
		"not shown after the merge": {runs: []holdfast.Run{first}, unshown: []time.Time{at(11)}, want: "run-1"},
		"shown again":               {runs: []holdfast.Run{first}, unshown: []time.Time{at(5), at(10)}, want: "run-1"},
		"shown again later":         {runs: []holdfast.Run{first}, unshown: []time.Time{at(5), at(11)}},
		"failed":                    {runs: []holdfast.Run{plan("run-2", holdfast.RunErrored, 5), first}},
		"failed for good":           {runs: []holdfast.Run{plan("run-2", holdfast.RunInterrupted, 5), first}},
		"failed, not said":          {runs: []holdfast.Run{plan("run-2", holdfast.RunErrored, 0), first}, want: "run-1"},
		"failed, said later":        {runs: []holdfast.Run{plan("run-2", holdfast.RunErrored, 11), first}, want: "run-1"},
		"failed, and planned again": {runs: []holdfast.Run{plan("run-3", holdfast.RunQueued, 0), plan("run-2", holdfast.RunErrored, 5), first}},
		"canceled":                  {runs: []holdfast.Run{plan("run-2", holdfast.RunCanceled, 5), first}, want: "run-1"},
		"failed before":             {runs: []holdfast.Run{plan("run-2", holdfast.RunNoChanges, 6), plan("run-1", holdfast.RunErrored, 5)}, want: "run-2"},
		"shown again, and not":      {runs: []holdfast.Run{first}, unshown: []time.Time{at(2), at(3), at(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pr := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{Head: "head", MergedAt: at(10)}, Unshown: test.unshown}
			got, ok := decision.ReviewedPlan(test.runs, pr, "", false)
			if ok != (test.want != "") || ok && got.ID != test.want {
				t.Errorf("ReviewedPlan() = %q, %t, want %q", got.ID, ok, test.want)
			}
		})
	}
}
