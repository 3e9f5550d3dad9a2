package protocol

import "github.com/holdfast-dev/holdfast"

// PolicySource is a file with policies (*.rego), or with data for them (data.json).
type PolicySource struct {
	From string `json:"from,omitempty"` // what its path is shown behind: whose file it is
	Path string `json:"path"`
	Text string `json:"text"`
}

// AssignedPolicies are the policies that an attempt evaluates over its plan.
type AssignedPolicies struct {
	Set      holdfast.Digest `json:"set"`
	Sources  []PolicySource  `json:"sources"`
	Settings map[string]any  `json:"settings,omitempty"`
	Context  PolicyContext   `json:"context"`
	// Waived are the ids of policies whose results hold no apply. An agent of an older version
	// holds it nevertheless.
	Waived []string `json:"waived,omitempty"`
}

// PolicyContext is what policies know besides the plan, as input.
type PolicyContext struct {
	// Run says what the plan is for.
	Run PolicyRun `json:"run"`
	// Cluster is its document, with the defaults filled in.
	Cluster holdfast.Cluster `json:"cluster"`
	// Template is the version that the root module is rendered from; zero if the cluster has
	// its own root module.
	Template PolicyVersion `json:"template,omitzero"`
	// Engine is the one that made the plan.
	Engine PolicyVersion `json:"engine,omitzero"`
	// Providers are the providers that the lock file selects.
	Providers []PolicyVersion `json:"providers,omitempty"`
	// PullRequest is what proposes the change; zero on the tracked branch.
	PullRequest PolicyPullRequest `json:"pull_request,omitzero"`
}

// PolicyRun says what a plan is for.
type PolicyRun struct {
	Kind     holdfast.RunKind `json:"kind"`
	Destroys bool             `json:"destroys"` // it is a plan of the destruction of its cluster
}

// PolicyVersion is something with a version, and which one it had at the last apply.
type PolicyVersion struct {
	Name            string `json:"name"`
	Version         string `json:"version"`
	PreviousVersion string `json:"previous_version"` // empty: nothing was applied yet, or it had none
}

// PolicyPullRequest is what proposes a change.
type PolicyPullRequest struct {
	Repository string   `json:"repository"`
	Number     int      `json:"number"`
	Author     string   `json:"author"`
	Files      []string `json:"files"` // paths that it changes
}
