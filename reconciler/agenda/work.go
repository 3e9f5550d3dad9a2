package agenda

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// Work takes looks and decides requests, side by side, until ctx is done. What was
// begun is finished before it returns: see queue.Abortable.
func (a *Agenda) Work(
	ctx context.Context, take func(context.Context, Look) error, decide func(context.Context, holdfast.Request) error,
) error {
	g, ctx := errgroup.WithContext(ctx)
	for range 2 {
		g.Go(func() error { return queue.Work(ctx, a.opts.Logger, a.looks, take) })
	}
	for range 4 {
		g.Go(func() error { return queue.Work(ctx, a.opts.Logger, a.requests, decide) })
	}
	return g.Wait()
}

// Step does one thing that is asked for now, looks first; false if there is none.
func (a *Agenda) Step(
	ctx context.Context, take func(context.Context, Look) error, decide func(context.Context, holdfast.Request) error,
) (bool, error) {
	switch {
	case a.looks.Depth() > 0:
		return true, queue.Step(ctx, a.looks, take)
	case a.requests.Depth() > 0:
		return true, queue.Step(ctx, a.requests, decide)
	default:
		return false, nil
	}
}

// Depths are how many looks and how many decisions are asked for.
func (a *Agenda) Depths() (looks, requests int) { return a.looks.Depth(), a.requests.Depth() }

// Deciding reports whether a decision is asked for, or being made.
func (a *Agenda) Deciding() bool { return a.requests.Busy() }

// Close drops what is asked for; nothing more is taken.
func (a *Agenda) Close() {
	a.looks.Close()
	a.requests.Close()
}
