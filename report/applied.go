package report

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// AppliedBy says for people whose apply a run was.
func AppliedBy(apply holdfast.Run) string {
	for _, review := range apply.Reviews {
		if !review.PullRequest.IsZero() {
			return fmt.Sprintf("%s has been applied by #%d since", apply.Cluster, review.PullRequest.Number)
		}
	}
	return apply.Cluster + " has been applied since"
}
