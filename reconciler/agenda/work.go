package agenda

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// How much is done at once: looks at each repository, most of which wait for its
// host, decisions, and decisions that wait for the host of each repository.
const (
	lookers  = 2
	deciders = 4
	askers   = 2
)

// takenFor is when a request is tried again about which somebody else is deciding.
const takenFor = 100 * time.Millisecond

// asking is a request whose decision waits for the host of a repository.
type asking struct {
	req  holdfast.Request
	repo string
}

// Work takes looks and decides requests, side by side, until ctx is done. A host that
// hangs costs the looks at its own repositories, and the decisions that need its word,
// only: decide is called with a context of queue.Swift, and again apart from the others
// if that ends with a queue.WaitError. What was begun is finished before it returns: see
// queue.Abortable.
func (a *Agenda) Work(
	ctx context.Context, take func(context.Context, Look) error, decide func(context.Context, holdfast.Request) error,
) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.looks.Work(ctx, a.opts.Logger, lookers, take) })
	for range deciders {
		g.Go(func() error { return queue.Work(ctx, a.opts.Logger, a.requests, a.swiftly(decide)) })
	}
	g.Go(func() error { return a.asking.Work(ctx, a.opts.Logger, askers, patiently(decide)) })
	return g.Wait()
}

// patiently is decide for requests whose lane may wait.
func patiently(decide func(context.Context, holdfast.Request) error) func(context.Context, asking) error {
	return func(ctx context.Context, of asking) error { return decide(ctx, of.req) }
}

// swiftly is decide for requests that keep others waiting.
func (a *Agenda) swiftly(
	decide func(context.Context, holdfast.Request) error,
) func(context.Context, holdfast.Request) error {
	return func(ctx context.Context, req holdfast.Request) error {
		err := decide(queue.Swift(ctx), req)
		var wait *queue.WaitError
		switch {
		case !errors.As(err, &wait):
			return err
		case wait.On == "":
			a.requests.AddAfter(req, takenFor)
		default:
			a.asking.Add(asking{req: req, repo: wait.On})
		}
		return nil
	}
}

// Step does one thing that is asked for now, looks first; false if there is none.
func (a *Agenda) Step(
	ctx context.Context, take func(context.Context, Look) error, decide func(context.Context, holdfast.Request) error,
) (bool, error) {
	if more, err := a.looks.Step(ctx, take); more {
		return true, err
	}
	if a.requests.Depth() > 0 {
		return true, queue.Step(ctx, a.requests, a.swiftly(decide))
	}
	return a.asking.Step(ctx, patiently(decide))
}

// Depths are how many looks and how many decisions are asked for.
func (a *Agenda) Depths() (looks, requests int) {
	return a.looks.Depth(), a.requests.Depth() + a.asking.Depth()
}

// Deciding reports whether a decision is asked for, or being made.
func (a *Agenda) Deciding() bool { return a.requests.Busy() || a.asking.Busy() }

// Close drops what is asked for; nothing more is taken.
func (a *Agenda) Close() {
	a.looks.Close()
	a.requests.Close()
	a.asking.Close()
}
