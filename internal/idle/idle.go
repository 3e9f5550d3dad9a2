package idle

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// every is how often is looked.
	every = 2 * time.Second
	// little is what a process allocates between two looks, in bytes, that only waits.
	little = 512 << 10
	// worthIt is what it must have allocated since memory was last given back: a collection
	// takes milliseconds.
	worthIt = 8 << 20
)

// GiveBack gives unused memory back each time that the process has become idle, until ctx is
// done.
func GiveBack(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	w := watch{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if w.look(allocated()) {
				debug.FreeOSMemory()
			}
		}
	}
}

// allocated is how many bytes the process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watch is what was allocated at the last look, and when memory was last given back.
type watch struct{ last, given uint64 }

// look reports whether memory is to be given back now.
func (w *watch) look(allocated uint64) bool {
	idle := allocated-w.last <= little
	w.last = allocated
	if !idle || allocated-w.given <= worthIt {
		return false
	}
	w.given = allocated
	return true
}
