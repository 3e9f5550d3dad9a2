//go:build !race

package reconciler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// Of many that go at once one by one, those that nobody has confirmed wait, also
// when so many are confirmed that the others are few.
func TestConfirmingSomeDoesNotConfirmTheOthers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("has many clusters")
	}
	f := built(t, many(60))
	for i := range 7 {
		f.open(i+1, map[string]string{fmt.Sprintf("clusters/c%02d.yaml", i): gitserver.Delete})
	}
	f.executeAll(withEngine)
	for i := range 7 {
		f.merge(i+1, byMerge)
	}
	if a := f.claim(); a.Run != "" {
		t.Fatalf("the %s of %s begins", a.Kind, a.Cluster)
	}
	f.command(1, "alice", "/holdfast apply")
	f.command(2, "alice", "/holdfast apply")
	if order := f.writes(withEngine); len(order) != 2 {
		t.Errorf("destroyed were %v", order)
	}
	f.restart()
	f.r.Resume(t.Context())
	f.look()
	if order := f.writes(withEngine); len(order) != 0 {
		t.Errorf("destroyed were %v, too", order)
	}
}

// What was half made is there to be destroyed, however often it was planned
// since, and however long ago that was.
func TestWhatWasHalfMadeLongAgoIsNotForgotten(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("has many clusters")
	}
	f := halfMade(t)
	for i := range 60 {
		f.repo.Commit(master, "again", map[string]string{"infra/prod/main.tf": module(fmt.Sprint(i))})
		f.look()
		f.executeAll(withEngine)
	}
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonApplyFailed || rec.Phase != holdfast.PhaseFailed {
		t.Errorf("prod is %s and waits for %q", rec.Phase, rec.Waiting)
	}
	f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.look()
	f.executeAll(withEngine)
	if rec := f.cluster("prod"); rec.Deletion != nil || rec.Phase != holdfast.PhaseDeleting {
		t.Errorf("prod is %s, ending %+v", rec.Phase, rec.Deletion)
	}
	if run := f.newest("prod"); !run.Destroy || run.StateLocation != "clusters/prod" {
		t.Errorf("the newest run is a %s of %s, destroy %t", run.Kind, run.StateLocation, run.Destroy)
	}
}

func TestManyRemovalsAtOnceNeedAWord(t *testing.T) {
	t.Parallel()
	f := built(t, many(30))
	gone := map[string]string{}
	for i := range 6 {
		gone[fmt.Sprintf("clusters/c%02d.yaml", i)] = gitserver.Delete
	}
	f.open(1, gone)
	f.executeAll(withEngine)
	if body := f.comment(1); !strings.Contains(body, "6 of 30") {
		t.Errorf("the comment does not warn:\n%s", body)
	}
	f.merge(1, byMerge)
	for i := range 6 {
		if got := f.cluster(fmt.Sprintf("c%02d", i)).Waiting; got != holdfast.ReasonMassDeletion {
			t.Errorf("c%02d waits for %q", i, got)
		}
	}
	// A new process, which may see them one after another, holds them as well.
	f.restart()
	f.r.Resume(t.Context())
	f.settle()
	f.look()
	if run := f.newest("c00"); run.Kind == holdfast.RunDestroy {
		t.Fatalf("after a restart c00 has %s %s", run.Kind, run.Status)
	}

	f.command(1, "alice", "/holdfast apply c01")
	f.executeAll(withEngine)
	if got := f.cluster("c01").Phase; got != holdfast.PhaseDeleted {
		t.Errorf("c01 was confirmed and is %s", got)
	}
	// The others were not, though fewer are left than are many.
	if got := f.cluster("c00"); got.Waiting != holdfast.ReasonMassDeletion || got.Phase != holdfast.PhaseDeleting {
		t.Errorf("c00 is %s and waits for %q", got.Phase, got.Waiting)
	}
	f.command(1, "alice", "/holdfast apply")
	f.executeAll(withEngine)
	for i := range 6 {
		if got := f.cluster(fmt.Sprintf("c%02d", i)).Phase; got != holdfast.PhaseDeleted {
			t.Errorf("c%02d is %s", i, got)
		}
	}
}

// Documents that were never applied make no removal a small one, also if they are there
// to stay, and applied before it is approved.
func TestManyRemovalsAmongWhatWasApplied(t *testing.T) {
	t.Parallel()
	f := built(t, many(8))
	before, change := map[string]string{"infra/other/main.tf": module("two")}, map[string]string{}
	for i := range 4 {
		change[fmt.Sprintf("clusters/c%02d.yaml", i)] = gitserver.Delete
	}
	for i := range 40 {
		name := fmt.Sprintf("d%02d", i)
		files := change
		if i < 20 {
			files = before
		}
		files["clusters/"+name+".yaml"] = strings.ReplaceAll(document(name), "infra/"+name, "infra/other")
	}
	f.repo.Commit(master, "that nobody has reviewed", before)
	f.look()
	f.executeAll(withEngine)
	f.open(1, change)
	f.executeAll(withEngine)
	if body := f.comment(1); !strings.Contains(body, "4 of 8") {
		t.Errorf("the comment does not warn:\n%.1000s", body)
	}
	f.merge(1, byMerge)
	f.executeAll(withEngine) // the others are applied
	f.ask("c00")
	f.executeAll(withEngine)
	if rec := f.cluster("c00"); rec.Waiting != holdfast.ReasonMassDeletion || !strings.HasPrefix(rec.WaitingDetail, "4 of 8 ") {
		t.Errorf("c00 is %s and waits for %q: %s", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	if added := f.cluster("d39"); added.Applied.Run == "" {
		t.Errorf("d39 was not applied: it waits for %q", added.Waiting)
	}
}
