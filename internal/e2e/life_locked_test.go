package e2e_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Somebody holds the lock of a state in a backend of their own. The apply waits for it
// between short attempts: another cluster is planned meanwhile in the only slot, who
// looks sees what it waits for, and it is applied soon after the lock is released,
// though it has no retries.
func TestWaitingForALockTakesNoSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.lockTimeout": "10m", "runs.retries": 0, "runs.retryDelay": "4s", "agent.slots": 1, "runs.max": 1})
	w.useTokens()
	store := newStateStore(w)
	w.start()
	alpha := w.fleet().open(join(document("alpha", store.backend("alpha")), moduleFile("alpha", "")))
	alpha.untilPlanned("1 to create")
	store.hold("alpha", "somebody-1")
	alpha.merge()
	w.until("the cluster shows what it waits for", func() (bool, string) {
		out, errs, _ := w.cliAs("viewer", "get", "clusters")
		return strings.Contains(out, "StateLocked"), out + errs
	})
	w.until("the cluster shows whose lock it is, between two attempts", func() (bool, string) {
		out, errs, _ := w.cliAs("viewer", "describe", "cluster", "alpha")
		return strings.Contains(out, "StateLocked") && strings.Contains(out, "somebody-1"), out + errs
	})
	w.until("its run shows what it waits for between two attempts", func() (bool, string) {
		list, errs, _ := w.cliAs("viewer", "get", "runs", "--status", "retrying")
		run := regexp.MustCompile(`run-[a-z0-9]+`).FindString(list)
		if run == "" {
			return false, list + errs
		}
		out, errs, _ := w.cliAs("viewer", "describe", "run", run)
		return strings.Contains(out, "retrying") && strings.Contains(out, "StateLocked") &&
			strings.Contains(out, "unlock alpha --lock somebody-1"), out + errs
	})
	alpha.untilComment("StateLocked", "will be retried")

	beta := w.fleet().open(join(document("beta"), moduleFile("beta", "")))
	beta.untilPlanned("1 to create")
	if store.state("alpha") != "" || store.heldBy("alpha") != "somebody-1" {
		t.Errorf("the lock was not heeded: %s", store.state("alpha"))
	}
	store.release("alpha")
	w.fleet().untilStatus(alpha.merged, holdfast.ContextApply, holdfast.StatusSuccess, "")
	if faults := store.faults(); len(faults) > 0 {
		t.Errorf("writes that lose something: %q", faults)
	}
}
