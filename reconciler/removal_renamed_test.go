package reconciler_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// changedProd is prod's document with another name and another environment.
func changedProd(name string) string {
	return strings.NewReplacer("name: prod", "name: "+name, "environment: e", "environment: f").Replace(document("prod"))
}

func (f *fleet) noDestroy(cluster, when string) {
	f.t.Helper()
	for _, run := range f.runs(cluster) {
		if strings.HasPrefix(run, "destroy") || strings.HasPrefix(run, "plan destroy") {
			f.t.Errorf("%s: %s has the run %q", when, cluster, run)
		}
	}
}

// A new name in the place of one that is gone is at fault in the pull request and removes
// nothing on the branch, whatever else was changed by it.
func TestAnotherNameInItsPlaceRemovesNothing(t *testing.T) {
	t.Parallel()
	gone := gitserver.Delete
	for name, tc := range map[string]struct {
		before, change map[string]string
		at, called     string
	}{
		"a slip": {change: map[string]string{"clusters/prod.yaml": changedProd("prdo")}, at: "clusters/prod.yaml:1", called: "prdo"},
		"a new name and a new module": {
			change: map[string]string{"clusters/prod.yaml": document("live"), "infra/live/main.tf": module("two"), "infra/prod/main.tf": gone},
			at:     "clusters/prod.yaml:1", called: "live",
		},
		"in a file of several": {
			before: map[string]string{"clusters/prod.yaml": document("preprod") + "---\n" + document("prod"), "clusters/preprod.yaml": gone},
			change: map[string]string{"clusters/prod.yaml": document("preprod") + "---\n" + changedProd("live")},
			at:     "clusters/prod.yaml:9", called: "live",
		},
		"in another folder": {
			change: map[string]string{"clusters/prod.yaml": gone, "clusters/eu/prod.yaml": changedProd("live")},
			at:     "clusters/eu/prod.yaml:1", called: "live",
		},
		"a slip in another file": {
			change: map[string]string{"clusters/prod.yaml": gone, "clusters/all.yaml": changedProd("prof")},
			at:     "clusters/all.yaml:1", called: "prof",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.repo.Commit(master, "before", tc.before)
			f.look()
			f.executeAll(unchanged)
			f.open(1, tc.change)
			f.executeAll(good)
			f.post()
			want := tc.at + `: cluster "` + tc.called + `" may be "prod", whose document is gone`
			if faults := f.pullRequest(1).Faults.Error(); !strings.Contains(faults, want) || !strings.Contains(faults, "metadata.renamedFrom: prod") || !strings.Contains(faults, "in a later change") {
				t.Errorf("faults are %v", faults)
			}
			if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got == holdfast.StatusSuccess {
				t.Errorf("its status is %q", got)
			}
			f.merge(1, byMerge)
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Desired.Removed || !strings.Contains(rec.Desired.Missing, tc.at+" may be its document") {
				t.Errorf("removed is %t, missing is %q", rec.Desired.Removed, rec.Desired.Missing)
			}
			f.noDestroy("prod", "merged")
			if rec := f.cluster(tc.called); rec.Applied.Run != "" {
				t.Errorf("%s was applied", tc.called)
			}
		})
	}
}

