package dispatch

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// TestFirstPlansKeepTheirPace: whichever lanes they are of.
func TestFirstPlansKeepTheirPace(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration, priority int) holdfast.Lane {
		return holdfast.Lane{Priority: priority, Since: now.Add(-d)}
	}
	first := holdfast.Run{Kind: holdfast.RunPlan, RunSpec: holdfast.RunSpec{RunMode: holdfast.RunMode{Background: true}}}
	outdated := first
	outdated.PullRequest = holdfast.PullRequestRef{Repo: "fleet", Number: 1}
	limited := Limits{First: 60} // one a minute
	for name, tt := range map[string]struct {
		limits Limits
		lately []holdfast.Lane
		run    holdfast.Run
		want   string
	}{
		"none yet":               {limited, nil, first, ""},
		"one a minute ago":       {limited, []holdfast.Lane{ago(time.Minute, holdfast.PriorityFirst)}, first, ""},
		"one half a minute ago":  {limited, []holdfast.Lane{ago(30*time.Second, holdfast.PriorityFirst)}, first, "60 first plans are started in an hour; the next one at 12:00:30 UTC"},
		"the last one of two":    {limited, []holdfast.Lane{ago(10*time.Second, holdfast.PriorityFirst), ago(time.Hour, holdfast.PriorityFirst)}, first, "60 first plans are started in an hour; the next one at 12:00:50 UTC"},
		"others half a minute":   {limited, []holdfast.Lane{ago(30*time.Second, 1), ago(30*time.Second, 4)}, first, ""},
		"no limit":               {Limits{}, []holdfast.Lane{ago(0, holdfast.PriorityFirst)}, first, ""},
		"another run":            {limited, []holdfast.Lane{ago(0, holdfast.PriorityFirst)}, holdfast.Run{Kind: holdfast.RunPlan}, ""},
		"one of a pull request":  {limited, []holdfast.Lane{ago(0, holdfast.PriorityFirst)}, outdated, ""},
		"once in an hour, later": {Limits{First: 1}, []holdfast.Lane{ago(time.Hour, holdfast.PriorityFirst)}, first, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason, detail := tt.limits.firstWaits(tt.run, tt.lately, now)
			if detail != tt.want || (reason == holdfast.ReasonAdoptionCapped) != (tt.want != "") {
				t.Errorf("firstWaits() = %s, %q, want %q", reason, detail, tt.want)
			}
		})
	}
}
