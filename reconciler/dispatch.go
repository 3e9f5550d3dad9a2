package reconciler

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// Claim hands a run to an agent. It waits up to req.Wait for one and is
// ErrNotFound if there is none by then.
func (r *Reconciler) Claim(ctx context.Context, req holdfast.ClaimRequest) (holdfast.Assignment, error) {
	if err := r.reap(ctx, req); err != nil {
		return holdfast.Assignment{}, err
	}
	deadline := time.NewTimer(min(req.Wait, 30*time.Second))
	defer deadline.Stop()
	for {
		woken := r.work.Wait()
		a, err := r.claim(ctx, req.Agent, req.Kinds)
		if !errors.Is(err, holdfast.ErrNotFound) {
			return a, err
		}
		select {
		case <-woken:
		case <-time.After(time.Second): // a backoff may have ended, another replica may have queued
		case <-deadline.C:
			return a, err
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

// Drain stops the handing out of runs, for a shutdown.
func (r *Reconciler) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
}

// claimableLooked is how many claimable runs are tried, each of another state:
// more than can be locked by others for a moment.
const claimableLooked = 16

// claim tries the claimable runs in their order. The lock is taken before the
// record, so that a run that was claimed always had the lock.
func (r *Reconciler) claim(ctx context.Context, agent string, kinds []holdfast.RunKind) (holdfast.Assignment, error) {
	r.mu.Lock()
	draining := r.draining
	r.mu.Unlock()
	if draining {
		return holdfast.Assignment{}, holdfast.ErrNotFound
	}
	filter, some, err := r.claimFilter(ctx, kinds)
	if err != nil || !some {
		return holdfast.Assignment{}, cmp.Or(err, holdfast.ErrNotFound)
	}
	runs, err := r.opts.Store.Claimable(ctx, filter)
	if err != nil {
		return holdfast.Assignment{}, fmt.Errorf("list claimable runs: %w", err)
	}
	for _, run := range runs {
		claimed, err := r.claimOne(ctx, run, agent, filter.Now)
		if errors.Is(err, holdfast.ErrConflict) {
			continue
		} else if err != nil {
			return holdfast.Assignment{}, err
		}
		// The run is the agent's now. If that has hung up meanwhile its lease ends,
		// and the run goes on elsewhere: it is not the run that has failed.
		return r.begin(context.WithoutCancel(ctx), claimed)
	}
	return holdfast.Assignment{}, holdfast.ErrNotFound
}

// claimOne makes a run running; ErrConflict if that cannot be now.
func (r *Reconciler) claimOne(ctx context.Context, run holdfast.Run, agent string, now time.Time) (claimed holdfast.Run, err error) {
	if stopped, err := r.stopped(ctx, run); err != nil {
		return run, err
	} else if stopped || !r.breakers.admits(run.Document.Provider, run.ID) {
		return run, holdfast.ErrConflict
	}
	defer func() {
		if err != nil {
			r.breakers.withdraw(run.Document.Provider, run.ID)
		}
	}()
	owner := lockOwner(holdfast.AttemptRef{Run: run.ID, Attempt: run.Attempt + 1})
	switch err := r.opts.Locker.Acquire(ctx, run.StateLocation, owner, r.opts.Lease); {
	case errors.Is(err, holdfast.ErrLocked):
		r.opts.Metrics.LockRefused()
		return run, holdfast.ErrConflict
	case err != nil:
		return run, fmt.Errorf("lock %s: %w", run.StateLocation, err)
	}
	err = r.withinCap(ctx, run, func() error {
		claimed, err = r.opts.Store.ClaimRun(ctx, run.ID, agent, now, r.opts.MaxRuns)
		return err
	})
	if err != nil {
		_ = r.opts.Locker.Release(ctx, run.StateLocation, owner) // else its lease ends by itself
		return run, fmt.Errorf("claim run %s: %w", run.ID, err)
	}
	return claimed, nil
}

// begin records the world in which the attempt starts and makes its assignment.
func (r *Reconciler) begin(ctx context.Context, run holdfast.Run) (holdfast.Assignment, error) {
	r.confirmed(run.ID)
	a, run, err := r.assign(ctx, run)
	if err != nil {
		// Nothing has started. The run ends with what is wrong, for all to see.
		_, endErr := r.end(ctx, run.Ref(), holdfast.Result{
			Status: holdfast.RunErrored, Reason: "Assignment",
			Failure: &holdfast.Failure{Step: "prepare", Summary: err.Error(), Cause: "Assignment"},
		})
		if endErr != nil {
			return a, fmt.Errorf("%w; end run %s: %w", err, run.ID, endErr)
		}
		return a, holdfast.ErrNotFound
	}
	r.opts.Metrics.RunClaimed(run.Kind, run.StartedAt.Sub(run.CreatedAt))
	r.opts.Logger.InfoContext(ctx, "run was claimed", "run", run.ID, "attempt", run.Attempt,
		"cluster", run.Cluster, "kind", run.Kind, "agent", run.Agent)
	r.followUp(ctx, run)
	return a, nil
}

func (r *Reconciler) assign(ctx context.Context, run holdfast.Run) (holdfast.Assignment, holdfast.Run, error) {
	rec, err := r.opts.Store.Cluster(ctx, run.Cluster)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return holdfast.Assignment{}, run, fmt.Errorf("read cluster %q: %w", run.Cluster, err)
	}
	last, err := r.lastApply(ctx, run.Cluster)
	if err != nil {
		return holdfast.Assignment{}, run, err
	}
	former, err := r.former(ctx, run.Repo, rec, run.Document)
	if err != nil {
		return holdfast.Assignment{}, run, err
	}
	if former.Name != "" && !decision.Destroys(run) {
		rec.StateSerial = former.StateSerial // it is planned with the state that the former name has
	}
	for run.AppliedRun != last || run.StateSerial != rec.StateSerial {
		seen := run
		seen.AppliedRun, seen.StateSerial = last, rec.StateSerial
		seen, err = r.opts.Store.UpdateRun(ctx, seen)
		if errors.Is(err, holdfast.ErrConflict) { // it was cancelled just now
			seen, err = r.opts.Store.Run(ctx, run.ID)
		}
		if err != nil {
			return holdfast.Assignment{}, run, fmt.Errorf("record run %s: %w", run.ID, err)
		}
		run = seen
	}
	env, secrets, err := r.opts.Credentials(run.Document, run.Kind)
	if err != nil {
		return holdfast.Assignment{}, run, fmt.Errorf("read credentials: %w", err)
	}
	pin, err := r.pinned(ctx, run, rec, former)
	if err != nil {
		return holdfast.Assignment{}, run, err
	}
	a := holdfast.Assignment{
		AttemptRef: run.Ref(), Token: r.token(run.ID, run.Attempt), Kind: run.Kind, Cluster: run.Cluster,
		Deadline: r.opts.Now().Add(r.opts.RunTimeout), Lease: r.opts.Lease,
		Bundle: run.Bundle, Dir: run.Dir, SourceDigest: run.SourceDigest,
		Engine: run.Document.Engine, PinName: pin.EngineName, PinVersion: pin.EngineVersion,
		Exact: run.Exact && pin.EngineVersion != "", Destroy: run.Destroy,
		Env: env, Secrets: secrets,
		OwnState: ownState(run.StateLocation), StateLocation: run.StateLocation,
		Resume: run.Resume, StoredPlan: run.StoredPlan,
		FingerprintKey: r.opts.FingerprintKey, TraceParent: run.TraceParent,
	}
	if r.opts.Limits != nil {
		a.Limits = r.opts.Limits(run.Document)
	}
	if r.opts.SecretSources != nil {
		a.SecretDirs, a.SecretStores = r.opts.SecretSources(run.Document, run.Kind)
	}
	if a.Reviews, err = r.reviewedPlans(ctx, run); err != nil {
		return a, run, err
	}
	a.LockFile, err = r.lockFile(ctx, run, pin)
	return a, run, err
}

// pinned is what a run takes its engine and its provider lock file from: what
// was last applied, under the cluster's former name if it has that no more.
func (r *Reconciler) pinned(ctx context.Context, run holdfast.Run, rec, former holdfast.ClusterRecord) (holdfast.Applied, error) {
	switch {
	case decision.Destroys(run):
		runs, err := history.Branch(ctx, r.opts.Store, run.Cluster)
		return lastApplied(rec, runs), err
	case former.Name != "":
		return former.Applied, nil
	default:
		return rec.Applied, nil
	}
}

// reviewedPlans adds to a run's reviews what a comparison needs.
func (r *Reconciler) reviewedPlans(ctx context.Context, run holdfast.Run) ([]holdfast.ReviewedPlan, error) {
	var out []holdfast.ReviewedPlan
	for _, review := range run.Reviews {
		if review.Run == "" {
			continue
		}
		plan := holdfast.ReviewedPlan{Review: review}
		if run.Kind.Writes() {
			summary, err := r.summary(ctx, review.Run)
			if err != nil {
				return nil, fmt.Errorf("read reviewed plan %s: %w", review.Run, err)
			}
			plan.Prints = summary.Prints
		}
		out = append(out, plan)
	}
	return out, nil
}

// lockFile returns the provider lock file that a run starts from: that of the
// plan that it shall repeat, else that of the last apply.
func (r *Reconciler) lockFile(ctx context.Context, run holdfast.Run, pin holdfast.Applied) ([]byte, error) {
	from := []string{run.StoredPlan}
	for _, review := range run.Reviews {
		from = append(from, review.Run)
	}
	for _, id := range append(from, pin.Run) {
		if id == "" {
			continue
		}
		file, err := r.artefact(ctx, id, holdfast.ArtefactLockFile)
		if errors.Is(err, holdfast.ErrNotFound) {
			continue
		}
		return file, err
	}
	return nil, nil
}

// summary reads the plan that a run made.
func (r *Reconciler) summary(ctx context.Context, run string) (holdfast.Plan, error) {
	data, err := r.artefact(ctx, run, holdfast.ArtefactPlan)
	if err != nil {
		return holdfast.Plan{}, err
	}
	var plan holdfast.Plan
	if err := json.Unmarshal(data, &plan); err != nil {
		return plan, fmt.Errorf("decode plan of run %s: %w", run, err)
	}
	return plan, nil
}

func (r *Reconciler) artefact(ctx context.Context, run, name string) ([]byte, error) {
	file, err := r.opts.Store.Artefact(ctx, run, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read %s of run %s: %w", name, run, err)
	}
	return data, nil
}

// Authorize checks an attempt's token and returns its run: ErrUnauthorized if
// it is not that attempt's, ErrFenced if the attempt is over.
func (r *Reconciler) Authorize(ctx context.Context, id string, attempt int, token string) (holdfast.Run, error) {
	run, err := r.opts.Store.Run(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) {
		return run, holdfast.ErrUnauthorized
	} else if err != nil {
		return run, fmt.Errorf("read run %s: %w", id, err)
	}
	if !hmac.Equal([]byte(token), []byte(r.token(id, attempt))) {
		return holdfast.Run{}, holdfast.ErrUnauthorized
	}
	if attempt != run.Attempt || run.Status != holdfast.RunRunning {
		return run, holdfast.ErrFenced
	}
	return run, nil
}

// token is the credential of one attempt.
func (r *Reconciler) token(run string, attempt int) string {
	mac := hmac.New(sha256.New, r.opts.TokenKey)
	fmt.Fprintf(mac, "%s/%d", run, attempt)
	return holdfast.FormatRunToken(run, attempt, hex.EncodeToString(mac.Sum(nil)))
}

// Heartbeat records that an attempt lives, renews its lock, and tells it
// whether to go on.
func (r *Reconciler) Heartbeat(
	ctx context.Context, ref holdfast.AttemptRef, beat holdfast.Heartbeat,
) (holdfast.HeartbeatReply, error) {
	run, err := r.opts.Store.Beat(ctx, ref, beat.Step, r.opts.Now())
	if err != nil {
		return holdfast.HeartbeatReply{}, fmt.Errorf("record heartbeat of run %s: %w", ref.Run, err)
	}
	if run.Reason == decision.ReasonAgentSilent {
		if err := r.heard(ctx, run); err != nil {
			return holdfast.HeartbeatReply{}, err
		}
	}
	reply := holdfast.HeartbeatReply{Cancel: run.Cancel, MayApply: true}
	err = r.opts.Locker.Renew(ctx, run.StateLocation, lockOwner(ref), r.opts.Lease)
	if errors.Is(err, holdfast.ErrLockLost) {
		// Redis may have forgotten it: then it is ours again, by the records.
		err = r.opts.Locker.Acquire(ctx, run.StateLocation, lockOwner(ref), r.opts.Lease)
	}
	if err == nil {
		r.confirmed(run.ID)
		return reply, nil
	}
	reply.MayApply = false
	if !run.Kind.Writes() && r.unconfirmed(run.ID) > r.opts.Lease*3/4 && reply.Cancel == "" {
		reply.Cancel = holdfast.ReasonLeaseLost
	}
	r.opts.Logger.WarnContext(ctx, "lock was not renewed", "run", run.ID, "cluster", run.Cluster, "err", err)
	return reply, nil
}

func (r *Reconciler) confirmed(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewed[run] = time.Now()
}

// unconfirmed is for how long nobody could confirm the run's lock. A replica
// that never did starts to count now.
func (r *Reconciler) unconfirmed(run string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.renewed[run]
	if !ok {
		r.renewed[run] = time.Now()
		return 0
	}
	return time.Since(since)
}

// Finish records how an attempt ended. A second delivery of the same result is
// an ErrFenced: the first one was taken.
func (r *Reconciler) Finish(ctx context.Context, ref holdfast.AttemptRef, result holdfast.Result) error {
	run, err := r.end(ctx, ref, result)
	if err != nil {
		return err
	}
	for _, step := range result.Steps {
		r.opts.Metrics.Step(step.Name, step.Duration)
	}
	r.traces.run(run, result.Steps)
	return nil
}

// outcome is the run as a result leaves it: ended, queued again after a
// pre-emption, or waiting for a retry.
func outcome(run holdfast.Run, result holdfast.Result, now time.Time, maxRetries int, delay time.Duration) holdfast.Run {
	run.Begun = run.Begun || result.Applying
	run.InputDigest, run.Fingerprint, run.Counts = result.InputDigest, result.Fingerprint, result.Counts
	run.EngineName, run.EngineVersion = result.EngineName, result.EngineVersion
	run.Matched, run.Failure = result.Matched, result.Failure
	run.Status, run.Reason, run.Detail, run.FinishedAt = result.Status, result.Reason, result.Detail, now
	run.Step, run.NotBefore = "", time.Time{}
	switch {
	case run.Status != holdfast.RunCanceled:
	case run.Cancel != "":
		run.Reason = run.Cancel
	case result.Detail == holdfast.ReasonLeaseLost: // Heartbeat's word, and nobody's wish
		run.Status, run.Reason, run.Failure = holdfast.RunInterrupted, holdfast.ReasonLeaseLost, nil
	}
	if run.Status == holdfast.RunInterrupted && run.Failure == nil {
		run.Failure = &holdfast.Failure{
			Summary: "the run was interrupted", Detail: result.Detail, Cause: run.Reason, Transient: true,
		}
	}
	switch {
	case run.Begun || run.Status.Good():
	case run.Status == holdfast.RunCanceled && run.Reason == decision.ReasonPreempted && run.Kind != holdfast.RunDrift:
		run = requeued(run, decision.ReasonPreempted)
	case decision.Transient(run):
		if run.Retries < maxRetries {
			run.Retries++
			run.Status, run.FinishedAt = holdfast.RunRetrying, time.Time{}
			run.NotBefore = now.Add(delay << (run.Retries - 1))
		}
	}
	run.Cancel = ""
	return run
}

func requeued(run holdfast.Run, reason string) holdfast.Run {
	run.Status, run.Reason, run.Detail = holdfast.RunQueued, reason, ""
	run.Failure, run.FinishedAt, run.Step, run.Cancel = nil, time.Time{}, "", ""
	return run
}

// end stores how an attempt ended, lets its lock go, and has everybody told.
func (r *Reconciler) end(ctx context.Context, ref holdfast.AttemptRef, result holdfast.Result) (holdfast.Run, error) {
	ctx = context.WithoutCancel(ctx) // an outcome is saved whoever hangs up
	run, err := r.saveOutcome(ctx, ref, result)
	if err != nil {
		return run, fmt.Errorf("record the end of run %s: %w", ref.Run, err)
	}
	if _, err := r.opts.Store.ReleaseStateLock(ctx, run.StateLocation, ref); err != nil {
		r.opts.Logger.WarnContext(ctx, "state lock was not released", "run", run.ID, "err", err)
	}
	if err := r.opts.Locker.Release(ctx, run.StateLocation, lockOwner(ref)); err != nil {
		r.opts.Logger.WarnContext(ctx, "lock was not released", "run", run.ID, "err", err)
	}
	r.mu.Lock()
	delete(r.renewed, run.ID)
	r.mu.Unlock()
	r.opts.Metrics.RunEnded(run.Kind, run.Status, run.Reason)
	r.opts.Logger.InfoContext(ctx, "attempt has ended", "run", run.ID, "attempt", ref.Attempt,
		"cluster", run.Cluster, "kind", run.Kind, "status", run.Status, "reason", run.Reason)
	r.wake(ctx, topicWork)
	r.followUp(ctx, run)
	r.heardOf(ctx, run)
	r.takeInventory(ctx, run)
	return run, nil
}

// saveOutcome writes an outcome over whatever else was written of the run
// meanwhile, such as that it shall stop.
func (r *Reconciler) saveOutcome(ctx context.Context, ref holdfast.AttemptRef, result holdfast.Result) (holdfast.Run, error) {
	for {
		run, err := r.opts.Store.Run(ctx, ref.Run)
		if err != nil {
			return run, err
		}
		run, err = r.opts.Store.EndAttempt(ctx, ref, outcome(run, result, r.opts.Now(), r.opts.MaxRetries, r.opts.RetryDelay))
		if !errors.Is(err, holdfast.ErrConflict) {
			return run, err
		}
	}
}

// followUp asks for everything that a run's change of status may bear on.
func (r *Reconciler) followUp(ctx context.Context, run holdfast.Run) {
	r.requests.Add(holdfast.Request{Cluster: run.Cluster, PullRequest: run.PullRequest})
	if !run.PullRequest.IsZero() {
		return
	}
	for _, review := range run.Reviews {
		if !review.PullRequest.IsZero() {
			r.publish.Show(review.PullRequest)
		}
	}
	if !run.Begun || !run.Status.Done() {
		return
	}
	if err := r.requestOpen(ctx, run.Cluster); err != nil {
		r.opts.Logger.WarnContext(ctx, "open pull requests were not asked for", "cluster", run.Cluster, "err", err)
	}
}

// requestOpen asks for the cluster at each open pull request that touches it.
func (r *Reconciler) requestOpen(ctx context.Context, cluster string) error {
	open, err := r.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		States: []holdfast.PullRequestState{holdfast.PullRequestOpen}, Cluster: cluster, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list pull requests of %q: %w", cluster, err)
	}
	for _, pr := range open {
		r.requests.Add(holdfast.Request{Cluster: cluster, PullRequest: pr.PullRequestRef})
	}
	return nil
}

// lastApply returns the newest apply of the cluster that had begun.
func (r *Reconciler) lastApply(ctx context.Context, cluster string) (string, error) {
	runs, err := history.Branch(ctx, r.opts.Store, cluster)
	if err != nil {
		return "", err
	}
	return decision.LastBegun(runs), nil
}

func lockOwner(ref holdfast.AttemptRef) string {
	return fmt.Sprintf("%s/%d", ref.Run, ref.Attempt)
}
