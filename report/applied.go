package report

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// AppliedBy says for people whose apply a run was.
func AppliedBy(apply holdfast.Run) string {
	for _, review := range apply.Reviews {
		if !review.PullRequest.IsZero() {
			return fmt.Sprintf("%s was applied by #%d meanwhile", apply.Cluster, review.PullRequest.Number)
		}
	}
	return apply.Cluster + " was applied meanwhile"
}
