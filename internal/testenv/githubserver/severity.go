package githubserver

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What GitHub is strict about: what a token may, how much is written in a minute,
// which commits and users there are, and names that repositories had.

// access is a permission of a token, and whether it is to write.
type access struct {
	permission string
	write      bool
}

// granted are the permissions that the README asks for.
func granted() map[string]string {
	return map[string]string{
		"metadata": "read", "contents": "write", "pull_requests": "write", "issues": "write", "statuses": "write",
		"merge_queues": "read", "checks": "write",
	}
}

// SetPermissions replaces the permissions of all tokens, such as "contents" →
// "read". What is not in it is not permitted. Without this call they are those
// that the README asks for.
func (s *Server) SetPermissions(permissions map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.permissions = permissions
}

// accepts returns the accesses of which any one permits a call; none: every valid
// token does.
func accepts(method, route string) []access {
	_, path, _ := strings.Cut(route, " ")
	part, ok := strings.CutPrefix(path, "/repos/{owner}/{repo}")
	if !ok || part == "/installation" {
		return nil
	}
	write := method != http.MethodGet
	one := func(permission string) []access { return []access{{permission, write}} }
	switch {
	case part == "" || strings.HasPrefix(part, "/collaborators/"):
		return one("metadata")
	case strings.HasPrefix(part, "/git/"):
		return one("contents")
	case strings.HasPrefix(part, "/check-runs"), strings.HasSuffix(part, "/check-runs"):
		return one("checks")
	case strings.HasPrefix(part, "/pulls"), strings.HasSuffix(part, "/pulls"):
		return one("pull_requests")
	case strings.Contains(part, "/status"):
		return one("statuses")
	case method == http.MethodPost && part == "/issues":
		return one("issues")
	default: // an issue's, which a pull request is, too
		return append(one("issues"), one("pull_requests")...)
	}
}

// permitted reports whether the token of a call may make it; if not, it has
// answered.
func (s *Server) permitted(w http.ResponseWriter, r *http.Request, route string) bool {
	accepted := accepts(r.Method, route)
	if len(accepted) == 0 {
		return true
	}
	s.mu.Lock()
	may := slices.ContainsFunc(accepted, func(a access) bool {
		have := s.permissions[a.permission]
		return have == "write" || have == "read" && !a.write
	})
	s.mu.Unlock()
	if may {
		return true
	}
	var names []string
	for _, a := range accepted {
		level := "read"
		if a.write {
			level = "write"
		}
		names = append(names, a.permission+"="+level)
	}
	w.Header().Set("X-Accepted-GitHub-Permissions", strings.Join(names, "; "))
	message := "Resource not accessible by personal access token"
	if s.caller(r) == AppLogin {
		message = "Resource not accessible by integration"
	}
	writeError(w, http.StatusForbidden, message)
	return false
}

// GitHub takes 80 calls that make content in a minute.
const (
	writeLimit  = 80
	writeWindow = time.Minute
)

// SetWriteLimit sets how many calls may write within a time, and how long GitHub
// says that a caller shall wait who makes more; zero: it does not say. The default
// is 80 in a minute, and 60 s; a limit of zero takes all.
func (s *Server) SetWriteLimit(limit int, window, retryAfter time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLimit, s.writeWindow, s.retryAfter = limit, window, retryAfter
}

// SlowWrites returns how many writes GitHub has refused as too many, and the
// largest number that was under way at once.
func (s *Server) SlowWrites() (refused, atOnce int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusedWrites, s.mostWrites
}

// writes reports whether a call makes content. Tokens are not content.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/access_tokens") && r.URL.Path != "/graphql"
}

// underWay counts a call that writes until the function that it returns is called.
func (s *Server) underWay(r *http.Request) (done func()) {
	if !writes(r) {
		return func() {}
	}
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.writing += n
		s.mostWrites = max(s.mostWrites, s.writing)
	}
	count(1)
	return func() { count(-1) }
}

// slowDown reports whether a call is one write too many; if so, it has answered.
func (s *Server) slowDown(w http.ResponseWriter, r *http.Request) bool {
	if !writes(r) {
		return false
	}
	s.mu.Lock()
	now := s.now()
	s.writes = slices.DeleteFunc(s.writes, func(at time.Time) bool { return now.Sub(at) >= s.writeWindow })
	refused := s.writeLimit > 0 && len(s.writes) >= s.writeLimit
	retryAfter := s.retryAfter
	if refused {
		s.refusedWrites++
	} else {
		s.writes = append(s.writes, now)
	}
	s.mu.Unlock()
	if refused {
		SecondaryLimit(retryAfter).answer(w, r)
	}
	return refused
}

// Rename gives the repository another name. Calls for the old one are redirected
// from then on, and deliveries have the new one.
func (r *Repo) Rename(fullName string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.moved[strings.ToLower(r.fullName)] = r.id
	delete(r.s.repos, strings.ToLower(r.fullName))
	delete(r.s.moved, strings.ToLower(fullName))
	r.s.repos[strings.ToLower(fullName)] = r
	r.fullName = fullName
	r.templatesMu.Lock()
	defer r.templatesMu.Unlock()
	clear(r.templates)
	r.repository = nil
}

// Archive makes the repository read-only, or ends that.
func (r *Repo) Archive(archived bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.archived = archived
}

// Hide makes the repository one that nobody finds: it was deleted, or the token may no
// longer see it. Its webhook is silent meanwhile.
func (r *Repo) Hide(hidden bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.hidden = hidden
}

