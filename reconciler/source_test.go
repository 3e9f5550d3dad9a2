package reconciler_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/reconciler"
)

func TestBranchIsTakenIn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	f.expectRuns("prod", "plan queued Unreviewed")
	f.adopt()
	for _, name := range []string{"prod", "preprod"} {
		f.expectRuns(name, "plan no_changes")
		if rec := f.cluster(name); rec.Waiting != "" || rec.Applied.Run == "" || rec.Phase != holdfast.PhaseActive {
			t.Errorf("%s was not adopted: %+v", name, rec)
		}
	}

	// What differs is planned, and nothing else is touched.
	before := f.cluster("preprod").Version
	f.repo.Commit(master, "change", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	f.expectRuns("prod", "plan no_changes", "plan queued Unreviewed")
	f.executeAll(good)
	if got := f.cluster("prod").Waiting; got != holdfast.ReasonUnreviewed {
		t.Errorf("prod waits for %q", got)
	}
	if after := f.cluster("preprod").Version; after != before {
		t.Errorf("preprod was written though nothing of it changed")
	}

	// The same again is nothing.
	f.look()
	f.expectRuns("prod", "plan no_changes", "plan planned")
}

func TestDeletionIsProven(t *testing.T) {
	t.Parallel()
	gone := map[string]string{"clusters/prod.yaml": gitserver.Delete}
	with := func(more map[string]string) map[string]string {
		files := maps.Clone(gone)
		maps.Copy(files, more)
		return files
	}
	tests := map[string]struct {
		files   map[string]string
		then    map[string]string // a second push
		removed bool
	}{
		"deleted":                     {files: gone, removed: true},
		"the file defines another":    {files: map[string]string{"clusters/prod.yaml": document("other"), "infra/other/main.tf": ""}},
		"unparsable":                  {files: map[string]string{"clusters/prod.yaml": "kind: [Cluster"}},
		"unparsable elsewhere":        {files: with(map[string]string{"clusters/preprod.yaml": "kind: [Cluster"})},
		"unparsable, then mended":     {files: with(map[string]string{"clusters/preprod.yaml": "kind: [Cluster"}), then: map[string]string{"clusters/preprod.yaml": document("preprod")}, removed: true},
		"emptied branch":              {files: with(map[string]string{"clusters/preprod.yaml": gitserver.Delete})},
		"moved":                       {files: with(map[string]string{"clusters/eu/prod.yaml": document("prod")})},
		"not looked at, then deleted": {files: with(map[string]string{"elsewhere/prod.yaml": document("prod")}), then: map[string]string{"elsewhere/prod.yaml": gitserver.Delete}, removed: true},
		"deleted and defined again":   {files: gone, then: map[string]string{"clusters/new.yaml": document("prod")}},
		"emptied and defined no more": {files: map[string]string{"clusters/prod.yaml": "# nothing\n"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.repo.Commit(master, "delete", tt.files)
			f.look()
			if tt.then != nil {
				f.repo.Commit(master, "then", tt.then)
				f.look()
			}
			rec := f.cluster("prod")
			if rec.Desired.Removed != tt.removed {
				t.Errorf("removed is %t, want %t", rec.Desired.Removed, tt.removed)
			}
			if defined := tt.then["clusters/new.yaml"] + tt.files["clusters/eu/prod.yaml"]; (rec.Waiting == holdfast.ReasonMissing) != (!tt.removed && defined == "") {
				t.Errorf("it waits for %q: %s", rec.Waiting, rec.WaitingDetail)
			}
			switch {
			case tt.removed: // and nobody has seen what would be destroyed
				f.expectRuns("prod", "plan no_changes", "plan queued Unreviewed")
			case tt.then != nil:
				f.expectRuns("prod", "plan no_changes", "plan canceled UpToDate")
			default:
				f.expectRuns("prod", "plan no_changes")
			}
		})
	}
}

func TestChangedGlobsRemoveNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.restart(func(opts *reconciler.Options) { opts.Sources.Repositories[0].Clusters = []string{"clusters/pre*.yaml"} })
	f.look()
	if f.cluster("prod").Desired.Removed {
		t.Error("a glob that does not match any more has removed a cluster")
	}
}

func TestMissingBranchRemovesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.repo.Git("update-ref", "-d", "refs/heads/"+master)
	f.look()
	if f.cluster("prod").Desired.Removed {
		t.Error("a branch that is gone has removed a cluster")
	}
	source, err := f.store.RepositoryState(t.Context(), infra)
	f.must(err)
	if source.LastError == "" {
		t.Error("nothing is said of it")
	}
}

func TestFaultsLeaveTheOthersAlone(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", "modul: x")
	f := newFleet(t, files)
	f.look()
	rec := f.cluster("prod")
	if len(rec.Desired.Faults) == 0 || rec.Waiting != holdfast.ReasonInvalid {
		t.Errorf("prod: faults %v, waits for %q", rec.Desired.Faults, rec.Waiting)
	}
	f.expectRuns("prod")
	f.expectRuns("preprod", "plan queued Unreviewed")
	f.repo.Commit(master, "mend", map[string]string{"clusters/prod.yaml": document("prod")})
	f.look()
	f.expectRuns("prod", "plan queued Unreviewed")
}

