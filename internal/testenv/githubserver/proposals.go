package githubserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Pull is a pull request as people see it.
type Pull struct {
	Number       int
	Title, Body  string
	Author       string
	Labels       []string
	Branch, Head string
	Base         string
	State        string // open, closed or merged
}

// PullRequests returns all pull requests by number.
func (r *Repo) PullRequests() []Pull {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var found []Pull
	for _, p := range r.pulls {
		pull := Pull{
			Number: p.number, Title: p.Title, Body: p.Body, Author: p.Author, Labels: slices.Clone(p.Labels),
			Branch: p.Branch, Head: p.Head, Base: p.Base, State: p.state,
		}
		if p.merged {
			pull.State = "merged"
		}
		found = append(found, pull)
	}
	slices.SortFunc(found, func(a, b Pull) int { return a.Number - b.Number })
	return found
}

// Before runs act once, before the next call whose "METHOD /pattern" begins with
// route is carried out: what somebody else does in that moment.
func (s *Server) Before(route string, act func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = append(s.before, moment{route: route, act: act})
}

type moment struct {
	route string
	act   func()
}

func (s *Server) takeMoment(route string) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.before {
		if strings.HasPrefix(route, m.route) {
			s.before = slices.Delete(s.before, i, i+1)
			return m.act
		}
	}
	return func() {}
}

func (s *Server) proposalRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /repos/{owner}/{repo}/pulls":                  s.postPull,
		"PATCH /repos/{owner}/{repo}/pulls/{number}":        s.patchPull,
		"POST /repos/{owner}/{repo}/issues/{number}/labels": s.postLabels,
	}
}

// invalidPull is GitHub's refusal of a pull request.
func invalidPull(detail map[string]any) (int, any) {
	detail["resource"] = "PullRequest"
	return http.StatusUnprocessableEntity, map[string]any{
		"message": "Validation Failed", "errors": []any{detail}, "documentation_url": "https://docs.github.com/rest/pulls/pulls", "status": "422",
	}
}

// refusedText says why a title or a body is refused; empty: it is not.
func refusedText(title, body *string) string {
	in, err := json.Marshal(map[string]any{"title": title, "body": body})
	if err != nil {
		return err.Error()
	}
	r, err := http.NewRequest(http.MethodPost, "/", strings.NewReader(string(in)))
	if err != nil {
		return err.Error()
	}
	_, refused := readIssue(r)
	return refused
}

func (s *Server) postPull(w http.ResponseWriter, r *http.Request) {
	login := s.caller(r)
	var in struct {
		Title, Head, Base string
		Body              *string
		Draft             bool
	}
	opened := 0
	s.locked(w, r, func(repo *Repo) (int, any) {
		if json.NewDecoder(r.Body).Decode(&in) != nil || repo.git == "" {
			return 0, nil
		}
		owner, _, _ := strings.Cut(repo.fullName, "/")
		branch := strings.TrimPrefix(in.Head, owner+":")
		head, base := repo.head("refs/heads/"+branch), repo.head("refs/heads/"+in.Base)
		for _, p := range repo.pulls {
			if p.state == "open" && !p.Fork && p.Branch == branch && p.Base == in.Base {
				return invalidPull(map[string]any{"code": "custom", "message": fmt.Sprintf("A pull request already exists for %s:%s.", owner, branch)})
			}
		}
		ahead, _ := repo.run("", "rev-list", "--count", base+".."+head)
		switch refused := refusedText(&in.Title, in.Body); {
		case refused != "":
			return http.StatusUnprocessableEntity, refused
		case head == "":
			return invalidPull(map[string]any{"field": "head", "code": "invalid"})
		case base == "":
			return invalidPull(map[string]any{"field": "base", "code": "invalid"})
		case ahead == "0":
			return invalidPull(map[string]any{"code": "custom", "message": fmt.Sprintf("No commits between %s and %s", in.Base, branch)})
		}
		repo.lastNumber++
		opened = repo.lastNumber
		yes, now := true, s.stamp()
		p := &pull{
			PullRequest: PullRequest{Title: in.Title, Author: login, Branch: branch, Head: head, Base: in.Base, Draft: in.Draft, Number: opened},
			id:          s.id(), number: opened, state: "open", mergeable: &yes, mergeableState: "clean", created: now, updated: now,
			commits: []string{head},
		}
		if in.Body != nil {
			p.Body = *in.Body
		}
		repo.pulls[opened] = p
		repo.publish(p)
		return http.StatusCreated, repo.pullShape(p)
	})
	if opened != 0 {
		s.repo(r).deliverPull(opened, "opened", nil)
	}
}

func (s *Server) patchPull(w http.ResponseWriter, r *http.Request) {
	number, _ := strconv.Atoi(r.PathValue("number"))
	var in struct{ Title, Body, State, Base *string }
	action := ""
	s.locked(w, r, func(repo *Repo) (int, any) {
		p := repo.pulls[number]
		if p == nil || json.NewDecoder(r.Body).Decode(&in) != nil {
			return 0, nil
		}
		if refused := refusedText(in.Title, in.Body); refused != "" {
			return http.StatusUnprocessableEntity, refused
		}
		if in.Title != nil {
			p.Title, action = *in.Title, "edited"
		}
		if in.Body != nil {
			p.Body, action = *in.Body, "edited"
		}
		if in.Base != nil {
			p.Base, action = *in.Base, "edited"
		}
		p.updated = s.stamp()
		switch {
		case in.State == nil:
		case *in.State == "closed" && p.state == "open":
			p.state, p.closed, action = "closed", s.stamp(), "closed"
		case *in.State == "open" && p.state == "closed" && !p.merged:
			p.state, p.closed, action = "open", time.Time{}, "reopened"
		}
		return http.StatusOK, repo.pullShape(p)
	})
	if action != "" {
		s.repo(r).deliverPull(number, action, map[string]any{"changes": map[string]any{}})
	}
}

func (s *Server) postLabels(w http.ResponseWriter, r *http.Request) {
	login := s.caller(r)
	number, _ := strconv.Atoi(r.PathValue("number"))
	s.locked(w, r, func(repo *Repo) (int, any) {
		var labels []string
		p := repo.pulls[number]
		switch {
		case p == nil || json.NewDecoder(r.Body).Decode(&labels) != nil:
			return 0, nil
		case !repo.mayLabel(login):
			return http.StatusForbidden, map[string]any{"message": "Resource not accessible by integration"}
		}
		for _, label := range labels {
			if !slices.Contains(p.Labels, label) {
				p.Labels = append(p.Labels, label)
			}
		}
		p.updated = s.stamp()
		return http.StatusOK, repo.labelShapes(p.Labels)
	})
}
