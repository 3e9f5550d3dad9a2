package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/outputs"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/reconciler/record"
	"github.com/holdfast-dev/holdfast/report"
)

// Once does at most one action for the request; it may be called again at any time. A
// failed run is a result, and saved as such. An error means that something could not be
// observed or recorded, and is worth a retry.
func (l *Loop) Once(ctx context.Context, req holdfast.Request) error {
	_, err := l.Reconcile(ctx, req, nil)
	if errors.Is(err, errUnrecorded) {
		return nil // asked for before it was recorded
	}
	return err
}

// errUnrecorded: there is no record of the cluster or the pull request.
var errUnrecorded = errors.New("not on record")

// overtakenMost is how often what a person asks for is decided about again, as somebody else
// has decided meanwhile.
const overtakenMost = 5

// errOvertaken: somebody else has queued a run since the decision was begun.
var errOvertaken = errors.New("another decision was made in the meantime")

// Reconcile is Once for a person who asks, if there is an ask.
func (l *Loop) Reconcile(ctx context.Context, req holdfast.Request, ask *decision.Ask) (d decision.Decision, err error) {
	for range overtakenMost {
		d, err = l.decide(ctx, req, ask)
		if ask == nil || !errors.Is(err, errOvertaken) {
			break
		}
	}
	return d, err
}

func (l *Loop) decide(ctx context.Context, req holdfast.Request, ask *decision.Ask) (decision.Decision, error) {
	// One decision at a time about one thing: a person's command must not race with a
	// change in Git.
	unlock, ok := l.Deciding.TryLock(req)
	switch {
	case ok:
	case queue.IsSwift(ctx): // who holds it may wait for a code host
		return decision.Decision{}, &queue.WaitError{}
	default:
		unlock = l.Deciding.Lock(req)
	}
	defer unlock()
	newest, err := l.opts.Store.NewestRun(ctx, req) // before all else is read
	if err != nil {
		return decision.Decision{}, err
	}
	in, err := l.observer.observe(ctx, req, l.observer.asked)
	if errors.Is(err, holdfast.ErrNotFound) {
		return decision.Decision{}, fmt.Errorf("observe cluster %q: %w: %w", req.Cluster, errUnrecorded, err)
	} else if err != nil {
		return decision.Decision{}, fmt.Errorf("observe cluster %q: %w", req.Cluster, err)
	}
	in.Ask = ask
	d := decision.Decide(in)
	l.Decided(d.Action, d.Reason)
	l.opts.Logger.InfoContext(ctx, "decided", "cluster", req.Cluster, "pull_request", req.PullRequest.String(),
		"action", d.Action, "reason", d.Reason)
	if err := l.act(ctx, in, d, newest); err != nil {
		return d, fmt.Errorf("%s cluster %q: %w", d.Action, req.Cluster, err)
	}
	if d.After > 0 {
		l.Agenda.RequestAfter(req, d.After)
	}
	return d, nil
}

func (l *Loop) act(ctx context.Context, in decision.Input, d decision.Decision, newest string) error {
	for _, id := range d.Cancel {
		reason := d.Reason
		if d.Action == decision.ActionPlan || d.Action == decision.ActionApply || d.Action == decision.ActionCheck {
			reason = holdfast.ReasonSuperseded
		}
		if err := l.Records.Cancel(ctx, id, reason); err != nil {
			return err
		}
	}
	var err error
	switch d.Action {
	case decision.ActionPlan:
		err = l.queueRun(ctx, in, d, holdfast.RunPlan, newest)
	case decision.ActionApply:
		if revertsDrift(in, d) {
			if in.Cluster, d.Run, err = l.Drift.Reserve(ctx, in); err != nil {
				return err
			}
		}
		err = l.queueRun(ctx, in, d, writing(in), newest)
	case decision.ActionRecord:
		err = l.recordApplied(ctx, in, d)
	case decision.ActionCarry:
		err = l.carry(ctx, in, d)
	case decision.ActionDrift:
		err = l.Drift.Record(ctx, in)
	case decision.ActionCheck:
		err = l.Drift.CheckAgain(ctx, in, d)
	case decision.ActionNone, decision.ActionWait, decision.ActionRefuse:
	}
	if err != nil {
		return err
	}
	err = l.settle(ctx, in, d)
	if errors.Is(err, holdfast.ErrConflict) && d.Confirmed == "" {
		l.Agenda.Request(in.Request) // what was to be done is done: only the words are missing
	} else if err != nil {
		return err
	}
	l.Publisher.Decided(ctx, in)
	return nil
}

