// Commands of the API that reach a replica which does not carry them out.

package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// forwarding is how a Handler works with those of other replicas.
type forwarding struct{ *Handler }

// outcomeLook is how often the status of a command that another replica has is read.
const outcomeLook = 100 * time.Millisecond

// forward stores a command for the replica that carries it out, and waits for what comes of
// it until ctx is done.
func (h forwarding) forward(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	if _, err := h.opts.Store.StoreCommand(ctx, c); err != nil {
		return c, fmt.Errorf("store command: %w", err)
	}
	h.Leading.CommandGiven(ctx)
	return h.awaitOutcome(ctx, c)
}

// awaitOutcome returns a command as it is when it was carried out, or ctx is done.
func (h forwarding) awaitOutcome(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	for {
		now, err := h.opts.Store.Command(ctx, c.ID)
		switch {
		case ctx.Err() != nil:
			return c, nil // it is carried out all the same
		case err != nil:
			return c, fmt.Errorf("read command %s: %w", c.ID, err)
		case now.Status != holdfast.CommandReceived:
			return now, nil
		}
		select {
		case <-ctx.Done():
			return c, nil
		case <-time.After(outcomeLook):
		}
	}
}

// isForwarded reports whether a command of the API came to another replica and is to be
// carried out here, rather than ended.
func (h forwarding) isForwarded(c holdfast.Command) bool {
	if c.CommentID != "" || h.Leading.Alone() {
		return false
	}
	_, here := h.direct.taken()[c.ID]
	return !here && h.opts.Now().Sub(c.CreatedAt) < apiPatience
}

// carryForwarded carries out a command that came to another replica, unless somebody does.
func (h forwarding) carryForwarded(ctx context.Context, c holdfast.Command) {
	ctx, done := queue.Begun(ctx)
	defer done()
	if !h.direct.begin(c.ID) {
		return
	}
	first, err := h.Leading.TakeCommand(ctx, c.ID)
	if err != nil || !first {
		h.direct.forget(c.ID)
		return
	}
	if _, err := h.carryDirect(ctx, c); err != nil {
		h.opts.Logger.WarnContext(ctx, "command of another replica failed", "command", c.ID, "err", err)
	}
}

// begin is take for whoever may not be the only one; false if somebody has it.
func (d *direct) begin(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, taken := d.outcomes[id]; taken {
		return false
	}
	if d.outcomes == nil {
		d.outcomes = make(map[string]*holdfast.Command)
	}
	d.outcomes[id] = nil
	return true
}
