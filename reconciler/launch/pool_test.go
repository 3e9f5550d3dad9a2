package launch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/launch"
)

// east is the one runner in force.
type east struct{}

func (east) LaunchingRunners(context.Context) ([]launch.Launching, error) {
	return []launch.Launching{{Runner: holdfast.Runner{Name: "east"}}}, nil
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
			Secrets: func(context.Context, holdfast.Runner) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				return token, unreadable
			},
			Open: func(context.Context, holdfast.Runner) (launch.Jobs, func(context.Context) error, error) {
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
