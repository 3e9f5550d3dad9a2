package datastore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
)

func BenchmarkCreateRun(b *testing.B) {
	store := openSQLite(b)
	for i := 0; b.Loop(); i++ {
		create(b, store, newRun(i))
	}
}

// BenchmarkClaimRun claims and ends runs beside thousands that have ended and
// thousands that wait.
func BenchmarkClaimRun(b *testing.B) {
	for _, history := range []int{0, 5000} {
		b.Run(fmt.Sprint("history=", history), func(b *testing.B) {
			store := openSQLite(b)
			fill(b, store, history)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				create(b, store, newRun(100_000+i))
				b.StartTimer()
				run := must[[]holdfast.Run](b)(store.Claimable(b.Context(), holdfast.ClaimFilter{Now: noon, Limit: 1}))[0]
				run = must[holdfast.Run](b)(store.ClaimRun(b.Context(), run.ID, "agent", noon, 10))
				end(b, store, run, holdfast.RunPlanned)
			}
		})
	}
}

// fill stores n runs that have ended and as many that wait.
func fill(b *testing.B, store *datastore.Store, n int) {
	b.Helper()
	for i := range n {
		run := newRun(i)
		run.Status = holdfast.RunPlanned
		waiting := newRun(n + i)
		waiting.Status = holdfast.RunWaiting
		create(b, store, run, waiting)
	}
}

func BenchmarkClusters(b *testing.B) {
	store := openSQLite(b)
	const count = 10_000
	for i := range count {
		document := holdfast.Cluster{
			Name: fmt.Sprintf("cluster-%05d", i), Project: "p", Environment: fmt.Sprint("e", i%100),
			Labels:    map[string]string{"team": fmt.Sprint("t", i%100)},
			Variables: map[string]any{"node_count": 3, "text": strings.Repeat("x", 200)},
		}
		record := holdfast.ClusterRecord{
			Name: document.Name, Owner: "fleet", Desired: holdfast.Desired{Document: document}, Applied: holdfast.Applied{Document: document},
		}
		must[holdfast.ClusterRecord](b)(store.SaveCluster(b.Context(), record))
	}
	for name, filter := range map[string]holdfast.ClusterFilter{
		"all":         {},
		"environment": {Environment: "e7"},
		"label":       {Labels: map[string]string{"team": "t7"}},
		"waiting":     {Waiting: "*"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must[[]holdfast.ClusterRecord](b)(store.Clusters(b.Context(), filter))
			}
		})
	}
}

func BenchmarkAppendLog(b *testing.B) {
	store := openSQLite(b)
	run := claim(b, store, newRun(1))
	line := []byte(strings.Repeat("x", 200) + "\n")
	var offset int64
	for b.Loop() {
		offset = must[int64](b)(store.AppendLog(b.Context(), run.Ref(), offset, line))
	}
}
