package reconciler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// suspends are the ways to suspend prod, and to let it continue.
func suspends() map[string]func(f *fleet, suspended bool) error {
	return map[string]func(f *fleet, suspended bool) error{
		"a cluster": func(f *fleet, suspended bool) error {
			f.suspend("prod", suspended, "alice", "")
			return nil
		},
		"its project": func(f *fleet, suspended bool) error {
			return f.r.SuspendAll(f.t.Context(), holdfast.Suspension{Project: "p", By: "alice", Reason: "moving"}, suspended)
		},
		"everything": func(f *fleet, suspended bool) error {
			return f.r.SuspendAll(f.t.Context(), holdfast.Suspension{By: "alice", Reason: "moving"}, suspended)
		},
	}
}

// suspend suspends a cluster, or resumes it, and checks that the record which is returned
// says so.
func (f *fleet) suspend(cluster string, suspended bool, actor, reason string) {
	f.t.Helper()
	rec, err := f.r.Suspend(f.t.Context(), cluster, suspended, actor, reason)
	f.must(err)
	if rec.Name != cluster || rec.Suspended != suspended {
		f.t.Errorf("the record that is returned is of %q, suspended: %t", rec.Name, rec.Suspended)
	}
}

func TestSuspend(t *testing.T) {
	t.Parallel()
	for name, suspend := range suspends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t)
			f.merge(1, byMerge)
			apply := f.newest("prod")
			check := f.queueDrift("prod")
			f.must(suspend(f, true))
			f.settle()
			f.expectRun(apply.ID, holdfast.RunCanceled, holdfast.ReasonSuspended)
			f.expectRun(check, holdfast.RunCanceled, holdfast.ReasonSuspended)
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonSuspended || rec.Phase != holdfast.PhaseActive {
				t.Fatalf("it waits for %q, and is %s", rec.Waiting, rec.Phase)
			}
			if c := f.api("alice", holdfast.VerbApply, "prod"); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, "suspended") {
				t.Errorf("an apply is %s: %s", c.Status, c.Reply)
			}
			f.open(2, map[string]string{"infra/prod/more.tf": module("three")})
			if run := f.execute(planned); run.Kind != plan || run.PullRequest.Number != 2 {
				t.Fatalf("the plan of a pull request does not go on: %+v", run)
			}
			f.mergeUnnoticed(2, byMerge)
			f.look()
			if a := f.claim(); a.Run != "" {
				t.Fatalf("a %s of %s was handed out", a.Kind, a.Cluster)
			}
			f.must(suspend(f, false))
			f.settle()
			if run := f.newest("prod"); run.Kind != holdfast.RunApply || run.Status != holdfast.RunQueued || len(run.Reviews) != 2 {
				t.Errorf("after it was resumed: %s %s, %d reviews", run.Kind, run.Status, len(run.Reviews))
			}
			f.execute(good)
			if rec := f.cluster("prod"); rec.Waiting != "" || rec.Phase != holdfast.PhaseActive {
				t.Errorf("it waits for %q, and is %s", rec.Waiting, rec.Phase)
			}
		})
	}
}

func TestSuspensionLeavesAloneWhatRuns(t *testing.T) {
	t.Parallel()
	for name, suspend := range suspends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t)
			f.merge(1, byMerge)
			a := f.claim()
			f.must(suspend(f, true))
			f.settle()
			reply, err := f.r.Dispatcher().Heartbeat(t.Context(), a.AttemptRef, protocol.Heartbeat{Fence: a.Fence, Step: "apply"})
			if err != nil || reply.Cancel != "" || !reply.MayApply {
				t.Fatalf("a running apply is told %+v, %v", reply, err)
			}
			f.finish(a, good(a))
			if rec := f.cluster("prod"); rec.Applied.Run != a.Run {
				t.Error("its end was not recorded")
			}
		})
	}
}

