package reconciler_test

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// issueHost is the part of a forge in memory that keeps issues, with every
// version of each.
type issueHost struct {
	issues map[string][]holdfast.Issue // by id, oldest version first
}

// issue returns the versions of the issue that has marker, oldest first.
func (h *codeHost) issue(marker string) []holdfast.Issue {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, versions := range h.issues {
		if strings.HasPrefix(versions[0].Body, marker) {
			return slices.Clone(versions)
		}
	}
	return nil
}

func (h *codeHost) PutIssue(_ context.Context, _, id, marker string, issue holdfast.Issue) (holdfast.Issue, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("PutIssue"); err != nil {
		return holdfast.Issue{}, err
	}
	if len(h.issues[id]) == 0 {
		id = ""
		for known, versions := range h.issues {
			if strings.HasPrefix(versions[0].Body, marker) {
				id = known
			}
		}
	}
	if id == "" {
		if issue.Closed {
			return holdfast.Issue{}, nil
		}
		id = strconv.Itoa(1000 + len(h.issues))
	}
	if h.issues == nil {
		h.issues = make(map[string][]holdfast.Issue)
	}
	issue.ID = id
	h.issues[id] = append(h.issues[id], issue)
	return issue, nil
}
