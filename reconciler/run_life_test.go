package reconciler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

func TestPitfalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"a run that waits for its turn uses up no try":                      waitingUsesUpNoTry,
		"a limit of tries holds whatever is pushed meanwhile":               limitHolds,
		"tries of an apply end whatever is pushed meanwhile":                applyLimitHolds,
		"every passing cause is retried, and no other":                      causesAreRetried,
		"a lock is waited for without a slot, for as long as is configured": locksAreWaitedFor,
		"another failure ends the wait for a lock":                          locksAreWaitedForAnew,
		"a plan that fails for good is told":                                failedPlanIsTold,
		"a plan with nothing to do leads to nothing":                        nothingLeadsToNothing,
		"a failed apply is seen, and its plan file is not used again":       planFileIsUsedOnce,
		"a push during a plan is planned":                                   pushDuringPlan,
		"a record that cannot be written makes no second run":               unwrittenRecord,
		"a plan that is asked for while it must wait is not forgotten":      askedWhileWaiting,
		"a push to a pull request keeps its history":                        historyIsKept,
		"a pull request that touches nothing is left alone":                 untouchedIsLeftAlone,
		"a plan and an apply get the credentials of their kind":             credentialsOfTheirKind,
		"a run has a deadline, and one that passes it is told":              deadlinePasses,
		"a retry knows its number before it begins":                         retryKnowsItsNumber,
		"an end that comes after a newer wish does not pass for its own":    lateEnd,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func waitingUsesUpNoTry(t *testing.T) {
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { opts.Limits.Runs, opts.Limits.Retries = 1, -1 })
	f.look()
	first := f.claim()
	f.must(f.locks.Acquire(t.Context(), "clusters/prod", "somebody", time.Hour))
	for range 5 {
		if a := f.claim(first.AttemptRef); a.Run != "" {
			t.Fatal("more than may run at once")
		}
	}
	f.finish(first, planned(first))
	for range 5 {
		if a := f.claim(); a.Run != "" {
			t.Fatal("somebody else holds the lock")
		}
	}
	f.must(f.locks.Release(t.Context(), "clusters/prod", "somebody"))
	if run := f.execute(planned); run.Attempt != 1 || run.Retries != 0 || run.Status != holdfast.RunPlanned {
		t.Errorf("its attempt %d ends %s after %d retries", run.Attempt, run.Status, run.Retries)
	}
}

func limitHolds(t *testing.T) {
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { opts.Limits.Retries = 2 })
	f.look()
	for i := range 12 {
		for a := f.claim(); a.Run != ""; a = f.claim() {
			f.finish(a, transient(a))
		}
		f.repo.Commit(master, "unrelated", map[string]string{"README.md": strings.Repeat("x", i)})
		f.look()
		f.clock.Advance(time.Hour)
	}
	f.expectRuns("prod", "plan errored EngineFailed")
	if run := f.newest("prod"); run.Attempt != 3 {
		t.Errorf("it was tried %d times", run.Attempt)
	}
}

func applyLimitHolds(t *testing.T) {
	f := reviewed(t)
	f.restart(func(opts *reconciler.Options) { opts.Limits.Retries = 2 })
	f.must(f.r.TakeIn(t.Context(), infra, 0))
	f.merge(1, byMerge)
	for i := range 12 {
		for a := f.claim(); a.Run != ""; a = f.claim() {
			if a.Kind == holdfast.RunApply {
				f.finish(a, transient(a))
			} else {
				f.finish(a, planned(a))
			}
		}
		f.repo.Commit(master, "unrelated", map[string]string{"README.md": strings.Repeat("x", i)})
		f.look()
		f.clock.Advance(time.Hour)
		f.r.Resume(t.Context())
		f.settle()
	}
	applies := slices.DeleteFunc(f.runs("prod"), func(s string) bool { return !strings.HasPrefix(s, "apply") })
	if len(applies) != 3 {
		t.Errorf("it was applied %d times: %v", len(applies), applies)
	}
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonApplyFailed || rec.Phase != holdfast.PhaseFailed {
		t.Errorf("it is %s and waits for %q", rec.Phase, rec.Waiting)
	}
}

