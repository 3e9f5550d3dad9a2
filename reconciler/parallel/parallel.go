package parallel

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Each calls do with the numbers below n, as many at once as there are
// processors, until one fails.
func Each(ctx context.Context, n int, do func(i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		g.Go(func() error {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err := do(int(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
