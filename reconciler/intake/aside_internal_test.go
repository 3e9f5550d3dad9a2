//go:build !race

package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/reconciler/places"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

var (
	asideWorlds = flag.Int("aside.worlds", 100, "how many histories to draw")
	asideSeed   = flag.Uint64("aside.seed", 1, "the seed of the first one; each next one has the next number")
)

// TestPushesLeaveAlone holds what is remembered of pull requests to a look at them: whenever a
// push is taken to have nothing to do with a pull request, looking at it finds what is on
// record, in histories with merges of all kinds and with documents that move, are renamed,
// claimed twice, depend on one another and have faults.
func TestPushesLeaveAlone(t *testing.T) {
	t.Parallel()
	h := &drawnHistory{rnd: rand.New(rand.NewPCG(0, 0))}
	var worlds []*drawnWorld
	for i := range *asideWorlds {
		h.rnd = rand.New(rand.NewPCG(*asideSeed+uint64(i), 7))
		worlds = append(worlds, h.world())
	}
	git := h.write(t)
	beside, others := 0, 0
	for i, w := range worlds {
		seed := *asideSeed + uint64(i)
		b, o := w.check(t, h, git, seed)
		beside, others = beside+b, others+o
	}
	t.Logf("of %d worlds from seed %d, %d pull requests were left alone by a push, and %d looked at", len(worlds), *asideSeed, beside, others)
	if min(beside, others) < len(worlds)/2 {
		t.Error("that is too few of one kind")
	}
}

// drawnDoc is the document of a cluster.
type drawnDoc struct {
	name, renamed, root, state, depends string
	label                               int
}

func (d drawnDoc) text() string {
	renamed := ""
	if d.renamed != "" {
		renamed = ", renamedFrom: " + d.renamed
	}
	text := fmt.Sprintf("apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: %s, labels: {x: \"%d\"}%s}\n"+
		"spec:\n  project: p\n  environment: e\n", d.name, d.label, renamed)
	if d.root == "web" {
		text += "  template: {path: ../templates/web}\n  provider: any\n"
	} else {
		text += "  module: {path: " + d.root + "}\n"
	}
	if d.depends != "" {
		text += "  dependsOn: [" + d.depends + "]\n"
	}
	if d.state != "" {
		text += "  state: {type: s3, bucket: b, key: " + d.state + ", region: r}\n"
	}
	return text
}

// drawnTree are the files of a commit: a string, or []drawnDoc.
type drawnTree map[string]any

func textOf(file any) string {
	if docs, ok := file.([]drawnDoc); ok {
		var texts []string
		for _, doc := range docs {
			texts = append(texts, doc.text())
		}
		return strings.Join(texts, "---\n")
	}
	return file.(string)
}

// drawnWorld is a tracked branch with pull requests, by the marks of their commits.
type drawnWorld struct {
	base   int
	heads  []int
	pushes []int
	known  map[string]holdfast.ClusterRecord
}

// drawnHistory draws commits for git fast-import.
type drawnHistory struct {
	rnd   *rand.Rand
	in    bytes.Buffer
	trees []drawnTree // by mark
	sha   []holdfast.Revision
}

func (h *drawnHistory) commit(tree drawnTree, parents ...int) int {
	h.trees = append(h.trees, maps.Clone(tree))
	mark := len(h.trees)
	fmt.Fprintf(&h.in, "commit refs/heads/c%d\nmark :%d\ncommitter Ada <ada@example.com> %d +0000\ndata 0\n", mark, mark, 1_700_000_000+mark)
	for i, parent := range parents {
		fmt.Fprintf(&h.in, "%s :%d\n", []string{"from", "merge"}[min(i, 1)], parent)
	}
	fmt.Fprint(&h.in, "deleteall\n")
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		text := textOf(tree[path])
		fmt.Fprintf(&h.in, "M 100644 inline %s\ndata %d\n%s\n", path, len(text), text)
	}
	fmt.Fprint(&h.in, "\n")
	return mark
}

func (h *drawnHistory) tree(mark int) drawnTree { return maps.Clone(h.trees[mark-1]) }

