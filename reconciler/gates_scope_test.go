package reconciler_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// bothRequire is a fleet of two clusters with the same condition, and a pull request that
// changes both and was planned.
func bothRequire(t *testing.T, condition string, with ...func(*holdfast.PullRequest)) *fleet {
	t.Helper()
	files := twoClusters()
	for _, name := range []string{"prod", "preprod"} {
		files["clusters/"+name+".yaml"] = document(name, "apply: {requires: ["+condition+"]}")
	}
	f := newFleet(t, files)
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("two")}, with...)
	f.executeAll(good)
	return f
}

// waits fails unless prod waits for a reason and preprod is as Git says.
func (f *fleet) waits(reason holdfast.Reason) {
	f.t.Helper()
	if rec := f.cluster("prod"); rec.Waiting != reason || rec.Applied.SourceDigest == rec.Desired.SourceDigest {
		f.t.Errorf("prod waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
	}
	if rec := f.cluster("preprod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
		f.t.Errorf("preprod waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("preprod"))
	}
}

// Who approves one cluster of a pull request approves no other.
func TestAnApprovalIsForItsClusters(t *testing.T) {
	t.Parallel()
	for name, approve := range map[string]func(*fleet, string){
		"in a comment": func(f *fleet, cluster string) { f.obeys(1, "alice", "/holdfast approve "+cluster) },
		"through the API": func(f *fleet, cluster string) {
			f.forge.says(1, "dave", "in the next second")
			c := f.commands(holdfast.Command{Author: "alice", Verb: holdfast.VerbApprove, PullRequest: onePR, Clusters: []string{cluster}})
			if c.Status != holdfast.CommandDone {
				f.t.Fatalf("it is %s: %s", c.Status, c.Reply)
			}
			f.post()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := bothRequire(t, "approved")
			approve(f, "preprod")
			comment := f.forge.comment(1)
			for _, words := range []string{"`preprod` | alice approved by command", "`prod` | alice approved other clusters"} {
				if !strings.Contains(comment, words) {
					t.Errorf("the comment does not say %q:\n%s", words, comment)
				}
			}
			f.merge(1, byMerge)
			f.executeAll(good)
			f.waits(holdfast.ReasonNotApproved)
			approve(f, "prod")
			f.executeAll(good)
			f.waitsForNothing("prod")
		})
	}
}

// waitsForNothing fails unless a cluster is as Git says.
func (f *fleet) waitsForNothing(cluster string) {
	f.t.Helper()
	if rec := f.cluster(cluster); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
		f.t.Errorf("%s waits for %q (%s): %v", cluster, rec.Waiting, rec.WaitingDetail, f.runs(cluster))
	}
}

// Who approves the merge of a pull request for one of its clusters, by its name, does not
// stand for it elsewhere.
func TestAMergeIsApprovedForItsClusters(t *testing.T) {
	t.Parallel()
	f := bothRequire(t, "mergeable", func(pr *holdfast.PullRequest) { pr.Mergeable, pr.Blocked = false, "behind" })
	f.merge(1, byMerge)
	f.executeAll(good)
	if c := f.api("alice", holdfast.VerbApprove, "preprod"); c.Status != holdfast.CommandDone {
		t.Fatalf("it is %s: %s", c.Status, c.Reply)
	}
	f.ask("prod")
	f.executeAll(good)
	f.waits(holdfast.ReasonNotMergeable)
}

