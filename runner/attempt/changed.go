// How what is planned differs from what was reviewed, in words.

package attempt

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

const (
	// askReview is how long the agent waits for the artefacts of a reviewed run
	// that it needs for words only.
	askReview = 20 * time.Second
)

// destroys reports whether the attempt destroys everything, or plans that.
func (t *attempt) destroys() bool {
	return t.a.Kind == holdfast.RunDestroy || t.a.Destroy && t.a.Kind == holdfast.RunPlan
}

// whatChanged says in words how the plan differs from what was reviewed.
func (t *applying) whatChanged(ctx context.Context) string {
	if len(t.a.Reviews) == 0 {
		return "no plan of this was reviewed"
	}
	ctx, cancel := context.WithTimeout(ctx, askReview)
	defer cancel()
	review := t.a.Reviews[len(t.a.Reviews)-1]
	if review.PlanDigest == "" {
		return fmt.Sprintf("the plan of run %s has no plan document (recorded by an earlier version) and cannot be compared", review.Run)
	}
	same := review.InputDigest.Equal(t.result.InputDigest)
	var input plan.Input
	known := (!same || len(t.secrets.Values) > 0) && t.readStored(ctx, review.Run, protocol.ArtefactInput, &input) == nil
	if !same {
		if words := t.input.ChangesSince(input); known && len(words) > 0 {
			return fmt.Sprintf("the input is not what was reviewed in run %s: %s", review.Run, failure.Some(words))
		}
		return fmt.Sprintf("the input is not what was reviewed: the code, its modules, the provider versions or the engine differ from those of run %s", review.Run)
	}
	words := t.input.SecretChanges(input)
	if document, err := t.reviewedDocument(ctx, review); err == nil {
		words = append(words, reviewed.Differences(t.document, document)...)
	}
	if len(words) > 0 {
		return fmt.Sprintf("the plan differs from the reviewed one of run %s: %s", review.Run, failure.Some(words))
	}
	return fmt.Sprintf("the plan would do something else than the reviewed one of run %s: the infrastructure or what the plan reads has changed since", review.Run)
}
