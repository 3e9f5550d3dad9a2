// Which commands are carried out at once, and which in turn.

package commands

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

const (
	// idle is how often commands are looked for without a notification: the permission of
	// one could not be asked for. Another replica may have stored one, and its hint may be
	// lost.
	idle, idleTogether = 10 * time.Second, time.Second
	// apiPatience is how old a command of the API has to be before another server than
	// the one that accepted it ends it: that one has died.
	apiPatience = time.Minute
	// together is how many commands of a repository are carried out at once, each of
	// another pull request.
	together = 8
)

// CommandStored reports that a command is in the store. It never blocks.
func (h *Handler) CommandStored() { h.stored.Send() }

// idle is how often commands are looked for.
func (h *Handler) idle() time.Duration {
	if h.Leading.Alone() {
		return idle
	}
	return idleTogether
}

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
				if (forwarding{h}).isForwarded(c) {
					g.Go(func() error { forwarding{h}.carryForwarded(ctx, c); return nil })
				} else {
					lanes.Add(c.PullRequest)
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-stored:
			case <-time.After(h.idle()):
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
// apply must not come after the cancel that was meant for it.
func (h *Handler) pass(ctx, until context.Context, of func(holdfast.Command) bool) {
	waiting := make(map[holdfast.PullRequestRef]bool)
	for _, c := range h.received(ctx) {
		if until.Err() != nil {
			return
		}
		switch {
		case !of(c) || (forwarding{h}).isForwarded(c):
			continue
		case c.CommentID == "":
			h.end(ctx, c)
			continue
		case waiting[c.PullRequest]:
			h.waited.Store(c.ID, true)
			continue
		}
		if _, err := h.execute(ctx, c); err != nil {
			waiting[c.PullRequest] = !c.PullRequest.IsZero()
			h.waited.Store(c.ID, true)
			h.opts.Logger.WarnContext(ctx, "command is retried", "command", c.ID, "err", err)
		} else {
			h.waited.Delete(c.ID)
			h.tried.Delete(c.ID)
		}
	}
}

// received lists the commands that are stored and that nobody carries out: those of
// comments, and those of the API that are to be ended.
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
		ended, here := taken[c.ID]
		if here && !ended || !h.carries(ctx, c) {
			continue
		}
		if c.CommentID != "" || ended || !h.Leading.Alone() || h.opts.Now().Sub(c.CreatedAt) >= apiPatience {
			left = append(left, c)
		}
	}
	return left
}

// carries reports whether a command is this replica's to carry out, as far as is known.
func (h *Handler) carries(ctx context.Context, c holdfast.Command) bool {
	ours, err := h.Leading.Carries(ctx, c)
	if err != nil && ctx.Err() == nil {
		h.opts.Logger.WarnContext(ctx, "it is not known who carries out a command", "command", c.ID, "err", err)
	}
	return ours && err == nil
}

// Command stores a command that came through the API and executes it: it waits for no
// other one. An error means that it was not carried out, and never will be: whoever gave
// it does not wait for it any longer, and gives it again.
func (h *Handler) Command(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	now := h.opts.Now()
	c.ID, c.Status, c.CreatedAt = holdfast.NewID("command", now), holdfast.CommandReceived, now
	if ours, err := h.Leading.Carries(ctx, c); err != nil {
		return c, fmt.Errorf("look for who carries out a command: %w", err)
	} else if !ours {
		return forwarding{h}.forward(ctx, c)
	}
	h.direct.take(c.ID) // before it is stored, or it would be found and executed twice
	if _, err := h.opts.Store.StoreCommand(ctx, c); err != nil {
		h.direct.forget(c.ID)
		return c, fmt.Errorf("store command: %w", err)
	}
	if first, err := h.Leading.TakeCommand(ctx, c.ID); err != nil || !first {
		h.direct.forget(c.ID) // another replica leads by now
		return forwarding{h}.awaitOutcome(ctx, c)
	}
	return h.carryDirect(context.WithoutCancel(ctx), c)
}

// carryDirect carries out a command of the API that nobody else does.
func (h *Handler) carryDirect(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	done, err := h.withShown(ctx, c)
	if err == nil {
		done, err = h.execute(ctx, done)
	}
	switch {
	case err == nil:
		h.direct.forget(c.ID)
		return done, nil
	case done.Status != holdfast.CommandReceived: // what came of it is only not on record
		h.direct.end(done)
		h.end(ctx, done)
		return done, nil
	}
	c.Reply = failedWith(err)
	h.direct.end(c)
	h.end(ctx, c)
	return done, err
}

// withShown returns an approval of a pull request with the plans that its comment showed
// when the approval was stored, and any other command as it is.
func (h *Handler) withShown(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	if c.Verb != holdfast.VerbApprove || c.Shown != nil || c.PullRequest.IsZero() {
		return c, nil
	}
	stored, err := h.opts.Store.Command(ctx, c.ID)
	if err != nil {
		return c, fmt.Errorf("read command %s: %w", c.ID, err)
	}
	return stored, nil
}

// failedWith is the reply to a command of the API that is given up after an error.
func failedWith(err error) string { return "it failed, and is not retried: " + err.Error() }

// end records the outcome of a command of the API that nobody carries out any longer.
// If that fails it is done by a later pass.
func (h *Handler) end(ctx context.Context, c holdfast.Command) {
	if outcome, ok := h.direct.outcome(c.ID); ok {
		c = outcome
	} else {
		c.Reply = "the server died while executing it; it may or may not have taken effect and is not retried"
	}
	if c.Status == holdfast.CommandReceived {
		c.Status, c.DoneAt = holdfast.CommandRefused, h.opts.Now()
	}
	if err := h.opts.Store.FinishCommand(ctx, c); err != nil {
		h.opts.Logger.WarnContext(ctx, "the result of a command was not recorded", "command", c.ID, "err", err)
		return
	}
	h.direct.forget(c.ID)
	h.Records.Audit(ctx, c.Author, "command."+string(c.Verb), commandObject(c), strings.TrimSpace(string(c.Status)+" "+c.Reply))
}

// direct are the commands of the API that this process has taken and that are not on
// record as done: with nothing while they are carried out, and with their outcomes.
type direct struct {
	mu       sync.Mutex
	outcomes map[string]*holdfast.Command // by id
}

func (d *direct) take(id string)         { d.set(id, nil) }
func (d *direct) end(c holdfast.Command) { d.set(c.ID, &c) }
func (d *direct) forget(id string)       { d.mu.Lock(); defer d.mu.Unlock(); delete(d.outcomes, id) }

func (d *direct) set(id string, outcome *holdfast.Command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.outcomes == nil {
		d.outcomes = make(map[string]*holdfast.Command)
	}
	d.outcomes[id] = outcome
}

// outcome is the outcome of a command that this process has taken.
func (d *direct) outcome(id string) (holdfast.Command, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.outcomes[id]; c != nil {
		return *c, true
	}
	return holdfast.Command{}, false
}

// taken are the commands that were taken: whether they have ended.
func (d *direct) taken() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := make(map[string]bool, len(d.outcomes))
	for id, outcome := range d.outcomes {
		taken[id] = outcome != nil
	}
	return taken
}
