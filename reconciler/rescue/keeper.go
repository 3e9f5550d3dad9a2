package rescue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Store is what the Keeper asks of the records; *datastore.Store is one.
type Store interface {
	Runs
	Tries
	Unsaved
	Audit(ctx context.Context, entry holdfast.AuditEntry) error
}

// Runs are the records of runs.
type Runs interface {
	Run(ctx context.Context, id string) (holdfast.Run, error)
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	CreateRun(ctx context.Context, run holdfast.Run, trail ...holdfast.AuditEntry) error
}

// Tries are the attempts of runs.
type Tries interface {
	// Attempts returns a run's attempts, the first one first.
	Attempts(ctx context.Context, run string) ([]holdfast.Attempt, error)
}

// Unsaved are the states that their backends do not have.
type Unsaved interface {
	Waiver
	// UnsavedStates returns those of a cluster, or all if it is empty.
	UnsavedStates(ctx context.Context, cluster string) ([]holdfast.UnsavedState, error)
	// OpenUnsaved is an ErrNotFound if what was rescued has reached nobody.
	OpenUnsaved(ctx context.Context, u holdfast.UnsavedState) (io.ReadCloser, error)
	// PushUnsaved queues run, which is to push u; ErrConflict if u is not as it was
	// read.
	PushUnsaved(ctx context.Context, u holdfast.UnsavedState, run holdfast.Run) error
}

// Waiver gives up an unsaved state.
type Waiver interface {
	// WaiveUnsaved gives u up; ErrConflict if it is not as it was read.
	WaiveUnsaved(ctx context.Context, u holdfast.UnsavedState, entry holdfast.AuditEntry) error
	// ReplaceUnsaved puts data in place of u.
	ReplaceUnsaved(ctx context.Context, u holdfast.UnsavedState, by string, data []byte) (holdfast.UnsavedState, error)
}

// Fleet is who hands runs out and looks at clusters.
type Fleet interface {
	// Queued tells agents that there is work.
	Queued(ctx context.Context)
	// Look asks for another look at a cluster, and at the pull requests that touch
	// it.
	Look(ctx context.Context, cluster string)
}

// Options are what a Keeper needs.
type Options struct {
	Store  Store
	Fleet  Fleet
	Delay  time.Duration // before a push that failed for a transient cause is tried again, doubling; zero means 10 s
	Logger *slog.Logger
	Now    func() time.Time
}

// maxDelay bounds the pause between two pushes of a state.
const maxDelay = 10 * time.Minute

// Keeper queues the runs that resolve states. It is safe for concurrent use, also by
// several replicas.
type Keeper struct{ opts Options }

// New returns a Keeper.
func New(opts Options) *Keeper {
	if opts.Delay <= 0 {
		opts.Delay = 10 * time.Second
	}
	return &Keeper{opts: opts}
}

// Standing returns the unsaved state of a cluster, with what becomes of it; nil if
// there is none.
func (k *Keeper) Standing(ctx context.Context, cluster string) (*decision.Unsaved, error) {
	list, err := k.opts.Store.UnsavedStates(ctx, cluster)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	u := list[0]
	if u.Job == "" {
		return &decision.Unsaved{State: u, Detail: notSaved(u)}, nil
	}
	job, err := k.pushOf(ctx, u)
	if err != nil {
		return nil, err
	}
	detail := notSaved(u) + "; "
	switch {
	case !job.Status.Done() && job.Failure == nil:
		detail += "run " + u.Job + " pushes it"
	case !job.Status.Done():
		detail += fmt.Sprintf("run %s pushes it, and is retried: %s", u.Job, job.Failure.Summary)
	case job.Status == holdfast.RunCanceled:
		detail += "its push was canceled"
	case job.Failure != nil && k.again(job):
		detail += fmt.Sprintf("pushing it is retried: %s", job.Failure.Summary)
	case job.Failure != nil:
		detail += fmt.Sprintf("pushing it failed: %s", job.Failure.Summary)
	default:
		detail += "the backend did not accept it"
	}
	return &decision.Unsaved{State: u, Detail: detail}, nil
}

// notSaved says whose state was not saved, and how many others were not.
func notSaved(u holdfast.UnsavedState) string {
	text := fmt.Sprintf("run %s could not save its state", u.Run)
	if u.Earlier > 0 {
		text += fmt.Sprintf(": this is the newest of %d that were refused", u.Earlier+1)
	}
	return text
}

// Pass queues the pushes that are due: one at once for each state that could not be
// saved, and another when that failed for a transient cause. It is to be called every
// few seconds.
func (k *Keeper) Pass(ctx context.Context) error {
	list, err := k.opts.Store.UnsavedStates(ctx, "")
	if err != nil {
		return err
	}
	var errs []error
	for _, u := range list {
		due, err := k.due(ctx, u)
		if err == nil && due {
			_, err = k.queue(ctx, u, "")
		}
		if err != nil && !errors.Is(err, holdfast.ErrConflict) {
			errs = append(errs, fmt.Errorf("push the state of %q: %w", u.Cluster, err))
		}
	}
	return errors.Join(errs...)
}

