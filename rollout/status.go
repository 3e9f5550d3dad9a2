package rollout

import "github.com/holdfast-dev/holdfast"

// TemplateStatus is a template with its users, as shown to people.
type TemplateStatus struct {
	Name     string            `json:"name"`
	Repo     string            `json:"repo"`
	Dir      string            `json:"dir"`
	Versions []TemplateRelease `json:"versions,omitempty"` // newest first
	// Prepared is the version that the tracked branch's template.yaml names and
	// no tag has; empty: none.
	Prepared string        `json:"prepared,omitempty"`
	Trouble  string        `json:"trouble,omitempty"` // why it cannot be used as it is: a moved tag, faults
	Users    []TemplateUse `json:"users,omitempty"`   // those furthest behind first
}

// TemplateRelease is a version of a template.
type TemplateRelease struct {
	Version  string            `json:"version"`
	Tag      string            `json:"tag"`
	Revision holdfast.Revision `json:"revision"`
	Clusters int               `json:"clusters"`           // how many documents name it
	MovedTo  holdfast.Revision `json:"movedTo,omitempty"`  // what its tag names now, if that is another commit: it is refused
	Unusable string            `json:"unusable,omitempty"` // why it cannot be used
}

// TemplateUse is a cluster that uses a template.
type TemplateUse struct {
	Cluster  string `json:"cluster"`
	Owner    string `json:"owner"`
	Version  string `json:"version,omitempty"`  // desired; empty: a folder of its repository
	Applied  string `json:"applied,omitempty"`  // the version that was last applied
	Behind   int    `json:"behind"`             // how many releases are newer than Version
	Upgrades string `json:"upgrades,omitempty"` // the constraint
	Next     string `json:"next,omitempty"`     // what the constraint allows; empty: nothing newer
	Proposed int    `json:"proposed,omitempty"` // the open pull request that brings it
	// Trouble says why Next is not proposed, or why its pull request is not as it
	// should be; empty: it is, or it will be. For all templates at once, the documents
	// that Next would refuse are left out.
	Trouble string `json:"trouble,omitempty"`
}
