package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// othersLooked is how long it is assumed to stay so whether there are clusters of
// others.
const othersLooked = time.Minute

// shares is who has all running runs, and whether there are others.
type shares struct {
	store  Clusters
	limits Limits
	now    func() time.Time

	mu     sync.Mutex
	at     time.Time       // when others was emptied
	others map[string]bool // by project and repository
}

// share says of which project and of which repository all running runs are, if there are
// others: the last run of the fleet is kept for these. A state store or a cloud that does
// not answer would hold up everybody until the runs that wait for it time out.
type share struct {
	project, repo string // empty: of several, or there are no others
	last          int    // how many runs they may have
	running       int    // how many there are
}

// of is the share of those that have all of the running runs.
func (h *shares) of(ctx context.Context, running []holdfast.Lane) (share, error) {
	s := share{last: h.limits.Runs - 1, running: len(running)}
	if h.limits.Project > 0 || s.last < 2 || len(running) == 0 {
		return s, nil
	}
	project, repo := running[0].Project, running[0].PullRequest.Repo
	for _, lane := range running {
		if lane.Project != project {
			project = ""
		}
		if lane.PullRequest.Repo != repo {
			repo = ""
		}
	}
	some := func(name string, is holdfast.ClusterFilter) (string, error) {
		if name == "" {
			return "", nil
		}
		if others, err := h.hasOthers(ctx, is); err != nil || !others {
			return "", err
		}
		return name, nil
	}
	var err error
	if s.project, err = some(project, holdfast.ClusterFilter{Project: project}); err != nil {
		return s, err
	}
	if slices.ContainsFunc(h.limits.Repositories, func(name string) bool { return name != repo }) {
		s.repo = repo
		return s, nil
	}
	s.repo, err = some(repo, holdfast.ClusterFilter{Owner: repo})
	return s, err
}

// hasOthers reports whether there are clusters that a filter does not match.
func (h *shares) hasOthers(ctx context.Context, filter holdfast.ClusterFilter) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := filter.Project + "\x00" + filter.Owner
	if now := h.now(); now.Sub(h.at).Abs() >= othersLooked {
		h.at, h.others = now, make(map[string]bool)
	} else if others, known := h.others[key]; known {
		return others, nil
	}
	all, err := h.store.CountClusters(ctx, holdfast.ClusterFilter{})
	if err != nil {
		return false, fmt.Errorf("count clusters: %w", err)
	}
	these, err := h.store.CountClusters(ctx, filter)
	if err != nil {
		return false, fmt.Errorf("count clusters of %s: %w", filter.Project+filter.Owner, err)
	}
	h.others[key] = all > these
	return all > these, nil
}

// limits makes a filter leave out those that have all running runs, if only the last run
// of the fleet is left.
func (s share) limits(filter *holdfast.ClaimFilter) {
	if s.running < s.last {
		return
	}
	if s.project != "" {
		filter.Capped = append(filter.Capped, s.project)
	}
	if s.repo != "" {
		filter.CappedRepos = append(filter.CappedRepos, s.repo)
	}
}

// waits is why a run is not handed out; empty if it may be.
func (s share) waits(run holdfast.Run) (reason holdfast.Reason, detail string) {
	of := s.holds(run)
	if of == "" || s.running < s.last {
		return "", ""
	}
	return holdfast.ReasonProjectCapped, fmt.Sprintf("all running runs are of %s, and the last of %d is kept for others", of, s.last+1)
}

// most is how many runs there may be at once for one to be handed out.
func (s share) most(run holdfast.Run) int { return s.mostOf(run.Document.Project, repoOf(run)) }

// mostOf is most of a run of a project and a repository.
func (s share) mostOf(project, repo string) int {
	if s.holder(project, repo) != "" {
		return s.last
	}
	return s.last + 1
}

// holds is whose share a run is of; empty if it may be the last one.
func (s share) holds(run holdfast.Run) string { return s.holder(run.Document.Project, repoOf(run)) }

func (s share) holder(project, repo string) string {
	switch {
	case s.project != "" && s.project == project:
		return "project " + s.project
	case s.repo != "" && s.repo == repo:
		return "repository " + repo
	default:
		return ""
	}
}

// repoOf is the repository of the pull request that a run was made for, or whose reviews it
// applies.
func repoOf(run holdfast.Run) string {
	if run.PullRequest.Repo == "" && len(run.Reviews) > 0 {
		return run.Reviews[0].PullRequest.Repo
	}
	return run.PullRequest.Repo
}
