package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

func TestQueueHandsOutAKeyOnce(t *testing.T) {
	t.Parallel()
	q := queue.New[string]()
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
	q := queue.New[string]()
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
		ask  func(*queue.Queue[string])
		want []time.Duration // when the key comes
	}{
		"later":            {func(q *queue.Queue[string]) { q.AddAfter("a", time.Minute) }, []time.Duration{time.Minute}},
		"no delay is now":  {func(q *queue.Queue[string]) { q.AddAfter("a", -1) }, []time.Duration{0}},
		"the earlier wins": {func(q *queue.Queue[string]) { q.AddAfter("a", time.Hour); q.AddAfter("a", time.Minute) }, []time.Duration{time.Minute}},
		"the later yields": {func(q *queue.Queue[string]) { q.AddAfter("a", time.Minute); q.AddAfter("a", time.Hour) }, []time.Duration{time.Minute}},
		"now and later":    {func(q *queue.Queue[string]) { q.AddAfter("a", time.Minute); q.Add("a") }, []time.Duration{0, time.Minute}},
		"never after close": {func(q *queue.Queue[string]) {
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
				q := queue.New[string]()
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
	q := queue.New[string]()
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

func take(t *testing.T, q *queue.Queue[string], n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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
	q := queue.New[string]()
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

// What a code host does not listen to for a moment is done right after that moment,
// however often it says so; what fails is tried later each time.
// Who asks for a key all the time does not make it wait longer and longer.
func TestATryBeforeItsTimeDoesNotCount(t *testing.T) {
	t.Parallel()
	q := queue.New[string]()
	defer q.Close()
	for _, want := range []int{1, 1, 1} {
		if got := q.Outcome("a", true); got != want {
			t.Errorf("it has failed %d times, want %d", got, want)
		}
		q.AddAfter("a", time.Hour)
	}
	if got := q.Outcome("b", true) + q.Outcome("b", true); got != 1+2 {
		t.Errorf("one that nobody asks for has failed %d times, want 3", got)
	}
}

func TestWorkThatFailsComesAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fail func() error
		want time.Duration // until the sixth attempt
	}{
		"rate limits":          {func() error { return &holdfast.RateLimitError{Wait: 3 * time.Second} }, 15 * time.Second},
		"a limit that is over": {func() error { return &holdfast.RateLimitError{} }, 5 * time.Second},
		"failures":             {func() error { return holdfast.ErrUnavailable }, 62 * time.Second},
		"conflicts":            {func() error { return holdfast.ErrConflict }, 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				q, begun, attempts := queue.New[string](), time.Now(), 0
				q.Add("a")
				_ = queue.Work(ctx, slog.New(slog.DiscardHandler), q, func(context.Context, string) error {
					if attempts++; attempts == 6 {
						stop()
						return nil
					}
					return fmt.Errorf("ask: %w", tc.fail())
				})
				if took := time.Since(begun); took != tc.want {
					t.Errorf("the sixth attempt came after %s, want %s", took, tc.want)
				}
			})
		})
	}
}

// TestConflictsInARow: a record that is another one at each try is a failure that the log has.
func TestConflictsInARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var log bytes.Buffer
		q, begun, attempts := queue.New[string](), time.Now(), 0
		q.Add("a")
		_ = queue.Work(ctx, slog.New(slog.NewTextHandler(&log, nil)), q, func(context.Context, string) error {
			if attempts++; attempts == 23 {
				stop()
				return nil
			}
			return holdfast.ErrConflict
		})
		if took := time.Since(begun); took != 20*50*time.Millisecond+2*time.Second+4*time.Second {
			t.Errorf("the 23rd attempt came after %s", took)
		}
		if lines := strings.Count(log.String(), "level=ERROR"); lines != 2 {
			t.Errorf("the log has it %d times, want twice:\n%s", lines, log.String())
		}
	})
}

func TestQueueLetsThePatientWait(t *testing.T) {
	t.Parallel()
	q := queue.New[string]()
	for _, key := range []string{"a", "b", "c", "d", "a"} {
		q.AddPatient(key)
	}
	q.Add("x")
	q.Add("c") // is in a hurry now
	if got := take(t, q, 2); !slices.Equal(got, []string{"x", "c"}) {
		t.Fatalf("got %v first, want x and c", got)
	}
	if got := take(t, q, 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("got %v then, want a and b", got)
	}
	if q.Depth() != 1 {
		t.Errorf("%d keys are left, want d", q.Depth())
	}
	// Two patient ones are worked on: the next has to wait, what comes has not.
	q.Add("y")
	if got := take(t, q, 1); !slices.Equal(got, []string{"y"}) {
		t.Fatalf("got %v, want y", got)
	}
	q.AddPatient("c") // while it is worked on: it comes again
	q.Done("a")
	if got := take(t, q, 1); !slices.Equal(got, []string{"d"}) {
		t.Fatalf("got %v, want d", got)
	}
	q.Done("c")
	if got := take(t, q, 1); !slices.Equal(got, []string{"c"}) {
		t.Fatalf("got %v, want c again", got)
	}
	q.Done("b")
	q.Done("c")
	q.Done("d")
	q.AddPatient("e")
	var want []string
	for i := range 20 {
		key := fmt.Sprint("hurried-", i)
		q.Add(key)
		if want = append(want, key); i == 14 {
			want = append(want, "e") // it was passed over often enough
		}
	}
	if got := take(t, q, 21); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	q.AddPatient("f")
	q.Close()
	if q.Depth() != 0 {
		t.Errorf("%d keys are left after the end", q.Depth())
	}
}
