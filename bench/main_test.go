package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

func TestFiguresAreKeptAndShown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.json")
	figures := []figure{
		figure{Name: "pull request, terraform_data", N: 10, Value: 1.23456, Unit: "s", Measured: "2026-01-02"}.against(2.46912),
		{Name: "memory", Value: 61.04, Unit: "MiB", Measured: "2026-01-02"},
		{Name: "merge: engine starts per cluster", N: 10, Value: 3.3, Measured: "2026-01-02"},
		figure{Name: "fleet: push", N: 100, Value: 4, Unit: "ms", Measured: "2026-01-03"}.against(8),
		{Name: "fleet: start to ready", N: 100, Value: 0.25, Unit: "s", Measured: "2026-01-03"},
		figure{Name: "fleet: push", N: 1000, Value: 5, Unit: "ms", Measured: "2026-01-02"}.against(10),
		{Name: "drift: wait", N: 1000, Unit: "s", Measured: "2026-01-02"},
		{Name: "template: release", N: 1000, Value: 2, Unit: "s", Measured: "2026-01-02"},
	}
	if err := writeFigures(path, figures); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"-out", path, "-markdown"}, &out); err != nil {
		t.Fatal(err)
	}
	want := `| What | N | Measured | Floor | Ratio | Aim | On |
|---|--:|--:|--:|--:|---|---|
| pull request, terraform_data | 10 | 1.23 s | 2.47 s | 0.50 | ≤ 0.85 met | 2026-01-02 |
| memory |  | 61.0 MiB |  |  |  | 2026-01-02 |
| merge: engine starts per cluster | 10 | 3.30 |  |  | ≤ 3 missed | 2026-01-02 |

| Of a fleet of | 100 | 1000 | Growth | Floor | Ratio | Aim | On |
|---|--:|--:|--:|--:|--:|---|---|
| push | 4.00 ms | 5.00 ms | × 1.25 | 10.0 ms | 0.50 |  | 2026-01-02, 2026-01-03 |
| start to ready | 0.25 s |  |  |  |  | ≤ 10 s met | 2026-01-03 |
| drift: wait |  | 0.00 s |  |  |  |  | 2026-01-02 |
| template: release |  | 2.00 s |  |  |  |  | 2026-01-02 |
`
	if out.String() != want {
		t.Errorf("table:\n%swant:\n%s", &out, want)
	}
}

// README.md shows five figures, as long as as many were measured: with those of applies the
// memory of a small fleet is left out.
func TestHeadlines(t *testing.T) {
	t.Parallel()
	var figures []figure
	for _, h := range headlines {
		figures = append(figures, figure{Name: h.name, N: h.n, Value: 3, Unit: "s"})
	}
	for name, test := range map[string]struct {
		figures []figure
		want    []int // of the headlines
	}{
		"all":          {figures, []int{0, 1, 2, 3, 4}},
		"never merged": {slices.Delete(slices.Clone(figures), 1, 2), []int{0, 2, 3, 4, 5}},
		"few":          {figures[4:5], []int{4}},
	} {
		want := "| | Measured | Floor | Ratio |\n|---|--:|--:|--:|\n"
		for _, i := range test.want {
			want += "| " + headlines[i].words + " | 3.00 s |  |  |\n"
		}
		var out strings.Builder
		if err := printHeadlines(&out, test.figures); err != nil || out.String() != want {
			t.Errorf("%s: %v\n%swant:\n%s", name, err, &out, want)
		}
	}
}

// The pages show what was measured last, as it is judged now.
func TestPagesShowTheFigures(t *testing.T) {
	t.Parallel()
	for page, flag := range map[string]string{"README.md": "-markdown", "../README.md": "-headlines"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, begins := strings.Cut(string(text), "<!-- bench:begin -->\n")
		shown, _, ends := strings.Cut(rest, "<!-- bench:end -->\n")
		var out strings.Builder
		if err := run(t.Context(), []string{"-out", "results.json", flag}, &out); err != nil {
			t.Fatal(err)
		}
		if !begins || !ends || shown != out.String() {
			t.Errorf("%s shows\n%swant:\n%smake bench-table writes it", page, shown, &out)
		}
	}
}

