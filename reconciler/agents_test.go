package reconciler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/statelock"
)

// process is an agent's claim from one of its processes.
func process(name, folder string, executing ...holdfast.AttemptRef) protocol.ClaimRequest {
	return protocol.ClaimRequest{
		Agent: "agent", Process: name, Folder: folder, Host: "host-of-" + folder, Executing: executing,
		Kinds: []holdfast.RunKind{holdfast.RunPlan}, Isolation: "slots",
	}
}

// status is that of a run.
func (f *fleet) status(id string) holdfast.RunStatus {
	f.t.Helper()
	run, err := f.store.Run(f.t.Context(), id)
	f.must(err)
	return run.Status
}

// TestSecondAgentOfAnID: it is refused with words, gets nothing and ends nothing; it
// takes the place once the first one is silent, and ends nothing of it then either.
func TestSecondAgentOfAnID(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	d := f.r.Dispatcher()
	a, err := d.Claim(t.Context(), process("one", "here"))
	f.must(err)
	for _, refused := range []func() error{
		func() error { _, err := d.Claim(t.Context(), process("two", "there")); return err },
		func() error { return d.Present(t.Context(), process("two", "there")) },
	} {
		var taken *protocol.AgentTakenError
		if err := refused(); !errors.As(err, &taken) || !errors.Is(err, holdfast.ErrConflict) {
			t.Fatalf("the second one was not refused: %v", err)
		}
		for _, want := range []string{`"agent"`, "host-of-here", "--id", "stop the other"} {
			if !strings.Contains(taken.Error(), want) {
				t.Errorf("%q does not say %q", taken, want)
			}
		}
	}
	d.Age(time.Hour) // the first one was not heard of for long, but beats again
	_, err = d.Heartbeat(t.Context(), a.AttemptRef, protocol.Heartbeat{Step: "plan", Process: "one"})
	f.must(err)
	if err := d.Present(t.Context(), process("two", "there")); err == nil {
		t.Error("one whose run beats is not counted as living")
	}
	d.Age(time.Hour)
	f.must(d.Present(t.Context(), process("two", "there")))
	if got := f.status(a.Run); got != holdfast.RunRunning {
		t.Errorf("the run of the first one is %s", got)
	}
	if err := d.Present(t.Context(), process("one", "here", a.AttemptRef)); err == nil {
		t.Error("both have the id")
	}
	_, err = d.Heartbeat(t.Context(), a.AttemptRef, protocol.Heartbeat{Step: "plan", Process: "one"})
	f.must(err)
}

// TestASilentAgentIsNotCalledLiving: it is listed as silent from when its run is, also if a
// lease is shorter than an agent is otherwise believed to be there, and no longer once it is
// heard of.
func TestASilentAgentIsNotCalledLiving(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")},
		func(o *reconciler.Options) { o.Limits.Lease = 6 * time.Second })
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	a := f.claim()
	f.must(f.store.LockState(t.Context(), a.StateLocation, statelock.StateLock{ID: "l", Who: "engine", By: a.AttemptRef}))
	living := func() bool {
		t.Helper()
		list, err := f.r.Dispatcher().Agents(t.Context())
		f.must(err)
		if len(list) != 1 || !slices.Equal(list[0].Runs, []string{a.Run}) {
			t.Fatalf("the agents are %+v", list)
		}
		return list[0].Living
	}
	f.must(f.r.Sweep(t.Context(), 0))
	f.must(f.r.Sweep(t.Context(), 5*time.Second))
	if !living() {
		t.Error("it is silent before its lease has ended")
	}
	f.must(f.r.Sweep(t.Context(), 5*time.Second))
	if run := f.newest("prod"); run.Reason != holdfast.ReasonAgentSilent {
		t.Fatalf("the run says %q", run.Reason)
	}
	if living() {
		t.Error("its run says that it is silent, and the list that it is living")
	}
	if other := f.claim(a.AttemptRef); other.Run != "" || !living() {
		t.Error("it has called, and is not living")
	}
}

