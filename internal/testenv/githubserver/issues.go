package githubserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Issue is an issue of a repository, with all that happened to it. Pull
// requests have numbers of the same sequence and are not Issues here, though
// GitHub's lists of issues have them.
type Issue struct {
	Number      int
	Title       string
	Body        string
	Author      string
	Labels      []string
	Closed      bool
	StateReason string // completed, not_planned, reopened or empty
	CreatedAt   time.Time
	UpdatedAt   time.Time
	History     []IssueEvent // oldest first; the first is opened
}

// IssueEvent is a change of an issue, with what it says since then.
type IssueEvent struct {
	Action string // opened, edited, closed or reopened
	By     string
	At     time.Time
	Title  string
	Body   string
}

// Actions returns the actions of the history, in order.
func (i Issue) Actions() []string {
	var actions []string
	for _, event := range i.History {
		actions = append(actions, event.Action)
	}
	return actions
}

type issue struct {
	Issue
	id      int64
	deleted bool
	moved   string // the API's address of the issue in the repository it was moved to
}

// OpenIssue opens an issue as login and returns its number. It delivers
// nothing.
func (r *Repo) OpenIssue(login, title, body string, labels ...string) int {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.addIssue(login, title, body, labels).Number
}

// addIssue adds an issue; r.s.mu is held.
func (r *Repo) addIssue(login, title, body string, labels []string) *issue {
	r.lastNumber++
	now := r.s.stamp()
	i := &issue{id: r.s.id(), Issue: Issue{
		Number: r.lastNumber, Title: title, Body: body, Author: login, Labels: slices.Clone(labels), CreatedAt: now,
	}}
	i.note("opened", login, now)
	r.issues = append(r.issues, i)
	return i
}

// note adds an event.
func (i *issue) note(action, login string, now time.Time) {
	i.UpdatedAt = now
	i.History = append(i.History, IssueEvent{Action: action, By: login, At: now, Title: i.Title, Body: i.Body})
}

// state opens or closes an issue; one that is so already stays as it is.
func (i *issue) state(closed bool, reason, login string, now time.Time) {
	switch {
	case i.Closed == closed:
	case closed:
		i.Closed, i.StateReason = true, cmp.Or(reason, "completed")
		i.note("closed", login, now)
	default:
		i.Closed, i.StateReason = false, "reopened"
		i.note("reopened", login, now)
	}
}

// say changes what an issue says, if it does not say so already.
func (i *issue) say(title, body, login string, now time.Time) {
	if i.Title != title || i.Body != body {
		i.Title, i.Body = title, body
		i.note("edited", login, now)
	}
}

// change changes an issue as a person would.
func (r *Repo) changeIssue(number int, change func(i *issue, now time.Time)) {
	r.s.t.Helper()
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if i := r.issue(number); i != nil && !i.deleted {
		change(i, r.s.stamp())
		return
	}
	r.s.t.Errorf("%s has no issue %d", r.fullName, number)
}

// issue returns an issue, nil if there never was one; r.s.mu is held.
func (r *Repo) issue(number int) *issue {
	for _, i := range r.issues {
		if i.Number == number {
			return i
		}
	}
	return nil
}

// CloseIssue closes an issue as login, as not planned.
func (r *Repo) CloseIssue(number int, login string) {
	r.s.t.Helper()
	r.changeIssue(number, func(i *issue, now time.Time) { i.state(true, "not_planned", login, now) })
}

// ReopenIssue opens an issue again as login.
func (r *Repo) ReopenIssue(number int, login string) {
	r.s.t.Helper()
	r.changeIssue(number, func(i *issue, now time.Time) { i.state(false, "", login, now) })
}

// EditIssue changes what an issue says, as login.
func (r *Repo) EditIssue(number int, login, title, body string) {
	r.s.t.Helper()
	r.changeIssue(number, func(i *issue, now time.Time) { i.say(title, body, login, now) })
}

// LabelIssue replaces the labels of an issue.
func (r *Repo) LabelIssue(number int, labels ...string) {
	r.s.t.Helper()
	r.changeIssue(number, func(i *issue, now time.Time) { i.Labels, i.UpdatedAt = slices.Clone(labels), now })
}

// DeleteIssue deletes an issue: GitHub says 410 from then on.
func (r *Repo) DeleteIssue(number int) {
	r.s.t.Helper()
	r.changeIssue(number, func(i *issue, _ time.Time) { i.deleted = true })
}

// TransferIssue moves an issue to another repository: GitHub redirects from
// then on.
func (r *Repo) TransferIssue(number int, to *Repo) {
	r.s.t.Helper()
	r.changeIssue(number, func(i *issue, _ time.Time) {
		there := to.addIssue(i.Author, i.Title, i.Body, nil)
		i.moved = fmt.Sprintf("repos/%s/issues/%d", to.fullName, there.Number)
	})
}

