package reconciler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkStart takes in a repository in which nothing has changed since a former process, as
// each start does: until then the server is not ready. What one cluster costs is to be the
// same in large repositories.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{200, 2000} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			files := map[string]string{"infra/all/main.tf": module("one")}
			for i := range n {
				name := fmt.Sprintf("c%04d", i)
				files["clusters/"+name+".yaml"] = strings.Replace(document(name), "infra/"+name, "infra/all", 1)
			}
			f := newFleet(b, files, withoutTemplates)
			f.must(f.r.TakeIn(b.Context(), infra, 0))
			var used time.Duration
			starts := 0
			for b.Loop() {
				b.StopTimer()
				f.restart()
				starts++
				before := cpuUsed(b)
				b.StartTimer()
				f.must(f.r.TakeIn(b.Context(), infra, 0))
				used += cpuUsed(b) - before
			}
			b.ReportMetric(float64(used.Microseconds())/float64(starts*n), "cpu-us/cluster")
		})
	}
}
