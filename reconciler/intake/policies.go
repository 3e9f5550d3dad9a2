package intake

import (
	"context"
	"maps"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
)

// policiesMoved asks for new decisions about the open pull requests of all repositories: one
// with policies has other branches or tags.
func (s shared) policiesMoved() {
	for name := range s.repos {
		if s.opts.Leading.Leads(name) {
			s.marks.set(s.marks.rejudged, name)
			s.Agenda.Look(agenda.Look{Repo: name})
		}
	}
}

// judgeAgain asks for decisions about the open pull requests of a repository, if policies
// have moved since the last look.
func (s shared) judgeAgain(ctx context.Context, repo string) error {
	if !s.marks.take(s.marks.rejudged, repo) {
		return nil
	}
	open, err := s.openPullRequests(ctx, repo)
	if err != nil {
		s.marks.set(s.marks.rejudged, repo)
		return err
	}
	for _, pr := range open {
		for _, c := range pr.Clusters {
			s.Agenda.RequestPatiently(holdfast.Request{Cluster: c.Name, PullRequest: pr.PullRequestRef})
		}
	}
	return nil
}

// movedRefs reports whether refs are not those that were seen before.
func movedRefs(former, refs holdfast.Refs) bool { return former != nil && !maps.Equal(former, refs) }
