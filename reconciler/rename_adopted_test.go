package reconciler_test

import (
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// longRenamed are two clusters of which the first had other names before, and which says
// so still.
func longRenamed() map[string]string {
	files := twoClusters()
	files["clusters/prod.yaml"] = renamedDocument("prod", "long-ago")
	return files
}

// wantFormerFault fails the test if a cluster has no fault of its former name that has
// the words, or has one although there are none.
func (f *fleet) wantFormerFault(cluster, words string) {
	f.t.Helper()
	faults := f.cluster(cluster).Desired.Faults.Error()
	if strings.Contains(faults, "renamedFrom is") != (words != "") || !strings.Contains(faults, words) {
		f.t.Errorf("the faults of %s are %q, want %q", cluster, faults, words)
	}
}

// A former name that was in a document before its repository was taken in is not a fault
// and does not hold up removals, not even at later heads: the cluster was renamed then.
func TestAFormerNameFromBeforeTheDatabase(t *testing.T) {
	t.Parallel()
	files := longRenamed()
	files["clusters/copy.yaml"], files["infra/copy/main.tf"] = renamedDocument("copy", "long-ago"), module("one")
	f := newFleet(t, files)
	f.look()
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		result := withEngine(a)
		if a.Cluster == "preprod" {
			result.Status = holdfast.RunNoChanges
		}
		return result
	})
	f.wantFormerFault("prod", "")
	f.wantFormerFault("copy", "")
	f.restart()
	f.repo.Commit(master, "change", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	f.wantFormerFault("prod", "")
	f.open(1, map[string]string{"clusters/preprod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.post()
	if faults := f.pullRequest(1).Faults; len(faults) > 0 {
		t.Errorf("the removal of preprod is at fault: %v", faults)
	}
	f.merge(1, byMerge)
	f.executeAll(withEngine)
	if rec := f.cluster("preprod"); rec.Deletion == nil || rec.Deletion.Reason != holdfast.ReasonDestroyed {
		t.Errorf("preprod is %s and waits for %q (%s)", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
}

// What comes with a later head is not from before, nor is what was gone and comes back;
// and a fault of a former name stays one until the document says something else.
func TestAFormerNameThatNobodyKnowsLater(t *testing.T) {
	t.Parallel()
	f := built(t, longRenamed())
	live := map[string]string{"clusters/live.yaml": renamedDocument("live", "long-since"), "infra/live/main.tf": module("one")}
	f.repo.Commit(master, "live", live)
	f.look()
	f.wantFormerFault("live", "remove renamedFrom in clusters/live.yaml if it is a new cluster")
	f.restart()
	f.look()
	f.wantFormerFault("live", "no cluster has or had that name")
	f.open(1, map[string]string{"clusters/best.yaml": renamedDocument("best", "long-since"), "infra/best/main.tf": module("one")})
	if faults := f.pullRequest(1).Faults.Error(); !strings.Contains(faults, "clusters/best.yaml") {
		t.Errorf("the faults of the pull request are %q", faults)
	}
	for _, files := range []map[string]string{
		{"clusters/live.yaml": gitserver.Delete},
		live,
		{"clusters/live.yaml": gitserver.Delete},
		{"clusters/prod.yaml": gitserver.Delete},
	} {
		f.repo.Commit(master, "change", files)
		f.look()
	}
	f.executeAll(withEngine)
	f.apply("prod")
	f.executeAll(withEngine)
	if rec := f.cluster("prod"); rec.Deletion == nil {
		t.Fatalf("prod is %s and waits for %q (%s)", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	f.repo.Commit(master, "back", map[string]string{"clusters/prod.yaml": renamedDocument("prod", "long-ago")})
	f.look()
	f.wantFormerFault("prod", "no cluster has or had that name")
}

// A cluster that exists under the former name in another repository is not created a
// second time, whichever repository is taken in first.
func TestAFormerNameInAnotherRepository(t *testing.T) {
	t.Parallel()
	theirs := map[string]string{"clusters/long-ago.yaml": document("long-ago"), "infra/long-ago/main.tf": module("one")}
	for name, c := range map[string]struct {
		otherFirst bool // it is taken in first, with its cluster
		later      bool // its cluster is defined later only
		adopted    bool // its cluster is applied before the other repository is taken in
	}{
		"theirs first, applied":     {otherFirst: true, adopted: true},
		"theirs first, not applied": {otherFirst: true},
		"ours first":                {},
		"ours first, theirs later":  {later: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, nil)
			second, look := withOther(t, f)
			f.restart()
			second.Commit(master, "theirs", theirs)
			if c.later {
				second.Commit(master, "not yet", map[string]string{"clusters/long-ago.yaml": gitserver.Delete})
			}
			ours := longRenamed()
			maps.DeleteFunc(ours, func(path, _ string) bool { return strings.Contains(path, "preprod") })
			f.repo.Commit(master, "ours", ours)
			if c.otherFirst {
				look()
				if c.adopted {
					f.executeAll(func(protocol.Assignment) protocol.Result { return protocol.Result{Status: holdfast.RunNoChanges} })
				}
			}
			f.look()
			if c.later {
				look()
				f.wantFormerFault("prod", "")
				second.Commit(master, "theirs", theirs)
			}
			look()
			f.wantFormerFault("prod", `which belongs to repository "other"`)
			f.executeAll(withEngine)
			if c := f.apply("prod"); f.cluster("prod").Applied.Run != "" || len(f.runs("prod")) > 1 {
				t.Errorf("a person has prod applied, and gets %q: %v", c.Reply, f.runs("prod"))
			}
		})
	}
}

// That holds, too, if the other repository takes the name while the document is being taken
// in, or just after it was.
func TestAFormerNameThatIsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"at the first start": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, nil)
			second, _ := withOther(t, f)
			second.Commit(master, "theirs", map[string]string{"clusters/long-ago.yaml": document("long-ago"), "infra/long-ago/main.tf": module("one")})
			var once sync.Once
			f.restart(func(o *reconciler.Options) {
				o.Store = &lookingStore{Store: o.Store, look: func() {
					once.Do(func() { f.must(f.r.TakeIn(t.Context(), other, 0)) })
				}}
			})
			if !first {
				f.look() // of an empty repository
			}
			ours := longRenamed()
			maps.DeleteFunc(ours, func(path, _ string) bool { return strings.Contains(path, "preprod") })
			f.repo.Commit(master, "ours", ours)
			f.look()
			f.wantFormerFault("prod", `which belongs to repository "other"`)
		})
	}
}
