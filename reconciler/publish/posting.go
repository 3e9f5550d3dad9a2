// Which posts are made at once.

package publish

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

const (
	postLease   = time.Minute // a poster that died is succeeded after that
	postsAtOnce = 8           // of a repository
	postIdle    = time.Second // looks for what others left, without being woken
)

// posting are the repositories that posts are being made to. Each has its turn: one
// whose host hangs keeps no post to another one waiting.
type posting struct {
	mu    sync.Mutex
	repos map[string]bool
}

func newPosting() *posting { return &posting{repos: make(map[string]bool)} }

func (p *posting) begin(repo string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.repos[repo] = true
}

func (p *posting) end(repo string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.repos, repo)
}

func (p *posting) now() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.repos))
}

// postAll brings the outbox to the forges until ctx is done.
func (o *outbox) postAll(ctx context.Context) error {
	var batches errgroup.Group
	posting := newPosting()
	var unread queue.Trouble
	for {
		woken, busy := o.posts.Wait(), posting.now()
		byRepo, err := o.claim(ctx, busy...)
		if err == nil {
			unread.Over()
		} else if ctx.Err() == nil && unread.Says(err, o.opts.Settings.Now()) {
			o.opts.Logger.ErrorContext(ctx, "outbox was not read", "err", err)
		}
		for repo, posts := range byRepo {
			posting.begin(repo)
			batches.Go(func() error {
				if err := o.postBatch(ctx, posts); err != nil && ctx.Err() == nil {
					o.opts.Logger.ErrorContext(ctx, "posts were made but not recorded", "repo", repo, "err", err)
				}
				posting.end(repo)
				o.posts.Send() // more of it may wait
				return nil
			})
		}
		if len(byRepo) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return batches.Wait()
		case <-woken:
		case <-time.After(postIdle):
		}
	}
}

// Post makes some of what is wanted and not there yet, and returns how many it has
// tried: none if there is nothing to do now.
func (o *outbox) Post(ctx context.Context) (int, error) {
	byRepo, err := o.claim(ctx)
	if err != nil {
		return 0, err
	}
	var g errgroup.Group
	n := 0
	for _, posts := range byRepo {
		n += len(posts)
		g.Go(func() error { return o.postBatch(ctx, posts) })
	}
	return n, g.Wait()
}

// claim takes posts that are due, except those to some repositories.
func (o *outbox) claim(ctx context.Context, except ...string) (map[string][]outgoing.Post, error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	except = append(except, o.strangers.now()...)
	for repo := range o.opts.Repositories {
		if !o.opts.Settings.Leads(repo) {
			except = append(except, repo)
		}
	}
	posts, err := o.opts.Store.ClaimPosts(ctx, o.opts.Settings.Identity, o.opts.Settings.Now(), postLease, postsAtOnce, except...)
	if err != nil {
		return nil, fmt.Errorf("claim posts: %w", err)
	}
	byRepo := make(map[string][]outgoing.Post)
	for _, post := range posts {
		byRepo[post.Repo] = append(byRepo[post.Repo], post)
	}
	return byRepo, nil
}

// postBatch makes posts to one repository, all at once.
func (o *outbox) postBatch(ctx context.Context, posts []outgoing.Post) error {
	var g errgroup.Group
	for _, post := range posts {
		g.Go(func() error {
			// A post that was begun is finished, or it would be made twice.
			ctx, done := queue.Begun(ctx)
			defer done()
			return o.post(ctx, post)
		})
	}
	return g.Wait()
}