// write makes a repository of the commits and returns a mirror of it.
func (h *drawnHistory) write(t *testing.T) *gitsource.Source {
	t.Helper()
	dir := t.TempDir()
	repo := gitserver.NewRepo(t, filepath.Join(dir, "drawn.git"))
	marks := filepath.Join(dir, "marks")
	cmd := exec.Command("git", "-C", repo.Path, "fast-import", "--quiet", "--force", "--export-marks="+marks)
	cmd.Stdin = &h.in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fast-import: %v: %s", err, out)
	}
	data, err := os.ReadFile(marks)
	if err != nil {
		t.Fatal(err)
	}
	h.sha = make([]holdfast.Revision, len(h.trees)+1)
	for line := range strings.Lines(string(data)) {
		var mark int
		var sha string
		if _, err := fmt.Sscanf(line, ":%d %s", &mark, &sha); err != nil {
			t.Fatal(err)
		}
		h.sha[mark] = holdfast.Revision(sha)
	}
	git, err := gitsource.New(gitsource.Options{
		Dir: filepath.Join(dir, "mirrors"), Repositories: []gitsource.Repository{{Name: "drawn", URL: repo.Path, Branch: "c1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := git.Fetch(t.Context(), "drawn"); err != nil {
		t.Fatal(err)
	}
	return git
}

// world draws a tracked branch, pull requests into it and pushes to it.
func (h *drawnHistory) world() *drawnWorld {
	const shared = "resource \"terraform_data\" \"s\" {}\n"
	tree := drawnTree{
		"README.md": "a fleet", "infra/shared/main.tf": shared, "templates/web/modules/site/main.tf": shared,
		"templates/web/template.yaml": drawnTemplate(0),
	}
	for i := range 9 {
		tree[fmt.Sprintf("infra/m%d/main.tf", i)] = drawnModule(i, i < 2)
	}
	roots := []string{"infra/m0", "infra/m1", "infra/m2", "infra/m3", "web", "infra/m0", "web", "infra/m4", "infra/m5", "infra/m7"}
	for i, root := range roots {
		file := fmt.Sprintf("clusters/f%d.yaml", i/2%4)
		docs, _ := tree[file].([]drawnDoc)
		tree[file] = append(docs, drawnDoc{name: fmt.Sprintf("c%d", i), root: root})
	}
	if h.rnd.IntN(6) == 0 {
		h.edit(tree, 100)
	}
	w := &drawnWorld{base: h.commit(tree), known: make(map[string]holdfast.ClusterRecord)}
	forks := []int{w.base}
	for range 2 + h.rnd.IntN(3) {
		fork := forks[h.rnd.IntN(len(forks))] // perhaps another pull request
		mark := fork
		for range 1 + h.rnd.IntN(2) {
			mark = h.step(mark, 92)
		}
		forks = append(forks, mark)
		w.heads = append(w.heads, mark)
	}
	main := w.base
	for range 1 + h.rnd.IntN(4) {
		main = h.push(main, w)
		w.pushes = append(w.pushes, main)
	}
	for i := range 13 {
		switch name := fmt.Sprintf("c%d", i); h.rnd.IntN(8) {
		case 0:
			w.known[name] = holdfast.ClusterRecord{Name: name, Owner: "another", Applied: holdfast.Applied{Run: "r"}}
		case 1, 2, 3:
			w.known[name] = holdfast.ClusterRecord{Name: name, Owner: "drawn", Applied: holdfast.Applied{Run: "r", StateLocation: "clusters/" + name}}
		}
	}
	return w
}

// drawnTemplate has other modules for each number, one of them outside of its folder.
func drawnTemplate(n int) string {
	return "apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: web}\n" +
		"spec:\n  providers:\n    any:\n      modules:\n        - {name: site, source: ./modules/site}\n" + []string{
		"", "        - {name: more, source: ./modules/site}\n", "        - {name: more, source: ../../infra/m1}\n", "# nothing more\n",
	}[n]
}

func drawnModule(n int, shared bool) string {
	text := fmt.Sprintf("resource \"terraform_data\" \"x\" {\n  input = \"%d\"\n}\n", n)
	if shared {
		text += "module \"s\" {\n  source = \"../shared\"\n}\n"
	}
	return text
}

// push moves the tracked branch on: by edits, or by a merge of some kind.
func (h *drawnHistory) push(main int, w *drawnWorld) int {
	head := w.heads[h.rnd.IntN(len(w.heads))]
	merged := h.tree(main)
	for path, file := range h.tree(head) {
		if was, ok := h.tree(w.base)[path]; !ok || textOf(was) != textOf(file) {
			merged[path] = file
		}
	}
	switch h.rnd.IntN(16) {
	case 0:
		return h.commit(merged, main, head)
	case 1:
		return h.commit(merged, main) // squashed
	case 2:
		return h.commit(h.tree(main), main, head) // and nothing taken of it
	case 3:
		return h.commit(h.tree(main), h.commit(merged, main, head)) // merged and reverted
	case 4:
		return head // perhaps a forced push
	case 5:
		return h.step(head, 94)
	default:
		return h.step(main, 94)
	}
}

// step draws a commit on another one, of which so many in a hundred are plain edits.
func (h *drawnHistory) step(parent, plain int) int {
	tree := h.tree(parent)
	for range 1 + h.rnd.IntN(2) {
		odd := 100
		if h.rnd.IntN(100) < plain {
			odd = 0
		}
		h.edit(tree, odd)
	}
	tree["README.md"] = fmt.Sprint(h.rnd.IntN(4))
	if h.rnd.IntN(3) > 0 {
		tree["README.md"] = h.tree(parent)["README.md"]
	}
	return h.commit(tree, parent)
}

// edit changes something of a tree; odd is how many in a hundred edits are beyond plain
// ones.
func (h *drawnHistory) edit(tree drawnTree, odd int) {
	documents, modules := drawnPaths(tree)
	module := fmt.Sprintf("infra/m%d/main.tf", h.rnd.IntN(10))
	if len(modules) > 0 && h.rnd.IntN(2) == 0 {
		module = modules[h.rnd.IntN(len(modules))]
	}
	if len(documents) == 0 {
		tree["clusters/f0.yaml"] = []drawnDoc{{name: "c0", root: "infra/m0"}}
		return
	}
	file := documents[h.rnd.IntN(len(documents))]
	docs := slices.Clone(tree[file].([]drawnDoc))
	i := h.rnd.IntN(len(docs))
	tree[file] = docs
	root := []string{"infra/m0", "infra/m1", "infra/m2", "infra/m3", "infra/m4", "infra/m5", "infra/m6", "web"}[h.rnd.IntN(8)]
	another := fmt.Sprintf("c%d", h.rnd.IntN(13))
	if h.rnd.IntN(100) >= odd {
		switch h.rnd.IntN(12) {
		case 0, 1:
			docs[i].label = h.rnd.IntN(5)
		case 8:
			tree["templates/web/template.yaml"] = drawnTemplate(h.rnd.IntN(4))
		case 2, 3, 4:
			tree[module] = drawnModule(h.rnd.IntN(9), h.rnd.IntN(6) == 0)
		case 5:
			docs[i].root = root
		case 6:
			tree[filepath.Dir(module)+fmt.Sprintf("/more%d.tf", h.rnd.IntN(2))] = "# more\n"
		case 7: // others may take the same
			docs[i].state = fmt.Sprintf("state-%d", h.rnd.IntN(3))
		default: // others may add it in another file
			tree[fmt.Sprintf("clusters/g%d.yaml", h.rnd.IntN(6))] = []drawnDoc{{name: fmt.Sprintf("c%d", 7+h.rnd.IntN(5)), root: root}}
		}
		return
	}
	other := documents[h.rnd.IntN(len(documents))]
	switch h.rnd.IntN(13) {
	case 0:
		drawnRemove(tree, file, i)
	case 1: // it moves, perhaps with an edit
		doc := docs[i]
		if h.rnd.IntN(2) == 0 {
			doc.depends = another
		}
		drawnRemove(tree, file, i)
		moved, _ := tree[other].([]drawnDoc)
		tree[other] = append(slices.Clone(moved), doc)
	case 2: // it is claimed twice
		tree[other] = append(slices.Clone(tree[other].([]drawnDoc)), docs[i])
	case 3, 4:
		docs[i].depends = []string{another, ""}[h.rnd.IntN(2)]
	case 5:
		docs[i].renamed, docs[i].name = docs[i].name, another
	case 6:
		docs[i].root = "infra/nowhere"
	case 7:
		docs[i].state = []string{"", "one", "two"}[h.rnd.IntN(3)]
	case 8:
		delete(tree, module)
	case 9:
		tree["clusters/broken.yaml"] = "apiVersion: [\n"
	case 10:
		delete(tree, "clusters/broken.yaml")
	case 11: // its folder is that of a template, and it a case of that
		tree["clusters/template.yaml"] = tree["templates/web/template.yaml"]
	default: // a file becomes a folder
		dir := filepath.Dir(module)
		maps.DeleteFunc(tree, func(path string, _ any) bool { return strings.HasPrefix(path, dir+"/") })
		tree[dir] = "a file\n"
	}
}

func drawnPaths(tree drawnTree) (documents, modules []string) {
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		if _, ok := tree[path].([]drawnDoc); ok {
			documents = append(documents, path)
		} else if strings.HasSuffix(path, ".tf") {
			modules = append(modules, path)
		}
	}
	return documents, modules
}

func drawnRemove(tree drawnTree, file string, i int) {
	docs := slices.Delete(slices.Clone(tree[file].([]drawnDoc)), i, i+1)
	if tree[file] = docs; len(docs) == 0 {
		delete(tree, file)
	}
}

// check takes in the pushes of a world, and returns how many pull requests were left alone
// by one, and how many not.
func (w *drawnWorld) check(t *testing.T, h *drawnHistory, git *gitsource.Source, seed uint64) (beside, others int) {
	t.Helper()
	repo := Repository{Name: "drawn", Branch: "main"}
	fast, slow := w.pullRequests(git), w.pullRequests(git)
	at := func(mark int) {
		for _, p := range []*pullRequests{fast, slow} {
			p.mirror.refs[repo.Name] = holdfast.Refs{"refs/heads/main": h.sha[mark]}
		}
	}
	look := func(p *pullRequests, head int) (holdfast.PullRequestRecord, *origin) {
		rec := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: repo.Name, Number: head}, State: holdfast.PullRequestOpen,
			Head: h.sha[head], BaseBranch: repo.Branch,
		}}
		made, err := p.assess(t.Context(), repo, holdfast.PullRequestRecord{}, &rec, true)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return rec, made
	}
	at(w.base)
	records, origins := make([]holdfast.PullRequestRecord, len(w.heads)), make([]*origin, len(w.heads))
	for i, head := range w.heads {
		records[i], origins[i] = look(fast, head)
	}
	former := w.base
	for _, next := range w.pushes {
		at(next)
		cat, err := fast.Catalogs.Read(t.Context(), repo.Name, string(h.sha[next]), string(h.sha[former]))
		if err != nil {
			t.Fatal(err)
		}
		pushed, err := fast.pushOf(t.Context(), repo, h.sha[former], h.sha[next], cat)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, head := range w.heads {
			if pushed == nil || origins[i] == nil || !origins[i].unaffectedBy(pushed) {
				others++
				records[i], origins[i] = look(fast, head)
				continue
			}
			beside++
			if in, err := git.IsAncestor(t.Context(), "drawn", h.sha[head], h.sha[next]); err != nil || in {
				t.Errorf("seed %d: the push of c%d merges c%d (%v)", seed, next, head, err)
			}
			want, _ := look(slow, head)
			if diff := drawnDiff(t, records[i], want); diff != "" {
				t.Errorf("seed %d: a push from c%d to c%d leaves c%d alone, and %s", seed, former, next, head, diff)
			}
		}
		former = next
	}
	return beside, others
}

