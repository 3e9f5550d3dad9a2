package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// TestBackendAwayAfterApply: an apply that has failed is not held up by a backend that
// does not answer when its state is to be listed.
func TestBackendAwayAfterApply(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a backend")
	}
	e, calls := engineExecutor(t, func(o *runner.ExecutorOptions) {
		// Long enough for the engine to start on a busy machine.
		o.Waits.Grace, o.Waits.Left = 200*time.Millisecond, 10*time.Second
	})
	dir := t.TempDir()
	answers, ready, on := filepath.Join(dir, "answers"), filepath.Join(dir, "ready"), filepath.Join(dir, "go")
	writeMark(t, answers)
	s := newMemorySession(map[string]string{
		"main.tf": "", "fake": "state await " + answers + "\napply ready " + ready + "\napply await " + on + "\napply fail the backend is away\n",
	})
	s.state = "http://127.0.0.1:1/x"
	a := engineAssignment("run-1", holdfast.RunApply)
	a.Reviews = review("run-0", e.Execute(t.Context(), engineAssignment("run-0", holdfast.RunPlan), s))
	ended := make(chan protocol.Result, 1)
	go func() { ended <- e.Execute(t.Context(), a, s) }()
	untilFile(t, ready)
	if err := os.Remove(answers); err != nil {
		t.Fatal(err)
	}
	writeMark(t, on)
	select {
	case result := <-ended:
		wantStatus(t, result, holdfast.RunErrored, holdfast.CauseEngineFailed, s)
	case <-time.After(2 * time.Minute):
		writeMark(t, answers)
		t.Fatalf("the apply has not ended: %v", calls())
	}
	if got := strings.Join(calls(), " "); !strings.HasSuffix(got, "apply state") {
		t.Errorf("the engine was started for %s; nothing has read the state after the apply", got)
	}
}
