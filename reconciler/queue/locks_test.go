package queue_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// TestLocksShareNothing: whatever is held, something else can be locked.
func TestLocksShareNothing(t *testing.T) {
	t.Parallel()
	var locks queue.Locks
	all := make(chan struct{})
	go func() {
		defer close(all)
		for n := range 1000 {
			locks.Lock(holdfast.Request{Cluster: fmt.Sprint("c", n)}) // and never lets go
		}
	}()
	select {
	case <-all:
	case <-time.After(time.Minute):
		t.Fatal("locks of different clusters wait for one another")
	}
	if _, ok := locks.TryLock(holdfast.Request{Cluster: "c1"}); ok {
		t.Error("what is held was locked again")
	}
	unlock, ok := locks.TryLock(holdfast.Request{Cluster: "c1", PullRequest: holdfast.PullRequestRef{Repo: "r", Number: 1}})
	if !ok {
		t.Fatal("a pull request waits for the cluster itself")
	}
	unlock()
}

// TestLocksExclude: one at a time has the lock of a request.
func TestLocksExclude(t *testing.T) {
	t.Parallel()
	var locks queue.Locks
	counts := make([]int, 3)
	var group sync.WaitGroup
	for n := range 300 {
		group.Go(func() {
			defer locks.Lock(holdfast.Request{Cluster: fmt.Sprint(n % len(counts))})()
			counts[n%len(counts)]++
		})
	}
	group.Wait()
	for n, count := range counts {
		if count != 100 {
			t.Errorf("count %d is %d", n, count)
		}
		unlock, ok := locks.TryLock(holdfast.Request{Cluster: fmt.Sprint(n)})
		if !ok {
			t.Fatal("it is still held")
		}
		unlock()
	}
}
