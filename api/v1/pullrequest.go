package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// PullRequest is what Holdfast knows of a pull request.
type PullRequest struct {
	Repo   string                    `json:"repo"`
	Number int                       `json:"number"`
	Title  string                    `json:"title"`
	Author string                    `json:"author"`
	URL    string                    `json:"url,omitempty"`
	State  holdfast.PullRequestState `json:"state"`
	Draft  bool                      `json:"draft,omitempty"`
	Fork   bool                      `json:"fork,omitempty"` // The head is in another repository.

	PullRequestCommits
	PullRequestReview

	UpdatedAt time.Time `json:"updatedAt,omitzero"`

	Clusters   []PullRequestCluster `json:"clusters,omitempty"` // Those that it affects.
	Faults     []Fault              `json:"faults,omitempty"`
	AllSamples bool                 `json:"allSamples,omitempty"` // Plans of all clusters that a change of a template would change were asked for.
	Reason     holdfast.Reason      `json:"reason,omitempty"`     // Why nothing is planned.
	Detail     string               `json:"detail,omitempty"`
	Version    int64                `json:"version"` // Grows with each change of the pull request.
}

// PullRequestCommits are the commits of a pull request.
type PullRequestCommits struct {
	Branch      string            `json:"branch"`         // Of the head, in its repository.
	Head        holdfast.Revision `json:"head"`           // The last head before a merge.
	BaseBranch  string            `json:"baseBranch"`     // Where it is to be merged.
	Base        holdfast.Revision `json:"base,omitempty"` // The head of the base branch that its merge result was made with.
	MergeCommit holdfast.Revision `json:"mergeCommit,omitempty"`
	MergedAt    time.Time         `json:"mergedAt,omitzero"` // By the code host's clock.
}

// PullRequestReview is what people and the code host say about a pull request.
type PullRequestReview struct {
	Approved  bool       `json:"approved,omitempty"`  // At least one approving review of the head, and none that asks for changes.
	Verdicts  []Verdict  `json:"verdicts,omitempty"`  // The last review of each person with write permission.
	Approvals []Approval `json:"approvals,omitempty"` // Those given by a command.
	Mergeable bool       `json:"mergeable,omitempty"` // The code host would let it be merged.
	Blocked   string     `json:"blocked,omitempty"`   // The code host's word for why it would not.
}

// Ref returns which one it is.
func (p PullRequest) Ref() PullRequestRef { return PullRequestRef{Repo: p.Repo, Number: p.Number} }

// String returns "repo#number".
func (p PullRequest) String() string { return p.Ref().String() }

// PullRequestOf returns what the API says of a pull request.
func PullRequestOf(r holdfast.PullRequestRecord) PullRequest {
	return PullRequest{
		Repo: r.Repo, Number: r.Number, Title: r.Title, Author: r.Author, URL: r.URL, State: r.State, Draft: r.Draft, Fork: r.Fork,
		PullRequestCommits: PullRequestCommits{
			Branch: r.Branch, Head: r.Head, BaseBranch: r.BaseBranch, Base: r.Base, MergeCommit: r.MergeCommit, MergedAt: r.MergedAt,
		},
		PullRequestReview: PullRequestReview{
			Approved: r.Approved, Verdicts: all(r.Verdicts, verdictOf), Approvals: all(r.Approvals, approvalOf), Mergeable: r.Mergeable, Blocked: r.Blocked,
		},
		UpdatedAt: r.UpdatedAt, Clusters: all(r.Clusters, pullRequestClusterOf), Faults: all(r.Faults, faultOf), AllSamples: r.AllSamples,
		Reason: r.Reason, Detail: r.Detail, Version: r.Version,
	}
}

// Verdict is somebody's review of a pull request on the code host.
type Verdict struct {
	By       string            `json:"by"`
	Approves bool              `json:"approves,omitempty"` // Absent: it asks for changes.
	Head     holdfast.Revision `json:"head"`               // What was reviewed.
	At       time.Time         `json:"at"`                 // By the code host's clock.
}

func verdictOf(v holdfast.Verdict) Verdict { return Verdict(v) }

// Approval is an approval of a pull request's head, given by a command.
type Approval struct {
	By        string            `json:"by"`
	Head      holdfast.Revision `json:"head"`
	At        time.Time         `json:"at"`
	Runs      []string          `json:"runs,omitempty"`      // The runs whose plans were shown at that time.
	Clusters  []string          `json:"clusters,omitempty"`  // The clusters that it covers. Absent: all.
	CommentID string            `json:"commentId,omitempty"` // The comment that gave it.
	Ended     string            `json:"ended,omitempty"`     // Why it no longer counts.
	Waives    string            `json:"waives,omitempty"`    // A policy: it approves nothing, and has that policy not count.
	Why       string            `json:"why,omitempty"`       // Of a waiver: its reason.
}

func approvalOf(a holdfast.Approval) Approval {
	return Approval{By: a.By, Head: a.Head, At: a.At, Runs: a.Runs, Clusters: a.Clusters, CommentID: a.CommentID, Ended: a.Ended, Waives: a.Waives, Why: a.Why}
}

// PullRequestCluster is a cluster as a pull request's merge result has it.
type PullRequestCluster struct {
	Name         string            `json:"name"`
	SourceDigest holdfast.Digest   `json:"sourceDigest,omitempty"` // Absent: it is removed, or has faults.
	Removed      bool              `json:"removed,omitempty"`      // The pull request removes its document.
	Document     Document          `json:"document,omitzero"`
	Added        bool              `json:"added,omitempty"`    // It was changed while merging, which no plan of the pull request shows.
	Sample       bool              `json:"sample,omitempty"`   // It represents others that a change of a template would change; the merge leaves it as it is.
	Repo         string            `json:"repo,omitempty"`     // Of a sample: where its document is.
	Revision     holdfast.Revision `json:"revision,omitempty"` // Of a sample: the revision of that repository.
}

