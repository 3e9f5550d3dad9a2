package reconciler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// putState has a run write a state, as its engine would.
func (f *fleet) putState(a protocol.Assignment, state string) {
	f.t.Helper()
	_, err := f.store.PutState(f.t.Context(), holdfast.StateWrite{Location: a.StateLocation, By: a.AttemptRef, Data: []byte(state)})
	f.must(err)
}

// apply is a person's word to apply what is planned of a cluster.
func (f *fleet) apply(cluster string) holdfast.Command {
	f.t.Helper()
	return f.api("alice", holdfast.VerbApply, cluster)
}

// within fails the test if do takes so long that it will never end.
func within(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("it does not end")
	}
}

// A cluster whose first apply has failed in the middle has a state with what
// that has made. No other one may be given its name meanwhile: two states would
// be one's. That must not hold up the repository either.
func TestARenameOntoAStateIsRefused(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/live.yaml"], files["infra/live/main.tf"] = document("live"), module("one")
	delete(files, "clusters/prod.yaml")
	f := newFleet(t, files)
	f.look()
	f.executeAll(withEngine)
	f.apply("live")
	a := f.claim()
	f.putState(a, `{"version":4,"serial":7,"lineage":"x","resources":[{}]}`)
	f.finish(a, failing(a))
	f.repo.Commit(master, "prod", map[string]string{"clusters/prod.yaml": document("prod")})
	f.look()
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		if a.Cluster == "live" {
			return withEngine(a)
		}
		return protocol.Result{Status: holdfast.RunNoChanges}
	})
	if f.cluster("prod").Applied.Run == "" || f.cluster("live").Applied.Run != "" {
		t.Fatal("prod is to be applied, live to have failed")
	}
	f.repo.Commit(master, "rename", map[string]string{"clusters/prod.yaml": gitserver.Delete, "clusters/live.yaml": renamedDocument("live", "prod")})
	within(t, f.look)
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Deletion != nil || rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("prod is %s and waits for %q (%s)", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	if rec := f.cluster("live"); rec.Waiting != holdfast.ReasonInvalid {
		t.Errorf("live is %s and waits for %q (%s)", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
}

// Two documents that both say they were the same cluster: neither has it.
func TestTwoHeirs(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.repo.Commit(master, "rename", map[string]string{
		"clusters/prod.yaml": gitserver.Delete, "infra/a/main.tf": module("one"), "infra/b/main.tf": module("one"),
		"clusters/a.yaml": renamedDocument("a", "prod"), "clusters/b.yaml": renamedDocument("b", "prod"),
	})
	f.look()
	for _, name := range []string{"a", "b"} {
		if rec := f.cluster(name); rec.Waiting != holdfast.ReasonInvalid {
			t.Errorf("%s waits for %q", name, rec.Waiting)
		}
	}
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Deletion != nil || rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("prod is %s and waits for %q", rec.Phase, rec.Waiting)
	}
}

// A document that says it was another cluster, and is one already, is not a heir:
// what is removed beside it must be seen as such, or be refused.
func TestARenameOntoAClusterThatIsThere(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete, "clusters/preprod.yaml": renamedDocument("preprod", "prod")})
	if faults := f.pullRequest(1).Faults; !strings.Contains(faults.Error(), "renamedFrom") {
		t.Errorf("affected %v, faults %v", f.affected(1), faults)
	}
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("prod is %s and waits for %q", rec.Phase, rec.Waiting)
	}
}

