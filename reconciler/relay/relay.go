package relay

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/replica"
)

const (
	// lookEvery is how often a leader looks for what it was not notified of.
	lookEvery = time.Second
	// atOnce is how much is taken in at once.
	atOnce = 500
)

// Store keeps what is asked; *peers.Peers is one.
type Store interface {
	Ask(ctx context.Context, ask replica.Ask) error
	Asked(ctx context.Context, repos []string, limit int) ([]replica.Ask, error)
	Answered(ctx context.Context, asks []replica.Ask) error
}

// Options are what a Desk needs. All are required.
type Options struct {
	Store Store
	Led   func() []string                          // what this replica leads
	Take  func(ctx context.Context, a replica.Ask) // does, or remembers to do, what is asked
	Told  func(ctx context.Context, repo string)   // tells the leader of a repository to look
	Log   *slog.Logger
}

// Desk receives and passes on what is asked. It is safe for concurrent use.
type Desk struct {
	opts  Options
	asked *queue.Broadcast
}

// New returns a Desk.
func New(opts Options) *Desk { return &Desk{opts: opts, asked: queue.NewBroadcast()} }

// Put asks the leader of a repository for something. Once it has returned without an
// error, that is done, whatever process dies.
func (d *Desk) Put(ctx context.Context, ask replica.Ask) error {
	if err := d.opts.Store.Ask(ctx, ask); err != nil {
		return fmt.Errorf("hand over: %w", err)
	}
	d.opts.Told(ctx, ask.Repo)
	return nil
}

// Wake has what is asked looked at.
func (d *Desk) Wake() { d.asked.Send() }

// Run receives what is asked of this replica until ctx is done.
func (d *Desk) Run(ctx context.Context) error {
	var trouble queue.Trouble
	for {
		woken := d.asked.Wait()
		err := d.Pass(ctx)
		if err == nil {
			trouble.Over()
		} else if ctx.Err() == nil && trouble.Says(err, time.Now()) {
			d.opts.Log.ErrorContext(ctx, "what other replicas ask for was not read", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-woken:
		case <-time.After(lookEvery):
		}
	}
}

// Pass receives what is asked now. If the leader dies after it was received, and before it
// is done, its successor asks for everything.
func (d *Desk) Pass(ctx context.Context) error {
	for {
		led := d.opts.Led()
		if len(led) == 0 {
			return nil
		}
		asks, err := d.opts.Store.Asked(ctx, led, atOnce)
		if err != nil || len(asks) == 0 {
			return err
		}
		for _, ask := range asks {
			d.opts.Take(ctx, ask)
		}
		if err := d.opts.Store.Answered(ctx, asks); err != nil || len(asks) < atOnce {
			return err
		}
	}
}