// ID returns the repository's id, which stays when it is renamed.
func (r *Repo) ID() int64 { return r.id }

// redirect answers calls for a name that a repository had, and gives those by id
// the name that it has. It reports whether it has answered.
func (s *Server) redirect(w http.ResponseWriter, r *http.Request) bool {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 4)
	switch {
	case len(parts) >= 2 && parts[0] == "repositories":
		id, _ := strconv.ParseInt(parts[1], 10, 64)
		s.mu.Lock()
		for _, repo := range s.repos {
			if repo.id == id {
				r.URL.Path = "/repos/" + repo.fullName + strings.TrimPrefix(r.URL.Path, "/repositories/"+parts[1])
			}
		}
		s.mu.Unlock()
		return false
	case len(parts) >= 3 && parts[0] == "repos":
		s.mu.Lock()
		id, moved := s.moved[strings.ToLower(parts[1]+"/"+parts[2])]
		s.mu.Unlock()
		if !moved {
			return false
		}
		to := fmt.Sprintf("%srepositories/%d", s.apiOf(r), id)
		if len(parts) == 4 {
			to += "/" + parts[3]
		}
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		status := http.StatusMovedPermanently
		if r.Method != http.MethodGet {
			status = http.StatusTemporaryRedirect
		}
		w.Header().Set("Location", to)
		writeJSON(w, status, map[string]any{"message": "Moved Permanently", "url": to, "documentation_url": "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects"})
		return true
	default:
		return false
	}
}

// apiOf returns the base under which a call came in.
func (s *Server) apiOf(r *http.Request) string {
	base := url.URL{Scheme: "http", Host: r.Host, Path: "/"}
	if strings.HasPrefix(r.RequestURI, "/api/v3/") {
		base.Path = "/api/v3/"
	}
	return base.String()
}

// Knows adds commits to those that the repository has, if it has no Git.
func (r *Repo) Knows(commits ...string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.know(commits...)
}

// know is Knows while r.s.mu is held.
func (r *Repo) know(commits ...string) {
	for _, sha := range commits {
		r.known[sha] = true
	}
}

// hasCommit reports whether there is a commit; r.s.mu is held.
func (r *Repo) hasCommit(sha string) bool {
	if r.git != "" && len(sha) == 40 {
		return r.is("commit", sha)
	}
	if r.known[sha] {
		return true
	}
	for _, p := range r.pulls {
		if p.Head == sha || p.BaseSHA == sha || slices.Contains(p.commits, sha) {
			return true
		}
	}
	return false
}

// noCommit is GitHub's word for a commit that it does not have.
func noCommit(sha string) (int, any) {
	return http.StatusUnprocessableEntity, map[string]any{
		"message": "No commit found for SHA: " + sha, "documentation_url": "https://docs.github.com/rest/commits/statuses", "status": "422",
	}
}

// isUser reports whether a login is one that anybody has; r.s.mu is held. Those of
// Apps are not users.
func (r *Repo) isUser(login string) bool {
	if strings.HasSuffix(login, "[bot]") {
		return false
	}
	if _, ok := r.people[strings.ToLower(login)]; ok || strings.EqualFold(login, TokenLogin) {
		return true
	}
	for _, p := range r.pulls {
		if strings.EqualFold(p.Author, login) || slices.ContainsFunc(p.reviews, func(v review) bool { return strings.EqualFold(v.login, login) }) {
			return true
		}
	}
	return slices.ContainsFunc(r.comments, func(c *comment) bool { return strings.EqualFold(c.Author, login) })
}

// refuse answers a call for a repository that cannot be seen, or a write to one that
// is archived. It reports whether it has answered.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) bool {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 4)
	if len(parts) < 3 || parts[0] != "repos" {
		return false
	}
	s.mu.Lock()
	repo := s.repos[strings.ToLower(parts[1]+"/"+parts[2])]
	hidden, archived := repo != nil && repo.hidden, repo != nil && repo.archived
	s.mu.Unlock()
	switch {
	case hidden:
		writeError(w, http.StatusNotFound, "Not Found")
	case archived && r.Method != http.MethodGet:
		writeError(w, http.StatusForbidden, "Repository was archived so is read-only.")
	default:
		return false
	}
	return true
}

// MergeGroup delivers that a merge queue asks for the checks of a group: what the base
// branch would be with its pull requests, at a commit of its own ref.
func (r *Repo) MergeGroup(ref, head, base, baseHead string) Delivery {
	r.Knows(head)
	return r.deliverGroup("checks_requested", "", ref, head, base, baseHead)
}

// EndMergeGroup delivers that a group no longer exists, because it was merged, invalidated or
// dequeued. Its ref is gone by then.
func (r *Repo) EndMergeGroup(reason, ref, head, base, baseHead string) Delivery {
	return r.deliverGroup("destroyed", reason, ref, head, base, baseHead)
}

func (r *Repo) deliverGroup(action, reason, ref, head, base, baseHead string) Delivery {
	payload := map[string]any{
		"action": action,
		"merge_group": map[string]any{
			"head_sha": head, "head_ref": ref, "base_ref": "refs/heads/" + base, "base_sha": baseHead,
			"head_commit": map[string]any{"id": head, "tree_id": strings.Repeat("a", 40), "message": "Merge group"},
		},
		"repository": r.shape(), "sender": userShape("github-merge-queue[bot]"),
	}
	if reason != "" {
		payload["reason"] = reason
	}
	return r.deliver("merge_group", payload)
}
