package githubserver

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /app":                                         s.getApp,
		"GET /repos/{owner}/{repo}/installation":           s.getInstallation,
		"POST /app/installations/{id}/access_tokens":       s.postAccessToken,
		"GET /user":                                        s.getUser,
		"GET /rate_limit":                                  s.getRateLimit,
		"GET /repos/{owner}/{repo}":                        s.getRepo,
		"GET /repos/{owner}/{repo}/pulls":                  s.listPulls,
		"GET /repos/{owner}/{repo}/pulls/{number}":         s.getPull,
		"GET /repos/{owner}/{repo}/pulls/{number}/reviews": s.listReviews,
		"GET /repos/{owner}/{repo}/commits/{sha}/pulls":    s.listPullsOf,
		"GET /repos/{owner}/{repo}/commits/{sha}/status":   s.getCombinedStatus,
		"GET /repos/{owner}/{repo}/commits/{sha}/statuses": s.listStatuses,
		"POST /repos/{owner}/{repo}/statuses/{sha}":        s.postStatus,

		"GET /repos/{owner}/{repo}/collaborators/{login}/permission": s.getPermission,
		"GET /repos/{owner}/{repo}/issues":                           s.listIssues,
		"POST /repos/{owner}/{repo}/issues":                          s.postIssue,
		"GET /repos/{owner}/{repo}/issues/{number}":                  s.getIssue,
		"PATCH /repos/{owner}/{repo}/issues/{number}":                s.patchIssue,
		"GET /repos/{owner}/{repo}/issues/comments":                  s.listComments,
		"PATCH /repos/{owner}/{repo}/issues/comments/{id}":           s.patchComment,
		"POST /repos/{owner}/{repo}/issues/comments/{id}/reactions":  s.postReaction,
		"GET /repos/{owner}/{repo}/issues/{number}/{part}":           s.getComments,
		"POST /repos/{owner}/{repo}/issues/{number}/comments":        s.postComment,

		"POST /graphql": s.postGraphQL,
	} {
		mux.HandleFunc(pattern, handle)
	}
	for _, routes := range []map[string]http.HandlerFunc{s.gitRoutes(), s.proposalRoutes(), s.checkRoutes(), s.labelRoutes()} {
		for pattern, handle := range routes {
			mux.HandleFunc(pattern, handle)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.redirect(w, r) {
			s.serve(mux, w, r)
		}
	})
}

// serve does for every route what GitHub does for every call: it counts,
// authenticates, limits, and answers conditional requests.
func (s *Server) serve(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	_, route := mux.Handler(r)
	defer s.underWay(r)()
	s.mu.Lock()
	s.calls[cmp.Or(route, r.Method+" "+r.URL.Path)]++
	latency := s.latency
	s.mu.Unlock()
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-r.Context().Done():
			return
		}
	}
	f, failed := s.takeFault(route)
	if failed && !f.After {
		f.answer(w, r)
		return
	}
	if !s.admit(w, r, route) {
		return
	}
	if s.refuse(w, r) || s.slowDown(w, r) || !s.permitted(w, r, route) {
		return
	}
	s.takeMoment(route)()
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, r)
	if failed {
		f.answer(w, r)
		return
	}
	s.finish(w, r, route, recorder)
}

// admit reports whether the call is authenticated and within the quota; if
// not, it has answered.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, route string) bool {
	asApp := route == "GET /app" || strings.HasSuffix(route, "/installation") || strings.HasSuffix(route, "/access_tokens")
	switch {
	case asApp && !s.isApp(r):
		writeError(w, http.StatusUnauthorized, "A JSON web token could not be decoded")
		return false
	case !asApp && s.caller(r) == "":
		writeError(w, http.StatusUnauthorized, "Bad credentials")
		return false
	}
	s.mu.Lock()
	if s.now().After(s.reset) {
		s.remaining, s.reset = s.limit, s.now().Add(time.Hour)
	}
	over := s.remaining <= 0 && !asApp
	if !over && !asApp {
		s.remaining--
	}
	s.limitHeaders(w.Header())
	reset := s.reset
	s.mu.Unlock()
	if over {
		PrimaryLimit(reset).answer(w, r)
	}
	return !over
}

// limitHeaders sets the rate limit's headers; s.mu is held.
func (s *Server) limitHeaders(h http.Header) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(s.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(s.remaining))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(s.reset.Unix(), 10))
	h.Set("X-RateLimit-Resource", "core")
}