// What removes one cluster and adds another is a removal, if the other one does not come to
// its place.
func TestReplacedElsewhereIsRemoved(t *testing.T) {
	t.Parallel()
	gone := gitserver.Delete
	both := map[string]string{"clusters/all.yaml": document("prod") + "---\n" + document("preprod"), "clusters/prod.yaml": gone, "clusters/preprod.yaml": gone}
	for name, tc := range map[string]struct{ before, change map[string]string }{
		"another file":                      {nil, map[string]string{"clusters/prod.yaml": gone, "clusters/live.yaml": changedProd("live")}},
		"another number":                    {map[string]string{"clusters/prod.yaml": document("prod")}, map[string]string{"clusters/prod.yaml": gone, "clusters/prod-2.yaml": changedProd("prod-2")}},
		"a file is split":                   {both, map[string]string{"clusters/all.yaml": gone, "clusters/preprod.yaml": document("preprod")}},
		"a file takes over another's place": {nil, map[string]string{"clusters/preprod.yaml": gone, "clusters/prod.yaml": document("preprod")}},
		"another one is renamed":            {both, map[string]string{"clusters/all.yaml": strings.Replace(renamedDocument("pre", "preprod"), "infra/pre", "infra/preprod", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			if tc.before != nil {
				f.repo.Commit(master, "before", tc.before)
				f.look()
				f.executeAll(unchanged)
			}
			f.open(1, tc.change)
			rec := f.pullRequest(1)
			removes := slices.ContainsFunc(rec.Clusters, func(c holdfast.PullRequestCluster) bool { return c.Name == "prod" && c.Removed })
			if len(rec.Faults) > 0 || !removes {
				t.Errorf("faults are %v, it changes %+v", rec.Faults, rec.Clusters)
			}
			f.repo.Commit(master, "change", tc.change)
			f.look()
			if rec := f.cluster("prod"); !rec.Desired.Removed {
				t.Errorf("it is not removed: %s", rec.Desired.Missing)
			}
		})
	}
}

// A cluster that is replaced in its file on purpose, by one change after the other, is
// removed: also if the second one comes before it was destroyed.
func TestReplacedByTwoChanges(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.repo.Commit(master, "both", map[string]string{"clusters/prod.yaml": document("prod") + "---\n" + document("preprod"), "clusters/preprod.yaml": gitserver.Delete})
	f.look()
	f.open(1, map[string]string{"clusters/prod.yaml": document("preprod")})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	f.open(2, map[string]string{"clusters/prod.yaml": changedProd("prdo") + "---\n" + document("preprod")})
	f.executeAll(withEngine)
	f.merge(2, byMerge)
	for _, number := range []int{1, 2} {
		if rec := f.pullRequest(number); len(rec.Faults) > 0 {
			t.Errorf("pull request %d has faults: %v", number, rec.Faults)
		}
	}
	f.executeAll(withEngine)
	if rec := f.cluster("prod"); rec.Desired.Missing != "" || rec.Deletion == nil {
		t.Errorf("prod waits for %q: %s", rec.Waiting, rec.WaitingDetail)
	}
	if rec := f.cluster("prdo"); rec.Applied.Run == "" {
		t.Errorf("prdo waits for %q: %s", rec.Waiting, rec.WaitingDetail)
	}
}

// A cluster that is held for another name stays so whatever is changed there, and each of
// the ways out works from there.
func TestHeldForAnotherNameUntilAnswered(t *testing.T) {
	t.Parallel()
	gone := gitserver.Delete
	for name, tc := range map[string]struct {
		answer  map[string]string
		apply   bool
		renamed bool
		removed bool
	}{
		"corrected": {answer: map[string]string{"clusters/prod.yaml": document("prod")}},
		"renamed": {
			answer:  map[string]string{"clusters/prod.yaml": strings.Replace(changedProd("prdo"), "name: prdo", "name: prdo, renamedFrom: prod", 1)},
			renamed: true,
		},
		"deleted": {answer: map[string]string{"clusters/prod.yaml": gone}, removed: true},
		"applied": {answer: map[string]string{"clusters/prod.yaml": document("prdo", "engine: {name: terraform}")}, apply: true, removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			files["infra/prdo/main.tf"] = module("one")
			f := newFleet(t, files)
			f.adopt()
			f.repo.Commit(master, "mistype", map[string]string{"clusters/prod.yaml": strings.Replace(document("prod"), "name: prod", "name: prdo", 1)})
			f.look()
			for i, change := range []map[string]string{
				{"clusters/prod.yaml": changedProd("prdo")},
				{"clusters/prod.yaml": gone, "clusters/moved.yaml": document("prdo")},
				{"clusters/moved.yaml": gone, "clusters/prod.yaml": changedProd("prdo")},
			} {
				f.open(10+i, change)
				if rec := f.pullRequest(10 + i); !strings.Contains(rec.Faults.Error(), `cluster "prdo" may be "prod"`) {
					t.Errorf("change %d: faults are %v", i, rec.Faults)
				}
				f.merge(10+i, byMerge)
				f.restart()
				f.look()
				f.executeAll(good)
				if rec := f.cluster("prod"); rec.Desired.Removed || !strings.Contains(rec.Desired.Missing, `its document, with the name "prdo"`) {
					t.Errorf("change %d: removed is %t, missing is %q", i, rec.Desired.Removed, rec.Desired.Missing)
				}
				f.noDestroy("prod", "held")
				if rec := f.cluster("prdo"); rec.Applied.Run != "" {
					t.Errorf("change %d: prdo was applied", i)
				}
			}
			if tc.apply {
				f.apply("prdo")
				f.executeAll(withEngine)
				if rec := f.cluster("prdo"); rec.Applied.Run == "" {
					t.Errorf("prdo waits for %q: %s", rec.Waiting, rec.WaitingDetail)
				}
			}
			f.open(20, tc.answer)
			f.executeAll(withEngine)
			if rec := f.pullRequest(20); len(rec.Faults) > 0 {
				t.Errorf("the answer has faults: %v", rec.Faults)
			}
			f.merge(20, byMerge)
			f.executeAll(withEngine)
			rec := f.cluster("prod")
			if tc.renamed != (rec.Deletion != nil && rec.Deletion.To == "prdo") || tc.removed && !rec.Desired.Removed || rec.Desired.Missing != "" {
				t.Errorf("removed is %t, it ended with %+v, missing is %q", rec.Desired.Removed, rec.Deletion, rec.Desired.Missing)
			}
			if !tc.removed && !tc.renamed && (rec.Phase != holdfast.PhaseActive || rec.Waiting != "") {
				t.Errorf("it is %s and waits for %q", rec.Phase, rec.Waiting)
			}
		})
	}
}

