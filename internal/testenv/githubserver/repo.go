package githubserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Repo is a repository of the fake. It is safe for concurrent use.
type Repo struct {
	s             *Server
	fullName      string
	defaultBranch string
	id            int64
	lastNumber    int
	pulls         map[int]*pull
	issues        []*issue
	noIssues      bool
	comments      []*comment
	people        map[string]string   // login → permission
	known         map[string]bool     // commits, if there is no Git
	statuses      map[string][]Status // by revision, oldest first
	checks        []*CheckRun
	git           string // a bare repository; empty: no Git data
	readOnly      bool   // Git data cannot be written
	archived      bool   // nothing can be written
	hidden        bool   // nobody finds it

	hookURL    string
	hookSecret string
	drop       int
	deliveries []Delivery

	templatesMu sync.Mutex
	templates   map[string]map[string]any // by event
	repository  map[string]any
}

// PullRequest is what a pull request is opened with. Empty fields get
// defaults.
type PullRequest struct {
	Title   string
	Body    string // empty: some text
	Labels  []string
	Author  string // default "alice"
	Branch  string // of the head; default "change-N"
	Head    string // revision
	Base    string // branch; default "main"
	BaseSHA string
	Fork    bool
	Draft   bool
	Number  int // from NextNumber; zero: the next one
}

type pull struct {
	PullRequest
	id             int64
	number         int
	state          string // open or closed
	merged         bool
	mergeCommit    string
	commits        []string // that bring it up in commits/{sha}/pulls
	mergeable      *bool
	mergeableState string
	reviews        []review
	created        time.Time
	updated        time.Time
	closed         time.Time
}

type review struct {
	id    int64
	login string
	state string
	head  string // that was reviewed
	at    time.Time
}

type comment struct {
	Comment
	bodies    []string // all that it has said, oldest first
	reactions []reaction
}

type reaction struct {
	id             int64
	login, content string
}

