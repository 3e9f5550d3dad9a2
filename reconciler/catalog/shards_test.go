package catalog_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// TestShardsAreMaps holds copies of copies to what maps would have.
func TestShardsAreMaps(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	type pair struct {
		got  *catalog.Shards
		want map[string]int
	}
	pairs := []pair{{catalog.NewShards(), map[string]int{}}}
	for i := range 20_000 {
		p := pairs[rnd.IntN(len(pairs))]
		key := fmt.Sprint("cluster-", rnd.IntN(2000))
		switch rnd.IntN(10) {
		case 0:
			p.got.Remove(key)
			delete(p.want, key)
		case 1:
			if len(pairs) < 12 {
				pairs = append(pairs, pair{p.got.Copied(), maps.Clone(p.want)})
			}
		default:
			p.got.Set(key, i)
			p.want[key] = i
		}
		if got := p.got.Get(key); got != p.want[key] {
			t.Fatalf("%s is %d, want %d", key, got, p.want[key])
		}
	}
	for i, p := range pairs {
		if diff := cmp.Diff(p.want, maps.Collect(p.got.All())); diff != "" || p.got.Len() != len(p.want) {
			t.Errorf("copy %d has %d of %d pairs (-want +got):\n%s", i, p.got.Len(), len(p.want), diff)
		}
	}
}

// TestShardsAreReadWhileCopiesAreWritten is for the race detector.
func TestShardsAreReadWhileCopiesAreWritten(t *testing.T) {
	t.Parallel()
	base := catalog.NewShards()
	for i := range 1000 {
		base.Set(fmt.Sprint(i), i)
	}
	base.Freeze()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			mine := *base
			for i := range 1000 {
				mine.Set(fmt.Sprint(i), -i)
				if got := base.Get(fmt.Sprint(i)); got != i {
					t.Errorf("%d has become %d", i, got)
				}
			}
		})
	}
	wg.Wait()
}