// Names and folders that cannot be used cost what uses them: neither the other clusters of a
// pull request that adds some, nor the branch after its merge, nor a start after that.
func TestOddNamesLeaveTheOthersAlone(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	deep := strings.Repeat("d/", 210) + "prod.yaml"
	f.open(1, map[string]string{
		`units/opt-my\x2ddata.mount`: "unit", "docs/caf\xe9/menu": "1", "clusters/" + deep: document("deep"),
		"infra/prod/main.tf": module("two"),
	})
	if got, faults := f.affected(1), f.pullRequest(1).Faults; !slices.Equal(got, []string{"prod"}) || len(faults) > 0 {
		t.Errorf("it affects %v, faults %v", got, faults)
	}
	f.executeAll(good)
	f.merge(1, byMerge)
	f.executeAll(good)
	f.restart()
	f.look()
	if rec := f.cluster("prod"); rec.Waiting != "" || !rec.Desired.SourceDigest.Equal(rec.Applied.SourceDigest) || len(f.r.Ready()) > 0 {
		t.Errorf("prod waits for %q, the server for %v", rec.Waiting, f.r.Ready())
	}
	f.open(2, map[string]string{`infra/preprod/x\y`: "1", "infra/preprod/" + deep: "1", "clusters/caf\xe9.yaml": document("new"), "infra/prod/main.tf": module("three")})
	if got := f.affected(2); !slices.Equal(got, []string{"preprod", "prod"}) {
		t.Errorf("it affects %v", got)
	}
	faults := f.pullRequest(2).Faults
	for _, word := range []string{"backslash", "nested deeper", "not UTF-8"} {
		if !strings.Contains(faults.Error(), word) {
			t.Errorf("no fault says %q: %v", word, faults)
		}
	}
	if a := f.claim(); a.Cluster != "prod" {
		t.Errorf("it plans %q, want prod", a.Cluster)
	}
}

