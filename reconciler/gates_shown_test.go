package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// gated is a fleet whose cluster prod requires approvals.
func gated(t *testing.T) *fleet {
	t.Helper()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", "apply: {requires: [approved]}")
	f := newFleet(t, files)
	f.adopt()
	return f
}

// obeys has somebody comment, and fails if that is not done.
func (f *fleet) obeys(number int, author, body string) {
	f.t.Helper()
	if done := f.command(number, author, body); done.Status != holdfast.CommandDone {
		f.t.Fatalf("%s in #%d is %s: %s", body, number, done.Status, done.Reply)
	}
}

// refuses has somebody comment, and fails if that is not refused for want of an approval.
func (f *fleet) refuses(number int, author, body, why string) {
	f.t.Helper()
	done := f.command(number, author, body)
	if done.Status != holdfast.CommandRefused || !strings.Contains(done.Reply, why) {
		f.t.Fatalf("%s in #%d is %s (%s): %s; want it refused: %s", body, number, done.Status, done.Reason, done.Reply, why)
	}
}

// TestGatesForOthersAreThoseOfTheComment: who asks for what an apply requires is told what
// the comment shows, as soon as it holds.
func TestGatesForOthersAreThoseOfTheComment(t *testing.T) {
	t.Parallel()
	f := gated(t)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("two")})
	f.executeAll(good)
	asked := func() map[string][]holdfast.Gate {
		record, err := f.store.PullRequest(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: 1})
		if err != nil {
			t.Fatal(err)
		}
		gates, err := f.r.PullRequestGates(t.Context(), record)
		if err != nil {
			t.Fatal(err)
		}
		return gates
	}
	before := asked()
	if g := before["prod"]; len(before) != 2 || len(before["preprod"]) != 0 || len(g) != 1 || g[0].Met || !strings.Contains(f.comment(1), g[0].Missing) {
		t.Errorf("%+v, and the comment says\n%s", before, f.comment(1))
	}
	f.obeys(1, "alice", "/holdfast approve")
	if g := asked()["prod"]; len(g) != 1 || !g[0].Met {
		t.Errorf("approved: %+v", g)
	}
	f.merge(1, byMerge)
	if g := asked(); len(g) != 0 {
		t.Errorf("merged: %+v", g)
	}
}

// An approval is of the plan that was shown. One that an apply finds instead is applied
// when somebody has approved that, and not because somebody asks for it.
func TestAnApprovalIsNotOfAnotherPlan(t *testing.T) {
	t.Parallel()
	for name, approves := range map[string]func(*fleet){
		"in the pull request": func(f *fleet) {
			f.obeys(1, "alice", "/holdfast approve")
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonPlanChanged || strings.Contains(rec.WaitingDetail, "approve") {
				f.t.Errorf("approved, it waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
			}
			f.obeys(1, "alice", "/holdfast apply")
		},
		"by name": func(f *fleet) {
			if c := f.api("root", holdfast.VerbApprove, "prod"); c.Status != holdfast.CommandDone {
				f.t.Fatalf("the approval is %s: %s", c.Status, c.Reply)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gated(t)
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.merge(1, byMerge)
			f.obeys(1, "alice", "/holdfast approve")
			f.finding = "changed meanwhile"
			f.executeAll(differs)
			const why = "alice approved before this plan was shown"
			rec := f.cluster("prod")
			if rec.Waiting != holdfast.ReasonPlanChanged || !strings.Contains(rec.WaitingDetail, why) {
				t.Fatalf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
			if comment := f.forge.comment(1); !strings.Contains(comment, why) {
				t.Errorf("its comment does not say so:\n%s", comment)
			}
			told := f.forge.told(f.forge.get(1).MergeCommit, holdfast.ContextApply)
			if last := told[len(told)-1]; !strings.Contains(last, "approval missing") {
				t.Errorf("its status is %q", last)
			}
			f.refuses(1, "alice", "/holdfast apply", why)
			if c := f.api("root", holdfast.VerbApply, "prod"); c.Reason != holdfast.ReasonNotApproved {
				t.Fatalf("the apply is %s: %s", c.Status, c.Reply)
			}
			approves(f)
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
				t.Errorf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
		})
	}
}

// Of several merges each needs its own approval: that of one is not that of another which
// would be applied with it.
func TestAnApprovalIsOfOneMerge(t *testing.T) {
	t.Parallel()
	f := gated(t)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.open(2, map[string]string{"infra/prod/more.tf": "# more\n"})
	f.executeAll(good)
	f.obeys(2, "alice", "/holdfast approve")
	f.mergeUnnoticed(1, byMerge)
	f.merge(2, byMerge)
	f.executeAll(differs)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonNotApproved || !strings.Contains(rec.WaitingDetail, "#1: nobody has approved it") {
		t.Fatalf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
	}
	f.refuses(2, "alice", "/holdfast apply", "#1: nobody has approved it")
	f.obeys(1, "alice", "/holdfast approve")
	f.executeAll(differs) // neither was planned with the other
	rec := f.cluster("prod")
	if rec.Waiting != holdfast.ReasonPlanChanged || !strings.Contains(rec.WaitingDetail, "#1: ") || !strings.Contains(rec.WaitingDetail, "#2: ") {
		t.Fatalf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
	}
	f.obeys(2, "alice", "/holdfast approve")
	f.refuses(2, "alice", "/holdfast apply", "#1: alice approved before this plan was shown")
	f.obeys(1, "alice", "/holdfast approve")
	f.obeys(2, "alice", "/holdfast apply")
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
		t.Errorf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
	}
}

// A head that is planned again when it is merged was reviewed by the plan before, and is
// approved by that.
func TestAnApprovalOfAHeadThatWasPlannedAgain(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"queued": false, "begun": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gated(t)
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.obeys(1, "alice", "/holdfast plan")
			if begun {
				f.claim()
			}
			f.merge(1, byMerge)
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonNotApproved {
				t.Fatalf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
			f.post()
			if body := f.forge.comment(1); !strings.Contains(body, "**NotApproved**") || strings.Contains(body, "no longer valid") {
				t.Errorf("its comment does not show the plan to approve:\n%s", body)
			}
			f.clock.Advance(2 * time.Second) // the stamps of a forge have seconds
			f.obeys(1, "alice", "/holdfast approve")
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
				t.Errorf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
		})
	}
}

