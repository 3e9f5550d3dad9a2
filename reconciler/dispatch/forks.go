package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// notIsolatedError says that an agent does not get a plan because it isolates no engines
// and the pull request is from a fork, or may be. It is a holdfast.ErrConflict: other runs
// are tried.
type notIsolatedError struct{ pr holdfast.PullRequestRef }

func (e *notIsolatedError) Error() string {
	return fmt.Sprintf("plans of %s need agents that isolate engines", e.pr)
}

func (e *notIsolatedError) Is(target error) bool { return target == holdfast.ErrConflict }

const (
	// forkKept is how long agents that isolate no engines are offered no plan of a pull
	// request from a fork, without another look at its record: that stays one.
	forkKept = 10 * time.Minute
	// unreadKept is the same for one that cannot be read.
	unreadKept = time.Minute
)

// forks keeps plans of forks from agents that isolate no engines. Methods are safe for
// concurrent use.
type forks struct {
	fleet  Source
	logger *slog.Logger

	mu   sync.Mutex
	kept map[holdfast.PullRequestRef]fork // those that were looked at
}

// fork is a pull request from a fork, or one that may be, as it cannot be read.
type fork struct {
	unread bool
	until  time.Time // when it is looked at again; with the monotonic clock
}

func newForks(fleet Source, logger *slog.Logger) *forks {
	return &forks{fleet: fleet, logger: logger, kept: make(map[holdfast.PullRequestRef]fork)}
}

// isolates reports whether an agent of an isolation may execute plans of forks.
func isolates(isolation string) bool { return isolation != "" && isolation != protocol.IsolationNone }

// admit is a notIsolatedError if run is of a pull request from a fork and the agent isolates
// no engines: such a run may be queued from before isolation was taken away, until its pull
// request is looked at. A pull request that cannot be read may be from a fork.
func (f *forks) admit(ctx context.Context, run holdfast.Run, isolation string) error {
	if run.PullRequest.IsZero() || isolates(isolation) {
		return nil
	}
	is, err := f.fleet.Fork(ctx, run)
	if err != nil && ctx.Err() != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	was, known := f.kept[run.PullRequest]
	switch {
	case err != nil:
		f.kept[run.PullRequest] = fork{unread: true, until: time.Now().Add(unreadKept)}
		if !known || !was.unread {
			f.logger.WarnContext(ctx, "plans are kept from agents that isolate no engines: their pull request cannot be read",
				"pull_request", run.PullRequest, "err", err)
		}
	case is:
		f.kept[run.PullRequest] = fork{until: time.Now().Add(forkKept)}
	default:
		delete(f.kept, run.PullRequest)
		return nil
	}
	return &notIsolatedError{run.PullRequest}
}

// unplanned are the pull requests of which an agent is offered no plan, as long as they need
// not be looked at again.
func (f *forks) unplanned(isolation string) []holdfast.PullRequestRef {
	if isolates(isolation) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	var refs []holdfast.PullRequestRef
	for ref, is := range f.kept {
		switch {
		case is.until.After(now):
			refs = append(refs, ref)
		case now.Sub(is.until) > forkKept: // nothing of it waits any longer
			delete(f.kept, ref)
		}
	}
	return refs
}

// some reports whether there are pull requests whose plans not every agent gets.
func (f *forks) some() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.kept) > 0
}

// holds is why a run is for agents that isolate engines, as far as that is known; empty if
// it is for all.
func (f *forks) holds(run holdfast.Run) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch is, kept := f.kept[run.PullRequest]; {
	case !kept:
		return ""
	case is.unread:
		return fmt.Sprintf("pull request %s cannot be read, and may be from a fork", run.PullRequest)
	default:
		return fmt.Sprintf("pull request %s is from a fork", run.PullRequest)
	}
}