// TestSuspensionStopsAClaim: another replica has suspended, and nobody has
// decided since.
func TestSuspensionStopsAClaim(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	check := f.queueDrift("preprod")
	f.must(f.store.Suspend(t.Context(), holdfast.Suspension{By: "bob", At: f.clock.Now()}))
	if a := f.claim(); a.Run != "" {
		t.Fatalf("a %s was handed out", a.Kind)
	}
	f.settle()
	f.expectRun(f.newest("prod").ID, holdfast.RunCanceled, holdfast.ReasonSuspended)
	f.expectRun(check, holdfast.RunCanceled, holdfast.ReasonSuspended)
	if got := f.cluster("prod").Waiting; got != holdfast.ReasonSuspended {
		t.Errorf("it waits for %q", got)
	}
}

// lateStore tells of a suspension that has just ended.
type lateStore struct {
	reconciler.Store
	late int
}

func (s *lateStore) Suspensions(ctx context.Context) ([]holdfast.Suspension, error) {
	if s.late > 0 {
		s.late--
		return []holdfast.Suspension{{By: "alice"}}, nil
	}
	return s.Store.Suspensions(ctx)
}

// TestResumeIsNotMissed by a decision that was made while people resumed.
func TestResumeIsNotMissed(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.restart(func(opts *reconciler.Options) { opts.Store = &lateStore{Store: f.store, late: 1} })
	f.merge(1, byMerge)
	f.settle()
	if run := f.newest("prod"); run.Kind != holdfast.RunApply || run.Status != holdfast.RunQueued {
		t.Errorf("nothing continues: %s %s, and it waits for %q", run.Kind, run.Status, f.cluster("prod").Waiting)
	}
}

// A document that gives a cluster another project does not take it out of the suspension
// of the one that it was applied in.
func TestASuspendedProjectIsNotLeft(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	all := func(suspended bool) {
		f.must(f.r.SuspendAll(t.Context(), holdfast.Suspension{Project: "p", By: "alice"}, suspended))
		f.settle()
	}
	all(true)
	leave := strings.Replace(document("prod"), "project: p", "project: q", 1)
	f.open(1, map[string]string{"clusters/prod.yaml": leave})
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonSuspended || rec.Applied.Document.Project != "p" {
		t.Fatalf("merged, prod waits for %q, applied in project %q", rec.Waiting, rec.Applied.Document.Project)
	}
	f.open(2, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(2, byMerge)
	if a := f.claim(); a.Run != "" {
		t.Fatalf("a %s of %s was handed out", a.Kind, a.Cluster)
	}
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonSuspended {
		t.Errorf("the next merge waits for %q", rec.Waiting)
	}
	all(false)
	if run := f.execute(good); run.Kind != apply || run.Status != holdfast.RunApplied {
		t.Errorf("resumed, it goes on with: %s %s", run.Kind, run.Status)
	}
	if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.Document.Project != "q" {
		t.Errorf("resumed, prod waits for %q, applied in project %q", rec.Waiting, rec.Applied.Document.Project)
	}
}

func TestSuspensionOfDestroys(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.must(f.r.SuspendAll(t.Context(), holdfast.Suspension{By: "alice"}, true))
	f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.look()
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonSuspended || rec.Phase != holdfast.PhaseDeleting {
		t.Errorf("it waits for %q, and is %s", rec.Waiting, rec.Phase)
	}
	for _, run := range f.runs("prod") {
		if strings.HasPrefix(run, string(holdfast.RunDestroy)) {
			t.Errorf("there is a %s", run)
		}
	}
}

func TestSuspendAllIsHeld(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	all := func(project string, suspended bool) error {
		return f.r.SuspendAll(t.Context(), holdfast.Suspension{Project: project, By: "alice", Reason: "moving"}, suspended)
	}
	if err := all("typo", true); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("a project without clusters: %v", err)
	}
	if err := all("p", false); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("a project that continues already: %v", err)
	}
	f.must(all("p", true))
	f.must(all("", true))
	f.must(all("p", false))
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonSuspended || rec.WaitingDetail != "all clusters are suspended" {
		t.Errorf("it waits for %q: %s", rec.Waiting, rec.WaitingDetail)
	}
	f.must(all("", false))
	f.settle()
	if got := f.cluster("prod").Waiting; got == holdfast.ReasonSuspended {
		t.Error("it does not go on")
	}
	entries, err := f.store.AuditTrail(t.Context(), "", 100)
	f.must(err)
	var trail []string
	for _, e := range slices.Backward(entries) {
		if strings.HasSuffix(e.Action, ".suspend") || strings.HasSuffix(e.Action, ".resume") {
			trail = append(trail, strings.Join([]string{e.Actor, e.Action, e.Object, e.Detail}, " "))
		}
	}
	want := []string{
		"alice project.suspend p moving", "alice fleet.suspend fleet moving",
		"alice project.resume p moving", "alice fleet.resume fleet moving",
	}
	if !slices.Equal(trail, want) {
		t.Errorf("the audit trail says %q", trail)
	}
}

