package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// halfMade returns a fleet whose prod has a state with what its first apply has
// made before it failed.
func halfMade(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, twoClusters())
	f.look()
	f.executeAll(withEngine)
	f.apply("prod")
	a := f.claim()
	f.putState(a, `{"version":4,"serial":7,"lineage":"x","resources":[{}]}`)
	f.finish(a, failing(a))
	f.executeAll(withEngine)
	return f
}

// A removal that was proven once has to be proven by each later head, too: the
// document may be in a file that cannot be read.
func TestARemovalIsProvenByEachHead(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	if run := f.newest("prod"); run.Kind != holdfast.RunDestroy || run.Status != holdfast.RunQueued {
		t.Fatalf("the merge leads to a %s that is %s", run.Kind, run.Status)
	}
	f.repo.Commit(master, "bring it back, badly", map[string]string{"clusters/prod-eu.yaml": document("prod") + "  : ["})
	f.look()
	if a := f.claim(); a.Run != "" {
		t.Errorf("the %s of %s begins", a.Kind, a.Cluster)
	}
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("prod waits for %q", rec.Waiting)
	}
	f.repo.Commit(master, "not at all", map[string]string{"clusters/prod-eu.yaml": gitserver.Delete})
	f.look()
	if a := f.claim(); a.Kind != holdfast.RunDestroy {
		t.Errorf("proven again, and reviewed, it leads to %s %q", a.Kind, f.cluster("prod").Waiting)
	}
}

