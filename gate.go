package holdfast

// The conditions of apply.requires.
const (
	GateApproved  = "approved"  // someone other than the author has approved what is applied
	GateMergeable = "mergeable" // the forge would have let the pull request be merged
)

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
