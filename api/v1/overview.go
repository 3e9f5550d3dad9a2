package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Overview is how many clusters there are, by what they have in common, and which wait for
// a person.
type Overview struct {
	Total    int `json:"total"`    // Clusters that the token sees.
	Matching int `json:"matching"` // Those that the parameters select.

	// Of the clusters that match all other parameters: the most first.
	Projects     []FacetCount `json:"projects,omitempty"`
	Environments []FacetCount `json:"environments,omitempty"`
	Providers    []FacetCount `json:"providers,omitempty"`
	Templates    []FacetCount `json:"templates,omitempty"` // "name@version" that is desired.
	Phases       []FacetCount `json:"phases,omitempty"`
	Drift        []FacetCount `json:"drift,omitempty"` // What the last drift check found; clusters that were not checked are left out.

	Needs      []Need `json:"needs,omitempty"` // What waits for a person, whatever the parameters say: the oldest first, at most 20.
	NeedsTotal int    `json:"needsTotal"`      // How many clusters wait for a person.
}

// FacetCount is how many clusters have a value.
type FacetCount struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// Need is a cluster that waits for a person.
type Need struct {
	Cluster string          `json:"cluster"`
	Phase   holdfast.Phase  `json:"phase"`
	Reason  holdfast.Reason `json:"reason,omitempty"` // Absent: it has failed, and nothing says what it waits for.
	Detail  string          `json:"detail,omitempty"`
	Since   time.Time       `json:"since"`
	Run     string          `json:"run,omitempty"` // The run whose plan waits, if one does.
}

// NeedOf returns what the API says of a cluster that waits for a person.
func NeedOf(r holdfast.ClusterRecord) Need {
	need := Need{Cluster: r.Name, Phase: r.Phase, Reason: r.Waiting, Detail: r.WaitingDetail, Since: r.UpdatedAt, Run: r.PlannedRun}
	for _, condition := range r.Conditions {
		if condition.Type == holdfast.ConditionBlocked && condition.Status == holdfast.ConditionTrue {
			need.Since = condition.Since
		}
	}
	return need
}