// TestAgentStartsAgain: the next process in the same folder takes over at once. What it
// no longer knows ends when it does not beat, and not before.
func TestAgentStartsAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	d := f.r.Dispatcher()
	first, err := d.Claim(t.Context(), process("one", "here"))
	f.must(err)
	second, err := d.Claim(t.Context(), process("one", "here", first.AttemptRef))
	f.must(err)
	if first.Run == "" || second.Run == "" {
		t.Fatal("two runs are needed")
	}
	f.must(d.Present(t.Context(), process("two", "here", first.AttemptRef)))
	if got := f.status(second.Run); got != holdfast.RunRunning {
		t.Fatalf("a run that may still be executed is %s", got)
	}
	var taken *protocol.AgentTakenError
	if err := d.Present(t.Context(), process("one", "here", second.AttemptRef)); !errors.As(err, &taken) || !taken.Same {
		t.Errorf("the process that was replaced continues: %v", err)
	} else if !strings.Contains(taken.Error(), "copy of this folder") {
		t.Errorf("%q does not say what is wrong", taken)
	}
	d.Age(time.Hour)
	_, err = d.Heartbeat(t.Context(), second.AttemptRef, protocol.Heartbeat{Step: "plan", Process: "one"})
	f.must(err)
	f.must(d.Present(t.Context(), process("two", "here", first.AttemptRef)))
	if got := f.status(second.Run); got != holdfast.RunRunning {
		t.Fatalf("a run whose heartbeat is fresh is %s", got)
	}
	d.Age(time.Hour)
	f.must(d.Present(t.Context(), process("two", "here", first.AttemptRef)))
	if got := f.status(second.Run); got == holdfast.RunRunning {
		t.Error("a run of which nothing is heard is believed to be with an agent that does not know it")
	}
	if got := f.status(first.Run); got != holdfast.RunRunning {
		t.Errorf("a run that the agent executes is %s", got)
	}
}

// TestAssignmentThatNeverArrived: the very process that it was made for does not
// know it, and nobody waits for a lease to end.
func TestAssignmentThatNeverArrived(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	d := f.r.Dispatcher()
	lost, err := d.Claim(t.Context(), process("one", "here"))
	f.must(err)
	f.must(d.Present(t.Context(), process("one", "here")))
	if got := f.status(lost.Run); got == holdfast.RunRunning {
		t.Error("it is believed to be executed")
	}
}

// TestStrangersEndNothing: who shows another folder or none, or whose token is bound
// to other kinds or projects, takes no living agent's place, and ends none of its runs
// when it is silent. Not even the next process in its folder ends an apply that holds
// the lock of its state.
func TestStrangersEndNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	d := f.r.Dispatcher()
	d.Age(time.Hour) // the one that has planned is gone
	applier := process("one", "here")
	applier.Kinds = []holdfast.RunKind{holdfast.RunApply}
	apply, err := d.Claim(t.Context(), applier)
	f.must(err)
	if apply.Kind != holdfast.RunApply {
		t.Fatalf("claimed a %s", apply.Kind)
	}
	of := func(claim protocol.ClaimRequest, kind holdfast.RunKind, projects ...string) protocol.ClaimRequest {
		claim.Kinds, claim.Bound, claim.Projects = []holdfast.RunKind{kind}, []holdfast.RunKind{kind}, projects
		return claim
	}
	for name, stranger := range map[string]protocol.ClaimRequest{
		"neither process nor folder": of(process("", ""), holdfast.RunApply),
		"no folder":                  of(process("two", ""), holdfast.RunApply),
		"the same process elsewhere": of(process("one", "there"), holdfast.RunApply),
		"another folder":             of(process("two", "there"), holdfast.RunApply),
	} {
		var taken *protocol.AgentTakenError
		if err := d.Present(t.Context(), stranger); !errors.As(err, &taken) {
			t.Errorf("%s: it took the place of the living one: %v", name, err)
		}
		if heard := d.Heard(); len(heard) != 1 || !slices.Equal(heard[0].Kinds, applier.Kinds) {
			t.Errorf("%s: agents are now %+v", name, heard)
		}
	}
	saysTwice := func(stranger protocol.ClaimRequest) {
		t.Helper()
		for range 2 {
			d.Age(time.Hour)
			f.must(d.Present(t.Context(), stranger))
		}
		if got := f.status(apply.Run); got != holdfast.RunRunning {
			t.Fatalf("a run of a silent agent is %s after a word of %+v", got, stranger)
		}
	}
	for _, stranger := range []protocol.ClaimRequest{
		of(process("", ""), holdfast.RunApply), of(process("two", ""), holdfast.RunApply), of(process("two", "there"), holdfast.RunApply),
		of(process("two", "here"), holdfast.RunPlan), of(process("three", "here"), holdfast.RunApply, "another-project"),
	} {
		saysTwice(stranger)
	}
	lockID := "l"
	f.must(f.store.LockState(t.Context(), apply.StateLocation, statelock.StateLock{ID: lockID, Who: "engine", By: apply.AttemptRef}))
	saysTwice(of(process("four", "here"), holdfast.RunApply))
	f.must(f.store.UnlockState(t.Context(), apply.StateLocation, lockID, apply.AttemptRef))
	f.must(d.Present(t.Context(), of(process("four", "here"), holdfast.RunApply)))
	if got := f.status(apply.Run); got == holdfast.RunRunning {
		t.Error("a run that its agent does not know, and that writes nothing, continues")
	}
}

