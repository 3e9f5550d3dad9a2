package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// monkey kills things at random points, always the same ones for a seed.
type monkey struct {
	w   *world
	rng *rand.Rand
}

// newMonkey takes its seed from HOLDFAST_E2E_SEED, or makes one and says it.
func newMonkey(w *world) *monkey {
	w.t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("HOLDFAST_E2E_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	w.t.Logf("HOLDFAST_E2E_SEED=%d makes the same choices again", seed)
	return &monkey{w, rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // not a secret
}

// strike waits for a random while and kills the server, an agent, an engine, or
// the server and all agents. The server is started again.
func (m *monkey) strike() {
	m.w.t.Helper()
	time.Sleep(time.Duration(m.rng.IntN(700)) * time.Millisecond) // the very point is to hit anywhere
	victim := m.rng.IntN(4)
	m.w.t.Logf("killing %s", [...]string{"the server", "an agent", "an engine", "the server and all agents"}[victim])
	switch victim {
	case 0:
		m.w.crash()
	case 1:
		if agents := m.w.agentPIDs(); len(agents) > 0 { // else there is none just now
			m.kill(agents[m.rng.IntN(len(agents))])
		}
	case 2:
		if engines := m.w.engines(); len(engines) > 0 {
			m.kill(engines[m.rng.IntN(len(engines))])
		}
	case 3:
		m.w.crash()
		for _, agent := range m.w.agentPIDs() {
			m.kill(agent)
		}
	}
	if m.w.server == nil {
		m.w.start()
	}
}

func (m *monkey) kill(pid int) {
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
}

// Whatever is killed whenever: no run is lost, none is executed twice at once,
// and every pull request ends with a status that is true.
func TestKillsAtRandomPoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.lease": "4s", "runs.retryDelay": "100ms"})
	w.start()
	m := newMonkey(w)
	names := []string{"alpha", "beta"}
	script := func(name string) string { return w.timed(name, "0.3") }
	for round := range 5 {
		generation := strconv.Itoa(round + 1)
		pr := w.fleet().open(join(
			worker("alpha", generation, script("alpha")), worker("beta", generation, script("beta"))))
		m.strike()
		pr.untilPlanned("2 clusters")
		pr.merge()
		m.strike()
		for _, name := range names {
			w.untilGeneration(pr, name, generation)
		}
		pr.untilApplied()
	}

	w.untilIdle()
	for _, name := range names {
		if said := w.said(name); strings.Contains(said, "overlap") {
			t.Errorf("%s was applied twice at once: %s", name, said)
		}
		if rec := w.record(name); rec.Waiting != "" || rec.Phase != holdfast.PhaseActive {
			t.Errorf("%s waits for %q and is %s in the end", name, rec.Waiting, rec.Phase)
		}
	}
	for _, pr := range w.fleet().pulls {
		for _, where := range [][2]string{{pr.head, holdfast.ContextPlan}, {pr.merged, holdfast.ContextApply}} {
			status, ok := w.fleet().hub.LatestStatus(where[0], where[1])
			if !ok || status.State != string(holdfast.StatusSuccess) {
				t.Errorf("%s of pull request %d is %s in the end: %s", where[1], pr.number, status.State, status.Description)
			}
		}
		pr.untilComment("applied")
	}
}

// untilGeneration waits until a generation is applied. A cluster that was left
// half done, or would now do something else, waits for a person: one says yes.
func (w *world) untilGeneration(pr *pull, name, generation string) {
	w.t.Helper()
	var asked string
	w.until(fmt.Sprintf("generation %s of %s is applied", generation, name), func() (bool, string) {
		rec := w.record(name)
		if v, _ := rec.Applied.Document.Variables["generation"].(string); v == generation && rec.Waiting == "" {
			return true, ""
		}
		held := rec.Waiting == "ApplyFailed" || rec.Waiting == "PlanChanged" || rec.Waiting == "Unreviewed"
		last := w.newestOnBranch(name)
		if held && last.Status == holdfast.RunPlanned && asked != last.ID && !last.PostedAt.IsZero() {
			w.t.Logf("%s is held: %s", name, rec.Waiting)
			asked = last.ID
			pr.say(dev, "/holdfast apply "+name)
		}
		return false, fmt.Sprintf("waits for %q; last: %s %s %s", rec.Waiting, last.ID, last.Status, last.Reason)
	})
}

func (w *world) newestOnBranch(name string) holdfast.Run {
	for _, run := range w.runs(name) {
		if run.PullRequest.IsZero() {
			return run
		}
	}
	return holdfast.Run{}
}
