package dispatch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/plandoctest"
	"github.com/holdfast-dev/holdfast/protocol"
)

// leavingRuns are running runs, and what their attempts have left.
type leavingRuns struct {
	*runningRuns
	files artefacts
}

func (s leavingRuns) Artefact(ctx context.Context, run, name string) (io.ReadCloser, error) {
	return s.files.Artefact(ctx, run, name)
}

func (s leavingRuns) PutArtefact(ctx context.Context, ref holdfast.AttemptRef, name string, data io.Reader) error {
	return s.files.PutArtefact(ctx, ref, name, data)
}

// TestPlanAfterAPowerCut: a plan of which the server may have lost something is made again,
// whether the document is among it or not; what failed anyway, and what writes, ends as it did.
func TestPlanAfterAPowerCut(t *testing.T) {
	t.Parallel()
	document, info, digest, err := plandoctest.Artefacts(holdfast.Plan{Counts: holdfast.Counts{Update: 1}})
	if err != nil {
		t.Fatal(err)
	}
	failed := &holdfast.Failure{Step: "show", Summary: "it failed", Cause: holdfast.CauseEngineFailed}
	planned := protocol.Result{Status: holdfast.RunPlanned, PlanDigest: digest}
	broken := protocol.Result{Status: holdfast.RunErrored, Reason: holdfast.CauseEngineFailed, PlanDigest: digest, Failure: failed}
	for name, test := range map[string]struct {
		kind    holdfast.RunKind
		result  protocol.Result
		left    bool // the document is there
		lacking bool
		status  holdfast.RunStatus
		why     holdfast.Reason
	}{
		"without its document":         {holdfast.RunPlan, planned, false, true, holdfast.RunRetrying, holdfast.CauseArtefactUnavailable},
		"with its document":            {holdfast.RunPlan, planned, true, true, holdfast.RunRetrying, holdfast.CauseArtefactUnavailable},
		"a check":                      {holdfast.RunDrift, planned, true, true, holdfast.RunRetrying, holdfast.CauseArtefactUnavailable},
		"which has failed":             {holdfast.RunPlan, broken, false, true, holdfast.RunErrored, holdfast.CauseEngineFailed},
		"an apply":                     {holdfast.RunApply, planned, true, true, holdfast.RunPlanned, ""},
		"without a power cut":          {holdfast.RunPlan, planned, true, false, holdfast.RunPlanned, ""},
		"whose agent has left nothing": {holdfast.RunPlan, planned, false, false, holdfast.RunErrored, holdfast.CauseUnreadablePlan},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := leavingRuns{newRunningRuns(1), artefacts{files: map[string][]byte{}}}
			store.lacking = test.lacking
			run := store.runs["run-0"]
			run.Kind = test.kind
			store.runs["run-0"] = run
			if test.left {
				store.files.files[protocol.ArtefactDocument], store.files.files[protocol.ArtefactInfo] = bytes.Clone(document), bytes.Clone(info)
			}
			d := dispatcherWith(t, store, Limits{Runs: 10, Drift: 10, Lease: testLease, Retries: 1})
			if err := d.Finish(t.Context(), run.Ref(), test.result); err != nil {
				t.Fatal(err)
			}
			got := store.runs["run-0"]
			if got.Status != test.status || got.Reason != test.why {
				t.Fatalf("it is %s, %q: %+v", got.Status, got.Reason, got.Failure)
			}
			if test.status == holdfast.RunErrored && test.result.Failure != nil && got.Failure.Summary != failed.Summary {
				t.Errorf("its failure is %+v", got.Failure)
			}
		})
	}
}

// TestPlanThatStaysLost: it is not made again without end.
func TestPlanThatStaysLost(t *testing.T) {
	t.Parallel()
	store := newRunningRuns(1)
	store.lacking = true
	d := dispatcherWith(t, store, Limits{Runs: 10, Drift: 10, Lease: testLease, Retries: -1})
	result := protocol.Result{Status: holdfast.RunPlanned, PlanDigest: "sha256:p"}
	if err := d.Finish(t.Context(), store.runs["run-0"].Ref(), result); err != nil && !errors.Is(err, holdfast.ErrFenced) {
		t.Fatal(err)
	}
	if run := store.runs["run-0"]; run.Status != holdfast.RunErrored || run.Failure == nil || run.Failure.Cause != holdfast.CauseArtefactUnavailable {
		t.Errorf("it is %s: %+v", run.Status, run.Failure)
	}
}
