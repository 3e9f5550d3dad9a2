package e2e_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// The binary of these tests reads how far the clock of its process is off from a file in the
// folder where the process works: the world's own for the server, and its own for each agent.
const (
	clockVariable = "github.com/holdfast-dev/holdfast/internal/clock.file"
	clockFile     = "clock"
)

// setClock has the server, or the agent, that starts next in a folder start with a clock
// that is that far off.
func (w *world) setClock(dir string, off time.Duration) {
	w.t.Helper()
	path := filepath.Join(dir, clockFile)
	err := os.WriteFile(path+".next", []byte(off.String()), 0o644) //nolint:gosec // the agent is another user
	if err == nil {
		err = os.Rename(path+".next", path) // an agent may be about to start
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// The clock of the server is put back while it does not run, and those of the agents differ from it
// and from the code host's: what was planned before is applied as it was shown, once.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	const far, almost = 10 * time.Minute, 9 * time.Minute
	w := newWorld(t, quick)
	began := time.Now()
	w.setClock(w.dir, far)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("2 to create")
	if plan := w.newest("alpha", holdfast.RunPlan); plan.CreatedAt.Sub(began) < almost {
		t.Errorf("the plan is of %s, want a server that is %s ahead at %s", plan.CreatedAt, far, began)
	}

	w.crash()
	w.setClock(w.dir, -far)
	for _, dir := range w.agentDirs() {
		w.setClock(dir, far)
		if pid := livingIn(dir); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	w.start()
	for _, dir := range w.agentDirs() {
		w.until("the clock of the agent in "+dir+" is ahead", func() (bool, string) {
			info, err := os.Stat(filepath.Join(dir, "agent.lock")) // the agent shows there that it lives
			if err != nil {
				return false, err.Error()
			}
			return info.ModTime().Sub(began) > almost, info.ModTime().String()
		})
	}
	pr.merge()
	pr.untilApplied("2 created")
	applies := w.applies("alpha")
	if len(applies) != 1 || applies[0].Attempt != 1 {
		t.Fatalf("applies: %+v, want one of one attempt", applies)
	}
	if behind := time.Since(applies[0].StartedAt); behind < almost {
		t.Errorf("the apply was started %s ago, want a server that is %s behind", behind, far)
	}
	if plan := w.newest("alpha", holdfast.RunPlan); !applies[0].CreatedAt.After(plan.CreatedAt) {
		t.Errorf("the apply is of %s, the plan before it of %s", applies[0].CreatedAt, plan.CreatedAt)
	}
	if rec := w.record("alpha"); rec.Waiting != "" || rec.Phase != holdfast.PhaseActive {
		t.Errorf("alpha waits for %q and is %s", rec.Waiting, rec.Phase)
	}
}
