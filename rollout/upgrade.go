package rollout

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

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
	// Clusters are the clusters that it moves, by name.
	Clusters    []UpgradeCluster  `json:"clusters,omitempty"`
	Branch      string            `json:"branch"`
	PullRequest int               `json:"pullRequest,omitempty"` // its number; zero: not opened yet
	URL         string            `json:"url,omitempty"`
	Base        holdfast.Revision `json:"base,omitempty"`   // the base of our last commit
	Head        holdfast.Revision `json:"head,omitempty"`   // our last commit
	Digest      holdfast.Digest   `json:"digest,omitempty"` // of the proposal that is on the forge
	State       UpgradeState      `json:"state"`
	Trouble     string            `json:"trouble,omitempty"` // why it is not as wanted yet
	By          string            `json:"by,omitempty"`      // who asked for it; empty: the documents' `upgrades`
	UpdatedAt   time.Time         `json:"updatedAt"`
	Version     int64             `json:"version"` // optimistic
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