// causesAreRetried: an agent says which causes pass; here is what is made of
// that, before and after an apply has begun.
func causesAreRetried(t *testing.T) {
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { opts.Limits.Retries = 1 })
	f.adopt()
	causes := map[string]bool{
		"Throttled": true, "ServiceUnavailable": true, "Network": true, "ResourceTimeout": true,
		"DiskFull": true, "OutOfMemory": true, "ProviderCrashed": true, "DownloadFailed": true,
		"Credentials": false, "Permission": false, "Quota": false, "NotFound": false, "Conflict": false,
		"StateLocked":          false, // the time to wait for a lock is zero
		"InvalidConfiguration": false, "StateBackend": false, "StalePlan": false, "EngineFailed": false,
	}
	number := 0
	for cause, passes := range causes {
		number++
		f.open(number, map[string]string{"infra/prod/main.tf": module(cause)})
		a := f.claim()
		f.finish(a, protocol.Result{Status: holdfast.RunErrored, Failure: &holdfast.Failure{
			Step: "plan", Summary: cause, Cause: holdfast.Reason(cause), Transient: passes,
		}})
		run := f.newest("prod")
		switch {
		case passes && (run.Status != holdfast.RunRetrying || run.Retries != 1 || !run.NotBefore.After(f.clock.Now())):
			t.Errorf("%s: it is %s until %s", cause, run.Status, run.NotBefore)
		case !passes && run.Status != holdfast.RunErrored:
			t.Errorf("%s: it is %s", cause, run.Status)
		}
		f.clock.Advance(time.Hour)
		if a = f.claim(); passes != (a.Run == run.ID) {
			t.Errorf("%s: then %q is claimed", cause, a.Run)
		}
		if a.Run != "" {
			f.finish(a, transient(a))
			if got := f.newest("prod").Status; got != holdfast.RunErrored {
				t.Errorf("%s: after the last try it is %s", cause, got)
			}
		}
		f.change(number, func(pr *holdfast.PullRequest) { pr.State = holdfast.PullRequestClosed })
	}
}

// locksAreWaitedFor: a run that did not get the lock of its state's backend tries
// again until LockTimeout is over, with pauses that grow, and uses no retry for that.
func locksAreWaitedFor(t *testing.T) {
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		opts.Limits.Retries, opts.Limits.LockTimeout = 1, 5*time.Minute
	})
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	end := func(cause holdfast.Reason) holdfast.Run {
		t.Helper()
		a := f.claim()
		if a.Run == "" {
			t.Fatalf("nothing is handed out: %v", f.runs("prod"))
		}
		if *a.LockTimeout > 10*time.Second {
			t.Errorf("an engine waits for %s in its slot", *a.LockTimeout)
		}
		f.finish(a, protocol.Result{Status: holdfast.RunErrored, Reason: cause, Failure: &holdfast.Failure{
			Step: "plan", Summary: string(cause), Cause: cause, Transient: true,
		}})
		return f.newest("prod")
	}
	begun := f.clock.Now()
	var pauses []time.Duration
	run := end(holdfast.CauseStateLocked)
	for ; run.Status == holdfast.RunRetrying; run = end(holdfast.CauseStateLocked) {
		if run.Reason != holdfast.CauseStateLocked || run.Failure == nil || run.Retries > 0 {
			t.Fatalf("after %s it is %s for %q with %d retries", f.clock.Now().Sub(begun), run.Status, run.Reason, run.Retries)
		}
		pause := run.NotBefore.Sub(f.clock.Now())
		pauses = append(pauses, pause.Round(time.Second)) // each look at the clock moves it
		if a := f.claim(); a.Run != "" {
			t.Fatalf("it is handed out %s before its time", pause)
		}
		f.clock.Advance(pause)
	}
	if waited := f.clock.Now().Sub(begun).Round(time.Second); waited != 5*time.Minute || run.Status != holdfast.RunErrored || run.Reason != holdfast.CauseStateLocked {
		t.Errorf("it has waited for %s, and is %s for %q: %s", waited, run.Status, run.Reason, pauses)
	}
	for i, pause := range pauses[:len(pauses)-1] {
		if i > 0 && pause < pauses[i-1] || pause < 10*time.Second || pause > time.Minute {
			t.Errorf("the pauses are %s", pauses)
		}
	}
}

