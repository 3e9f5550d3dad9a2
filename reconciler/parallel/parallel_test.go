package parallel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/reconciler/parallel"
)

func TestEach(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 100} {
		calls := make([]atomic.Int32, n)
		err := parallel.Each(t.Context(), n, func(i int) error { calls[i].Add(1); return nil })
		if err != nil {
			t.Errorf("Each(%d) = %v", n, err)
		}
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Errorf("Each(%d) calls do(%d) %d times", n, i, got)
			}
		}
	}
}

// TestEachStops: after an error, or the end of its context, nothing more is begun.
func TestEachStops(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var calls atomic.Int32
	err := parallel.Each(t.Context(), 1_000_000, func(int) error { calls.Add(1); return broken })
	if got := calls.Load(); !errors.Is(err, broken) || got == 0 || got == 1_000_000 {
		t.Errorf("Each() = %v after %d calls", err, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = parallel.Each(ctx, 3, func(i int) error { t.Errorf("do(%d) after the end", i); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Each() after the end = %v", err)
	}
}