// TestForksArePlannedWithIsolationOnly: a plan of a fork that is queued when isolation is
// taken away is not handed to an agent without any. Others are.
func TestForksArePlannedWithIsolationOnly(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(o *reconciler.Options) { o.Sources.Repositories[0].Forks = true })
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")}, func(pr *holdfast.PullRequest) { pr.Fork = true })
	f.open(2, map[string]string{"infra/preprod/main.tf": module("two")})
	f.restart(func(o *reconciler.Options) { o.Sources.Repositories[0].Forks = false })
	bare := process("one", "here")
	bare.Isolation = protocol.IsolationNone
	own, err := f.r.Dispatcher().Claim(t.Context(), bare)
	if err != nil || own.Cluster != "preprod" {
		t.Errorf("without isolation: a %s of %q, %v", own.Kind, own.Cluster, err)
	}
	if a, err := f.r.Dispatcher().Claim(t.Context(), bare); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("without isolation: a %s of %q, %v", a.Kind, a.Cluster, err)
	}
	apart := process("two", "there")
	apart.Agent = "another"
	if a, err := f.r.Dispatcher().Claim(t.Context(), apart); err != nil || a.Cluster != "prod" {
		t.Errorf("with isolation: a %s of %q, %v", a.Kind, a.Cluster, err)
	}
}

// spoiled is a store in which the first pull request can become unreadable.
type spoiled struct {
	reconciler.Store
	spoiled atomic.Bool
}

func (s *spoiled) PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error) {
	if s.spoiled.Load() && ref == onePR {
		return holdfast.PullRequestRecord{}, errors.New("unseal: message authentication failed")
	}
	return s.Store.PullRequest(ctx, ref)
}

// TestForksKeepNoOthersWaiting: a plan of a fork that an agent does not get is not in the
// way of other plans of the same cluster, nor is one whose pull request cannot be read.
func TestForksKeepNoOthersWaiting(t *testing.T) {
	t.Parallel()
	for name, unreadable := range map[string]bool{"a fork": false, "a pull request that cannot be read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &spoiled{}
			f := newFleet(t, twoClusters(), func(o *reconciler.Options) {
				o.Sources.Repositories[0].Forks = true
				store.Store, o.Store = o.Store, store
			})
			f.adopt()
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")}, func(pr *holdfast.PullRequest) { pr.Fork = !unreadable })
			f.open(2, map[string]string{"infra/prod/main.tf": module("three")})
			store.spoiled.Store(unreadable)
			bare := process("one", "here")
			bare.Agent = "another"
			bare.Isolation = protocol.IsolationNone
			a, err := f.r.Dispatcher().Claim(t.Context(), bare)
			f.must(err)
			store.spoiled.Store(false)
			run, err := f.store.Run(t.Context(), a.Run)
			f.must(err)
			if got := run.PullRequest.Number; got != 2 {
				t.Errorf("the agent got a plan of pull request %d, want 2", got)
			}
		})
	}
}

