package reconciler_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// BenchmarkUnrelatedPush takes in a push that no open pull request has to do with, and
// works off everything that follows from it, beside more and more open pull requests.
// cpu-ms/op is what the process has used of its processors.
func BenchmarkUnrelatedPush(b *testing.B) {
	for _, open := range []int{15, 120, 1000} {
		b.Run(fmt.Sprintf("open=%d", open), func(b *testing.B) {
			files := map[string]string{}
			for n := range open + 1 {
				name := fmt.Sprintf("c%04d", n)
				files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
			}
			f := newFleet(b, files, withoutTemplates)
			f.adopt()
			for n := 1; n <= open; n++ {
				f.open(n, map[string]string{fmt.Sprintf("infra/c%04d/main.tf", n): module("two")})
			}
			f.executeAll(planned)
			var used time.Duration
			pushes := 0
			for b.Loop() {
				b.StopTimer()
				pushes++
				f.repo.Commit(master, "unrelated", map[string]string{"infra/c0000/main.tf": module(fmt.Sprint("push ", pushes))})
				before := cpuUsed(b)
				b.StartTimer()
				f.look()
				used += cpuUsed(b) - before
			}
			b.ReportMetric(float64(used.Milliseconds())/float64(pushes), "cpu-ms/op")
		})
	}
}

func cpuUsed(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
