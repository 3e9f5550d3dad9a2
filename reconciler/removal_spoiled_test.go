package reconciler_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// A mistake in one document of a file of several is a fault at its line, in a pull
// request, on the branch and at a start. The cluster is not taken for removed.
func TestSpoiledDocumentsRemoveNothing(t *testing.T) {
	t.Parallel()
	prod, preprod := document("prod"), document("preprod")
	replaced := func(old, replacement string) string {
		return strings.Replace(prod, old, replacement, 1) + "---\n" + preprod
	}
	for name, tc := range map[string]struct {
		text, fault string
		waiting     holdfast.Reason
	}{
		"key kinnd":        {replaced("kind:", "kinnd:"), `clusters/prod.yaml:2:1: unknown key "kinnd"`, holdfast.ReasonInvalid},
		"no kind":          {replaced("kind: Cluster\n", ""), `clusters/prod.yaml:1:1: kind is missing`, holdfast.ReasonInvalid},
		"no apiVersion":    {replaced("apiVersion: holdfast.dev/v1\n", ""), `clusters/prod.yaml:1:1: apiVersion is missing`, holdfast.ReasonInvalid},
		"another domain":   {replaced("holdfast.dev", "holdfast.com"), `clusters/prod.yaml:1:13: apiVersion is "holdfast.com/v1"`, holdfast.ReasonInvalid},
		"list":             {"- " + strings.ReplaceAll(strings.TrimSpace(prod), "\n", "\n  ") + "\n---\n" + preprod, `clusters/prod.yaml:1:3: this Holdfast document is an item of a list`, holdfast.ReasonInvalid},
		"ran into another": {preprod + "# ---\n" + prod, `key "apiVersion" is given twice`, holdfast.ReasonMissing},
		"name":             {replaced("name: prod", "name: prdo"), `clusters/prod.yaml:1 is its document, with the name "prdo"`, holdfast.ReasonMissing},
		"somebody else's":  {replaced("apiVersion: holdfast.dev/v1\nkind: Cluster", "apiVersion: v1\nkind: ConfigMap"), `clusters/prod.yaml:1 has its name, in a document that is not a cluster`, holdfast.ReasonMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			delete(files, "clusters/preprod.yaml")
			files["clusters/prod.yaml"] = prod + "---\n" + preprod
			f := newFleet(t, files)
			f.adopt()
			spoiled := map[string]string{"clusters/prod.yaml": tc.text}
			f.open(1, spoiled)
			if rec := f.pullRequest(1); !strings.Contains(rec.Faults.Error(), tc.fault) {
				t.Errorf("faults are %v", rec.Faults)
			}
			check := func(when string) {
				t.Helper()
				rec := f.cluster("prod")
				if rec.Desired.Removed || rec.Waiting != tc.waiting {
					t.Errorf("%s: removed is %t, it waits for %q: %s", when, rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
				}
				f.expectRuns("prod", "plan no_changes")
			}
			f.repo.Commit(master, "spoil", spoiled)
			f.look()
			check("on the branch")
			f.restart()
			f.look()
			check("after a restart")
			f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": preprod})
			f.look()
			if !f.cluster("prod").Desired.Removed {
				t.Error("its document is gone, and it is not removed")
			}
		})
	}
}

// Whoever changes a document is told of the faults that it has, also of those that
// it had before.
func TestFaultOfATouchedDocumentIsReported(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/lost.yaml"] = document("lost")
	f := newFleet(t, files)
	f.look()
	f.open(1, map[string]string{"clusters/lost.yaml": document("lost", "region: eu")})
	if rec := f.pullRequest(1); len(rec.Faults) != 1 || !strings.Contains(rec.Faults.Error(), "clusters/lost.yaml:7:18") {
		t.Errorf("faults are %v", rec.Faults)
	}
	f.open(3, map[string]string{"clusters/prod.yaml": document("prod", "region: eu")})
	if rec := f.pullRequest(3); len(rec.Faults) > 0 {
		t.Errorf("it is blamed for %v", rec.Faults)
	}
}

