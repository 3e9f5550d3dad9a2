package v1

import (
	"encoding/json"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// DocumentPlace is where a document of a tracked branch is.
type DocumentPlace struct {
	Repo     string            `json:"repo"` // As holdfast.yaml names it.
	Path     string            `json:"path"`
	Line     int               `json:"line"`
	Revision holdfast.Revision `json:"revision"` // The revision that it was read from.
}

// Runner is a place where agents execute runs, as its last good document says.
type Runner struct {
	Name         string          `json:"name"`
	Type         runnerspec.Type `json:"type"`
	Place        DocumentPlace   `json:"place,omitzero"` // Absent: the local runner, which has no document.
	Spec         json.RawMessage `json:"spec,omitempty"` // Its settings besides the type, as documents have them.
	Faults       []Fault         `json:"faults,omitempty"`
	Environments int             `json:"environments"` // How many are pinned to it.
	Agents       int             `json:"agents"`       // How many living agents belong to it.
}

// RunnerOf returns what the API says of a runner, given how many environments and living
// agents it has.
func RunnerOf(r runnerspec.Record, environments, agents int) Runner {
	spec := r.Document
	spec.Name, spec.Type = "", ""
	out := Runner{
		Name: r.Document.Name, Type: r.Document.Type, Place: DocumentPlace(r.Place), Faults: all(r.Faults, faultOf),
		Environments: environments, Agents: agents,
	}
	if out.Type != runnerspec.Local {
		out.Spec, _ = json.Marshal(runnerSpec(spec)) // plain values always marshal
	}
	return out
}

// runnerSpec is a runner without its name and type.
type runnerSpec runnerspec.Runner

// MarshalJSON leaves out the name and the type.
func (s runnerSpec) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(runnerspec.Runner(s))
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	delete(fields, "name")
	delete(fields, "type")
	return json.Marshal(fields)
}

// RunnerRule says which runner an environment gets when it first runs, as its last good
// document says.
type RunnerRule struct {
	Name        string        `json:"name"`
	Runner      string        `json:"runner"`
	Project     string        `json:"project,omitempty"`     // Absent: any.
	Environment string        `json:"environment,omitempty"` // Absent: any.
	Place       DocumentPlace `json:"place"`
	Faults      []Fault       `json:"faults,omitempty"`
}

// RunnerRuleOf returns what the API says of a rule.
func RunnerRuleOf(r runnerspec.RuleRecord) RunnerRule {
	return RunnerRule{
		Name: r.Document.Name, Runner: r.Document.Runner, Project: r.Document.Project, Environment: r.Document.Environment,
		Place: DocumentPlace(r.Place), Faults: all(r.Faults, faultOf),
	}
}

// RunnerDetail is a runner with what belongs to it.
type RunnerDetail struct {
	Runner
	Rules  []RunnerRule  `json:"rules,omitempty"`  // Those that name it.
	Pinned []Environment `json:"pinned,omitempty"` // The environments that are pinned to it.
	IDs    []string      `json:"ids,omitempty"`    // Its living agents.
}

// Environment is an environment that has had runs, and the runner that it is pinned to.
type Environment struct {
	Project  string    `json:"project"`
	Name     string    `json:"name"`
	Runner   string    `json:"runner"`
	Rule     string    `json:"rule,omitempty"` // The rule that selected the runner; absent: no rule matched.
	PinnedAt time.Time `json:"pinnedAt"`
}

// EnvironmentOf returns what the API says of an environment.
func EnvironmentOf(e holdfast.Environment) Environment {
	return Environment{Project: e.Project, Name: e.Name, Runner: e.Runner, Rule: e.Rule, PinnedAt: e.PinnedAt}
}

// RefreshRequest asks for an environment to be pinned to the runner that the rules select now.
type RefreshRequest struct {
	Project     string `json:"project"`
	Environment string `json:"environment"`
	DryRun      bool   `json:"dryRun,omitempty"` // Only show what would happen.
}

// Refresh is the result for an environment.
type Refresh struct {
	Before Environment `json:"before"`
	After  Environment `json:"after"`            // The same: the rules select its current runner. Without a runner: it has no clusters, and is not pinned.
	DryRun bool        `json:"dryRun,omitempty"` // It has not changed.
}

// RunnerProposal asks for a pull request that changes the document of a runner.
type RunnerProposal struct {
	Name     string          `json:"name"`
	Change   string          `json:"change"`             // create, update or delete.
	Type     runnerspec.Type `json:"type,omitempty"`     // To create one without a document.
	Document string          `json:"document,omitempty"` // The whole document, YAML.
	// Set are changes of single keys below spec, such as "job.namespace=runs"; the value is
	// YAML, and an empty one removes the key.
	Set  []string `json:"set,omitempty"`
	Repo string   `json:"repo,omitempty"` // Where to create one; absent: the only repository that may define runners.
	Path string   `json:"path,omitempty"` // In which file to create one; absent: runners/NAME.yaml.
}

// ProposedRunner is the pull request that was made.
type ProposedRunner struct {
	PullRequest PullRequestRef `json:"pullRequest"`
	State       string         `json:"state"` // open; closed or merged if the same was proposed before.
	URL         string         `json:"url,omitempty"`
	Branch      string         `json:"branch"`
	Path        string         `json:"path"` // The file that it changes.
	Document    string         `json:"document,omitempty"`
}
