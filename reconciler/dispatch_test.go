package reconciler_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/statelock"
)

// foreignState has the state of prod elsewhere than in our own backend.
func foreignState() map[string]string {
	files := twoClusters()
	files["infra/prod/backend.tf"] = "terraform {\n  backend \"s3\" {\n    bucket = \"b\"\n    key    = \"k\"\n    region = \"r\"\n  }\n}\n"
	return files
}

func TestAppliesAreClaimedFirst(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.open(3, map[string]string{"infra/preprod/main.tf": module("two")}) // asked for before the merge
	f.merge(1, byMerge)
	var got []string
	for a := f.claim(); a.Run != ""; a = f.claim() {
		got = append(got, string(a.Kind)+" "+a.Cluster)
		f.finish(a, good(a))
		if len(got) > 5 {
			break
		}
	}
	if len(got) < 2 || got[0] != "apply prod" || got[1] != "plan preprod" {
		t.Errorf("claimed %v", got)
	}
}

func TestAssignmentOfARun(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		opts.Grants.Credentials = func(c holdfast.Cluster, kind holdfast.RunKind) (protocol.Credentials, error) {
			return protocol.Credentials{Env: map[string]string{"TOKEN": string(kind) + " " + c.Name}, Secrets: []string{"TOKEN"}}, nil
		}
	})
	f.look()
	a := f.claim()
	switch {
	case a.Attempt != 1 || a.Fence == 0 || a.Token == "" || a.Kind != holdfast.RunPlan:
		t.Errorf("assignment %+v", a)
	case a.Env["TOKEN"] != "plan "+a.Cluster || !slices.Equal(a.Secrets, []string{"TOKEN"}):
		t.Errorf("environment %v, secrets %v", a.Env, a.Secrets)
	case !a.OwnState || a.StateLocation != "clusters/"+a.Cluster:
		t.Errorf("state %q, own %t", a.StateLocation, a.OwnState)
	case a.Dir == "" && a.Bundle == "", len(a.FingerprintKey) != 32, a.Deadline.IsZero():
		t.Errorf("assignment %+v", a)
	}
	if ok, err := f.store.HasBundle(t.Context(), a.Bundle); err != nil || !ok {
		t.Errorf("the bundle is not there: %v", err)
	}
}

func TestCredentialsThatCannotBeReadEndTheRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		opts.Grants.Credentials = func(holdfast.Cluster, holdfast.RunKind) (protocol.Credentials, error) {
			return protocol.Credentials{}, errors.New("open token: permission denied")
		}
	})
	f.look()
	f.claim()
	f.settle()
	run := f.newest("prod")
	if run.Status == holdfast.RunQueued {
		run = f.newest("preprod")
	}
	if run.Status != holdfast.RunErrored || !strings.Contains(run.Failure.Summary, "permission denied") {
		t.Errorf("the run is %s: %+v", run.Status, run.Failure)
	}
}

