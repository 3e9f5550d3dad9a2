package objects

import (
	"context"
	"time"
)

// OpenHasty is Open with little patience.
func OpenHasty(ctx context.Context, opts Options) (*Bucket, error) {
	const soon = 300 * time.Millisecond
	return open(ctx, opts, limits{dial: soon, answer: soon, quiet: soon, call: soon, retry: soon, secret: soon})
}

// SpoolMemory is how much of an object waits in memory.
const SpoolMemory = spoolMemory
