package holdfast

import (
	"fmt"
	"time"
)

// LocalRunner is the name of the runner that is always there.
const LocalRunner = "local"

// EnvironmentKey names an environment of a project.
type EnvironmentKey struct {
	Project string `json:"project"`
	Name    string `json:"name"`
}

// String returns "project/name", as people write it.
func (k EnvironmentKey) String() string { return k.Project + "/" + k.Name }

// EnvironmentKey is that of the environment that the cluster belongs to.
func (c Cluster) EnvironmentKey() EnvironmentKey { return EnvironmentKey{c.Project, c.Environment} }

// Environment is an environment that has run, and the runner that it is pinned to since:
// rules that change move it nowhere until somebody asks for it.
type Environment struct {
	EnvironmentKey
	Runner   string    `json:"runner"`
	Rule     string    `json:"rule,omitempty"` // by which it has that runner; empty: no rule matched
	PinnedAt time.Time `json:"pinnedAt"`
}

// RunnerChange is the change of a runner or a rule that a pull request makes.
type RunnerChange struct {
	Kind   string `json:"kind"` // of the document: Runner or RunnerRule
	Name   string `json:"name"`
	Change string `json:"change"` // added, changed or removed
	// Environments are the environments that it affects: of a runner, those that are pinned
	// to it; of a rule, those that a refresh would move.
	Environments []AffectedEnvironment `json:"environments,omitempty"`
}

// AffectedEnvironment is an environment on which a change of a runner or a rule bears.
type AffectedEnvironment struct {
	EnvironmentKey
	Runner   string   `json:"runner"`         // that it is pinned to
	Next     string   `json:"next,omitempty"` // a rule: the runner that a refresh would move it to; empty: none matches
	Clusters []string `json:"clusters"`       // sorted
}

// EnvironmentFilter selects environments. Zero fields select all.
type EnvironmentFilter struct {
	Projects []string
	Runner   string
}

// EnvironmentBusyError says that an environment cannot move to another runner while one of
// its runs is running. It is an ErrConflict.
type EnvironmentBusyError struct {
	Environment EnvironmentKey
	Run         string
	Cluster     string
}

// Error names the run.
func (e *EnvironmentBusyError) Error() string {
	return fmt.Sprintf("run %s of %s is running in environment %s", e.Run, e.Cluster, e.Environment)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *EnvironmentBusyError) Is(target error) bool { return target == ErrConflict }
