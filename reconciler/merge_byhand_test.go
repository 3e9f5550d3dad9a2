package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// byHand merges with files that a person has written while merging.
func byHand(files map[string]string) func(*gitserver.Repo, holdfast.PullRequest) string {
	return func(repo *gitserver.Repo, pr holdfast.PullRequest) string {
		base := repo.Rev(master)
		tree := repo.CommitOn("by-hand", master, "resolved", files) + "^{tree}"
		merge := repo.Git("commit-tree", tree, "-p", base, "-p", string(pr.Head), "-m", "merge")
		repo.SetRef("refs/heads/"+master, merge)
		return merge
	}
}

// A merge is told by what it has merged, and not by what was seen before it of the same
// head: a conflict that was resolved by hand has a change that no plan was made of, and so
// has a cluster that was changed while merging.
func TestWhatIsChangedWhileMergingWaits(t *testing.T) {
	t.Parallel()
	meanwhile := func(f *fleet) {
		f.repo.Commit(master, "meanwhile", map[string]string{"infra/prod/main.tf": module("three")})
		f.look()
		f.executeAll(good)
		f.api("root", holdfast.VerbApply, "prod")
		f.executeAll(good)
	}
	two, four := map[string]string{"infra/prod/main.tf": module("two")}, map[string]string{"infra/prod/main.tf": module("four")}
	both := map[string]string{"infra/prod/main.tf": module("four"), "infra/preprod/main.tf": module("four")}
	for name, tt := range map[string]struct {
		before func(*fleet) // opens pull request 1
		merged map[string]string
		want   map[string]holdfast.Reason // why clusters wait that are the pull request's
	}{
		"a conflict": {func(f *fleet) {
			f.openUnnoticed(1, two)
			meanwhile(f)
			f.lookAt(1)
		}, four, map[string]holdfast.Reason{"prod": holdfast.ReasonUnreviewed}},
		"a conflict, of what was planned": {func(f *fleet) {
			f.open(1, two)
			f.executeAll(good)
			meanwhile(f)
		}, both, map[string]holdfast.Reason{"prod": holdfast.ReasonPlanChanged, "preprod": holdfast.ReasonUnreviewed}},
		"a conflict, seen when it is merged": {func(f *fleet) {
			f.openUnnoticed(1, two)
			meanwhile(f)
		}, four, map[string]holdfast.Reason{"prod": holdfast.ReasonUnreviewed}},
		"another branch, and back": {func(f *fleet) {
			f.open(1, two)
			f.executeAll(good)
			f.change(1, func(pr *holdfast.PullRequest) { pr.BaseBranch = "other" })
			pr := f.forge.get(1)
			pr.BaseBranch = master
			f.forge.set(pr)
		}, four, map[string]holdfast.Reason{"prod": holdfast.ReasonPlanChanged}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			tt.before(f)
			f.merge(1, byHand(tt.merged))
			f.executeAll(planned)
			f.post()
			got := make(map[string]holdfast.Reason)
			for _, cluster := range f.affected(1) {
				got[cluster] = f.cluster(cluster).Waiting
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("what the merge changes waits for (-want +got):\n%s", diff)
			}
			if rec := f.pullRequest(1); rec.Reason != "" {
				t.Errorf("merged, its reason is %s (%s)", rec.Reason, rec.Detail)
			}
			merged := f.forge.get(1).MergeCommit
			if comment := f.forge.comment(1); !strings.Contains(comment, "/holdfast apply") || strings.Contains(comment, "is affected") {
				t.Errorf("its comment says:\n%s", comment)
			}
			if done := f.command(1, "alice", "/holdfast apply"); done.Status != holdfast.CommandDone {
				t.Fatalf("the apply is %s: %s", done.Status, done.Reply)
			}
			f.executeAll(good)
			f.ticks()
			if got := f.forge.status(merged, holdfast.ContextApply); got != holdfast.StatusSuccess {
				t.Errorf("applied, its status is %q: %q", got, f.forge.told(merged, holdfast.ContextApply))
			}
		})
	}
}

// A cluster that was changed while merging is the pull request's as well, beside what
// was reviewed.
func TestMoreThanReviewedIsMerged(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byHand(map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("four")}))
	f.executeAll(good)
	if got := f.affected(1); !slices.Equal(got, []string{"prod", "preprod"}) {
		t.Errorf("the merge changes %q", got)
	}
	if prod, preprod := f.cluster("prod"), f.cluster("preprod"); prod.Waiting != "" || preprod.Waiting != holdfast.ReasonUnreviewed {
		t.Errorf("what was reviewed waits for %q, and what was not for %q", prod.Waiting, preprod.Waiting)
	}
	if comment := f.forge.comment(1); !strings.Contains(comment, "preprod") {
		t.Errorf("its comment says:\n%s", comment)
	}
	if told := f.forge.told(f.forge.get(1).Head, holdfast.ContextPlan); !strings.HasPrefix(told[len(told)-1], "success") {
		t.Errorf("the status of the plan that was reviewed is %q", told)
	}
}

// A conflict cannot be planned, and whoever merges has resolved it: the status of the plan
// says that, whatever they have come to. Where a plan was shown before the conflict, and it
// is what they have come to, that one counts.
func TestPlanStatusOfAConflictThatWasResolvedWhileMerging(t *testing.T) {
	t.Parallel()
	two, four := map[string]string{"infra/prod/main.tf": module("two")}, map[string]string{"infra/prod/main.tf": module("four")}
	planned := func(f *fleet) {
		f.executeAll(good)
		f.post()
	}
	for name, tt := range map[string]struct {
		before, conflicting func(*fleet)
		merged              map[string]string
		want                string
	}{
		"never planned": {func(*fleet) {}, func(*fleet) {}, two, "failure the merge resolved a conflict; the merged result was not planned beforehand"},
		"planned":       {planned, func(*fleet) {}, two, "success 1 cluster: 1 to create"},
		"another head": {planned, func(f *fleet) {
			f.push(1, four)
			f.post()
		}, four, "failure the merge resolved a conflict; the merged result was not planned beforehand"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.openUnnoticed(1, two)
			if name != "never planned" {
				f.lookAt(1)
			}
			tt.before(f)
			f.repo.Commit(master, "meanwhile", map[string]string{"infra/prod/main.tf": module("three")})
			f.look()
			f.executeAll(good)
			f.lookAt(1)
			tt.conflicting(f)
			if got := f.pullRequest(1).Reason; got != holdfast.ReasonNotMergeable {
				t.Fatalf("before the merge its reason is %q", got)
			}
			f.merge(1, byHand(tt.merged))
			f.executeAll(good)
			f.post()
			if told := f.forge.told(f.forge.get(1).Head, holdfast.ContextPlan); told[len(told)-1] != tt.want {
				t.Errorf("the status of the plan was %q, want %q last", told, tt.want)
			}
		})
	}
}
