package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/report"
)

// documents are what heads of tracked branches say of their own documents, whoever pushed
// them: there may be no pull request to say it.
type documents struct {
	*outbox
	opts Options

	mu    sync.Mutex
	heads map[string]documentsOf // by repository
}

// documentsOf are the documents of a head.
type documentsOf struct {
	head     holdfast.Revision
	taken    bool            // clusters are known
	clusters holdfast.Faults // of clusters, and of files
	runners  holdfast.Faults // of runners and their rules
	faulty   bool            // the last head that was shown had faults
}

// RunnersTaken says what is wrong with the documents of runners and rules of a tracked branch:
// at its head, which is taken in just now or was before.
func (d *documents) RunnersTaken(ctx context.Context, repo string, head holdfast.Revision, faults holdfast.Faults) error {
	of := d.change(repo, func(of *documentsOf) {
		if of.head != head {
			of.head, of.taken = head, false
		}
		of.runners = faults
	})
	if !of.taken {
		return nil // what it says of clusters comes next
	}
	return d.show(ctx, repo, "", of)
}

// HeadTaken says what is wrong with the documents of clusters of a tracked branch, at its head
// that was taken in after former.
func (d *documents) HeadTaken(ctx context.Context, repo string, former, head holdfast.Revision, faults holdfast.Faults) error {
	return d.show(ctx, repo, former, d.change(repo, func(of *documentsOf) {
		if of.head != head {
			of.head, of.runners = head, nil
		}
		of.taken, of.clusters = true, faults
	}))
}

// change changes what is known of a repository, and returns it.
func (d *documents) change(repo string, change func(*documentsOf)) documentsOf {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.heads[repo]
	change(&of)
	d.heads[repo] = of
	return of
}

// show sets the status of a head with faults, and takes it back where they are mended: at the
// same head, or by the one after it. That is its plan status; a head that is one of a pull
// request, too, as after a fast-forward, has that say what the pull request does, and the
// branch has its own status.
func (d *documents) show(ctx context.Context, repo string, former holdfast.Revision, of documentsOf) error {
	all := slices.Concat(of.clusters, of.runners)
	slices.SortStableFunc(all, func(a, b holdfast.Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	faults := report.DistinctFaults(all)
	before, err := d.statusOf(ctx, repo, of.head)
	if err != nil {
		return err
	}
	if len(faults) == 0 && before.Status.State != holdfast.StatusFailure {
		last, err := d.statusOf(ctx, repo, former)
		if err != nil || !of.faulty && last.Status.State != holdfast.StatusFailure {
			return err
		}
	}
	d.change(repo, func(of *documentsOf) { of.faulty = len(faults) > 0 })
	status := report.DocumentsStatus(of.head, faults)
	status.Context = before.Status.Context
	return d.wantStatus(ctx, outgoing.Post{Repo: repo, Status: status}, true)
}

// statusOf is the status that a commit got for its documents as the head of the tracked
// branch, at least its context.
func (d *documents) statusOf(ctx context.Context, repo string, commit holdfast.Revision) (outgoing.Post, error) {
	plan, err := d.status(ctx, repo, commit, holdfast.ContextPlan)
	if err != nil || plan.PullRequest.IsZero() {
		return plan, err
	}
	return d.status(ctx, repo, commit, holdfast.ContextFaults)
}

// status is a status of a commit; nothing but its context if it has none.
func (d *documents) status(ctx context.Context, repo string, commit holdfast.Revision, name string) (outgoing.Post, error) {
	none := outgoing.Post{Status: holdfast.CommitStatus{Context: name}}
	if commit == "" {
		return none, nil
	}
	post, err := d.opts.Store.Post(ctx, statusKey(repo, commit, name))
	if errors.Is(err, holdfast.ErrNotFound) {
		return none, nil
	} else if err != nil {
		return post, fmt.Errorf("read status of %s: %w", commit.Short(), err)
	}
	return post, nil
}