// An approval of a pull request through the API is of the plans that its comment shows, or
// of those that it names: of older ones, or of none, it is refused.
func TestAnApprovalThroughTheAPIIsOfWhatIsShown(t *testing.T) {
	t.Parallel()
	f := gated(t)
	f.openUnnoticed(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.lookAt(1)
	approve := func(shown []string, status holdfast.CommandStatus, words string) {
		t.Helper()
		c := f.commands(holdfast.Command{Author: "alice", Verb: holdfast.VerbApprove, PullRequest: onePR, Shown: shown})
		f.post()
		if c.Status != status || !strings.Contains(c.Reply, words) {
			t.Errorf("approve %q is %s: %q; want %s, %q", shown, c.Status, c.Reply, status, words)
		}
	}
	const missing = " | "
	says := func(words string) {
		t.Helper()
		if comment := f.forge.comment(1); !strings.Contains(comment, words) {
			t.Errorf("the comment does not say %q:\n%s", words, comment)
		}
	}
	approve(nil, holdfast.CommandRefused, "no plan is shown in the pull request now")
	first := f.execute(planned)
	f.post()
	approve([]string{}, holdfast.CommandRefused, "no plan is shown in the pull request now")
	approve([]string{"run-00000000000000000000"}, holdfast.CommandRefused, "the newest plan is `"+first.ID+"`")
	says(missing + "nobody has approved it")

	f.obeys(1, "alice", "/holdfast plan")
	second := f.execute(func(a protocol.Assignment) protocol.Result {
		data, err := json.Marshal(scaled("9"))
		f.must(err)
		f.must(f.store.PutArtefact(t.Context(), a.AttemptRef, protocol.ArtefactPlan, bytes.NewReader(data)))
		return planned(a)
	})
	f.post()
	approve([]string{first.ID}, holdfast.CommandRefused, "the newest plan is `"+second.ID+"`")
	says(missing + "nobody has approved it")
	approve(nil, holdfast.CommandDone, "approved `"+second.ID+"`")
	says("alice approved by command")
}

// What is refused approves nothing.
func TestARefusedApprovalDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after func(*fleet)
		words         string
	}{
		"changes are requested": {
			before: func(f *fleet) {
				f.change(1, func(pr *holdfast.PullRequest) {
					pr.Verdicts = []holdfast.Verdict{{By: "carol", Head: pr.Head, At: f.clock.Now()}}
				})
			},
			after: func(f *fleet) { f.change(1, func(pr *holdfast.PullRequest) { pr.Verdicts = nil }) },
			words: "carol requested changes",
		},
		"the cluster is suspended": {
			before: func(f *fleet) { f.suspend("prod", true, "root", ""); f.settle() },
			after:  func(f *fleet) { f.suspend("prod", false, "root", ""); f.settle() },
			words:  "suspended",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gated(t)
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.merge(1, byMerge)
			c.before(f)
			if done := f.api("alice", holdfast.VerbApprove, "prod"); done.Status != holdfast.CommandRefused || !strings.Contains(done.Reply, c.words) {
				t.Errorf("it is %s: %q", done.Status, done.Reply)
			}
			c.after(f)
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonNotApproved {
				t.Errorf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
		})
	}
}

// Who approves one of two merges that wait is told which plan that was, and that the other
// holds the cluster still, and for whom.
func TestTheAnswerToAnApprovalSaysWhatStillWaits(t *testing.T) {
	t.Parallel()
	f := gated(t)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	f.open(2, map[string]string{"infra/prod/other.tf": module("other")})
	f.executeAll(good)
	f.merge(2, byMerge)
	approve := func(number int) string {
		t.Helper()
		f.forge.says(number, "dave", "in the next second")
		ref := holdfast.PullRequestRef{Repo: onePR.Repo, Number: number}
		c := f.commands(holdfast.Command{Author: "alice", Verb: holdfast.VerbApprove, PullRequest: ref})
		if c.Status != holdfast.CommandDone {
			t.Fatalf("it is %s: %s", c.Status, c.Reply)
		}
		return c.Reply
	}
	plan := func(number int) string {
		runs, err := f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "prod", PullRequest: &holdfast.PullRequestRef{Repo: onePR.Repo, Number: number}})
		f.must(err)
		return runs[0].ID
	}
	want := "`prod`: approved `" + plan(1) + "`, the plan of #1; the cluster still waits: #2 lacks `approved`: nobody has approved it (for someone with write permission other than bob)"
	if got := approve(1); got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
	if got, want := approve(2), "`prod`: approved `"+plan(2)+"`, the plan of #2"; got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
	f.executeAll(good)
	f.waitsForNothing("prod")
}