// queueDrift queues a drift check.
func (f *fleet) queueDrift(cluster string) string {
	f.t.Helper()
	rec := f.cluster(cluster)
	now := f.clock.Now()
	run := holdfast.Run{
		ID: holdfast.NewID("run", now), Cluster: cluster, Kind: holdfast.RunDrift, Status: holdfast.RunQueued,
		Reason:    holdfast.ReasonSchedule,
		CreatedAt: now,
		RunSpec: holdfast.RunSpec{
			Document: rec.Applied.Document, SourceDigest: rec.Applied.SourceDigest,
			Bundle: rec.Applied.Bundle, StateLocation: "clusters/" + cluster,
		},
	}
	f.must(f.store.CreateRun(f.t.Context(), run))
	return run.ID
}

func (f *fleet) expectRun(id string, status holdfast.RunStatus, reason holdfast.Reason) {
	f.t.Helper()
	run, err := f.store.Run(f.t.Context(), id)
	f.must(err)
	if run.Status != status || run.Reason != reason {
		f.t.Errorf("the %s %s is %s (%s), want %s (%s)", run.Kind, id, run.Status, run.Reason, status, reason)
	}
}

// TestARenameOfWhatIsSuspended: it stays suspended, and who has suspended it, when and
// why stays known.
func TestARenameOfWhatIsSuspended(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.suspend("prod", true, "alice", "incident 7")
	was := f.cluster("prod")
	f.repo.Commit(master, "rename", map[string]string{
		"clusters/prod.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("one"),
	})
	f.look()
	is := f.cluster("live")
	if !is.Suspended || is.SuspendedBy != "alice" || is.SuspendedWhy != "incident 7" || is.SuspendedAt != was.SuspendedAt {
		t.Errorf("suspended %t by %q at %v: %q", is.Suspended, is.SuspendedBy, is.SuspendedAt, is.SuspendedWhy)
	}
}

// What an apply has begun with, and not ended well, is in the state: its project counts
// as that of what was applied does.
func TestAHalfDoneClusterDoesNotLeaveASuspension(t *testing.T) {
	t.Parallel()
	in := func(project string) string {
		return strings.Replace(document("prod"), "project: p", "project: "+project, 1)
	}
	for name, tt := range map[string]struct {
		begin         func(*fleet)
		suspended, to string
	}{
		"made for the first time": {func(f *fleet) {
			f.look()
			f.executeAll(good)
			f.api("alice", holdfast.VerbApply, "prod")
			f.execute(failing)
		}, "p", "q"},
		"moved, and moved back": {func(f *fleet) {
			f.adopt()
			f.open(1, map[string]string{"clusters/prod.yaml": in("q"), "infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.merge(1, byMerge)
			f.execute(failing)
		}, "q", "p"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			tt.begin(f)
			f.executeAll(good)
			f.must(f.r.SuspendAll(t.Context(), holdfast.Suspension{Project: tt.suspended, By: "alice"}, true))
			f.settle()
			f.open(2, map[string]string{"clusters/prod.yaml": in(tt.to), "infra/prod/main.tf": module("three")})
			f.executeAll(good)
			f.merge(2, byMerge)
			if a := f.claim(); a.Kind == holdfast.RunApply {
				t.Fatalf("it was handed out: %v", f.runs("prod"))
			}
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonSuspended {
				t.Errorf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
			f.must(f.r.SuspendAll(t.Context(), holdfast.Suspension{Project: tt.suspended, By: "alice"}, false))
			f.settle()
			f.executeAll(good)
			f.waitsForNothing("prod")
		})
	}
}
