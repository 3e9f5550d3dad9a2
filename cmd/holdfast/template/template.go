package template

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/holdfast-dev/holdfast/runner/workspace"
	"github.com/holdfast-dev/holdfast/templates/authoring"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// NewTemplateCommand returns the command template.
func NewTemplateCommand(base *cli.App) *cobra.Command {
	a := &app{base}
	c := cli.NewGroup("template", "Write, check, test and describe templates",
		newTemplateNewCommand(a), newTemplateValidateCommand(a), newTemplateRenderCommand(a),
		newTemplateTestCommand(a), newTemplateDocsCommand(a), newTemplateDiffCommand(a), newUpgradeCommand(a))
	whatElse := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return hint.New(cli.UsageError("%s takes a command", c.CommandPath()), "see "+c.CommandPath()+" --help")
		}
		return whatElse(c, args)
	}
	c.Long = `Write, check, test and describe templates.

A template is a folder with a template.yaml: what a cluster's document can say,
and which modules make up its infrastructure. These commands work on a checkout and,
except for upgrade, need no server.`
	c.Example = `  holdfast template new kubernetes
  cd kubernetes && holdfast template validate && holdfast template test`
	return c
}

// atMostFolder is the argument of a command that works on a folder.
func atMostFolder(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.WrongArguments(c, args, "at most one folder")
	}
	return nil
}

// workTree is a folder in a checkout.
type workTree struct {
	root  string // of the repository, on disk
	tree  holdfast.Tree
	below string // the folder, in the tree
}

// openWorkTree opens the repository around the folder that args name, by default
// this one.
func openWorkTree(args []string) (workTree, error) {
	name := "."
	if len(args) > 0 {
		name = args[0]
	}
	dir, err := filepath.Abs(name)
	if err != nil {
		return workTree{}, fmt.Errorf("find folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() && filepath.Base(dir) == "template.yaml" {
		dir = filepath.Dir(dir) // what is meant is clear
	} else if err != nil || !info.IsDir() {
		return workTree{}, hint.New(fmt.Errorf("%s is not a folder", name), "name the folder of a template.yaml")
	}
	w := workTree{root: offline.RepositoryOf(dir)}
	below, err := filepath.Rel(w.root, dir)
	if err != nil {
		return w, fmt.Errorf("find folder: %w", err)
	}
	w.below = filepath.ToSlash(below)
	w.tree, err = gitsource.Dir(w.root)
	return w, err
}

// drafts opens the templates below the folder. There is at least one.
func (w workTree) drafts(ctx context.Context) ([]*authoring.Draft, holdfast.Faults, error) {
	dirs, err := authoring.Find(w.tree, w.below)
	if err != nil {
		return nil, nil, err
	}
	if len(dirs) == 0 {
		return nil, nil, hint.New(
			fmt.Errorf("there is no template below %s", filepath.Join(w.root, w.below)),
			"a template is a folder with a template.yaml: begin one with holdfast template new NAME",
		)
	}
	var drafts []*authoring.Draft
	var faults holdfast.Faults
	for _, dir := range dirs {
		d, found, err := authoring.Open(ctx, w.tree, dir)
		if err != nil {
			return nil, nil, err
		}
		drafts, faults = append(drafts, d), append(faults, found...)
	}
	return drafts, faults, nil
}

// validDrafts opens the templates below the folder that args name. What is
// wrong with one is an error.
func validDrafts(ctx context.Context, args []string) (workTree, []*authoring.Draft, error) {
	w, err := openWorkTree(args)
	if err != nil {
		return w, nil, err
	}
	drafts, faults, err := w.drafts(ctx)
	if err == nil && len(faults) > 0 {
		err = hint.New(fmt.Errorf("%s:\n%w", table.Count(len(faults), "fault"), faults), "holdfast template validate checks all of them")
	}
	return w, drafts, err
}

func newTemplateNewCommand(a *app) *cobra.Command {
	var dir string
	var providers []string
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a valid template with passing tests",
		Long: `Create a valid template with passing tests.

Its modules are placeholders that need no cloud: they use the engine's built-in
resources. Replace them. Comments say what each part is for. Existing files are not
overwritten.`,
		Example: `  holdfast template new kubernetes
  holdfast template new kubernetes --dir templates/kubernetes --provider aws,gcp`,
		Args: cli.Exactly(1, "the name of the template"),
		RunE: func(_ *cobra.Command, args []string) error {
			if dir == "" {
				dir = args[0]
			}
			return a.newTemplate(args[0], dir, providers)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the folder (default: NAME)")
	c.Flags().StringSliceVar(&providers, "provider", []string{"local"}, "providers to support: local, aws, gcp, azure, digitalocean, linode, or a custom name")
	return c
}

func (a *app) newTemplate(name, dir string, providers []string) error {
	files, err := authoring.New(name, providers)
	if err != nil {
		return cli.UsageError("%w", err)
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	})
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(file); err == nil {
			return hint.New(fmt.Errorf("%s already exists", file), "nothing was written: choose another folder with --dir")
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look at %s: %w", file, err)
		}
	}
	for _, name := range names {
		if err := writeNew(filepath.Join(dir, filepath.FromSlash(name)), files[name]); err != nil {
			return err
		}
		fmt.Fprintln(a.Out, filepath.Join(dir, filepath.FromSlash(name)))
	}
	fmt.Fprintf(a.Out, `
The template %s is in %s. What comes next:

  holdfast template validate %s   # all that is wrong with it, each at its line
  holdfast template test %s       # its test cases
  holdfast template render %s     # the root modules of its examples
  holdfast schema --template %s   # completion in editors, for clusters made from it

Then make the modules yours: what they get is in template.yaml.
`, name, dir, dir, dir, dir, dir)
	return nil
}

