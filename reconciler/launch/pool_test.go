package launch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/launch"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// east is the one runner in force.
type east struct{}

func (east) LaunchingRunners(context.Context) ([]launch.Launching, error) {
	return []launch.Launching{{Runner: runnerspec.Runner{Name: "east"}}}, nil
}

// A runner is opened again once the values of its secrets are others: a token that was replaced
// is used without a restart. A file that cannot be read for a moment changes nothing.
func TestReplacedSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		token, unreadable := "first", error(nil)
		replace := func(with string, err error) {
			mu.Lock()
			defer mu.Unlock()
			token, unreadable = with, err
		}
		var opened []string
		p, err := launch.NewPool(launch.PoolOptions{
			Runners: east{}, Dispatcher: newStage(), Runs: newStage(),
			Secrets: func(context.Context, runnerspec.Runner) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				return token, unreadable
			},
			Open: func(context.Context, runnerspec.Runner) (launch.Jobs, func(context.Context) error, error) {
				mu.Lock()
				defer mu.Unlock()
				opened = append(opened, token)
				return newStage(), nil, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(2 * time.Minute)
		replace("first", errors.New("it is being written"))
		time.Sleep(2 * time.Minute)
		replace("second", nil)
		time.Sleep(2 * time.Minute)
		stop()
		if err := <-ended; err != nil || !slices.Equal(opened, []string{"first", "second"}) {
			t.Errorf("opened with %q, %v", opened, err)
		}
	})
}

// TestRemovedRunner: what a runner has launched that is no longer in force is stopped once its
// attempts are over, and nothing else is claimed or started for it.
func TestRemovedRunner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage("run-9")
		s.running("run-2", false) // claimed and not started when it was removed
		s.is(protocol.Launched{Run: "run-1"})
		l, err := launch.New(launch.Options{
			Runner: runnerspec.Runner{Name: "east"}, Jobs: s, Dispatcher: s, Runs: s,
			Settings: launch.Settings{Replica: "one", Removed: true, Start: 10 * time.Minute, Timeout: time.Hour, Grace: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		look(t, l, 11*time.Minute)
		if len(s.starts) > 0 || !slices.Equal(s.queued, []string{"run-9"}) {
			t.Errorf("started %v, queued %v", s.starts, s.queued)
		}
		if !slices.Contains(s.stopped, "run-1") || len(s.jobs) > 0 {
			t.Errorf("stopped %v, left %v", s.stopped, s.jobs)
		}
		if want := []string{"run-2 unstarted StartTimeout false"}; !slices.Equal(s.ended, want) {
			t.Errorf("ended %v, want %v", s.ended, want)
		}
	})
}
