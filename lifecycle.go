package holdfast

import "time"

// ConditionType names a condition of a cluster.
type ConditionType string

// The conditions of a cluster. For each, True is the good case, except for Drifted and
// Blocked.
const (
	ConditionCommitPlanned ConditionType = "CommitPlanned" // what Git desires is resolved and was planned, or is applied
	ConditionPlanUpToDate  ConditionType = "PlanUpToDate"  // the newest plan is of what Git desires and of the infrastructure as it is
	ConditionApplyUpToDate ConditionType = "ApplyUpToDate" // what Git desires is applied
	ConditionDrifted       ConditionType = "Drifted"       // the infrastructure is not as it was applied
	ConditionBlocked       ConditionType = "Blocked"       // a person or a condition has to act first
	ConditionHealthy       ConditionType = "Healthy"       // the cluster itself is well: Unknown, nothing looks at that yet
)

// ConditionStatus is True, False or Unknown.
type ConditionStatus string

// The statuses of a condition.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// Condition is a statement about a cluster that is true, false or unknown, for machines.
type Condition struct {
	Type    ConditionType   `json:"type"`
	Status  ConditionStatus `json:"status"`
	Reason  Reason          `json:"reason"`            // PascalCase, stable
	Message string          `json:"message,omitempty"` // for people
	Since   time.Time       `json:"since"`             // when Status became what it is
}

// Transition is a change of a cluster's phase or of one of its conditions.
type Transition struct {
	Cluster string    `json:"cluster"`
	At      time.Time `json:"at"`
	What    string    `json:"what"` // "phase", or a ConditionType
	From    string    `json:"from,omitempty"`
	To      string    `json:"to"`
	Reason  Reason    `json:"reason,omitempty"`
	Run     string    `json:"run,omitempty"` // the run that brought it about
}

// Deletion is how a cluster ended.
type Deletion struct {
	At       time.Time `json:"at"`
	Reason   Reason    `json:"reason"`        // Destroyed, NeverApplied or Renamed
	Run      string    `json:"run,omitempty"` // the destroy
	Revision Revision  `json:"revision"`      // that had the document no more
	To       string    `json:"to,omitempty"`  // Renamed: the new name
}

// Suspension stops new runs of many clusters. Those of one cluster are in its
// record.
type Suspension struct {
	Project string    `json:"project,omitempty"` // empty: of all clusters
	By      string    `json:"by"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at"`
}

// Relation is a cluster that another one depends on, or that depends on it.
type Relation struct {
	Name    string `json:"name"`
	Phase   Phase  `json:"phase,omitempty"` // empty: no such cluster
	Waiting string `json:"waiting,omitempty"`
	// Settled is true if what is desired of it is applied and nothing runs.
	Settled bool `json:"settled,omitempty"`
	// Failed is true if its last apply, or the plan that an apply waits for, failed.
	Failed bool `json:"failed,omitempty"`
	// Relations are its own: parents of a parent, dependents of a dependent.
	Relations []Relation `json:"relations,omitempty"`
}

// Family is what a cluster depends on, and what depends on it.
type Family struct {
	Parents    []Relation `json:"parents,omitempty"`
	Dependents []Relation `json:"dependents,omitempty"`
}

// Resource is one resource instance in a cluster's state.
type Resource struct {
	Cluster  string `json:"cluster,omitempty"`
	Address  string `json:"address"`
	Type     string `json:"type"`
	Provider string `json:"provider,omitempty"` // source address, such as registry.terraform.io/hashicorp/aws
	ID       string `json:"id,omitempty"`       // the provider's; empty if it has none, or a secret one
	// Run is the apply that last created or changed it; empty: none of ours.
	Run       string    `json:"run,omitempty"`
	ChangedAt time.Time `json:"changedAt,omitzero"`
}

// ResourceFilter selects resources, by cluster and address. Zero fields select
// all.
type ResourceFilter struct {
	Cluster  string
	Type     string
	ID       string
	Address  string       // a part of it
	Projects []string     `json:",omitempty"` // of clusters of these; empty means all
	Limit    int          // zero means 1000
	After    ResourceMark `json:",omitzero"` // only those that the list has after this place
}

// ResourceMark is a place in a list of resources.
type ResourceMark struct{ Cluster, Address string }
