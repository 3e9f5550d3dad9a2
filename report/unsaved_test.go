package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// TestUnsavedState: the commands for a state that could not be saved are shown as long
// as there is one, and not after it was pushed or given up.
func TestUnsavedState(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed := appliedCluster("prod-eu", smallPlan("prod-eu"), holdfast.RunErrored)
	failed.Apply.Begun, failed.Apply.FinishedAt = true, ended
	failed.Apply.Failure = &holdfast.Failure{
		Step: "apply", Summary: "Failed to save state", Cause: "StateUnsaved", Hint: "it is kept: `holdfast state push` pushes it now",
	}
	stands := waits(failed, "StateUnsaved", "pushing it failed")
	since := func(status holdfast.RunStatus, started time.Time, waiting holdfast.Reason) report.Cluster {
		c := failed
		c.Failed = failed.Apply
		c.Apply = run("plan-prod-eu", "prod-eu", holdfast.RunPlan, status, smallPlan("prod-eu"))
		c.Apply.StartedAt = started
		return waits(c, waiting, "")
	}
	for name, c := range map[string]struct {
		cluster report.Cluster
		stands  bool
	}{
		"it stands":                    {stands, true},
		"a plan is queued":             {since(holdfast.RunQueued, time.Time{}, ""), true},
		"it stands, and is planned":    {since(holdfast.RunQueued, time.Time{}, "StateUnsaved"), true},
		"a plan was made before":       {since(holdfast.RunPlanned, ended.Add(-time.Minute), "ApplyFailed"), true},
		"a plan is made":               {since(holdfast.RunRunning, ended.Add(time.Minute), ""), false},
		"a plan was made, and waits":   {since(holdfast.RunPlanned, ended.Add(time.Minute), "ApplyFailed"), false},
		"it stands again, from others": {since(holdfast.RunPlanned, ended.Add(time.Minute), "StateUnsaved"), true},
	} {
		comment := report.Comment(merge(pullRequest(c.cluster)))
		if !strings.Contains(comment, "(`StateUnsaved`)") {
			t.Errorf("%s: the comment does not say why the apply failed:\n%s", name, comment)
		}
		for _, word := range []string{"holdfast state push", "holdfast state waive", "pushed automatically"} {
			if strings.Contains(comment, word) != c.stands {
				t.Errorf("%s: %q is in the comment: %v\n%s", name, word, !c.stands, comment)
			}
		}
		if given := strings.Contains(comment, "`holdfast describe cluster prod-eu` shows which"); given == c.stands {
			t.Errorf("%s: what became of the state is in the comment: %v\n%s", name, given, comment)
		}
	}
}
