package rollout

import "github.com/holdfast-dev/holdfast"

// TemplateChange is one way in which two versions of a template differ.
type TemplateChange struct {
	// About is what has changed: "variable node_count", "module network (aws)",
	// "provider azure", "output endpoint".
	About string `json:"about"`
	// What ends the sentence: "is required now", "allows at most 50, not 100".
	What string `json:"what"`
	// Breaking: a document that was valid may be refused, or an output that
	// somebody reads is gone. Only a new major version may bring it.
	Breaking bool `json:"breaking,omitempty"`
}

// Impact is what a change of a template would do to the clusters that are made
// from it.
type Impact struct {
	Template string `json:"template"`
	Dir      string `json:"dir"`                // of the template in its repository
	Released string `json:"released,omitempty"` // the newest release; empty: there is none
	// Version is the one that template.yaml says is being prepared
	// (metadata.version); empty: it says none, or one that is released.
	Version string           `json:"version,omitempty"`
	Changes []TemplateChange `json:"changes,omitempty"` // since Released, otherwise since the base

	Groups []ImpactGroup `json:"groups,omitempty"` // by equal change of the root module: those that move first, then the largest
	Same   int           `json:"same"`             // clusters whose root module stays what it is
	// Refused are clusters that are valid today and would not be.
	Refused []ImpactRefusal `json:"refused,omitempty"`
	// Unseen are repositories that could not be read: their clusters are not in it.
	Unseen []string `json:"unseen,omitempty"`
	// Fault says why the change cannot be released as it is: a breaking change
	// in a minor or patch version. Empty: it can.
	Fault string `json:"fault,omitempty"`
}

// ImpactReach is how a cluster would get a new version of its template.
type ImpactReach string

// The ways, the most direct first.
const (
	ReachMerge   ImpactReach = "merge"   // its document names a folder of this repository: the merge applies it
	ReachRelease ImpactReach = "release" // its document names the very version that is being prepared
	ReachUpgrade ImpactReach = "upgrade" // its `upgrades` allows the version: a pull request will propose it
	ReachManual  ImpactReach = "manual"  // it stays where it is until somebody edits its version
)

// ImpactGroup are clusters whose root modules would change in the same way, and
// that have the same things switched on by their variables.
type ImpactGroup struct {
	Key     holdfast.Digest `json:"key"`
	Changes []string        `json:"changes,omitempty"` // of the root module, in words
	// Clusters are sorted by reach, then name. Those that are planned are among
	// the pull request's clusters, as samples.
	Clusters []ImpactCluster `json:"clusters"`
}

// ImpactCluster is a cluster that a change of its template would change.
type ImpactCluster struct {
	Name    string      `json:"name"`
	Repo    string      `json:"repo"`
	Reach   ImpactReach `json:"reach"`
	Version string      `json:"version,omitempty"` // its template's version now; empty: a folder
}

// ImpactRefusal is a cluster that a new template would refuse.
type ImpactRefusal struct {
	ImpactCluster
	Faults holdfast.Faults `json:"faults"`
}
