// Which commands are carried out at once, and which in turn.

package commands

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

const (
	// idle is how often commands are looked for without being told of one: another
	// replica may have stored it, or its permission could not be asked for.
	idle = 10 * time.Second
	// apiPatience is how old a command of the API is before somebody else than the
	// server that took it carries it out: that one has died.
	apiPatience = time.Minute
	// together is how many commands of a repository are carried out at once, each of
	// another pull request.
	together = 8
)

// CommandStored says that a command is in the store. It never blocks.
func (h *Handler) CommandStored() { h.stored.Send() }

// Run works off commands until ctx is done: those of a pull request one after another,
// in the order in which they were given, and those of others meanwhile. A code host
// that does not say who may command keeps neither another repository waiting nor, while
// it does not say it of some authors, others in the same one.
func (h *Handler) Run(ctx context.Context) error {
	lanes := queue.NewLanes(func(of holdfast.PullRequestRef) string { return of.Repo })
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return lanes.Work(ctx, h.opts.Logger, together, func(begun context.Context, of holdfast.PullRequestRef) error {
			h.pass(begun, ctx, func(c holdfast.Command) bool { return c.PullRequest == of })
			return nil
		})
	})
	g.Go(func() error {
		for {
			stored := h.stored.Wait()
			for _, c := range h.received(ctx) {
				lanes.Add(c.PullRequest)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-stored:
			case <-time.After(idle):
			}
		}
	})
	return g.Wait()
}

// Pass carries out the commands that are stored, one after another.
func (h *Handler) Pass(ctx context.Context) {
	begun, done := queue.Begun(ctx)
	defer done()
	h.pass(begun, ctx, func(holdfast.Command) bool { return true })
}

// pass carries out some of the commands that are stored, and begins none once until is
// done. After one that has to be tried again, those of the same pull request wait: an
// apply must not come after the cancel that was said of it.
func (h *Handler) pass(ctx, until context.Context, of func(holdfast.Command) bool) {
	waiting := make(map[holdfast.PullRequestRef]bool)
	for _, c := range h.received(ctx) {
		if until.Err() != nil {
			return
		}
		switch {
		case !of(c):
			continue
		case waiting[c.PullRequest]:
			h.waited.Store(c.ID, true)
			continue
		}
		if _, err := h.execute(ctx, c); err != nil {
			waiting[c.PullRequest] = !c.PullRequest.IsZero()
			h.waited.Store(c.ID, true)
			h.opts.Logger.WarnContext(ctx, "command is tried again", "command", c.ID, "err", err)
		} else {
			h.direct.forget(c.ID)
			h.waited.Delete(c.ID)
		}
	}
}

// received lists the commands that are stored and that nobody carries out.
func (h *Handler) received(ctx context.Context) []holdfast.Command {
	taken := h.direct.taken()
	commands, err := h.opts.Store.Commands(ctx, holdfast.CommandReceived)
	if err != nil {
		if ctx.Err() == nil {
			h.opts.Logger.ErrorContext(ctx, "commands were not listed", "err", err)
		}
		return nil
	}
	left := commands[:0]
	for _, c := range commands {
		failed, here := taken[c.ID]
		if c.CommentID != "" || failed || !here && h.opts.Now().Sub(c.CreatedAt) >= apiPatience {
			left = append(left, c)
		}
	}
	return left
}

// Command stores a command that came through the API and executes it: it waits for no
// other one.
func (h *Handler) Command(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	now := h.opts.Now()
	c.ID, c.Status, c.CreatedAt = holdfast.NewID("command", now), holdfast.CommandReceived, now
	h.direct.take(c.ID) // before it is stored, or it would be found and executed twice
	if _, err := h.opts.Store.StoreCommand(ctx, c); err != nil {
		h.direct.forget(c.ID)
		return c, fmt.Errorf("store command: %w", err)
	}
	done, err := h.execute(context.WithoutCancel(ctx), c)
	if err != nil {
		h.direct.fail(c.ID)
		return done, err
	}
	h.direct.forget(c.ID)
	return done, nil
}

// direct are the commands of the API that this process has taken: whether they have
// failed, and are tried again with those of comments.
type direct struct {
	mu     sync.Mutex
	failed map[string]bool // by id
}

func (d *direct) take(id string)   { d.set(id, false) }
func (d *direct) fail(id string)   { d.set(id, true) }
func (d *direct) forget(id string) { d.mu.Lock(); defer d.mu.Unlock(); delete(d.failed, id) }

func (d *direct) set(id string, failed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = make(map[string]bool)
	}
	d.failed[id] = failed
}

// taken returns a copy.
func (d *direct) taken() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := make(map[string]bool, len(d.failed))
	for id, failed := range d.failed {
		taken[id] = failed
	}
	return taken
}
