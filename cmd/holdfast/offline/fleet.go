package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/runner/workspace"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// diskFleet is the clusters of a folder on disk, for the commands that need no
// server. What is read of it has the bounds that the server has for a tree.
type diskFleet struct {
	tree     holdfast.Tree
	below    string // only files below this folder of tree are looked at
	docs     []document.Document
	size     int            // bytes of the files that define clusters
	claims   map[string]int // documents by name
	faults   holdfast.Faults
	faulty   map[string]holdfast.Faults // faults of a cluster, by name
	resolver *templates.Resolver
}

// FleetFlags say where a fleet is.
type FleetFlags struct {
	Dir       string
	templates map[string]string
}

func addFleetFlags(c *cobra.Command, f *FleetFlags, withDir bool) {
	if withDir {
		c.Flags().StringVarP(&f.Dir, "dir", "d", ".", "folder with cluster files, in a repository")
	}
	c.Flags().StringToStringVar(&f.templates, "template", nil,
		"NAME=DIR: a local template to use instead of its released versions")
}

// OpenFleet reads all clusters below f.dir. Paths in them are those of the Git
// repository around it; without one, of the folder itself.
func OpenFleet(f FleetFlags) (*diskFleet, error) {
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return nil, fmt.Errorf("find folder: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, hint.New(fmt.Errorf("%s is not a folder", f.Dir), "name the folder with the cluster files")
	}
	root := RepositoryOf(dir)
	below, err := filepath.Rel(root, dir)
	if err != nil {
		return nil, fmt.Errorf("find folder: %w", err)
	}
	tree, err := gitsource.Dir(root)
	if err != nil {
		return nil, err
	}
	fl := &diskFleet{tree: tree, below: filepath.ToSlash(below), claims: make(map[string]int), faulty: make(map[string]holdfast.Faults)}
	fl.resolver = templates.NewResolver(checkouts(f.templates))
	return fl, fl.read()
}

