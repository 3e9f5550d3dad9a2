package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// calledPreprod is prod's document with the name of another cluster.
func calledPreprod(more string, spec ...string) string {
	return strings.Replace(document("prod", spec...), "name: prod", "name: preprod"+more, 1)
}

// A document whose name is mistyped into that of another one is not deleted, wherever it
// is by then: its cluster stays, by a merge past a red status, a push and a restart, and
// continues as before once the name is corrected.
func TestNameOfAnotherRemovesNothing(t *testing.T) {
	t.Parallel()
	one := document("prod") + "---\n" + document("preprod")
	for name, tc := range map[string]struct {
		before, mistyped map[string]string
		at               string // of the document, as the reason has it
	}{
		"the same file": {
			mistyped: map[string]string{"clusters/prod.yaml": calledPreprod("")}, at: "clusters/prod.yaml:1",
		},
		"its former name is said": {
			mistyped: map[string]string{"clusters/prod.yaml": calledPreprod(", renamedFrom: prod")}, at: "clusters/prod.yaml:1",
		},
		"a file that is read before the other's": {
			mistyped: map[string]string{"clusters/prod.yaml": gitserver.Delete, "clusters/a.yaml": calledPreprod("")}, at: "clusters/a.yaml:1",
		},
		"a file that is read after it, and other contents": {
			mistyped: map[string]string{"clusters/prod.yaml": gitserver.Delete, "clusters/z.yaml": calledPreprod("", "region: eu")}, at: "clusters/z.yaml:1",
		},
		"the file of both": {
			before:   map[string]string{"clusters/prod.yaml": one, "clusters/preprod.yaml": gitserver.Delete},
			mistyped: map[string]string{"clusters/prod.yaml": calledPreprod("") + "---\n" + document("preprod")}, at: "clusters/prod.yaml:1",
		},
		"a file that was claimed twice before": {
			before:   map[string]string{"clusters/copy.yaml": document("preprod")},
			mistyped: map[string]string{"clusters/copy.yaml": gitserver.Delete, "clusters/prod.yaml": calledPreprod("")}, at: "clusters/prod.yaml:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.repo.Commit(master, "before", tc.before)
			f.look()
			f.executeAll(unchanged)
			before := f.runs("prod")
			f.open(1, tc.mistyped)
			f.executeAll(good)
			f.post()
			if rec := f.pullRequest(1); !strings.Contains(rec.Faults.Error(), `the name "preprod" is claimed twice`) {
				t.Errorf("faults are %v", rec.Faults)
			}
			if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got == holdfast.StatusSuccess {
				t.Errorf("its status is %q", got)
			}
			check := func(when string) {
				t.Helper()
				f.executeAll(good)
				rec := f.cluster("prod")
				if rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.WaitingDetail, tc.at+` may be its document, with the name "preprod"`) {
					t.Errorf("%s: removed is %t, it waits for %q: %s", when, rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
				}
				if after := f.runs("prod"); strings.Contains(strings.Join(after[len(before):], "\n"), "destroy") {
					t.Errorf("%s: its runs are %v", when, after)
				}
			}
			f.merge(1, byMerge)
			check("merged")
			f.repo.Commit(master, "more", map[string]string{"README.md": "more"})
			f.look()
			check("at the next head")
			f.restart()
			f.repo.Commit(master, "still more", map[string]string{"README.md": "still more"})
			f.look()
			check("after a restart")

			corrected := map[string]string{"clusters/prod.yaml": document("prod"), "clusters/preprod.yaml": document("preprod")}
			for path := range tc.mistyped {
				if corrected[path] == "" {
					corrected[path] = gitserver.Delete
				}
			}
			f.repo.Commit(master, "correct", corrected)
			f.look()
			f.executeAll(good)
			for _, name := range []string{"prod", "preprod"} {
				if rec := f.cluster(name); rec.Waiting != "" || rec.Phase != holdfast.PhaseActive {
					t.Errorf("corrected, %s is %s and waits for %q: %s", name, rec.Phase, rec.Waiting, rec.WaitingDetail)
				}
			}
			for _, run := range f.runs("prod") {
				if strings.HasPrefix(run, "destroy") || strings.HasPrefix(run, "apply") {
					t.Errorf("corrected, it has a run: %s", run)
				}
			}
		})
	}
}

// A pull request that does so plans no destroy, and says which document it may be.
func TestNameOfAnotherIsNotAPlannedRemoval(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"clusters/prod.yaml": calledPreprod("")})
	rec := f.pullRequest(1)
	for _, c := range rec.Clusters {
		if c.Removed {
			t.Errorf("it removes %s", c.Name)
		}
	}
	const want = `cluster "prod" is gone, and not removed: clusters/prod.yaml:1 may be its document, with the name "preprod", ` +
		`which is also that of clusters/preprod.yaml:1: correct that name, or delete the document`
	if !strings.Contains(rec.Faults.Error(), want) {
		t.Errorf("faults are %v", rec.Faults)
	}
	f.expectRuns("prod", "plan no_changes")
	f.push(1, map[string]string{"clusters/prod.yaml": document("prod")})
	if rec := f.pullRequest(1); len(rec.Faults) > 0 || len(rec.Clusters) > 0 {
		t.Errorf("corrected, it changes %v: %v", rec.Clusters, rec.Faults)
	}
}