// finish writes the recorded answer: as 304, which costs nothing, if the
// client has it already.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, route string, recorder *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), recorder.Header())
	body := recorder.Body.Bytes()
	if r.Method == http.MethodGet && recorder.Code == http.StatusOK {
		// An ETag is for one token: another's answer may differ.
		sum := sha256.Sum256(append([]byte(r.Header.Get("Authorization")+"\n"), body...))
		etag := `W/"` + hex.EncodeToString(sum[:]) + `"`
		w.Header().Set("ETag", etag)
		w.Header().Set("Cache-Control", "private, max-age=60, s-maxage=60")
		if r.Header.Get("If-None-Match") == etag {
			s.mu.Lock()
			s.free[route]++
			s.remaining++
			s.limitHeaders(w.Header())
			s.mu.Unlock()
			w.Header().Del("Link") // 304 is about the entries of a page
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(body)
}

// repo returns the repository of the call, nil if there is none.
func (s *Server) repo(r *http.Request) *Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repos[strings.ToLower(r.PathValue("owner")+"/"+r.PathValue("repo"))]
}

// locked calls f with the call's repository while s.mu is held, and answers
// with what it returns; 404 if there is no such repository or f returns 0.
func (s *Server) locked(w http.ResponseWriter, r *http.Request, f func(repo *Repo) (status int, body any)) {
	repo := s.repo(r)
	if repo == nil {
		writeError(w, http.StatusNotFound, "Not Found")
		return
	}
	s.mu.Lock()
	status, body := f(repo)
	s.mu.Unlock()
	switch message, isText := body.(string); {
	case status == 0:
		writeError(w, http.StatusNotFound, "Not Found")
	case status == http.StatusNoContent:
		w.WriteHeader(status)
	case isText:
		writeError(w, status, "Validation Failed", map[string]any{"resource": "Issue", "code": "custom", "message": message})
	default:
		writeJSON(w, status, body)
	}
}

// page returns the page of items that the call asks for, and sets the Link
// header.
func page[T any](w http.ResponseWriter, r *http.Request, items []T) []T {
	query := r.URL.Query()
	size, err := strconv.Atoi(query.Get("per_page"))
	if err != nil || size < 1 {
		size = 30
	}
	size = min(size, 100)
	number, err := strconv.Atoi(query.Get("page"))
	if err != nil || number < 1 {
		number = 1
	}
	last := max(1, (len(items)+size-1)/size)
	if number < last {
		link := func(page int, rel string) string {
			query.Set("page", strconv.Itoa(page))
			u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: query.Encode()}
			return fmt.Sprintf("<%s>; rel=%q", u.String(), rel)
		}
		w.Header().Set("Link", link(number+1, "next")+", "+link(last, "last"))
	}
	from := min((number-1)*size, len(items))
	return append([]T{}, items[from:min(from+size, len(items))]...)
}

func (s *Server) getUser(w http.ResponseWriter, r *http.Request) {
	login := s.caller(r)
	if login == AppLogin {
		writeError(w, http.StatusForbidden, "Resource not accessible by integration")
		return
	}
	writeJSON(w, http.StatusOK, userShape(login))
}

func (s *Server) getRateLimit(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	core := map[string]any{"limit": s.limit, "remaining": s.remaining, "reset": s.reset.Unix(), "used": s.limit - s.remaining}
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{"resources": map[string]any{"core": core}, "rate": core})
}

func (s *Server) getRepo(w http.ResponseWriter, r *http.Request) {
	s.locked(w, r, func(repo *Repo) (int, any) {
		shape := maps.Clone(repo.shape())
		shape["archived"] = repo.archived
		return http.StatusOK, shape
	})
}

func (s *Server) getPermission(w http.ResponseWriter, r *http.Request) {
	s.locked(w, r, func(repo *Repo) (int, any) {
		login := r.PathValue("login")
		if !repo.isUser(login) {
			return http.StatusNotFound, map[string]any{"message": login + " is not a user", "documentation_url": "https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user", "status": "404"}
		}
		permission := cmp.Or(repo.people[strings.ToLower(login)], "none")
		role := permission
		switch permission {
		case "maintain":
			permission = "write"
		case "triage":
			permission = "read"
		}
		return http.StatusOK, map[string]any{"permission": permission, "role_name": role, "user": userShape(login)}
	})
}

func (s *Server) getPull(w http.ResponseWriter, r *http.Request) {
	s.locked(w, r, func(repo *Repo) (int, any) {
		number, _ := strconv.Atoi(r.PathValue("number"))
		if p, ok := repo.pulls[number]; ok {
			return http.StatusOK, repo.pullShape(p)
		}
		return 0, nil
	})
}