// locksAreWaitedForAnew: what failed otherwise meanwhile had the lock, or did not need
// it, and waits for the whole time again.
func locksAreWaitedForAnew(t *testing.T) {
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		opts.Limits.Retries, opts.Limits.LockTimeout = 1, time.Minute
	})
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	for i, cause := range []holdfast.Reason{holdfast.CauseStateLocked, "Network", holdfast.CauseStateLocked} {
		a := f.claim()
		f.finish(a, protocol.Result{Status: holdfast.RunErrored, Reason: cause, Failure: &holdfast.Failure{
			Step: "plan", Summary: string(cause), Cause: cause, Transient: true,
		}})
		if run := f.newest("prod"); run.Status != holdfast.RunRetrying || run.Retries != min(i, 1) {
			t.Fatalf("after %s it is %s with %d retries", cause, run.Status, run.Retries)
		}
		f.clock.Advance(2 * time.Minute)
	}
}

func failedPlanIsTold(t *testing.T) {
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { opts.Limits.Retries = 2 })
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	for range 3 {
		a := f.claim()
		f.finish(a, transient(a))
		f.clock.Advance(time.Hour)
	}
	f.post()
	if ours := f.forge.ours(); len(ours) != 1 || !strings.Contains(ours[0].Body, "no such instance type") {
		t.Errorf("the comments are %+v", ours)
	}
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusFailure {
		t.Errorf("the status is %q", got)
	}
}

func nothingLeadsToNothing(t *testing.T) {
	f := newFleet(t, twoClusters())
	f.adopt()
	version := f.cluster("prod").Version
	for range 3 {
		f.clock.Advance(24 * time.Hour)
		f.r.Resume(t.Context())
		f.look()
	}
	f.expectRuns("prod", "plan no_changes")
	if got := f.cluster("prod").Version; got != version {
		t.Errorf("the record was written %d times for nothing", got-version)
	}
}

func planFileIsUsedOnce(t *testing.T) {
	f := newFleet(t, twoClusters())
	f.adopt()
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	f.executeAll(good)
	f.api("alice", holdfast.VerbApply, "prod")
	a := f.claim()
	if len(a.Reviews) != 1 {
		t.Fatal("the plan that was seen is not applied")
	}
	f.finish(a, transient(a))
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonBackingOff || rec.Phase != holdfast.PhaseUpdating {
		t.Errorf("it is %s and waits for %q", rec.Phase, rec.Waiting)
	}
	f.clock.Advance(time.Hour)
	f.r.Resume(t.Context())
	f.settle()
	again := f.claim()
	if again.Kind != holdfast.RunApply || !again.Resume || len(again.Reviews) != 1 {
		t.Fatalf("it continues with %+v", again)
	}
	f.finish(again, failing(again))
	f.settle()
	f.executeAll(good)
	rec := f.cluster("prod")
	if rec.Waiting != holdfast.ReasonApplyFailed || rec.Phase != holdfast.PhaseFailed || statusOf(rec, holdfast.ConditionApplyUpToDate) != holdfast.ConditionFalse {
		t.Errorf("it is %s and waits for %q", rec.Phase, rec.Waiting)
	}
	if run := f.newest("prod"); run.Kind != plan || run.Status != holdfast.RunPlanned {
		t.Errorf("what is left was not planned: %s %s", run.Kind, run.Status)
	}
}

