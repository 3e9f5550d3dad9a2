package lock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Memory is the locks and wake-ups of a single process; they end with it. It is
// safe for concurrent use.
type Memory struct {
	mu          sync.Mutex
	held        map[string]lease
	subscribers map[*subscriber]struct{}
}

// lease keeps its end on the monotonic clock, so that a clock that jumps
// neither ends nor prolongs it.
type lease struct {
	owner          string
	since, expires time.Time
}

// subscriber collects topics until its callback takes them: a slow one delays
// nobody, and holds each topic once at most.
type subscriber struct {
	pending map[string]struct{}
	wake    chan struct{}
}

// NewMemory returns a Memory in which nothing is locked.
func NewMemory() *Memory {
	return &Memory{held: map[string]lease{}, subscribers: map[*subscriber]struct{}{}}
}

// Acquire locks key for owner until ttl (at least a millisecond) has passed. It
// does not wait: a *holdfast.LockedError says who has it. Acquiring what owner
// holds already renews it.
func (m *Memory) Acquire(ctx context.Context, key, owner string, ttl time.Duration) error {
	if err := check(key, owner, ttl); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lock %q for %q: %w", key, owner, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	now := time.Now()
	l, held := m.lease(key, now)
	switch {
	case held && l.owner != owner:
		return fmt.Errorf("lock %q for %q: %w", key, owner, &holdfast.LockedError{Holder: l.holder()})
	case !held:
		l = lease{owner: owner, since: now}
	}
	l.expires = now.Add(ttl)
	m.held[key] = l
	return nil
}

// Renew makes owner's lock of key end ttl from now. It is ErrLockLost if owner
// does not hold it.
func (m *Memory) Renew(ctx context.Context, key, owner string, ttl time.Duration) error {
	if err := check(key, owner, ttl); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("renew lock %q of %q: %w", key, owner, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	now := time.Now()
	l, held := m.lease(key, now)
	if !held || l.owner != owner {
		return lost(key, owner)
	}
	l.expires = now.Add(ttl)
	m.held[key] = l
	return nil
}

// Release unlocks key if owner holds it, and does nothing else.
func (m *Memory) Release(_ context.Context, key, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[key].owner == owner {
		delete(m.held, key)
	}
	return nil
}

// Holder returns who holds key, ErrNotFound if nobody does.
func (m *Memory) Holder(_ context.Context, key string) (holdfast.LockHolder, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, held := m.lease(key, time.Now())
	if !held {
		return holdfast.LockHolder{}, fmt.Errorf("read holder of lock %q: %w", key, holdfast.ErrNotFound)
	}
	return l.holder(), nil
}

// lease returns key's lease if it has not ended, and forgets it if it has.
func (m *Memory) lease(key string, now time.Time) (lease, bool) {
	l, ok := m.held[key]
	if ok && !now.Before(l.expires) {
		delete(m.held, key)
		return lease{}, false
	}
	return l, ok
}

func (l lease) holder() holdfast.LockHolder {
	return holdfast.LockHolder{Owner: l.owner, Since: l.since.UTC(), Expires: l.expires.UTC()}
}

// Wake tells every subscriber the topic. It never waits for one.
func (m *Memory) Wake(_ context.Context, topic string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.subscribers {
		s.pending[topic] = struct{}{}
		select {
		case s.wake <- struct{}{}:
		default: // reported already
		}
	}
	return nil
}

// Subscribe calls woken with each topic, one call at a time, until ctx is done,
// and returns nil then. Topics that come again before woken took them are
// reported once.
func (m *Memory) Subscribe(ctx context.Context, woken func(topic string)) error {
	s := &subscriber{pending: map[string]struct{}{}, wake: make(chan struct{}, 1)}
	m.mu.Lock()
	m.subscribers[s] = struct{}{}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.subscribers, s)
		m.mu.Unlock()
	}()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		m.mu.Lock()
		topics := s.pending
		s.pending = map[string]struct{}{}
		m.mu.Unlock()
		for topic := range topics {
			if ctx.Err() != nil {
				return nil
			}
			woken(topic)
		}
	}
}
