package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/previous"
)

// usePrevious makes the next server that starts, and its agents, be of the previous protocol.
func (w *world) usePrevious() {
	w.t.Helper()
	program, err := previous.Build()
	if err != nil {
		w.t.Fatal(err)
	}
	// The agents may be another user, who cannot reach the cache.
	w.program = w.path("previous-holdfast")
	data, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(w.program, data, 0o755) //nolint:gosec // who executes it is another user
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// A server is upgraded while an agent of the previous protocol applies: the run ends with the
// new server, and the agent goes on to get runs from it. Agents are upgraded later: they can end
// in any order.
func TestServerIsUpgradedBeforeItsAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.usePrevious()
	w.start()
	w.hold("apply", "alpha")
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("1 cluster: 2 to create")
	pr.merge()
	w.untilHeld("apply", "alpha")
	pids := w.agentPIDs()
	w.kill() // its agents live on

	w.program = ""
	w.start()
	w.release("apply", "alpha")
	pr.untilApplied("applied 1 cluster: 2 created")
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}

	next := w.fleet().open(cluster("beta", "nodes: 2"))
	next.untilPlanned("2 to create")
	next.merge()
	next.untilApplied("2 created")
	for _, pid := range pids {
		if program, err := os.Readlink("/proc/" + itoa(pid) + "/exe"); err == nil && filepath.Base(program) != "previous-holdfast" {
			t.Errorf("agent %d is %s: want that of the previous protocol to have worked on", pid, program)
		}
	}
	if got := w.agentPIDs(); len(got) != len(pids) || len(pids) == 0 || got[0] != pids[0] {
		t.Errorf("agents are %v, and were %v before the upgrade", got, pids)
	}
	if rec := w.untilPhase("beta", holdfast.PhaseActive); rec.Applied.Revision != holdfast.Revision(next.merged) {
		t.Errorf("beta is applied at %q, want %q", rec.Applied.Revision, next.merged)
	}
	if strings.Contains(w.log.all(), "speaks protocol") {
		t.Errorf("an agent was refused:\n%s", w.log.all())
	}
}