// A credential without a value that secret variables of clusters refer to is needed by
// these only, in whichever project they are, and wherever they say so. It has to be from the
// same place: another cluster's with the same name may be a provider's.
func TestMissingCredentialsAreThoseOfWhoUsesThem(t *testing.T) {
	t.Parallel()
	const declared = "variable \"password\" {\n  type      = any\n  sensitive = true\n}\n"
	files := twoOfTemplate()
	files["templates/web/template.yaml"] += `  variables:
    type: object
    properties:
      password: {type: string, writeOnly: true, default: {secret: {env: BY_DEFAULT}}}
`
	files["clusters/b.yaml"] += "  variables: {password: {secret: {env: INSTEAD}}}\n"
	files["clusters/prod.yaml"] = document("prod", "variables: {password: {secret: {env: IN_DOCUMENT}}}")
	files["clusters/preprod.yaml"] = strings.Replace(document("preprod"), "project: p", "project: other", 1)
	files["infra/preprod/holdfast_secrets.json"] = `{"password": {"env": "IN_CODE"}}`
	for _, name := range []string{"prod", "preprod"} {
		files["infra/"+name+"/main.tf"] += declared
	}
	missing := []string{"AWS_SECRET_ACCESS_KEY", "BY_DEFAULT", "IN_CODE", "IN_DOCUMENT", "INSTEAD"}
	f := newFleet(t, files, func(opts *reconciler.Options) {
		opts.Grants.Credentials = func(holdfast.Cluster, holdfast.RunKind) (protocol.Credentials, error) {
			return protocol.Credentials{Missing: missing}, nil
		}
		opts.Grants.SameCredential = func(name string, _ holdfast.RunKind, a, b holdfast.Cluster) bool {
			return name != "IN_DOCUMENT" || a.Project == b.Project
		}
	})
	f.look()
	for range 4 {
		a := f.claim()
		want := []string{"BY_DEFAULT", "IN_CODE", "IN_DOCUMENT", "INSTEAD"}
		if a.Cluster == "preprod" {
			want = []string{"BY_DEFAULT", "IN_CODE", "INSTEAD"}
		}
		if !slices.Equal(a.Missing, missing) || !slices.Equal(a.Referenced, want) {
			t.Errorf("%q misses %v, of which secret variables refer to %v, want %v", a.Cluster, a.Missing, a.Referenced, want)
		}
	}
	// What is at fault now refers to the same.
	f.repo.Commit(master, "break", map[string]string{"templates/web/template.yaml": "kind: Template\n"})
	f.look()
	if rec := f.cluster("web-a"); len(rec.Desired.Faults) == 0 || !slices.Equal(rec.Desired.SecretEnv, []string{"BY_DEFAULT"}) {
		t.Errorf("web-a refers to %v, faults %v", rec.Desired.SecretEnv, rec.Desired.Faults)
	}
}

func TestOneRunAtATimeForACluster(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.open(2, map[string]string{"infra/prod/more.tf": module("two")})
	first := f.claim()
	if second := f.claim(first.AttemptRef); second.Run != "" {
		t.Errorf("%s was handed out beside %s", second.Run, first.Run)
	}
	f.finish(first, planned(first))
	if second := f.claim(); second.Run == "" || second.Run == first.Run {
		t.Errorf("the second one is %q", second.Run)
	}
}

func TestLockThatAnotherHolds(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": ""})
	f.must(f.locks.Acquire(t.Context(), "clusters/prod", "somebody", time.Hour))
	f.look()
	if a := f.claim(); a.Run != "" {
		t.Error("a run was handed out without its lock")
	}
	f.must(f.locks.Release(t.Context(), "clusters/prod", "somebody"))
	a := f.claim()
	if holder, err := f.locks.Holder(t.Context(), "clusters/prod"); err != nil || !strings.HasPrefix(holder.Owner, a.Run) {
		t.Errorf("the lock is held by %+v, %v", holder, err)
	}
	f.finish(a, planned(a))
	if _, err := f.locks.Holder(t.Context(), "clusters/prod"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("the lock was not let go: %v", err)
	}
}

func TestRunsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { opts.Limits.Runs = 1 })
	f.look()
	first := f.claim()
	if second := f.claim(first.AttemptRef); second.Run != "" {
		t.Error("more runs than are allowed at once")
	}
	f.finish(first, planned(first))
	if f.claim().Run == "" {
		t.Error("the next one was not handed out")
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	f.r.Dispatcher().Drain()
	if f.claim().Run != "" {
		t.Error("a run was handed out during a shutdown")
	}
}

func TestLostAssignmentIsGivenAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": ""})
	f.look()
	lost := f.claim()
	if known := f.claim(lost.AttemptRef); known.Run != "" {
		t.Fatal("what the agent executes was handed out again")
	}
	if a := f.claim(); a.Run != "" { // it does not know the run: the answer got lost
		t.Fatal("it was handed out again without a break")
	}
	f.clock.Advance(time.Minute)
	again := f.claim()
	if again.Run != lost.Run || again.Attempt != 2 || again.Fence <= lost.Fence {
		t.Errorf("the second assignment is %+v, the first %+v", again.AttemptRef, lost.AttemptRef)
	}
	if err := f.r.Dispatcher().Finish(t.Context(), lost.AttemptRef, planned(lost)); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("the first attempt could still end: %v", err)
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files  map[string]string
		apply  bool
		locked bool // the engine holds the lock of its state
		want   holdfast.RunStatus
	}{
		"a plan":                             {files: twoClusters(), want: holdfast.RunRetrying},
		"a plan, with its state elsewhere":   {files: foreignState(), want: holdfast.RunRetrying},
		"an apply":                           {files: twoClusters(), apply: true, want: holdfast.RunInterrupted},
		"an apply that may still write":      {files: twoClusters(), apply: true, locked: true, want: holdfast.RunRunning},
		"an apply, with its state elsewhere": {files: foreignState(), apply: true, want: holdfast.RunRunning},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, tt.files)
			f.adopt()
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			if tt.apply {
				f.executeAll(good)
				f.merge(1, byMerge)
			}
			a := f.claim()
			if a.Kind.Writes() != tt.apply {
				t.Fatalf("claimed a %s", a.Kind)
			}
			if tt.locked {
				f.must(f.store.LockState(t.Context(), a.StateLocation, statelock.StateLock{ID: "l", Who: "engine", By: a.AttemptRef}))
			}
			f.must(f.r.Sweep(t.Context(), 0))
			f.clock.Advance(time.Hour) // a clock that jumps is nobody's death
			f.must(f.r.Sweep(t.Context(), 20*time.Second))
			if got := f.newest("prod").Status; got != holdfast.RunRunning {
				t.Fatalf("it is %s before its lease has ended", got)
			}
			f.must(f.r.Sweep(t.Context(), 20*time.Second))
			run, err := f.store.Run(t.Context(), a.Run)
			f.must(err)
			if run.Status != tt.want {
				t.Errorf("it is %s, want %s", run.Status, tt.want)
			}
			if run.Status != holdfast.RunRunning {
				return
			}
			// Nobody but its agent or a person may end it: that is said, and taken
			// back when it is heard of again.
			f.settle()
			if got := f.cluster("prod").Waiting; got != holdfast.ReasonAgentSilent {
				t.Errorf("the cluster waits for %q", got)
			}
			_, err = f.r.Dispatcher().Heartbeat(t.Context(), a.AttemptRef, protocol.Heartbeat{Fence: a.Fence, Step: "apply"})
			f.must(err)
			f.settle()
			if got := f.cluster("prod").Waiting; got != "" {
				t.Errorf("the cluster waits for %q after a sign of life", got)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": ""},
		func(opts *reconciler.Options) { opts.Limits.Retries = 2 })
	f.look()
	for attempt := 1; attempt <= 3; attempt++ {
		a := f.claim()
		if a.Attempt != attempt {
			t.Fatalf("attempt %d is %d", attempt, a.Attempt)
		}
		f.finish(a, transient(a))
		run := f.newest("prod")
		wait := 10 * time.Second << (attempt - 1)
		switch {
		case attempt <= 2 && (run.Status != holdfast.RunRetrying || run.Failure == nil || run.NotBefore.Sub(f.clock.Now()) > wait):
			t.Fatalf("after attempt %d it is %s until %s: %+v", attempt, run.Status, run.NotBefore, run.Failure)
		case attempt == 3 && run.Status != holdfast.RunErrored:
			t.Fatalf("after the last attempt it is %s", run.Status)
		case attempt <= 2 && f.claim().Run != "":
			t.Fatal("it was tried again too early")
		}
		f.clock.Advance(wait)
	}
	if got := f.cluster("prod").Waiting; got != holdfast.ReasonPlanFailed {
		t.Errorf("it waits for %q", got)
	}
}

func TestAnApplyGoesFirst(t *testing.T) {
	t.Parallel()
	f, plan := beforeApply(t)
	f.api("alice", holdfast.VerbApply, "prod")
	reply, err := f.r.Dispatcher().Heartbeat(t.Context(), plan.AttemptRef, protocol.Heartbeat{Fence: plan.Fence, Step: "plan"})
	if err != nil || reply.Cancel != holdfast.ReasonPreempted {
		t.Fatalf("the plan is told %+v, %v", reply, err)
	}
	f.finish(plan, protocol.Result{Status: holdfast.RunCanceled, Reason: holdfast.ReasonCanceled})
	apply := f.claim()
	if apply.Kind != holdfast.RunApply {
		t.Fatalf("claimed a %s", apply.Kind)
	}
	f.finish(apply, good(apply))
	if again := f.claim(); again.Run != plan.Run {
		t.Errorf("the plan that stepped back did not come again, but %q", again.Run)
	}
}

