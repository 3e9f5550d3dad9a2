// Package freeusers has numbers of users for engines that tests start. Whoever ends an
// engine may end all that its user has, so no other test has the same ones, not in another
// process either: several suites can run on one machine.
package freeusers

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// Blocks of users, far from those of people and services. They end below 2³¹, as some
// programs read numbers of users as signed ones.
const (
	first  = 1_000_000
	blocks = 200_000
	each   = 10_000
)

// block is what this process has taken last.
var block struct {
	sync.Mutex
	next, left int
}

// Of returns the first of count users, and groups of the same numbers, that nobody else is
// given as long as this process lives.
func Of(t testing.TB, count int) int {
	t.Helper()
	if count > each {
		t.Fatalf("there are blocks of %d users, not of %d", each, count)
	}
	block.Lock()
	defer block.Unlock()
	if count > block.left {
		block.next, block.left = first+each*takeBlock(t), each
	}
	user := block.next
	block.next, block.left = user+count, block.left-count
	return user
}

// takeBlock takes a block that no process has, beginning where no other one begins.
func takeBlock(t testing.TB) int {
	t.Helper()
	at := os.Getpid() % blocks
	for range blocks {
		if take(t, fmt.Sprintf("block/%d", at)) {
			return at
		}
		at = (at + 1) % blocks
	}
	t.Fatal("other processes have all users")
	return 0
}

// Within returns one of the users from first to last, for tests of rules that name users.
func Within(t testing.TB, first, last int) int {
	t.Helper()
	for user := first; user <= last; user++ {
		if take(t, fmt.Sprintf("user/%d", user)) {
			return user
		}
	}
	t.Fatalf("other processes have all users from %d to %d", first, last)
	return 0
}
