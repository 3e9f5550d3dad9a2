package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// notIsolatedError is of a plan that an agent does not get, as it isolates no engines and
// the pull request is from a fork, or may be. It is a holdfast.ErrConflict: other runs are
// tried.
type notIsolatedError struct{ pr holdfast.PullRequestRef }

func (e *notIsolatedError) Error() string {
	return fmt.Sprintf("plans of %s are for agents that isolate engines", e.pr)
}

func (e *notIsolatedError) Is(target error) bool { return target == holdfast.ErrConflict }

// forks keeps plans of forks from agents that isolate no engines.
type forks struct {
	fleet  Source
	logger *slog.Logger
	told   sync.Map // pull requests that cannot be read, of which that was logged
}

// admit is a notIsolatedError if run is of a pull request from a fork and the agent isolates
// no engines: such a run may be queued from before isolation was taken away, until its pull
// request is looked at. A pull request that cannot be read may be from a fork.
func (f *forks) admit(ctx context.Context, run holdfast.Run, isolation string) error {
	if run.PullRequest.IsZero() || isolation != "" && isolation != holdfast.IsolationNone {
		return nil
	}
	fork, err := f.fleet.Fork(ctx, run)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		if _, told := f.told.LoadOrStore(run.PullRequest, true); !told {
			f.logger.WarnContext(ctx, "plans are kept from agents that isolate no engines: their pull request cannot be read",
				"pull_request", run.PullRequest, "err", err)
		}
		fork = true
	}
	if fork {
		return &notIsolatedError{run.PullRequest}
	}
	return nil
}
