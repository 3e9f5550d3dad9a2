package intake

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// unreadablePatience is how long looks at a pull request fail before it shows that.
const unreadablePatience = time.Minute

// failures are the open pull requests that could not be looked at since a time. It is safe
// for concurrent use.
type failures struct {
	mu    sync.Mutex
	since map[holdfast.PullRequestRef]time.Time
}

func newFailures() *failures { return &failures{since: make(map[holdfast.PullRequestRef]time.Time)} }

// begin notes a look that has failed, and returns how long there was none that has not.
func (f *failures) begin(ref holdfast.PullRequestRef, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	since, ok := f.since[ref]
	if !ok {
		since = now
		f.since[ref] = since
	}
	return now.Sub(since)
}

func (f *failures) end(ref holdfast.PullRequestRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, ref)
}

// unreadable has an open pull request show that nothing is known of what it would change,
// and why, once looks at it have failed for a while with what does not pass: its trees are
// too large, say, or those of its base are. It returns cause: the look is made again.
func (p *pullRequests) unreadable(
	ctx context.Context, repo Repository, before, rec holdfast.PullRequestRecord, cause error,
) error {
	for _, passing := range []error{
		holdfast.ErrUnavailable, holdfast.ErrConflict, holdfast.ErrLocked, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(cause, passing) {
			return cause
		}
	}
	if p.failures.begin(rec.PullRequestRef, p.opts.Now()) < unreadablePatience {
		return cause
	}
	why := cause.Error()
	if before.Reason == holdfast.ReasonUnreadable && before.Detail == why && before.Head == rec.Head {
		return cause // as it is shown
	}
	rec.Reason, rec.Detail, rec.Base, rec.Result = holdfast.ReasonUnreadable, why, "", ""
	rec.Faults, rec.Clusters, rec.Settings, rec.Assessed = nil, nil, nil, ""
	err := p.Impacts.Forget(ctx, rec.PullRequestRef)
	if err == nil {
		_, err = p.savePullRequest(ctx, repo, before, rec, false)
	}
	return errors.Join(cause, err)
}