// writeNew writes a file that is not there yet.
func writeNew(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func newTemplateRenderCommand(a *app) *cobra.Command {
	var example, cluster, out string
	c := &cobra.Command{
		Use:   "render [DIR]",
		Short: "Render the root modules of a template's examples",
		Long: `Render the root modules of a template's examples, or of one cluster: the files that
Holdfast creates. With --out they are written below a folder, each root module in its own
subfolder, together with its modules, ready for the engine.`,
		Example: `  holdfast template render
  holdfast template render templates/kubernetes --example aws-basic
  holdfast template render templates/kubernetes -f ../fleet/clusters/prod-eu.yaml --out /tmp/prod-eu`,
		Args: atMostFolder,
		RunE: func(c *cobra.Command, args []string) error {
			if example != "" && cluster != "" {
				return cli.UsageError("give --example or --file, not both")
			}
			_, drafts, err := validDrafts(c.Context(), args)
			if err != nil {
				return err
			}
			return a.renderDrafts(c.Context(), drafts, example, cluster, out)
		},
	}
	c.Flags().StringVar(&example, "example", "", "only this file of examples/")
	c.Flags().StringVarP(&cluster, "file", "f", "", "render the cluster documents in this file instead of the examples")
	c.Flags().StringVar(&out, "out", "", "write below this folder instead of printing")
	return c
}

func (a *app) renderDrafts(ctx context.Context, drafts []*authoring.Draft, example, cluster, out string) error {
	rendered := 0
	for _, d := range drafts {
		examples, err := chosenExamples(ctx, d, example, cluster)
		if err != nil {
			return err
		}
		for _, e := range examples {
			rendered++
			if err := a.renderExample(e, out); err != nil {
				return err
			}
		}
	}
	if rendered > 0 {
		return nil
	}
	todo := "write one: examples/basic.yaml"
	var names []string
	for _, d := range drafts {
		for _, e := range d.Examples {
			names = append(names, path.Base(e.File))
		}
	}
	if len(names) > 0 {
		todo = "there are " + strings.Join(slices.Compact(names), ", ")
	}
	if example != "" {
		return hint.New(fmt.Errorf("there is no example %q", example), todo)
	}
	return hint.New(errors.New("there are no examples"), todo)
}

// chosenExamples are the examples of a draft, one of them, or clusters of
// another file as if they were.
func chosenExamples(ctx context.Context, d *authoring.Draft, example, cluster string) ([]authoring.Example, error) {
	if cluster != "" {
		return clustersOf(ctx, d, cluster)
	}
	var out []authoring.Example
	for _, e := range d.Examples {
		name := path.Base(e.File)
		if example == "" || slices.Contains([]string{name, strings.TrimSuffix(name, path.Ext(name)), e.Doc.Cluster.Name}, filepath.Base(example)) {
			out = append(out, e)
		}
	}
	return out, nil
}

func clustersOf(ctx context.Context, d *authoring.Draft, file string) ([]authoring.Example, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read cluster: %w", err)
	}
	docs, faults := document.ParseClusters(file, data)
	var out []authoring.Example
	for _, doc := range docs {
		root, found, err := d.ResolveAs(ctx, doc)
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
		out = append(out, authoring.Example{File: file, Text: data, Doc: doc, Root: root})
	}
	if len(docs) == 0 && len(faults) == 0 {
		return nil, hint.New(fmt.Errorf("%s has no cluster", file), "a cluster is a YAML document with apiVersion holdfast.dev/v1 and kind Cluster")
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s:\n%w", table.Count(len(faults), "fault"), faults)
	}
	return out, nil
}