func (s *Server) listPulls(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.locked(w, r, func(repo *Repo) (int, any) {
		var pulls []*pull
		for _, p := range repo.pulls {
			state := query.Get("state")
			if (state == "all" || cmp.Or(state, "open") == p.state) && repo.isOf(p, query.Get("head")) {
				pulls = append(pulls, p)
			}
		}
		slices.SortFunc(pulls, func(a, b *pull) int {
			order := cmp.Compare(a.number, b.number)
			if query.Get("sort") == "updated" {
				order = cmp.Or(a.updated.Compare(b.updated), order)
			}
			if query.Get("direction") != "asc" {
				order = -order
			}
			return order
		})
		return http.StatusOK, repo.listShape(page(w, r, pulls))
	})
}

// isOf reports whether a pull request is of a head, which is owner:branch; an
// empty one is any. GitHub passes over a head without an owner.
func (r *Repo) isOf(p *pull, head string) bool {
	owner, _, _ := strings.Cut(r.fullName, "/")
	if p.Fork {
		owner = p.Author
	}
	return !strings.Contains(head, ":") || head == owner+":"+p.Branch
}

func (s *Server) listPullsOf(w http.ResponseWriter, r *http.Request) {
	s.locked(w, r, func(repo *Repo) (int, any) {
		if sha := r.PathValue("sha"); !repo.hasCommit(sha) {
			return noCommit(sha)
		}
		var pulls []*pull
		for _, p := range repo.pulls {
			if slices.Contains(p.commits, r.PathValue("sha")) {
				pulls = append(pulls, p)
			}
		}
		slices.SortFunc(pulls, func(a, b *pull) int { return cmp.Compare(a.number, b.number) })
		return http.StatusOK, repo.listShape(page(w, r, pulls))
	})
}

func (s *Server) listReviews(w http.ResponseWriter, r *http.Request) {
	s.locked(w, r, func(repo *Repo) (int, any) {
		number, _ := strconv.Atoi(r.PathValue("number"))
		p, ok := repo.pulls[number]
		if !ok {
			return 0, nil
		}
		var reviews []any
		for _, review := range p.reviews {
			reviews = append(reviews, repo.reviewShape(p, review))
		}
		return http.StatusOK, page(w, r, reviews)
	})
}

func (s *Server) listStatuses(w http.ResponseWriter, r *http.Request) {
	s.locked(w, r, func(repo *Repo) (int, any) {
		var statuses []any
		for _, status := range slices.Backward(repo.statuses[r.PathValue("sha")]) {
			statuses = append(statuses, statusShape(status))
		}
		return http.StatusOK, page(w, r, statuses)
	})
}

func (s *Server) getCombinedStatus(w http.ResponseWriter, r *http.Request) {
	s.locked(w, r, func(repo *Repo) (int, any) {
		sha, seen := r.PathValue("sha"), make(map[string]bool)
		if !repo.hasCommit(sha) {
			return noCommit(sha)
		}
		statuses := []any{}
		for _, status := range slices.Backward(repo.statuses[sha]) {
			if !seen[status.Context] {
				seen[status.Context] = true
				statuses = append(statuses, statusShape(status))
			}
		}
		return http.StatusOK, map[string]any{"sha": sha, "state": "pending", "statuses": page(w, r, statuses), "total_count": len(statuses)}
	})
}

func (s *Server) postStatus(w http.ResponseWriter, r *http.Request) {
	login := s.caller(r)
	s.locked(w, r, func(repo *Repo) (int, any) {
		var in struct {
			State, Context, Description string
			TargetURL                   string `json:"target_url"`
		}
		sha := r.PathValue("sha")
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			return http.StatusUnprocessableEntity, "Problems parsing JSON"
		}
		same := 0
		for _, status := range repo.statuses[sha] {
			if status.Context == in.Context {
				same++
			}
		}
		switch {
		case !repo.hasCommit(sha):
			return noCommit(sha)
		case !slices.Contains([]string{"pending", "success", "failure", "error"}, in.State):
			return http.StatusUnprocessableEntity, "State is not included in the list"
		case utf8.RuneCountInString(in.Description) > 140:
			return http.StatusUnprocessableEntity, "Description is too long (maximum is 140 characters)"
		case same >= 1000:
			return http.StatusUnprocessableEntity, "This SHA and context has reached the maximum number of statuses."
		}
		status := Status{
			ID: s.id(), Context: cmp.Or(in.Context, "default"), State: in.State, Description: in.Description,
			TargetURL: in.TargetURL, Creator: login, CreatedAt: s.stamp(),
		}
		repo.statuses[sha] = append(repo.statuses[sha], status)
		return http.StatusCreated, statusShape(status)
	})
}

