package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
	"github.com/holdfast-dev/holdfast/lock"
)

// both is what every implementation offers, as the reconciler asks for it.
type both interface {
	Acquire(ctx context.Context, key, owner string, ttl time.Duration) error
	Renew(ctx context.Context, key, owner string, ttl time.Duration) error
	Release(ctx context.Context, key, owner string) error
	Holder(ctx context.Context, key string) (holdfast.LockHolder, error)

	Wake(ctx context.Context, topic string) error
	Subscribe(ctx context.Context, woken func(topic string)) error
}

var (
	_ both = (*lock.Memory)(nil)
	_ both = (*lock.Redis)(nil)
)

func TestMemory(t *testing.T) {
	t.Parallel()
	conform(t, func(testing.TB) both { return lock.NewMemory() })
}

func TestRedis(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	conform(t, func(t testing.TB) both { return newRedis(t, server, t.Name()+":") })
}

func newRedis(t testing.TB, server *redisserver.Server, prefix string) *lock.Redis {
	t.Helper()
	return openRedis(t, lock.Options{Server: at(server), Prefix: prefix, Timeout: time.Minute})
}

// at is where a server is, with its password.
func at(server *redisserver.Server) lock.Server {
	return lock.Server{URL: server.URL(), Password: server.Password()}
}

func openRedis(t testing.TB, opts lock.Options) *lock.Redis {
	t.Helper()
	r, err := lock.NewRedis(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// conform is what the two implementations have in common.
func conform(t *testing.T, open func(testing.TB) both) {
	t.Helper()
	tests := map[string]func(*testing.T, both){
		"500 tries at once grant one":      testGrantsOnce,
		"a lock belongs to its owner":      testOwner,
		"acquiring again renews":           testAcquireAgain,
		"a lease ends by itself":           testExpiry,
		"a lost lock cannot be renewed":    testLost,
		"nobody's lock has no holder":      testNoHolder,
		"nonsense is refused":              testNonsense,
		"every subscriber is woken":        testWake,
		"a done subscription returns nil":  testUnsubscribe,
		"a canceled context is its answer": testCanceled,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func testGrantsOnce(t *testing.T, l both) {
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		granted []string
		start   = make(chan struct{})
	)
	for i := range 500 {
		wg.Go(func() {
			<-start
			owner := fmt.Sprintf("run-%d/1", i)
			switch err := l.Acquire(t.Context(), "state", owner, time.Minute); {
			case err == nil:
				mu.Lock()
				granted = append(granted, owner)
				mu.Unlock()
			case !errors.Is(err, holdfast.ErrLocked):
				t.Errorf("Acquire for %s: %v, want ErrLocked", owner, err)
			}
		})
	}
	close(start)
	wg.Wait()
	if len(granted) != 1 {
		t.Fatalf("granted to %v, want to one", granted)
	}
	holder, err := l.Holder(t.Context(), "state")
	if err != nil || holder.Owner != granted[0] {
		t.Errorf("Holder = %+v, %v, want %s", holder, err, granted[0])
	}
}

func testOwner(t *testing.T, l both) {
	ctx, before := t.Context(), time.Now()
	mustAcquire(t, l, "state", "run-1/1", time.Minute)

	err := l.Acquire(ctx, "state", "run-2/1", time.Minute)
	var locked *holdfast.LockedError
	if !errors.As(err, &locked) || locked.Holder.Owner != "run-1/1" {
		t.Fatalf("Acquire by another = %v, want a LockedError by run-1/1", err)
	}
	if since := locked.Holder.Since; since.Before(before.Add(-time.Second)) || since.After(time.Now().Add(time.Second)) {
		t.Errorf("since %s, want about %s", since, before)
	}
	if ends := locked.Holder.Expires; !ends.After(before.Add(50*time.Second)) || ends.After(time.Now().Add(time.Minute)) {
		t.Errorf("expires %s, want a minute after %s", ends, before)
	}
	if err := l.Renew(ctx, "state", "run-2/1", time.Minute); !errors.Is(err, holdfast.ErrLockLost) {
		t.Errorf("Renew by another = %v, want ErrLockLost", err)
	}
	if err := l.Release(ctx, "state", "run-2/1"); err != nil {
		t.Errorf("Release by another = %v, want nil", err)
	}
	if holder, err := l.Holder(ctx, "state"); err != nil || holder.Owner != "run-1/1" {
		t.Fatalf("Holder after another's release = %+v, %v, want run-1/1", holder, err)
	}
	if err := l.Release(ctx, "state", "run-1/1"); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, l, "state", "run-2/1", time.Minute)
	mustAcquire(t, l, "another state", "run-1/1", time.Minute)
}

func testAcquireAgain(t *testing.T, l both) {
	mustAcquire(t, l, "state", "run-1/1", time.Minute)
	first, err := l.Holder(t.Context(), "state")
	if err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, l, "state", "run-1/1", time.Hour)
	second, err := l.Holder(t.Context(), "state")
	if err != nil {
		t.Fatal(err)
	}
	if !second.Since.Equal(first.Since) {
		t.Errorf("since %s after acquiring again, want %s", second.Since, first.Since)
	}
	if !second.Expires.After(first.Expires.Add(50 * time.Minute)) {
		t.Errorf("expires %s after acquiring again for an hour, before %s", second.Expires, first.Expires)
	}
}

func testExpiry(t *testing.T, l both) {
	mustAcquire(t, l, "state", "run-1/1", 50*time.Millisecond)
	eventually(t, "the lease ended", func() bool {
		return l.Acquire(t.Context(), "state", "run-2/1", time.Minute) == nil
	})
	holder, err := l.Holder(t.Context(), "state")
	if err != nil || holder.Owner != "run-2/1" {
		t.Errorf("Holder = %+v, %v, want run-2/1", holder, err)
	}
}

func testLost(t *testing.T, l both) {
	mustAcquire(t, l, "state", "run-1/1", 20*time.Millisecond)
	eventually(t, "the lease ended", func() bool {
		_, err := l.Holder(t.Context(), "state")
		return errors.Is(err, holdfast.ErrNotFound)
	})
	if err := l.Renew(t.Context(), "state", "run-1/1", time.Minute); !errors.Is(err, holdfast.ErrLockLost) {
		t.Errorf("Renew = %v, want ErrLockLost", err)
	}
	if _, err := l.Holder(t.Context(), "state"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Holder = %v: the refused renewal took the lock", err)
	}
}

func testNoHolder(t *testing.T, l both) {
	if _, err := l.Holder(t.Context(), "state"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Holder = %v, want ErrNotFound", err)
	}
	if err := l.Release(t.Context(), "state", "run-1/1"); err != nil {
		t.Errorf("Release = %v, want nil", err)
	}
}

func testNonsense(t *testing.T, l both) {
	for name, err := range map[string]error{
		"no key":   l.Acquire(t.Context(), "", "run-1/1", time.Minute),
		"no owner": l.Acquire(t.Context(), "state", "", time.Minute),
		"no lease": l.Acquire(t.Context(), "state", "run-1/1", 0),
		"no time":  l.Renew(t.Context(), "state", "run-1/1", -time.Second),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func testWake(t *testing.T, l both) {
	one, two := subscribe(t, l), subscribe(t, l)
	for _, topics := range []<-chan string{one, two} {
		awaitTopic(t, l, topics, "repo acme/clusters")
	}
}

func testUnsubscribe(t *testing.T, l both) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Subscribe(ctx, func(string) {}) }()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Subscribe = %v, want nil", err)
	}
}