// beforeApply has the plan of a direct push to prod wait for a person, while that
// of pull request 2 runs.
func beforeApply(t *testing.T) (*fleet, protocol.Assignment) {
	t.Helper()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	f.executeAll(good)
	f.open(2, map[string]string{"infra/prod/more.tf": module("two")})
	plan := f.claim()
	if plan.Kind != holdfast.RunPlan {
		t.Fatalf("claimed a %s", plan.Kind)
	}
	return f, plan
}

// api carries out a command that comes through the API.
func (f *fleet) api(author string, verb holdfast.Verb, names ...string) holdfast.Command {
	f.t.Helper()
	return f.commands(holdfast.Command{Author: author, Verb: verb, Clusters: names, Shown: f.planned(verb, names)})
}

// planned are the runs whose plans clusters wait with, as holdfast names them to whoever
// asks for an apply or approves.
func (f *fleet) planned(verb holdfast.Verb, names []string) []string {
	f.t.Helper()
	if verb != holdfast.VerbApply && verb != holdfast.VerbApprove {
		return nil
	}
	shown := []string{}
	for _, name := range names {
		run, err := f.r.PlannedRun(f.t.Context(), name)
		if errors.Is(err, holdfast.ErrNotFound) {
			continue
		}
		f.must(err)
		if run != "" {
			shown = append(shown, run)
		}
	}
	return shown
}

// ofRun is a person's command about a run, as the API makes it.
func (f *fleet) ofRun(author string, verb holdfast.Verb, run holdfast.Run) holdfast.Command {
	f.t.Helper()
	return f.commands(holdfast.Command{
		Author: author, Verb: verb, PullRequest: run.PullRequest, Clusters: []string{run.Cluster},
		Shown: []string{run.ID}, ShownHead: run.Revision,
	})
}

// commands gives a command through the API.
func (f *fleet) commands(c holdfast.Command) holdfast.Command {
	f.t.Helper()
	c.Trusted = true
	c, err := f.r.Command(f.t.Context(), c)
	f.must(err)
	f.settle()
	return c
}

func TestACancelledPlanDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	f, plan := beforeApply(t)
	f.api("alice", holdfast.VerbApply, "prod") // asks it to step back
	f.command(2, "alice", "/holdfast cancel")
	f.finish(plan, protocol.Result{Status: holdfast.RunCanceled, Reason: holdfast.ReasonCanceled})
	run, err := f.store.Run(t.Context(), plan.Run)
	f.must(err)
	if run.Status != holdfast.RunCanceled || run.Reason != holdfast.ReasonCanceled {
		t.Errorf("it is %s (%s)", run.Status, run.Reason)
	}
}

func TestRedisGone(t *testing.T) {
	t.Parallel()
	broken := &brokenLocker{}
	f := reviewed(t)
	f.open(2, map[string]string{"infra/preprod/main.tf": module("two")})
	broken.Locker = f.locks
	f.restart(func(opts *reconciler.Options) { opts.Replica.Locker, opts.Limits.Lease = broken, time.Millisecond })
	plan := f.claim()
	broken.err = holdfast.ErrUnavailable
	beat := func(a protocol.Assignment) protocol.HeartbeatReply {
		reply, err := f.r.Dispatcher().Heartbeat(t.Context(), a.AttemptRef, protocol.Heartbeat{Fence: a.Fence})
		f.must(err)
		return reply
	}
	for reply := beat(plan); reply.Cancel != holdfast.ReasonLeaseLost; reply = beat(plan) {
		if reply.MayApply || reply.Cancel != "" {
			t.Fatalf("a plan is told %+v", reply)
		}
	}
	// As an agent that was told so ends it.
	f.finish(plan, protocol.Result{Status: holdfast.RunCanceled, Reason: holdfast.ReasonCanceled, Detail: string(holdfast.ReasonLeaseLost)})
	if run, err := f.store.Run(t.Context(), plan.Run); err != nil || run.Status != holdfast.RunRetrying {
		t.Errorf("it is %s (%s), want it tried again", run.Status, run.Reason)
	}

	broken.err = nil
	f.merge(1, byMerge)
	apply := f.claim()
	broken.err = holdfast.ErrUnavailable
	if reply := beat(apply); reply.MayApply || reply.Cancel != "" {
		t.Errorf("an apply is told %+v, want it not to begin, and to go on if it has", reply)
	}
	broken.err = nil
	f.must(f.locks.Release(t.Context(), apply.StateLocation, lockOwner(apply)))
	if reply := beat(apply); !reply.MayApply {
		t.Error("a lock that was forgotten is not taken again")
	}
}

