// How an attempt ends: failures become a result, and the workspace goes.

package attempt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/recorded"
)

// fail makes err the attempt's result.
func (t *attempt) fail(ctx context.Context, err error) {
	var known *failure.Error
	if !errors.As(err, &known) {
		known = &failure.Error{Cause: holdfast.CauseWorkspaceFailed, Transient: true, Err: err}
	}
	unsaved := known.Cause == holdfast.CauseStateUnsaved // counts, whatever else ended the attempt
	if failure.LocalFault(err) && known.Exit == nil {
		known.Cause, known.Transient = holdfast.CauseWorkspaceFailed, true
	}
	if failure.DiskFull(err) {
		known.Cause, known.Transient, known.Hint = holdfast.CauseDiskFull, true, failure.HintDisk
	}
	shown := &holdfast.Failure{
		Step: t.Step(), Summary: known.Err.Error(), Detail: known.Detail, Hint: known.Hint,
		Cause: known.Cause, Transient: known.Transient, Diagnostics: known.Diagnostics, Address: known.Address,
		Crashed: known.Exit != nil && known.Exit.Crashed(),
	}
	t.result.Status, t.result.Reason, t.result.Steps = holdfast.RunErrored, known.Cause, t.Steps()
	if known.Killed || known.NotBegun {
		t.result.Status = holdfast.RunInterrupted
	}
	if ctx.Err() != nil {
		reason, detail := failure.StopReason(ctx)
		t.result.Status, t.result.Reason, t.result.Detail = failure.StopStatus(reason), reason, detail
		shown.Cause, shown.Transient = reason, reason == holdfast.ReasonLeaseLost || reason == holdfast.ReasonAgentKilled
		if reason == holdfast.ReasonTimeout {
			shown.Summary = fmt.Sprintf("%s: the deadline passed, after %s", t.Step(), t.Lasted().Round(time.Second))
			shown.Hint = "look at the end of its log: a state store, registry or provider that does not answer ends here, too; " +
				"raise runs.timeout in holdfast.yaml if runs need more time"
		}
	}
	if unsaved {
		shown.Cause, shown.Transient, shown.Hint = holdfast.CauseStateUnsaved, false, hintUnsaved
	}
	if t.result.Applying && t.progress != nil {
		begun := t.progress.Addresses()
		shown.Unrecorded = t.unrecorded(ctx, known, begun)
		if len(shown.Unrecorded) == 0 && shown.Address == "" && len(begun) == 1 {
			shown.Address = begun[0] // engines do not name what they could not destroy
		}
		shown.Completed = t.progress.Completed()
		shown.Remaining = t.remaining()
	}
	t.result.Failure = t.clean(shown)
	t.result.Detail = t.Redact.String(t.result.Detail)
	if t.result.Detail == "" {
		t.result.Detail = t.result.Failure.Summary
	}
	t.Say("%s (%s)", shown.Summary, t.result.Reason)
}

// unrecorded returns what an apply that failed may have created without its being in the
// state.
func (t *attempt) unrecorded(ctx context.Context, known *failure.Error, begun []string) []string {
	return recorded.End{
		Failure: known, Interrupted: t.result.Status == holdfast.RunInterrupted, Stopped: ctx.Err() != nil,
		Document: t.document, Begun: begun, Completed: t.progress.Completed(), Saved: t.saved,
	}.Unrecorded()
}

// clean takes secrets and folders of this machine out of what people will read.
func (t *attempt) clean(f *holdfast.Failure) *holdfast.Failure {
	text := func(s string) string {
		for _, dir := range []string{t.root, t.bundle, t.work, t.dir} {
			if dir != "" {
				s = strings.ReplaceAll(s, t.seen(dir)+"/", "")
				s = strings.ReplaceAll(s, dir+"/", "")
			}
		}
		return t.Redact.String(s)
	}
	f.Summary, f.Detail, f.Hint, f.Address = text(f.Summary), text(f.Detail), text(f.Hint), text(f.Address)
	for i := range f.Diagnostics {
		d := &f.Diagnostics[i]
		d.Summary, d.Detail, d.File, d.Address = text(d.Summary), text(d.Detail), text(d.File), text(d.Address)
		d.Snippet, d.File = text(d.Snippet), t.inRepository(d.File)
	}
	for _, list := range [][]string{f.Unrecorded, f.Completed, f.Remaining} {
		for i := range list {
			list[i] = text(list[i])
		}
	}
	return f
}

// finish returns the result.
func (t *attempt) finish() protocol.Result {
	t.result.Steps = t.End()
	if t.result.Status == "" {
		t.result.Status, t.result.Reason = holdfast.RunErrored, holdfast.CauseInternal
	}
	t.logger.Info("attempt ended", "action", string(t.result.Status), "reason", t.result.Reason)
	return t.result
}

// close flushes the log and removes the workspace, unless it holds a state that
// is nowhere else.
func (t *attempt) close() {
	t.tokens.Close(context.Background())
	if masked, err := t.Close(t.stateKnown()); err != nil {
		t.logger.Error("the log was not searched for secrets that became known late", "err", err)
	} else if masked > 0 {
		t.logger.Warn("secrets were logged before they were known, and are taken out of the log", "places", masked)
	}
	t.prepared.Release()
	if t.scratch != "" {
		_ = folders.RemoveAll(t.scratch)
	}
	if t.dir == "" {
		return
	}
	defer t.place.Release()
	if t.keep {
		aside, err := t.exec.spaces.SetAside(t.dir)
		t.logger.Error("workspace kept: it holds an unsaved state", "err", errors.Join(errors.New("keep "+aside), err))
		return
	}
	if err := t.exec.spaces.Discard(t.dir); err != nil {
		t.logger.Warn("workspace not removed", "err", err)
	}
}
