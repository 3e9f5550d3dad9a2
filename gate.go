package holdfast

import (
	"cmp"
	"slices"
)

// The conditions of apply.requires.
const (
	GateApproved  = "approved"  // someone other than the author has approved what is applied
	GateMergeable = "mergeable" // the forge would have let the pull request be merged
	GatePolicy    = "policy"    // no policy denies what is applied
	GateCost      = "cost"      // what is applied adds no more to the monthly price than it may
	GateDestroy   = "destroy"   // several have approved it, if what is applied destroys the cluster
)

// gateKind is one of them: the reason of an apply that waits for it, and its words in a
// commit status.
type gateKind struct {
	name    string
	reason  Reason
	missing string
	unknown Reason // the same if it is not known whether it is met; empty: reason
}

// gates are in the order in which they are asked for.
var gates = []gateKind{
	{name: GateApproved, reason: ReasonNotApproved, missing: "approval missing"},
	{name: GateMergeable, reason: ReasonNotMergeable, missing: "not mergeable yet"},
	{name: GatePolicy, reason: ReasonPolicyDenied, missing: "policy denies"},
	{name: GateCost, reason: ReasonCostExceeded, missing: "cost not allowed", unknown: ReasonCostUnknown},
	{name: GateDestroy, reason: ReasonNotApproved, missing: "approval of the destroy missing"},
}

// gateOf returns the condition that apply.requires names; the zero value if there is
// none of that name.
func gateOf(name string) gateKind {
	if i := slices.IndexFunc(gates, func(g gateKind) bool { return g.name == name }); i >= 0 {
		return gates[i]
	}
	return gateKind{}
}

// GateNames are the conditions that apply.requires may name, in the order in which
// they are asked for.
func GateNames() []string {
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = g.name
	}
	return names
}

// GateReason is why an apply waits that does not meet a condition.
func GateReason(name string) Reason { return gateOf(name).reason }

// GateUnknown is why an apply waits of which it is not known whether it meets a condition.
func GateUnknown(name string) Reason { return cmp.Or(gateOf(name).unknown, gateOf(name).reason) }

// OfGate reports whether r is why an apply waits that does not meet a condition.
func (r Reason) OfGate() bool {
	return slices.ContainsFunc(gates, func(g gateKind) bool { return g.reason == r || g.unknown == r && r != "" })
}

// GateMissing says in two or three words that a condition is not met.
func GateMissing(name string) string { return cmp.Or(gateOf(name).missing, name+" missing") }

// Gate is a condition of apply.requires, and whether a pull request meets it for one
// cluster.
type Gate struct {
	Name    string   `json:"name"`             // as in apply.requires
	Lifted  bool     `json:"lifted,omitempty"` // the change takes it away: for its own apply it holds
	Met     bool     `json:"met"`
	Unknown bool     `json:"unknown,omitempty"` // it is not met as nobody knows whether it is
	Idle    bool     `json:"idle,omitempty"`    // it is met as it asks for nothing here
	Given   []string `json:"given,omitempty"`   // what counts for it, each in words: "lead approved in a review"
	Missing string   `json:"missing,omitempty"` // why it is not met, in words
	From    string   `json:"from,omitempty"`    // what puts that right, in words: "an approving review from anyone ..."
}
