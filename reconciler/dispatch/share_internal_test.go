package dispatch

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// counted is a Store of clusters of two projects and two repositories, fleet not among them.
type counted struct {
	looks int
}

func (s *counted) CountClusters(_ context.Context, filter holdfast.ClusterFilter) (int, error) {
	s.looks++
	switch {
	case filter.Project != "":
		return 2, nil
	case filter.Owner == "mono":
		return 1, nil
	default:
		return 3, nil
	}
}

// TestShares: whoever has all running runs may not have the last one, if there are others.
func TestShares(t *testing.T) {
	t.Parallel()
	lane := func(project, repo string) holdfast.Lane {
		return holdfast.Lane{Project: project, PullRequest: holdfast.PullRequestRef{Repo: repo}}
	}
	two := []string{"fleet", "other"}
	tests := map[string]struct {
		limits  Limits
		running []holdfast.Lane
		want    string
	}{
		"nothing runs":             {Limits{Runs: 4, Repositories: two}, nil, ""},
		"one project":              {Limits{Runs: 4, Repositories: two[:1]}, []holdfast.Lane{lane("p", "fleet")}, "project p"},
		"one repository":           {Limits{Runs: 4, Repositories: two}, []holdfast.Lane{lane("p", "fleet"), lane("q", "fleet")}, "repository fleet"},
		"the only repository":      {Limits{Runs: 4, Repositories: two[:1]}, []holdfast.Lane{lane("p", "fleet"), lane("q", "fleet")}, ""},
		"with clusters elsewhere":  {Limits{Runs: 4}, []holdfast.Lane{lane("q", "mono"), lane("r", "mono")}, "repository mono"},
		"several":                  {Limits{Runs: 4, Repositories: two}, []holdfast.Lane{lane("p", "fleet"), lane("q", "other")}, ""},
		"and runs of no review":    {Limits{Runs: 4, Repositories: two}, []holdfast.Lane{lane("q", "fleet"), lane("p", "")}, ""},
		"projects have a limit":    {Limits{Runs: 4, Repositories: two, Project: 4}, []holdfast.Lane{lane("p", "fleet")}, ""},
		"too few to keep one back": {Limits{Runs: 2, Repositories: two}, []holdfast.Lane{lane("p", "fleet")}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &counted{}
			run := holdfast.Run{RunSpec: holdfast.RunSpec{Document: holdfast.Cluster{Project: "p"}}}
			if len(tt.running) > 0 { // an apply
				run.Reviews = []holdfast.Review{{PullRequest: tt.running[0].PullRequest}}
			}
			of := &shares{store: store, limits: tt.limits, now: time.Now}
			for range 2 {
				s, err := of.of(t.Context(), tt.running)
				if got := s.holds(run); err != nil || got != tt.want {
					t.Errorf("it is of the share of %q, %v; want %q", got, err, tt.want)
				}
				if most := s.most(run); tt.want != "" && most != tt.limits.Runs-1 || tt.want == "" && most != tt.limits.Runs {
					t.Errorf("it is handed out with %d of %d runs", most, tt.limits.Runs)
				}
			}
			if store.looks > 4 {
				t.Errorf("clusters were counted %d times", store.looks)
			}
		})
	}
}
