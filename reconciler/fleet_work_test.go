package reconciler_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// work counts what a reconciler asks of its store and of Git, and how many
// records it gets.
type work struct {
	mu     sync.Mutex
	counts map[string]int
}

func (w *work) add(what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what] += n
}

func (w *work) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts = make(map[string]int)
}

func (w *work) done() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts)
}

type workedStore struct {
	reconciler.Store
	*work
}

func (s workedStore) Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error) {
	s.add("clusters", 1)
	return s.Store.Cluster(ctx, name)
}

func (s workedStore) Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	records, err := s.Store.Clusters(ctx, filter)
	s.add("clusters", len(records))
	s.add("lists", 1)
	return records, err
}

func (s workedStore) SaveCluster(
	ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition,
) (holdfast.ClusterRecord, error) {
	s.add("writes", 1)
	return s.Store.SaveCluster(ctx, c, history...)
}

func (s workedStore) CreateClusters(
	ctx context.Context, records []holdfast.ClusterRecord, history ...holdfast.Transition,
) ([]holdfast.ClusterRecord, error) {
	s.add("writes", 1)
	return s.Store.CreateClusters(ctx, records, history...)
}

func (s workedStore) RecordCluster(
	ctx context.Context, c holdfast.ClusterRecord, entry holdfast.AuditEntry, history ...holdfast.Transition,
) (holdfast.ClusterRecord, error) {
	s.add("writes", 1)
	return s.Store.RecordCluster(ctx, c, entry, history...)
}

func (s workedStore) Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error) {
	runs, err := s.Store.Runs(ctx, filter)
	s.add("runs", len(runs))
	s.add("lists", 1)
	return runs, err
}

func (s workedStore) CreateRunAfter(ctx context.Context, run holdfast.Run, newest string, trail ...holdfast.AuditEntry) error {
	s.add("queued", 1)
	return s.Store.CreateRunAfter(ctx, run, newest, trail...)
}

type workedGit struct {
	reconciler.Git
	*work
}

func (g workedGit) Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error) {
	tree, err := g.Git.Tree(ctx, repo, revision)
	return workedTree{tree, g.work}, err
}

func (g workedGit) Diff(ctx context.Context, repo, from, to string) ([]holdfast.TreeChange, error) {
	changes, err := g.Git.Diff(ctx, repo, from, to)
	g.add("changes", len(changes))
	return changes, err
}

type workedTree struct {
	holdfast.Tree
	*work
}

func (t workedTree) ReadFile(name string) ([]byte, error) {
	t.add("files", 1)
	return t.Tree.ReadFile(name)
}

// TestWorkGrowsWithTheChange has fleets of several sizes do the same: what it
// takes is the same.
func TestWorkGrowsWithTheChange(t *testing.T) {
	t.Parallel()
	steps := map[string]func(f *fleet){
		"an edited document": func(f *fleet) {
			f.repo.Commit(master, "edit", map[string]string{"clusters/c0.yaml": templated("c0", "{path: ../templates/other}")})
			f.look()
		},
		"a label": func(f *fleet) {
			f.repo.Commit(master, "edit", map[string]string{"clusters/c0.yaml": "# c0\n" + templated("c0", "{path: ../templates/web}")})
			f.look()
		},
		"another document": func(f *fleet) {
			f.repo.Commit(master, "add", map[string]string{"clusters/new.yaml": templated("new", "{path: ../templates/web}")})
			f.look()
		},
		"a removed document": func(f *fleet) {
			f.repo.Commit(master, "remove", map[string]string{"clusters/c0.yaml": deleted})
			f.look()
		},
		"a renamed cluster": func(f *fleet) {
			f.repo.Commit(master, "rename", map[string]string{"clusters/c0.yaml": renamed("n0", "c0", "{path: ../templates/web}")})
			f.look()
		},
		"a former name that nobody knows": func(f *fleet) {
			f.repo.Commit(master, "rename", map[string]string{"clusters/n0.yaml": renamed("n0", "nobody", "{path: ../templates/web}")})
			f.look()
			f.repo.Commit(master, "readme", map[string]string{"README.md": "more"}) // what is at fault is looked at again
			f.look()
			if faults := f.cluster("n0").Desired.Faults; len(faults) == 0 {
				f.t.Error("a former name that nobody knows has no fault")
			}
		},
		"a file of no cluster": func(f *fleet) {
			f.repo.Commit(master, "readme", map[string]string{"README.md": "more"})
			f.look()
		},
		"a pull request": func(f *fleet) {
			f.open(1, map[string]string{"clusters/c0.yaml": templated("c0", "{path: ../templates/other}")})
		},
		"a push below a pull request": func(f *fleet) {
			f.open(1, map[string]string{"clusters/c0.yaml": templated("c0", "{path: ../templates/other}")})
			f.repo.Commit(master, "edit", map[string]string{"clusters/c1.yaml": templated("c1", "{path: ../templates/other}")})
			f.look()
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			few, many := workOf(t, 4, step), workOf(t, 24, step)
			if diff := cmp.Diff(few, many); diff != "" || len(few) == 0 {
				t.Errorf("work for 4 clusters and for 24 (-4 +24):\n%s", diff)
			}
		})
	}
}