// Comment is a comment on a pull request or an issue.
type Comment struct {
	ID        int64
	Number    int // of the pull request or issue
	Issue     bool
	Author    string
	Body      string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Status is a commit status.
type Status struct {
	ID          int64
	Context     string
	State       string
	Description string
	TargetURL   string
	Creator     string
	CreatedAt   time.Time
}

// SetPermission makes login a collaborator with admin, write, read or none.
// Whoever is not set has none.
func (r *Repo) SetPermission(login, permission string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.people[strings.ToLower(login)] = permission
}

// NextNumber takes the next number of the sequence that pull requests and issues
// share, for a pull request whose refs are there before it is reported.
func (r *Repo) NextNumber() int {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.lastNumber++
	return r.lastNumber
}

// OpenPullRequest opens a pull request, delivers pull_request opened, and
// returns its number. It may be merged until SetMergeable says otherwise.
func (r *Repo) OpenPullRequest(pr PullRequest) int {
	if pr.Number == 0 {
		pr.Number = r.NextNumber()
	}
	r.s.mu.Lock()
	now, yes := r.s.stamp(), true
	p := &pull{
		PullRequest: pr, id: r.s.id(), number: pr.Number, state: "open",
		mergeable: &yes, mergeableState: "clean", created: now, updated: now,
	}
	p.Author = or(p.Author, "alice")
	p.Branch = or(p.Branch, fmt.Sprintf("change-%d", p.number))
	p.Base = or(p.Base, r.defaultBranch)
	p.Title = or(p.Title, "Change "+p.Branch)
	p.commits = []string{p.Head}
	r.pulls[p.number] = p
	r.s.mu.Unlock()
	r.deliverPull(p.number, "opened", nil)
	return p.number
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// change changes a pull request and delivers the action.
func (r *Repo) change(number int, action string, extra map[string]any, change func(p *pull)) {
	r.s.t.Helper()
	r.s.mu.Lock()
	p, ok := r.pulls[number]
	if ok {
		change(p)
		p.updated = r.s.stamp()
	}
	r.s.mu.Unlock()
	if !ok {
		r.s.t.Errorf("%s has no pull request %d", r.fullName, number)
		return
	}
	if action != "" {
		r.deliverPull(number, action, extra)
	}
}

// PushHead moves a pull request's head and delivers synchronize.
func (r *Repo) PushHead(number int, head string) {
	r.s.t.Helper()
	extra := map[string]any{"after": head}
	r.change(number, "synchronize", extra, func(p *pull) {
		extra["before"] = p.Head
		p.Head = head
		p.commits = append(p.commits, head)
	})
}

// SetBase records the head of a pull request's base branch, and perhaps
// another base branch; it delivers edited if the branch changed.
func (r *Repo) SetBase(number int, branch, sha string) {
	r.s.t.Helper()
	r.s.mu.Lock()
	edited := r.pulls[number] != nil && r.pulls[number].Base != branch
	r.s.mu.Unlock()
	action := ""
	if edited {
		action = "edited"
	}
	r.change(number, action, map[string]any{"changes": map[string]any{}}, func(p *pull) { p.Base, p.BaseSHA = branch, sha })
}

// SetDraft makes a pull request a draft or ready, and delivers it.
func (r *Repo) SetDraft(number int, draft bool) {
	r.s.t.Helper()
	action := "ready_for_review"
	if draft {
		action = "converted_to_draft"
	}
	r.change(number, action, nil, func(p *pull) { p.Draft = draft })
}

// SetMergeable sets what GitHub thinks of merging: a mergeable_state such as
// clean, dirty, blocked, behind, unstable or unknown.
func (r *Repo) SetMergeable(number int, state string) {
	r.s.t.Helper()
	r.change(number, "", nil, func(p *pull) {
		yes := state != "dirty"
		p.mergeable, p.mergeableState = &yes, state
		if state == "unknown" {
			p.mergeable = nil
		}
	})
}

// Close closes a pull request without merging it.
func (r *Repo) Close(number int) {
	r.s.t.Helper()
	r.change(number, "closed", nil, func(p *pull) { p.state, p.closed = "closed", r.s.stamp() })
}

// Reopen opens a closed pull request again.
func (r *Repo) Reopen(number int) {
	r.s.t.Helper()
	r.change(number, "reopened", nil, func(p *pull) { p.state, p.closed = "open", time.Time{} })
}

// Merge marks a pull request as merged by commits that are on the base branch now, in
// order: the merge commit, the squashed commit, or the rebased ones. The last one is
// the merge_commit_sha. It delivers closed; the push of the base branch is a separate
// delivery: see Push.
func (r *Repo) Merge(number int, commits ...string) {
	r.s.t.Helper()
	if len(commits) == 0 {
		r.s.t.Errorf("merge %s#%d: no commits", r.fullName, number)
		return
	}
	r.change(number, "closed", nil, func(p *pull) {
		p.state, p.merged, p.closed = "closed", true, r.s.stamp()
		p.mergeCommit = commits[len(commits)-1]
		p.commits = append(p.commits, commits...)
	})
}

// Contains records that a pull request contains commits besides its heads.
func (r *Repo) Contains(number int, commits ...string) {
	r.s.t.Helper()
	r.change(number, "", nil, func(p *pull) { p.commits = append(p.commits, commits...) })
}

// Review adds a review: APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED.
func (r *Repo) Review(number int, login, state string) {
	r.s.t.Helper()
	r.change(number, "", nil, func(p *pull) {
		p.reviews = append(p.reviews, review{id: r.s.id(), login: login, state: state, head: p.Head, at: r.s.stamp()})
	})
	r.deliverReview(number, login, state)
}

// Comment writes a comment as login on a pull request, delivers it, and
// returns its id.
func (r *Repo) Comment(number int, login, body string) int64 {
	return r.newComment(number, login, body, false)
}

// CommentOnIssue writes a comment on an issue that is not a pull request.
func (r *Repo) CommentOnIssue(number int, login, body string) int64 {
	return r.newComment(number, login, body, true)
}

func (r *Repo) newComment(number int, login, body string, issue bool) int64 {
	c := r.addComment(number, login, body)
	r.s.mu.Lock()
	r.find(c.ID).Issue = issue
	r.deliverComment(r.find(c.ID), login, "created", "")
	return c.ID
}

func (r *Repo) addComment(number int, login, body string) Comment {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	now := r.s.stamp()
	c := &comment{Comment: Comment{ID: r.s.id(), Number: number, Author: login, Body: body, CreatedAt: now, UpdatedAt: now}, bodies: []string{body}}
	r.comments = append(r.comments, c)
	return c.Comment
}

// find returns the comment with that id, nil if there is none; s.mu is held.
func (r *Repo) find(id int64) *comment {
	for _, c := range r.comments {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// EditComment has login change a comment, which anybody with write access may,
// and delivers edited.
func (r *Repo) EditComment(id int64, login, body string) {
	r.s.mu.Lock()
	c := r.find(id)
	if c == nil {
		r.s.mu.Unlock()
		return
	}
	before := c.Body
	c.Body, c.UpdatedAt, c.bodies = body, r.s.stamp(), append(c.bodies, body)
	r.deliverComment(c, login, "edited", before)
}

// DeleteComment has login remove a comment and delivers deleted.
func (r *Repo) DeleteComment(id int64, login string) {
	r.s.mu.Lock()
	c := r.find(id)
	if c == nil {
		r.s.mu.Unlock()
		return
	}
	r.comments = slices.DeleteFunc(r.comments, func(c *comment) bool { return c.ID == id })
	r.deliverComment(c, login, "deleted", "")
}

// Comments returns the comments of a pull request, oldest first.
func (r *Repo) Comments(number int) []Comment {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var comments []Comment
	for _, c := range r.comments {
		if c.Number == number {
			comments = append(comments, c.Comment)
		}
	}
	return comments
}

// Bodies returns all that a comment has said, oldest first.
func (r *Repo) Bodies(id int64) []string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if c := r.find(id); c != nil {
		return slices.Clone(c.bodies)
	}
	return nil
}

// Reactions returns what was reacted to a comment, in order.
func (r *Repo) Reactions(id int64) []string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var contents []string
	if c := r.find(id); c != nil {
		for _, reaction := range c.reactions {
			contents = append(contents, reaction.content)
		}
	}
	return contents
}

// Statuses returns all statuses that were set on a revision, oldest first.
func (r *Repo) Statuses(sha string) []Status {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return slices.Clone(r.statuses[sha])
}

// LatestStatus returns the newest status of a revision and context.
func (r *Repo) LatestStatus(sha, context string) (Status, bool) {
	for _, status := range slices.Backward(r.Statuses(sha)) {
		if status.Context == context {
			return status, true
		}
	}
	return Status{}, false
}

// StatusRevisions returns the revisions that have a status, sorted.
func (r *Repo) StatusRevisions() []string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return slices.Sorted(maps.Keys(r.statuses))
}