func (a *app) renderExample(e authoring.Example, out string) error {
	if out == "" {
		fmt.Fprintln(a.Out, a.Paint(fmt.Sprintf("# ==== %s, cluster %s", e.File, e.Doc.Cluster.Name), table.Blue))
		for _, file := range e.Root.Files() {
			fmt.Fprintf(a.Out, "%s\n%s\n", a.Paint("# ---- "+file.Name, table.Blue), table.Clean(string(file.Data)))
		}
		return nil
	}
	data, _, err := e.Root.Bundle()
	if err != nil {
		return err
	}
	dir := filepath.Join(out, e.Doc.Cluster.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := workspace.Unpack(context.Background(), bytes.NewReader(data), dir, 1<<30); err != nil {
		return fmt.Errorf("write to %s: %w", dir, err)
	}
	fmt.Fprintf(a.Out, "%s: the root module is in %s\n", e.File, filepath.Join(dir, e.Root.Dir))
	return nil
}

func newTemplateDocsCommand(a *app) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "docs [DIR]",
		Short: "Write a template's page: variables, rules, modules, outputs, examples, versions",
		Long: `Write a template's page of documentation, in Markdown for code hosts: its providers,
variables, rules, modules as a graph, outputs, examples and versions. The same template
always gives the same page, so that you can commit it next to the template.`,
		Example: "  holdfast template docs templates/kubernetes --out templates/kubernetes/REFERENCE.md",
		Args:    atMostFolder,
		RunE: func(c *cobra.Command, args []string) error {
			_, drafts, err := validDrafts(c.Context(), args)
			if err != nil {
				return err
			}
			if len(drafts) > 1 {
				return hint.New(fmt.Errorf("there are %s here", table.Count(len(drafts), "template")), "name the folder of one: "+folders(drafts))
			}
			return a.writeTo(out, drafts[0].Page())
		},
	}
	c.Flags().StringVar(&out, "out", "", "the file (default: print it)")
	return c
}

func folders(drafts []*authoring.Draft) string {
	names := make([]string, len(drafts))
	for i, d := range drafts {
		names[i] = d.Dir
	}
	return strings.Join(names, ", ")
}

// writeTo writes a file, or prints it if there is no name.
func (a *app) writeTo(name string, data []byte) error {
	if name == "" {
		_, err := a.Out.Write(data)
		return err
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	fmt.Fprintln(a.Err, "wrote", name)
	return nil
}
