package reconciler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// decodingStore counts the records and posts that are decoded for a word of progress.
type decodingStore struct {
	workedStore
}

func (s decodingStore) Run(ctx context.Context, id string) (holdfast.Run, error) {
	s.add("runs", 1)
	return s.workedStore.Run(ctx, id)
}

func (s decodingStore) PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error) {
	s.add("pull requests", 1)
	return s.workedStore.PullRequest(ctx, ref)
}

func (s decodingStore) Post(ctx context.Context, key string) (outgoing.Post, error) {
	s.add("posts", 1)
	return s.workedStore.Post(ctx, key)
}

// TestProgressDecodesNothing: while a pull request is planned, and while its merge is applied,
// each run that begins or ends asks for it to be shown. Until the next word of progress is due
// that decodes no record and no post. A commit that is pushed meanwhile is shown at once, and
// so is the end.
func TestProgressDecodesNothing(t *testing.T) {
	t.Parallel()
	files, change := twoClusters(), map[string]string{}
	for i := range 4 {
		name := fmt.Sprintf("c-%d", i)
		files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
		change["infra/"+name+"/main.tf"] = module("two")
	}
	w := &work{}
	w.reset()
	f := newFleet(t, files, func(o *reconciler.Options) { o.Store = decodingStore{workedStore{o.Store, w}} })
	f.adopt()
	f.open(1, change)
	shows := func() (decoded int) {
		t.Helper()
		w.reset()
		f.must(f.r.Show(t.Context(), onePR))
		for _, n := range w.done() {
			decoded += n
		}
		return decoded
	}
	quietly := func(what string) {
		t.Helper()
		shows() // the first look notes what it has found
		if n := shows(); n > 0 {
			t.Errorf("%s: %d records and posts are decoded to be shown again: %v", what, n, w.done())
		}
	}
	quietly("queued")
	f.execute(good)
	quietly("planned in part")
	f.clock.Advance(progressDue)
	if shows() == 0 {
		t.Error("the next word of progress is due, and nothing is looked at")
	}
	f.push(1, map[string]string{"infra/c-0/main.tf": module("three")})
	f.post()
	pushed := f.forge.get(1)
	if got := f.forge.status(pushed.Head, holdfast.ContextPlan); got != holdfast.StatusPending {
		t.Errorf("%s of the commit that was pushed is %q", holdfast.ContextPlan, got)
	}
	f.executeAll(good)
	f.post()
	if got := f.forge.status(pushed.Head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
		t.Errorf("%s is %q in the end", holdfast.ContextPlan, got)
	}
	f.merge(1, byMerge)
	f.post()
	quietly("merged")
	f.executeAll(good)
	f.post()
	if got := f.forge.status(f.forge.get(1).MergeCommit, holdfast.ContextApply); got != holdfast.StatusSuccess {
		t.Errorf("%s is %q in the end", holdfast.ContextApply, got)
	}
}

// progressDue is after when a comment says again how far a pull request is.
const progressDue = 11 * time.Second
