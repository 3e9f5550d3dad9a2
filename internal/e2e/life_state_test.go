package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// useTokens gives the API tokens for each role, in files of that name; that of
// admin is where the world's own commands look for it.
func (w *world) useTokens() {
	w.t.Helper()
	var tokens []any
	for role, file := range map[string]string{"admin": "data/admin.token", "operator": "operator", "viewer": "viewer"} {
		w.write(file, "the token of the role "+role, 0o600)
		tokens = append(tokens, map[string]any{"name": role, "role": role, "token": map[string]any{"file": file}})
	}
	w.set(settings{"server.api.tokens": tokens})
}

// slowly is a resource whose creation lasts until the world is open: a store can go
// away meanwhile.
func (w *world) slowly(name string) string {
	return fmt.Sprintf(`
resource "terraform_data" %[1]q {
  provisioner "local-exec" {
    command = "touch %[2]s-%[1]s; while ! test -e %[3]s-%[1]s; do sleep 0.1; done"
  }
}
`, name, w.path("witness"), w.path("open"))
}

// applyWithoutStore lets an apply that is in the middle of making a resource end
// with its store away.
func (w *world) applyWithoutStore(store *stateStore, pr *pull, resource string) {
	w.t.Helper()
	pr.merge()
	w.until("the apply makes "+resource, func() (bool, string) {
		_, err := os.Stat(w.path("witness") + "-" + resource)
		return err == nil, fmt.Sprint(err)
	})
	store.setAway(true)
	if err := os.WriteFile(w.path("open")+"-"+resource, nil, 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.untilWaiting("alpha", holdfast.CauseStateUnsaved)
}

// prints runs a command that has to end with that code, and whose output, errors
// included, has to have all these words. It returns what it printed.
func (w *world) prints(code int, token string, args []string, says ...string) string {
	w.t.Helper()
	out, errs, got := w.cliAs(token, args...)
	for _, word := range says {
		if !strings.Contains(out+errs, word) {
			w.t.Errorf("holdfast %s as %s does not say %q:\n%s%s", strings.Join(args, " "), token, word, out, errs)
		}
	}
	if got != code {
		w.t.Errorf("holdfast %s as %s ends with code %d, want %d:\n%s%s", strings.Join(args, " "), token, got, code, out, errs)
	}
	return out
}

// pushNow asks for the push of a cluster's unsaved state, which is refused while
// another one is under way or when there is none left.
func (w *world) pushNow(cluster string) {
	w.t.Helper()
	_, _, _ = w.cliAs("operator", "state", "push", cluster)
}

// untilUnlocked releases the lock that a dead run has left in the store, which only
// that store knows: the run that ask queues comes upon it, and then it is on record.
// Terraform does not print who holds a lock of such a store, so that it takes force.
func (w *world) untilUnlocked(store *stateStore, cluster string, ask func()) {
	w.t.Helper()
	held := store.heldBy(cluster)
	if held == "" {
		w.t.Fatal("the store has no lock")
	}
	w.until("the lock of the store is known", func() (bool, string) {
		out, errs, _ := w.cliAs("operator", "unlock", cluster)
		known := strings.Contains(out, "--lock "+held+" --force")
		if !known && !strings.Contains(errs, "which is alive") { // who asks again each time never sees the cluster without a run
			ask()
		}
		return known, out + errs
	})
	w.prints(1, "viewer", []string{"unlock", cluster, "--lock", held}, "operator")
	w.until("the lock of the store is released", func() (bool, string) { // refused while a push is under way
		out, errs, code := w.cliAs("operator", "unlock", cluster, "--lock", held)
		if code == 0 || !strings.Contains(errs, "may be alive") && !strings.Contains(errs, "is running") {
			w.t.Errorf("unlock without --force ended with %d:\n%s%s", code, out, errs)
		}
		out, errs, code = w.cliAs("data/admin.token", "unlock", cluster, "--lock", held, "--force")
		return code == 0 && strings.Contains(out, "releases the lock"), out + errs
	})
}

// A user's state store goes away in the middle of an apply. What it made is known to
// nobody but the rescued state: nothing is planned or applied before that is pushed,
// by itself or by a person who may, or given up by one.
func TestStateThatCouldNotBeSaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.lockTimeout": "0s"})
	w.useTokens()
	store := newStateStore(w)
	w.start()
	pr := w.fleet().open(join(document("alpha", store.backend("alpha")), moduleFile("alpha", w.slowly("first"))))
	pr.untilPlanned("2 to create")
	w.applyWithoutStore(store, pr, "first")

	// Who looks sees it, and what to do.
	w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusFailure, "alpha")
	pr.untilComment("StateUnsaved", "holdfast state get alpha", "holdfast state waive alpha")
	w.prints(0, "viewer", []string{"describe", "cluster", "alpha"}, "StateUnsaved")
	other := w.fleet().open(files{"infra/alpha/more.tf": "resource \"terraform_data\" \"more\" {}\n"})
	other.untilComment("StateUnsaved")
	w.prints(3, "operator", []string{"apply", "alpha"}, "could not save its state", "holdfast state")

	// A state has secrets, and to give one up is to lose something.
	w.prints(1, "viewer", []string{"state", "get", "alpha"}, "operator")
	w.prints(1, "viewer", []string{"state", "push", "alpha"}, "operator")
	w.prints(1, "viewer", []string{"state", "waive", "alpha", "--reason", "why not"}, "operator")
	w.prints(2, "operator", []string{"state", "waive", "alpha"}, "--reason")
	w.prints(0, "operator", []string{"state", "get", "alpha", "--out", "rescued.tfstate"})
	rescued, err := os.ReadFile(w.path("rescued.tfstate"))
	if err != nil || !strings.Contains(string(rescued), `"first"`) {
		t.Errorf("the rescued state is %q: %v", rescued, err)
	}
	plans := w.countCalls("plan alpha")

	// The store is back, and has the lock of the apply still.
	store.setAway(false)
	w.untilUnlocked(store, "alpha", func() { w.pushNow("alpha") })
	w.until("the state is pushed", func() (bool, string) {
		w.pushNow("alpha")
		state := store.state("alpha")
		return strings.Contains(state, `"first"`), state
	})
	other.untilPlanned("1 to create")
	if strings.Contains(other.comment(), "terraform_data.first") {
		t.Errorf("what was made is to be made again:\n%s", other.comment())
	}
	if plans == w.countCalls("plan alpha") {
		t.Error("nothing was planned after the push")
	}
	w.prints(1, "operator", []string{"state", "get", "alpha"}, "has no state that could not be saved")

	if faults := store.faults(); len(faults) > 0 {
		t.Errorf("writes that lose something: %q", faults)
	}
}