func pullRequestClusterOf(c holdfast.PullRequestCluster) PullRequestCluster {
	return PullRequestCluster{
		Name: c.Name, SourceDigest: c.SourceDigest, Removed: c.Removed, Document: DocumentOf(c.Document), Added: c.Added, Sample: c.Sample, Repo: c.Repo, Revision: c.Revision,
	}
}

// PullRequestDetail is a pull request with what Holdfast said about it.
type PullRequestDetail struct {
	PullRequest PullRequest    `json:"pullRequest"`
	Comments    []Comment      `json:"comments,omitempty"`
	Statuses    []CommitStatus `json:"statuses,omitempty"`
	// What an apply requires, and whether it is met now: of an open pull request.
	Gates []Gate `json:"gates,omitempty"`
	// What the code host does not take. It is posted again when it changes, or after a
	// reconcile request or a command.
	Refused []RefusedPost `json:"refused,omitempty"`
	// What is not posted so far: it waits, or could not be posted and is retried.
	Delayed []DelayedPost `json:"delayed,omitempty"`
}

// Gate is a condition of apply.requires, and whether a pull request meets it for a cluster.
type Gate struct {
	Cluster string   `json:"cluster"`
	Name    string   `json:"name"` // As in apply.requires.
	Met     bool     `json:"met"`
	Unknown bool     `json:"unknown,omitempty"` // Whether it is met is not known yet, so it is not met.
	Lifted  bool     `json:"lifted,omitempty"`  // The pull request removes the condition. It still holds for this apply.
	Idle    bool     `json:"idle,omitempty"`    // It is met because it requires nothing for this plan.
	Given   []string `json:"given,omitempty"`   // What counts towards it, in words.
	Missing string   `json:"missing,omitempty"` // Why it is not met, in words.
	From    string   `json:"from,omitempty"`    // What would meet it, in words.
}

// GateOf returns what the API says of a condition for a cluster.
func GateOf(cluster string, g holdfast.Gate) Gate {
	return Gate{
		Cluster: cluster, Name: g.Name, Met: g.Met, Unknown: g.Unknown, Lifted: g.Lifted, Idle: g.Idle,
		Given: g.Given, Missing: g.Missing, From: g.From,
	}
}

// Comment is a comment on a pull request.
type Comment struct {
	ID        string    `json:"id"`
	Author    string    `json:"author"`
	Bot       bool      `json:"bot,omitempty"` // It was written by an app, such as Holdfast.
	Body      string    `json:"body"`          // Markdown.
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
	Editor    string    `json:"editor,omitempty"`    // Who edited it last, as far as the code host says.
	NotPosted string    `json:"notPosted,omitempty"` // Why the code host does not show it in this form.
}

// CommentOf returns what the API says of a comment.
func CommentOf(c holdfast.Comment) Comment {
	return Comment{ID: c.ID, Author: c.Author, Bot: c.Bot, Body: c.Body, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, Editor: c.Editor}
}

// CommitStatus is Holdfast's status of a commit on the code host.
type CommitStatus struct {
	Revision    holdfast.Revision    `json:"revision"`
	Context     string               `json:"context"` // Such as holdfast/plan.
	State       holdfast.StatusState `json:"state"`
	Description string               `json:"description"`
	URL         string               `json:"url,omitempty"`
	NotSet      string               `json:"notSet,omitempty"` // Why the code host does not have it: what it answered to the last try, or that there was none yet.
}

// CommitStatusOf returns what the API says of a commit status.
func CommitStatusOf(s holdfast.CommitStatus) CommitStatus {
	return CommitStatus{Revision: s.Revision, Context: s.Context, State: s.State, Description: s.Description, URL: s.URL}
}

// PostedStatusOf returns what the API says of a commit status on a code host, which may
// not have taken it.
func PostedStatusOf(p outgoing.Post) CommitStatus {
	status := CommitStatusOf(p.Status)
	status.NotSet = NotPosted(p)
	return status
}

// NotPosted is why a code host does not have a post as it is wanted; empty if it does.
func NotPosted(p outgoing.Post) string {
	switch {
	case p.Failures == 0 && p.Wanted <= p.Posted:
		return ""
	case p.LastError != "": // also of one that was refused before it was wanted otherwise
		return p.LastError
	case p.WantedAt.IsZero():
		return "not posted yet"
	default:
		return "not posted yet, waits since " + p.WantedAt.UTC().Format(time.RFC3339)
	}
}

// RefusedPost is a comment, a status or a reaction that a code host has refused so often
// that it is no longer tried.
type RefusedPost struct {
	Kind   outgoing.PostKind `json:"kind"`
	What   string            `json:"what"` // Such as "holdfast/plan of 1a2b3c4".
	Reason string            `json:"reason"`
}

// DelayedPost is a comment, a status or a reaction that was not posted yet.
type DelayedPost struct {
	Kind    outgoing.PostKind `json:"kind"`
	What    string            `json:"what"`   // Such as "holdfast/plan of 1a2b3c4".
	Reason  string            `json:"reason"` // Why the last try failed, or since when it waits for the first one.
	RetryAt time.Time         `json:"retryAt,omitzero"`
}
