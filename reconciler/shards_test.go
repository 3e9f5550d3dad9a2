package reconciler_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/reconciler"
)

// TestShardsAreMaps holds copies of copies to what maps would have.
func TestShardsAreMaps(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	type pair struct {
		got  *reconciler.Shards
		want map[string]int
	}
	pairs := []pair{{reconciler.NewShards(), map[string]int{}}}
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
	base := reconciler.NewShards()
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

func TestQueueLetsThePatientWait(t *testing.T) {
	t.Parallel()
	q := reconciler.NewQueue()
	for _, key := range []string{"a", "b", "c", "d", "a"} {
		q.AddPatient(key)
	}
	q.Add("x")
	q.Add("c") // is in a hurry now
	if got := take(t, q, 2); !slices.Equal(got, []string{"x", "c"}) {
		t.Fatalf("got %v first, want x and c", got)
	}
	if got := take(t, q, 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("got %v then, want a and b", got)
	}
	if q.Depth() != 1 {
		t.Errorf("%d keys are left, want d", q.Depth())
	}
	// Two patient ones are worked on: the next has to wait, what comes has not.
	q.Add("y")
	if got := take(t, q, 1); !slices.Equal(got, []string{"y"}) {
		t.Fatalf("got %v, want y", got)
	}
	q.AddPatient("c") // while it is worked on: it comes again
	q.Done("a")
	if got := take(t, q, 1); !slices.Equal(got, []string{"d"}) {
		t.Fatalf("got %v, want d", got)
	}
	q.Done("c")
	if got := take(t, q, 1); !slices.Equal(got, []string{"c"}) {
		t.Fatalf("got %v, want c again", got)
	}
	q.Done("b")
	q.Done("c")
	q.Done("d")
	q.AddPatient("e")
	var want []string
	for i := range 20 {
		key := fmt.Sprint("hurried-", i)
		q.Add(key)
		if want = append(want, key); i == 14 {
			want = append(want, "e") // it was passed over often enough
		}
	}
	if got := take(t, q, 21); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	q.AddPatient("f")
	q.Close()
	if q.Depth() != 0 {
		t.Errorf("%d keys are left after the end", q.Depth())
	}
}