// What a person pushes in place of an unsaved state is what the store gets; what a
// person gives up keeps nothing from being planned, and is made again.
func TestUnsavedStateByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.lockTimeout": "0s"})
	w.useTokens()
	store := newStateStore(w)
	w.start()
	pr := w.fleet().open(join(document("alpha", store.backend("alpha")), moduleFile("alpha", w.slowly("first"))))
	pr.untilPlanned("2 to create")
	w.applyWithoutStore(store, pr, "first")

	w.prints(0, "operator", []string{"state", "get", "alpha", "--out", "rescued.tfstate"})
	rescued, err := os.ReadFile(w.path("rescued.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(rescued), `"outputs": {}`, `"outputs": {"by_hand": {"value": "yes", "type": "string"}}`, 1)
	w.write("edited.tfstate", edited, 0o600)
	w.prints(1, "viewer", []string{"state", "push", "alpha", "edited.tfstate"}, "operator")
	w.until("the file is taken", func() (bool, string) { // refused while a push is under way
		out, errs, code := w.cliAs("operator", "state", "push", "alpha", "edited.tfstate")
		return code == 0, out + errs
	})
	store.setAway(false)
	w.untilUnlocked(store, "alpha", func() { w.pushNow("alpha") })
	w.until("the file is pushed", func() (bool, string) {
		w.pushNow("alpha")
		state := store.state("alpha")
		return strings.Contains(state, "by_hand") && strings.Contains(state, `"first"`), state
	})

	more := w.fleet().open(files{"infra/alpha/more.tf": w.slowly("second")})
	more.untilPlanned("1 to create")
	w.applyWithoutStore(store, more, "second")
	w.until("it is given up", func() (bool, string) { // refused while a push is under way
		out, errs, code := w.cliAs("operator", "state", "waive", "alpha", "--reason", "the account was deleted")
		return code == 0, out + errs
	})
	w.prints(1, "operator", []string{"state", "get", "alpha"}, "has no state that could not be saved")
	store.setAway(false)
	w.untilUnlocked(store, "alpha", func() { _, _, _ = w.cliAs("operator", "replan", "alpha") })
	w.until("what was lost is made again", func() (bool, string) {
		out, errs, _ := w.cliAs("operator", "apply", "alpha")
		if strings.Contains(out+errs, "`holdfast replan alpha`") { // the last plan came upon the lock
			_, _, _ = w.cliAs("operator", "replan", "alpha")
			w.untilIdle()
		}
		return strings.Contains(store.state("alpha"), `"second"`), out + errs
	})
	if faults := store.faults(); len(faults) > 0 {
		t.Errorf("writes that lose something: %q", faults)
	}
}