// revertsDrift reports whether an apply is of what was applied already, to revert
// the drift that the last check has found.
func revertsDrift(in decision.Input, d decision.Decision) bool {
	return in.Drift != nil && d.Shown == in.Drift.ID && !d.Resume
}

// writing is the kind of run that makes real what Git asks for.
func writing(in decision.Input) holdfast.RunKind {
	if in.Cluster.Desired.Removed {
		return holdfast.RunDestroy
	}
	return holdfast.RunApply
}

// queueRun stores the run that a decision asks for, with the root module that
// it will execute. Newest is the run that was the newest one when the decision was begun.
func (l *Loop) queueRun(ctx context.Context, in decision.Input, d decision.Decision, kind holdfast.RunKind, newest string) error {
	now, err := l.Records.Moment(ctx, in.Request.Cluster)
	if err != nil {
		return err
	}
	run := holdfast.Run{
		ID: cmp.Or(d.Run, holdfast.NewID("run", now)), Cluster: in.Request.Cluster, Kind: kind,
		Status: holdfast.RunQueued, Reason: d.Reason,
		CreatedAt: now,
		RunSpec: holdfast.RunSpec{
			PullRequest: in.Request.PullRequest,
			Reviews:     d.Reviews, Shown: d.Shown, Actor: d.Actor, RunMode: holdfast.RunMode{Resume: d.Resume, Background: d.Background},
		},
	}
	if d.Shown != "" && !d.Resume { // what is resumed has it among its reviews
		seen := decision.Newest(in.Runs)
		if revertsDrift(in, d) {
			seen = *in.Drift
		}
		run.Reviews = append([]holdfast.Review{decision.ReviewOf(seen)}, run.Reviews...)
	}
	if d.Reason == holdfast.ReasonAppliedSince {
		run.Detail = l.explainApply(ctx, in.LastApply)
	}
	var faults holdfast.Faults
	if revertsDrift(in, d) {
		record.FillApplied(in.Cluster, &run)
	} else {
		err = l.filler.fill(ctx, in, &run)
	}
	switch {
	case errors.As(err, &faults):
		// No attempt would make it better: the run ends with what is wrong.
		run.Status, run.Reason, run.FinishedAt = holdfast.RunErrored, holdfast.ReasonInvalid, now
		run.Failure = &holdfast.Failure{Step: "prepare", Summary: faults[0].Error(), Detail: faults.Error(), Cause: holdfast.ReasonInvalid}
	case errors.Is(err, holdfast.ErrNotFound) && in.PullRequest != nil:
		// The merge result is no longer in the mirror: it is made again.
		l.Agenda.Look(agenda.Look{Repo: in.PullRequest.Repo, Number: in.PullRequest.Number, Known: true})
		return err
	case err != nil:
		return err
	}
	run.TraceParent = l.Traces.Of(run.Repo, run.PullRequest.Number)
	entry := l.Records.Entry(d.Actor, "run.queue", run.ID, fmt.Sprintf("%s of %s: %s", kind, run.Cluster, d.Reason))
	if err := l.opts.Store.CreateRunAfter(ctx, run, newest, entry); errors.Is(err, holdfast.ErrConflict) {
		return fmt.Errorf("queue %s: %w: %w", kind, errOvertaken, err)
	} else if err != nil {
		return fmt.Errorf("queue %s: %w", kind, err)
	}
	if run.Status.Done() {
		l.Ended(ctx, run)
		return nil
	}
	if err := l.preempt(ctx, run); err != nil {
		return err
	}
	l.Dispatcher.Queued(ctx)
	if run.PullRequest.IsZero() && !l.Dispatcher.HeldUntil(run.Document.Provider).IsZero() {
		l.Agenda.Request(in.Request) // no agent gets it for a while: the record says why
	}
	return nil
}