// drawnDiff compares records except for what they were made from.
func drawnDiff(t *testing.T, got, want holdfast.PullRequestRecord) string {
	t.Helper()
	var texts []string
	for _, rec := range []holdfast.PullRequestRecord{got, want} {
		rec.Base, rec.Result = "", ""
		data, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data))
	}
	if texts[0] == texts[1] {
		return ""
	}
	return fmt.Sprintf("its record is\n%s\nand would be\n%s", texts[0], texts[1])
}

func (w *drawnWorld) pullRequests(git *gitsource.Source) *pullRequests {
	store := drawnStore{known: w.known}
	catalogs := catalog.NewReader(catalog.Options{
		Git: git, Resolver: templates.NewResolver(nil), Globs: map[string][]string{"drawn": {"clusters/*.yaml"}},
		Check: func(string, document.Document, string) holdfast.Faults { return nil },
	})
	refs := make(map[string]holdfast.Refs)
	s := shared{
		Rooms: Rooms{Catalogs: catalogs, Lineage: lineage.NewReader(store, catalogs), Places: places.NewKeeper(places.Options{Store: drawnPlaces{}})},
		Peers: Peers{Impacts: drawnImpacts{}, Runners: drawnRunners{}},
		opts:  Options{Store: store, Sources: Sources{Git: drawnGit{git, refs}}, Logger: slog.New(slog.DiscardHandler), Now: time.Now},
		marks: newMarks(), origins: newOrigins(), mirror: &mirror{refs: refs, git: drawnGit{git, refs}, outages: newOutages()},
	}
	s.compared = s.comparer()
	return &pullRequests{s}
}

