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
	// worthIt is what it must have allocated since memory was last given back, and at least half
	// of what lives: a collection takes the longer the more that is.
	worthIt = 8 << 20
	// unmapEvery is how often the program is unmapped at most. Its pages come back one by one.
	unmapEvery = 10 * time.Minute
)

// GiveBack gives unused memory back each time that the process has become idle, until ctx is
// done.
func GiveBack(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	w := watch{}
	var unmapped time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !w.look(heap()) {
				continue
			}
			debug.FreeOSMemory()
			if now := time.Now(); now.Sub(unmapped) >= unmapEvery {
				unmapProgram()
				unmapped = now
			}
		}
	}
}

// heap is how many bytes the process has allocated so far, and how many of them lived at the
// last collection.
func heap() (allocated, live uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}

// watch is what was allocated at the last look, and when memory was last given back: zero
// means never, and what the start took is worth it in any case.
type watch struct{ last, given uint64 }

// look reports whether memory is to be given back now.
func (w *watch) look(allocated, live uint64) bool {
	idle := allocated-w.last <= little
	w.last = allocated
	if !idle || w.given > 0 && allocated-w.given <= max(worthIt, live/2) {
		return false
	}
	w.given = allocated
	return true
}
