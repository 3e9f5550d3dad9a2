package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast"
)

// maxPlanDocument bounds the document that is read of a run, and what is next to
// it, in bytes.
const maxPlanDocument = 512 << 20

// causePlanDocument is why an attempt ends errored of which the plan is not what
// it says.
const causePlanDocument = holdfast.CauseUnreadablePlan

// recordPlan derives what an attempt's plan would do from the document that it has
// left, and keeps that for people. Nothing that an agent says of its plan counts
// next to the document: it has to be the one that the result names, and how the
// attempt ended has to agree with it. A result that does not becomes an error.
func (r results) recordPlan(
	ctx context.Context, ref holdfast.AttemptRef, result holdfast.Result,
) (holdfast.Plan, holdfast.Result, error) {
	if result.PlanDigest == "" && !result.Status.Good() {
		return holdfast.Plan{}, result, nil // it did not come to one
	}
	plan, err := r.readDocument(ctx, ref.Run, result.PlanDigest)
	var bad *badPlanError
	switch {
	case errors.As(err, &bad):
		return holdfast.Plan{}, spoiled(result, bad), nil
	case err != nil:
		return plan, result, err
	}
	if bad := disagrees(result.Status, plan.Counts); bad != nil {
		return holdfast.Plan{}, spoiled(result, bad), nil
	}
	data, err := json.Marshal(plan)
	if err != nil {
		return plan, result, fmt.Errorf("encode plan of run %s: %w", ref.Run, err)
	}
	if err := r.store.PutArtefact(ctx, ref, holdfast.ArtefactPlan, bytes.NewReader(data)); err != nil {
		return plan, result, fmt.Errorf("keep plan of run %s: %w", ref.Run, err)
	}
	return plan, result, nil
}

// badPlanError says what is wrong with what an attempt has left.
type badPlanError struct{ err error }

func (e *badPlanError) Error() string { return e.err.Error() }

func (e *badPlanError) Unwrap() error { return e.err }

// readDocument reads the document of a run, and what is next to it.
func (r results) readDocument(ctx context.Context, run string, want holdfast.Digest) (holdfast.Plan, error) {
	file, err := r.store.Artefact(ctx, run, holdfast.ArtefactDocument)
	if errors.Is(err, holdfast.ErrNotFound) {
		return holdfast.Plan{}, &badPlanError{errors.New("the agent left no plan document: is it older than the server?")}
	} else if err != nil {
		return holdfast.Plan{}, err
	}
	defer file.Close()
	document, err := holdfast.DecodePlanDocument(io.LimitReader(file, maxPlanDocument))
	if err != nil {
		return holdfast.Plan{}, &badPlanError{err}
	}
	var info holdfast.PlanInfo
	about, err := r.store.Artefact(ctx, run, holdfast.ArtefactInfo)
	if err == nil {
		defer about.Close()
		err = json.NewDecoder(io.LimitReader(about, maxPlanDocument)).Decode(&info)
	}
	if err != nil {
		return holdfast.Plan{}, &badPlanError{errors.New("what goes with its plan cannot be read")}
	}
	if err := info.Validate(); err != nil {
		return holdfast.Plan{}, &badPlanError{err}
	}
	plan := document.Plan(info)
	if !plan.Digest.Equal(want) {
		return holdfast.Plan{}, &badPlanError{fmt.Errorf("the document is %s, the result is of %s", plan.Digest.Short(), want.Short())}
	}
	return plan, nil
}

// disagrees says how an attempt cannot have ended with a plan of these counts;
// nil if it can.
func disagrees(status holdfast.RunStatus, counts holdfast.Counts) *badPlanError {
	switch {
	case status == holdfast.RunNoChanges && !counts.Zero():
		return &badPlanError{errors.New("it ended without changes, and its plan has some")}
	case (status == holdfast.RunPlanned || status == holdfast.RunApplied) && counts.Zero():
		return &badPlanError{fmt.Errorf("it ended %s, and its plan has no changes", status)}
	default:
		return nil
	}
}

// spoiled is a result whose plan cannot be believed.
func spoiled(result holdfast.Result, bad *badPlanError) holdfast.Result {
	result.Status, result.Reason, result.Detail = holdfast.RunErrored, causePlanDocument, ""
	result.Matched = ""
	result.Failure = &holdfast.Failure{
		Step: "plan", Cause: causePlanDocument, Summary: "the plan cannot be used: " + bad.Error(),
	}
	return result
}
