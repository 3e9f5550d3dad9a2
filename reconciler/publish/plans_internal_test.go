package publish

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// planned is a fleet that has a plan of a kilobyte for each run, and counts how often each
// is read.
type planned struct {
	Fleet
	reads map[string]int
}

func (p *planned) Plan(_ context.Context, run string) (holdfast.Plan, error) {
	p.reads[run]++
	return holdfast.Plan{Text: strings.Repeat("x", 1024), Fingerprint: holdfast.Digest(run)}, nil
}

// lookAt takes the plans of n clusters of a pull request, and returns of which of them the plan
// had to be read for it.
func (p *planned) lookAt(t *testing.T, plans *shownPlans, pullRequest string, n int) []string {
	t.Helper()
	p.reads = make(map[string]int)
	look := plans.look()
	for i := range n {
		run := fmt.Sprintf("%s-%02d", pullRequest, i)
		plan, err := look.plan(t.Context(), run)
		if err != nil || plan.Fingerprint != holdfast.Digest(run) {
			t.Fatalf("the plan of %s is %v, %v", run, plan, err)
		}
	}
	return slices.Sorted(maps.Keys(p.reads))
}

// However many clusters a pull request has, their plans are read once while they fit into
// the memory.
func TestPlansOfALargePullRequestAreReadOnce(t *testing.T) {
	t.Parallel()
	fleet := &planned{}
	plans := New(Options{Fleet: fleet, Settings: Settings{Now: func() time.Time { return noon }}}).plans
	if first := fleet.lookAt(t, plans, "a", 2000); len(first) != 2000 {
		t.Fatalf("%d plans were read at first", len(first))
	}
	if again := fleet.lookAt(t, plans, "a", 2000); len(again) > 0 {
		t.Errorf("%d plans were read again", len(again))
	}
}

// Plans that do not fit are forgotten one by one, those that were used longest ago first; and
// a pull request that is larger than the memory finds in it what fits.
func TestPlansAreForgottenOneByOne(t *testing.T) {
	t.Parallel()
	fleet := &planned{}
	each := planSize(&holdfast.Plan{Text: strings.Repeat("x", 1024)})
	plans := newShownPlans(fleet, 10*each)

	fleet.lookAt(t, plans, "a", 6)
	fleet.lookAt(t, plans, "b", 6)
	if got, want := fleet.lookAt(t, plans, "b", 7), []string{"b-06"}; !slices.Equal(got, want) {
		t.Errorf("%v were read again, want %v", got, want)
	}
	want := []string{"a-03", "a-04", "a-05", "b-00", "b-01", "b-02", "b-03", "b-04", "b-05", "b-06"}
	if got := slices.Sorted(maps.Keys(plans.byRun)); !slices.Equal(got, want) {
		t.Errorf("%v are kept, want %v", got, want)
	}

	fleet.lookAt(t, plans, "large", 30)
	for range 2 {
		if got := fleet.lookAt(t, plans, "large", 30); len(got) != 20 || slices.Contains(got, "large-09") {
			t.Errorf("of 30 plans these were read again: %v", got)
		}
	}
	if plans.size > plans.most || plans.size != each*len(plans.byRun) || plans.order.Len() != len(plans.byRun) {
		t.Errorf("%d plans take %d bytes of %d", len(plans.byRun), plans.size, plans.most)
	}
}

// A plan that is larger than the memory pushes out none of the others.
func TestPlanThatIsTooLarge(t *testing.T) {
	t.Parallel()
	fleet := &planned{}
	each := planSize(&holdfast.Plan{Text: strings.Repeat("x", 1024)})
	plans := newShownPlans(fleet, 2*each)
	fleet.lookAt(t, plans, "a", 2)
	plans.keep(shownPlan{run: "huge", plan: &holdfast.Plan{}, size: 2*each + 1, look: 9})
	if got := fleet.lookAt(t, plans, "a", 2); len(got) > 0 {
		t.Errorf("%v were read again", got)
	}
}
