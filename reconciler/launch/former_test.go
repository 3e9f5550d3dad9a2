package launch_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/launch"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// A start that failed half-way is made again, and so is one in the middle of which somebody has
// died, although there is something by then: a Job without its Secret would wait forever.
func TestHalfAStart(t *testing.T) {
	t.Parallel()
	t.Run("it has failed", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStage("run-1")
			s.half = true
			l := launcher(t, s)
			look(t, l, 3*time.Second)
			if s.noted["run-1"] != string(holdfast.CauseRunnerUnreachable) {
				t.Errorf("it says %q", s.noted["run-1"])
			}
			s.half = false
			before := len(s.starts)
			look(t, l, time.Minute)
			if len(s.starts) != before+1 || s.noted["run-1"] != "" || len(s.ended) > 0 {
				t.Errorf("%d starts, it says %q, ended %v", len(s.starts)-before, s.noted["run-1"], s.ended)
			}
		})
	})
	t.Run("somebody has died", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStage()
			for _, run := range []string{"run-half", "run-begun"} {
				s.running(run, false)
				s.is(protocol.Launched{Run: run, Begun: run == "run-begun"})
			}
			look(t, launcher(t, s), 2*time.Minute)
			if !slices.Equal(s.starts, []string{"run-half"}) {
				t.Errorf("started were %v", s.starts)
			}
		})
	})
}

// What does not end at once is not asked to end with each look.
func TestLeftOverThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.stubborn = true
		s.is(protocol.Launched{Run: "run-left", Begun: true})
		look(t, launcher(t, s), 2*time.Minute)
		if n := len(s.stopped); n < 2 || n > 4 {
			t.Errorf("it was stopped %d times", n)
		}
	})
}

// afterMove is a launcher of a runner that was elsewhere before.
func afterMove(t *testing.T, here, before *stage) *launch.Launcher {
	t.Helper()
	l, err := launch.New(launch.Options{
		Runner: runnerspec.Runner{Name: "east"}, Jobs: here, Former: []launch.Jobs{before}, Dispatcher: here, Runs: here,
		Settings: launch.Settings{Replica: "one", Start: 10 * time.Minute, Timeout: time.Hour, Grace: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Whatever a runner has started where it was before is settled as any other: what starts there
// is not started again, what has died there is dead, what is left over there is stopped, and new
// things are started where the runner is now.
func TestFormerPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, before := newStage("run-new"), newStage()
		here.running("run-starting", false)
		before.is(protocol.Launched{Run: "run-starting"})
		here.running("run-dead", true)
		before.is(protocol.Launched{Run: "run-dead", Over: true, Dead: true, Host: "pod-1", Reason: holdfast.CauseOutOfMemory})
		here.running("run-lives", true) // what was started here too was refused its ticket, and has ended
		before.is(protocol.Launched{Run: "run-lives", Begun: true, Host: "pod-1"})
		here.is(protocol.Launched{Run: "run-lives", Over: true, Dead: true, Host: "pod-2"})
		before.is(protocol.Launched{Run: "run-left", Begun: true})
		look(t, afterMove(t, here, before), 2*time.Minute)
		if !slices.Equal(here.starts, []string{"run-new"}) || len(before.starts) > 0 {
			t.Errorf("started were %v, and %v before", here.starts, before.starts)
		}
		if !slices.Equal(here.ended, []string{"run-dead dead OutOfMemory"}) {
			t.Errorf("ended %v", here.ended)
		}
		if !slices.Equal(before.stopped, []string{"run-left"}) {
			t.Errorf("stopped %v", before.stopped)
		}
		here.canceled["run-starting"] = true
		look(t, afterMove(t, here, before), 0)
		if !slices.Contains(before.stopped, "run-starting") {
			t.Errorf("what is canceled goes on: stopped %v", before.stopped)
		}
	})
}

// As long as a former place cannot be asked, nothing is started that may be there: in the end it is
// given up and tried again, with another ticket. What is claimed now cannot be there.
func TestFormerPlaceThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]error{
		"not yet":    &protocol.LaunchError{Err: errors.New("x")},
		"not at all": &protocol.LaunchError{Reason: holdfast.CauseRunnerForbidden, Err: errors.New("x")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				here, before := newStage(), newStage()
				here.running("run-1", false)
				before.asked = asked
				l := afterMove(t, here, before)
				look(t, l, time.Minute)
				here.queued = []string{"run-2"}
				look(t, l, time.Minute)
				if !slices.Equal(here.starts, []string{"run-2"}) || len(here.ended) > 0 {
					t.Errorf("started %v, ended %v", here.starts, here.ended)
				}
				here.is(protocol.Launched{Run: "run-2", Begun: true})
				before.asked = nil
				look(t, l, time.Second)
				if !slices.Equal(here.starts, []string{"run-2", "run-1"}) {
					t.Errorf("once it is asked, started are %v", here.starts)
				}
			})
		})
	}
}
