//go:build !linux

package freeusers

import (
	"sync"
	"testing"
)

var taken sync.Map // names of this process; where engines have no users of their own, nobody ends another's

func take(t testing.TB, name string) bool {
	t.Helper()
	_, had := taken.LoadOrStore(name, true)
	return !had
}
