package queue

import (
	"context"
	"fmt"
)

// swiftKey marks contexts under which nothing may wait.
type swiftKey struct{}

// WaitError ends swift work that would have to wait.
type WaitError struct {
	On string // the repository whose host is waited for; empty: somebody does the same
}

func (e *WaitError) Error() string {
	if e.On == "" {
		return "somebody else does the same"
	}
	return fmt.Sprintf("the host of %s has to be asked", e.On)
}

// Swift returns a context for work that keeps others waiting: what would itself have to
// wait ends with a WaitError, and is done again apart from the others.
func Swift(ctx context.Context) context.Context { return context.WithValue(ctx, swiftKey{}, true) }

// MayWait returns nil if work may wait for the host of a repository, a WaitError if ctx
// is of Swift.
func MayWait(ctx context.Context, repo string) error {
	if IsSwift(ctx) {
		return &WaitError{On: repo}
	}
	return nil
}

// IsSwift reports whether ctx is of Swift.
func IsSwift(ctx context.Context) bool {
	swift, _ := ctx.Value(swiftKey{}).(bool)
	return swift
}
