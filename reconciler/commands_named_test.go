package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Through the API only what was reviewed before a merge is applied without being named:
// a plan that nobody has shown is refused, and so is drift.
func TestWhatWasNotReviewedHasToBeNamed(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T) *fleet{
		"a push": func(t *testing.T) *fleet {
			f := newFleet(t, twoClusters())
			f.adopt()
			f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
			f.look()
			f.executeAll(planned)
			return f
		},
		"an apply that found another plan": func(t *testing.T) *fleet {
			f := reviewed(t)
			f.merge(1, byMerge)
			f.executeAll(differs)
			return f
		},
		"drift": func(t *testing.T) *fleet {
			f := driftFleet(t, hourly)
			f.drift(scaled("5"))
			return f
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := begin(t)
			waits := f.planned(holdfast.VerbApply, []string{"prod"})
			if len(waits) != 1 {
				t.Fatalf("it waits with %v: %v", waits, f.runs("prod"))
			}
			ask := holdfast.Command{Author: "alice", Verb: holdfast.VerbApply, Clusters: []string{"prod"}}
			c := f.commands(ask)
			if c.Status != holdfast.CommandRefused || c.Reason != holdfast.ReasonUnreviewed || !strings.Contains(c.Reply, waits[0]) {
				t.Errorf("without a name it is %s (%s): %s", c.Status, c.Reason, c.Reply)
			}
			ask.Shown = []string{}
			if c := f.commands(ask); c.Status != holdfast.CommandRefused || c.Reason != holdfast.ReasonPlanMoved || !strings.Contains(c.Reply, waits[0]) {
				t.Errorf("where none was seen it is %s (%s): %s", c.Status, c.Reason, c.Reply)
			}
			ask.Shown = waits
			if c := f.commands(ask); c.Status != holdfast.CommandDone || f.newest("prod").Shown != waits[0] {
				t.Errorf("with its name it is %s (%s): %s", c.Status, c.Reason, c.Reply)
			}
		})
	}
}

// What was reviewed before a merge needs no name.
func TestWhatWasReviewedNeedsNoName(t *testing.T) {
	t.Parallel()
	f, _, _ := twoWaiting(t)
	c := f.commands(holdfast.Command{Author: "alice", Verb: holdfast.VerbApply, Clusters: []string{"prod"}})
	if c.Status != holdfast.CommandDone || f.newest("prod").Kind != holdfast.RunApply {
		t.Errorf("it is %s (%s): %s", c.Status, c.Reason, c.Reply)
	}
}

// Who approves a cluster approves the plan that they have looked at, and none that a later
// merge has brought since.
func TestAnApprovalIsOfWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	f, first, second := twoWaitingFor(t, holdfast.ReasonNotApproved, "apply: {requires: [approved]}")
	approve := func(shown ...string) holdfast.Command {
		return f.commands(holdfast.Command{Author: "root", Verb: holdfast.VerbApprove, Clusters: []string{"prod"}, Shown: shown})
	}
	c := approve(first)
	if c.Status != holdfast.CommandRefused || c.Reason != holdfast.ReasonPlanMoved || !strings.Contains(c.Reply, "what waits is `"+second+"`") ||
		!slices.Equal(c.Refused, []string{"prod"}) {
		t.Errorf("of the earlier plan it is %s (%s), refused for %v: %s", c.Status, c.Reason, c.Refused, c.Reply)
	}
	for number := 1; number <= 2; number++ {
		pr, err := f.store.PullRequest(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: number})
		f.must(err)
		if len(pr.Approvals) > 0 {
			t.Errorf("#%d has approvals: %+v", number, pr.Approvals)
		}
	}
	if c := approve(second); c.Status != holdfast.CommandDone || c.Reply != "`prod`: approved `"+second+"`" {
		t.Errorf("of the plan that waits it is %s (%s): %s", c.Status, c.Reason, c.Reply)
	}
	if last := f.newest("prod"); last.Kind != holdfast.RunApply {
		t.Errorf("it is not applied: %v", f.runs("prod"))
	}
}

// Who approves a cluster that is applied by command has not asked for its apply.
func TestAnApprovalIsNotAnApply(t *testing.T) {
	t.Parallel()
	for name, apply := range map[string]string{
		"with a condition": "apply: {onMerge: false, requires: [approved]}", "without": "apply: {onMerge: false}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t, apply)
			f.merge(1, byMerge)
			f.executeAll(good)
			for range 2 {
				c := f.api("root", holdfast.VerbApprove, "prod")
				if c.Status != holdfast.CommandDone || !strings.HasPrefix(c.Reply, "`prod`: approved `run-") || !strings.HasSuffix(c.Reply, "`; `holdfast apply prod` applies it") {
					t.Errorf("it is %s (%s): %s", c.Status, c.Reason, c.Reply)
				}
				f.executeAll(good)
				if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonManual {
					t.Errorf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
				}
			}
			if c := f.api("root", holdfast.VerbApply, "prod"); c.Status != holdfast.CommandDone {
				t.Errorf("the apply is %s (%s): %s", c.Status, c.Reason, c.Reply)
			}
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
				t.Errorf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
			if c := f.api("root", holdfast.VerbApprove, "prod"); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, "no plan that needs approval") {
				t.Errorf("once it is applied it is %s (%s): %s", c.Status, c.Reason, c.Reply)
			}
		})
	}
}

// Who approves a pull request on a terminal is told of each of its clusters.
func TestAnApprovalOfAPullRequestIsAnswered(t *testing.T) {
	t.Parallel()
	f := gated(t)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("two")})
	f.executeAll(planned)
	f.post()
	c := f.commands(holdfast.Command{Author: "root", Verb: holdfast.VerbApprove, PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 1}})
	if c.Status != holdfast.CommandDone || !strings.Contains(c.Reply, "`prod`: approved") || !strings.Contains(c.Reply, "`preprod`: approved") {
		t.Errorf("it is %s: %q", c.Status, c.Reply)
	}
}
