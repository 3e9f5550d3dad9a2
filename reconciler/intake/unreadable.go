package intake

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// unreadablePatience is how long looks at a pull request, or at a group of a merge queue,
// fail before it shows that.
const unreadablePatience = time.Minute

// unreadableLooks is how many looks have to fail with what is not transient, if others fail
// with what is.
const unreadableLooks = 6

// failures are what could not be looked at. It is safe for concurrent use.
type failures[K comparable] struct {
	mu  sync.Mutex
	all map[K]failing
}

// failing are the looks at something that have failed one after the other.
type failing struct {
	since, afresh time.Time // of the first with what is not transient; of the first after the last outage
	looks         int       // with what is not transient
}

func newFailures[K comparable]() *failures[K] { return &failures[K]{all: make(map[K]failing)} }

// last notes a look that has failed, and reports whether this lasts: all looks have failed for
// a while with what is not transient. During an outage nothing is known, and the while begins
// afresh after it; but not with each outage of a host that is unavailable again and again.
func (f *failures[K]) last(key K, cause error, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	is, known := f.all[key]
	if transient(cause) {
		if known {
			is.afresh = time.Time{}
			f.all[key] = is
		}
		return false
	}
	if !known {
		is.since = now
	}
	if is.afresh.IsZero() {
		is.afresh = now
	}
	is.looks++
	f.all[key] = is
	return now.Sub(is.afresh) >= unreadablePatience || is.looks >= unreadableLooks && now.Sub(is.since) >= unreadablePatience
}

// forget forgets some.
func (f *failures[K]) forget(some func(key K) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.all, func(key K, _ failing) bool { return some(key) })
}

func (f *failures[K]) end(key K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, key)
}

// endAll ends those of the keys that are over.
func (f *failures[K]) endAll(over func(K) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.all, func(key K, _ failing) bool { return over(key) })
}

// transient reports whether a look that has failed may succeed without a change of what
// is looked at.
func transient(cause error) bool {
	for _, passing := range []error{
		holdfast.ErrUnavailable, holdfast.ErrConflict, holdfast.ErrLocked, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(cause, passing) {
			return true
		}
	}
	return false
}

// unreadable has an open pull request show that nothing is known of what it would change,
// and why, once looks at it have failed for a while with what does not pass: its trees are
// too large, say, or those of its base are. It returns cause: the look is made again.
func (p *pullRequests) unreadable(
	ctx context.Context, repo Repository, before, rec holdfast.PullRequestRecord, cause error,
) error {
	if !p.failures.last(rec.PullRequestRef, cause, p.opts.Now()) {
		return cause
	}
	why := cause.Error()
	if before.Reason == holdfast.ReasonUnreadable && before.Detail == why && before.Head == rec.Head {
		return cause // as it is shown
	}
	rec.Reason, rec.Detail, rec.Base, rec.Result = holdfast.ReasonUnreadable, why, "", ""
	rec.Faults, rec.Clusters, rec.Settings, rec.Runners, rec.Assessed = nil, nil, nil, nil, ""
	err := p.Impacts.Forget(ctx, rec.PullRequestRef)
	if err == nil {
		_, err = p.savePullRequest(ctx, repo, before, rec, false)
	}
	return errors.Join(cause, err)
}
