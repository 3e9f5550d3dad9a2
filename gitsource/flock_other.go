//go:build !unix

package gitsource

import "context"

// lockFile does nothing where there is no flock: one process is expected there.
func lockFile(context.Context, string) (unlock func(), err error) { return func() {}, nil }
