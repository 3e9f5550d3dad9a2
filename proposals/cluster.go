package proposals

import "github.com/holdfast-dev/holdfast"

// The changes of a cluster's document that can be proposed.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
)

// ClusterChange asks for a pull request that changes the document of a cluster.
type ClusterChange struct {
	Name     string
	Change   string   // create, update or delete
	Document string   // the whole document, YAML; empty: as it is, or a new one, with what is Set
	Set      []string // changes of single keys below spec: "variables.node_count=6"
	Repo     string   // where to create one; empty: the only repository that defines clusters
	Path     string   // in which file to create one; empty: one of its own
	By       string   // who asks
	Projects []string // of which the cluster must be, before and after; none: any
	DryRun   bool     // only say what it would be
}

// ClusterOutcome is the result of a ClusterChange.
type ClusterOutcome struct {
	PullRequest holdfast.PullRequest // zero: none was made
	Repo        string
	Path        string          // of the file that it changes
	Line        int             // of the file, from 1, at which the document begins
	Document    string          // as it would be; empty: it would be gone
	Faults      holdfast.Faults // what is wrong with it; with any, no pull request is made
}
