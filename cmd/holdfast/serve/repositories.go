package serve

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/webhook"
)

// How often GitHub is asked what it has of a repository: what has not changed costs
// nothing of the rate limit. Posts to one that is not found are given up after a
// quarter of an hour, so it is asked more often than that.
const (
	identifyEvery = 10 * time.Minute
	identifyRetry = time.Minute // of one that is not as it should be
)

// repositories watches what GitHub says of the repositories themselves: their ids,
// which tell the webhooks which one a delivery is of, their names, and whether they
// can be written to.
type repositories struct {
	watched  []config.Repository
	read     func(ctx context.Context, r config.Repository) (github.Repository, error)
	identify func(fullName string, id int64)
	retry    func(ctx context.Context, repo string) error // posts what was given up
	logger   *slog.Logger
	trouble  map[string]trouble // by repository: what was wrong at the last look
}

// trouble is why a repository cannot be written to; the zero value: it can.
type trouble int

const (
	notFound trouble = iota + 1
	archived
)

// identify watches the repositories on GitHub until ctx is done.
func (s *services) identify(ctx context.Context, hooks *webhook.Handler) {
	w := &repositories{
		read: func(ctx context.Context, r config.Repository) (github.Repository, error) {
			return s.githubs[r.Forge].Repository(ctx, r.Name)
		},
		identify: hooks.Identify,
		retry:    func(ctx context.Context, repo string) error { return s.reconciler.Reconcile(ctx, repo, "") },
		logger:   s.logger,
		trouble:  make(map[string]trouble),
	}
	for _, r := range s.cfg.Repositories {
		if s.githubs[r.Forge] != nil {
			w.watched = append(w.watched, r)
		}
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(w.look(ctx)):
		}
	}
}

// look asks for each repository and returns when to look again.
func (w *repositories) look(ctx context.Context) (wait time.Duration) {
	wait = identifyEvery
	for _, r := range w.watched {
		found, err := w.read(ctx, r)
		if ctx.Err() != nil {
			return wait
		}
		if err == nil {
			w.identify(r.FullName(), found.ID)
			if !strings.EqualFold(found.FullName, r.FullName()) {
				w.logger.WarnContext(ctx, "repository was renamed: change its name in holdfast.yaml", "repo", r.Name, "name", found.FullName)
			}
		}
		if w.judge(ctx, r.Name, found, err) {
			wait = identifyRetry
		}
	}
	return wait
}

// judge logs what is wrong with a repository, once, and asks to post what was given up
// meanwhile when that is over. It reports whether something is wrong.
func (w *repositories) judge(ctx context.Context, repo string, found github.Repository, err error) bool {
	before := w.trouble[repo]
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		w.trouble[repo] = notFound
	case err != nil: // which says nothing of the repository
		w.logger.WarnContext(ctx, "repository was not identified", "repo", repo, "err", err)
		return true
	case found.Archived:
		w.trouble[repo] = archived
	default:
		delete(w.trouble, repo)
	}
	now := w.trouble[repo]
	if now == before {
		return now != 0
	}
	switch now {
	case notFound:
		w.logger.WarnContext(ctx, "repository was not found: it was deleted, or the credential no longer reaches it", "repo", repo)
	case archived:
		w.logger.WarnContext(ctx, "repository is archived: comments and statuses wait until it no longer is", "repo", repo)
	default:
		w.logger.InfoContext(ctx, "repository can be written again: what was given up is posted", "repo", repo)
		if err := w.retry(ctx, repo); err != nil {
			w.logger.ErrorContext(ctx, "posts were not retried", "repo", repo, "err", err)
			w.trouble[repo] = before // and again at the next look
			return true
		}
	}
	return now != 0
}
