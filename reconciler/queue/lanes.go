package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Lanes hand out keys as a Queue does, from a queue for each lane, with its own
// workers: a key that hangs keeps only those of its lane waiting.
type Lanes[K comparable] struct {
	lane   func(K) string
	opened *Broadcast

	mu     sync.Mutex
	byName map[string]*Queue[K]
	all    []*Queue[K] // in the order in which they were opened
	closed bool
}

// NewLanes returns lanes without keys; lane says which lane a key belongs to.
func NewLanes[K comparable](lane func(K) string) *Lanes[K] {
	return &Lanes[K]{lane: lane, opened: NewBroadcast(), byName: make(map[string]*Queue[K])}
}

// Add asks for key as soon as possible. It never blocks.
func (l *Lanes[K]) Add(key K) { l.of(key).Add(key) }

// AddAfter asks for key once delay has passed. An earlier time that was asked for
// stays.
func (l *Lanes[K]) AddAfter(key K, delay time.Duration) { l.of(key).AddAfter(key, delay) }

// Depth is the number of keys that wait, without those of later.
func (l *Lanes[K]) Depth() (depth int) {
	for _, q := range l.from(0) {
		depth += q.Depth()
	}
	return depth
}

// Busy reports whether keys wait, or any is worked on.
func (l *Lanes[K]) Busy() bool {
	for _, q := range l.from(0) {
		if q.Busy() {
			return true
		}
	}
	return false
}

// Close drops what waits and takes nothing more.
func (l *Lanes[K]) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	for _, q := range l.from(0) {
		q.Close()
	}
}

// Work calls do for each key until ctx is done, as Work does, with so many workers
// for each lane.
func (l *Lanes[K]) Work(ctx context.Context, logger *slog.Logger, workers int, do func(context.Context, K) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for served := 0; ; {
		opened := l.opened.Wait()
		for _, q := range l.from(served) {
			for range workers {
				g.Go(func() error { return Work(ctx, logger, q, do) })
			}
			served++
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return g.Wait()
		}
	}
}

// Step calls do for the next key of the first lane that has one, and returns its
// error; false if there is none.
func (l *Lanes[K]) Step(ctx context.Context, do func(context.Context, K) error) (bool, error) {
	for _, q := range l.from(0) {
		if q.Depth() > 0 {
			return true, Step(ctx, q, do)
		}
	}
	return false, nil
}

func (l *Lanes[K]) of(key K) *Queue[K] {
	name := l.lane(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byName[name]
	if q == nil {
		q = New[K]()
		if l.closed {
			q.Close()
		}
		l.byName[name] = q
		l.all = append(l.all, q)
		l.opened.Send()
	}
	return q
}

// from returns the lanes that were opened after the first n.
func (l *Lanes[K]) from(n int) []*Queue[K] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[n:len(l.all):len(l.all)]
}
