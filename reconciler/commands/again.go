package commands

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast"
)

// outcome is the outcome of a command for one cluster: a word, or why it was refused.
type outcome struct {
	word string
	err  error
}

// once does one thing for a target. A command in a comment that fails for some of its clusters
// is tried again: what came of the others is remembered until then. To plan again would cancel
// that plan, and an apply would find its own run in progress.
func (h *Handler) once(
	ctx context.Context, c holdfast.Command, t target, do func(context.Context, holdfast.Command, target) (string, error),
) (string, error) {
	known := make(map[string]outcome)
	if c.CommentID != "" {
		kept, _ := h.tried.LoadOrStore(c.ID, known)
		known, _ = kept.(map[string]outcome) // a command is carried out by one at a time
	}
	if before, ok := known[t.cluster]; ok {
		return before.word, before.err
	}
	if t.barred != "" {
		return "", t.barred
	}
	word, err := do(ctx, c, t)
	if err == nil || errors.As(err, new(refusal)) {
		known[t.cluster] = outcome{word, err}
	}
	return word, err
}

// queuedBefore reports whether an apply that a comment asks for is queued already: the server
// died after that, and before the command was on record as done.
func queuedBefore(c holdfast.Command, t target, run holdfast.Run) bool {
	return c.CommentID != "" && run.Kind.Applies() && run.Actor == c.Author && !run.CreatedAt.Before(c.CreatedAt) &&
		t.pr != nil && run.StandsFor(t.pr.PullRequestRef)
}
