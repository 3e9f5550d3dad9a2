package reconciler_test

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkPullRequest plans a pull request and applies its merge, by an agent that executes
// nothing. The metrics are what the process has used of its processors for each cluster: in
// a large pull request it is to be what it is in a small one.
func BenchmarkPullRequest(b *testing.B) {
	for _, n := range []int{10, 100, 500} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			files := twoClusters()
			for i := range n {
				name := fmt.Sprintf("c-%03d", i)
				files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
			}
			f := newFleet(b, files, withoutTemplates)
			f.adopt()
			var planning, applying time.Duration
			rounds := 0
			for b.Loop() {
				rounds++
				change := make(map[string]string, n)
				for i := range n {
					change[fmt.Sprintf("infra/c-%03d/main.tf", i)] = module(fmt.Sprint("round ", rounds))
				}
				began := cpuUsed(b)
				f.open(rounds, change)
				f.executeAll(good)
				planned := cpuUsed(b)
				f.merge(rounds, byMerge)
				f.executeAll(good)
				planning, applying = planning+planned-began, applying+cpuUsed(b)-planned
			}
			each := float64(n * rounds * int(time.Millisecond))
			b.ReportMetric(float64(planning)/each, "plan-cpu-ms/cluster")
			b.ReportMetric(float64(applying)/each, "apply-cpu-ms/cluster")
		})
	}
}