// A mistyped name is not a removal until another cluster was applied under it, whatever its
// document says by then.
func TestMistypedNameRemovesNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		later   map[string]string
		apply   bool
		removed bool
		renamed bool
	}{
		"it stays":                {later: map[string]string{"README.md": "x"}},
		"it is corrected":         {later: map[string]string{"clusters/prod.yaml": document("prod")}},
		"the rename is said":      {later: map[string]string{"clusters/prod.yaml": strings.Replace(document("prod"), "name: prod", "name: prdo, renamedFrom: prod", 1)}, renamed: true},
		"it is removed, too":      {later: map[string]string{"clusters/prod.yaml": gitserver.Delete}, removed: true},
		"it is another cluster's": {later: map[string]string{"README.md": "x"}, apply: true, removed: true},
		"it says something else":  {later: map[string]string{"clusters/prod.yaml": strings.ReplaceAll(document("preprod"), "name: preprod", "name: prdo")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.repo.Commit(master, "mistype", map[string]string{"clusters/prod.yaml": strings.Replace(document("prod"), "name: prod", "name: prdo", 1)})
			f.look()
			if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.WaitingDetail, "metadata.renamedFrom: prod") {
				t.Fatalf("removed is %t, it waits for %q: %s", rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
			}
			if tc.apply {
				f.executeAll(func(protocol.Assignment) protocol.Result { return protocol.Result{Status: holdfast.RunNoChanges} })
			}
			f.repo.Commit(master, "go on", tc.later)
			f.look()
			rec := f.cluster("prod") // the plan of its destruction may have found nothing
			if rec.Desired.Removed != tc.removed && rec.Deletion == nil || (rec.Deletion != nil && rec.Deletion.To != "") != tc.renamed {
				t.Errorf("removed is %t, it waits for %q: %s, and has ended: %v", rec.Desired.Removed, rec.Waiting, rec.WaitingDetail, rec.Deletion)
			}
		})
	}
}

// Nor is it one in a file that was moved or renamed by the same commit, whatever its
// paths are relative to.
func TestMistypedNameInAMovedFileRemovesNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, after string }{
		"a module":            {document("prod"), strings.Replace(document("prod"), "name: prod", "name: prdo", 1)},
		"a relative template": {templated("prod", "{path: ../templates/web}"), templated("prdo", "{path: ../../templates/web}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoOfTemplate()
			maps.Copy(files, twoClusters())
			files["clusters/prod.yaml"] = tc.before
			f := newFleet(t, files)
			f.adopt()
			moved := map[string]string{"clusters/prod.yaml": gitserver.Delete, "clusters/eu/prdo.yaml": tc.after}
			f.open(1, moved)
			const fault = `clusters/eu/prdo.yaml:1 is its document, with the name "prdo"`
			if rec := f.pullRequest(1); !strings.Contains(rec.Faults.Error(), fault) {
				t.Errorf("faults are %v", rec.Faults)
			}
			f.repo.Commit(master, "move", moved)
			f.look()
			if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.WaitingDetail, fault) {
				t.Errorf("removed is %t, it waits for %q: %s", rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
			}
			f.repo.Commit(master, "remove", map[string]string{"clusters/eu/prdo.yaml": gitserver.Delete})
			f.look()
			if !f.cluster("prod").Desired.Removed {
				t.Error("its document is gone, and it is not removed")
			}
		})
	}
}

// A cluster like it that was there before, and was never applied, is not taken for its
// document under another name.
func TestRemovalNextToAnUnappliedCopy(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(*fleet){
		"the same process": func(*fleet) {},
		"a restart":        func(f *fleet) { f.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoOfTemplate()
			delete(files, "clusters/b.yaml")
			f := newFleet(t, files)
			f.adopt()
			f.repo.Commit(master, "add", map[string]string{"clusters/b.yaml": templated("web-b", "{path: ../templates/web}")})
			f.look()
			between(f)
			gone := map[string]string{"clusters/a.yaml": gitserver.Delete}
			f.open(1, gone)
			if rec := f.pullRequest(1); len(rec.Faults) > 0 {
				t.Errorf("faults are %v", rec.Faults)
			}
			f.repo.Commit(master, "remove", gone)
			f.look()
			if rec := f.cluster("web-a"); !rec.Desired.Removed {
				t.Errorf("it is not removed: %s", rec.Desired.Missing)
			}
		})
	}
}