func TestAffectedIsContent(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"README":              {map[string]string{"README.md": "bye"}, nil},
		"a comment":           {map[string]string{"clusters/prod.yaml": "# hello\n" + document("prod")}, nil},
		"a module":            {map[string]string{"infra/prod/main.tf": module("two")}, []string{"prod"}},
		"a similar name":      {map[string]string{"infra/preprod/main.tf": module("two")}, []string{"preprod"}},
		"a folder beside":     {map[string]string{"infra/prod-2/main.tf": module("two")}, nil},
		"a template":          {map[string]string{"templates/web/modules/site/main.tf": module("two")}, []string{"web-a", "web-b"}},
		"a new cluster":       {map[string]string{"clusters/new.yaml": document("new"), "infra/new/main.tf": module("one")}, []string{"new"}},
		"deleted":             {map[string]string{"clusters/prod.yaml": gitserver.Delete}, []string{"prod"}},
		"moved":               {map[string]string{"clusters/prod.yaml": gitserver.Delete, "clusters/eu/prod.yaml": document("prod")}, nil},
		"its module is moved": {map[string]string{"infra/prod": gitserver.Delete, "clusters/prod.yaml": strings.Replace(document("prod"), "infra/prod", "infra/moved", 1), "infra/moved/main.tf": module("one")}, []string{"prod"}},
		"renamed":             {map[string]string{"clusters/prod.yaml": document("prod2"), "infra/prod2/main.tf": module("one")}, []string{"prod", "prod2"}},
		"engine":              {map[string]string{"clusters/prod.yaml": document("prod", `engine: {version: "~> 1.9"}`)}, []string{"prod"}},
		"claimed twice":       {map[string]string{"clusters/again.yaml": document("prod")}, []string{"prod"}},
		"no cluster":          {map[string]string{"clusters/none.yaml": "kind: Other\n"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoOfTemplate())
			f.look()
			f.open(7, tt.files)
			if got := f.affected(7); !slices.Equal(got, tt.want) {
				t.Errorf("affects %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPullRequestReportsItsFaultsOnly(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/broken.yaml"] = document("broken", "nonsense: 1")
	f := newFleet(t, files)
	f.look()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	if faults := f.pullRequest(1).Faults; len(faults) > 0 {
		t.Errorf("it is blamed for %v", faults)
	}
	f.open(2, map[string]string{"clusters/again.yaml": document("prod")})
	rec := f.pullRequest(2)
	if len(rec.Faults) != 2 || !strings.Contains(rec.Faults.Error(), `"prod" is claimed twice`) {
		t.Errorf("faults %v, want both places of the name", rec.Faults)
	}
	// Breaking and mending it once more reads files again, which changes nothing.
	f.repo.Commit(master, "break", map[string]string{"clusters/preprod.yaml": "kind: ["})
	f.look()
	f.repo.Commit(master, "mend", map[string]string{"clusters/preprod.yaml": document("preprod")})
	f.look()
	if faults := f.pullRequest(1).Faults; len(faults) > 0 {
		t.Errorf("it is blamed for %v", faults)
	}
}

func TestANameBelongsToItsRepository(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	rec, err := f.store.SaveCluster(t.Context(), holdfast.ClusterRecord{
		Name: "prod", Owner: "other", Phase: holdfast.PhaseActive, Applied: holdfast.Applied{Run: "run-1"},
		Desired: holdfast.Desired{SourceDigest: oldDigest},
	})
	f.must(err)
	f.look()
	if got := f.cluster("prod"); got.Owner != "other" || got.Version != rec.Version {
		t.Errorf("prod was taken from its owner: %+v", got)
	}
	for i, files := range []map[string]string{
		{"infra/prod/main.tf": module("two")},
		{"clusters/prod.yaml": strings.Replace(document("prod"), "name: prod", "name: prod, labels: {team: web}", 1)},
		{"clusters/prod.yaml": "# ours\n" + document("prod")},
	} {
		f.open(i+1, files)
		if faults := f.pullRequest(i + 1).Faults.Error(); !strings.Contains(faults, `belongs to repository "other"`) {
			t.Errorf("pull request %d: faults are %q", i+1, faults)
		}
		f.post()
		if status := f.forge.status(f.pullRequest(i+1).Head, holdfast.ContextPlan); status != holdfast.StatusFailure {
			t.Errorf("pull request %d: the status is %q", i+1, status)
		}
	}
	f.expectRuns("prod")
}

func TestWhatIsNotPlanned(t *testing.T) {
	t.Parallel()
	change := map[string]string{"infra/prod/main.tf": module("two")}
	tests := map[string]struct {
		with   func(*holdfast.PullRequest)
		undo   func(*holdfast.PullRequest)
		reason holdfast.Reason
	}{
		"fork":       {func(pr *holdfast.PullRequest) { pr.Fork = true }, func(pr *holdfast.PullRequest) { pr.Fork = false }, holdfast.ReasonFork},
		"draft":      {func(pr *holdfast.PullRequest) { pr.Draft = true }, func(pr *holdfast.PullRequest) { pr.Draft = false }, holdfast.ReasonDraft},
		"other base": {func(pr *holdfast.PullRequest) { pr.BaseBranch = "release" }, func(pr *holdfast.PullRequest) { pr.BaseBranch = master }, "OtherBase"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.open(1, change)
			f.expectRuns("prod", "plan no_changes", "plan queued NewRevision")
			f.change(1, tt.with)
			if got := f.pullRequest(1).Reason; got != tt.reason {
				t.Errorf("the reason is %q, want %q", got, tt.reason)
			}
			if got := f.newest("prod"); got.Status != holdfast.RunCanceled {
				t.Errorf("the plan is %s", got.Status)
			}
			f.change(1, tt.undo)
			if got := f.newest("prod"); got.Status != holdfast.RunQueued {
				t.Errorf("the plan is %s (%s) afterwards, want it queued", got.Status, got.Reason)
			}
		})
	}
}

func TestConflictAndItsResolution(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.repo.Commit(master, "meanwhile", map[string]string{"infra/prod/main.tf": module("three")})
	f.look()
	if got := f.pullRequest(1).Reason; got != holdfast.ReasonNotMergeable {
		t.Fatalf("the reason is %q", got)
	}
	f.repo.Commit(master, "back", map[string]string{"infra/prod/main.tf": module("one")})
	f.look()
	if rec := f.pullRequest(1); rec.Reason != "" || len(rec.Clusters) != 1 {
		t.Errorf("after the conflict: %q, %v", rec.Reason, rec.Clusters)
	}
	run := f.newest("prod")
	if run.Status != holdfast.RunQueued || run.PullRequest.Number != 1 {
		t.Errorf("the newest run is %s of %s", run.Status, run.PullRequest)
	}
}

func TestVersionsOfTemplates(t *testing.T) {
	t.Parallel()
	files := webTemplate("one")
	files["clusters/web.yaml"] = templated("web-c", "{name: web, version: 1.0.0}")
	f := newFleet(t, files)
	f.look()
	rec := f.cluster("web-c")
	if rec.Waiting != holdfast.ReasonInvalid {
		t.Fatalf("a version that does not exist: waits for %q", rec.Waiting)
	}

	// The tag comes: nothing else has to be pushed.
	f.repo.Tag("web/v1.0.0", master)
	f.look()
	f.expectRuns("web-c", "plan queued Unreviewed")
	f.executeAll(good)

	// It moves: what was released is not what is there.
	f.repo.Commit(master, "change", map[string]string{"templates/web/modules/site/main.tf": module("two")})
	f.repo.Tag("web/v1.0.0", master)
	f.look()
	rec = f.cluster("web-c")
	if rec.Waiting != holdfast.ReasonInvalid || !strings.Contains(rec.Desired.Faults.Error(), "web/v1.0.0") {
		t.Errorf("a moved tag: waits for %q, faults %v", rec.Waiting, rec.Desired.Faults)
	}
	if got := f.newest("web-c"); got.Template != "" && !strings.Contains(got.Template, "1.0.0") {
		t.Errorf("the run says template %q", got.Template)
	}
}