// A confirmation in a pull request that has changed a cluster does not count for another
// one that has removed it since.
func TestAWordAboutAnotherPullRequestDestroysNothing(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", "apply: {onMerge: false}")
	f := built(t, files)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	f.open(2, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(2, byMerge)
	f.post()
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonManual {
		t.Fatalf("prod waits for %q", rec.Waiting)
	}
	if c := f.command(1, "alice", "/holdfast apply"); c.Status != holdfast.CommandRefused {
		t.Errorf("%s: %s", c.Status, c.Reply)
	}
	if a := f.claim(); a.Run != "" {
		t.Errorf("it has begun a %s", a.Kind)
	}
	if c := f.command(2, "alice", "/holdfast apply"); c.Status != holdfast.CommandDone {
		t.Errorf("%s: %s", c.Status, c.Reply)
	}
	if a := f.claim(); a.Kind != holdfast.RunDestroy {
		t.Errorf("it has begun a %q", a.Kind)
	}
}

func inBucket(name string) string {
	return document(name, "state: {type: s3, bucket: b, key: k, region: r}")
}

// A name that was changed without a word about it leaves the state to the new
// one: the destruction of the old one would be that of both.
func TestAStateThatAnotherHasIsNotDestroyed(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = inBucket("prod")
	f := built(t, files)
	f.open(1, map[string]string{"clusters/prod.yaml": strings.Replace(inBucket("live"), "infra/live", "infra/prod", 1)})
	f.executeAll(withEngine)
	if faults := f.pullRequest(1).Faults; !strings.Contains(faults.Error(), "renamedFrom") {
		t.Errorf("the faults are %v", faults)
	}
	f.merge(1, byMerge)
	f.writes(withEngine)
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("prod is %s and waits for %q (%s)", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	for _, run := range append(f.runs("prod"), f.runs("live")...) {
		if strings.HasPrefix(run, "destroy") || strings.HasPrefix(run, "apply") {
			t.Errorf("there was a run: %s", run)
		}
	}
	f.repo.Commit(master, "say so", map[string]string{
		"clusters/prod.yaml": strings.Replace(strings.Replace(inBucket("live"), "infra/live", "infra/prod", 1), "{name: live}", "{name: live, renamedFrom: prod}", 1),
	})
	f.look()
	if rec := f.cluster("live"); rec.Applied.Run == "" || rec.Waiting != "" {
		t.Errorf("renamed, live waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
}

// What was queued when a process ended may not be what Git says when the next
// one begins: no destroy begins before that has looked.
func TestADestroyWaitsForALookAtGit(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	waitsFor := func(want holdfast.Reason) {
		t.Helper()
		queue, err := f.r.Dispatcher().Queue(t.Context(), holdfast.QueueFilter{Limit: 10})
		f.must(err)
		if len(queue) != 1 || queue[0].Run.Kind != holdfast.RunDestroy || queue[0].Reason != want || (queue[0].Detail != "") != (want != "") {
			t.Errorf("the queue is %+v, want a destroy that waits for %q", queue, want)
		}
	}
	waitsFor("")
	f.repo.Commit(master, "revert", map[string]string{"clusters/prod.yaml": document("prod")})
	f.restart()
	if a := f.claim(); a.Run != "" {
		t.Fatalf("the %s of %s begins", a.Kind, a.Cluster)
	}
	waitsFor(holdfast.ReasonRepositoryUnread)
	f.look()
	if a := f.claim(); a.Run != "" {
		t.Errorf("the %s of %s begins", a.Kind, a.Cluster)
	}
	if rec := f.cluster("prod"); rec.Phase != holdfast.PhaseActive || rec.Waiting != "" {
		t.Errorf("prod is %s and waits for %q", rec.Phase, rec.Waiting)
	}
}

// A document that was broken before it was removed takes no condition away from
// what was applied.
func TestConditionsAreThoseOfWhatWasApplied(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", "apply: {requires: [approved]}")
	f := built(t, files)
	f.repo.Commit(master, "break", map[string]string{"clusters/prod.yaml": document("prod", "deletion: {protected: perhaps}")})
	f.look()
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonNotApproved {
		t.Errorf("prod waits for %q", rec.Waiting)
	}
	if a := f.claim(); a.Run != "" {
		t.Errorf("the %s of %s begins", a.Kind, a.Cluster)
	}
}

// A window that closes before a run's turn has come takes it back, and it comes
// again when one opens.
func TestAWindowThatClosesBeforeItsTurn(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", `apply: {windows: [{kind: allow, schedule: "0 11 * * *", duration: 2h}]}`)
	f := built(t, files)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	if run := f.newest("prod"); run.Kind != holdfast.RunApply || run.Status != holdfast.RunQueued {
		t.Fatalf("the merge leads to a %s that is %s", run.Kind, run.Status)
	}
	f.clock.Advance(2 * time.Hour)
	if a := f.claim(); a.Run != "" {
		t.Errorf("the %s of %s begins", a.Kind, a.Cluster)
	}
	f.settle()
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonWindowClosed {
		t.Errorf("prod waits for %q", rec.Waiting)
	}
	f.clock.Advance(22 * time.Hour)
	f.r.Resume(t.Context())
	f.settle()
	if a := f.claim(); a.Kind != holdfast.RunApply || len(a.Reviews) != 1 {
		t.Errorf("in the next window it leads to a %q with %d reviews", a.Kind, len(a.Reviews))
	}
}

// A document that was copied is two with one name, and neither counts. When the copy goes,
// the file where the cluster was is still the one whose removal removes it.
func TestACopyIsNotWhereADocumentWas(t *testing.T) {
	t.Parallel()
	emptied := map[string]string{"clusters/dup.yaml": gitserver.Delete, "clusters/prod.yaml": ""}
	for name, then := range map[string]func(*fleet){
		"pushed": func(f *fleet) {
			f.repo.Commit(master, "empty it", emptied)
			f.look()
		},
		"merged": func(f *fleet) {
			f.open(1, emptied)
			if rec := f.pullRequest(1); !strings.Contains(rec.Faults.Error(), "clusters/prod.yaml is still there") {
				t.Errorf("the pull request is told %v", rec.Faults)
			}
			f.merge(1, byMerge)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := built(t, twoClusters())
			f.repo.Commit(master, "copy it", map[string]string{"clusters/dup.yaml": document("prod")})
			f.look()
			f.restart() // then files are read in their order, and no longer as they came
			f.look()
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonInvalid || rec.Desired.Document.Path != "clusters/prod.yaml" {
				t.Errorf("copied, prod waits for %q at %s", rec.Waiting, rec.Desired.Document.Path)
			}
			then(f)
			f.repo.Commit(master, "something else", map[string]string{"infra/preprod/main.tf": module("two")})
			f.look()
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.Desired.Missing, "clusters/prod.yaml is still there") {
				t.Errorf("emptied, prod waits for %q (%s), removed: %t", rec.Waiting, rec.Desired.Missing, rec.Desired.Removed)
			}
			f.repo.Commit(master, "remove it", map[string]string{"clusters/prod.yaml": gitserver.Delete})
			f.look()
			if rec := f.cluster("prod"); !rec.Desired.Removed {
				t.Errorf("gone, prod is missing: %q", rec.Desired.Missing)
			}
		})
	}
}
