package holdfast

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// PullRequestRef names a pull request: a repository, as holdfast.yaml names it
// (which binds it to one forge), and a number. Number zero means none: the
// tracked branch.
type PullRequestRef struct {
	Repo   string `json:"repo,omitempty"`
	Number int    `json:"number,omitempty"`
}

// IsZero reports whether p names no pull request.
func (p PullRequestRef) IsZero() bool { return p.Number == 0 }

// String returns "repo#number".
func (p PullRequestRef) String() string {
	if p.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s#%d", p.Repo, p.Number)
}

// PullRequestState is open, closed or merged.
type PullRequestState string

// The states of a pull request.
const (
	PullRequestOpen   PullRequestState = "open"
	PullRequestClosed PullRequestState = "closed" // without a merge
	PullRequestMerged PullRequestState = "merged"
)

// PullRequest is a proposal to change a tracked branch, as the code host reports it.
type PullRequest struct {
	PullRequestRef
	Title  string           `json:"title"`
	Author string           `json:"author"`
	URL    string           `json:"url,omitempty"`
	State  PullRequestState `json:"state"`
	Draft  bool             `json:"draft,omitempty"`
	Fork   bool             `json:"fork,omitempty"` // the head is in another repository

	Branch     string   `json:"branch"`     // of the head, in its repository
	Head       Revision `json:"head"`       // the last head before a merge
	BaseBranch string   `json:"baseBranch"` // where it is to be merged
	// MergeCommit is the commit on the base branch that the merge made: the
	// merge commit, the squashed one, or the last of the rebased ones.
	MergeCommit Revision  `json:"mergeCommit,omitempty"`
	MergedAt    time.Time `json:"mergedAt,omitzero"` // by the forge's clock
	UpdatedAt   time.Time `json:"updatedAt,omitzero"`

	Approved bool `json:"approved,omitempty"` // at least one approving review of the head and none that asks for changes
	// Verdicts are the reviews that Approved comes from: the last word of each who
	// may write, except for the author, by name.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Mergeable: the forge would let it be merged. Blocked is its word for why it would
	// not ("dirty", "behind"). With neither it has not said yet. Of a merged one a
	// forge says nothing; the record keeps its last word before.
	Mergeable bool   `json:"mergeable,omitempty"`
	Blocked   string `json:"blocked,omitempty"`
}

// Verdict is somebody's review of a pull request: an approval, or else a request for changes.
type Verdict struct {
	By       string    `json:"by"`
	Approves bool      `json:"approves,omitempty"`
	Head     Revision  `json:"head"` // that was reviewed
	At       time.Time `json:"at"`   // by the forge's clock
}

// Comment is a comment on a pull request.
type Comment struct {
	ID          string         `json:"id"`
	PullRequest PullRequestRef `json:"pullRequest"`
	Author      string         `json:"author"`
	Bot         bool           `json:"bot,omitempty"` // written by an app, perhaps by us
	Body        string         `json:"body"`
	CreatedAt   time.Time      `json:"createdAt"`
	UpdatedAt   time.Time      `json:"updatedAt,omitzero"`
	// Editor is who edited it last; empty: nobody, or the forge does not say who.
	Editor string `json:"editor,omitempty"`
}

// Edited reports whether the body is not the one that was first written.
func (c Comment) Edited() bool { return c.UpdatedAt.After(c.CreatedAt) || c.Editor != "" }

// ByAuthor reports whether the body is known to be the author's: whoever has
// write access to a repository can edit everybody's comments there, and a forge
// continues to name the author alone.
func (c Comment) ByAuthor() bool { return !c.Edited() || strings.EqualFold(c.Editor, c.Author) }

// CommentList is a list of a repository's comments, and how far it reaches.
type CommentList struct {
	Comments []Comment // the longest unchanged first
	// Until is the time of the newest change that was read, whatever was changed:
	// comments on issues are read and left out. Zero: there was nothing.
	Until time.Time
	// More is true if the list was cut at Until.
	More bool
}

// Issue is an issue on a forge.
type Issue struct {
	ID     string   `json:"id"` // its number, as text
	Title  string   `json:"title"`
	Body   string   `json:"body"`
	Closed bool     `json:"closed,omitempty"`
	Labels []string `json:"labels,omitempty"` // wanted when it is created
	URL    string   `json:"url,omitempty"`
}

// StatusState is the state of a commit status.
type StatusState string

// The states of a commit status. GitHub's "error" is StatusError: our own
// trouble, where StatusFailure is that of the code.
const (
	StatusPending StatusState = "pending"
	StatusSuccess StatusState = "success"
	StatusFailure StatusState = "failure"
	StatusError   StatusState = "error"
)

// The contexts of our commit statuses.
const (
	ContextPlan  = "holdfast/plan"  // on a pull request's head
	ContextApply = "holdfast/apply" // on the merge commit, or a direct push
	// ContextPolicy is what policies say of the plans, on a pull request's head, if it is configured.
	ContextPolicy = "holdfast/policy"
	// ContextFaults is the name of the check run on a pull request's head that shows
	// what is wrong with its documents, where a forge has such. It is also the status of a
	// head of a tracked branch whose plan status is a pull request's.
	ContextFaults = "holdfast/documents"
)

// CommitStatus is what we say about a commit on the forge.
type CommitStatus struct {
	Revision    Revision    `json:"revision"`
	Context     string      `json:"context"`
	State       StatusState `json:"state"`
	Description string      `json:"description"` // at most 140 characters, GitHub's limit
	URL         string      `json:"url,omitempty"`
}