// explainApply says whose apply made a plan stale.
func (l *Loop) explainApply(ctx context.Context, id string) string {
	apply, err := l.opts.Store.Run(ctx, id)
	if err != nil {
		return ""
	}
	return report.AppliedBy(apply)
}

// preempt makes room for a run: for an apply, plans of the same state step back,
// and are planned again after it. A drift check steps back for good, and
// stays due.
func (l *Loop) preempt(ctx context.Context, run holdfast.Run) error {
	others, err := l.opts.Store.Runs(ctx, holdfast.RunFilter{Statuses: record.Unended(), Cluster: run.Cluster})
	if err != nil {
		return fmt.Errorf("list runs of %q: %w", run.Cluster, err)
	}
	for _, other := range others {
		if stepsBack(other, run) {
			if err := l.Records.Cancel(ctx, other.ID, holdfast.ReasonPreempted); err != nil {
				return err
			}
		}
	}
	return nil
}

// stepsBack reports whether a run makes room for another one. What is executed does so
// for one that writes only, and a check that somebody has asked for waits behind a
// plan. A run that resolves a state ends soon.
func stepsBack(run, forOther holdfast.Run) bool {
	switch {
	case run.ID == forOther.ID || !run.Kind.OnlyPlans():
		return false
	case run.Status == holdfast.RunRunning:
		return forOther.Kind.Writes()
	default:
		return run.Kind == holdfast.RunDrift && (forOther.Kind.Writes() || run.Actor == "")
	}
}

// recordApplied makes the cluster's record say what a run has done.
func (l *Loop) recordApplied(ctx context.Context, in decision.Input, d decision.Decision) error {
	run := decision.Newest(in.Runs)
	if d.Reason == holdfast.ReasonDestroyed || d.Reason == holdfast.ReasonNeverApplied {
		return l.recordDestroyed(ctx, in, d, run)
	}
	rec := in.Cluster
	rec.Applied = decision.Relocated(decision.AppliedBy(run), rec.Desired)
	var err error
	if rec.Left, err = history.Left(ctx, l.opts.Store, in.Cluster, in.Runs); err != nil {
		return err
	}
	if !run.Kind.Writes() || decision.Repeats(in.Cluster, in.Runs, run) { // it has met no conditions
		rec.Applied.Document = decision.InForce(run.Document, in.Cluster.Applied, in.Last)
	}
	if err := l.Outputs.Read(ctx, &rec.Applied, run); err != nil {
		return err
	}
	rec.Waiting, rec.WaitingDetail, rec.WaitingFor = "", "", ""
	entry := l.Records.Entry(run.Actor, "cluster.applied", run.Cluster, fmt.Sprintf("%s at %s (%s)", run.ID, run.Revision.Short(), d.Reason))
	saved, err := l.Records.Record(ctx, in.Cluster, rec, in.Runs, entry)
	if err != nil {
		return fmt.Errorf("record run %s: %w", run.ID, err)
	}
	// There may be something newer to do, and pull requests to plan again.
	l.Agenda.Request(in.Request)
	// The record is written, and nothing asks again for what one of these fails to ask
	// for.
	return errors.Join(
		l.Agenda.RequestOpen(ctx, run.Cluster),
		l.Agenda.RequestRelated(ctx, in.Cluster, saved),
		l.Intake.Applied(ctx, saved),
	)
}

// recordDestroyed makes the record say that nothing is left of a cluster, except for what
// applies that died may have created: that was in no state which could be destroyed. If
// its document came back meanwhile it begins again.
func (l *Loop) recordDestroyed(ctx context.Context, in decision.Input, d decision.Decision, run holdfast.Run) error {
	rec := in.Cluster
	rec.Applied, rec.Drift, rec.Life = holdfast.Applied{}, holdfast.DriftState{}, max(rec.Life, run.ID)
	var err error
	if rec.Left, err = history.Left(ctx, l.opts.Store, in.Cluster, in.Runs); err != nil {
		return err
	}
	rec.Waiting, rec.WaitingDetail, rec.WaitingFor = "", "", ""
	if rec.Desired.Removed {
		rec.Deletion = &holdfast.Deletion{At: in.Now, Reason: d.Reason, Revision: rec.Desired.Revision}
		if d.Reason == holdfast.ReasonDestroyed {
			rec.Deletion.Run = run.ID
		}
	}
	entry := l.Records.Entry(run.Actor, "cluster.destroyed", rec.Name, fmt.Sprintf("%s (%s)", run.ID, d.Reason))
	saved, err := l.Records.Record(ctx, in.Cluster, rec, in.Runs, entry)
	if err != nil {
		return fmt.Errorf("record that %q is gone: %w", rec.Name, err)
	}
	l.Agenda.Request(in.Request)
	err = errors.Join(l.Agenda.RequestOpen(ctx, rec.Name), l.Agenda.RequestRelated(ctx, in.Cluster, saved))
	if saved.Deletion != nil {
		err = errors.Join(err, l.Intake.Freed(ctx, saved))
	}
	return err
}

