package decision_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// TestNothingIsHiddenUnasked judges many plans: what an apply would do counts as
// drift unless a rule hides it, and in whatever order the plan lists it.
func TestNothingIsHiddenUnasked(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 7))
		plan := anyPlan(random)
		bare := decision.Judge(plan, nil, noon)
		if got, want := bare.Fingerprint != "", len(plan.Changes) > 0; got != want {
			t.Fatalf("seed %d: drift found %t, an apply would change something %t: %+v", seed, got, want, plan)
		}
		shuffled := plan
		shuffled.Changes, shuffled.Drift = slices.Clone(plan.Changes), slices.Clone(plan.Drift)
		random.Shuffle(len(shuffled.Changes), func(i, j int) {
			shuffled.Changes[i], shuffled.Changes[j] = shuffled.Changes[j], shuffled.Changes[i]
		})
		random.Shuffle(len(shuffled.Drift), func(i, j int) {
			shuffled.Drift[i], shuffled.Drift[j] = shuffled.Drift[j], shuffled.Drift[i]
		})
		if again := decision.Judge(shuffled, nil, noon); again.Fingerprint != bare.Fingerprint || again.Counts != bare.Counts {
			t.Fatalf("seed %d: in another order it is another drift: %+v", seed, plan)
		}
		// A rule for one resource changes nothing about any other.
		hidden := decision.Judge(plan, []holdfast.DriftRule{{Address: "a.r0", Reason: "so"}}, noon)
		for _, item := range hidden.Items {
			if (item.Ignored != "") != (item.Address == "a.r0") {
				t.Fatalf("seed %d: %s is ignored: %q", seed, item.Address, item.Ignored)
			}
		}
		if left := bare.Counts.Drifted() - hidden.Counts.Drifted(); left > 0 && !hidden.Hides && left > hidden.Counts.Ignored {
			t.Fatalf("seed %d: %d count less, %d are said to be ignored", seed, left, hidden.Counts.Ignored)
		}
		if touched := slices.ContainsFunc(plan.Changes, func(c holdfast.ResourceChange) bool { return c.Address == "a.r0" }); touched && !hidden.Hides {
			t.Fatalf("seed %d: an apply would change what is hidden, and nobody is told", seed)
		}
	}
}

// anyPlan has up to four resources, each of which has drifted, would be changed,
// or both, in attributes that have to do with one another or not.
func anyPlan(random *rand.Rand) holdfast.Plan {
	var plan holdfast.Plan
	attributes := func() []holdfast.AttributeChange {
		var out []holdfast.AttributeChange
		for _, path := range []string{"a", "b[0]", "b[0].c", "d.e", "f"} {
			if random.IntN(3) == 0 {
				out = append(out, holdfast.AttributeChange{
					Path: path, Before: fmt.Appendf(nil, "%d", random.IntN(9)), After: fmt.Appendf(nil, "%d", random.IntN(9)), Unknown: random.IntN(3) == 0,
				})
			}
		}
		return out
	}
	actions := []holdfast.ChangeAction{holdfast.ActionUpdate, holdfast.ActionReplace, holdfast.ActionDelete, holdfast.ActionCreate, holdfast.ActionForget}
	for i := range random.IntN(5) {
		address := fmt.Sprintf("a.r%d", i)
		if random.IntN(2) == 0 {
			action := []holdfast.ChangeAction{holdfast.ActionUpdate, holdfast.ActionUpdate, holdfast.ActionDelete}[random.IntN(3)]
			plan.Drift = append(plan.Drift, holdfast.ResourceChange{Address: address, Type: "a", Action: action, Attributes: attributes()})
		}
		if random.IntN(2) == 0 {
			plan.Changes = append(plan.Changes, holdfast.ResourceChange{
				Address: address, Type: "a", Action: actions[random.IntN(len(actions))], Attributes: attributes(),
			})
		}
	}
	return plan
}