// A pull request that changes settings of a cluster alone has nothing planned, and a
// comment and a green status that say what it changes.
func TestAPullRequestThatChangesSettings(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(2, map[string]string{"clusters/prod.yaml": document("prod", "apply: {requires: [approved], onMerge: false}")})
	if run := f.claim(); run.Run != "" {
		t.Fatalf("%s of %s is planned", run.Kind, run.Cluster)
	}
	const requires = "prod changes apply.requires: none → approved"
	f.post()
	if comment := f.forge.comment(2); !strings.Contains(comment, "settings only") || !strings.Contains(comment, requires) || !strings.Contains(comment, "prod changes apply.onMerge: true → false") {
		t.Errorf("the comment is:\n%s", comment)
	}
	if status := f.planStatus(2); !strings.Contains(status, "success") || !strings.Contains(status, "prod changes apply.onMerge") {
		t.Errorf("the status is %q", status)
	}
	f.push(2, map[string]string{"clusters/prod.yaml": document("prod")})
	f.post()
	if comment := f.forge.comment(2); strings.Contains(comment, "prod changes") {
		t.Errorf("taken back, the comment is:\n%s", comment)
	}
	f.push(2, map[string]string{"clusters/prod.yaml": document("prod", "apply: {requires: [approved]}"), "infra/prod/main.tf": module("two")})
	f.executeAll(good)
	if comment := f.forge.comment(2); !strings.Contains(comment, requires) || !strings.Contains(comment, "Plan for") {
		t.Errorf("with a change, the comment is:\n%s", comment)
	}
}

// Our comment says what it said when we look. Whoever has approved meanwhile has read
// what somebody had made of it.
func TestAnEditThatWasTakenBack(t *testing.T) {
	t.Parallel()
	review := func(f *fleet) {
		pr := f.forge.get(1)
		pr.Verdicts = []holdfast.Verdict{{By: "alice", Approves: true, Head: pr.Head, At: f.clock.Now()}}
		pr.Approved = true
		f.forge.set(pr)
	}
	merge := func(f *fleet) { f.mergeUnnoticed(1, byMerge) }
	for name, test := range map[string]struct {
		unedited         bool
		meanwhile, later []func(*fleet)
	}{
		"not edited":      {unedited: true, meanwhile: []func(*fleet){review, merge}},
		"before a look":   {meanwhile: []func(*fleet){review}, later: []func(*fleet){func(f *fleet) { f.lookAt(1); f.post() }, merge}},
		"before a merge":  {meanwhile: []func(*fleet){review}, later: []func(*fleet){merge}},
		"after the merge": {meanwhile: []func(*fleet){review, merge}},
		"a command": {
			meanwhile: []func(*fleet){func(f *fleet) {
				_, err := f.store.StoreCommand(f.t.Context(), commandsOf(f.forge.says(1, "alice", "/holdfast approve"))[0])
				f.must(err)
			}},
			later: []func(*fleet){func(f *fleet) { f.r.Obey(f.t.Context()) }, merge},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gated(t)
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			do := func(steps []func(*fleet)) {
				for _, step := range steps {
					f.clock.Advance(5 * time.Second)
					step(f)
				}
				f.clock.Advance(5 * time.Second)
			}
			f.clock.Advance(5 * time.Second)
			shown := f.forge.comment(1)
			if !test.unedited {
				f.edits("nothing to see")
			}
			do(test.meanwhile)
			if !test.unedited {
				f.edits(shown)
			}
			do(test.later)
			f.look()
			f.executeAll(good)
			rec := f.cluster("prod")
			if applied := rec.Waiting == "" && rec.Applied.SourceDigest == rec.Desired.SourceDigest; applied != test.unedited {
				t.Errorf("applied: %t, it waits for %q (%s): %v", applied, rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
		})
	}
}