func (s *Server) listComments(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	since, _ := time.Parse(time.RFC3339, query.Get("since"))
	number, _ := strconv.Atoi(r.PathValue("number"))
	s.locked(w, r, func(repo *Repo) (int, any) {
		var found []*comment
		for _, c := range repo.comments {
			if (number == 0 || c.Number == number) && !c.UpdatedAt.Before(since) {
				found = append(found, c)
			}
		}
		if query.Get("sort") == "updated" {
			slices.SortStableFunc(found, func(a, b *comment) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
		}
		if query.Get("direction") == "desc" {
			slices.Reverse(found)
		}
		comments := []any{}
		for _, c := range page(w, r, found) {
			comments = append(comments, repo.commentShape(c.Comment))
		}
		return http.StatusOK, comments
	})
}

// commentOf returns the comment that the call names; s.mu is held.
func commentOf(repo *Repo, r *http.Request) *comment {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	return repo.find(id)
}

// bodyOf reads a comment's body, or says why it is refused.
func bodyOf(r *http.Request) (body, refused string) {
	var in struct{ Body string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return "", "Problems parsing JSON"
	}
	if utf8.RuneCountInString(in.Body) > 65536 {
		return "", "Body is too long (maximum is 65536 characters)"
	}
	if in.Body == "" {
		return "", "Body can't be blank"
	}
	return in.Body, ""
}

// getComments answers for issues/comments/{id} and for issues/{number}/comments,
// which the patterns of a mux do not tell apart.
func (s *Server) getComments(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.PathValue("number") == "comments":
		r.SetPathValue("id", r.PathValue("part"))
		s.getComment(w, r)
	case r.PathValue("part") == "comments":
		s.listComments(w, r)
	default:
		writeError(w, http.StatusNotFound, "Not Found")
	}
}

func (s *Server) getComment(w http.ResponseWriter, r *http.Request) {
	s.locked(w, r, func(repo *Repo) (int, any) {
		c := commentOf(repo, r)
		if c == nil {
			return 0, nil
		}
		return http.StatusOK, repo.commentShape(c.Comment)
	})
}

func (s *Server) patchComment(w http.ResponseWriter, r *http.Request) {
	login := s.caller(r)
	s.locked(w, r, func(repo *Repo) (int, any) {
		c := commentOf(repo, r)
		if c == nil {
			return 0, nil
		}
		body, refused := bodyOf(r)
		if refused != "" {
			return http.StatusUnprocessableEntity, refused
		}
		if c.Author != login {
			return http.StatusForbidden, map[string]any{"message": "Resource not accessible by integration"}
		}
		c.Body, c.UpdatedAt, c.bodies = body, s.stamp(), append(c.bodies, body)
		return http.StatusOK, repo.commentShape(c.Comment)
	})
}

func (s *Server) postComment(w http.ResponseWriter, r *http.Request) {
	login := s.caller(r)
	number, _ := strconv.Atoi(r.PathValue("number"))
	s.locked(w, r, func(repo *Repo) (int, any) {
		on := repo.issue(number)
		if repo.pulls[number] == nil && on == nil {
			return 0, nil
		}
		body, refused := bodyOf(r)
		if refused != "" {
			return http.StatusUnprocessableEntity, refused
		}
		now := s.stamp()
		c := &comment{Comment: Comment{ID: s.id(), Number: number, Author: login, Body: body, CreatedAt: now, UpdatedAt: now}, bodies: []string{body}}
		repo.comments = append(repo.comments, c)
		if c.Issue = on != nil; c.Issue {
			on.UpdatedAt = now
		} else {
			repo.pulls[number].updated = now
		}
		return http.StatusCreated, repo.commentShape(c.Comment)
	})
}

func (s *Server) postReaction(w http.ResponseWriter, r *http.Request) {
	login := s.caller(r)
	s.locked(w, r, func(repo *Repo) (int, any) {
		var in struct{ Content string }
		c := commentOf(repo, r)
		if c == nil {
			return 0, nil
		}
		known := []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}
		if json.NewDecoder(r.Body).Decode(&in) != nil || !slices.Contains(known, in.Content) {
			return http.StatusUnprocessableEntity, "Content is not a reaction"
		}
		for _, have := range c.reactions {
			if have.login == login && have.content == in.Content {
				return http.StatusOK, map[string]any{"id": have.id, "content": have.content, "user": userShape(login)}
			}
		}
		c.reactions = append(c.reactions, reaction{id: s.id(), login: login, content: in.Content})
		return http.StatusCreated, map[string]any{"id": s.nextID, "content": in.Content, "user": userShape(login)}
	})
}
