package v1

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/proposals"
)

// ClusterProposal asks for a pull request that adds, changes or removes the document of a
// cluster. It goes the way of all pull requests: nothing is applied that was not reviewed, and
// who asked for it cannot approve it.
type ClusterProposal struct {
	Change  string `json:"change"` // create, update or delete.
	Cluster string `json:"cluster"`
	Repo    string `json:"repo,omitempty"` // Where to create one; absent: the only repository that defines clusters.
	Path    string `json:"path,omitempty"` // In which file to create one; absent: one of its own, where the repository has its clusters.

	Project     string         `json:"project,omitempty"`
	Environment string         `json:"environment,omitempty"`
	Template    string         `json:"template,omitempty"` // The name of the template.
	Version     string         `json:"version,omitempty"`  // Its exact version.
	Provider    string         `json:"provider,omitempty"`
	Region      string         `json:"region,omitempty"`
	Variables   map[string]any `json:"variables,omitempty"` // Those that are set; null removes one.
	// Set are changes of other keys below spec, such as "drift.schedule=6h"; the value is
	// YAML, and an empty one removes the key.
	Set      []string `json:"set,omitempty"`
	Document string   `json:"document,omitempty"` // The whole document, YAML, in which the above is set; absent: as it is, or a new one.

	DryRun bool `json:"dryRun,omitempty"` // Only say what it would be, and what is wrong with it.
}

// Proposal is what a request asks for.
func (p ClusterProposal) Proposal() proposals.ClusterChange {
	out := proposals.ClusterChange{
		Name: p.Cluster, Change: p.Change, Document: p.Document, Repo: p.Repo, Path: p.Path, DryRun: p.DryRun,
	}
	for _, one := range []struct{ key, value string }{
		{"project", p.Project},
		{"environment", p.Environment},
		{"template.name", p.Template},
		{"template.version", p.Version},
		{"provider", p.Provider},
		{"region", p.Region},
	} {
		if one.value != "" {
			out.Set = append(out.Set, setting(one.key, one.value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Variables)) {
		out.Set = append(out.Set, setting("variables."+name, p.Variables[name]))
	}
	out.Set = append(out.Set, p.Set...)
	return out
}

// setting sets a key to a value; null removes it.
func setting(key string, value any) string {
	if value == nil {
		return key + "="
	}
	data, _ := json.Marshal(value) // it comes from JSON
	return key + "=" + string(data)
}

// ProposedCluster is what came of a ClusterProposal.
type ProposedCluster struct {
	PullRequest PullRequestRef `json:"pullRequest,omitzero"` // Absent: it was a dry run.
	State       string         `json:"state,omitempty"`      // open; closed or merged if the same was proposed before.
	URL         string         `json:"url,omitempty"`
	Branch      string         `json:"branch,omitempty"`
	Repo        string         `json:"repo"`
	Path        string         `json:"path"`               // The file that it changes.
	Line        int            `json:"line,omitempty"`     // Where the document begins in it, from 1.
	Document    string         `json:"document,omitempty"` // As it would be; absent: it would be gone.
	Faults      []Fault        `json:"faults,omitempty"`   // Of a dry run: what is wrong with it.
}

// ProposedClusterOf returns what the API says of it.
func ProposedClusterOf(p proposals.ClusterOutcome) ProposedCluster {
	return ProposedCluster{
		PullRequest: PullRequestRef(p.PullRequest.PullRequestRef), State: string(p.PullRequest.State), URL: p.PullRequest.URL, Branch: p.PullRequest.Branch,
		Repo: p.Repo, Path: p.Path, Line: p.Line, Document: p.Document, Faults: all(p.Faults, faultOf),
	}
}
