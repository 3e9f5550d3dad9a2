package agenda

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// How much is done at once: looks at each repository, most of which wait for its
// host, and decisions.
const (
	lookers  = 2
	deciders = 4
)

// Work takes looks and decides requests, side by side, until ctx is done. A host that
// hangs costs the looks at its own repositories only. What was begun is finished
// before it returns: see queue.Abortable.
func (a *Agenda) Work(
	ctx context.Context, take func(context.Context, Look) error, decide func(context.Context, holdfast.Request) error,
) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.looks.Work(ctx, a.opts.Logger, lookers, take) })
	for range deciders {
		g.Go(func() error { return queue.Work(ctx, a.opts.Logger, a.requests, decide) })
	}
	return g.Wait()
}

// Step does one thing that is asked for now, looks first; false if there is none.
func (a *Agenda) Step(
	ctx context.Context, take func(context.Context, Look) error, decide func(context.Context, holdfast.Request) error,
) (bool, error) {
	if more, err := a.looks.Step(ctx, take); more {
		return true, err
	}
	if a.requests.Depth() == 0 {
		return false, nil
	}
	return true, queue.Step(ctx, a.requests, decide)
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
