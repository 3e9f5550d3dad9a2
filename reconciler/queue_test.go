package reconciler_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/reconciler"
)

func TestQueueHandsOutAKeyOnce(t *testing.T) {
	t.Parallel()
	q := reconciler.NewQueue()
	q.Add("a")
	q.Add("b")
	q.Add("a")
	if got := take(t, q, 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v, want a and b, once and in order", got)
	}
	if q.Depth() != 0 {
		t.Errorf("%d keys are left", q.Depth())
	}
}

func TestQueueGivesAKeyToOneWorkerAndAgainAfterwards(t *testing.T) {
	t.Parallel()
	q := reconciler.NewQueue()
	q.Add("a")
	take(t, q, 1)
	q.Add("a")
	q.Add("a")
	if q.Depth() != 0 {
		t.Fatal("the key was handed out while it was worked on")
	}
	q.Done("a")
	take(t, q, 1)
	q.Done("a")
	if q.Depth() != 0 {
		t.Error("the key came more than once again")
	}
}

func TestQueueDelays(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ask  func(*reconciler.Queue)
		want []time.Duration // when the key comes
	}{
		"later":            {func(q *reconciler.Queue) { q.AddAfter("a", time.Minute) }, []time.Duration{time.Minute}},
		"no delay is now":  {func(q *reconciler.Queue) { q.AddAfter("a", -1) }, []time.Duration{0}},
		"the earlier wins": {func(q *reconciler.Queue) { q.AddAfter("a", time.Hour); q.AddAfter("a", time.Minute) }, []time.Duration{time.Minute}},
		"the later yields": {func(q *reconciler.Queue) { q.AddAfter("a", time.Minute); q.AddAfter("a", time.Hour) }, []time.Duration{time.Minute}},
		"now and later":    {func(q *reconciler.Queue) { q.AddAfter("a", time.Minute); q.Add("a") }, []time.Duration{0, time.Minute}},
		"never after close": {func(q *reconciler.Queue) {
			q.AddAfter("a", time.Minute)
			q.Close()
			q.AddAfter("a", time.Second)
			q.Add("a")
		}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := reconciler.NewQueue()
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				tt.ask(q)
				var got []time.Duration
				for {
					key, ok := q.Get(ctx)
					if !ok {
						break
					}
					got = append(got, time.Since(start))
					q.Done(key)
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("came after %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestQueueLosesNothingAmongWorkers(t *testing.T) {
	t.Parallel()
	const keys, rounds = 20, 50
	q := reconciler.NewQueue()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	working, asked, served := map[string]bool{}, map[string]int{}, map[string]int{}
	var workers, askers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				key, ok := q.Get(ctx)
				if !ok {
					return
				}
				mu.Lock()
				if working[key] {
					t.Errorf("%s is worked on twice at once", key)
				}
				working[key] = true
				seen := asked[key]
				mu.Unlock()
				mu.Lock()
				working[key] = false
				served[key] = seen
				mu.Unlock()
				q.Done(key)
			}
		})
	}
	for range 2 {
		askers.Go(func() {
			for i := range keys * rounds {
				key := strconv.Itoa(i % keys)
				mu.Lock()
				asked[key]++
				mu.Unlock()
				q.Add(key)
			}
		})
	}
	askers.Wait()
	// Whatever was asked for last is served: nobody sleeps on it.
	for done := false; !done; {
		mu.Lock()
		done = true
		for key, n := range asked {
			done = done && served[key] == n
		}
		mu.Unlock()
		if !done {
			select {
			case <-t.Context().Done():
				t.Fatal("a key was lost")
			default:
				time.Sleep(time.Millisecond)
			}
		}
	}
	cancel()
	workers.Wait()
}

func take(t *testing.T, q *reconciler.Queue, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []string
	for range n {
		key, ok := q.Get(ctx)
		if !ok {
			t.Fatalf("only %v came", got)
		}
		got = append(got, key)
	}
	return got
}

// Failures are counted for a key, not for the worker that happened to try it.
func TestQueueCountsFailures(t *testing.T) {
	t.Parallel()
	q := reconciler.NewQueue()
	for _, step := range []struct {
		key    string
		failed bool
		want   int
	}{{"a", true, 1}, {"a", true, 2}, {"b", true, 1}, {"a", false, 0}, {"a", true, 1}, {"b", true, 2}} {
		if got := q.Outcome(step.key, step.failed); got != step.want {
			t.Errorf("%s, failed %t: %d in a row, want %d", step.key, step.failed, got, step.want)
		}
	}
}
