package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Who asks on the command line for the apply of what is up to date has what they
// want; who asks in a comment is told why nothing follows.
func TestApplyOfWhatIsUpToDate(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.executeAll(good)
	c := f.api("root", holdfast.VerbApply, "prod", "preprod")
	if c.Status != holdfast.CommandDone || !slices.Equal(c.UpToDate, []string{"prod", "preprod"}) || !strings.Contains(c.Reply, "up to date") {
		t.Errorf("apply: %+v", c)
	}
	if c := f.command(1, "alice", "/holdfast apply"); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, "up to date") {
		t.Errorf("/holdfast apply: %+v", c)
	}
}

// The reason of a suspension is kept with it.
func TestSuspensionHasAReason(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.suspend("prod", true, "root", "moves")
	if rec := f.cluster("prod"); !rec.Suspended || rec.SuspendedWhy != "moves" || rec.SuspendedBy != "root" || rec.SuspendedAt.IsZero() {
		t.Errorf("suspended: %t, %q by %q at %s", rec.Suspended, rec.SuspendedWhy, rec.SuspendedBy, rec.SuspendedAt)
	}
	f.suspend("prod", false, "root", "")
	if rec := f.cluster("prod"); rec.Suspended || rec.SuspendedWhy != "" || rec.SuspendedBy != "" || !rec.SuspendedAt.IsZero() {
		t.Errorf("resumed: %t, %q by %q at %s", rec.Suspended, rec.SuspendedWhy, rec.SuspendedBy, rec.SuspendedAt)
	}
}
