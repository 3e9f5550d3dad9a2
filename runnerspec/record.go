package runnerspec

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// DocumentPlace is where a document of a tracked branch stands.
type DocumentPlace struct {
	Repo     string            `json:"repo"`
	Path     string            `json:"path"`
	Line     int               `json:"line"`
	Revision holdfast.Revision `json:"revision"`
}

// Record is a runner in force: what its last good document says, which belongs to
// the repository that defined the name first.
type Record struct {
	Document Runner        `json:"document"`
	Place    DocumentPlace `json:"place"`
	// Faults say why what the repository says now is not in force; none: it is.
	Faults    holdfast.Faults `json:"faults,omitempty"`
	UpdatedAt time.Time       `json:"updatedAt"`
	// Next is what the repository says now, if nothing keeps it from being in force but
	// states that it would move; nil: something else does, or nothing.
	Next *Runner `json:"next,omitempty"`
	// Former are its former places, the last one first: something may be left there.
	Former []Former `json:"former,omitempty"`
	// RemovedAt is when it ceased to be in force, as its document is gone: something that it
	// has launched may be left. Zero: it is in force.
	RemovedAt time.Time `json:"removedAt,omitzero"`
}

// RuleRecord is a rule in force, as Record is a runner.
type RuleRecord struct {
	Document  Rule            `json:"document"`
	Place     DocumentPlace   `json:"place"`
	Faults    holdfast.Faults `json:"faults,omitempty"`
	UpdatedAt time.Time       `json:"updatedAt"`
}

// Change is how a repository changes what is in force of runners and rules.
type Change struct {
	Runners         []Record // that are in force from now on
	Rules           []RuleRecord
	Gone, GoneRules []string // names of those that no longer are
	// Unwatched are repositories that the configuration no longer has: others may have the
	// names that belonged to them.
	Unwatched []string
}

// Empty reports whether there is nothing new.
func (c Change) Empty() bool {
	return len(c.Runners)+len(c.Rules)+len(c.Gone)+len(c.GoneRules) == 0
}