// TestRunsOfRefusedAgentsSayWhy: it is the isolation of the only agent that keeps them
// waiting.
func TestRunsOfRefusedAgentsSayWhy(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(o *reconciler.Options) { o.Grants.Isolation = []string{"slots", "landlock"} })
	f.look()
	weak := process("one", "here")
	weak.Isolation = "users"
	if _, err := f.r.Dispatcher().Claim(t.Context(), weak); !errors.Is(err, holdfast.ErrForbidden) {
		t.Errorf("a weak agent's claim: %v", err)
	}
	says := func(want string) {
		t.Helper()
		f.clock.Advance(time.Minute)
		f.must(f.r.Sweep(t.Context(), 0))
		if got := f.newest("prod"); !strings.Contains(got.Detail, want) || (got.Detail != "") != (want != "") {
			t.Errorf("its run says %q, want %q", got.Detail, want)
		}
	}
	f.r.Dispatcher().Age(time.Minute) // for long enough to know who is there
	f.must(f.r.Dispatcher().Present(t.Context(), weak))
	says("isolation users is weaker than the server demands (slots, landlock)")
	weak.Isolation = "landlock"
	f.must(f.r.Dispatcher().Present(t.Context(), weak))
	says("")
}

// unreadPulls is a store that cannot read pull requests one by one.
type unreadPulls struct{ reconciler.Store }

func (unreadPulls) PullRequest(context.Context, holdfast.PullRequestRef) (holdfast.PullRequestRecord, error) {
	return holdfast.PullRequestRecord{}, errDamaged
}

// TestPlansOfAnUnreadablePullRequestSayWhy: it may be from a fork, and the only agent isolates
// no engines. The plan goes to one that does.
func TestPlansOfAnUnreadablePullRequestSayWhy(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.restart(func(opts *reconciler.Options) { opts.Store = unreadPulls{f.store} })
	f.r.Dispatcher().Age(time.Minute) // for long enough to know who is there
	f.clock.Advance(time.Minute)
	says := func(when, want string) {
		t.Helper()
		f.must(f.r.Dispatcher().Sweep(t.Context()))
		queue, err := f.r.Dispatcher().Queue(t.Context(), holdfast.QueueFilter{Limit: 10})
		f.must(err)
		if len(queue) != 1 {
			t.Fatalf("%s, %d runs are in the queue", when, len(queue))
		}
		if is := queue[0]; (is.Reason == holdfast.ReasonNoAgent) != (want != "") || !strings.Contains(is.Detail, want) {
			t.Errorf("%s, the plan waits for %q (%s)", when, is.Reason, is.Detail)
		}
	}
	weak, strong := process("weak", "here"), process("strong", "there")
	weak.Agent, weak.Isolation, strong.Agent = "weak", protocol.IsolationNone, "strong"
	weak.Kinds, strong.Kinds = nil, nil
	for range 2 {
		if a, err := f.r.Dispatcher().Claim(t.Context(), weak); !errors.Is(err, holdfast.ErrNotFound) {
			t.Fatalf("an agent that isolates no engines got %s, %v", a.Run, err)
		}
		says("with a weak agent", "cannot be read, and may be from a fork: it needs an agent that isolates engines")
	}
	f.must(f.r.Dispatcher().Present(t.Context(), strong))
	says("with an agent that isolates engines", "")
	if a, err := f.r.Dispatcher().Claim(t.Context(), strong); err != nil || a.Kind != holdfast.RunPlan || a.Cluster != "prod" {
		t.Errorf("it got a %s of %q, %v", a.Kind, a.Cluster, err)
	}
}

// TestAgentsAreListed with what they execute and when they were heard of.
func TestAgentsAreListed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	d := f.r.Dispatcher()
	a, err := d.Claim(t.Context(), process("one", "here"))
	f.must(err)
	agents, err := d.Agents(t.Context())
	f.must(err)
	if len(agents) != 1 {
		t.Fatalf("agents: %+v", agents)
	}
	got := agents[0]
	if got.ID != "agent" || !got.Living || got.Isolation != "slots" || got.Host != "host-of-here" ||
		!slices.Equal(got.Runs, []string{a.Run}) || !slices.Equal(got.Kinds, []holdfast.RunKind{holdfast.RunPlan}) || got.SeenAt.IsZero() {
		t.Errorf("agent: %+v", got)
	}
	d.Age(time.Hour)
	if heard := d.Heard(); len(heard) != 1 || heard[0].Living {
		t.Errorf("after an hour without a word: %+v", heard)
	}
	d.Age(24 * time.Hour)
	if heard := d.Heard(); len(heard) != 0 {
		t.Errorf("after a day without a word: %+v", heard)
	}
	if agents, err = d.Agents(t.Context()); err != nil || len(agents) != 1 || !slices.Equal(agents[0].Runs, []string{a.Run}) {
		t.Errorf("one that has a run by the records is not listed: %+v %v", agents, err)
	}
}

