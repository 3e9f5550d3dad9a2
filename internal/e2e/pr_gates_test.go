package e2e_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A plan that adds more to the monthly price than it may is applied when those who may have
// approved it, one that adds less at once; what has no price is not nothing.
func TestCostGate(t *testing.T) {
	t.Parallel()
	w := newFleet(t, settings{"runs.max": 4})
	w.set(settings{"gates": []any{map[string]any{
		"environments": []any{"production"}, "cost": map[string]any{"maxIncrease": "5", "approvedBy": []any{lead}},
	}}})
	w.start()

	cheap := w.fleet().open(w.volumes("alpha", 20))
	cheap.untilComment("| ✅ | **cost** | \\+2.00 USD a month |", "**Cost:** +2.00 USD a month.", "**Next:** merge to apply")
	cheap.merge()
	cheap.untilApplied("created")

	dear := w.fleet().open(w.volumes("alpha", 200))
	dear.untilPlanned("cost not allowed")
	dear.untilComment("**Blocked by:** ⏳ cost not allowed", "| ⏳ | **cost** | it adds +18.00 USD a month, and at most 5.00 USD more a month. Needed: an approval of lead, or a plan that adds at most 5.00 USD more a month |",
		"**Cost:** +18.00 USD a month.", "get what is required, then merge to apply")
	dear.merge()
	w.untilWaiting("alpha", holdfast.ReasonCostExceeded)
	refused := dear.say(dev, "/holdfast apply")
	dear.untilReacted(refused, holdfast.ReactionRefused)
	dear.say(lead, "/holdfast approve")
	dear.untilApplied("changed")
}

// What holdfast.yaml asks for is the least: a document asks for more, and never for less.
func TestGatesOfTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.max": 4})
	w.set(settings{"gates": []any{map[string]any{"projects": []any{"shop"}, "requires": []any{"approved"}}}})
	w.start()

	pr := w.fleet().open(join(cluster("alpha", "nodes: 1"), cluster("beta", "nodes: 1", "apply: {requires: [{approvals: {count: 2}}]}")))
	pr.untilComment("**Blocked by:** ⏳ approval missing", "| ⏳ | **approved** | all clusters | nobody has approved it. Needed: an approving review or `/holdfast approve` from anyone with write permission, except dev |",
		"get what is required, then merge to apply")
	pr.review(lead, "APPROVED")
	pr.untilComment("| ✅ | **approved** | `alpha` | lead approved in a review |",
		"| ⏳ | **approved** | `beta` | 1 of 2 approvals. Needed: an approving review or `/holdfast approve` from anyone else with write permission, except dev. Given: lead approved in a review |")
	pr.merge()
	w.untilWaiting("beta", holdfast.ReasonNotApproved)
}