// Nor does an open pull request plan such a document under its template's later version, or
// with changed code: both would be answers that nobody gave.
func TestHeldNameIsNotPlannedByChangedCode(t *testing.T) {
	t.Parallel()
	files := twoOfTemplate()
	f := newFleet(t, files)
	f.adopt()
	f.repo.Commit(master, "mistype", map[string]string{"clusters/a.yaml": templated("web-aa", "{path: ../templates/web}")})
	f.look()
	changed := webTemplate("two")
	maps.Copy(changed, map[string]string{"README.md": "more"})
	f.open(1, changed)
	f.executeAll(good)
	rec := f.pullRequest(1)
	if !strings.Contains(rec.Faults.Error(), `cluster "web-aa" may be "web-a"`) {
		t.Errorf("faults are %v", rec.Faults)
	}
	for _, c := range rec.Clusters {
		if c.Name == "web-aa" && c.SourceDigest != "" {
			t.Error("web-aa is planned")
		}
	}
}

// Once a cluster of the new name is applied, the one that was held for it is removed,
// without another commit: also if its removal and the new document are of two pull requests
// that were planned next to each other and come to the branch at once.
func TestHeldUntilTheOtherIsApplied(t *testing.T) {
	t.Parallel()
	retitle := func(f *fleet) {
		f.repo.Commit(master, "retitle", map[string]string{"clusters/prod.yaml": changedProd("live"), "infra/live/main.tf": module("one")})
		f.look()
		f.executeAll(withEngine)
		f.held("prod", "live")
	}
	for name, tc := range map[string]struct {
		change func(f *fleet)
		merges int // of pull requests
	}{
		"by a command": {change: func(f *fleet) {
			retitle(f)
			f.apply("live")
		}},
		"by two merges": {merges: 2, change: func(f *fleet) {
			f.openTwoInOnePlace()
			f.mergeUnnoticed(1, byMerge)
			f.merge(2, byMerge)
			f.held("prod", "live")
		}},
		"by another replica": {change: func(f *fleet) {
			first := f.r
			f.restart()
			f.look() // it does not take in what follows
			second := f.r
			f.r = first
			retitle(f)
			f.r = second
			f.apply("live")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := built(t, twoClusters())
			tc.change(f)
			f.executeAll(withEngine)
			if rec := f.cluster("live"); rec.Applied.Run == "" {
				t.Errorf("live waits for %q: %s", rec.Waiting, rec.WaitingDetail)
			}
			rec := f.cluster("prod")
			if !rec.Desired.Removed || rec.Desired.Missing != "" {
				t.Errorf("it is not removed: %s", rec.Desired.Missing)
			}
			if reviewed := tc.merges > 0; reviewed != (rec.Deletion != nil) {
				t.Errorf("prod is %s, and waits for %q: %s", rec.Phase, rec.Waiting, rec.WaitingDetail)
			}
		})
	}
}

