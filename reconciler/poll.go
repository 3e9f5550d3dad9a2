package reconciler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// commentOverlap is how far a look at comments reaches back before the last
// one: clocks differ and lists lag. Commands are stored once in any case.
const commentOverlap = 2 * time.Minute

// poll asks again for everything in a rhythm, spread so that replicas and
// repositories do not meet: a lost webhook costs minutes, never a change.
func (r *Reconciler) poll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, repo := range r.repos {
		g.Go(func() error { r.pollRepository(ctx, repo); return nil })
	}
	g.Go(func() error {
		r.resume(ctx)
		r.awaitReady(ctx, resumePatience)
		r.resumeClusters(ctx)
		return nil
	})
	return g.Wait()
}

// pollRepository polls until ctx is done. A poll that failed is tried again soon: it
// may be the first one of a process, which has to find what the former one was told.
func (r *Reconciler) pollRepository(ctx context.Context, repo Repository) {
	for failures := 0; ctx.Err() == nil; {
		wait := time.Duration(float64(repo.Poll) * (0.8 + 0.4*rand.Float64()))
		err := r.pollOnce(ctx, repo)
		switch {
		case err == nil:
			failures = 0
		case ctx.Err() == nil:
			if queue.Counts(err) {
				failures++
			}
			wait = queue.RetryIn(err, failures, wait)
			r.opts.Logger.WarnContext(ctx, "repository was not polled", "repo", repo.Name, "err", err, "retry_in", wait)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// resumePatience is how long the decisions about clusters that are on record
// wait for their repositories to be taken in. Made before that, they are made
// twice.
const resumePatience = 15 * time.Second

// awaitReady waits until every repository was taken in once, for so long.
func (r *Reconciler) awaitReady(ctx context.Context, patience time.Duration) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		took := r.took.Wait()
		if len(r.Ready()) == 0 {
			return
		}
		select {
		case <-took:
		case <-deadline.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// resumeClusters asks for every cluster that is on record, once: what a former
// process had in mind is gone.
func (r *Reconciler) resumeClusters(ctx context.Context) {
	for repo := range r.repos { // of others there is no Git to ask
		names, err := r.opts.Store.ClusterNames(ctx, holdfast.ClusterFilter{Owner: repo})
		if err != nil {
			r.opts.Logger.ErrorContext(ctx, "clusters were not listed", "repo", repo, "err", err)
		}
		for _, name := range names {
			r.agenda.RequestPatiently(holdfast.Request{Cluster: name})
		}
	}
}

// resume asks for every pull request that is on record, and for the commands.
func (r *Reconciler) resume(ctx context.Context) {
	for name := range r.repos {
		open, err := r.openPullRequests(ctx, name)
		if err != nil {
			r.opts.Logger.ErrorContext(ctx, "pull requests were not listed", "repo", name, "err", err)
		}
		for _, pr := range open {
			r.agenda.Look(agenda.Look{Repo: name, Number: pr.Number})
		}
	}
	r.commandsWaiting(ctx)
}

// pollOnce looks at one repository, if this replica holds its lease.
func (r *Reconciler) pollOnce(ctx context.Context, repo Repository) error {
	now := r.opts.Now()
	ours, err := r.opts.Store.Lease(ctx, "poll:"+repo.Name, r.opts.Identity, now, 2*repo.Poll+time.Minute)
	if err != nil || !ours {
		return err
	}
	r.agenda.Look(agenda.Look{Repo: repo.Name})
	source, err := r.opts.Store.Source(ctx, repo.Name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read source: %w", err)
	}
	prs, err := r.opts.Forges[repo.Name].PullRequests(ctx, repo.Name, overlap(source.PolledAt))
	if err != nil {
		return fmt.Errorf("list pull requests: %w", err)
	}
	for _, pr := range prs {
		if r.differs(ctx, repo, pr) {
			r.agenda.Look(agenda.Look{Repo: repo.Name, Number: pr.Number})
		}
	}
	seen, err := r.pollComments(ctx, repo, source.CommentsSeen)
	if err != nil {
		return err
	}
	return r.updateSource(ctx, repo.Name, func(s *holdfast.Source) { s.PolledAt, s.CommentsSeen = now, seen })
}

// updateSource changes some of what is remembered of a repository: polling and
// taking in write side by side.
func (r *Reconciler) updateSource(ctx context.Context, repo string, change func(*holdfast.Source)) error {
	r.noting.Lock()
	defer r.noting.Unlock()
	source, err := r.opts.Store.Source(ctx, repo)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read source %q: %w", repo, err)
	}
	source.Repo = repo
	change(&source)
	if err := r.opts.Store.SaveSource(ctx, source); err != nil {
		return fmt.Errorf("record source %q: %w", repo, err)
	}
	return nil
}

func overlap(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-commentOverlap)
}

// differs reports whether the forge says something of a pull request that the
// record does not.
func (r *Reconciler) differs(ctx context.Context, repo Repository, pr holdfast.PullRequest) bool {
	rec, err := r.opts.Store.PullRequest(ctx, pr.PullRequestRef)
	if errors.Is(err, holdfast.ErrNotFound) {
		return pr.State == holdfast.PullRequestOpen && pr.BaseBranch == repo.Branch
	}
	return err != nil || rec.Head != pr.Head || rec.State != pr.State || rec.Draft != pr.Draft ||
		rec.BaseBranch != pr.BaseBranch || rec.Title != pr.Title ||
		pr.UpdatedAt.After(rec.UpdatedAt) // reviews are not in the list
}

// pollComments stores the commands in the comments since seen and returns how
// far it has read. A list that is cut is read on from where it ends; how far that
// went is on record before the next part is asked for.
func (r *Reconciler) pollComments(ctx context.Context, repo Repository, seen time.Time) (time.Time, error) {
	first := seen.IsZero()
	if first {
		// What was written before Holdfast first looked is not a command to it.
		seen = r.opts.Now()
	}
	start := seen
	for since := overlap(seen); ; since = seen {
		list, err := r.opts.Forges[repo.Name].Comments(ctx, repo.Name, since)
		if err != nil {
			return seen, fmt.Errorf("list comments: %w", err)
		}
		comments := list.Comments
		if first {
			comments = slices.DeleteFunc(comments, func(c holdfast.Comment) bool { return c.CreatedAt.Before(overlap(start)) })
		}
		if err := r.storeCommands(ctx, comments); err != nil {
			return seen, err
		}
		if list.Until.After(seen) {
			seen = list.Until
		}
		if !list.More || !seen.After(since) {
			return seen, nil
		}
		if err := r.updateSource(ctx, repo.Name, func(s *holdfast.Source) { s.CommentsSeen = seen }); err != nil {
			return seen, err
		}
	}
}

// storeCommands stores the commands in comments of people.
func (r *Reconciler) storeCommands(ctx context.Context, comments []holdfast.Comment) error {
	stored := false
	for _, comment := range comments {
		if comment.Bot {
			continue
		}
		for _, command := range r.opts.Commands(comment) {
			isNew, err := r.opts.Store.StoreCommand(ctx, command)
			if err != nil {
				return fmt.Errorf("store command of comment %s: %w", comment.ID, err)
			}
			stored = stored || isNew
		}
	}
	if stored {
		r.CommandStored()
	}
	return nil
}
