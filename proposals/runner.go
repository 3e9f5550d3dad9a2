package proposals

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// RunnerChange asks for a pull request that changes the document of a runner.
type RunnerChange struct {
	Name     string
	Change   string          // create, update or delete
	Type     runnerspec.Type // to create one without a document
	Document string          // the whole document, YAML
	Set      []string        // changes of single keys below spec: "job.namespace=runs"
	Repo     string          // where to create one; empty: the only repository that may define runners
	Path     string          // in which file to create one; empty: runners/NAME.yaml
	By       string          // who asks
}

// RunnerOutcome is the pull request that was made.
type RunnerOutcome struct {
	PullRequest holdfast.PullRequest
	Path        string // of the file that it changes
	Document    string // as it would be; empty: it would be gone
}
