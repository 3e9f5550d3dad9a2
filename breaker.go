package holdfast

import "time"

// Breaker is what is on record of a provider that needs a break, or has had one. The record
// decides for all replicas.
type Breaker struct {
	Provider string               `json:"provider"`
	Sick     map[string]time.Time `json:"sick,omitempty"`  // when an attempt last suffered, by cluster
	Until    time.Time            `json:"until,omitzero"`  // when the break ends; zero: there is none
	Pause    time.Duration        `json:"pause,omitempty"` // how long the last break was
	ClosedAt time.Time            `json:"closed,omitzero"` // when the last one was over
	Probe    string               `json:"probe,omitempty"` // the run that was handed out after the break, to find out
	ProbedAt time.Time            `json:"probed,omitzero"` // when that was
}