// TestNoAgentIsSaid: of a plan, and of a merged apply, that no living agent takes; and
// it is taken back when one does.
func TestNoAgentIsSaid(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	shows := func(context, want string) {
		t.Helper()
		f.clock.Advance(11 * time.Second) // comments tell of progress as often as that
		f.lookAt(1)
		f.settle()
		f.post()
		body, status := "", false
		if ours := f.forge.ours(); len(ours) > 0 {
			body = ours[0].Body
		}
		for _, s := range f.forge.statuses {
			status = status || s.Context == context && strings.Contains(s.Description, "no living agent for prod")
		}
		if told := want != ""; strings.Contains(body, "no running agent executes such runs") != told || status != told {
			t.Errorf("the status says so: %t; the comment:\n%s", status, body)
		}
		if got := f.newest("prod"); (got.Reason == holdfast.ReasonNoAgent) != (want != "") || (got.Detail != "") != (want != "") {
			t.Errorf("the run says %q: %s", got.Reason, got.Detail)
		}
	}
	f.must(f.r.Sweep(t.Context(), time.Hour))
	shows(holdfast.ContextPlan, "") // it was queued just now
	f.clock.Advance(time.Minute)
	agent := func(id string, kind holdfast.RunKind, projects ...string) {
		t.Helper()
		f.must(f.r.Dispatcher().Present(t.Context(), protocol.ClaimRequest{
			Agent: id, Process: id, Folder: id, Kinds: []holdfast.RunKind{kind}, Projects: projects,
		}))
	}
	agent("applies", holdfast.RunApply)
	agent("elsewhere", holdfast.RunPlan, "another-project")
	f.must(f.r.Sweep(t.Context(), 0))
	shows(holdfast.ContextPlan, string(holdfast.ReasonNoAgent))
	agent("plans", holdfast.RunPlan)
	f.must(f.r.Sweep(t.Context(), 0))
	shows(holdfast.ContextPlan, "")

	f.executeAll(good)
	f.merge(1, byMerge)
	f.must(f.r.Sweep(t.Context(), time.Hour))
	f.clock.Advance(time.Minute)
	f.must(f.r.Sweep(t.Context(), 0))
	shows(holdfast.ContextApply, string(holdfast.ReasonNoAgent))
	if got := f.cluster("prod").Waiting; got != holdfast.ReasonNoAgent {
		t.Errorf("the cluster waits for %q", got)
	}
	f.executeAll(good)
	f.settle()
	if got := f.cluster("prod"); got.Waiting != "" || f.newest("prod").Status != holdfast.RunApplied {
		t.Errorf("the cluster waits for %q, its run is %s", got.Waiting, f.newest("prod").Status)
	}
}

// TestUnlockAfterAnAgentHasStartedAgain: a run that nobody executes does not count as
// alive until its lease ends, but may be beating for a moment.
func TestUnlockAfterAnAgentHasStartedAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	d := f.r.Dispatcher()
	a, err := d.Claim(t.Context(), process("one", "here"))
	f.must(err)
	alive := func() bool {
		_, _, alive, err := f.r.Lock(t.Context(), a.Cluster)
		f.must(err)
		return alive
	}
	f.clock.Advance(12 * time.Second)
	if !alive() {
		t.Error("an agent that was not heard of for a moment is dead")
	}
	f.must(d.Present(t.Context(), process("two", "here")))
	if alive() {
		t.Error("the run of a process that another one has replaced is alive")
	}
	_, err = d.Heartbeat(t.Context(), a.AttemptRef, protocol.Heartbeat{Step: "plan", Process: "one"})
	f.must(err)
	if !alive() {
		t.Error("a run that beats is dead")
	}
	f.clock.Advance(12 * time.Second)
	f.must(f.r.Unlock(t.Context(), a.Cluster, "root", false))
	if got := f.status(a.Run); got == holdfast.RunRunning {
		t.Errorf("the run is %s", got)
	}
}
