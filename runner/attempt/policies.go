// What policies say of the plan.

package attempt

import (
	"context"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/verdict"
)

// evaluatePolicies evaluates the policies of the assignment over the plan as the engine has
// printed it, with all that is secret in it.
func (t *planning) evaluatePolicies(ctx context.Context, printed io.ReadSeeker) error {
	given := t.a.Policies
	if given == nil || t.exec.opts.Isolation.Policies == nil {
		return nil
	}
	if _, err := printed.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("show: read the plan's JSON again: %w", err)
	}
	told := *given
	told.Context.Engine.Name, told.Context.Engine.Version = t.result.EngineName, t.result.EngineVersion
	report, err := t.exec.opts.Isolation.Policies.Evaluate(ctx, told, folders.Seeking(ctx, printed))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &failure.Error{Cause: holdfast.CauseUnreadablePlan, Err: fmt.Errorf("evaluate policies: %w", err)}
	}
	report = verdict.Clean(report, t.Redact.String)
	t.result.Policies = &report
	t.Say("policies: %d evaluated; %d results deny, %d warn; %d could not be evaluated", report.Evaluated,
		report.Count(holdfast.PolicyDeny), report.Count(holdfast.PolicyWarn), len(report.Faults)+len(report.Undecided))
	return nil
}

// heldByPolicies holds the attempt if policies deny its plan, or judge it otherwise than a
// reviewed one, and reports whether they do.
func (t *applying) heldByPolicies(review holdfast.Review) bool {
	if t.a.Policies == nil {
		return false
	}
	if r := t.result.Policies; r != nil && r.DeniesBut(t.a.Policies.Waived) {
		t.hold(holdfast.ReasonPolicyDenied, "policies deny the plan: "+verdict.Said(*r))
		return true
	}
	changed := verdict.Changed(t.result.Policies, review, !review.PlanDigest.Equal(t.digest))
	if changed != "" {
		t.hold(holdfast.ReasonPolicyChanged, changed)
	}
	return changed != ""
}