// openTwoInOnePlace opens and plans two pull requests: one removes prod, the other one adds
// live in a file of that name.
func (f *fleet) openTwoInOnePlace() {
	f.t.Helper()
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.open(2, map[string]string{"clusters/eu/prod.yaml": changedProd("live"), "infra/live/main.tf": module("one")})
	f.executeAll(withEngine)
	for _, number := range []int{1, 2} {
		if rec := f.pullRequest(number); len(rec.Faults) > 0 {
			f.t.Fatalf("pull request %d has faults: %v", number, rec.Faults)
		}
	}
}

// held expects that a cluster is not removed, because of the document of another one.
func (f *fleet) held(cluster, other string) {
	f.t.Helper()
	rec := f.cluster(cluster)
	if rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.WaitingDetail, `its document, with the name "`+other+`"`) {
		f.t.Errorf("%s: removed is %t, it waits for %q: %s", cluster, rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
	}
	f.noDestroy(cluster, "held")
}

// What a cluster is held for is not forgotten while it is held for something else, nor by the
// records of the former version, which have it in words only.
func TestHeldNameOutlastsASpoiledFile(t *testing.T) {
	t.Parallel()
	for name, former := range map[string]bool{"on record": false, "on record of the former version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := built(t, twoClusters())
			f.repo.Commit(master, "retitle", map[string]string{"clusters/prod.yaml": changedProd("production"), "infra/production/main.tf": module("one")})
			f.look()
			f.held("prod", "production")
			if former {
				f.withoutNames("prod")
			}
			f.spoil("clusters/prod.yaml", changedProd("production"))
			mend := map[string]string{"clusters/prod.yaml": gitserver.Delete, "clusters/production.yaml": changedProd("production")}
			f.open(1, mend)
			if rec := f.pullRequest(1); !strings.Contains(rec.Faults.Error(), `cluster "production" may be "prod"`) {
				t.Errorf("the faults are %v", rec.Faults)
			}
			f.merge(1, byMerge)
			f.executeAll(withEngine)
			f.held("prod", "production")
		})
	}
}

// Nor is the new name forgotten that a cluster waits for.
func TestNewNameOutlastsASpoiledFile(t *testing.T) {
	t.Parallel()
	for name, former := range map[string]bool{"on record": false, "on record of the former version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := built(t, twoClusters())
			apply := f.applyOf(1, "two")
			f.repo.Commit(master, "rename", map[string]string{
				"clusters/prod.yaml": gitserver.Delete, "clusters/live.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("two"),
			})
			f.look()
			if former {
				f.withoutNames("prod")
			}
			f.spoil("clusters/live.yaml", renamedDocument("live", "prod"))
			f.repo.Commit(master, "remove", map[string]string{"clusters/live.yaml": gitserver.Delete})
			f.look()
			f.finish(apply, withEngine(apply))
			f.executeAll(withEngine)
			rec := f.cluster("prod")
			if rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.WaitingDetail, "its new name, live, went before it had taken over") {
				t.Errorf("removed is %t, it waits for %q: %s", rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
			}
		})
	}
}

// spoil has a document that cannot be read be why prod is held.
func (f *fleet) spoil(file, document string) {
	f.t.Helper()
	f.repo.Commit(master, "spoil", map[string]string{file: strings.Replace(document, "spec:", "spec: [", 1)})
	f.look()
	if why := f.cluster("prod").Desired.Missing; !strings.Contains(why, "cannot be read") {
		f.t.Fatalf("it is missing as %q", why)
	}
}

// withoutNames makes a record one of the former version.
func (f *fleet) withoutNames(cluster string) {
	f.t.Helper()
	rec := f.cluster(cluster)
	if rec.Desired.HeldFor == "" && len(rec.Desired.NewNames) == 0 {
		f.t.Fatalf("there are no names on record of %s, which is missing as %s", cluster, rec.Desired.Missing)
	}
	rec.Desired.HeldFor, rec.Desired.NewNames = "", nil
	_, err := f.store.SaveCluster(f.t.Context(), rec)
	f.must(err)
}
