package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// withEngine is good with an engine that the record remembers.
func withEngine(a protocol.Assignment) protocol.Result {
	result := good(a)
	result.EngineName, result.EngineVersion = "terraform", "1.9.8"
	return result
}

// built returns a fleet whose clusters were all applied, each by its own pull request.
func built(t *testing.T, files map[string]string) *fleet {
	t.Helper()
	f := newFleet(t, files)
	f.look()
	f.executeAll(unchanged)
	return f
}

// unchanged is the result of a plan that finds what is there as it should be.
func unchanged(a protocol.Assignment) protocol.Result {
	result := withEngine(a)
	result.Status = holdfast.RunNoChanges
	return result
}

func (f *fleet) comment(number int) string {
	f.t.Helper()
	for _, c := range f.forge.ours() {
		if c.PullRequest.Number == number && strings.HasPrefix(c.Body, "<!-- holdfast:pull-request") {
			return c.Body
		}
	}
	return ""
}

func TestARemovalIsPlannedReviewedAndDone(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	applied := f.cluster("prod").Applied
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete, "infra/prod/main.tf": gitserver.Delete})

	f.execute(func(a protocol.Assignment) protocol.Result {
		if a.Kind != holdfast.RunPlan || !a.Destroy || !a.Exact || a.Bundle != applied.Bundle || a.PinVersion != "1.9.8" ||
			a.Modules != applied.Run {
			t.Errorf("the pull request is planned as %+v, want a destruction of what was applied, with its engine", a)
		}
		return withEngine(a)
	})
	f.post()
	if body := f.comment(1); !strings.Contains(body, "destroy") {
		t.Errorf("the comment does not speak of destruction:\n%s", body)
	}
	plan := f.newest("prod")
	f.merge(1, byMerge)

	if rec := f.cluster("prod"); rec.Phase != holdfast.PhaseDeleting {
		t.Errorf("the phase is %s", rec.Phase)
	}
	a := f.claim()
	if a.Kind != holdfast.RunDestroy || !a.Exact || a.Bundle != applied.Bundle || len(a.Reviews) != 1 || a.Reviews[0].Run != plan.ID {
		t.Fatalf("the merge leads to %+v, want the destroy that was reviewed", f.newest("prod"))
	}
	f.finish(a, withEngine(a))
	f.post()
	rec := f.cluster("prod")
	if rec.Phase != holdfast.PhaseDeleted || rec.Deletion == nil || rec.Deletion.Run != a.Run || rec.Deletion.Reason != holdfast.ReasonDestroyed {
		t.Fatalf("the record after the destroy: phase %s, ending %+v", rec.Phase, rec.Deletion)
	}
	if got := f.forge.status(f.forge.get(1).MergeCommit, holdfast.ContextApply); got != holdfast.StatusSuccess {
		t.Errorf("the status of the merge is %q", got)
	}
	live, err := f.store.Clusters(t.Context(), holdfast.ClusterFilter{})
	f.must(err)
	if len(live) != 1 || live[0].Name != "preprod" {
		t.Errorf("%d clusters are listed", len(live))
	}
	f.look()
	f.expectRuns("prod", "plan no_changes", "plan planned", "destroy applied")

	// A document of the same name begins a new life.
	f.repo.Commit(master, "again", map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	f.look()
	rec = f.cluster("prod")
	if rec.Deletion != nil || rec.Phase != holdfast.PhasePending || rec.Applied.Run != "" {
		t.Errorf("the new life begins as %s, applied %q, ending %+v", rec.Phase, rec.Applied.Run, rec.Deletion)
	}
	f.expectRuns("prod", "plan no_changes", "plan planned", "destroy applied", "plan queued Unreviewed")
}

