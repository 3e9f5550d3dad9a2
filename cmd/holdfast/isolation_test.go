package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestWeakestAcceptableMode: modes are tried strong ones first, none that is weaker than
// the one that is wanted, and none at all only for whoever asks for that.
func TestWeakestAcceptableMode(t *testing.T) {
	t.Parallel()
	all := sandbox.Modes()
	for name, test := range map[string]struct {
		wanted string
		works  sandbox.Mode // and the weaker ones do as well
		tried  []sandbox.Mode
		ok     bool
	}{
		"the strongest works":                {"auto", all[0], all[:1], true},
		"the strongest of those that work":   {"auto", sandbox.ModeLandlock, all[:4], true},
		"nothing but none works":             {"auto", sandbox.ModeNone, all[:5], false},
		"the weakest acceptable works":       {"user-namespace", sandbox.ModeUserNamespace, all[:3], true},
		"a stronger one works":               {"users", sandbox.ModeRange, all[:2], true},
		"only one that is too weak works":    {"user-namespace", sandbox.ModeLandlock, all[:3], false},
		"the strongest is wanted, and fails": {"slots", sandbox.ModeRange, all[:1], false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tried []sandbox.Mode
			works, found := false, &sandbox.Starter{}
			starter, err := strongest(test.wanted, func(mode sandbox.Mode) (*sandbox.Starter, error) {
				tried = append(tried, mode)
				if works = works || mode == test.works; works {
					return found, nil
				}
				return nil, fmt.Errorf("%w: %s", sandbox.ErrUnavailable, mode)
			})
			if diff := cmp.Diff(test.tried, tried); diff != "" {
				t.Errorf("tried (-want +got):\n%s", diff)
			}
			if test.ok && (starter != found || err != nil) || !test.ok && !errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("got %v, %v", starter, err)
			}
		})
	}
	broken := errors.New("it cannot be found out")
	if _, err := strongest("auto", func(sandbox.Mode) (*sandbox.Starter, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// Where nothing counts a run's processes, the limit of them is not passed over in silence.
func TestLimitsWithoutGroups(t *testing.T) {
	t.Parallel()
	for _, mode := range sandbox.Modes() {
		ignored := mode == sandbox.ModeLandlock || mode == sandbox.ModeNone
		if got := withoutGroups(mode); strings.Contains(got, "the number of processes") != ignored {
			t.Errorf("%s: %q, want it to name processes: %t", mode, got, ignored)
		}
	}
}

// An agent that isolates nothing does not say in its log that it does.
func TestNoIsolationIsAWarning(t *testing.T) {
	t.Parallel()
	log := &strings.Builder{}
	_, mode, err := isolationFlags{wanted: "none"}.open(t.Context(), &slotUsers{count: 1}, nil, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil || mode != protocol.IsolationNone {
		t.Fatalf("mode %q, %v", mode, err)
	}
	if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "engines are not isolated") || strings.Contains(got, "mode=") {
		t.Errorf("its log says %q", got)
	}
}
