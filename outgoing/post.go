package outgoing

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// PostKind is what a Post becomes on the code host.
type PostKind string

// The kinds of posts.
const (
	PostComment  PostKind = "comment"  // the one comment of a pull request, updated in place
	PostStatus   PostKind = "status"   // a commit status
	PostReply    PostKind = "reply"    // a comment that answers a command, written once
	PostReaction PostKind = "reaction" // an acknowledgement under a comment
	PostCheck    PostKind = "check"    // a check run: a status whose faults are shown at their lines
	PostIssue    PostKind = "issue"    // an issue, updated, closed and opened again in place
	PostLabels   PostKind = "labels"   // our labels of a pull request: Body has one on each line
)

// Post is a row of the outbox: what we want to be seen on the forge, and what
// was last posted. One row, one thing on the forge.
type Post struct {
	// Key says which thing: "comment:repo#7", "status:repo:sha:context", ...
	Key         string                  `json:"key"`
	Kind        PostKind                `json:"kind"`
	Repo        string                  `json:"repo"`
	PullRequest holdfast.PullRequestRef `json:"pullRequest,omitzero"`
	Title       string                  `json:"title,omitempty"`  // issue
	Closed      bool                    `json:"closed,omitempty"` // issue: it should be closed
	Body        string                  `json:"body,omitempty"`
	Status      holdfast.CommitStatus   `json:"status,omitzero"`
	Faults      holdfast.Faults         `json:"faults,omitempty"`    // check
	CommentID   string                  `json:"commentId,omitempty"` // reaction: under which comment
	Reaction    holdfast.Reaction       `json:"reaction,omitempty"`
	Runs        []string                `json:"runs,omitempty"`    // comment: the runs whose plans Body shows
	Unshown     bool                    `json:"unshown,omitempty"` // comment: it shows none, and none that was shown before counts
	Head        holdfast.Revision       `json:"head,omitempty"`    // comment: the head that Body is about; issue: a digest of what it tells
	ExternalID  string                  `json:"externalId,omitempty"`
	// After is the key of another post whose content, as it is wanted when this one is,
	// has to be on the forge first: a status that refers to a comment.
	After string `json:"after,omitempty"`

	PostDelivery
}

// Attempt names what is wanted among Attempts.
func (p Post) Attempt() string {
	return map[bool]string{true: "unshown "}[p.Unshown] + string(holdfast.DigestOf([]byte(p.Body)))
}

// PostDelivery is how far a post has come.
type PostDelivery struct {
	Wanted    int64           `json:"wanted"` // grows with each change of the content
	WantedAt  time.Time       `json:"wantedAt,omitzero"`
	Posted    int64           `json:"posted"` // the Wanted that was last posted; 0: never
	PostedAt  time.Time       `json:"postedAt,omitzero"`
	Echo      holdfast.Digest `json:"echo,omitempty"`     // comment: of its body as the forge gave it back then
	Attempts  []string        `json:"attempts,omitempty"` // comment: digests of what may have been written since
	NotBefore time.Time       `json:"notBefore,omitzero"`
	Failures  int             `json:"failures,omitempty"` // in a row, whatever their cause
	Refusal   string          `json:"refusal,omitempty"`  // how the forge refused the last try, as publish names it; empty if it did not
	Refusals  int             `json:"refusals,omitempty"` // the tries in a row that ended in that
	LastError string          `json:"lastError,omitempty"`
	Tried     bool            `json:"tried,omitempty"`   // what is there may be newer than Posted: posting it was begun, and its end is not on record
	GivenUp   bool            `json:"givenUp,omitempty"` // the forge refuses what is wanted: it is not tried again until that changes
}

// PostFilter selects posts. Zero fields select all.
type PostFilter struct {
	Kind        PostKind
	PullRequest holdfast.PullRequestRef
}