func statusOf(rec holdfast.ClusterRecord, of holdfast.ConditionType) holdfast.ConditionStatus {
	for _, c := range rec.Conditions {
		if c.Type == of {
			return c.Status
		}
	}
	return ""
}

func pushDuringPlan(t *testing.T) {
	f := newFleet(t, twoClusters())
	f.adopt()
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	a := f.claim()
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("three")})
	f.look()
	f.clock.Advance(time.Hour)
	f.finish(a, planned(a)) // too late to be stopped
	if got := statusOf(f.cluster("prod"), holdfast.ConditionCommitPlanned); got != holdfast.ConditionFalse {
		t.Errorf("the new commit passes for planned: %s", got)
	}
	next := f.claim()
	if next.SourceDigest == a.SourceDigest {
		t.Fatal("the old commit is planned again")
	}
	f.finish(next, planned(next))
	rec := f.cluster("prod")
	if statusOf(rec, holdfast.ConditionCommitPlanned) != holdfast.ConditionTrue || statusOf(rec, holdfast.ConditionPlanUpToDate) != holdfast.ConditionTrue {
		t.Errorf("the conditions are %+v", rec.Conditions)
	}
}

// forgetful cannot save clusters for a while.
type forgetful struct {
	reconciler.Store
	mu   sync.Mutex
	fail int
}

func (s *forgetful) remember() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail > 0 {
		s.fail--
		return errors.New("disk full")
	}
	return nil
}

func (s *forgetful) SaveCluster(ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition) (holdfast.ClusterRecord, error) {
	if err := s.remember(); err != nil {
		return holdfast.ClusterRecord{}, err
	}
	return s.Store.SaveCluster(ctx, c, history...)
}

func (s *forgetful) RecordCluster(
	ctx context.Context, c holdfast.ClusterRecord, entry holdfast.AuditEntry, history ...holdfast.Transition,
) (holdfast.ClusterRecord, error) {
	if err := s.remember(); err != nil {
		return holdfast.ClusterRecord{}, err
	}
	return s.Store.RecordCluster(ctx, c, entry, history...)
}

func unwrittenRecord(t *testing.T) {
	f := reviewed(t)
	store := &forgetful{Store: f.store}
	f.restart(func(opts *reconciler.Options) { opts.Store = store })
	f.mergeUnnoticed(1, byMerge)
	f.must(f.r.TakeIn(t.Context(), infra, 1))
	f.must(f.r.TakeIn(t.Context(), infra, 0))
	store.fail = 3
	for range 4 {
		_, _ = f.r.Reconciled(t.Context(), holdfast.Request{Cluster: "prod"})
	}
	applies, err := f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "prod", Kinds: []holdfast.RunKind{apply}})
	f.must(err)
	if len(applies) != 1 {
		t.Errorf("%d applies were made", len(applies))
	}
}

func askedWhileWaiting(t *testing.T) {
	f := newFleet(t, twoClusters())
	f.adopt()
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	f.must(f.locks.Acquire(t.Context(), "clusters/prod", "somebody", time.Hour))
	f.executeAll(good)
	c := f.api("alice", holdfast.VerbPlan, "prod")
	if c.Status == holdfast.CommandReceived || c.Reply == "" {
		t.Errorf("it is %s: %q", c.Status, c.Reply)
	}
	f.must(f.locks.Release(t.Context(), "clusters/prod", "somebody"))
	if run := f.execute(planned); run.Cluster != "prod" {
		t.Errorf("%s is planned", run.Cluster)
	}
}

