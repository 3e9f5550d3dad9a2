package history

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// PullRequests are the records of pull requests; *datastore.Store has them.
type PullRequests interface {
	// PullRequests returns the pull requests that match, in the order that the filter asks for.
	PullRequests(ctx context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error)
}

// mergesRead is how many merges are read first, and mergesMore how many times as many
// each time that these do not suffice.
const mergesRead, mergesMore = 20, 4

// Merges calls look with the merged pull requests of a repository that change a cluster,
// the last merged one first and each once, until all that were read together are done:
// those before them are, too. However many merges wait, all of them are found, and for a
// cluster with a long history only the newest are read.
func Merges(
	ctx context.Context, from PullRequests, repo, cluster string, look func(pr holdfast.PullRequestRecord) (done bool, err error),
) error {
	looked := make(map[int]bool)
	for limit := mergesRead; ; limit *= mergesMore {
		prs, err := from.PullRequests(ctx, holdfast.PullRequestFilter{
			Repo: repo, States: []holdfast.PullRequestState{holdfast.PullRequestMerged}, Cluster: cluster, ByMerge: true, Limit: limit,
		})
		if err != nil {
			return fmt.Errorf("list merged pull requests of %q: %w", cluster, err)
		}
		more := false
		for _, pr := range prs {
			if looked[pr.Number] {
				continue
			}
			looked[pr.Number] = true
			done, err := look(pr)
			if err != nil {
				return err
			}
			more = more || !done
		}
		if !more || len(prs) < limit {
			return nil
		}
	}
}