// RepositoryOf returns the Git work tree that dir is in, otherwise dir.
func RepositoryOf(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

func (fl *diskFleet) read() error {
	ofTemplate, err := templates.OfTemplate(fl.tree, path.Join(fl.below, "x"))
	if err != nil {
		return fmt.Errorf("read folder: %w", err)
	}
	err = fs.WalkDir(fl.tree, fl.below, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := path.Ext(name); !d.Type().IsRegular() || ext != ".yaml" && ext != ".yml" {
			return nil
		}
		if example, err := templates.OfTemplate(fl.tree, name); err != nil {
			return err
		} else if example && !ofTemplate { // the server passes over them, too
			return nil
		}
		data, err := fl.tree.ReadFile(name)
		if err != nil {
			fl.faults = append(fl.faults, holdfast.Fault{File: name, Message: err.Error()})
			return nil
		}
		fl.take(name, data)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read folder: %w", err)
	}
	fl.faults = append(fl.faults, document.Conflicts(fl.docs)...)
	for _, fault := range fl.faults {
		fl.faulty[fault.Cluster] = append(fl.faulty[fault.Cluster], fault)
	}
	return nil
}

// take reads the clusters of a file. If it exceeds a bound, none of them counts.
func (fl *diskFleet) take(name string, data []byte) {
	if fl.size+len(data) > document.MaxText {
		fl.faults = append(fl.faults, document.TooMuchText(name))
		return
	}
	docs, faults := document.ParseClusters(name, data)
	fl.faults = append(fl.faults, faults...)
	fl.takeRunners(name, data)
	if len(docs) > 0 || len(faults) > 0 {
		fl.size += len(data)
	}
	if fault, found := document.TooManyClaims(docs, func(name string) int { return fl.claims[name] }); found {
		fl.faults = append(fl.faults, fault)
		return
	}
	for _, doc := range docs {
		fl.claims[doc.Cluster.Name]++
	}
	fl.docs = append(fl.docs, docs...)
}

// takeRunners checks the runners and rules of a file, as far as that can be done without a
// server.
func (fl *diskFleet) takeRunners(name string, data []byte) {
	runners, faults := runnerdoc.Parse(name, data, false, runnerdoc.Options{AnySecret: true})
	for _, doc := range runners {
		faults = append(faults, doc.Faults...)
	}
	fl.faults = append(fl.faults, faults...)
}

// resolve returns a cluster's root module, or what is wrong with it.
func (fl *diskFleet) resolve(ctx context.Context, doc document.Document) (*templates.Root, holdfast.Faults, error) {
	faults := fl.faulty[doc.Cluster.Name]
	if len(faults) == 0 {
		return fl.resolver.Resolve(ctx, fl.tree, doc)
	}
	more, err := fl.resolver.Check(ctx, fl.tree, doc)
	return nil, slices.Concat(faults, more), err
}

// Find returns the cluster of that name.
func (fl *diskFleet) Find(name string) (document.Document, error) {
	var names []string
	for _, doc := range fl.docs {
		if doc.Cluster.Name == name {
			return doc, nil
		}
		names = append(names, doc.Cluster.Name)
	}
	todo := "no cluster is defined here: name the folder with --dir"
	if len(names) > 0 {
		slices.Sort(names)
		todo = "there are " + strings.Join(names, ", ")
	}
	return document.Document{}, hint.New(fmt.Errorf("there is no cluster %q", name), todo)
}

// completeClusters lets shells complete the name of a cluster of the folder.
func completeClusters(c *cobra.Command, f *FleetFlags) {
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if fl, err := OpenFleet(*f); err == nil && len(args) == 0 {
			for _, doc := range fl.docs {
				names = append(names, doc.Cluster.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// one opens a fleet and resolves one cluster of it.
func one(ctx context.Context, f FleetFlags, name string) (document.Document, *templates.Root, error) {
	fl, err := OpenFleet(f)
	if err != nil {
		return document.Document{}, nil, err
	}
	doc, err := fl.Find(name)
	if err != nil {
		return doc, nil, err
	}
	root, faults, err := fl.resolve(ctx, doc)
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("cluster %q is not valid:\n%w", name, faults)
	}
	return doc, root, err
}

// checkouts are folders with templates, by name.
type checkouts map[string]string

// Version implements templates.Versions: whatever is checked out is taken for
// the version that is asked for.
func (c checkouts) Version(_ context.Context, name, version string) (templates.TemplateVersion, error) {
	dir, ok := c[name]
	if !ok {
		return templates.TemplateVersion{}, errors.New("released templates live in other repositories: name a checkout with --template " + name + "=DIR")
	}
	tree, err := gitsource.Dir(dir)
	if err != nil {
		return templates.TemplateVersion{}, fmt.Errorf("open template %s: %w", name, err)
	}
	return templates.TemplateVersion{Repo: dir, Tag: "v" + version, Tree: tree, Dir: "."}, nil
}

// NewValidateCommand returns the command validate.
func NewValidateCommand(base *cli.App) *cobra.Command {
	a := &app{base}
	var f FleetFlags
	var format string
	c := &cobra.Command{
		Use:   "validate [DIR]",
		Short: "Check all cluster files below a folder, without a server",
		Long: `Check all cluster files below a folder (default: the current one), one by one and
together: duplicate names and circular dependencies are faults. A dependency that no
file here defines is only a warning, because another repository may define it.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.Dir = "."
			if len(args) > 0 {
				f.Dir = args[0]
			}
			return a.validate(c.Context(), f, format)
		},
	}
	addFleetFlags(c, &f, false)
	cli.AddFormatFlag(c, &format)
	return c
}

// Report is what validate found.
type Report struct {
	Clusters int             `json:"clusters"` // how many documents there are
	Faults   holdfast.Faults `json:"faults"`
	Warnings []string        `json:"warnings"`
}

func (a *app) validate(ctx context.Context, f FleetFlags, format string) error {
	fl, err := OpenFleet(f)
	if err != nil {
		return err
	}
	report := Report{Clusters: len(fl.docs), Faults: table.NotNil(fl.allFaults(ctx)), Warnings: table.NotNil(fl.strangers())}
	if report.Clusters == 0 && len(report.Faults) == 0 {
		return hint.New(fmt.Errorf("no cluster is defined below %s", f.Dir), "a cluster is a YAML document with apiVersion holdfast.dev/v1 and kind Cluster")
	}
	if err := a.Print(format, report, func() string { return a.reportText(report) }); err != nil {
		return err
	}
	if n := len(report.Faults); n > 0 {
		return fmt.Errorf("%s in %s", table.Count(n, "fault"), table.Count(faultyFiles(report.Faults), "file"))
	}
	return nil
}

// reportText writes the warnings to where errors go, and returns the rest.
func (a *app) reportText(r Report) string {
	for _, warning := range r.Warnings {
		fmt.Fprintln(a.Err, "Warning:", table.Clean(warning))
	}
	switch {
	case len(r.Faults) > 0:
		return r.Faults.Error() + "\n"
	case r.Clusters == 1:
		return "1 cluster is valid\n"
	default:
		return table.Count(r.Clusters, "cluster") + " are valid\n"
	}
}

// allFaults is all that is wrong with the files and with what they refer to.
func (fl *diskFleet) allFaults(ctx context.Context) holdfast.Faults {
	faults := slices.Clone(fl.faults)
	for _, doc := range fl.docs {
		root, found, err := fl.resolve(ctx, doc)
		if err != nil {
			found = holdfast.Faults{doc.Fault(err.Error(), "")}
		} else if root != nil {
			found = append(found, root.Unset...)
		}
		faults = append(faults, found...)
	}
	var all holdfast.Faults
	known := make(map[holdfast.Fault]bool, len(faults))
	for _, fault := range faults {
		fault.Cluster = "" // one of a template is that of all clusters that are made from it
		if !known[fault] {
			known[fault] = true
			all = append(all, fault)
		}
	}
	decode.SortFaults(all)
	return all
}

// faultyFiles is how many files have faults.
func faultyFiles(faults holdfast.Faults) int {
	files := make(map[string]bool)
	for _, f := range faults {
		files[f.File] = true
	}
	return len(files)
}

// strangers are the clusters that others depend on and that nobody defines
// here. Other repositories may: a server knows.
func (fl *diskFleet) strangers() []string {
	known := make(map[string]bool)
	for _, doc := range fl.docs {
		known[doc.Cluster.Name] = true
	}
	var out []string
	for _, doc := range fl.docs {
		for _, parent := range doc.Cluster.DependsOn {
			if known[parent] {
				continue
			}
			at := fmt.Sprintf("%s: cluster %s depends on %s, which is not defined here", table.Place(doc.Cluster.Path, doc.Cluster.Line), doc.Cluster.Name, parent)
			if best := nearest.Of(parent, slices.Sorted(maps.Keys(known))); best != "" && best != doc.Cluster.Name {
				at += fmt.Sprintf(" (did you mean %q?)", best)
			}
			out = append(out, at)
		}
	}
	return out
}

// NewRenderCommand returns the command render.
func NewRenderCommand(base *cli.App) *cobra.Command {
	a := &app{base}
	var f FleetFlags
	var out string
	c := &cobra.Command{
		Use:   "render CLUSTER",
		Short: "Render the root module of a cluster, to standard output or to a folder",
		Args:  cli.Exactly(1, "the name of a cluster"),
		RunE: func(c *cobra.Command, args []string) error {
			_, root, err := one(c.Context(), f, args[0])
			if err != nil {
				return err
			}
			return a.render(root, out)
		},
	}
	addFleetFlags(c, &f, true)
	completeClusters(c, &f)
	c.Flags().StringVar(&out, "out", "", "write the files below this folder, with the modules, instead of printing them")
	return c
}

func (a *app) render(root *templates.Root, out string) error {
	if out == "" {
		for _, file := range root.Files() {
			fmt.Fprintf(a.Out, "# --- %s\n%s\n", file.Name, file.Data)
		}
		return nil
	}
	data, _, err := root.Bundle()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := workspace.Unpack(context.Background(), bytes.NewReader(data), out, 1<<30); err != nil {
		return fmt.Errorf("write to %s: %w", out, err)
	}
	fmt.Fprintf(a.Out, "the root module is in %s\n", filepath.Join(out, root.Dir))
	return nil
}
