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
}

// ReconcileRequest asks to look at something again: exactly one of these.
type ReconcileRequest struct {
	Repo    string `json:"repo,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	All     bool   `json:"all,omitempty"` // all repositories
}

// VersionAnswer says what server this is, and what time it is there.
type VersionAnswer struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
}