// carry lets a pull request's plan stand for its present head and base.
func (l *Loop) carry(ctx context.Context, in decision.Input, d decision.Decision) error {
	run, err := l.opts.Store.Run(ctx, d.Run)
	if err != nil {
		return fmt.Errorf("read run %s: %w", d.Run, err)
	}
	run.Revision, run.Base = in.PullRequest.Head, in.PullRequest.Base
	if _, err := l.opts.Store.UpdateRun(ctx, run); err != nil {
		return fmt.Errorf("carry run %s: %w", d.Run, err)
	}
	l.Agenda.Request(in.Request)
	return nil
}

// settle records on the cluster why it waits, and where that leaves it in its
// life, if that changed.
func (l *Loop) settle(ctx context.Context, in decision.Input, d decision.Decision) error {
	if !in.Request.PullRequest.IsZero() || d.Action == decision.ActionRecord || d.Action == decision.ActionDrift || d.Action == decision.ActionRefuse {
		return nil
	}
	rec, runs := in.Cluster, in.Runs
	rec.Waiting, rec.WaitingDetail, rec.WaitingFor = "", "", ""
	if d.Action == decision.ActionWait {
		rec.Waiting, rec.WaitingDetail, rec.WaitingFor = d.Reason, d.Detail, rec.Desired.Revision
	}
	if d.Confirmed != "" {
		rec.Desired.Confirmed = d.Confirmed
	}
	if d.Reason == holdfast.ReasonMassDeletion && d.Action == decision.ActionWait {
		// It waits for its own confirmation, also when the others have gone.
		rec.Desired.RemovedWith = max(rec.Desired.RemovedWith, in.Removals)
	}
	asGitSays := d.Reason == holdfast.ReasonUpToDate || d.Reason == holdfast.ReasonDriftHeld || d.Reason == holdfast.ReasonRevertFailed
	if asGitSays && !rec.Desired.Removed {
		// Policies and labels hold from here on: what they are next to is applied. The
		// conditions of an apply that they take away hold until one has met them.
		rec.Applied.Document, rec.Applied.Revision = decision.InForce(rec.Desired.Document, rec.Applied), rec.Desired.Revision
	}
	if d.Action == decision.ActionPlan || d.Action == decision.ActionApply || len(d.Cancel) > 0 {
		var err error
		if runs, err = history.Branch(ctx, l.opts.Store, rec.Name); err != nil {
			return err
		}
	}
	var err error
	if rec.Left, err = history.Left(ctx, l.opts.Store, in.Cluster, in.Runs); err != nil {
		return err
	}
	if err := l.Outputs.ReadLeft(ctx, &rec.Applied, decision.Begun(in)); err != nil {
		return err
	}
	if err := l.Outputs.ReadAgain(ctx, rec.Name, &rec.Applied); err != nil {
		return err
	}
	if rec.Applied.OutputsUnread {
		l.Agenda.RequestAfter(in.Request, outputs.AgainAfter)
	}
	rec.Drift = decision.SettledDrift(in, d, runs)
	saved, err := l.Records.Save(ctx, in.Cluster, rec, runs)
	if err != nil {
		return err
	}
	if d.Reason == holdfast.ReasonSuspended { // the person who resumed just now could not see that this waits
		if scope, err := l.observer.suspension(ctx, saved); err != nil || scope == "" {
			l.Agenda.Request(in.Request)
		}
	}
	return l.Agenda.RequestRelated(ctx, in.Cluster, saved)
}
