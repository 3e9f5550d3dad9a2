package gitsource_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkFetchBesideBranches fetches one commit next to more and more branches that stay
// where they are. cpu-ms/op is what the process has used of its processors.
func BenchmarkFetchBesideBranches(b *testing.B) {
	for _, branches := range []int{15, 1000} {
		b.Run(fmt.Sprintf("branches=%d", branches), func(b *testing.B) {
			_, repo, s := served(b)
			base := repo.Commit("main", "first", map[string]string{"a.yaml": "1"})
			for i := range branches {
				head := repo.CommitOn(fmt.Sprintf("open-%d", i), base, "change", map[string]string{fmt.Sprintf("%d.yaml", i): "2"})
				repo.SetPullRequest(i+1, head, "")
			}
			fetch(b, s)
			for i := range branches {
				if _, err := s.FetchPullRequest(b.Context(), repoName, i+1); err != nil {
					b.Fatal(err)
				}
			}
			var used time.Duration
			pushes := 0
			for b.Loop() {
				b.StopTimer()
				pushes++
				repo.Commit("main", "push", map[string]string{"a.yaml": fmt.Sprint("push ", pushes)})
				before := cpuUsed(b)
				b.StartTimer()
				fetch(b, s)
				used += cpuUsed(b) - before
			}
			b.ReportMetric(used.Seconds()*1000/float64(pushes), "cpu-ms/op")
		})
	}
}

func cpuUsed(b *testing.B) time.Duration {
	b.Helper()
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}