// due reports whether a state is to be pushed now automatically.
func (k *Keeper) due(ctx context.Context, u holdfast.UnsavedState) (bool, error) {
	if u.Job != "" {
		job, err := k.pushOf(ctx, u)
		if err != nil {
			return false, err
		}
		if !job.Status.Done() || !k.again(job) {
			return false, nil
		}
		if decision.Left(k.opts.Now(), job.FinishedAt, k.pause(job, u.Jobs)) > 0 {
			return false, nil
		}
	}
	if from, err := k.opts.Store.Run(ctx, u.Run); err == nil && from.Status == holdfast.RunRunning {
		return false, nil // what it saves until it ends is newer
	} else if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("read run %s: %w", u.Run, err)
	}
	file, err := k.opts.Store.OpenUnsaved(ctx, u)
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil // it is on the agent's disk, if anywhere: a person has to act
	} else if err != nil {
		return false, fmt.Errorf("open what was rescued: %w", err)
	}
	return true, file.Close()
}

// pushOf returns the run that pushes a state, or that did so last; the zero Run if
// there is none, or if it is no longer kept.
func (k *Keeper) pushOf(ctx context.Context, u holdfast.UnsavedState) (holdfast.Run, error) {
	if u.Job == "" {
		return holdfast.Run{}, nil
	}
	job, err := k.opts.Store.Run(ctx, u.Job)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return job, fmt.Errorf("read run %s: %w", u.Job, err)
	}
	return job, nil
}

// again reports whether a push that has ended may succeed the next time.
func (k *Keeper) again(job holdfast.Run) bool {
	return job.Status == holdfast.RunInterrupted || decision.Transient(job) || mendedElsewhere(job)
}

// mendedElsewhere reports whether what ended a push is a matter of access, which
// somebody may correct at the backend or in holdfast.yaml without our knowing. A
// backend that has another state refuses this one each time.
func mendedElsewhere(job holdfast.Run) bool {
	if job.Status != holdfast.RunErrored || job.Failure == nil {
		return false
	}
	switch job.Failure.Cause {
	case holdfast.CauseStateBackend, holdfast.CauseCredentials, holdfast.CausePermission, holdfast.CauseNetwork,
		holdfast.CauseNotFound, holdfast.CauseQuota, holdfast.CauseSecretUnavailable, holdfast.CauseAssignment, holdfast.CauseNoEngine:
		return true
	default:
		return false
	}
}

// pause is how long after the end of a push the next one is due: of u that many have
// ended.
func (k *Keeper) pause(job holdfast.Run, jobs int) time.Duration {
	if !decision.Transient(job) && mendedElsewhere(job) {
		return maxDelay
	}
	return min(k.opts.Delay<<min(jobs, 10), maxDelay)
}

// queue stores a run that pushes u.
func (k *Keeper) queue(ctx context.Context, u holdfast.UnsavedState, actor string) (holdfast.Run, error) {
	from, err := k.opts.Store.Run(ctx, u.Run)
	if err != nil {
		return from, fmt.Errorf("read run %s: %w", u.Run, err)
	}
	run, err := k.jobOf(from, holdfast.RunState, actor)
	if err != nil {
		return run, err
	}
	run.State.Action, run.State.Unsaved, run.StateLocation = holdfast.StatePush, u, u.Location
	if err := k.opts.Store.PushUnsaved(ctx, u, run); err != nil {
		return run, fmt.Errorf("queue its push: %w", err)
	}
	k.audit(ctx, actor, "state.push", u.Cluster, fmt.Sprintf("%s pushes what %s could not save", run.ID, u.Run))
	k.opts.Logger.WarnContext(ctx, "push of an unsaved state was queued", "cluster", u.Cluster, "run", run.ID, "of", u.Run)
	k.opts.Fleet.Queued(ctx)
	k.opts.Fleet.Look(ctx, u.Cluster)
	return run, nil
}

// jobOf is a run that resolves a state, with the root module, the project's credentials
// and the engine of another run. A run of kind RunState has those for applies, with which
// no code is executed that is in a pull request only.
func (k *Keeper) jobOf(from holdfast.Run, kind holdfast.RunKind, actor string) (holdfast.Run, error) {
	if kind.Writes() && !from.PullRequest.IsZero() {
		return holdfast.Run{}, &holdfast.RefusedError{Text: fmt.Sprintf("run %s is of %s, whose code is not on the tracked branch", from.ID, from.PullRequest)}
	}
	now := k.opts.Now()
	return holdfast.Run{
		ID: holdfast.NewID("run", now), Cluster: from.Cluster, Kind: kind, Status: holdfast.RunQueued,
		Reason:    holdfast.ReasonStateUnsaved,
		CreatedAt: now,
		RunSpec: holdfast.RunSpec{
			PullRequest: from.PullRequest, Repo: from.Repo, Revision: from.Revision, Base: from.Base,
			SourceDigest: from.SourceDigest, Bundle: from.Bundle, Dir: from.Dir, Document: from.Document,
			StateLocation: from.StateLocation, Template: from.Template, Actor: actor,
			State: &holdfast.StateJob{From: from.ID, EngineName: from.EngineName, EngineVersion: from.EngineVersion},
		},
	}, nil
}

func (k *Keeper) audit(ctx context.Context, actor, action, object, detail string) {
	entry := holdfast.NewAuditEntry(k.opts.Now(), actor, action, object, detail)
	if err := k.opts.Store.Audit(ctx, entry); err != nil {
		k.opts.Logger.ErrorContext(ctx, "audit entry was not stored", "action", action, "object", object, "err", err)
	}
}
