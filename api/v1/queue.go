package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// QueuedRun is a run that waits for an agent.
type QueuedRun struct {
	Position    int                `json:"position"` // From 1, in the whole queue, if nothing is held back and nothing else comes.
	Run         string             `json:"run"`
	Cluster     string             `json:"cluster"`
	Kind        holdfast.RunKind   `json:"kind"`
	Status      holdfast.RunStatus `json:"status"`               // queued or retrying.
	Project     string             `json:"project"`              // The project of the cluster.
	Runner      string             `json:"runner"`               // Whose agents execute it.
	PullRequest PullRequestRef     `json:"pullRequest,omitzero"` // What it was made for; absent: the tracked branch.
	Ahead       Ahead              `json:"ahead"`
	Reason      holdfast.Reason    `json:"reason,omitempty"` // What holds it back besides its turn; absent: nothing.
	Detail      string             `json:"detail,omitempty"` // That in a sentence.
	CreatedAt   time.Time          `json:"createdAt"`
}

// Ahead counts the runs that go before a run, by the reason. Their sum is one less than
// its position.
type Ahead struct {
	Priority int `json:"priority"` // Their kind goes first: applies and destroys, then plans, samples, drift checks, first plans of clusters.
	Own      int `json:"own"`      // Older ones of the same pull request or, outside of pull requests, project.
	Others   int `json:"others"`   // Turns of other pull requests and projects.
	Overdue  int `json:"overdue"`  // Runs of a kind with lower priority that have waited too long.
}

// QueuedRunOf returns what the API says of a run that waits.
func QueuedRunOf(r holdfast.QueuedRun) QueuedRun {
	return QueuedRun{
		Position: r.Position, Run: r.Run.ID, Cluster: r.Run.Cluster, Kind: r.Run.Kind, Status: r.Run.Status,
		Project: r.Run.Document.Project, Runner: r.Run.RunnerName(), PullRequest: PullRequestRef(r.Run.PullRequest),
		Ahead: Ahead(r.Ahead), Reason: r.Reason, Detail: r.Detail, CreatedAt: r.Run.CreatedAt,
	}
}