// Permission is what somebody may do in a repository.
type Permission string

// The permissions, each including the ones before it.
const (
	PermissionNone  Permission = "none"
	PermissionRead  Permission = "read"
	PermissionWrite Permission = "write"
	PermissionAdmin Permission = "admin"
)

// CanWrite reports whether p may command Holdfast.
func (p Permission) CanWrite() bool { return p == PermissionWrite || p == PermissionAdmin }

// Reaction is an acknowledgement under a comment, by GitHub's names.
type Reaction string

// The reactions that we use.
const (
	ReactionSeen    Reaction = "eyes"
	ReactionDone    Reaction = "rocket"
	ReactionRefused Reaction = "-1"
)

// Verb is what a command asks for.
type Verb string

// The verbs of commands: in a comment after /holdfast, and in the CLI.
const (
	VerbPlan    Verb = "plan"
	VerbApply   Verb = "apply"
	VerbApprove Verb = "approve"
	VerbWaive   Verb = "waive" // of a policy: in comments only
	VerbCancel  Verb = "cancel"
	VerbUnlock  Verb = "unlock"
	VerbHelp    Verb = "help"
	VerbUnknown Verb = "unknown" // answered with the nearest verb
)

// CommandStatus is received, done or refused.
type CommandStatus string

// The statuses of a command.
const (
	CommandReceived CommandStatus = "received"
	CommandDone     CommandStatus = "done"
	CommandRefused  CommandStatus = "refused"
)

// Command is what a person asked for in a comment or through the API: an edge,
// stored before its delivery is answered.
type Command struct {
	ID          string         `json:"id"`
	PullRequest PullRequestRef `json:"pullRequest,omitzero"` // zero: through the API, for Clusters
	CommentID   string         `json:"commentId,omitempty"`  // once per (repo, comment)
	Author      string         `json:"author"`
	Trusted     bool           `json:"trusted,omitempty"` // through the API: its permission was checked by the token
	Verb        Verb           `json:"verb"`
	Clusters    []string       `json:"clusters,omitempty"` // empty: all of the pull request
	Force       bool           `json:"force,omitempty"`
	All         bool           `json:"all,omitempty"` // plan: every cluster that a change of a template would change
	Text        string         `json:"text"`          // the line as it was written
	CommandGiver
	Waiver
	// Barred says, in words for its author, why it is refused whatever it asks
	// for: its comment was edited by somebody else, for example. Empty: it is not.
	Barred string `json:"barred,omitempty"`
	// Shown are the runs whose plans our comment showed when the command was written,
	// and ShownHead the head that it showed; filled in when stored. For one that came
	// through the API, those that it names; nil: it names none.
	Shown     []string      `json:"shown,omitzero"`
	ShownHead Revision      `json:"shownHead,omitempty"`
	Status    CommandStatus `json:"status"`
	CommandResult
	CreatedAt time.Time `json:"createdAt"`
	DoneAt    time.Time `json:"doneAt,omitzero"`
	// Said is when its comment got the text that it was read from, by the forge's
	// clock; zero: it came another way.
	Said time.Time `json:"said,omitzero"`
}

// BarredByEdit is in Command.Barred if the comment with the plans was edited by somebody
// else when the command was written.
const BarredByEdit = "somebody had edited or deleted the comment with the plans: it is written again, look at it"

// Waiver is that a policy does not count. The zero value waives none.
type Waiver struct {
	Waives string `json:"waives,omitempty"` // the id of the policy
	Why    string `json:"why,omitempty"`    // in the words of whoever waives it
}

// CommandGiver is who has given a command through the API. For one in a comment it is the
// zero value.
type CommandGiver struct {
	Origin string `json:"origin,omitempty"` // from where, see WithOrigin
	Owner  string `json:"owner,omitempty"`  // whoever asked for a pull request, by the same text, cannot approve it
	// Person: its author has logged in, and is called as an identity provider says. Nothing
	// that a name allows is allowed by that one.
	Person bool `json:"person,omitempty"`
}

// CommandResult is reported to whoever gave a command.
type CommandResult struct {
	Reply string `json:"reply,omitempty"` // why it was refused, or its outcome, in words
	// Reason is why it was refused, for the first cluster of Refused or for all; empty if
	// that has no reason.
	Reason Reason `json:"reason,omitempty"`
	// Refused are the clusters that a command which was done for others was
	// refused for, UpToDate those of which nothing was left to be applied.
	Refused  []string `json:"refused,omitempty"`
	UpToDate []string `json:"upToDate,omitempty"`
}

// SourceRequest asks to look at a repository: at one pull request, at one
// comment stream, or, with neither, at the tracked branch and tags. It says
// which, never what happened.
type SourceRequest struct {
	Repo        string `json:"repo"`
	PullRequest int    `json:"pullRequest,omitempty"` // zero: the branches and tags
	TraceParent string `json:"traceParent,omitempty"` // W3C trace context of the delivery, if any
}

// Request asks to reconcile one cluster: at a pull request, or on its tracked branch.
type Request struct {
	Cluster     string         `json:"cluster"`
	PullRequest PullRequestRef `json:"pullRequest,omitzero"`
}

// CommandID returns the identifier of the nth command (from 0) in a comment: the
// same for each delivery and each look at it.
func CommandID(repo, commentID string, n int) string {
	d := NewDigester("command")
	d.Add(repo, commentID, strconv.Itoa(n))
	return "command-" + d.Digest().Short()
}
