package githubserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// nodeID is the id of a comment in the GraphQL API.
func nodeID(comment int64) string { return fmt.Sprintf("IC_%d", comment) }

// postGraphQL answers queries of when comments were edited, which the REST API does not say.
func (s *Server) postGraphQL(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Query     string `json:"query"`
		Variables struct {
			IDs []string `json:"ids"`
		} `json:"variables"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || !strings.Contains(in.Query, "... on IssueComment { lastEditedAt }") {
		writeJSON(w, http.StatusOK, map[string]any{"errors": []any{map[string]any{"message": "A query attribute must be specified and must be a string."}}})
		return
	}
	nodes := make([]any, len(in.Variables.IDs))
	s.mu.Lock()
	for _, repo := range s.repos {
		for _, c := range repo.comments {
			i := slices.Index(in.Variables.IDs, nodeID(c.ID))
			if i < 0 || repo.hidden {
				continue
			}
			var edited any
			if len(c.bodies) > 1 {
				edited = stampOf(c.UpdatedAt)
			}
			nodes[i] = map[string]any{"lastEditedAt": edited}
		}
	}
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{"data": map[string]any{"nodes": nodes}})
}
