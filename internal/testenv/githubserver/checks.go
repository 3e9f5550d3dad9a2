package githubserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// CheckRun is a check run of the App.
type CheckRun struct {
	ID          int64
	Name        string
	Head        string
	ExternalID  string
	Status      string // queued, in_progress or completed
	Conclusion  string
	Title       string
	Summary     string
	Annotations []Annotation
	CompletedAt time.Time
}

// Annotation is a remark at a line of a file.
type Annotation struct {
	Path        string `json:"path"`
	StartLine   int    `json:"start_line"`
	EndLine     int    `json:"end_line"`
	StartColumn int    `json:"start_column"`
	EndColumn   int    `json:"end_column"`
	Level       string `json:"annotation_level"`
	Message     string `json:"message"`
	Title       string `json:"title"`
}

// CheckRuns returns the check runs of a commit, in the order in which they were
// made. Each is as it is now.
func (r *Repo) CheckRuns(sha string) []CheckRun {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var out []CheckRun
	for _, c := range r.checks {
		if c.Head == sha {
			run := *c
			run.Annotations = slices.Clone(c.Annotations)
			out = append(out, run)
		}
	}
	return out
}

func (s *Server) checkRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /repos/{owner}/{repo}/check-runs":              s.postCheckRun,
		"PATCH /repos/{owner}/{repo}/check-runs/{id}":        s.patchCheckRun,
		"GET /repos/{owner}/{repo}/commits/{sha}/check-runs": s.listCheckRuns,
	}
}

// checkInput is what makes or changes a check run. Absent fields are nil.
type checkInput struct {
	Name       *string `json:"name"`
	HeadSHA    *string `json:"head_sha"`
	ExternalID *string `json:"external_id"`
	Status     *string `json:"status"`
	Conclusion *string `json:"conclusion"`
	Output     *struct {
		Title       *string           `json:"title"`
		Summary     *string           `json:"summary"`
		Annotations []json.RawMessage `json:"annotations"`
	} `json:"output"`
}

// apply changes a check run, or says what GitHub refuses.
func (in checkInput) apply(c *CheckRun, now time.Time) (refused string) {
	set := func(to, from *string) {
		if from != nil {
			*to = *from
		}
	}
	set(&c.Name, in.Name)
	set(&c.ExternalID, in.ExternalID)
	set(&c.Status, in.Status)
	if in.Conclusion != nil {
		c.Status, c.Conclusion = "completed", *in.Conclusion
	}
	conclusions := []string{"action_required", "cancelled", "failure", "neutral", "success", "skipped", "stale", "timed_out"}
	switch {
	case !slices.Contains([]string{"queued", "in_progress", "completed"}, c.Status):
		return fmt.Sprintf("%q is not a member of [\"queued\", \"in_progress\", \"completed\"].", c.Status)
	case c.Status == "completed" && !slices.Contains(conclusions, c.Conclusion):
		return "For 'allOf/0', conclusion is not one that is allowed with the status completed."
	}
	if c.Status == "completed" {
		c.CompletedAt = now
	}
	if in.Output == nil {
		return ""
	}
	switch {
	case in.Output.Title == nil:
		return "For 'properties/output', missing required key: \"title\"."
	case in.Output.Summary == nil:
		return "For 'properties/output', missing required key: \"summary\"."
	case utf8.RuneCountInString(*in.Output.Summary) > 65535:
		return "Only 65535 characters are allowed."
	case len(in.Output.Annotations) > 50:
		return fmt.Sprintf("No more than 50 items are allowed; %d were supplied.", len(in.Output.Annotations))
	}
	c.Title, c.Summary = *in.Output.Title, *in.Output.Summary
	for _, raw := range in.Output.Annotations {
		a, refused := annotation(raw)
		if refused != "" {
			return refused
		}
		c.Annotations = append(c.Annotations, a)
	}
	return ""
}