func TestProtectionIsThatOfWhatWasApplied(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", "deletion: {protected: true}")
	f := built(t, files)

	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(good)
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got == holdfast.StatusSuccess {
		t.Errorf("the plan status of a deletion that will not be done is %q", got)
	}
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonProtected || rec.Phase != holdfast.PhaseDeleting {
		t.Errorf("it is %s and waits for %q", rec.Phase, rec.Waiting)
	}
	f.command(1, "alice", "/holdfast apply")
	f.executeAll(good)
	f.expectRuns("prod", "plan no_changes")

	// Bringing it back unprotected in one push, then removing it.
	f.repo.Commit(master, "unprotect", map[string]string{"clusters/prod.yaml": document("prod", "deletion: {protected: false}")})
	f.look()
	if rec := f.cluster("prod"); rec.Applied.Document.Deletion.Protected || rec.Phase != holdfast.PhaseActive {
		t.Fatalf("brought back, it is %s, protected %t", rec.Phase, rec.Applied.Document.Deletion.Protected)
	}
	f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.look()
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonUnreviewed {
		t.Errorf("removed without a pull request it waits for %q", rec.Waiting)
	}
	f.expectRuns("prod", "plan no_changes", "plan planned")
}

// clusters are that many, none of which needs its own folder.
func many(n int) map[string]string {
	files := map[string]string{"README.md": "hello", "infra/any/main.tf": module("one")}
	for i := range n {
		name := fmt.Sprintf("c%02d", i)
		files["clusters/"+name+".yaml"] = strings.ReplaceAll(document(name), "infra/"+name, "infra/any")
	}
	return files
}

func TestPullRequestThatRemovesEverything(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete, "clusters/preprod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.post()
	if body := f.comment(1); !strings.Contains(body, "**Missing**") || !strings.Contains(body, "keep one") || strings.Contains(body, "merge to") {
		t.Errorf("the comment says:\n%s", body)
	}
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusFailure {
		t.Errorf("the status of the plan is %q", got)
	}
	f.merge(1, byMerge)
	f.executeAll(withEngine)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("prod waits for %q", rec.Waiting)
	}
}

