package intake

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// mirror fetches repositories and remembers what it saw. It is safe for concurrent use.
type mirror struct {
	git       Git
	now       func() time.Time
	publishes map[string]bool // by repository: its tags release templates
	retagged  func(tags catalog.TagSet)
	judges    map[string]bool // by repository: policies are read from it
	judged    func()          // one of these has moved
	failed    func()          // a repository could not be fetched
	outages   *outages

	mu   sync.Mutex
	refs map[string]holdfast.Refs // of the last fetch, by repository
}

// fetch brings a repository up to date and remembers its refs.
func (m *mirror) fetch(ctx context.Context, repo string) (holdfast.Refs, error) {
	refs, err := m.git.Fetch(ctx, repo)
	if err != nil {
		if ctx.Err() == nil {
			m.outages.begin(repo, err, m.now())
			m.failed() // nobody waits for it any longer
		}
		return nil, fmt.Errorf("fetch %s: %w", repo, err)
	}
	m.saw(repo, refs)
	return refs, nil
}

// fetchPullRequest fetches what a forge keeps of a pull request, with all else.
func (m *mirror) fetchPullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRefs, error) {
	refs, err := m.git.FetchPullRequest(ctx, ref.Repo, ref.Number)
	if err != nil {
		return refs, fmt.Errorf("fetch pull request %s: %w", ref, err)
	}
	m.saw(ref.Repo, refs.Refs)
	return refs, nil
}

// saw remembers the refs that a repository has.
func (m *mirror) saw(repo string, refs holdfast.Refs) {
	m.mu.Lock()
	former, seen := m.refs[repo]
	m.refs[repo] = refs
	m.mu.Unlock()
	back := m.outages.end(repo)
	if moved := catalog.MovedTags(former, refs); m.publishes[repo] && (back || seen && len(moved) > 0) {
		m.retagged(moved)
	}
	if m.judges[repo] && (back || movedRefs(former, refs)) {
		m.judged()
	}
}

// known returns what the last fetch saw, or fetches if there was none.
func (m *mirror) known(ctx context.Context, repo string) (holdfast.Refs, error) {
	if refs := m.last(repo); refs != nil {
		return refs, nil
	}
	if fresh, err := m.outages.of(repo, m.now()); fresh {
		return nil, err
	}
	return m.fetch(ctx, repo)
}

// last returns what the last fetch saw; nil if there was none.
func (m *mirror) last(repo string) holdfast.Refs {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refs[repo]
}