// drawnPlaces has no runners, and no states but in Holdfast's own backend.
type drawnPlaces struct{ places.Store }

func (drawnPlaces) Runners(context.Context) ([]runnerspec.Record, error) { return nil, nil }

func (drawnPlaces) StatePlace(context.Context, string) (holdfast.StatePlace, error) {
	return holdfast.StatePlace{}, holdfast.ErrNotFound
}

func (drawnPlaces) Cluster(context.Context, string) (holdfast.ClusterRecord, error) {
	return holdfast.ClusterRecord{}, holdfast.ErrNotFound
}

// drawnGit has a forge without merge results.
type drawnGit struct {
	*gitsource.Source
	refs map[string]holdfast.Refs
}

func (g drawnGit) FetchPullRequest(context.Context, string, int) (holdfast.PullRequestRefs, error) {
	return holdfast.PullRequestRefs{Refs: g.refs["drawn"]}, nil
}

type drawnStore struct {
	Store
	known map[string]holdfast.ClusterRecord
}

func (s drawnStore) Cluster(_ context.Context, name string) (holdfast.ClusterRecord, error) {
	if rec, ok := s.known[name]; ok {
		return rec, nil
	}
	return holdfast.ClusterRecord{}, holdfast.ErrNotFound
}

func (s drawnStore) Clusters(_ context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	var out []holdfast.ClusterRecord
	for name, rec := range s.known {
		if slices.Contains(filter.Names, name) || filter.Names == nil && filter.Waiting == "" && rec.Owner == filter.Owner {
			out = append(out, rec)
		}
	}
	return out, nil
}

func (drawnStore) Artefact(context.Context, string, string) (io.ReadCloser, error) {
	return nil, holdfast.ErrNotFound
}

func (drawnStore) ClustersAt(context.Context, string) ([]string, error)             { return nil, nil }
func (drawnStore) Runs(context.Context, holdfast.RunFilter) ([]holdfast.Run, error) { return nil, nil }

type drawnRunners struct{ Runners }

func (drawnRunners) Assess(context.Context, *catalog.Catalog, *catalog.Catalog, *holdfast.PullRequestRecord) error {
	return nil
}

type drawnImpacts struct{ Impacts }

func (drawnImpacts) Forget(context.Context, holdfast.PullRequestRef) error { return nil }

func (drawnImpacts) Assess(
	context.Context, string, *catalog.Catalog, *catalog.Catalog, holdfast.PullRequestRecord, *holdfast.PullRequestRecord,
) error {
	return nil
}
