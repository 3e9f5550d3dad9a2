//go:build linux

package sandbox_test

import (
	"errors"
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestProbe takes the strongest mode, and the one that is asked for only.
func TestProbe(t *testing.T) {
	t.Parallel()
	works := modes(t)
	strongest := works[0]
	s, err := sandbox.Probe(t.Context(), sandbox.Options{Slot: newSlot(), Program: program(t)})
	if strongest == sandbox.ModeNone {
		if !errors.Is(err, sandbox.ErrUnavailable) {
			t.Fatalf("no isolation, and nobody asked for none: got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.Mode() != strongest {
		t.Errorf("got mode %s, want %s", s.Mode(), strongest)
	}
	for i, refused := range s.Refused() {
		if refused.Mode != sandbox.Modes()[i] || refused.Err == nil {
			t.Errorf("refused %+v", refused)
		}
	}
	if len(s.Refused()) == 0 && strongest != sandbox.ModeSlots {
		t.Error("it is not said why stronger modes do not work")
	}
	for _, mode := range sandbox.Modes() {
		s, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Slot: newSlot(), Program: program(t)})
		if err != nil {
			if !errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("%s: got %v", mode, err)
			}
			continue
		}
		if s.Mode() != mode {
			t.Errorf("asked for %s: got %s", mode, s.Mode())
		}
	}
	if _, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: "strong"}); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("a mode that is none: got %v", err)
	}
}

// TestProbeStarts has a mode that looks as if it worked, and an engine that
// cannot be started in it.
func TestProbeStarts(t *testing.T) {
	t.Parallel()
	mode := modes(t)[0]
	if _, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Slot: newSlot(), Program: "/bin/true"}); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("the start ended with another code: got %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if _, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Program: program(t)}); err == nil {
		t.Error("a mode with users works without one")
	}
}