// deleted as a file's content removes it.
const deleted = "\x00delete"

func renamed(name, from, template string) string {
	return fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: %s, renamedFrom: %s}
spec:
  project: p
  environment: e
  template: %s
  provider: any
`, name, from, template)
}

// TestWorkOfTagsGrowsWithTheChange has tags come and go in fleets of several
// sizes: only those clusters are looked at that name what they release.
func TestWorkOfTagsGrowsWithTheChange(t *testing.T) {
	t.Parallel()
	steps := map[string]func(f *fleet){
		"of another template": func(f *fleet) {
			f.repo.Tag("other/v1.0.0", master)
			f.look()
		},
		"a release that nobody names": func(f *fleet) {
			f.repo.Tag("web/v1.1.0", master)
			f.look()
		},
		"a release that one waits for": func(f *fleet) {
			f.repo.Commit(master, "ahead", map[string]string{"clusters/c0.yaml": templated("c0", "{name: web, version: 2.0.0}")})
			f.look()
			if faults := f.cluster("c0").Desired.Faults; len(faults) == 0 {
				f.t.Error("a version that is not there is no fault")
			}
			f.repo.Tag("web/v2.0.0", master)
			f.look()
			if faults := f.cluster("c0").Desired.Faults; len(faults) > 0 {
				f.t.Errorf("the version is there: %v", faults)
			}
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			few, many := workOn(t, 4, "{name: web, version: 1.0.0}", step), workOn(t, 24, "{name: web, version: 1.0.0}", step)
			if diff := cmp.Diff(few, many); diff != "" {
				t.Errorf("work for 4 clusters and for 24 (-4 +24):\n%s", diff)
			}
		})
	}
}

// workOf returns what a step takes a fleet of n clusters at rest.
func workOf(t *testing.T, n int, step func(*fleet)) map[string]int {
	t.Helper()
	return workOn(t, n, "{path: ../templates/web}", step)
}

// workOn is workOf for clusters of a template.
func workOn(t *testing.T, n int, template string, step func(*fleet)) map[string]int {
	t.Helper()
	files := webTemplate("one")
	for path, text := range webTemplate("two") {
		files["templates/other"+path[len("templates/web"):]] = text
	}
	for i := range n {
		files[fmt.Sprintf("clusters/c%d.yaml", i)] = templated(fmt.Sprintf("c%d", i), template)
	}
	w := &work{}
	w.reset()
	f := newFleet(t, files, func(o *reconciler.Options) {
		o.Store, o.Sources.Git = workedStore{o.Store, w}, workedGit{o.Sources.Git, w}
	})
	f.repo.Tag("web/v1.0.0", master)
	f.adopt()
	w.reset()
	step(f)
	return w.done()
}

// TestWorkDuringALargePullRequest has a pull request edit all documents of a
// fleet, and then one document be pushed: the others are not read again.
func TestWorkDuringALargePullRequest(t *testing.T) {
	t.Parallel()
	step := func(n int) func(*fleet) {
		return func(f *fleet) {
			files := make(map[string]string)
			for i := range n - 1 {
				name := fmt.Sprintf("c%d", i+1)
				files["clusters/"+name+".yaml"] = templated(name, "{path: ../templates/other}")
			}
			f.open(1, files)
			w := f.opts.Sources.Git.(workedGit).work
			w.reset()
			f.repo.Commit(master, "edit", map[string]string{"clusters/c0.yaml": templated("c0", "{path: ../templates/other}")})
			f.must(f.r.TakeIn(f.t.Context(), infra, 0))
			f.must(f.r.TakeIn(f.t.Context(), infra, 1))
		}
	}
	few, many := workOf(t, 4, step(4))["files"], workOf(t, 24, step(24))["files"]
	if few != many || few == 0 {
		t.Errorf("%d files are read beside a pull request of 4 documents, %d beside one of 24", few, many)
	}
}

// TestWorkOfAnApply has pull requests of several sizes be applied: what each cluster of
// them takes is the same, however many others are applied beside it.
func TestWorkOfAnApply(t *testing.T) {
	t.Parallel()
	perCluster := func(n int) map[string]int {
		files := twoClusters()
		change := map[string]string{}
		for i := range n {
			name := fmt.Sprintf("c-%d", i)
			files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
			change["infra/"+name+"/main.tf"] = module("two")
		}
		w := &work{}
		f := newFleet(t, files, func(o *reconciler.Options) { o.Store = workedStore{o.Store, w} })
		w.reset()
		f.adopt()
		f.open(1, change)
		f.executeAll(good)
		f.merge(1, byMerge)
		f.post()
		w.reset()
		f.executeAll(good)
		done := w.done()
		if got := f.forge.status(f.forge.get(1).MergeCommit, holdfast.ContextApply); got != holdfast.StatusSuccess {
			t.Fatalf("%s is %q in the end", holdfast.ContextApply, got)
		}
		for what := range done {
			done[what] /= n
		}
		return done
	}
	few, many := perCluster(4), perCluster(24)
	for what, each := range many {
		if each > few[what]+1 { // of what is done once for all
			t.Errorf("%s of each cluster: %d beside 3 others, %d beside 23", what, few[what], each)
		}
	}
}

// TestWorkOfAClaim: what an attempt starts from, the record of its cluster and the runs of the
// branch, is read once.
func TestWorkOfAClaim(t *testing.T) {
	t.Parallel()
	w := &work{}
	w.reset()
	f := newFleet(t, twoClusters(), func(o *reconciler.Options) { o.Store = workedStore{o.Store, w} })
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	w.reset()
	if a := f.claim(); a.Cluster != "prod" {
		t.Fatalf("%q is handed out", a.Cluster)
	}
	if done := w.done(); done["clusters"] != 1 || done["lists"] != 1 {
		t.Errorf("a claim reads %v, want one cluster and one list", done)
	}
}

// TestWorkOfAView has pull requests of several sizes be shown: of each of their clusters the
// record, the runs of the branch and those of the pull request are read once.
func TestWorkOfAView(t *testing.T) {
	t.Parallel()
	view := func(n int) map[string]int {
		files, change := twoClusters(), map[string]string{}
		for i := range n {
			name := fmt.Sprintf("c-%d", i)
			files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
			change["infra/"+name+"/main.tf"] = module("two")
		}
		w := &work{}
		w.reset()
		f := newFleet(t, files, func(o *reconciler.Options) { o.Store = workedStore{o.Store, w} })
		f.adopt()
		f.open(1, change)
		f.executeAll(good)
		w.reset()
		f.must(f.r.Show(t.Context(), onePR))
		return w.done()
	}
	few, many := view(2), view(12)
	for what, want := range map[string]int{"clusters": 1, "lists": 2} {
		if each := (many[what] - few[what]) / 10; each != want || few[what] == 0 {
			t.Errorf("%s of each cluster: %d, want %d", what, each, want)
		}
	}
}
