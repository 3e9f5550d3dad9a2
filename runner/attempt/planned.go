// The step show: the plan is read, kept, and compared with what was reviewed.

package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/recorded"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

// readPlan asks the engine what the plan file says, and keeps what the plan would do as
// a document. The engine's JSON goes through our own file, in no folder that the engine
// could reach it in.
func (t *planning) readPlan(ctx context.Context, printed string) error {
	t.Begin(stepShow)
	spool := journal.NewSpool(t.exec.opts.WorkDir, t.exec.opts.Limits.Plan)
	defer spool.Close()
	if err := t.start(ctx, spool, true, "show", "-json", "-no-color", t.seen(t.planFile)); err != nil {
		return err
	}
	written, err := spool.Rewind()
	if errors.Is(err, journal.ErrTooLarge) {
		return &failure.Error{
			Cause: holdfast.CauseUnreadablePlan, Err: fmt.Errorf("show: the plan's JSON has %w", err),
			Hint: "keep large values out of resources and outputs, or divide the root module into several clusters",
		}
	} else if err != nil {
		return fmt.Errorf("show: keep the plan's JSON: %w", err) // our disk, and not the plan
	}
	var unread error
	found, err := plan.Read(folders.Seeking(ctx, written), plan.Options{
		Key: t.a.FingerprintKey, Redactor: t.Redact, Text: journal.PlanText(printed), Secrets: t.secrets.Prints, Compared: &t.compared,
		Code: func(module []string) (plan.ModuleCode, bool) {
			code, known, err := t.moduleCode(ctx, module)
			unread = cmp.Or(unread, err)
			return code, known
		},
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if unread != nil {
		return unread
	}
	if errors.Is(err, plan.ErrUntrusted) {
		return &failure.Error{Cause: holdfast.CauseUntrustedPlan, Err: fmt.Errorf("plan: %w", err)}
	} else if err != nil {
		return &failure.Error{Cause: holdfast.CauseUnreadablePlan, Err: fmt.Errorf("read plan: %w", err)}
	}
	t.Log.Release(true)
	t.document, t.digest = found.Document, found.Document.Digest()
	t.counts = found.Document.Counts()
	if err := t.putDocument(ctx); err != nil {
		return err
	}
	t.result.PlanDigest = t.digest
	if err := t.putJSON(ctx, protocol.ArtefactInfo, found.Info); err != nil {
		return err
	}
	if err := t.evaluatePolicies(ctx, written); err != nil {
		return err
	}
	return t.keepPlanned(ctx, found)
}

// putDocument keeps the plan document, as it is encoded.
func (t *planning) putDocument(ctx context.Context) error {
	r, w := io.Pipe()
	encoded := make(chan struct{})
	go func() {
		defer close(encoded)
		_ = w.CloseWithError(t.document.Encode(w))
	}()
	err := t.put(ctx, protocol.ArtefactDocument, r)
	_ = r.Close()
	<-encoded
	return err
}

// applyReviewed applies the plan if it is what was reviewed.
func (t *applying) applyReviewed(ctx context.Context) error {
	again := recorded.CreatedAgain(t.document, t.a.AssignedResume, t.Redact.String)
	for _, review := range t.a.Reviews {
		if !review.InputDigest.Equal(t.result.InputDigest) {
			continue
		}
		if review.PlanDigest.Equal(t.digest) || t.a.Resume && t.remains(ctx, review) {
			if t.heldByPolicies(review) {
				return nil
			}
			if len(again) > 0 {
				t.hold(holdfast.ReasonMayExist, recorded.MayExist(again))
				return nil
			}
			t.result.Matched = review.Run
			return t.apply(ctx)
		}
	}
	changed := t.whatChanged(ctx)
	if len(again) > 0 { // the graver of two reasons to look at the plan
		t.hold(holdfast.ReasonMayExist, recorded.MayExist(again)+"; the plan differs from the reviewed one, too: "+changed)
		return nil
	}
	t.hold(holdfast.ReasonPlanChanged, changed)
	return nil
}

// hold ends the attempt with its plan, which a person decides about.
func (t *applying) hold(reason holdfast.Reason, detail string) {
	t.result.Status, t.result.Reason, t.result.Detail = holdfast.RunPlanned, reason, t.Redact.String(detail)
	t.Say("nothing was applied: %s", t.result.Detail)
}

// remains reports whether the plan is what remains of a reviewed one.
func (t *applying) remains(ctx context.Context, review holdfast.Review) bool {
	document, err := t.reviewedDocument(ctx, review)
	if err != nil {
		t.Say("the reviewed plan of run %s could not be read: %v", review.Run, err)
		return false
	}
	return reviewed.Remains(t.document, document)
}

// reviewedDocument returns the document that was reviewed. It is an error if it
// is not there, or is another one.
func (t *applying) reviewedDocument(ctx context.Context, review holdfast.Review) (plandoc.Document, error) {
	r, err := t.session.StoredArtefact(ctx, review.Run, protocol.ArtefactDocument)
	if err != nil {
		return plandoc.Document{}, err
	}
	defer r.Close()
	document, err := plandoc.Decode(io.LimitReader(r, t.exec.opts.Limits.Plan))
	if err == nil && !document.Digest().Equal(review.PlanDigest) {
		err = fmt.Errorf("its digest is not %s", review.PlanDigest.Short())
	}
	return document, err
}
