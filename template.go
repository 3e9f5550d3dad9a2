package holdfast

import "time"

// What an output of a template can mean to Holdfast.
const (
	OutputRoleEndpoint   = "endpoint"   // URL of the cluster's API server
	OutputRoleKubeconfig = "kubeconfig" // a kubeconfig; always sensitive
	OutputRoleNodeCount  = "nodeCount"  // how many nodes there are
)

// SecretRef says where the value of a secret variable is. Exactly one of Env,
// File and Store is set. What it points to is looked up by the agent, just
// before the engine starts; the value is in no record and in no bundle.
type SecretRef struct {
	Env   string `json:"env,omitempty"`   // a variable of the run's credentials
	File  string `json:"file,omitempty"`  // a file in one of the run's secret folders
	Store string `json:"store,omitempty"` // a secret store of the run's credentials
	Key   string `json:"key,omitempty"`   // of Store: which of its secrets
}

// UnitFile is the file that Holdfast writes next to the terragrunt.hcl of a unit: an agent
// that finds it has Terragrunt render the root module, and one that does not know what it
// means finds a required_version that no engine has.
const UnitFile = "holdfast_terragrunt.tf"

// SecretFile is the file of a root module that says, as JSON, where its secret
// variables are: map[string]SecretRef by variable. The engine does not read it.
const SecretFile = "holdfast_secrets.json"

// VariablesFile is the file of a root module that has, as JSON, the variables of
// the cluster's document. They win over all other files of variables.
const VariablesFile = "holdfast.auto.tfvars.json"

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
	Changes []TemplateChange `json:"changes,omitempty"` // since Released, else since the base

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
	Key     Digest   `json:"key"`
	Changes []string `json:"changes,omitempty"` // of the root module, in words
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
	Faults Faults `json:"faults"`
}

// UpgradeState is what became of a pull request that we opened.
type UpgradeState string

// The states of an upgrade.
const (
	UpgradeOpen   UpgradeState = "open"
	UpgradeMerged UpgradeState = "merged"
	// UpgradeDeclined: somebody closed it. The same versions are not proposed
	// again automatically.
	UpgradeDeclined UpgradeState = "declined"
	// UpgradeEdited: somebody else has pushed to its branch. It is theirs now.
	UpgradeEdited UpgradeState = "edited"
	// UpgradeObsolete: closed by us, as there was nothing left to propose.
	UpgradeObsolete UpgradeState = "obsolete"
)

// Upgrade is a pull request of ours that proposes newer versions of a template:
// one for each repository, template and group of labels.
type Upgrade struct {
	Repo     string `json:"repo"`
	Key      string `json:"key"` // unique in Repo: "kubernetes", "kubernetes team=payments"
	Template string `json:"template"`
	// Clusters are those that it moves, by name.
	Clusters    []UpgradeCluster `json:"clusters,omitempty"`
	Branch      string           `json:"branch"`
	PullRequest int              `json:"pullRequest,omitempty"` // its number; zero: not opened yet
	URL         string           `json:"url,omitempty"`
	Base        Revision         `json:"base,omitempty"`   // what our last commit stands on
	Head        Revision         `json:"head,omitempty"`   // our last commit
	Digest      Digest           `json:"digest,omitempty"` // of the proposal that is on the forge
	State       UpgradeState     `json:"state"`
	Trouble     string           `json:"trouble,omitempty"` // why it is not as wanted yet
	By          string           `json:"by,omitempty"`      // who asked for it; empty: the documents' `upgrades`
	UpdatedAt   time.Time        `json:"updatedAt"`
	Version     int64            `json:"version"` // optimistic
}

// UpgradeCluster is a cluster that an upgrade moves.
type UpgradeCluster struct {
	Name string `json:"name"`
	Path string `json:"path"`
	From string `json:"from"`
	To   string `json:"to"`
}

// UpgradeRequest asks for upgrades at once.
type UpgradeRequest struct {
	Clusters []string          `json:"clusters,omitempty"` // by name
	Labels   map[string]string `json:"labels,omitempty"`   // or by labels, all equal
	All      bool              `json:"all,omitempty"`      // or all
	Template string            `json:"template,omitempty"` // only those of this template
	// To is the version; empty: the newest that `upgrades` allows, and for
	// documents without it the newest of the same major version.
	To    string `json:"to,omitempty"`
	Actor string `json:"actor,omitempty"`
}

// Proposal is a pull request that we make: a branch with one commit on top of
// Base.
type Proposal struct {
	Branch     string            `json:"branch"`
	Base       Revision          `json:"base"`          // head of the tracked branch
	BaseBranch string            `json:"baseBranch"`    // the tracked branch
	Files      map[string][]byte `json:"files"`         // new contents by path, nil: it is removed; the files are there already, unless New
	New        bool              `json:"new,omitempty"` // files that are not there are made
	Message    string            `json:"message"`       // of the commit
	Title      string            `json:"title"`
	Body       string            `json:"body"`
	Labels     []string          `json:"labels,omitempty"`
	// Head is our last commit on Branch; empty: none that we know of. A branch
	// that is elsewhere is somebody's work, an ErrConflict, unless its head says
	// that we made it: then the answer was lost. See ProposedBy.
	Head Revision `json:"head,omitempty"`
}

// TemplateStatus is a template with who uses it, for people.
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
	Version  string   `json:"version"`
	Tag      string   `json:"tag"`
	Revision Revision `json:"revision"`
	Clusters int      `json:"clusters"`           // how many documents name it
	MovedTo  Revision `json:"movedTo,omitempty"`  // what its tag names now, if that is another commit: it is refused
	Unusable string   `json:"unusable,omitempty"` // why it cannot be used
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
	// should be; empty: it is, or it will be. Of all templates at once it is not told
	// which documents Next would refuse.
	Trouble string `json:"trouble,omitempty"`
}

// TemplateDetail is what a version of a template says to those who make clusters from it.
type TemplateDetail struct {
	Name, Version string
	Description   string
	Schema        map[string]any // JSON Schema of the variables
	Required      []string       // variables that the schema requires
	Rules         []TemplateRule
	Providers     []TemplateProvider // by name
}

// TemplateRule is a rule that variables keep.
type TemplateRule struct {
	Rule    string // CEL
	Message string
	Path    string // the variable that it is reported at; may be empty
}

// TemplateProvider is what a template has for one provider.
type TemplateProvider struct {
	Name          string
	Regions       []string       // empty: any
	InstanceTypes []string       // globs; empty: any
	Defaults      map[string]any // of variables, in place of those of the schema
}
