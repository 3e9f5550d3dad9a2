package replica

import (
	"time"

	"github.com/holdfast-dev/holdfast/protocol"
)

// Lease is what a replica has to itself for a time.
type Lease struct {
	Name, Owner string
	Left        time.Duration // until it ends, by the database's clock; zero or less: it has ended
}

// AskKind says what a replica asks of the one that leads a repository.
type AskKind string

// What is asked.
const (
	AskLook    AskKind = "look"    // at the tracked branch or a pull request; What is its number
	AskRelook  AskKind = "relook"  // at the tracked branch, although its head has not moved
	AskBehind  AskKind = "behind"  // at all its clusters
	AskRecheck AskKind = "recheck" // at one of them; What is its name
	AskDecide  AskKind = "decide"  // What is the Request
	AskShow    AskKind = "show"    // What says of which pull request or commit
	AskIssue   AskKind = "issue"   // What says of which cluster
)

// Ask is what is asked. Two of the same Repo, Kind and What are one.
type Ask struct {
	Repo string // empty: it belongs to none
	Kind AskKind
	What string // as its kind says, in JSON unless it is a name or a number
	Note string // besides; the last one counts
	Seq  int64  // the store's: grows each time it is asked for
}

// AgentSign is an agent as a replica has heard of it.
type AgentSign struct {
	Claim      protocol.ClaimRequest // its last one, without what it executes
	Since, Ago time.Duration         // for how long its process has the id, and since it was heard of
}
