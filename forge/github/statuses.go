package github

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

// maxDescription is GitHub's limit for a status, in characters.
const maxDescription = 140

// SetStatus sets a commit status. It does not set what is set already: GitHub accepts a
// thousand statuses for a revision and context, and shows each.
func (c *Client) SetStatus(ctx context.Context, repo string, status holdfast.CommitStatus) error {
	status.Description = clip(status.Description, maxDescription)
	key := statusKey{repo, status.Revision, status.Context}
	what := fmt.Sprintf("set status %s of %s@%s", status.Context, repo, status.Revision.Short())
	return c.do(ctx, repo, what, func(gh *github.Client, on repository) error {
		// Somebody else (another replica) may have set another one since, so
		// what we remember is a reason to look, not the truth. It is remembered
		// before it is sent: an answer can get lost.
		if c.sent.swap(key, status) == status {
			same, err := isStatus(ctx, gh, on, status)
			if same || err != nil {
				return err
			}
		}
		set := &github.RepoStatus{
			State:       new(string(status.State)),
			Context:     new(status.Context),
			Description: new(status.Description),
		}
		if status.URL != "" {
			set.TargetURL = new(status.URL)
		}
		_, _, err := gh.Repositories.CreateStatus(ctx, on.owner, on.name, string(status.Revision), set)
		return err
	})
}

// isStatus reports whether a status is the newest one of its context.
func isStatus(ctx context.Context, gh *github.Client, on repository, want holdfast.CommitStatus) (bool, error) {
	combined, _, err := gh.Repositories.GetCombinedStatus(ctx, on.owner, on.name, string(want.Revision), &github.ListOptions{PerPage: 100})
	if err != nil {
		return false, err
	}
	for _, have := range combined.Statuses {
		if have.GetContext() == want.Context {
			return have.GetState() == string(want.State) && have.GetDescription() == want.Description &&
				have.GetTargetURL() == want.URL, nil
		}
	}
	return false, nil
}

type statusKey struct {
	repo     string
	revision holdfast.Revision
	context  string
}

// maxStatuses bounds the memory of statuses; the oldest are forgotten.
const maxStatuses = 4096

// statusMemory remembers the statuses that were sent last.
type statusMemory struct {
	mu     sync.Mutex
	last   map[statusKey]*list.Element // of statusKey
	values map[statusKey]holdfast.CommitStatus
	recent *list.List // the most recently sent first
}

func newStatusMemory() *statusMemory {
	return &statusMemory{
		last: make(map[statusKey]*list.Element), values: make(map[statusKey]holdfast.CommitStatus), recent: list.New(),
	}
}

// swap remembers status and returns what was remembered before, zero if
// nothing was.
func (m *statusMemory) swap(key statusKey, status holdfast.CommitStatus) holdfast.CommitStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.values[key]
	m.values[key] = status
	if element, ok := m.last[key]; ok {
		m.recent.MoveToFront(element)
		return before
	}
	m.last[key] = m.recent.PushFront(key)
	if m.recent.Len() > maxStatuses {
		oldest := m.recent.Remove(m.recent.Back()).(statusKey)
		delete(m.last, oldest)
		delete(m.values, oldest)
	}
	return before
}
