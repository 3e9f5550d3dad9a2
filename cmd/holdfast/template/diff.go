package template

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/offline"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/authoring"
	"github.com/holdfast-dev/holdfast/templates/diff"
)

// diffFlags say what is compared.
type diffFlags struct {
	repo, name   string
	cluster, dir string
	format       string
}

func newTemplateDiffCommand(a *app) *cobra.Command {
	var f diffFlags
	c := &cobra.Command{
		Use:   "diff V1 V2",
		Short: "Show how two versions of a template differ, and the effect on root modules",
		Long: `Show how two versions of a template differ: variables, rules, providers, modules
and outputs, breaking changes first; then how the root modules of the examples, or of
one cluster, change. Clusters that the newer version refuses are listed with their
faults.

A version is one that is released by a tag (1.4.2 means the tag NAME/v1.4.2 or
v1.4.2), a tag, a branch, a commit, or "." for the work tree as it is on disk.`,
		Example: `  holdfast template diff 1.4.2 .
  holdfast template diff 1.4.2 1.5.0 --repo ../templates --name kubernetes
  holdfast template diff 1.4.2 1.5.0 --repo ../templates --cluster prod-eu -d clusters`,
		Args: cli.Exactly(2, "two versions"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.diffTemplates(c.Context(), args[0], args[1], f)
		},
	}
	c.Flags().StringVar(&f.repo, "repo", ".", "folder in the template's repository, or that of the template")
	c.Flags().StringVar(&f.name, "name", "", "the template, where the repository has several")
	c.Flags().StringVar(&f.cluster, "cluster", "", "show the root module of this cluster instead of the examples'")
	c.Flags().StringVarP(&f.dir, "dir", "d", ".", "folder with cluster files, for --cluster")
	cli.AddFormatFlag(c, &f.format)
	return c
}

// Diff is how two versions of a template differ.
type Diff struct {
	Template string                   `json:"template"`
	From     string                   `json:"from"`
	To       string                   `json:"to"`
	Changes  []rollout.TemplateChange `json:"changes"`
	Files    []fileDiff               `json:"files"`
	Refused  []refusedCluster         `json:"refused,omitempty"`
	Same     []string                 `json:"same,omitempty"` // clusters whose root module stays what it is
}

// fileDiff is how a file of some root modules changes, in the same way for all.
type fileDiff struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters"`
	Diff     string   `json:"diff"` // unified
}

// refusedCluster is a cluster that only the older version accepts.
type refusedCluster struct {
	Cluster string          `json:"cluster"`
	Faults  holdfast.Faults `json:"faults"`
}

func (a *app) diffTemplates(ctx context.Context, from, to string, f diffFlags) error {
	if from == to {
		return cli.UsageError("%s and %s are the same version", from, to)
	}
	repo, err := a.openTemplateRepo(f.repo)
	if err != nil {
		return err
	}
	defer repo.close()
	was, err := repo.version(ctx, from, f.name)
	if err != nil {
		return err
	}
	now, err := repo.version(ctx, to, was.Blueprint.Name)
	if err != nil {
		return err
	}
	examples := was.Examples
	if f.cluster != "" {
		fl, err := offline.OpenFleet(offline.FleetFlags{Dir: f.dir})
		if err != nil {
			return err
		}
		doc, err := fl.Find(f.cluster)
		if err != nil {
			return err
		}
		examples = []authoring.Example{{Doc: doc}}
	}
	d := Diff{
		Template: was.Blueprint.Name, From: from, To: to,
		Changes: table.NotNil(diff.Templates(was.Blueprint, now.Blueprint)),
	}
	if err := d.roots(ctx, was, now, examples); err != nil {
		return err
	}
	return a.Print(f.format, d, func() string { return a.templateDiffText(d) })
}

// roots compares the root modules of clusters.
func (d *Diff) roots(ctx context.Context, was, now *authoring.Draft, examples []authoring.Example) error {
	d.Files = []fileDiff{}
	for _, e := range examples {
		name := e.Doc.Cluster.Name
		before, faults, err := was.ResolveAs(ctx, e.Doc)
		if err == nil && len(faults) > 0 {
			err = hint.New(fmt.Errorf("cluster %s is not valid with %s:\n%w", name, d.From, faults), "compare from a version that accepts it")
		}
		if err != nil {
			return err
		}
		after, faults, err := now.ResolveAs(ctx, e.Doc)
		if err != nil {
			return err
		}
		if len(faults) > 0 {
			d.Refused = append(d.Refused, refusedCluster{name, faults})
			continue
		}
		if !d.files(name, was.Golden(before), now.Golden(after)) && before.Digest.Equal(after.Digest) {
			d.Same = append(d.Same, name)
			continue
		}
		d.modules(name, templates.Compare(before, after).Words())
	}
	return nil
}

