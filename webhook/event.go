package webhook

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// delivery is what is taken from a payload: what to look at, never what
// happened, and a comment, which is an edge.
type delivery struct {
	event       string
	traceParent string
	fullName    string // of the repository; empty if the payload names none
	id          int64  // of the repository, which keeps it when it is renamed
	base        string // the branch that the pull request is to be merged into, and was before; empty if not known
	about       string // the branch or the pull request, for people
	requests    []holdfast.SourceRequest
	comment     holdfast.Comment // zero: none that can hold a command
	changed     bool             // the comment was edited or deleted: what was taken from it may no longer be valid
	withdrawn   withdrawal       // of a person's comment: what it said is no longer valid
	kept        bool             // an edit whose sender did not write the comment's command
}

// withdrawal is why the commands that a comment gave before some time are no longer
// valid.
type withdrawal struct {
	before time.Time // by GitHub's clock; zero: all of them are valid
	why    string
}

// Of each payload only what is used is decoded.
type (
	origin struct {
		Repository struct {
			ID       int64  `json:"id"`
			FullName string `json:"full_name"`
		} `json:"repository"`
	}
	pushPayload struct {
		origin
		Ref string `json:"ref"`
	}
	pullRequestPayload struct {
		origin
		Action      string `json:"action"`
		PullRequest struct {
			Number int  `json:"number"`
			Merged bool `json:"merged"`
			Base   struct {
				Ref string `json:"ref"`
			} `json:"base"`
		} `json:"pull_request"`
	}
	commentPayload struct {
		origin
		Action string `json:"action"`
		Sender struct {
			Login string `json:"login"`
		} `json:"sender"`
		Issue struct {
			Number      int       `json:"number"`
			PullRequest *struct{} `json:"pull_request"`
		} `json:"issue"`
		Comment struct {
			ID   int64  `json:"id"`
			Body string `json:"body"`
			User struct {
				Login string `json:"login"`
				Type  string `json:"type"`
			} `json:"user"`
			CreatedAt time.Time `json:"created_at"`
			UpdatedAt time.Time `json:"updated_at"`
		} `json:"comment"`
		Changes struct {
			Body *struct { // nil: the edit was of something else
				From string `json:"from"`
			} `json:"body"`
		} `json:"changes"`
	}
)

// acted reports whether an event is one that is looked at.
func acted(event string) bool {
	switch event {
	case "ping", "push", "pull_request", "pull_request_review", "issue_comment", "merge_group":
		return true
	default:
		return false
	}
}

// parse reads a payload. An error means that it is not one of this event.
func (d *delivery) parse(payload []byte) error {
	switch d.event {
	case "push":
		return d.parsePush(payload)
	case "pull_request", "pull_request_review":
		return d.parsePullRequest(payload)
	case "issue_comment":
		return d.parseComment(payload)
	case "merge_group":
		// The group is a branch, which is found among the others.
		d.requests = []holdfast.SourceRequest{{}}
		return d.parseOrigin(payload)
	default:
		return d.parseOrigin(payload)
	}
}

func (d *delivery) parseOrigin(payload []byte) error {
	var p origin
	if err := json.Unmarshal(payload, &p); err != nil {
		return jsonError(err)
	}
	d.fullName, d.id = p.Repository.FullName, p.Repository.ID
	return nil
}

func (d *delivery) parsePush(payload []byte) error {
	var p pushPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return jsonError(err)
	}
	if p.Repository.FullName == "" || p.Ref == "" {
		return errors.New("repository.full_name or ref is missing")
	}
	d.fullName, d.id = p.Repository.FullName, p.Repository.ID
	d.about = strings.TrimPrefix(p.Ref, "refs/heads/")
	d.requests = []holdfast.SourceRequest{{}}
	return nil
}

func (d *delivery) parsePullRequest(payload []byte) error {
	var p pullRequestPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return jsonError(err)
	}
	if p.Repository.FullName == "" || p.PullRequest.Number <= 0 {
		return errors.New("repository.full_name or pull_request.number is missing")
	}
	d.fullName, d.id = p.Repository.FullName, p.Repository.ID
	d.about = strings.TrimSpace("#" + strconv.Itoa(p.PullRequest.Number) + " " + p.Action)
	if p.Action != "edited" { // which may be the base
		d.base = p.PullRequest.Base.Ref
	}
	switch p.Action {
	case "opened", "synchronize", "reopened", "closed", "edited", "ready_for_review", "converted_to_draft",
		"submitted", "dismissed": // the last two are a review's
		d.requests = []holdfast.SourceRequest{{PullRequest: p.PullRequest.Number}}
	}
	if p.PullRequest.Merged && p.Action == "closed" {
		d.requests = append(d.requests, holdfast.SourceRequest{}) // the push may get lost
	}
	return nil
}

func (d *delivery) parseComment(payload []byte) error {
	var p commentPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return jsonError(err)
	}
	c := p.Comment
	if p.Repository.FullName == "" || p.Issue.Number <= 0 || c.ID <= 0 {
		return errors.New("repository.full_name, issue.number or comment.id is missing")
	}
	d.fullName, d.id = p.Repository.FullName, p.Repository.ID
	if p.Issue.PullRequest == nil {
		return nil
	}
	switch p.Action {
	case "created":
	case "edited":
		others := p.Sender.Login != "" && !strings.EqualFold(p.Sender.Login, c.User.Login)
		d.changed = c.User.Type != "Bot" || others // one of ours is written again
	case "deleted": // one of ours comes back
		d.changed = true
	default:
		return nil
	}
	d.requests = []holdfast.SourceRequest{{PullRequest: p.Issue.Number}}
	d.comment = holdfast.Comment{
		ID: strconv.FormatInt(c.ID, 10), PullRequest: holdfast.PullRequestRef{Number: p.Issue.Number},
		Author: c.User.Login, Bot: c.User.Type == "Bot", Body: c.Body,
		CreatedAt: c.CreatedAt.UTC(), UpdatedAt: c.UpdatedAt.UTC(),
	}
	if p.Action == "deleted" {
		d.comment.Body = "" // and with it what it commanded, since its last edit as well
		d.withdrawn = withdrawal{d.comment.UpdatedAt.Add(time.Second), "the comment was deleted before this was carried out"}
		return nil
	}
	// Comment.user is who wrote it first; the sender wrote what it says now.
	if p.Action == "edited" {
		d.comment.Editor = p.Sender.Login
		d.kept = p.Changes.Body == nil || keeps(p.Changes.Body.From, c.Body)
		if !d.comment.UpdatedAt.After(d.comment.CreatedAt) {
			// GitHub's clock has seconds only.
			d.comment.UpdatedAt = d.comment.CreatedAt.Add(time.Nanosecond)
		}
		d.withdrawn = withdrawal{d.comment.UpdatedAt, "the comment was edited before this was carried out; write the command in a new comment"}
	} else if p.Sender.Login != "" && !strings.EqualFold(p.Sender.Login, c.User.Login) {
		d.comment.Editor = p.Sender.Login
	}
	return nil
}