// renamedFrom stays in the document for years, and the old name is used again by
// another cluster: that one comes and goes as any other.
func TestAnOldNameIsUsedAgain(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.repo.Commit(master, "rename", map[string]string{
		"clusters/prod.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("one"),
	})
	f.look()
	f.executeAll(withEngine)
	f.apply("live")
	f.executeAll(withEngine)
	if rec := f.cluster("live"); rec.Waiting != "" || rec.Applied.Document.RenamedFrom != "prod" {
		t.Fatalf("live waits for %q", rec.Waiting)
	}
	f.repo.Commit(master, "again", map[string]string{"clusters/new.yaml": document("prod")})
	f.look()
	f.execute(func(protocol.Assignment) protocol.Result { return protocol.Result{Status: holdfast.RunNoChanges} })
	f.restart()
	f.look()
	for _, name := range []string{"live", "prod"} {
		if rec := f.cluster(name); rec.Phase != holdfast.PhaseActive || rec.Waiting != "" {
			t.Errorf("%s is %s and waits for %q: %v", name, rec.Phase, rec.Waiting, rec.Desired.Faults)
		}
	}
	f.open(1, map[string]string{"clusters/new.yaml": gitserver.Delete})
	if got := f.affected(1); !slices.Equal(got, []string{"prod"}) || !f.pullRequest(1).Clusters[0].Removed {
		t.Errorf("the pull request affects %v", got)
	}
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); !rec.Desired.Removed {
		t.Errorf("removed, prod waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
}

// Two clusters that swap their names.
func TestASwapOfNames(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.repo.Commit(master, "swap", map[string]string{
		"clusters/prod.yaml": renamedDocument("preprod", "prod"), "clusters/preprod.yaml": renamedDocument("prod", "preprod"),
	})
	f.look()
	for _, name := range []string{"prod", "preprod"} {
		if rec := f.cluster(name); rec.Waiting != holdfast.ReasonInvalid {
			t.Errorf("%s waits for %q", name, rec.Waiting)
		}
	}
}

// A rename of what is half applied: what the new name desires may be the content
// that was applied before, and that is not how things are.
func TestARenameOfWhatIsHalfApplied(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = strings.Replace(document("prod", "deletion: {protected: true}"), "infra/prod", "infra/preprod", 1)
	f := built(t, files)
	f.repo.Commit(master, "two", map[string]string{"infra/preprod/main.tf": module("two")})
	f.look()
	f.executeAll(withEngine)
	f.apply("prod")
	a := f.claim()
	f.putState(a, `{"version":4,"serial":7,"lineage":"x","resources":[{}]}`)
	f.finish(a, failing(a))
	if rec := f.cluster("prod"); rec.Phase != holdfast.PhaseFailed {
		t.Fatalf("prod is %s", rec.Phase)
	}
	f.repo.Commit(master, "back, and renamed", map[string]string{
		"infra/preprod/main.tf": module("one"),
		"clusters/prod.yaml":    strings.Replace(renamedDocument("live", "prod"), "infra/live", "infra/preprod", 1),
	})
	f.look()
	rec := f.cluster("live")
	if rec.Waiting == "" && rec.Phase == holdfast.PhaseActive && len(f.runs("live")) == 0 {
		t.Errorf("half applied, it is taken for up to date: %+v", rec.Applied)
	}
	f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.look()
	if rec := f.cluster("live"); rec.Waiting != holdfast.ReasonProtected {
		t.Errorf("removed, it waits for %q", rec.Waiting)
	}
}

// What the first apply of a cluster has made before it failed continues under a
// new name, too.
func TestARenameOfWhatWasNeverWholly(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	f.executeAll(withEngine)
	f.apply("prod")
	a := f.claim()
	f.putState(a, `{"version":4,"serial":7,"lineage":"x","resources":[{}]}`)
	f.finish(a, failing(a))
	f.open(1, map[string]string{"clusters/prod.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("one")})
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		if a.Cluster == "live" && a.StateLocation != "clusters/prod" {
			t.Errorf("the new name is planned at %s", a.StateLocation)
		}
		return withEngine(a)
	})
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); rec.Deletion == nil || rec.Deletion.To != "live" {
		t.Errorf("prod is %s and waits for %q (%s)", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	if rec := f.cluster("live"); rec.StateSerial != 7 {
		t.Errorf("live continues from serial %d", rec.StateSerial)
	}
}

// Two renames in a row, the first of which waits for a run: the second one is
// told what the cluster is called, and nothing is taken for removed meanwhile.
func TestARenameOfARenameThatWaits(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	a := f.claim()
	f.repo.Commit(master, "rename", map[string]string{"clusters/prod.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("two")})
	f.look()
	f.repo.Commit(master, "and again", map[string]string{"clusters/prod.yaml": renamedDocument("best", "live"), "infra/best/main.tf": module("two")})
	f.look()
	f.finish(a, good(a))
	f.look()
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("prod is %s, and waits for %q", rec.Phase, rec.Waiting)
	}
	if rec := f.cluster("best"); rec.Waiting != holdfast.ReasonInvalid || !strings.Contains(rec.Desired.Faults.Error(), "renamedFrom: prod") {
		t.Errorf("best waits for %q: %v", rec.Waiting, rec.Desired.Faults)
	}
	f.repo.Commit(master, "say so", map[string]string{"clusters/prod.yaml": renamedDocument("best", "prod")})
	f.look()
	if rec := f.cluster("best"); rec.Applied.Run != a.Run {
		t.Errorf("best continues from %q, and waits for %q: %v", rec.Applied.Run, rec.Waiting, rec.Desired.Faults)
	}
}

// A rename of a rename, both of which come with one push: nobody knows the name in
// between. That is a fault of the document; nothing is created or destroyed, and the
// merge in between gets its last word.
func TestTwoRenamesInOnePush(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/prod.yaml": renamedDocument("prodd", "prod"), "infra/prodd/main.tf": module("one")})
	f.executeAll(withEngine)
	f.open(2, map[string]string{"clusters/prod.yaml": renamedDocument("best", "prodd"), "infra/best/main.tf": module("two")})
	f.executeAll(withEngine)
	f.post()
	if said := f.forge.comment(2); strings.Contains(said, "history continue") || !strings.Contains(said, "set renamedFrom: prod if") {
		t.Errorf("the comment says:\n%s", said)
	}
	f.mergeUnnoticed(1, byMerge)
	second := f.forge.get(2)
	f.repo.CommitOn("both", master, "both", map[string]string{
		"clusters/prod.yaml": renamedDocument("best", "prodd"), "infra/best/main.tf": module("two"),
	})
	second.Branch = "both"
	f.forge.set(second)
	f.mergeUnnoticed(2, byMerge)
	f.look()
	f.executeAll(withEngine)
	f.restart()
	f.look()
	f.executeAll(withEngine)
	if rec := f.cluster("best"); rec.Waiting != holdfast.ReasonInvalid || !strings.Contains(rec.Desired.Faults.Error(), "set renamedFrom: prod if") {
		t.Errorf("best waits for %q: %v", rec.Waiting, rec.Desired.Faults)
	}
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.Desired.Missing, `continues as "best"`) {
		t.Errorf("prod is %s and waits for %q (%s)", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	f.post()
	if got := f.forge.status(f.forge.get(1).MergeCommit, holdfast.ContextApply); got != holdfast.StatusSuccess {
		t.Errorf("the status of the first merge is %q: %v", got, f.forge.told(f.forge.get(1).MergeCommit, holdfast.ContextApply))
	}
	if said := f.forge.comment(1); !strings.Contains(said, "superseded by") || strings.Contains(said, "history continue") {
		t.Errorf("the comment of the first says:\n%s", said)
	}
	if said := f.forge.comment(2); strings.Contains(said, "history continue") {
		t.Errorf("the comment of the second says:\n%s", said)
	}
	f.repo.Commit(master, "say so", map[string]string{"clusters/prod.yaml": renamedDocument("best", "prod")})
	f.look()
	if rec := f.cluster("best"); rec.Applied.Run == "" || rec.Applied.Document.RenamedFrom != "prod" {
		t.Errorf("best continues from %+v, and waits for %q: %v", rec.Applied, rec.Waiting, rec.Desired.Faults)
	}
}

// A former name that was misspelt, or is not the last one that the cluster had, is a
// fault; one that has stayed in the document of a cluster with a state is not.
func TestAFormerNameThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.repo.Commit(master, "misspelt", map[string]string{"clusters/prod.yaml": renamedDocument("live", "produ"), "infra/live/main.tf": module("two")})
	f.look()
	if rec := f.cluster("live"); rec.Waiting != holdfast.ReasonInvalid || !strings.Contains(rec.Desired.Faults.Error(), "set renamedFrom: prod if") {
		t.Errorf("live waits for %q: %v", rec.Waiting, rec.Desired.Faults)
	}
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("prod is %s and waits for %q (%s)", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	f.repo.Commit(master, "mended", map[string]string{"clusters/prod.yaml": renamedDocument("live", "prod")})
	f.look()
	f.repo.Commit(master, "too old", map[string]string{"clusters/prod.yaml": renamedDocument("best", "prod"), "infra/best/main.tf": module("three")})
	f.look()
	if rec := f.cluster("best"); rec.Waiting != holdfast.ReasonInvalid || !strings.Contains(rec.Desired.Faults.Error(), "write renamedFrom: live") {
		t.Errorf("best waits for %q: %v", rec.Waiting, rec.Desired.Faults)
	}
	if rec := f.cluster("live"); rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("live is %s and waits for %q (%s)", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	f.repo.Commit(master, "whatever", map[string]string{
		"clusters/prod.yaml": renamedDocument("best", "live"), "clusters/preprod.yaml": renamedDocument("preprod", "long-ago"),
	})
	f.look()
	for _, name := range []string{"best", "preprod"} {
		if rec := f.cluster(name); rec.Waiting == holdfast.ReasonInvalid || rec.Applied.Run == "" {
			t.Errorf("%s waits for %q: %v", name, rec.Waiting, rec.Desired.Faults)
		}
	}
}

// The hint at a misspelt former name is not a cluster that was destroyed: it has nothing that could
// be continued.
func TestAFormerNameNearOneThatWasDestroyed(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/preprod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	f.executeAll(withEngine)
	f.look()
	if rec := f.cluster("preprod"); rec.Deletion == nil {
		t.Fatalf("preprod is %s and waits for %q", rec.Phase, rec.Waiting)
	}
	f.repo.Commit(master, "misspelt", map[string]string{"clusters/prod.yaml": renamedDocument("live", "prprod"), "infra/live/main.tf": module("two")})
	f.look()
	faults := f.cluster("live").Desired.Faults.Error()
	if strings.Contains(faults, "preprod") || !strings.Contains(faults, "set renamedFrom: prod if") {
		t.Errorf("live has %s", faults)
	}
}