func testCanceled(t *testing.T, l both) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Acquire(ctx, "state", "run-1/1", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire = %v, want context.Canceled", err)
	}
	if err := l.Renew(ctx, "state", "run-1/1", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("Renew = %v, want context.Canceled", err)
	}
}

func mustAcquire(t *testing.T, l both, key, owner string, ttl time.Duration) {
	t.Helper()
	if err := l.Acquire(t.Context(), key, owner, ttl); err != nil {
		t.Fatal(err)
	}
}

// subscribe returns the topics that its own subscription is woken with.
func subscribe(t *testing.T, l both) <-chan string {
	t.Helper()
	topics := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.Subscribe(ctx, func(topic string) {
			select {
			case topics <- topic:
			default:
			}
		}); err != nil {
			t.Errorf("Subscribe = %v, want nil", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return topics
}

// awaitTopic wakes until topics has it: messages are hints, and the
// subscription may not stand yet.
func awaitTopic(t *testing.T, l both, topics <-chan string, topic string) {
	t.Helper()
	eventually(t, "woken with "+topic, func() bool {
		_ = l.Wake(t.Context(), topic)
		select {
		case got := <-topics:
			if got != topic {
				t.Errorf("woken with %q, want %q", got, topic)
			}
			return true
		case <-time.After(20 * time.Millisecond):
			return false
		}
	})
}

// eventually asks until ok, for a time that only a broken implementation needs.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}