func TestADestroyThatFails(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	fails := func(a protocol.Assignment) protocol.Result {
		result := withEngine(a)
		if a.Kind == holdfast.RunDestroy {
			result.Status, result.Applying = holdfast.RunErrored, true
			result.Failure = &holdfast.Failure{Summary: "DependencyViolation", Cause: "Conflict", Remaining: []string{"aws_vpc.main"}}
		}
		return result
	}
	tries := 0
	for range 10 {
		f.executeAll(func(a protocol.Assignment) protocol.Result {
			if a.Kind == holdfast.RunDestroy {
				tries++
			}
			return fails(a)
		})
		f.clock.Advance(10 * time.Minute)
		f.r.Resume(t.Context())
		f.settle()
	}
	rec := f.cluster("prod")
	if tries != 4 || rec.Waiting != holdfast.ReasonDestroyFailed || !strings.Contains(rec.WaitingDetail, "aws_vpc.main") || rec.Phase != holdfast.PhaseDeleting {
		t.Fatalf("after %d tries it is %s and waits for %q (%s), want 4 tries and a person", tries, rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	if run := f.newest("prod"); run.Kind != holdfast.RunPlan || !run.Destroy || run.Status != holdfast.RunPlanned {
		t.Errorf("what is left is shown by %s %s", run.Kind, run.Status)
	}
	f.command(1, "alice", "/holdfast apply")
	f.executeAll(withEngine)
	if got := f.cluster("prod").Phase; got != holdfast.PhaseDeleted {
		t.Errorf("approved and destroyed, it is %s", got)
	}
}

func TestAHistoryThatWasRewrittenProvesNothing(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	files := twoClusters()
	delete(files, "clusters/prod.yaml")
	f.repo.CommitOn(master, "", "another history", files)
	f.look()
	rec := f.cluster("prod")
	if rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("removed %t, it waits for %q (%s)", rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
	}
	// What is still there continues from the new history.
	f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": document("prod")})
	f.look()
	f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.look()
	if rec := f.cluster("prod"); !rec.Desired.Removed {
		t.Errorf("removed after it was brought back, it waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
}

func renamedDocument(name, from string) string {
	return strings.Replace(document(name), "{name: "+name+"}", "{name: "+name+", renamedFrom: "+from+"}", 1)
}

func TestRenameKeepsStateAndHistory(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(9, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(withEngine)
	f.merge(9, byMerge)
	apply := f.claim()
	_, err := f.store.PutState(t.Context(), holdfast.StateWrite{
		Location: "clusters/prod", By: apply.AttemptRef, Data: []byte(`{"version":4,"serial":7,"lineage":"x"}`),
	})
	f.must(err)
	f.finish(apply, withEngine(apply))
	f.post()
	old := f.cluster("prod")

	f.open(1, map[string]string{
		"clusters/prod.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("two"), "infra/prod/main.tf": gitserver.Delete,
	})
	if got := f.affected(1); !slices.Equal(got, []string{"live"}) {
		t.Fatalf("the pull request affects %v, want the new name alone", got)
	}
	f.execute(func(a protocol.Assignment) protocol.Result {
		if a.Cluster != "live" || a.StateLocation != "clusters/prod" || a.Destroy || a.PinVersion != "1.9.8" {
			t.Errorf("it is planned as %+v, want with the state of the old name", a)
		}
		return withEngine(a)
	})
	f.post()
	f.merge(1, byMerge)

	rec, gone := f.cluster("live"), f.cluster("prod")
	if gone.Phase != holdfast.PhaseDeleted || gone.Deletion == nil || gone.Deletion.To != "live" {
		t.Errorf("the old name is %s, ending %+v", gone.Phase, gone.Deletion)
	}
	if rec.Applied.Run != old.Applied.Run || rec.StateSerial != 7 {
		t.Errorf("the new name continues from run %q at serial %d, want %q at 7", rec.Applied.Run, rec.StateSerial, old.Applied.Run)
	}
	a := f.claim()
	if a.Kind != holdfast.RunApply || a.Cluster != "live" || a.StateLocation != "clusters/live" || len(a.Reviews) != 1 {
		t.Fatalf("the merge leads to %+v, pull request %+v", f.newest("live"), f.pullRequest(1))
	}
	f.finish(a, withEngine(a))
	f.look()
	f.expectRuns("prod", "plan no_changes", "plan planned", "apply applied")
	if rec := f.cluster("live"); rec.Phase != holdfast.PhaseActive || rec.Applied.Run != a.Run {
		t.Errorf("it is %s, applied by %s", rec.Phase, rec.Applied.Run)
	}
}

func TestARenameWaitsForWhatRuns(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	a := f.claim() // the apply of prod
	f.repo.Commit(master, "rename", map[string]string{
		"clusters/prod.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("two"),
	})
	f.look()
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Deletion != nil {
		t.Fatalf("the old name was taken for removed: %+v", rec.Desired)
	}
	if _, err := f.store.Cluster(t.Context(), "live"); err == nil {
		t.Error("the new name began without the state")
	}
	f.finish(a, good(a))
	f.look()
	if rec := f.cluster("live"); rec.Applied.Run != a.Run {
		t.Errorf("the new name continues from %q, want %q", rec.Applied.Run, a.Run)
	}
}

// taken is a store in which the new name of a cluster is not free.
type takenName struct{ reconciler.Store }

func (takenName) RenameCluster(context.Context, holdfast.ClusterRecord, holdfast.ClusterRecord, ...holdfast.Transition) error {
	return fmt.Errorf(`there is a state at "clusters/live": %w`, holdfast.ErrConflict)
}

func TestARenameToATakenName(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	store := f.opts.Store
	f.restart(func(o *reconciler.Options) { o.Store = takenName{store} })
	f.repo.Commit(master, "rename", map[string]string{
		"clusters/prod.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("one"),
	})
	f.look()
	rec := f.cluster("prod")
	if rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.WaitingDetail, `there is a state at "clusters/live"`) {
		t.Errorf("it waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
	version := rec.Version
	f.look()
	if again := f.cluster("prod"); again.Version != version {
		t.Error("looking again writes it again")
	}
	// The name is free, and the next look renames.
	f.restart(func(o *reconciler.Options) { o.Store = store })
	f.look()
	if rec := f.cluster("live"); rec.Applied.Run == "" {
		t.Errorf("live was not renamed: %+v", rec.Desired)
	}
}

func TestWhatIsNotARename(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/live.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("one")})
	if faults := f.pullRequest(1).Faults; len(faults) != 1 || !strings.Contains(faults.Error(), `renamedFrom is "prod", which is still defined`) {
		t.Errorf("the faults are %v", faults)
	}
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); rec.Phase != holdfast.PhaseActive || rec.Deletion != nil {
		t.Errorf("prod is %s", rec.Phase)
	}
	if rec := f.cluster("live"); rec.Waiting != holdfast.ReasonInvalid {
		t.Errorf("live waits for %q", rec.Waiting)
	}
}