// Nor is a document deleted whose name is mistyped into that of another repository's
// cluster.
func TestNameOfAnotherRepositorysClusterRemovesNothing(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	second, look := withOther(t, f)
	second.Commit(master, "net", map[string]string{"clusters/net.yaml": document("net"), "infra/net/main.tf": module("one")})
	look()
	f.executeAll(unchanged)
	f.open(1, map[string]string{"clusters/prod.yaml": strings.Replace(document("prod"), "name: prod", "name: net", 1)})
	const want = `clusters/prod.yaml:1 may be its document, with the name "net", which belongs to repository "other"`
	if rec := f.pullRequest(1); !strings.Contains(rec.Faults.Error(), want) {
		t.Errorf("faults are %v", rec.Faults)
	}
	f.merge(1, byMerge)
	f.executeAll(withEngine)
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.WaitingDetail, want) {
		t.Errorf("removed is %t, it waits for %q: %s", rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
	}
	f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.look()
	if rec := f.cluster("prod"); !rec.Desired.Removed {
		t.Errorf("its document is gone, and it is not removed: %s", rec.WaitingDetail)
	}
}

// A removal next to a name that was claimed twice by then is one. Next to a name that is
// claimed twice by the same commit it waits until that is corrected, and says so.
func TestRemovalNextToANameThatIsClaimedTwice(t *testing.T) {
	t.Parallel()
	copied, gone := map[string]string{"clusters/copy.yaml": document("preprod")}, map[string]string{"clusters/prod.yaml": gitserver.Delete}
	for name, between := range map[string]func(*fleet){
		"the same process": func(*fleet) {},
		"a restart":        func(f *fleet) { f.restart() },
	} {
		t.Run("before, in "+name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.repo.Commit(master, "copy", copied)
			f.look()
			between(f)
			f.repo.Commit(master, "remove", gone)
			f.look()
			if rec := f.cluster("prod"); !rec.Desired.Removed {
				t.Errorf("it is not removed: %s", rec.Desired.Missing)
			}
		})
		t.Run("at once, in "+name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.repo.Commit(master, "both", map[string]string{"clusters/copy.yaml": document("preprod"), "clusters/prod.yaml": gitserver.Delete})
			f.look()
			between(f)
			const why = `clusters/copy.yaml:1 may be its document, with the name "preprod", which is also that of clusters/preprod.yaml:1`
			if rec := f.cluster("prod"); rec.Desired.Removed || !strings.Contains(rec.WaitingDetail, why) {
				t.Errorf("removed is %t, it waits for %q: %s", rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
			}
			f.repo.Commit(master, "correct", map[string]string{"clusters/copy.yaml": document("third"), "infra/third/main.tf": module("one")})
			f.look()
			if rec := f.cluster("prod"); !rec.Desired.Removed {
				t.Errorf("corrected, it is not removed: %s", rec.Desired.Missing)
			}
		})
	}
}

// Of two documents that claim a new name, the one that says what the cluster was called
// takes over once it is the only one, whichever of the two was read first.
func TestFormerNameOfOneOfTwo(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{"read first": "clusters/a.yaml", "read last": "clusters/z.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.repo.Commit(master, "rename, and copy", map[string]string{
				"clusters/prod.yaml": renamedDocument("live", "prod"), second: document("live"), "infra/live/main.tf": module("one"),
			})
			for _, text := range []string{"more", "still more"} {
				f.look()
				f.executeAll(good)
				if rec := f.cluster("prod"); rec.Desired.Removed || rec.Deletion != nil || rec.Waiting != holdfast.ReasonMissing {
					t.Errorf("removed is %t, it waits for %q: %s", rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
				}
				if rec := f.cluster("live"); rec.Waiting != holdfast.ReasonInvalid || rec.Applied.Run != "" {
					t.Errorf("live waits for %q: %s", rec.Waiting, rec.WaitingDetail)
				}
				f.restart()
				f.repo.Commit(master, text, map[string]string{"README.md": text})
			}
			f.repo.Commit(master, "correct", map[string]string{second: gitserver.Delete})
			f.look()
			if rec := f.cluster("prod"); rec.Deletion == nil || rec.Deletion.To != "live" {
				t.Errorf("it has not taken over: %s", rec.WaitingDetail)
			}
		})
	}
}

// Nor is a document deleted whose name is mistyped into that of a cluster which has no
// other document: until that cluster is applied with what it says now.
func TestNameOfAnotherWithoutADocumentRemovesNothing(t *testing.T) {
	t.Parallel()
	gone, mistyped := gitserver.Delete, calledPreprod("")
	for name, pushed := range map[string][]map[string]string{
		"removed by the same change": {{"clusters/preprod.yaml": gone, "clusters/prod.yaml": mistyped}},
		"removed before":             {{"clusters/preprod.yaml": gone}, {"clusters/prod.yaml": mistyped}},
		"removed after":              {{"clusters/prod.yaml": mistyped}, {"clusters/preprod.yaml": gone}},
		"in another file":            {{"clusters/preprod.yaml": gone, "clusters/prod.yaml": gone, "clusters/z.yaml": mistyped}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			for _, files := range pushed {
				f.repo.Commit(master, "change", files)
				f.look()
			}
			for range 2 {
				f.executeAll(withEngine)
				rec := f.cluster("prod")
				if rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.WaitingDetail, `:1 is its document, with the name "preprod"`) {
					t.Errorf("removed is %t, it waits for %q: %s", rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
				}
				f.restart()
				f.look()
			}
			f.executeAll(withEngine)
			f.apply("preprod")
			f.executeAll(withEngine)
			f.repo.Commit(master, "more", map[string]string{"README.md": "more"})
			f.look()
			if rec := f.cluster("prod"); !rec.Desired.Removed {
				t.Errorf("preprod was applied with its document, and it is not removed: %s", rec.Desired.Missing)
			}
		})
	}
}
