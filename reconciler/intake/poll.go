package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// poller asks again for what deliveries may not have reported.
type poller struct {
	shared
	gained   *queue.Broadcast // this replica leads one more
	comments *queue.Turns
}

// commentOverlap is how far a look at comments reaches back before the last
// one: clocks differ and lists lag. Commands are stored once in any case.
const commentOverlap = 2 * time.Minute

// run asks again for everything that this replica leads in a rhythm, spread so that
// repositories do not meet: a lost webhook costs minutes, never a change.
func (p *poller) run(ctx context.Context) error {
	var g errgroup.Group
	for _, repo := range p.repos {
		g.Go(func() error {
			for p.awaitLead(ctx, repo.Name) {
				p.lead(ctx, repo)
			}
			return nil
		})
	}
	return g.Wait()
}

// leadLook is how often it is looked at whether this replica still leads a repository, and
// whether it does without having been notified.
const leadLook = time.Second

// awaitLead waits until this replica leads a repository; false if ctx is done before.
func (p *poller) awaitLead(ctx context.Context, repo string) bool {
	for {
		gained := p.gained.Wait()
		if p.opts.Leading.Leads(repo) && ctx.Err() == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-gained:
		case <-time.After(leadLook):
		}
	}
}

// lead asks for everything of a repository, and polls it, as long as this replica leads it.
func (p *poller) lead(ctx context.Context, repo Repository) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var g errgroup.Group
	g.Go(func() error { p.pollRepository(ctx, repo); return nil })
	g.Go(func() error { p.resumePullRequests(ctx, repo); return nil })
	g.Go(func() error {
		p.awaitReady(ctx, repo.Name, resumePatience)
		if ctx.Err() == nil {
			p.resumeUnread(ctx, repo.Name)
		}
		return nil
	})
	for term := p.marks.term(repo.Name); ctx.Err() == nil && p.opts.Leading.Leads(repo.Name) && p.marks.term(repo.Name) == term; {
		select {
		case <-ctx.Done():
		case <-time.After(leadLook):
		}
	}
	end()
	_ = g.Wait()
}

