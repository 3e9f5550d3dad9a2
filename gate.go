package holdfast

import "slices"

// The conditions of apply.requires.
const (
	GateApproved  = "approved"  // someone other than the author has approved what is applied
	GateMergeable = "mergeable" // the forge would have let the pull request be merged
)

// gates are the conditions in the order in which they are asked for. For which
// reason an apply waits whose pull request does not meet one, and how a commit status
// says so.
var gates = []struct {
	name    string
	reason  Reason
	missing string
}{
	{GateApproved, ReasonNotApproved, "approval missing"},
	{GateMergeable, ReasonNotMergeable, "not mergeable yet"},
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
func GateReason(name string) Reason {
	for _, g := range gates {
		if g.name == name {
			return g.reason
		}
	}
	return ""
}

// OfGate reports whether r is why an apply waits that does not meet a condition.
func (r Reason) OfGate() bool {
	return slices.ContainsFunc(GateNames(), func(name string) bool { return GateReason(name) == r })
}

// GateMissing says in two or three words that a condition is not met.
func GateMissing(name string) string {
	for _, g := range gates {
		if g.name == name {
			return g.missing
		}
	}
	return name + " missing"
}

// Gate is a condition of apply.requires and how a pull request stands towards it
// for one cluster.
type Gate struct {
	Name    string   `json:"name"`             // as in apply.requires
	Lifted  bool     `json:"lifted,omitempty"` // the change takes it away: for its own apply it holds
	Met     bool     `json:"met"`
	Given   []string `json:"given,omitempty"`   // what counts for it, each in words: "lead approved in a review"
	Missing string   `json:"missing,omitempty"` // why it is not met, in words
	From    string   `json:"from,omitempty"`    // what puts that right, in words: "an approving review from anyone ..."
}
