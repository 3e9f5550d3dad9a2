// Signs of life in an agent's folder.

package runner

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	lifeEvery = 2 * time.Second
	// maxTurn is more than one turn of claiming can take: a claim that waits and is
	// answered late, and a pause.
	maxTurn = 5 * time.Minute
)

// turn is how long one turn of a loop takes.
type turn struct {
	mu    sync.Mutex
	since time.Time // zero: the loop has ended
}

func (t *turn) begin() { t.set(time.Now()) }
func (t *turn) end()   { t.set(time.Time{}) }

func (t *turn) set(since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = since
}

func (t *turn) goesOn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.since.IsZero() || time.Since(t.since) < maxTurn
}

// showLife shows the starter of the agent that it is alive, until done is called: the
// time of the folder's lock moves on for as long as all locks in here can be had and
// claiming continues. It is not a heartbeat of a run: those go to the server.
func (a *Agent) showLife(ctx context.Context) (done func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(lifeEvery)
		defer ticker.Stop()
		path := filepath.Join(a.opts.Dir, AgentLockFile)
		failed := false
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			if !a.wellInside() {
				continue
			}
			now := a.opts.Now()
			if err := os.Chtimes(path, now, now); err != nil && !failed {
				failed = true
				a.opts.Logger.WarnContext(ctx, "agent cannot update the time of its lock file", "err", err)
			}
		}
	}()
	return func() { close(stop); <-ended }
}

// wellInside returns once every lock could be had, which is never if something in
// here waits for itself.
func (a *Agent) wellInside() bool {
	for _, s := range a.all() {
		s.Answers()
	}
	return a.turn.goesOn()
}