// pollRepository polls until ctx is done. A poll that failed is tried again soon: it
// may be the first one of a process, which has to find what the former one had learned.
func (p *poller) pollRepository(ctx context.Context, repo Repository) {
	var trouble queue.Trouble
	for failures := 0; ctx.Err() == nil; {
		wait := time.Duration(float64(repo.Poll) * (0.8 + 0.4*rand.Float64()))
		err := p.pollOnce(ctx, repo)
		switch {
		case err == nil:
			failures = 0
			if since, said := trouble.Over(); said {
				p.opts.Logger.InfoContext(ctx, "repository is polled again", "repo", repo.Name, "since", since.UTC())
			}
		case ctx.Err() == nil:
			if queue.Counts(err) {
				failures++
			}
			wait = queue.RetryIn(err, failures, wait)
			level := slog.LevelDebug
			if trouble.Says(err, p.opts.Now()) {
				level = slog.LevelWarn
			}
			p.opts.Logger.Log(ctx, level, "repository was not polled", "repo", repo.Name, "err", err, "retry_in", wait)
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

// resumeUnread asks for what is on record of a repository that was not taken in: otherwise
// that was asked for with the head.
func (p *poller) resumeUnread(ctx context.Context, repo string) {
	if p.marks.isResumed(repo) {
		return
	}
	p.resumeClusters(ctx, repo)
	for _, pr := range p.recorded(ctx, repo) {
		for _, c := range pr.Clusters {
			p.Agenda.RequestPatiently(holdfast.Request{Cluster: c.Name, PullRequest: pr.PullRequestRef})
		}
		p.Publisher.Show(pr.PullRequestRef)
	}
}

// resumeClusters asks for every cluster of a repository that is on record: what a former
// process was about to do is lost.
func (p *poller) resumeClusters(ctx context.Context, repo string) {
	names, err := p.opts.Store.ClusterNames(ctx, holdfast.ClusterFilter{Owner: repo})
	if err != nil {
		p.opts.Logger.ErrorContext(ctx, "clusters were not listed", "repo", repo, "err", err)
	}
	for _, name := range names {
		p.Agenda.RequestPatiently(holdfast.Request{Cluster: name})
	}
}

// recorded are the open pull requests of a repository that are on record, as far as these
// can be read.
func (p *poller) recorded(ctx context.Context, repo string) []holdfast.PullRequestRecord {
	open, err := p.openPullRequests(ctx, repo)
	if err != nil {
		p.opts.Logger.ErrorContext(ctx, "pull requests were not listed", "repo", repo, "err", err)
	}
	return open
}

// resumePullRequests asks for the open pull requests of a repository on record of which the
// code host says something else: what it reported to a former process may be lost. Unchanged
// ones are not requested one by one: the tracked branch asks for a look at them when it is
// read.
func (p *poller) resumePullRequests(ctx context.Context, repo Repository) {
	open := p.recorded(ctx, repo.Name)
	if len(open) == 0 {
		return
	}
	prs, err := p.opts.Sources.Forges[repo.Name].PullRequests(ctx, repo.Name, time.Time{})
	if err != nil { // each of them is asked for until it answers
		p.opts.Logger.DebugContext(ctx, "pull requests were not compared", "repo", repo.Name, "err", err)
	}
	listed := make(map[int]holdfast.PullRequest, len(prs))
	for _, pr := range prs {
		listed[pr.Number] = pr
	}
	for _, rec := range open {
		if pr, ok := listed[rec.Number]; err != nil || !ok || differs(rec, pr) {
			p.Agenda.Look(agenda.Look{Repo: repo.Name, Number: rec.Number})
		}
	}
}

// pollOnce looks at one repository, if this replica leads it.
func (p *poller) pollOnce(ctx context.Context, repo Repository) error {
	if !p.opts.Leading.Leads(repo.Name) {
		return nil
	}
	now := p.opts.Now()
	p.Agenda.Look(agenda.Look{Repo: repo.Name})
	source, err := p.opts.Store.RepositoryState(ctx, repo.Name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read source: %w", err)
	}
	prs, err := p.opts.Sources.Forges[repo.Name].PullRequests(ctx, repo.Name, overlap(source.PolledAt))
	if err != nil {
		return fmt.Errorf("list pull requests: %w", err)
	}
	for _, pr := range prs {
		if p.isNews(ctx, repo, pr) {
			p.Agenda.Look(agenda.Look{Repo: repo.Name, Number: pr.Number})
		}
	}
	seen, err := p.pollComments(ctx, repo, source.CommentsSeen)
	if err != nil {
		return err
	}
	if err := p.lookForComments(ctx, repo); err != nil { // they are looked for when it is their turn again
		p.opts.Logger.DebugContext(ctx, "comments were not looked for", "repo", repo.Name, "err", err)
	}
	return p.saveRepositoryState(ctx, repo.Name, func(s *holdfast.RepositoryState) { s.PolledAt, s.CommentsSeen = now, seen })
}

func overlap(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-commentOverlap)
}

// isNews reports whether the forge says something of a pull request that the record does
// not.
func (p *poller) isNews(ctx context.Context, repo Repository, pr holdfast.PullRequest) bool {
	rec, err := p.opts.Store.PullRequest(ctx, pr.PullRequestRef)
	if errors.Is(err, holdfast.ErrNotFound) {
		return pr.State == holdfast.PullRequestOpen && pr.BaseBranch == repo.Branch
	}
	return err != nil || differs(rec, pr)
}

// differs compares a record with what a list of the forge says.
func differs(rec holdfast.PullRequestRecord, pr holdfast.PullRequest) bool {
	return rec.Head != pr.Head || rec.State != pr.State || rec.Draft != pr.Draft ||
		rec.BaseBranch != pr.BaseBranch || rec.Title != pr.Title ||
		pr.UpdatedAt.After(rec.UpdatedAt) // reviews are not in the list
}

// pollComments stores the commands in the comments since seen and returns how
// far it has read. A list that is cut is read on from where it ends; how far that
// went is on record before the next part is asked for.
func (p *poller) pollComments(ctx context.Context, repo Repository, seen time.Time) (time.Time, error) {
	first := seen.IsZero()
	if first {
		// What was written before Holdfast first looked is not a command to it.
		seen = p.opts.Now()
	}
	start := seen
	for since := overlap(seen); ; since = seen {
		list, err := p.opts.Sources.Forges[repo.Name].Comments(ctx, repo.Name, since)
		if err != nil {
			return seen, fmt.Errorf("list comments: %w", err)
		}
		comments := list.Comments
		if first {
			comments = slices.DeleteFunc(comments, func(c holdfast.Comment) bool { return c.CreatedAt.Before(overlap(start)) })
		}
		if err := p.storeCommands(ctx, comments); err != nil {
			return seen, err
		}
		if list.Until.After(seen) {
			seen = list.Until
		}
		if !list.More || !seen.After(since) {
			return seen, nil
		}
		if err := p.saveRepositoryState(ctx, repo.Name, func(s *holdfast.RepositoryState) { s.CommentsSeen = seen }); err != nil {
			return seen, err
		}
	}
}

// storeCommands stores the commands in comments of people.
func (p *poller) storeCommands(ctx context.Context, comments []holdfast.Comment) error {
	stored := false
	for _, comment := range comments {
		if comment.Bot {
			continue
		}
		for _, command := range p.Commands.Parse(comment) {
			isNew, err := p.opts.Store.StoreCommand(ctx, command)
			if err != nil {
				return fmt.Errorf("store command of comment %s: %w", comment.ID, err)
			}
			stored = stored || isNew
		}
	}
	if stored {
		p.Commands.CommandStored()
	}
	return nil
}

// awaitReady waits until a repository was taken in, for so long.
func (p *poller) awaitReady(ctx context.Context, repo string, patience time.Duration) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		progress := p.marks.progress.Wait()
		if p.marks.isReady(repo) {
			return
		}
		select {
		case <-progress:
		case <-deadline.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
