package reconciler_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// rival claims a run between the moment when another claim has got its lock and
// that when it is recorded.
type rival struct {
	reconciler.Locker
	claim func(run string)
}

func (l *rival) Acquire(ctx context.Context, key, owner string, ttl time.Duration) error {
	err := l.Locker.Acquire(ctx, key, owner, ttl)
	if run, _, ok := strings.Cut(owner, "/"); ok && err == nil && l.claim != nil {
		claim := l.claim
		l.claim = nil
		claim(run)
	}
	return err
}

// TestLoserOfAClaimLeavesTheLock: the lock that both have taken is the winner's.
func TestLoserOfAClaimLeavesTheLock(t *testing.T) {
	t.Parallel()
	locks := &rival{Locker: lock.NewMemory()}
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")},
		func(opts *reconciler.Options) { opts.Replica.Locker = locks })
	f.look()
	locks.claim = func(run string) {
		_, err := f.store.ClaimRun(t.Context(), run, protocol.AgentRef{ID: "winner"}, f.clock.Now(), 10)
		f.must(err)
	}
	if a := f.claim(); a.Run != "" {
		t.Fatalf("the loser got %+v", a)
	}
	if holder, err := locks.Holder(t.Context(), "clusters/prod"); err != nil || !strings.HasSuffix(holder.Owner, "/1") {
		t.Errorf("the winner's lock is held by %+v, %v", holder, err)
	}
}

// refusing refuses a claim once.
type refusing struct {
	reconciler.Store
	refuse bool
}

func (s *refusing) ClaimRun(ctx context.Context, id string, agent protocol.AgentRef, now time.Time, limit int) (holdfast.Run, error) {
	if s.refuse {
		s.refuse = false
		return holdfast.Run{}, holdfast.ErrConflict
	}
	return s.Store.ClaimRun(ctx, id, agent, now, limit)
}

// letting does something when a lock of a state is about to be let go.
type letting struct {
	reconciler.Locker
	before func()
}

func (l *letting) Release(ctx context.Context, key, owner string) error {
	if do := l.before; do != nil && strings.HasPrefix(key, "clusters/") {
		l.before = nil
		do()
	}
	return l.Locker.Release(ctx, key, owner)
}

// TestFailedClaimLeavesTheNextOnesLock: a claim that fails lets its lock go after it
// has looked whose it is. Whoever claims the run in between has the same name.
func TestFailedClaimLeavesTheNextOnesLock(t *testing.T) {
	t.Parallel()
	locks, store := &letting{Locker: lock.NewMemory()}, &refusing{}
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")},
		func(opts *reconciler.Options) {
			store.Store = opts.Store
			opts.Replica.Locker, opts.Store = locks, store
		})
	f.look()
	between := false
	locks.before = func() {
		between = true
		_, err := f.r.Dispatcher().Claim(t.Context(), protocol.ClaimRequest{Agent: "another"})
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			t.Error(err)
		}
	}
	store.refuse = true
	f.claim()
	if !between {
		t.Fatal("nothing was let go")
	}
	if f.newest("prod").Status != holdfast.RunRunning {
		f.claim() // nobody is kept from it for long
	}
	if run := f.newest("prod"); run.Status != holdfast.RunRunning {
		t.Errorf("the run is %s", run.Status)
	} else if _, err := locks.Holder(t.Context(), "clusters/prod"); err != nil {
		t.Errorf("the run of %s is running without a lock: %v", run.Agent, err)
	}
}