// A document that leaves the configured paths, by another ending of its file or a misspelt
// folder, is not deleted: that proves no removal, at later heads and after a restart neither.
func TestDocumentOutsideTheConfiguredPathsIsNotRemoved(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"another ending": "clusters/prod.yml", "a misspelt folder": "cluster/prod.yaml", "switched off": "clusters/prod.yaml.off",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			moved := map[string]string{"clusters/prod.yaml": gitserver.Delete, path: document("prod")}
			f.open(1, moved)
			fault := path + ":1 is its document, outside the configured paths"
			if rec := f.pullRequest(1); !strings.Contains(rec.Faults.Error(), fault) {
				t.Errorf("faults are %v", rec.Faults)
			}
			check := func(when string) {
				t.Helper()
				if rec := f.cluster("prod"); rec.Desired.Removed || !strings.Contains(rec.Desired.Missing, fault) {
					t.Errorf("%s: removed is %t, missing is %q", when, rec.Desired.Removed, rec.Desired.Missing)
				}
			}
			f.repo.Commit(master, "move", moved)
			f.look()
			check("on the branch")
			f.repo.Commit(master, "more", map[string]string{"README.md": "more"})
			f.look()
			check("at the next head")
			f.restart()
			f.repo.Commit(master, "still more", map[string]string{"README.md": "still more"})
			f.look()
			check("after a restart")
			f.repo.Commit(master, "delete", map[string]string{path: gitserver.Delete})
			f.look()
			if !f.cluster("prod").Desired.Removed {
				t.Error("its document is gone, and it is not removed")
			}
		})
	}
}

// A document whose name is mistyped is not planned as a new cluster: the pull request is at
// fault, and its merge creates nothing before somebody has looked at it.
func TestMistypedNameCreatesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"clusters/prod.yaml": strings.Replace(document("prod"), "name: prod", "name: prdo", 1)})
	f.executeAll(planned)
	want := `cluster "prdo" may be "prod", whose document is gone: it is not planned`
	if faults := f.pullRequest(1).Faults.Error(); !strings.Contains(faults, want) {
		t.Errorf("faults are %q", faults)
	}
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got == holdfast.StatusSuccess {
		t.Errorf("its status is %q", got)
	}
	f.merge(1, byMerge)
	f.executeAll(planned)
	runs, err := f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "prdo"})
	f.must(err)
	for _, run := range runs {
		if run.Kind.Writes() {
			t.Errorf("it was applied by %s", run.ID)
		}
	}
	if rec := f.cluster("prdo"); rec.Waiting != holdfast.ReasonUnreviewed || rec.Applied.Run != "" {
		t.Errorf("it waits for %q: %v", rec.Waiting, f.runs("prdo"))
	}
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Desired.Missing == "" {
		t.Errorf("prod is removed: %t, missing: %q", rec.Desired.Removed, rec.Desired.Missing)
	}
}

// Of a document that was copied, and then moved, each place has to prove that it is gone.
func TestCopiedAndMovedDocumentIsNotRemovedByHalf(t *testing.T) {
	t.Parallel()
	for name, spoiled := range map[string]string{
		"emptied": "# nothing\n", "mistyped": strings.Replace(document("prod", "region: eu"), "name: prod", "name: prdo", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			files["clusters/prod.yaml"] = document("prod", "engine: {name: terraform}")
			f := newFleet(t, files)
			f.adopt()
			f.repo.Commit(master, "copy", map[string]string{"clusters/copy.yaml": files["clusters/prod.yaml"]})
			f.look()
			f.repo.Commit(master, "move", map[string]string{"clusters/prod.yaml": gitserver.Delete, "clusters/z.yaml": files["clusters/prod.yaml"]})
			f.look()
			spoiled = strings.Replace(spoiled, "region: eu", "engine: {name: terraform}", 1)
			f.repo.Commit(master, "spoil", map[string]string{"clusters/copy.yaml": gitserver.Delete, "clusters/z.yaml": spoiled})
			f.look()
			f.repo.Commit(master, "more", map[string]string{"README.md": "more"})
			f.look()
			f.restart()
			f.look()
			if rec := f.cluster("prod"); rec.Desired.Removed {
				t.Errorf("it is removed")
			}
			f.repo.Commit(master, "delete", map[string]string{"clusters/z.yaml": gitserver.Delete})
			f.look()
			if rec := f.cluster("prod"); !rec.Desired.Removed {
				t.Errorf("its document is gone, and it is not removed: %s", rec.Desired.Missing)
			}
		})
	}
}

