package reconciler_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// annotating is a code host that shows faults at their lines once it is allowed to.
type annotating struct {
	*codeHost
	allowed bool
	heads   []holdfast.Revision // that have a check run
	faults  holdfast.Faults     // of the last one
}

func (h *annotating) PutCheck(_ context.Context, _ string, status holdfast.CommitStatus, faults holdfast.Faults) error {
	if !h.allowed {
		return &holdfast.RateLimitError{RetryAt: h.clock.Now().Add(time.Hour), Err: errors.New("no permission")}
	}
	h.heads, h.faults = append(h.heads, status.Revision), faults
	return nil
}

// Faults that could not be shown at their lines for the lack of a permission are shown there
// with it, on the commits that people look at, and on others as soon as they do so again.
func TestChecksOfAHeadThatComesBack(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		leave, back func(*fleet, holdfast.PullRequest)
	}{
		"force-pushed": {
			leave: func(f *fleet, _ holdfast.PullRequest) { f.force(1, map[string]string{"README.md": "bye"}) },
			back: func(f *fleet, before holdfast.PullRequest) {
				f.repo.SetPullRequest(1, string(before.Head), "")
				f.change(1, func(pr *holdfast.PullRequest) { pr.Head, pr.Branch = before.Head, before.Branch })
			},
		},
		"reopened": {
			leave: func(f *fleet, _ holdfast.PullRequest) { f.state(1, holdfast.PullRequestClosed) },
			back:  func(f *fleet, _ holdfast.PullRequest) { f.state(1, holdfast.PullRequestOpen) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var forge *annotating
			f := newFleet(t, twoClusters(), func(o *reconciler.Options) {
				forge = &annotating{codeHost: o.Sources.Forges[infra].(*codeHost)}
				o.Sources.Forges[infra] = forge
			})
			f.look()
			f.open(1, map[string]string{"clusters/lost.yaml": document("lost")})
			f.post()
			head := f.forge.get(1)
			way.leave(f, head)
			forge.allowed = true
			f.clock.Advance(2 * time.Hour)
			f.settle()
			f.post()
			if len(forge.heads) > 0 {
				t.Fatalf("there are check runs of %v, at which nobody looks", forge.heads)
			}
			way.back(f, head)
			f.post()
			if !slices.Equal(forge.heads, []holdfast.Revision{head.Head}) {
				t.Errorf("there are check runs of %v, want one of %v", forge.heads, head.Head)
			}
		})
	}
}

// The check run of a commit that is the head of two pull requests loses the errors of one
// which has it no longer, although nothing happens to the other one.
func TestCheckOfAHeadThatOneHasLeft(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*fleet){
		"closed":       func(f *fleet) { f.state(1, holdfast.PullRequestClosed) },
		"force-pushed": func(f *fleet) { f.force(1, map[string]string{"README.md": "bye"}) },
		"retargeted":   func(f *fleet) { f.change(1, func(pr *holdfast.PullRequest) { pr.BaseBranch = "release" }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forge := &annotating{allowed: true}
			f := newFleet(t, twoClusters(), func(o *reconciler.Options) {
				forge.codeHost = o.Sources.Forges[infra].(*codeHost)
				o.Sources.Forges[infra] = forge
			})
			f.look()
			f.open(1, map[string]string{"clusters/lost.yaml": document("lost")})
			rec := f.pullRequest(1)
			rec.Faults = append(rec.Faults, holdfast.Fault{File: "clusters/former.yaml", Line: 1, Message: "as its base was"})
			_, err := f.store.SavePullRequest(t.Context(), rec)
			f.must(err)
			pr := f.forge.get(1)
			pr.Number = 2
			f.repo.SetPullRequest(2, string(pr.Head), "")
			f.forge.set(pr)
			f.lookAt(2)
			f.post()
			if len(forge.faults) != 2 {
				t.Fatalf("the errors of both are %v", forge.faults)
			}
			leave(f)
			f.post()
			last := forge.heads[len(forge.heads)-1]
			if last != pr.Head || len(forge.faults) != 1 || forge.faults[0].File != "clusters/lost.yaml" {
				t.Errorf("the errors of the other one are %v, at %s", forge.faults, last.Short())
			}
		})
	}
}