func annotation(raw json.RawMessage) (a Annotation, refused string) {
	var given map[string]any
	if json.Unmarshal(raw, &given) != nil || json.Unmarshal(raw, &a) != nil {
		return a, "Problems parsing JSON"
	}
	for _, key := range []string{"path", "start_line", "end_line", "annotation_level", "message"} {
		if _, ok := given[key]; !ok {
			return a, fmt.Sprintf("For 'items', missing required key: %q.", key)
		}
	}
	_, column := given["start_column"]
	switch {
	case a.Path == "" || a.Message == "" || len(a.Message) > 64<<10:
		return a, "is too long or empty"
	case a.StartLine < 1 || a.EndLine < a.StartLine:
		return a, "start_line and end_line must be a range"
	case column && a.StartLine != a.EndLine:
		return a, "start_column is only allowed where start_line and end_line are the same"
	case !slices.Contains([]string{"notice", "warning", "failure"}, a.Level):
		return a, fmt.Sprintf("%q is not a member of [\"notice\", \"warning\", \"failure\"].", a.Level)
	case utf8.RuneCountInString(a.Title) > 255:
		return a, "title is too long (maximum is 255 characters)"
	default:
		return a, ""
	}
}

// invalid is GitHub's answer to a body that is not of its schema.
func invalid(why string) (int, any) {
	return http.StatusUnprocessableEntity, map[string]any{
		"message": "Invalid request.\n\n" + why, "documentation_url": "https://docs.github.com/rest/checks/runs", "status": "422",
	}
}

// forApps answers those that are not an App: only Apps have check runs.
func (s *Server) forApps(w http.ResponseWriter, r *http.Request) bool {
	if s.caller(r) != AppLogin {
		writeError(w, http.StatusForbidden, "You must authenticate via a GitHub App.")
		return false
	}
	return true
}

func (s *Server) postCheckRun(w http.ResponseWriter, r *http.Request) {
	if !s.forApps(w, r) {
		return
	}
	s.locked(w, r, func(repo *Repo) (int, any) {
		var in checkInput
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			return http.StatusBadRequest, map[string]any{"message": "Problems parsing JSON"}
		}
		switch {
		case in.Name == nil || *in.Name == "":
			return invalid(`For 'properties/name', missing required key: "name".`)
		case in.HeadSHA == nil:
			return invalid(`missing required key: "head_sha".`)
		case !repo.hasCommit(*in.HeadSHA):
			return noCommit(*in.HeadSHA)
		}
		c := &CheckRun{Head: *in.HeadSHA, Status: "queued"}
		if refused := in.apply(c, s.stamp()); refused != "" {
			return invalid(refused)
		}
		c.ID = s.id()
		repo.checks = append(repo.checks, c)
		return http.StatusCreated, checkShape(c)
	})
}

func (s *Server) patchCheckRun(w http.ResponseWriter, r *http.Request) {
	if !s.forApps(w, r) {
		return
	}
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	s.locked(w, r, func(repo *Repo) (int, any) {
		i := slices.IndexFunc(repo.checks, func(c *CheckRun) bool { return c.ID == id })
		if i < 0 {
			return 0, nil
		}
		var in checkInput
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			return http.StatusBadRequest, map[string]any{"message": "Problems parsing JSON"}
		}
		changed := *repo.checks[i]
		if refused := in.apply(&changed, s.stamp()); refused != "" {
			return invalid(refused)
		}
		*repo.checks[i] = changed
		return http.StatusOK, checkShape(&changed)
	})
}

func (s *Server) listCheckRuns(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.locked(w, r, func(repo *Repo) (int, any) {
		sha := r.PathValue("sha")
		if !repo.hasCommit(sha) {
			return noCommit(sha)
		}
		latest := cmp.Or(query.Get("filter"), "latest") == "latest"
		var found []any
		seen := make(map[string]bool)
		for _, c := range slices.Backward(repo.checks) {
			name := query.Get("check_name")
			if c.Head != sha || name != "" && name != c.Name || latest && seen[c.Name] {
				continue
			}
			seen[c.Name] = true
			found = append(found, checkShape(c))
		}
		return http.StatusOK, map[string]any{"total_count": len(found), "check_runs": page(w, r, found)}
	})
}

func checkShape(c *CheckRun) map[string]any {
	shape := map[string]any{
		"id": c.ID, "name": c.Name, "head_sha": c.Head, "external_id": c.ExternalID, "status": c.Status,
		"conclusion": nil, "completed_at": nil,
		"output": map[string]any{"title": c.Title, "summary": c.Summary, "text": nil, "annotations_count": len(c.Annotations)},
		"app":    map[string]any{"id": AppID, "slug": "holdfast"},
	}
	if c.Conclusion != "" {
		shape["conclusion"] = c.Conclusion
	}
	if !c.CompletedAt.IsZero() {
		shape["completed_at"] = c.CompletedAt.Format(time.RFC3339)
	}
	return shape
}
