package e2e_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Somebody holds the lock of a state in their own backend. The apply waits for it
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

// The agent dies in the middle of the first plan of a cluster that only a pull request has,
// and the engine's lock stays in a backend of somebody else's. Nothing but the pull request
// says where that is: `holdfast unlock` releases it with the pull request's code, and the
// plan is made.
func TestUnlockOfAClusterThatOnlyAPullRequestHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.lockTimeout": "10m"})
	store := newStateStore(w)
	w.start()
	answer := store.stallWhenLocked()
	fresh := w.fleet().open(join(document("fresh", store.backend("fresh")), moduleFile("fresh", "")))
	w.until("the plan has locked the state", func() (bool, string) { return store.heldBy("fresh") != "", "it is free" })
	left := store.heldBy("fresh")
	w.killAgent(holdfast.RunPlan)
	answer()

	fresh.untilComment("StateLocked", "will be retried")
	w.until("its run shows what releases the lock", func() (bool, string) {
		out, errs, _ := w.cli("describe", "run", w.newest("fresh", holdfast.RunPlan).ID)
		return strings.Contains(out, "holdfast unlock fresh --lock "+left), out + errs
	})
	var said string
	w.until("it is known whose lock it is", func() (bool, string) {
		out, errs, code := w.cli("unlock", "fresh")
		said = out
		return code == 0 && strings.Contains(out, left), out + errs
	})
	w.until("another lock is not released", func() (bool, string) { // it is refused while the plan is tried again
		out, errs, code := w.cli("unlock", "fresh", "--lock", "another", "--force")
		return code == 3 && strings.Contains(errs, left), out + errs
	})
	if store.heldBy("fresh") != left {
		t.Fatalf("the lock is %q now, want %q", store.heldBy("fresh"), left)
	}
	way := release.FindStringSubmatch(said)
	if way == nil || !strings.Contains(way[1], "holdfast unlock fresh --lock "+left) {
		t.Fatalf("what to do about the lock: %s", said)
	}
	out, errs, code := w.cli(strings.Fields(way[1])[1:]...)
	if code != 0 || !strings.Contains(out, "with the code of "+w.fleet().name+"#"+itoa(fresh.number)+" and the credentials for plans") {
		t.Fatalf("%s: exit code %d: %s%s", way[1], code, out, errs)
	}
	fresh.untilPlanned("1 to create")
	if store.heldBy("fresh") != "" {
		t.Errorf("the state is locked by %q after the plan", store.heldBy("fresh"))
	}
	fresh.merge()
	fresh.untilApplied()
}
