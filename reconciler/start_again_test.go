package reconciler_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// fetchedGit counts the pull requests that are fetched.
type fetchedGit struct {
	reconciler.Git
	fetched *int
}

func (g fetchedGit) FetchPullRequest(ctx context.Context, repo string, number int) (holdfast.PullRequestRefs, error) {
	*g.fetched++
	return g.Git.FetchPullRequest(ctx, repo, number)
}

// manyOpen is a fleet with so many open pull requests, of one cluster each, whose plans are
// shown.
func manyOpen(t *testing.T, n int, with ...func(*reconciler.Options)) *fleet {
	t.Helper()
	files := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("c%d", i+1)
		files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
	}
	f := newFleet(t, files, append(with, withoutTemplates)...)
	f.adopt()
	for i := range n {
		f.open(i+1, map[string]string{fmt.Sprintf("infra/c%d/main.tf", i+1): module("two")})
	}
	f.executeAll(planned)
	return f
}

// startAgain is what a process does when it starts.
func (f *fleet) startAgain() {
	f.t.Helper()
	f.restart()
	f.r.Resume(f.t.Context())
	f.look()
}

// TestAStartAsksForNoUnchangedPullRequest: however many pull requests are open, a start asks
// the code host for their list, and for none of them that is as it was. It writes nothing.
func TestAStartAsksForNoUnchangedPullRequest(t *testing.T) {
	t.Parallel()
	start := func(n int) (calls map[string]int, fetched int) {
		f := manyOpen(t, n, func(o *reconciler.Options) { o.Sources.Git = fetchedGit{o.Sources.Git, &fetched} })
		before, runs := f.pullRequest(1).Version, len(f.runs("c1"))
		f.forge.mu.Lock()
		clear(f.forge.calls)
		f.forge.mu.Unlock()
		fetched = 0
		f.startAgain()
		if after := f.pullRequest(1).Version; after != before || len(f.runs("c1")) != runs {
			t.Errorf("the record is written %d times for nothing; runs: %v", after-before, f.runs("c1"))
		}
		f.forge.mu.Lock()
		defer f.forge.mu.Unlock()
		return maps.Clone(f.forge.calls), fetched
	}
	few, fetchedFew := start(2)
	many, fetchedMany := start(9)
	if diff := cmp.Diff(few, many); diff != "" || few["PullRequests"] != 1 {
		t.Errorf("calls with 2 open pull requests and with 9 (-2 +9):\n%s", diff)
	}
	if fetchedFew+fetchedMany > 0 {
		t.Errorf("%d of 2 are fetched, %d of 9", fetchedFew, fetchedMany)
	}
}

// TestAStartSeesWhatChangedMeanwhile: what has become of pull requests while no server ran is
// found with the start, also if the code host does not answer at first.
func TestAStartSeesWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		f := manyOpen(t, 3)
		pushed, closed := f.forge.get(1), f.forge.get(2)
		pushed.Head = holdfast.Revision(f.repo.Commit(pushed.Branch, "more", map[string]string{"infra/c1/main.tf": module("three")}))
		f.repo.SetPullRequest(1, string(pushed.Head), "")
		closed.State = holdfast.PullRequestClosed
		f.forge.set(pushed)
		f.forge.set(closed)
		if away {
			f.forge.failWith("PullRequests", holdfast.ErrUnavailable)
		}
		f.startAgain()
		if head, state := f.pullRequest(1).Head, f.pullRequest(2).State; head != pushed.Head || state != holdfast.PullRequestClosed {
			t.Errorf("away %v: the head on record is %s, want %s; the other one is %s", away, head.Short(), pushed.Head.Short(), state)
		}
		if run := f.newest("c1"); run.Revision != pushed.Head || run.Status != holdfast.RunQueued {
			t.Errorf("away %v: the newest run is of %s, and %s", away, run.Revision.Short(), run.Status)
		}
	}
}

// TestAStartFinishesWhatWasRecorded: a process that ended after it had recorded a pull request,
// and before it had decided about it, leaves that to the next one.
func TestAStartFinishesWhatWasRecorded(t *testing.T) {
	t.Parallel()
	f := manyOpen(t, 2)
	f.openUnnoticed(3, map[string]string{
		"clusters/new.yaml": document("new"), "infra/new/main.tf": module("one"),
	})
	f.must(f.r.TakeIn(t.Context(), infra, 3)) // and nothing of what follows
	f.repo.Commit(master, "elsewhere", map[string]string{"README.md": "more"})
	f.startAgain()
	if runs := f.runs("new"); len(runs) != 1 || !strings.HasPrefix(runs[0], "plan queued") {
		t.Errorf("the runs of the cluster that it brings are %q", runs)
	}
}

// TestAStartDecidesOnce: the clusters of a repository are asked for when it is taken in for the
// first time, and not once more when all of them are.
func TestAStartDecidesOnce(t *testing.T) {
	t.Parallel()
	w := &work{}
	w.reset()
	f := manyOpen(t, 4, func(o *reconciler.Options) { o.Store = workedStore{o.Store, w} })
	f.restart()
	f.look()
	w.reset()
	f.r.ResumeUnread(t.Context())
	f.settle()
	if done := w.done(); len(done) > 0 {
		t.Errorf("after all repositories were taken in there is work: %v", done)
	}
	f.restart() // nothing is taken in yet
	f.r.ResumeUnread(t.Context())
	f.settle()
	if done := w.done(); done["clusters"] == 0 {
		t.Error("without its repository no cluster is decided about")
	}
}