// files notes how the files of a cluster's root module change, and reports
// whether any does.
func (d *Diff) files(cluster string, before, after map[string][]byte) bool {
	names := make([]string, 0, len(before)+len(after))
	for name := range before {
		names = append(names, name)
	}
	for name := range after {
		names = append(names, name)
	}
	slices.Sort(names)
	changed := false
	for _, name := range slices.Compact(names) {
		text := authoring.Unified(name+" "+d.From, name+" "+d.To, before[name], after[name])
		if text == "" {
			continue
		}
		changed = true
		d.note(name, cluster, text)
	}
	return changed
}

// modules notes what changes of the modules' own files, which are many.
func (d *Diff) modules(cluster string, words []string) {
	var lines []string
	for _, w := range words {
		if strings.HasPrefix(w, "modules/") || strings.Contains(w, " file") {
			lines = append(lines, w+"\n")
		}
	}
	if len(lines) > 0 {
		d.note("modules", cluster, strings.Join(lines, ""))
	}
}

func (d *Diff) note(name, cluster, text string) {
	i := slices.IndexFunc(d.Files, func(f fileDiff) bool { return f.Name == name && f.Diff == text })
	if i < 0 {
		d.Files = append(d.Files, fileDiff{Name: name, Diff: text})
		i = len(d.Files) - 1
	}
	d.Files[i].Clusters = append(d.Files[i].Clusters, cluster)
}

func (a *app) templateDiffText(d Diff) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s → %s\n", table.OneLine(d.Template), table.OneLine(d.From), table.OneLine(d.To))
	if len(d.Changes) == 0 {
		b.WriteString("\nNothing that a document or an output could notice has changed.\n")
	}
	for _, breaking := range []bool{true, false} {
		var rows [][]table.Cell
		for _, c := range d.Changes {
			if c.Breaking != breaking {
				continue
			}
			row := table.Cells(c.About, c.What)
			if breaking {
				row[0].Colour = table.Red
			}
			rows = append(rows, row)
		}
		if len(rows) == 0 {
			continue
		}
		title := "Other changes"
		if breaking {
			title = "Breaking: only a new major version may bring it, and before 1.0.0 a minor one"
		}
		fmt.Fprintf(&b, "\n%s\n", title)
		for line := range strings.Lines(strings.TrimLeft(a.Table(table.Columns("", ""), rows), "\n")) {
			b.WriteString("  " + line)
		}
	}
	for _, r := range d.Refused {
		fmt.Fprintf(&b, "\n%s\n", a.Paint("Refused: "+table.OneLine(r.Cluster), table.Red))
		for _, f := range r.Faults {
			fmt.Fprintf(&b, "  %s\n", table.Clean(f.Error()))
		}
	}
	for _, f := range d.Files {
		fmt.Fprintf(&b, "\n%s of %s\n", a.Paint(table.Clean(f.Name), table.Blue), table.OneLine(strings.Join(f.Clusters, ", ")))
		for line := range strings.Lines(table.Clean(f.Diff)) {
			b.WriteString("  " + a.diffLine(strings.TrimRight(line, "\n")) + "\n")
		}
	}
	if len(d.Same) > 0 {
		fmt.Fprintf(&b, "\nSame root module: %s\n", table.OneLine(strings.Join(d.Same, ", ")))
	}
	return b.String()
}

// templateRepo is a Git repository on this disk, whose versions are read
// without touching its work tree.
type templateRepo struct {
	work   workTree
	source *gitsource.Source
	mirror string // folder, removed by close
	refs   holdfast.Refs
}

const templateRepoName = "templates"

func (a *app) openTemplateRepo(dir string) (*templateRepo, error) {
	work, err := openWorkTree([]string{dir})
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(work.root, ".git")); err != nil {
		return nil, hint.New(fmt.Errorf("%s is not in a Git repository", dir), "versions are tags of one: name it with --repo")
	}
	mirror, err := os.MkdirTemp("", "holdfast-diff-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	source, err := gitsource.New(gitsource.Options{
		Dir: mirror, Repositories: []gitsource.Repository{{Name: templateRepoName, URL: work.root}},
	})
	if err != nil {
		_ = os.RemoveAll(mirror)
		return nil, err
	}
	return &templateRepo{work: work, source: source, mirror: mirror}, nil
}

func (r *templateRepo) close() { _ = os.RemoveAll(r.mirror) }

// version opens the template with that name at a version; without a name, the
// only one.
func (r *templateRepo) version(ctx context.Context, version, name string) (*authoring.Draft, error) {
	if version == "." {
		return r.draft(ctx, r.work.tree, "the work tree", name)
	}
	revision, err := r.resolve(ctx, version, name)
	if err != nil {
		return nil, err
	}
	tree, err := r.source.Tree(ctx, templateRepoName, string(revision))
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, fmt.Errorf("there is no commit %s on a branch or a tag", revision.Short())
	} else if err != nil {
		return nil, err
	}
	return r.draft(ctx, tree, version, name)
}