// A document with a former name that is a fault may be any cluster that is gone: none is
// removed until it was corrected.
func TestFaultyFormerNameRemovesNothing(t *testing.T) {
	t.Parallel()
	labelled := func(name, former string) string {
		return strings.Replace(renamedDocument(name, former), "renamedFrom:", "labels: {a: b}, renamedFrom:", 1)
	}
	for name, tc := range map[string]struct {
		push  map[string]string
		fault string
	}{
		"one that is still there": {
			map[string]string{"clusters/prod.yaml": labelled("prd", "preprod")}, "which is still defined",
		},
		"one that another has, too": {
			map[string]string{"clusters/prod.yaml": labelled("prd", "preprod"), "clusters/preprod.yaml": labelled("pre", "preprod")},
			"and so it is of",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			files["infra/prd/main.tf"], files["infra/pre/main.tf"] = module("one"), module("one")
			f := newFleet(t, files)
			f.adopt()
			f.open(1, tc.push)
			if rec := f.pullRequest(1); !strings.Contains(rec.Faults.Error(), `cluster "prod" is gone, and not removed`) {
				t.Errorf("faults are %v", rec.Faults)
			}
			f.repo.Commit(master, "mistype", tc.push)
			f.look()
			if rec := f.cluster("prod"); rec.Desired.Removed || !strings.Contains(rec.Desired.Missing, tc.fault) {
				t.Errorf("removed is %t, missing is %q", rec.Desired.Removed, rec.Desired.Missing)
			}
			f.expectRuns("prod", "plan no_changes")
			f.repo.Commit(master, "correct", map[string]string{"clusters/prod.yaml": renamedDocument("prd", "prod")})
			f.look()
			if rec := f.cluster("prod"); rec.Deletion == nil || rec.Deletion.Reason != holdfast.ReasonRenamed {
				t.Errorf("it is not renamed: %+v", rec.Desired)
			}
		})
	}
}

// A pull request that deletes a file which cannot be read removes the clusters whose
// documents were in it: it is planned and shown as that.
func TestDeletingAFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.repo.Commit(master, "spoil", map[string]string{"clusters/prod.yaml": strings.Replace(document("prod"), "spec:", "spec: [", 1)})
	f.look()
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonMissing {
		t.Fatalf("it waits for %q", rec.Waiting)
	}
	f.open(1, map[string]string{"clusters/prod.yaml": strings.Replace(document("prod"), "spec:", "spec: [[", 1)})
	f.open(2, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.open(3, map[string]string{"README.md": "more"})
	f.executeAll(good)
	f.post()
	one, two, three := f.pullRequest(1), f.pullRequest(2), f.pullRequest(3)
	if len(one.Clusters) != 1 || one.Clusters[0].Removed || len(one.Faults) == 0 {
		t.Errorf("a file that still cannot be read: %+v, %v", one.Clusters, one.Faults)
	}
	if len(two.Clusters) != 1 || !two.Clusters[0].Removed || len(two.Faults) > 0 {
		t.Errorf("a file that is deleted: %+v, %v", two.Clusters, two.Faults)
	}
	if len(three.Clusters) > 0 {
		t.Errorf("another file: %+v", three.Clusters)
	}
	if comment := f.forge.comment(2); !strings.Contains(comment, "`prod` will be destroyed") {
		t.Errorf("its comment says\n%s", comment)
	}
	f.merge(2, byMerge)
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Deletion == nil {
		t.Errorf("it is %s and waits for %q: %v", rec.Phase, rec.Waiting, f.runs("prod"))
	}
}
