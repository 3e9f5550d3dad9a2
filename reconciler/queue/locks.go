package queue

import (
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// Locks has a lock for each request, which no other one shares: the holder of one may
// wait for a code host, and only requests for the same wait for it. The zero value is
// unlocked.
type Locks struct {
	mu    sync.Mutex
	taken map[holdfast.Request]*takenLock
}

// takenLock is a lock that somebody holds or waits for.
type takenLock struct {
	one   chan struct{} // has room for whoever holds it
	users int
}

// Lock locks what a request names.
func (l *Locks) Lock(req holdfast.Request) (unlock func()) {
	lock := l.use(req)
	lock.one <- struct{}{}
	return func() { l.release(req, lock) }
}

// TryLock is Lock for whoever has something else to do if somebody holds it.
func (l *Locks) TryLock(req holdfast.Request) (unlock func(), ok bool) {
	lock := l.use(req)
	select {
	case lock.one <- struct{}{}:
		return func() { l.release(req, lock) }, true
	default:
		l.leave(req, lock)
		return nil, false
	}
}

func (l *Locks) use(req holdfast.Request) *takenLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock := l.taken[req]
	if lock == nil {
		if l.taken == nil {
			l.taken = make(map[holdfast.Request]*takenLock)
		}
		lock = &takenLock{one: make(chan struct{}, 1)}
		l.taken[req] = lock
	}
	lock.users++
	return lock
}

func (l *Locks) release(req holdfast.Request, lock *takenLock) {
	<-lock.one
	l.leave(req, lock)
}

func (l *Locks) leave(req holdfast.Request, lock *takenLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lock.users--; lock.users == 0 {
		delete(l.taken, req)
	}
}
