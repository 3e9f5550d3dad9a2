package reconciler_test

import (
	"testing"
	"time"
)

// TestReplicaFromTheFuture: the word of a replica whose clock is wrong holds a
// cloud back no longer than any other.
func TestReplicaFromTheFuture(t *testing.T) {
	t.Parallel()
	c := newCloud()
	c.Told("aws", noon.Add(40*24*time.Hour))
	c.pass(time.Hour)
	if !c.Admits("aws", "run-1") {
		t.Errorf("an hour later it is held until %s", c.Until("aws"))
	}
}
