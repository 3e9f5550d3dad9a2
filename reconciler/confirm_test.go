package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// twoWaiting is a fleet in which prod waits with two merges, of pull requests 1 and 2,
// the later of which has replaced the earlier one. It returns the plan of each.
func twoWaiting(t *testing.T) (f *fleet, first, second string) {
	t.Helper()
	return twoWaitingFor(t, holdfast.ReasonManual, "apply: {onMerge: false}")
}

// twoWaitingFor is twoWaiting for another reason, that the document gives.
func twoWaitingFor(t *testing.T, reason holdfast.Reason, says string) (f *fleet, first, second string) {
	t.Helper()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", says)
	f = newFleet(t, files)
	f.adopt()
	plans := make([]string, 2)
	for i, text := range []string{"two", "three"} {
		number := i + 1
		f.open(number, map[string]string{"infra/prod/main.tf": module(text)})
		f.executeAll(planned)
		f.post()
		runs, err := f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "prod", Limit: 1})
		f.must(err)
		plans[i] = runs[0].ID
		f.merge(number, bySquash)
		f.look()
		if rec := f.cluster("prod"); rec.Waiting != reason {
			t.Fatalf("merged, prod waits for %q: %v", rec.Waiting, f.runs("prod"))
		}
	}
	return f, plans[0], plans[1]
}

// Of several merges that wait the server names the plan of the newest; of what is up to
// date, none.
func TestThePlanThatWaitsIsNamed(t *testing.T) {
	t.Parallel()
	f, _, second := twoWaiting(t)
	for cluster, want := range map[string]string{"prod": second, "preprod": ""} {
		got, err := f.r.PlannedRun(t.Context(), cluster)
		f.must(err)
		if got != want {
			t.Errorf("%s waits with %q, want %q", cluster, got, want)
		}
	}
}

// A word about one plan applies no other: a merge that a later one has replaced is no
// longer applied, however it is named.
func TestAWordIsAboutOnePlan(t *testing.T) {
	t.Parallel()
	ref := func(number int) holdfast.PullRequestRef {
		return holdfast.PullRequestRef{Repo: infra, Number: number}
	}
	for name, tt := range map[string]struct {
		ask     func(first, second, branch string) holdfast.Command
		refused bool
	}{
		"the run of the earlier": {func(first, _, _ string) holdfast.Command {
			return holdfast.Command{PullRequest: ref(1), Clusters: []string{"prod"}, Shown: []string{first}, ShownHead: "x"}
		}, true},
		"the earlier pull request": {func(string, string, string) holdfast.Command {
			return holdfast.Command{PullRequest: ref(1)}
		}, true},
		"the cluster, with the plan of the earlier": {func(first, _, _ string) holdfast.Command {
			return holdfast.Command{Clusters: []string{"prod"}, Shown: []string{first}}
		}, true},
		"the cluster, with the newest run of the branch": {func(_, _, branch string) holdfast.Command {
			return holdfast.Command{Clusters: []string{"prod"}, Shown: []string{branch}}
		}, true},
		"the run of the later": {func(_, second, _ string) holdfast.Command {
			return holdfast.Command{PullRequest: ref(2), Clusters: []string{"prod"}, Shown: []string{second}, ShownHead: "x"}
		}, false},
		"the later pull request": {func(string, string, string) holdfast.Command {
			return holdfast.Command{PullRequest: ref(2)}
		}, false},
		"the cluster, with the plan of the later": {func(_, second, _ string) holdfast.Command {
			return holdfast.Command{Clusters: []string{"prod"}, Shown: []string{second}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, first, second := twoWaiting(t)
			ask := tt.ask(first, second, f.cluster("prod").Applied.Run)
			ask.Author, ask.Trusted, ask.Verb = "alice", true, holdfast.VerbApply
			c, err := f.r.Command(t.Context(), ask)
			f.must(err)
			f.settle()
			last := f.newest("prod")
			if !tt.refused {
				if c.Status != holdfast.CommandDone || last.Kind != holdfast.RunApply {
					t.Fatalf("it is %s (%s): %s", c.Status, c.Reason, c.Reply)
				}
				for _, v := range last.Reviews {
					if v.Run != "" && v.Run != second {
						t.Errorf("the apply may come to %s, want %s alone", v.Run, second)
					}
				}
				return
			}
			if c.Status != holdfast.CommandRefused || c.Reason != holdfast.ReasonPlanMoved || !strings.Contains(c.Reply, second) {
				t.Errorf("it is %s (%s): %s", c.Status, c.Reason, c.Reply)
			}
			if last.Kind == holdfast.RunApply {
				t.Errorf("it applies: %v", f.runs("prod"))
			}
		})
	}
}

// A merge that a later one has replaced before it was applied says so, before the later
// one is applied and after it, and no longer take commandss.
func TestAReplacedMergeSaysSo(t *testing.T) {
	t.Parallel()
	f, _, _ := twoWaiting(t)
	merged := f.forge.get(1).MergeCommit
	check := func(when string) {
		t.Helper()
		f.post()
		comment := f.forge.comment(1)
		if !strings.Contains(comment, "superseded by \\#2") && !strings.Contains(comment, "superseded by #2") || strings.Contains(comment, "/holdfast apply") {
			t.Errorf("%s its comment says:\n%s", when, comment)
		}
		told := f.forge.told(merged, holdfast.ContextApply)
		if last := told[len(told)-1]; !strings.Contains(last, "superseded by #2") {
			t.Errorf("%s its status is %q", when, last)
		}
	}
	check("waiting")
	if done := f.command(1, "alice", "/holdfast apply"); done.Status != holdfast.CommandRefused || !strings.Contains(done.Reply, "the plan of infra#2") {
		t.Errorf("the apply is %s (%s): %s", done.Status, done.Reason, done.Reply)
	}
	if done := f.command(2, "alice", "/holdfast apply"); done.Status != holdfast.CommandDone {
		t.Fatalf("the apply of the later is %s (%s): %s", done.Status, done.Reason, done.Reply)
	}
	f.executeAll(good)
	check("applied")
	if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
		t.Errorf("prod waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
}

// A word about a merge that was applied long ago does not revert what has drifted since.
func TestAWordAboutAMergeRevertsNothing(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	f.executeAll(good)
	check := f.drift(scaled("5"))
	if d := f.cluster("prod").Drift; d.Status != holdfast.DriftFound || d.Run != check.ID {
		t.Fatalf("the drift is %+v", d)
	}
	c, err := f.r.Command(t.Context(), holdfast.Command{
		Author: "alice", Trusted: true, Verb: holdfast.VerbApply, PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 1},
	})
	f.must(err)
	f.settle()
	if last := f.newest("prod"); last.ID != check.ID || !strings.Contains(c.Reply, "up to date") {
		t.Errorf("it is %s (%s): %v", c.Status, c.Reply, f.runs("prod"))
	}
}