// DisableIssues turns a repository's issues off or on again. Pull requests are
// not concerned.
func (r *Repo) DisableIssues(disabled bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.noIssues = disabled
}

// Issues returns the issues that were not deleted or moved away, oldest first.
func (r *Repo) Issues() []Issue {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var issues []Issue
	for _, i := range r.issues {
		if !i.deleted && i.moved == "" {
			out := i.Issue
			out.Labels, out.History = slices.Clone(i.Labels), slices.Clone(i.History)
			issues = append(issues, out)
		}
	}
	return issues
}

// mayLabel reports whether what login says about labels counts: of others it is
// dropped without a word. Whoever's permission is not set may.
func (r *Repo) mayLabel(login string) bool {
	permission, set := r.people[strings.ToLower(login)]
	return !set || permission != "read" && permission != "none"
}

func (r *Repo) issueShape(i *issue) map[string]any {
	state, reason, closedAt, closedBy := "open", any(nil), any(nil), any(nil)
	if i.StateReason != "" {
		reason = i.StateReason
	}
	if i.Closed {
		state = "closed"
		for _, event := range i.History {
			if event.Action == "closed" {
				closedAt, closedBy = stampOf(event.At), userShape(event.By)
			}
		}
	}
	shape := r.recordedPart("issue_comment", "issue", i.Number)
	maps.Copy(shape, map[string]any{
		"id": i.id, "number": i.Number, "title": i.Title, "body": i.Body, "user": userShape(i.Author),
		"state": state, "state_reason": reason, "labels": r.labelShapes(i.Labels), "comments": r.countComments(i.Number),
		"assignee": nil, "assignees": []any{}, "milestone": nil, "locked": false,
		"created_at": stampOf(i.CreatedAt), "updated_at": stampOf(i.UpdatedAt), "closed_at": closedAt, "closed_by": closedBy,
	})
	return shape
}

// pullAsIssue shows a pull request as lists of issues do.
func (r *Repo) pullAsIssue(p *pull) map[string]any {
	page := fmt.Sprintf("https://github.com/%s/pull/%d", r.fullName, p.number)
	mergedAt := any(nil)
	if p.merged {
		mergedAt = stampOf(p.closed)
	}
	shape := r.issueShape(&issue{id: p.id, Issue: Issue{
		Number: p.number, Title: p.Title, Author: p.Author, CreatedAt: p.created, UpdatedAt: p.updated,
	}})
	maps.Copy(shape, map[string]any{
		"state": p.state, "closed_at": stampOf(p.closed), "draft": p.Draft, "html_url": page,
		"pull_request": map[string]any{
			"url":      fmt.Sprintf("https://api.github.com/repos/%s/pulls/%d", r.fullName, p.number),
			"html_url": page, "diff_url": page + ".diff", "patch_url": page + ".patch", "merged_at": mergedAt,
		},
	})
	return shape
}

func (r *Repo) labelShapes(labels []string) []any {
	shapes := []any{}
	for _, label := range labels {
		shapes = append(shapes, map[string]any{
			"id": 1362934389, "node_id": "MDU6TGFiZWwxMzYyOTM0Mzg5", "name": label, "color": "ededed", "default": false, "description": nil,
			"url": fmt.Sprintf("https://api.github.com/repos/%s/labels/%s", r.fullName, label),
		})
	}
	return shapes
}

func (r *Repo) countComments(number int) (n int) {
	for _, c := range r.comments {
		if c.Number == number {
			n++
		}
	}
	return n
}

// listed is an issue or a pull request in a list of issues.
type listed struct {
	number           int
	created, updated time.Time
	show             func() map[string]any
}

func (s *Server) listIssues(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	since, _ := time.Parse(time.RFC3339, query.Get("since"))
	var labels []string
	if text := query.Get("labels"); text != "" {
		labels = strings.Split(text, ",")
	}
	wanted := func(closed bool, author string, has []string, updated time.Time) bool {
		state := cmp.Or(query.Get("state"), "open")
		return (state == "all" || (state == "closed") == closed) &&
			!slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) &&
			(query.Get("creator") == "" || strings.EqualFold(query.Get("creator"), author)) && !updated.Before(since)
	}
	s.locked(w, r, func(repo *Repo) (int, any) {
		var found []listed
		for _, i := range repo.issues {
			if !i.deleted && i.moved == "" && !repo.noIssues && wanted(i.Closed, i.Author, i.Labels, i.UpdatedAt) {
				found = append(found, listed{i.Number, i.CreatedAt, i.UpdatedAt, func() map[string]any { return repo.issueShape(i) }})
			}
		}
		for _, p := range repo.pulls {
			if wanted(p.state == "closed", p.Author, nil, p.updated) {
				found = append(found, listed{p.number, p.created, p.updated, func() map[string]any { return repo.pullAsIssue(p) }})
			}
		}
		slices.SortFunc(found, func(a, b listed) int {
			order := cmp.Or(a.created.Compare(b.created), cmp.Compare(a.number, b.number))
			if query.Get("sort") == "updated" {
				order = cmp.Or(a.updated.Compare(b.updated), order)
			}
			if query.Get("direction") != "asc" {
				order = -order
			}
			return order
		})
		shapes := []any{}
		for _, l := range page(w, r, found) {
			shapes = append(shapes, l.show())
		}
		return http.StatusOK, shapes
	})
}

