package datastore

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// MergesOf returns the numbers of the merged pull requests of a repository that change a
// cluster, the last merged one first. It decrypts nothing.
func (s *PullRequestStore) MergesOf(ctx context.Context, repo, cluster string, limit int) ([]int, error) {
	var numbers []int
	err := s.db.reader().each(ctx, func(row scanner) error {
		var number int
		err := row.Scan(&number)
		numbers = append(numbers, number)
		return err
	}, `SELECT a.number FROM pull_request_clusters AS a JOIN pull_requests AS p ON p.repo = a.repo AND p.number = a.number
		WHERE a.cluster = ? AND a.repo = ? AND p.state = ? ORDER BY a.merged_at DESC, a.number DESC LIMIT ? + 0`,
		cluster, repo, string(holdfast.PullRequestMerged), limitOr100(limit))
	if err != nil {
		return nil, fmt.Errorf("list merged pull requests of %q: %w", cluster, err)
	}
	return numbers, nil
}
