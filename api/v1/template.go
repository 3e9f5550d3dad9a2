package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rollout"
)

// Template is a template with its versions and the clusters that use it.
type Template struct {
	Name     string            `json:"name"`
	Repo     string            `json:"repo"`
	Dir      string            `json:"dir"`                // Its folder in the repository.
	Versions []TemplateVersion `json:"versions,omitempty"` // The newest first.
	Prepared string            `json:"prepared,omitempty"` // The version that the tracked branch prepares and that no tag has.
	Trouble  string            `json:"trouble,omitempty"`  // Why it cannot be used.
	Users    []TemplateUse     `json:"users,omitempty"`    // Those furthest behind first.
}

// TemplateOf returns what the API says of a template.
func TemplateOf(t rollout.TemplateStatus) Template {
	return Template{
		Name: t.Name, Repo: t.Repo, Dir: t.Dir, Versions: all(t.Versions, templateVersionOf), Prepared: t.Prepared, Trouble: t.Trouble,
		Users: all(t.Users, templateUseOf),
	}
}

// TemplateVersion is a released version of a template.
type TemplateVersion struct {
	Version  string            `json:"version"`
	Tag      string            `json:"tag"`
	Revision holdfast.Revision `json:"revision"`
	Clusters int               `json:"clusters"`           // How many documents name it.
	MovedTo  holdfast.Revision `json:"movedTo,omitempty"`  // Where its tag was moved to: it is refused.
	Unusable string            `json:"unusable,omitempty"` // Why it cannot be used.
}

func templateVersionOf(r rollout.TemplateRelease) TemplateVersion { return TemplateVersion(r) }

// TemplateUse is a cluster that uses a template.
type TemplateUse struct {
	Cluster  string `json:"cluster"`
	Owner    string `json:"owner"`
	Version  string `json:"version,omitempty"`  // Desired; absent: a folder of its repository.
	Applied  string `json:"applied,omitempty"`  // The version that was applied last.
	Behind   int    `json:"behind"`             // How many releases are newer.
	Upgrades string `json:"upgrades,omitempty"` // The constraint within which newer versions are proposed.
	Next     string `json:"next,omitempty"`     // What the constraint allows; absent: nothing newer.
	Proposed int    `json:"proposed,omitempty"` // The number of the open pull request that brings it.
	Trouble  string `json:"trouble,omitempty"`  // Why next is not proposed, or why its pull request is not up to date.
}

func templateUseOf(u rollout.TemplateUse) TemplateUse { return TemplateUse(u) }

// UpgradeRequest asks for upgrades at once: exactly one of clusters, labels and all.
type UpgradeRequest struct {
	Clusters []string          `json:"clusters,omitempty"` // By name.
	Labels   map[string]string `json:"labels,omitempty"`   // All of them equal.
	All      bool              `json:"all,omitempty"`
	Template string            `json:"template,omitempty"` // Only clusters of this template.
	// An exact version, such as 1.5.0; absent: the newest that `upgrades` allows, and for
	// documents without it the newest of the same major version.
	To string `json:"to,omitempty"`
}

// Request returns what is asked for, by an actor.
func (r UpgradeRequest) Request(actor string) rollout.UpgradeRequest {
	return rollout.UpgradeRequest{Clusters: r.Clusters, Labels: r.Labels, All: r.All, Template: r.Template, To: r.To, Actor: actor}
}

// Upgrade is a pull request of Holdfast's that proposes newer versions of a template.
type Upgrade struct {
	Repo        string               `json:"repo"`
	Key         string               `json:"key"` // Unique in the repository, such as "kubernetes team=payments".
	Template    string               `json:"template"`
	Clusters    []UpgradeCluster     `json:"clusters,omitempty"` // Those that it moves, by name.
	Branch      string               `json:"branch"`
	PullRequest int                  `json:"pullRequest,omitempty"` // Its number; absent: it is not open yet.
	URL         string               `json:"url,omitempty"`
	Base        holdfast.Revision    `json:"base,omitempty"` // The parent of its commit.
	Head        holdfast.Revision    `json:"head,omitempty"` // Its commit.
	State       rollout.UpgradeState `json:"state"`
	Trouble     string               `json:"trouble,omitempty"` // Why it is not up to date yet.
	By          string               `json:"by,omitempty"`      // Who asked for it; absent: the documents' `upgrades`.
	UpdatedAt   time.Time            `json:"updatedAt"`
}

// UpgradeOf returns what the API says of an upgrade.
func UpgradeOf(u rollout.Upgrade) Upgrade {
	return Upgrade{
		Repo: u.Repo, Key: u.Key, Template: u.Template, Clusters: all(u.Clusters, upgradeClusterOf), Branch: u.Branch, PullRequest: u.PullRequest,
		URL: u.URL, Base: u.Base, Head: u.Head, State: u.State, Trouble: u.Trouble, By: u.By, UpdatedAt: u.UpdatedAt,
	}
}

// UpgradeCluster is a cluster that an upgrade moves.
type UpgradeCluster struct {
	Name string `json:"name"`
	Path string `json:"path"` // The file that is changed.
	From string `json:"from"` // The version before.
	To   string `json:"to"`   // The version after.
}

func upgradeClusterOf(c rollout.UpgradeCluster) UpgradeCluster { return UpgradeCluster(c) }

// TemplateDetail is what a version of a template says to those who make clusters from it.
type TemplateDetail struct {
	Name        string             `json:"name"`
	Version     string             `json:"version"`
	Description string             `json:"description,omitempty"`
	Schema      map[string]any     `json:"schema"`             // JSON Schema of the variables.
	Required    []string           `json:"required,omitempty"` // The variables that the schema requires.
	Rules       []TemplateRule     `json:"rules,omitempty"`
	Providers   []TemplateProvider `json:"providers"` // By name.
}

// TemplateRule is a rule that variables keep.
type TemplateRule struct {
	Rule    string `json:"rule"` // CEL.
	Message string `json:"message"`
	Path    string `json:"path,omitempty"` // The variable that it is reported at.
}

// TemplateProvider is what a template has for one provider.
type TemplateProvider struct {
	Name          string         `json:"name"`
	Regions       []string       `json:"regions,omitempty"`       // Absent: any.
	InstanceTypes []string       `json:"instanceTypes,omitempty"` // Globs; absent: any.
	Defaults      map[string]any `json:"defaults,omitempty"`      // Of variables, in place of those of the schema.
}

// TemplateDetailOf returns what the API says of a version of a template.
func TemplateDetailOf(t holdfast.TemplateDetail) TemplateDetail {
	return TemplateDetail{
		Name: t.Name, Version: t.Version, Description: t.Description, Schema: t.Schema, Required: t.Required,
		Rules:     all(t.Rules, func(r holdfast.TemplateRule) TemplateRule { return TemplateRule(r) }),
		Providers: all(t.Providers, func(p holdfast.TemplateProvider) TemplateProvider { return TemplateProvider(p) }),
	}
}
