package githubserver

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// labelRoutes are the calls about the labels of a pull request.
func (s *Server) labelRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /repos/{owner}/{repo}/issues/{number}/labels":           s.listLabels,
		"DELETE /repos/{owner}/{repo}/issues/{number}/labels/{name}": s.removeLabel,
	}
}

// Labels returns the labels of a pull request.
func (r *Repo) Labels(number int) []string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if p := r.pulls[number]; p != nil {
		return slices.Clone(p.Labels)
	}
	return nil
}

// Label puts labels on a pull request, as a person would.
func (r *Repo) Label(number int, labels ...string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.pulls[number].Labels = append(r.pulls[number].Labels, labels...)
}

func (s *Server) labeled(w http.ResponseWriter, r *http.Request, f func(repo *Repo, p *pull) (int, any)) {
	s.locked(w, r, func(repo *Repo) (int, any) {
		number, _ := strconv.Atoi(r.PathValue("number"))
		if p := repo.pulls[number]; p != nil {
			return f(repo, p)
		}
		return 0, nil
	})
}

func (s *Server) listLabels(w http.ResponseWriter, r *http.Request) {
	s.labeled(w, r, func(repo *Repo, p *pull) (int, any) { return http.StatusOK, repo.labelShapes(p.Labels) })
}

func (s *Server) removeLabel(w http.ResponseWriter, r *http.Request) {
	s.labeled(w, r, func(repo *Repo, p *pull) (int, any) {
		i := slices.IndexFunc(p.Labels, func(l string) bool { return strings.EqualFold(l, r.PathValue("name")) })
		if i < 0 {
			return 0, nil
		}
		p.Labels = slices.Delete(p.Labels, i, i+1)
		return http.StatusOK, repo.labelShapes(p.Labels)
	})
}