// Each figure is of a part, and has its day.
func TestWrittenFiguresAreOfParts(t *testing.T) {
	t.Parallel()
	figures, err := readFigures("results.json")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, p := range new(bench).parts() {
		names[p.name] = true
	}
	for _, f := range figures {
		if _, err := time.Parse(time.DateOnly, f.Measured); err != nil || !names[f.Part] {
			t.Errorf("%s of %d is of the part %q and was measured on %q", f.Name, f.N, f.Part, f.Measured)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []int
		want   int
	}{{[]int{7}, 7}, {[]int{3, 1}, 1}, {[]int{9, 1, 5}, 5}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %d, want %d", test.values, got, test.want)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-holdfast", "/nowhere/holdfast"},
		{"-holdfast", "main.go", "-sizes", "1,many"},
		{"-holdfast", "main.go", "-sizes", "0"},
		{"-holdfast", "main.go", "-only", "nothing"},
		{"-holdfast", "main.go", "-fleets", "100,"},
		{"-holdfast", "main.go", "-cpu", "none"},
		{"-markdown", "-out", "/nowhere/results.json"},
		{"-headlines", "-out", "/nowhere/results.json"},
	} {
		if err := run(t.Context(), args, &strings.Builder{}); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestFleetsAreFleets(t *testing.T) {
	t.Parallel()
	members := fleet(250)
	files := fleetFiles(members)
	seen := make(map[string]bool)
	for _, m := range members {
		docs, faults := document.ParseClusters(m.path(), []byte(files[m.path()]))
		if len(docs) != 1 || len(faults) > 0 || docs[0].Cluster.Name != m.name || docs[0].Cluster.Project != m.project || seen[m.name] {
			t.Fatalf("%s has %d documents, faults: %v", m.path(), len(docs), faults)
		}
		seen[m.name] = true
		if m.document(1) == m.document(0) {
			t.Errorf("an edit of %s changes nothing", m.name)
		}
	}
}

// TestFleetsAreSpread: the clusters of a fleet are in 50 repositories, in each as many.
func TestFleetsAreSpread(t *testing.T) {
	t.Parallel()
	b := &bench{}
	if _, err := b.parse(nil); err != nil || b.repositories != 50 {
		t.Fatalf("%d repositories: %v", b.repositories, err)
	}
	w := &fleetWorld{world: &world{hosted: &hosted{name: fleetRepo}}, members: fleet(250)}
	for range b.repositories - 1 {
		w.more = append(w.more, &hosted{})
	}
	shares := w.shares()
	if len(shares) != b.repositories {
		t.Errorf("%d repositories have clusters", len(shares))
	}
	for h, members := range shares {
		if len(members) != len(w.members)/b.repositories || w.repository(members[0]) != h {
			t.Errorf("one of them has %d clusters", len(members))
		}
	}
}

// TestBlueprintFleetIsMadeFromTheLibrary holds the documents to the template that
// they name, which is the one of the library.
func TestBlueprintFleetIsMadeFromTheLibrary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := gitserver.NewRepo(t, filepath.Join(dir, "templates.git"))
	source, err := gitsource.New(gitsource.Options{
		Dir: filepath.Join(dir, "mirrors"), Repositories: []gitsource.Repository{{Name: templateRepo, URL: repo.Path, Branch: "main"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	versions := make(releases)
	for _, version := range []string{released, next} {
		files, err := libraryFiles("../"+libraryFolder, version)
		if err != nil {
			t.Fatal(err)
		}
		repo.Commit("main", version, files)
		refs, err := source.Fetch(t.Context(), templateRepo)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := source.Tree(t.Context(), templateRepo, string(refs["refs/heads/main"]))
		if err != nil {
			t.Fatal(err)
		}
		versions[version] = templates.TemplateVersion{Tree: tree, Dir: blueprint}
	}
	resolver := templates.NewResolver(versions)
	changes, upgrades := make(map[holdfast.Digest]int), 0
	for _, m := range blueprintFleet(60) {
		if m.upgrades() {
			upgrades++
		}
		docs, faults := document.ParseClusters(m.path(), []byte(m.document(0)))
		if len(docs) != 1 || len(faults) > 0 {
			t.Fatalf("%s: %v", m.path(), faults)
		}
		var roots []*templates.Root
		for _, version := range []string{released, next} {
			root, faults, err := resolver.Resolve(t.Context(), nil, docs[0].WrittenVersion(version))
			if err != nil || len(faults) > 0 {
				t.Fatalf("%s@%s: %v %v", m.name, version, faults, err)
			}
			roots = append(roots, root)
		}
		changes[templates.Compare(roots[0], roots[1]).Key]++
	}
	if changes[""] > 0 || len(changes) < len(clouds) || upgrades != 60/oneUpgrades {
		t.Errorf("%d upgrade, and changes are %v: none of them empty, and more kinds than clouds", upgrades, changes)
	}
}

func TestDecisionsAreHeard(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	d := watchDecisions(log)
	decided := d.await("b")
	for _, text := range []string{
		"time=1 msg=decided cluster=a pull_", "request=\"\"\ntime=2 msg=\"run was claimed\" cluster=c\n", "msg=decided cluster=b x\nmsg=decided cluster=a y\n",
	} {
		if _, err := log.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-decided:
	default:
		t.Error("the decision about b was not heard")
	}
	if n := d.distinct(); n != 2 {
		t.Errorf("%d clusters were decided about, want 2", n)
	}
}
