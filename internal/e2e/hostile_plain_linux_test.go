package e2e_test

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A server that is not root isolates engines with user namespaces of its own, where
// these are allowed: with providers of a mirror it plans, applies, finds drift and
// destroys as root's does.
func TestServerOfAPlainUser(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	if os.Getuid() == 0 {
		w.under = []string{"unshare", "--user", "--map-user=1000", "--map-group=1000", "--"}
	}
	w.start()
	fleet := w.fleet()
	fleet.bring(w.keeper("alpha", "a=one", "deletion: {protected: false}"))
	if log := w.agentLog(); !strings.Contains(log, "mode=user-namespace") {
		t.Errorf("the agent does not say in which mode it is:\n%s", log)
	}
	change := fleet.open(keeps("alpha", "a=two", "deletion: {protected: false}"))
	change.untilPlanned("1 to replace")
	change.merge()
	change.untilApplied("1 replaced")
	if got := w.things("alpha"); got != "a=two" {
		t.Errorf("alpha keeps %q", got)
	}
	w.do("drift check alpha --wait", "none")
	removal := fleet.open(gone("alpha"))
	fleet.untilStatus(removal.head, holdfast.ContextPlan, holdfast.StatusSuccess)
	removal.merge()
	w.untilPhase("alpha", holdfast.PhaseDeleted)
	if got := w.things("alpha"); got != "" {
		t.Errorf("alpha keeps %q", got)
	}
}
