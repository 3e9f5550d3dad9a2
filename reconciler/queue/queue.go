package queue

import (
	"context"
	"sync"
	"time"
)

// Queue hands out keys, each to one worker at a time. A key that is added while
// it waits is there once; one that is added while it is worked on comes again
// afterwards. It lives in memory: start-up and polling ask for everything again.
//
// What start-up, or a change of a template, asks for may be the whole fleet: it is
// patient, waits until there is nothing else to hand out (or was passed over often
// enough), and leaves workers free for what comes meanwhile.
type Queue[K comparable] struct {
	mu      sync.Mutex
	ready   []K
	patient []K        // some may no longer be in patience
	waiting map[K]bool // in ready
	idle    map[K]bool // in patient
	slow    map[K]bool // worked on, and was patient
	passed  int        // how often in a row a patient one was passed over
	working map[K]bool
	again   map[K]bool // added while worked on
	timers  map[K]*delayed
	failed  map[K]int // how often in a row, whichever worker tried
	wake    chan struct{}
	closed  bool
}

// slowAtOnce is how many patient keys are worked on at once.
const slowAtOnce = 2

// passedMost is how often patient keys are passed over in a row: they wait long, but
// not forever.
const passedMost = 15

type delayed struct {
	timer *time.Timer
	due   time.Time
}

// New returns an empty queue.
func New[K comparable]() *Queue[K] {
	return &Queue[K]{
		waiting: make(map[K]bool),
		idle:    make(map[K]bool),
		slow:    make(map[K]bool),
		working: make(map[K]bool),
		again:   make(map[K]bool),
		timers:  make(map[K]*delayed),
		failed:  make(map[K]int),
		wake:    make(chan struct{}, 1),
	}
}

// Add asks for key as soon as possible. It never blocks.
func (q *Queue[K]) Add(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addLocked(key)
}

func (q *Queue[K]) addLocked(key K) {
	if q.closed || q.waiting[key] {
		return
	}
	if q.working[key] {
		q.again[key] = true
		return
	}
	delete(q.idle, key)
	q.waiting[key] = true
	q.ready = append(q.ready, key)
	q.signal()
}

// AddPatient asks for key when there is time for it.
func (q *Queue[K]) AddPatient(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed || q.waiting[key] || q.idle[key]:
	case q.working[key]:
		q.again[key] = true
	default:
		q.idle[key] = true
		q.patient = append(q.patient, key)
		q.signal()
	}
}

// AddAfter asks for key once delay has passed. An earlier time that was asked
// for stays.
func (q *Queue[K]) AddAfter(key K, delay time.Duration) {
	if delay <= 0 {
		q.Add(key)
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

// Get waits for a key; false when ctx is done. The caller must call Done.
func (q *Queue[K]) Get(ctx context.Context) (key K, ok bool) {
	for {
		q.mu.Lock()
		if ctx.Err() == nil {
			key, ok = q.next()
		}
		q.mu.Unlock()
		if ok {
			return key, true
		}
		select {
		case <-ctx.Done():
			return key, false
		case <-q.wake:
		}
	}
}

// next takes the next key, if there is one to be worked on now.
func (q *Queue[K]) next() (key K, ok bool) {
	patient := len(q.idle) > 0 && len(q.slow) < slowAtOnce
	switch {
	case len(q.ready) > 0 && (!patient || q.passed < passedMost):
		key, q.ready = q.ready[0], q.ready[1:]
		delete(q.waiting, key)
		if patient {
			q.passed++
		}
	case patient:
		for !q.idle[key] {
			key, q.patient = q.patient[0], q.patient[1:]
		}
		delete(q.idle, key)
		q.slow[key], q.passed = true, 0
	default:
		return key, false
	}
	q.working[key] = true
	if len(q.ready)+len(q.idle) > 0 {
		q.signal() // for the next worker
	}
	return key, true
}

// Done reports that the caller has finished with a key that it got.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, key)
	delete(q.slow, key)
	if len(q.idle) > 0 {
		q.signal()
	}
	if q.again[key] {
		delete(q.again, key)
		q.addLocked(key)
	}
}

// Outcome records whether the work on a key failed, and returns how often it has in a
// row. A try that was asked for before the next one was due does not count: polls every
// second would otherwise raise an unrelated wait to its maximum within ten.
func (q *Queue[K]) Outcome(key K, failed bool) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !failed {
		delete(q.failed, key)
		return 0
	}
	if early := q.timers[key] != nil; !early || q.failed[key] == 0 {
		q.failed[key]++
	}
	return q.failed[key]
}

// Depth is the number of keys that wait, without those of later.
func (q *Queue[K]) Depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ready) + len(q.idle)
}

// Busy reports whether keys wait that are not patient, or any is worked on.
func (q *Queue[K]) Busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ready)+len(q.working) > 0
}

// Close drops what waits and takes nothing more.
func (q *Queue[K]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, d := range q.timers {
		d.timer.Stop()
	}
	q.ready, q.waiting, q.timers = nil, make(map[K]bool), make(map[K]*delayed)
	q.patient, q.idle = nil, make(map[K]bool)
}

func (q *Queue[K]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