func lockOwner(a protocol.Assignment) string { return a.Run + "/1" }

type brokenLocker struct {
	reconciler.Locker
	err error
}

func (b *brokenLocker) Renew(ctx context.Context, key, owner string, ttl time.Duration) error {
	if b.err != nil {
		return b.err
	}
	return b.Locker.Renew(ctx, key, owner, ttl)
}

func TestAResultIsTakenOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	a := f.claim()
	f.finish(a, planned(a))
	if err := f.r.Dispatcher().Finish(t.Context(), a.AttemptRef, failing(a)); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("the second one: %v", err)
	}
	run, err := f.store.Run(t.Context(), a.Run)
	f.must(err)
	if run.Status != holdfast.RunPlanned {
		t.Errorf("the run is %s", run.Status)
	}
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	a := f.claim()
	other := f.claim(a.AttemptRef)
	tests := map[string]struct {
		ref   holdfast.AttemptRef
		token string
		want  error
	}{
		"its own":           {a.AttemptRef, a.Token, nil},
		"of another run":    {a.AttemptRef, other.Token, holdfast.ErrUnauthorized},
		"none":              {a.AttemptRef, "", holdfast.ErrUnauthorized},
		"of no run":         {holdfast.AttemptRef{Run: "run-none", Attempt: 1, Fence: a.Fence}, a.Token, holdfast.ErrUnauthorized},
		"of a next attempt": {holdfast.AttemptRef{Run: a.Run, Attempt: 2, Fence: a.Fence}, a.Token, holdfast.ErrUnauthorized},
		"of another fence":  {holdfast.AttemptRef{Run: a.Run, Attempt: 1, Fence: a.Fence + 1}, a.Token, holdfast.ErrUnauthorized},
		"cut short":         {a.AttemptRef, a.Token[:len(a.Token)-1], holdfast.ErrUnauthorized},
	}
	for name, tt := range tests {
		_, err := f.r.Dispatcher().Authorize(t.Context(), tt.ref, tt.token)
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	f.finish(a, planned(a))
	if _, err := f.r.Dispatcher().Authorize(t.Context(), a.AttemptRef, a.Token); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("after its end: %v", err)
	}
}

// TestARunThatCannotBePreparedEnds: no attempt would mend it, and somebody has
// to hear of it.
func TestARunThatCannotBePreparedEnds(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.restart(func(opts *reconciler.Options) { opts.Sources.Git = pickyGit{opts.Sources.Git} })
	f.repo.Commit(master, "push", map[string]string{"infra/prod/big.bin": strings.Repeat("0123456789", 1000)})
	f.look()
	run := f.newest("prod")
	if run.Status != holdfast.RunErrored || run.Failure == nil || !strings.Contains(run.Failure.Summary, "infra/prod/big.bin") {
		t.Errorf("the run is %s: %+v", run.Status, run.Failure)
	}
	if got := f.cluster("prod").Waiting; got != holdfast.ReasonPlanFailed {
		t.Errorf("it waits for %q", got)
	}
	f.look()
	f.ask("prod")
	if got := len(f.runs("prod")); got > 3 {
		t.Errorf("%d runs were made", got)
	}
}

// pickyGit reads no file whose name ends in .bin.
type pickyGit struct{ reconciler.Git }

type pickyTree struct{ holdfast.Tree }

func (g pickyGit) Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error) {
	tree, err := g.Git.Tree(ctx, repo, revision)
	return pickyTree{tree}, err
}

func (t pickyTree) ReadFile(name string) ([]byte, error) {
	if strings.HasSuffix(name, ".bin") {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is too large")}
	}
	return t.Tree.ReadFile(name)
}