// TestReplicasMakeOneChange: several replicas that decide at the same time make one change.
func TestReplicasMakeOneChange(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.mergeUnnoticed(1, byMerge)
	one := f.r
	f.restart(func(opts *reconciler.Options) { opts.Replica.Identity = "two" })
	for _, r := range []*reconciler.Reconciler{one, f.r} {
		f.must(r.TakeIn(t.Context(), infra, 1))
		f.must(r.TakeIn(t.Context(), infra, 0))
	}
	var wg sync.WaitGroup
	for _, r := range []*reconciler.Reconciler{one, f.r, one, f.r} {
		wg.Go(func() { _, _ = r.Reconciled(t.Context(), holdfast.Request{Cluster: "prod"}) })
	}
	wg.Wait()
	made := 0
	for a := f.claim(); a.Run != ""; a = f.claim() {
		made++
		f.finish(a, good(a))
		f.must(one.Settle(t.Context()))
	}
	if made != 1 { // an engine would find nothing left to do
		t.Errorf("%d applies were queued, want one", made)
	}
	f.settle()
	runs, err := f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "prod", Statuses: []holdfast.RunStatus{holdfast.RunApplied}})
	f.must(err)
	if rec := f.cluster("prod"); len(runs) != 1 || rec.Phase != holdfast.PhaseActive || rec.Waiting != "" {
		t.Errorf("%d were applied; it is %s and waits for %q", len(runs), rec.Phase, rec.Waiting)
	}
}

func historyIsKept(t *testing.T) {
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.execute(planned)
	running := map[string]string{"infra/prod/main.tf": module("three")}
	f.push(1, running)
	a := f.claim()
	f.push(1, map[string]string{"infra/prod/main.tf": module("four")})
	reply, err := f.r.Dispatcher().Heartbeat(t.Context(), a.AttemptRef, protocol.Heartbeat{Fence: a.Fence})
	if err != nil || reply.Cancel == "" {
		t.Fatalf("the outdated plan is told %+v, %v: it is to stop by itself, with its locks", reply, err)
	}
	f.finish(a, protocol.Result{Status: holdfast.RunCanceled, Reason: holdfast.ReasonCanceled})
	f.execute(planned)
	f.expectRuns("prod", "plan no_changes", "plan planned", "plan canceled Superseded", "plan planned")
}

func untouchedIsLeftAlone(t *testing.T) {
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"README.md": "more"})
	f.executeAll(good)
	if ours := f.forge.ours(); len(ours) > 0 {
		t.Errorf("it was told %s", ours[0].Body)
	}
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
		t.Errorf("its status is %q", got)
	}
}

func credentialsOfTheirKind(t *testing.T) {
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		opts.Grants.Credentials = func(_ holdfast.Cluster, kind holdfast.RunKind) (protocol.Credentials, error) {
			return protocol.Credentials{Env: map[string]string{"ROLE": string(kind)}}, nil
		}
	})
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		if a.Env["ROLE"] != "plan" {
			t.Errorf("a plan gets %v", a.Env)
		}
		return planned(a)
	})
	f.merge(1, byMerge)
	if a := f.claim(); a.Kind != apply || a.Env["ROLE"] != "apply" {
		t.Errorf("an %s gets %v", a.Kind, a.Env)
	}
}

func deadlinePasses(t *testing.T) {
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { opts.Limits.Timeout = time.Hour })
	f.look()
	a := f.claim()
	if left := a.Deadline.Sub(f.clock.Now()); left <= 0 || left > time.Hour {
		t.Errorf("it has %s", left)
	}
	f.finish(a, protocol.Result{Status: holdfast.RunErrored, Reason: holdfast.ReasonTimeout, Failure: &holdfast.Failure{
		Step: "plan", Summary: "the deadline passed", Cause: holdfast.ReasonTimeout,
	}})
	rec := f.cluster(a.Cluster)
	if rec.Waiting != holdfast.ReasonPlanFailed || statusOf(rec, holdfast.ConditionBlocked) != holdfast.ConditionTrue {
		t.Errorf("it waits for %q", rec.Waiting)
	}
}

