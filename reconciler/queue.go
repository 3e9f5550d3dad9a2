package reconciler

import (
	"context"
	"sync"
	"time"
)

// queue hands out keys, each to one worker at a time. A key that is added while
// it waits is there once; one that is added while it is worked on comes again
// afterwards. It lives in memory: start-up and polling ask for everything anew.
type queue[K comparable] struct {
	mu      sync.Mutex
	ready   []K
	waiting map[K]bool // in ready
	working map[K]bool
	again   map[K]bool // added while worked on
	timers  map[K]*delayed
	failed  map[K]int // how often in a row, whichever worker tried
	wake    chan struct{}
	closed  bool
}

type delayed struct {
	timer *time.Timer
	due   time.Time
}

func newQueue[K comparable]() *queue[K] {
	return &queue[K]{
		waiting: make(map[K]bool),
		working: make(map[K]bool),
		again:   make(map[K]bool),
		timers:  make(map[K]*delayed),
		failed:  make(map[K]int),
		wake:    make(chan struct{}, 1),
	}
}

// add asks for key as soon as possible. It never blocks.
func (q *queue[K]) add(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addLocked(key)
}

func (q *queue[K]) addLocked(key K) {
	if q.closed || q.waiting[key] {
		return
	}
	if q.working[key] {
		q.again[key] = true
		return
	}
	q.waiting[key] = true
	q.ready = append(q.ready, key)
	q.signal()
}

// addAfter asks for key once delay has passed. An earlier time that was asked
// for stays.
func (q *queue[K]) addAfter(key K, delay time.Duration) {
	if delay <= 0 {
		q.add(key)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	due := time.Now().Add(delay)
	if old := q.timers[key]; old != nil {
		if !due.Before(old.due) {
			return
		}
		old.timer.Stop()
	}
	if q.closed {
		return
	}
	d := &delayed{due: due}
	d.timer = time.AfterFunc(delay, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.timers[key] == d {
			delete(q.timers, key)
		}
		q.addLocked(key)
	})
	q.timers[key] = d
}

// get waits for a key; false when ctx is done. The caller must call done.
func (q *queue[K]) get(ctx context.Context) (key K, ok bool) {
	for {
		q.mu.Lock()
		if len(q.ready) > 0 && ctx.Err() == nil {
			key = q.ready[0]
			q.ready = q.ready[1:]
			delete(q.waiting, key)
			q.working[key] = true
			if len(q.ready) > 0 {
				q.signal() // for the next worker
			}
			q.mu.Unlock()
			return key, true
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return key, false
		case <-q.wake:
		}
	}
}

// done says that the caller has finished with a key that it got.
func (q *queue[K]) done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, key)
	if q.again[key] {
		delete(q.again, key)
		q.addLocked(key)
	}
}

// outcome records whether the work on a key failed, and returns how often it
// has in a row.
func (q *queue[K]) outcome(key K, failed bool) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !failed {
		delete(q.failed, key)
		return 0
	}
	q.failed[key]++
	return q.failed[key]
}

// depth is the number of keys that wait, without those of later.
func (q *queue[K]) depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ready)
}

// close drops what waits and takes nothing more.
func (q *queue[K]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, d := range q.timers {
		d.timer.Stop()
	}
	q.ready, q.waiting, q.timers = nil, make(map[K]bool), make(map[K]*delayed)
}

func (q *queue[K]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
