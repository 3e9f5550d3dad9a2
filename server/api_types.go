package server

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// The messages of the API, JSON over HTTP, beside the records of the root
// package that it answers with.

// List is an answer that has several items.
type List[T any] struct {
	Items []T `json:"items"`
}

// PullRequestAnswer is a pull request with what we said about it.
type PullRequestAnswer struct {
	PullRequest holdfast.PullRequestRecord `json:"pullRequest"`
	Comments    []holdfast.Comment         `json:"comments,omitempty"`
	Statuses    []holdfast.CommitStatus    `json:"statuses,omitempty"`
	// Refused is what the forge does not take: it is posted again when it changes, or
	// by `holdfast reconcile` and commands.
	Refused []RefusedPost `json:"refused,omitempty"`
}

// RefusedPost is a comment, a status or a reaction that a forge has refused so often
// that it is not tried any longer.
type RefusedPost struct {
	Kind   holdfast.PostKind `json:"kind"`
	What   string            `json:"what"` // such as "holdfast/plan of 1a2b3c4"
	Reason string            `json:"reason"`
}

// LockAnswer is who holds a cluster's lock.
type LockAnswer struct {
	Cluster string              `json:"cluster"`
	Holder  holdfast.LockHolder `json:"holder"`
	Run     holdfast.Run        `json:"run"`
	// Alive is true while the run's agent still beats.
	Alive bool `json:"alive"`
}

// CommandRequest asks for what /holdfast does in a comment.
type CommandRequest struct {
	Verb holdfast.Verb `json:"verb"`
	// One of: a pull request (with clusters, only for these), clusters, or a run.
	PullRequest holdfast.PullRequestRef `json:"pullRequest,omitzero"`
	Clusters    []string                `json:"clusters,omitempty"`
	// Run is a run whose plan is meant, or that is to be canceled. It stands for
	// its cluster and pull request.
	Run   string `json:"run,omitempty"`
	Force bool   `json:"force,omitempty"`
	// All, with plan and a pull request that changes a template: every cluster
	// that the change would change.
	All bool `json:"all,omitempty"`
}

// ReconcileRequest asks to look at something again: exactly one of these.
type ReconcileRequest struct {
	Repo    string `json:"repo,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	All     bool   `json:"all,omitempty"` // all repositories
}

// DriftLine is a cluster in the list of what has drifted.
type DriftLine struct {
	Cluster     string `json:"cluster"`
	Owner       string `json:"owner"`
	Project     string `json:"project"`
	Environment string `json:"environment"`
	// State is whole for clusters that have drifted or whose check failed. Of
	// others it has the status, the counts, and when the checks were and will be.
	State   holdfast.DriftState `json:"state"`
	OnDrift string              `json:"onDrift,omitempty"` // of clusters that have drifted or whose check failed
	// NotApplied is true if what is desired is not what was applied: no drift.
	// Waiting says for what.
	NotApplied bool   `json:"notApplied,omitempty"`
	Waiting    string `json:"waiting,omitempty"`
	Issue      string `json:"issue,omitempty"` // its open issue, or the one of many clusters; empty: none known
}

// SuspensionAnswer is a suspension: of a cluster, of a project's clusters, or
// of all.
type SuspensionAnswer struct {
	Cluster string    `json:"cluster,omitempty"`
	Project string    `json:"project,omitempty"` // both empty: all clusters
	By      string    `json:"by,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// SuspendClusterRequest is the body of a request to stop or to allow the runs of one
// cluster; it may be left out.
type SuspendClusterRequest struct {
	Reason string `json:"reason,omitempty"`
}

// SuspendRequest asks to stop or to allow runs: exactly one of project and all.
type SuspendRequest struct {
	Project string `json:"project,omitempty"`
	All     bool   `json:"all,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// TransferRequest gives a cluster to a repository.
type TransferRequest struct {
	Repo string `json:"repo"`
}

// VersionAnswer says what server this is, and what time it is there.
type VersionAnswer struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
}