func retryKnowsItsNumber(t *testing.T) {
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": ""})
	f.look()
	var fence int64
	for attempt := 1; attempt <= 3; attempt++ {
		a := f.claim()
		run, err := f.store.Run(t.Context(), a.Run)
		f.must(err)
		if a.Attempt != attempt || run.Attempt != attempt || a.Fence <= fence || run.Fence != a.Fence {
			t.Fatalf("attempt %d is %+v, and %d on record", attempt, a.AttemptRef, run.Attempt)
		}
		fence = a.Fence
		f.finish(a, transient(a))
		f.clock.Advance(time.Hour)
	}
}

func lateEnd(t *testing.T) {
	f := reviewed(t)
	f.merge(1, byMerge)
	a := f.claim()
	f.open(2, map[string]string{"infra/prod/more.tf": module("more")})
	if b := f.claim(a.AttemptRef); b.Run != "" {
		t.Fatalf("a %s is claimed beside the apply", b.Kind)
	}
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("three")})
	f.look()
	f.finish(a, good(a))
	rec := f.cluster("prod")
	if rec.Applied.Run != a.Run || rec.Applied.SourceDigest == rec.Desired.SourceDigest {
		t.Fatalf("applied %s %s, desired %s", rec.Applied.Run, rec.Applied.SourceDigest.Short(), rec.Desired.SourceDigest.Short())
	}
	if statusOf(rec, holdfast.ConditionApplyUpToDate) != holdfast.ConditionFalse {
		t.Error("an older apply passes for what is desired")
	}
	f.executeAll(good)
	if rec = f.cluster("prod"); rec.Waiting != holdfast.ReasonUnreviewed {
		t.Errorf("what nobody has seen waits for %q", rec.Waiting)
	}
}

// TestALife follows a cluster from its first document to its end.
func TestALife(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"clusters/new.yaml": document("new"), "infra/new/main.tf": module("one")})
	f.executeAll(good)
	f.merge(1, byMerge)
	first := f.claim()
	f.settle()
	f.repo.Commit(master, "push", map[string]string{"infra/new/main.tf": module("two")}) // it is not set up yet
	f.look()
	f.finish(first, good(first))
	f.executeAll(good)
	f.api("alice", holdfast.VerbApply, "new")
	f.executeAll(good) // now it is
	f.open(2, map[string]string{"infra/new/main.tf": module("three")})
	f.executeAll(good)
	f.merge(2, byMerge)
	second := f.claim()
	f.settle()
	f.finish(second, failing(second))
	f.executeAll(good)
	f.api("alice", holdfast.VerbApply, "new")
	repaired := f.claim()
	f.settle()
	f.finish(repaired, good(repaired))
	f.open(3, map[string]string{"clusters/new.yaml": gitserver.Delete})
	f.executeAll(good)
	f.merge(3, byMerge)
	f.executeAll(good)

	history, err := f.store.Transitions(t.Context(), "new", 100)
	f.must(err)
	var phases []string
	for _, h := range slices.Backward(history) {
		if h.What == "phase" {
			phases = append(phases, strings.TrimSpace(h.To+" "+string(h.Reason)))
		}
		if h.At.IsZero() || h.Cluster != "new" || h.From == h.To {
			t.Errorf("%+v", h)
		}
	}
	want := []string{
		"Pending NewRevision", "Provisioning Merged", "Configuring Applied", "Active Applied", "Updating Merged",
		"Failed InvalidConfiguration", "Updating Approved", "Active Applied", "Deleting Removed", "Deleted Destroyed",
	}
	if !slices.Equal(phases, want) {
		t.Errorf("its phases:\n%s\nwant\n%s", strings.Join(phases, "\n"), strings.Join(want, "\n"))
	}
	before := time.Time{}
	for _, h := range slices.Backward(history) {
		if h.At.Before(before) {
			t.Error("the history is out of order")
		}
		before = h.At
	}
}