// withIssue calls f with the issue that the call names while s.mu is held, and
// says what GitHub says of those that are not there.
func (s *Server) withIssue(w http.ResponseWriter, r *http.Request, f func(repo *Repo, i *issue) (int, any)) {
	number, _ := strconv.Atoi(r.PathValue("number"))
	s.locked(w, r, func(repo *Repo) (int, any) {
		switch i := repo.issue(number); {
		case repo.noIssues && repo.pulls[number] == nil:
			return gone("Issues has been disabled in this repository.")
		case i == nil:
			return 0, nil
		case i.deleted:
			return gone("This issue was deleted")
		case i.moved != "":
			to := s.URL + i.moved
			w.Header().Set("Location", to)
			return http.StatusMovedPermanently, map[string]any{"message": "Moved Permanently", "url": to, "documentation_url": "https://docs.github.com/rest"}
		default:
			return f(repo, i)
		}
	})
}

func gone(message string) (int, any) {
	return http.StatusGone, map[string]any{"message": message, "documentation_url": "https://docs.github.com/v3/issues/", "status": "410"}
}

func (s *Server) getIssue(w http.ResponseWriter, r *http.Request) {
	if repo := s.repo(r); repo != nil {
		number, _ := strconv.Atoi(r.PathValue("number"))
		s.mu.Lock()
		p := repo.pulls[number]
		s.mu.Unlock()
		if p != nil {
			s.locked(w, r, func(repo *Repo) (int, any) { return http.StatusOK, repo.pullAsIssue(p) })
			return
		}
	}
	s.withIssue(w, r, func(repo *Repo, i *issue) (int, any) { return http.StatusOK, repo.issueShape(i) })
}

// issueInput is the body of a call that makes or changes an issue; what is not
// there stays as it is.
type issueInput struct {
	Title       *string
	Body        *string
	State       *string
	StateReason string `json:"state_reason"`
	Labels      *[]string
}

// readIssue reads the input, or says why it is refused.
func readIssue(r *http.Request) (in issueInput, refused string) {
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return in, "Problems parsing JSON"
	}
	switch {
	case in.Title != nil && strings.TrimSpace(*in.Title) == "":
		return in, "title can't be blank"
	case in.Title != nil && utf8.RuneCountInString(*in.Title) > 256:
		return in, "title is too long (maximum is 256 characters)"
	case in.Body != nil && utf8.RuneCountInString(*in.Body) > 65536:
		return in, "body is too long (maximum is 65536 characters)"
	case in.State != nil && *in.State != "open" && *in.State != "closed":
		return in, "state is not included in the list"
	case !slices.Contains([]string{"", "completed", "not_planned", "reopened"}, in.StateReason):
		return in, "state_reason is not included in the list"
	}
	return in, ""
}

func (s *Server) postIssue(w http.ResponseWriter, r *http.Request) {
	login := s.caller(r)
	s.locked(w, r, func(repo *Repo) (int, any) {
		if repo.noIssues {
			return gone("Issues has been disabled in this repository.")
		}
		in, refused := readIssue(r)
		if refused == "" && in.Title == nil {
			refused = "title can't be blank"
		}
		if refused != "" {
			return http.StatusUnprocessableEntity, refused
		}
		var labels []string
		if in.Labels != nil && repo.mayLabel(login) {
			labels = *in.Labels
		}
		body := ""
		if in.Body != nil {
			body = *in.Body
		}
		return http.StatusCreated, repo.issueShape(repo.addIssue(login, *in.Title, body, labels))
	})
}

func (s *Server) patchIssue(w http.ResponseWriter, r *http.Request) {
	login := s.caller(r)
	s.withIssue(w, r, func(repo *Repo, i *issue) (int, any) {
		in, refused := readIssue(r)
		if refused != "" {
			return http.StatusUnprocessableEntity, refused
		}
		if i.Author != login && !repo.mayLabel(login) {
			return http.StatusForbidden, map[string]any{"message": "Must have admin rights to Repository."}
		}
		now, title, body := s.stamp(), i.Title, i.Body
		if in.Title != nil {
			title = *in.Title
		}
		if in.Body != nil {
			body = *in.Body
		}
		i.say(title, body, login, now)
		if in.Labels != nil && repo.mayLabel(login) {
			i.Labels, i.UpdatedAt = slices.Clone(*in.Labels), now
		}
		if in.State != nil {
			i.state(*in.State == "closed", in.StateReason, login, now)
		}
		return http.StatusOK, repo.issueShape(i)
	})
}