// resolve returns the commit that a version, tag, branch or commit names.
func (r *templateRepo) resolve(ctx context.Context, version, name string) (holdfast.Revision, error) {
	if r.refs == nil {
		var err error
		if r.refs, err = r.source.Fetch(ctx, templateRepoName); err != nil {
			return "", err
		}
	}
	bare := strings.TrimPrefix(version, "v")
	candidates := []string{}
	if name == "" { // then it is the only one
		name = r.onlyName(ctx)
	}
	for _, tag := range templates.TagsFor(name, bare) {
		candidates = append(candidates, "refs/tags/"+tag)
	}
	for _, ref := range append(candidates, "refs/tags/"+version, "refs/heads/"+version) {
		if revision := r.refs[ref]; revision != "" {
			return revision, nil
		}
	}
	if revision, err := r.commit(ctx, version); err != nil || revision != "" {
		return revision, err
	}
	return "", hint.New(
		fmt.Errorf("%q is not a version, tag, branch or commit of %s", version, r.work.root),
		r.suggest(version, name),
	)
}

// onlyName is the name of the template in the work tree, "" if there are several.
func (r *templateRepo) onlyName(ctx context.Context) string {
	d, err := r.draft(ctx, r.work.tree, "the work tree", "")
	if err != nil {
		return ""
	}
	return d.Blueprint.Name
}

func (r *templateRepo) suggest(version, name string) string {
	var tags, words []string
	for ref := range r.refs {
		if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
			tags = append(tags, strings.TrimPrefix(strings.TrimPrefix(tag, name+"/"), "v"))
		} else if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
			words = append(words, branch)
		}
	}
	// Of two versions none is nearer: they are numbers.
	if near := nearest.Of(version, words); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	slices.Sort(tags)
	if len(tags) == 0 {
		return `there are no tags; "." is the work tree`
	}
	const most = 12
	if len(tags) > most {
		tags = append([]string{"…"}, tags[len(tags)-most:]...)
	}
	return "there are " + strings.Join(tags, ", ")
}

// commit finds a commit by the beginning of its hash, among the latest of all
// branches and tags.
func (r *templateRepo) commit(ctx context.Context, prefix string) (holdfast.Revision, error) {
	const shortest, most = 4, 20_000
	if len(prefix) < shortest || strings.Trim(prefix, "0123456789abcdef") != "" {
		return "", nil
	}
	var queue []holdfast.Revision
	seen := map[holdfast.Revision]bool{}
	push := func(revisions ...holdfast.Revision) {
		for _, rev := range revisions {
			if !seen[rev] {
				seen[rev] = true
				queue = append(queue, rev)
			}
		}
	}
	for _, head := range r.refs {
		push(head)
	}
	var found []holdfast.Revision
	for i := 0; i < len(queue) && i < most; i++ {
		if strings.HasPrefix(string(queue[i]), prefix) {
			found = append(found, queue[i])
		}
		parents, err := r.source.Parents(ctx, templateRepoName, queue[i])
		if err != nil {
			return "", err
		}
		push(parents...)
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", hint.New(fmt.Errorf("%d commits begin with %s", len(found), prefix), "give more characters")
}

// draft opens the template with that name in a tree.
func (r *templateRepo) draft(ctx context.Context, tree holdfast.Tree, label, name string) (*authoring.Draft, error) {
	dirs, err := authoring.Find(tree, ".")
	if err != nil {
		return nil, err
	}
	if name == "" && slices.Contains(dirs, r.work.below) {
		dirs = []string{r.work.below}
	}
	if name == "" && len(dirs) > 1 {
		return nil, hint.New(fmt.Errorf("there are %s in %s", table.Count(len(dirs), "template"), r.work.root), "say which one with --name: they are in "+strings.Join(dirs, ", "))
	}
	// Those whose folder is called so come first: the others need not be read.
	slices.SortStableFunc(dirs, func(a, b string) int {
		return strings.Compare(fold(path.Base(b) == name), fold(path.Base(a) == name))
	})
	for _, dir := range dirs {
		d, faults, err := authoring.Open(ctx, tree, dir)
		switch {
		case err != nil:
			return nil, err
		case d.Template == nil && (name == "" || path.Base(dir) == name):
			return nil, fmt.Errorf("the template in %s is not valid at %s:\n%w", dir, label, faults)
		case d.Template != nil && (name == "" || d.Blueprint.Name == name):
			return d, nil
		}
	}
	if name == "" {
		return nil, fmt.Errorf("there is no template at %s", label)
	}
	return nil, fmt.Errorf("there is no template %s at %s", name, label)
}

func fold(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}
