//go:build linux

package sandbox_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// BenchmarkStart measures the start of a program that ends at once, in every
// mode that this user can have, and without a sandbox. On a busy machine only
// the minimum says something: run it with -benchtime=50x or more.
func BenchmarkStart(b *testing.B) {
	measure := func(b *testing.B, start func() error) {
		least := time.Hour
		for b.Loop() {
			begun := time.Now()
			if err := start(); err != nil {
				b.Fatal(err)
			}
			least = min(least, time.Since(begun))
		}
		b.ReportMetric(float64(least.Microseconds())/1000, "min-ms")
	}
	b.Run("plain", func(b *testing.B) {
		measure(b, func() error { return exec.Command("/bin/true").Run() })
	})
	for _, mode := range sandbox.Modes() {
		slot := newSlot(b)
		s, err := sandbox.Probe(b.Context(), sandbox.Options{Mode: mode, Slot: slot, Program: program(b)})
		if err != nil {
			b.Log(err)
			continue
		}
		dir := openDir(b)
		c := sandbox.Command{
			Path: "/bin/true", Dir: "/", Slot: slot,
			Mounts: []sandbox.Mount{{Source: dir, Writable: true}, {Source: os.Args[0], Target: "/engine"}},
		}
		b.Run(string(mode), func(b *testing.B) {
			measure(b, func() error {
				_, err := s.Run(b.Context(), c)
				return err
			})
		})
	}
}
