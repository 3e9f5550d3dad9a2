package rescue

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast"
)

// Unsaved returns the unsaved state of a cluster; ErrNotFound if there is none.
func (k *Keeper) Unsaved(ctx context.Context, cluster string) (holdfast.UnsavedState, error) {
	list, err := k.opts.Store.UnsavedStates(ctx, cluster)
	if err != nil {
		return holdfast.UnsavedState{}, err
	}
	if len(list) == 0 {
		return holdfast.UnsavedState{}, fmt.Errorf("unsaved state of %q: %w", cluster, holdfast.ErrNotFound)
	}
	return list[0], nil
}

// OpenUnsaved opens the unsaved state of a cluster for a person; ErrNotFound if there
// is none, or if what was rescued is on the agent's disk only.
func (k *Keeper) OpenUnsaved(ctx context.Context, cluster, actor string) (io.ReadCloser, error) {
	u, err := k.Unsaved(ctx, cluster)
	if err != nil {
		return nil, err
	}
	file, err := k.opts.Store.OpenUnsaved(ctx, u)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, fmt.Errorf("what run %s could not save has not reached the server: its failure names the folder of the agent: %w", u.Run, err)
	} else if err != nil {
		return nil, fmt.Errorf("open what run %s could not save: %w", u.Run, err)
	}
	k.audit(ctx, actor, "state.get", cluster, "what "+u.Run+" could not save")
	return file, nil
}

// PushUnsaved queues the push of a cluster's unsaved state now, or of data in its place
// if there is any. ErrNotFound if there is none; ErrConflict if it is being pushed.
func (k *Keeper) PushUnsaved(ctx context.Context, cluster, actor string, data []byte) (holdfast.Run, error) {
	u, err := k.idle(ctx, cluster)
	if err != nil {
		return holdfast.Run{}, err
	}
	if len(data) > 0 {
		if u, err = k.opts.Store.ReplaceUnsaved(ctx, u, u.Run, data); err != nil {
			return holdfast.Run{}, err
		}
		k.audit(ctx, actor, "state.replace", cluster, fmt.Sprintf("%d bytes in place of what %s could not save", len(data), u.Run))
	} else if file, err := k.opts.Store.OpenUnsaved(ctx, u); err != nil {
		return holdfast.Run{}, fmt.Errorf("open what run %s could not save: %w", u.Run, err)
	} else if err := file.Close(); err != nil {
		return holdfast.Run{}, fmt.Errorf("open what run %s could not save: %w", u.Run, err)
	}
	return k.queue(ctx, u, actor)
}

// idle returns the unsaved state of a cluster; ErrNotFound if there is none,
// ErrConflict if a run pushes it.
func (k *Keeper) idle(ctx context.Context, cluster string) (holdfast.UnsavedState, error) {
	u, err := k.Unsaved(ctx, cluster)
	if err != nil {
		return u, err
	}
	job, err := k.pushOf(ctx, u)
	if err == nil && job.ID != "" && !job.Status.Done() {
		err = &holdfast.RefusedError{
			Reason: holdfast.ReasonInProgress, Command: "holdfast cancel " + job.ID,
			Text: fmt.Sprintf("run %s pushes it already: cancel that first", job.ID),
		}
	}
	return u, err
}

// WaiveUnsaved gives a cluster's unsaved state up, for a reason, and returns it: what
// is planned next is planned with the state that the backend has. ErrNotFound if there
// is none; ErrConflict if it is being pushed.
func (k *Keeper) WaiveUnsaved(ctx context.Context, cluster, actor, reason string) (holdfast.UnsavedState, error) {
	u, err := k.idle(ctx, cluster)
	if err != nil {
		return u, err
	}
	entry := holdfast.AuditEntry{
		At: k.opts.Now().UTC(), Actor: actor, Action: "state.waive", Object: cluster,
		Detail: fmt.Sprintf("what %s could not save: %s", u.Run, reason),
	}
	if err := k.opts.Store.WaiveUnsaved(ctx, u, entry); err != nil {
		return u, err
	}
	k.opts.Logger.WarnContext(ctx, "unsaved state was given up", "cluster", cluster, "of", u.Run, "actor", actor)
	k.opts.Fleet.Look(ctx, cluster)
	return u, nil
}
