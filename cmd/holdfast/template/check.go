package template

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/offline"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/templates/authoring"
)

// engineWorkers is how many root modules engines look at at once.
const engineWorkers = 2

func newTemplateValidateCommand(a *app) *cobra.Command {
	var opts runner.ExecutorOptions
	var engine, format string
	c := &cobra.Command{
		Use:   "validate [DIR]",
		Short: "Check all templates below a folder, with their examples and tests",
		Long: `Check all templates below a folder (default: this one): the document, that every
module input exists and has a matching type, that every reference resolves; the
clusters in examples/*.yaml; the test cases in tests/*.yaml. All faults are reported
at once, each at its line.

Where the engine and the providers are available, it validates the root module of
each example, too. Where they are not, a note says so; --engine on makes it an
error, --engine off skips the check.`,
		Example: "  holdfast template validate\n  holdfast template validate templates --engine off",
		Args:    atMostFolder,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkEngineChoice("engine", engine); err != nil {
				return err
			}
			return a.validateTemplates(c.Context(), args, engine, format, opts)
		},
	}
	c.Flags().StringVar(&engine, "engine", engineAuto, "validate the examples by the engine, too: auto, on or off")
	cli.AddFormatFlag(c, &format)
	offline.AddEngineFlags(c, &opts)
	return c
}

// templateCheck is what validate found of one template.
type templateCheck struct {
	Name     string   `json:"name"`
	Version  string   `json:"version,omitempty"`
	Dir      string   `json:"dir"`
	Examples int      `json:"examples"`
	Cases    int      `json:"cases"`
	Engine   string   `json:"engine,omitempty"`   // what the engine made of the examples
	Problems []string `json:"problems,omitempty"` // what the engine says is wrong
}

// Report is what validate found.
type Report struct {
	Templates []templateCheck `json:"templates"`
	Faults    holdfast.Faults `json:"faults"`
}

func (a *app) validateTemplates(ctx context.Context, args []string, engine, format string, opts runner.ExecutorOptions) error {
	w, err := openWorkTree(args)
	if err != nil {
		return err
	}
	drafts, faults, err := w.drafts(ctx)
	if err != nil {
		return err
	}
	report := Report{Faults: table.NotNil(faults)}
	problems := 0
	for _, d := range drafts {
		check := templateCheck{Name: d.Blueprint.Name, Version: d.Blueprint.Version, Dir: d.Dir, Examples: len(d.Examples)}
		for _, s := range d.Suites {
			check.Cases += len(s.Cases)
		}
		if d.Template != nil && engine != engineOff && len(faults) == 0 {
			if err := a.validateByEngine(ctx, d, engine, opts, &check); err != nil {
				return err
			}
		}
		problems += len(check.Problems)
		report.Templates = append(report.Templates, check)
	}
	if err := a.Print(format, report, func() string { return a.reportText(report, drafts) }); err != nil {
		return err
	}
	if n := len(faults) + problems; n > 0 {
		return fmt.Errorf("%s in %s", table.Count(n, "fault"), table.Count(len(drafts), "template"))
	}
	return nil
}

func (a *app) reportText(report Report, drafts []*authoring.Draft) string {
	var b strings.Builder
	for _, f := range report.Faults {
		b.WriteString(table.Clean(f.Error()) + "\n")
	}
	for i, t := range report.Templates {
		if len(report.Faults) > 0 || drafts[i].Template == nil {
			continue
		}
		for _, p := range t.Problems {
			fmt.Fprintf(&b, "%s\n", table.Clean(p))
		}
		verdict := a.Paint("valid", table.Green)
		if len(t.Problems) > 0 {
			verdict = a.Paint("not valid", table.Red)
		}
		title := strings.TrimSpace(t.Name + " " + t.Version)
		fmt.Fprintf(&b, "%s (%s): %s, with %s and %s\n", title, t.Dir, verdict, table.Count(t.Examples, "example"), table.Count(t.Cases, "test case"))
		if t.Engine != "" {
			fmt.Fprintf(&b, "  %s\n", table.Clean(t.Engine))
		}
	}
	return b.String()
}

// validateByEngine has the engine look at each example. That it cannot be asked
// is a note, unless it must be.
func (a *app) validateByEngine(ctx context.Context, d *authoring.Draft, choice string, opts runner.ExecutorOptions, check *templateCheck) error {
	engine, err := offline.NewLaptopEngine(opts, a.Getenv, a.Now)
	if err != nil {
		return err
	}
	if len(d.Examples) == 0 {
		check.Engine = "engine check skipped: no examples"
		return nil
	}
	var mu sync.Mutex
	problems := make([]string, len(d.Examples))
	missing := map[string]int{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(engineWorkers)
	for i, e := range d.Examples {
		group.Go(func() error {
			err := engine.Validate(ctx, e.Doc, e.Root)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, authoring.ErrNotAtHand) && choice == engineAuto:
				missing[err.Error()]++
			case err != nil:
				problems[i] = fmt.Sprintf("%s: the engine refuses the root module of %s:\n%v", e.File, e.Doc.Cluster.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	check.Problems = slices.DeleteFunc(problems, func(p string) bool { return p == "" })
	check.Engine = engineWords(len(d.Examples), len(check.Problems), missing)
	return nil
}

// engineWords says how many examples the engine found valid, and why it was not
// asked about others.
func engineWords(all, refused int, missing map[string]int) string {
	unasked := 0
	var why []string
	for text, n := range missing {
		unasked += n
		why = append(why, strings.TrimPrefix(text, authoring.ErrNotAtHand.Error()+": "))
	}
	slices.Sort(why)
	words := fmt.Sprintf("the engine finds %d of %s valid", all-refused-unasked, table.Count(all, "example"))
	if unasked == all {
		words = "engine check skipped: engine or provider not available"
	} else if unasked > 0 {
		words += fmt.Sprintf("; skipped %d: engine or provider not available", unasked)
	}
	if len(why) > 0 {
		words += " (" + why[0] + ")"
	}
	return words
}

func newTemplateTestCommand(a *app) *cobra.Command {
	var opts runner.ExecutorOptions
	var plans, format, pattern string
	var update bool
	c := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the test cases in tests/*.yaml of the templates below a folder",
		Long: `Run the test cases in tests/*.yaml of the templates below a folder (default: this
one). A case has a cluster's spec and the expected result:

  cases:
    - name: high availability needs three nodes
      cluster: {provider: aws, region: eu-west-1, variables: {high_availability: true, node_count: 1}}
      faults:
        - {at: spec.variables.node_count, message: node_count must be at least 3}
    - name: basic aws
      cluster: {provider: aws, region: eu-west-1, variables: {node_count: 3}}
      golden: golden/aws-basic      # a folder next to the file, with the rendered files
      plan: {create: 30}            # any of create, change, replace, destroy; or {valid: true}

List every expected fault of a cluster, in any order: message matches a substring, at
the path. A cluster without faults must have none. Names, project, environment and the
template itself are filled in. Golden files omit the header that says what they were
made from; --update writes them.

Plans start with an empty state, and are made if the engine and the providers are
available. If they are not, a note says so, and with --plan on it is a failure. The exit
code is 3 if a case has failed.`,
		Example: `  holdfast template test
  holdfast template test templates/kubernetes --run 'aws' --plan off
  holdfast template test --update`,
		Args: atMostFolder,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkEngineChoice("plan", plans); err != nil {
				return err
			}
			test := authoring.TestOptions{NeedEngine: plans == engineOn, Workers: engineWorkers}
			if pattern != "" {
				var err error
				if test.Select, err = regexp.Compile(pattern); err != nil {
					return cli.UsageError("run %q is not a regular expression: %w", pattern, err)
				}
			}
			return a.testTemplates(c.Context(), args, testRun{plans: plans, update: update, format: format, engine: opts, options: test})
		},
	}
	c.Flags().BoolVar(&update, "update", false, "write golden files again")
	c.Flags().StringVar(&plans, "plan", engineAuto, "make plans: auto, on or off")
	c.Flags().StringVar(&pattern, "run", "", `only cases whose "FILE: NAME" matches this regular expression`)
	cli.AddFormatFlag(c, &format)
	offline.AddEngineFlags(c, &opts)
	return c
}

// testRun says how tests are run.
type testRun struct {
	plans, format string
	update        bool
	engine        runner.ExecutorOptions
	options       authoring.TestOptions
}

func (a *app) testTemplates(ctx context.Context, args []string, run testRun) error {
	w, drafts, err := validDrafts(ctx, args)
	if err != nil {
		return err
	}
	if run.plans != engineOff {
		if run.options.Engine, err = offline.NewLaptopEngine(run.engine, a.Getenv, a.Now); err != nil {
			return err
		}
	}
	if run.update {
		run.options.Update = w.write
	}
	var all []authoring.Outcome
	for _, d := range drafts {
		outcomes, err := d.Test(ctx, run.options)
		if err != nil {
			return err
		}
		all = append(all, outcomes...)
	}
	if len(all) == 0 {
		todo := "write one in tests/basic.yaml: see holdfast template test --help"
		if run.options.Select != nil {
			todo = "--run matches none"
		}
		return hint.New(errors.New("there are no test cases"), todo)
	}
	if err := a.Print(run.format, all, func() string { return a.outcomesText(all) }); err != nil {
		return err
	}
	if failed := failures(all); failed > 0 {
		return &cli.ExitCodeError{Code: cli.ExitRun, Err: fmt.Errorf("%s of %d failed", table.Count(failed, "case"), len(all))}
	}
	return nil
}

func failures(all []authoring.Outcome) int {
	n := 0
	for _, o := range all {
		if o.Failed {
			n++
		}
	}
	return n
}

// write puts a golden file into the work tree, and removes one that is no
// longer wanted. It never leaves the work tree, and follows no link in it: who
// runs the tests of somebody else's template changes golden files only.
func (w workTree) write(name string, data []byte) error {
	root, err := os.OpenRoot(w.root)
	if err != nil {
		return err
	}
	defer root.Close()
	for at := name; at != "."; at = path.Dir(at) {
		info, err := root.Lstat(filepath.FromSlash(at))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link", at)
		}
	}
	if data == nil {
		return root.Remove(filepath.FromSlash(name))
	}
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
		return err
	}
	return root.WriteFile(filepath.FromSlash(name), data, 0o644)
}

func (a *app) outcomesText(all []authoring.Outcome) string {
	var b strings.Builder
	file := ""
	unasked := map[string]int{}
	var order []string
	for _, o := range all {
		if o.File != file {
			file = o.File
			fmt.Fprintln(&b, table.Clean(file))
		}
		verdict := a.Paint("ok  ", table.Green)
		if o.Failed {
			verdict = a.Paint("FAIL", table.Red)
		}
		fmt.Fprintf(&b, "  %s  %s\n", verdict, table.OneLine(o.Name))
		for _, p := range o.Problems {
			for line := range strings.Lines(table.Clean(p)) {
				fmt.Fprintf(&b, "        %s\n", a.diffLine(strings.TrimRight(line, "\n")))
			}
		}
		for _, name := range o.Wrote {
			fmt.Fprintf(&b, "        wrote %s\n", table.Clean(name))
		}
		for _, note := range o.Notes {
			if unasked[note] == 0 {
				order = append(order, note)
			}
			unasked[note]++
		}
	}
	for _, note := range order { // the same for most, so reported once
		fmt.Fprintf(&b, "%s: %s\n", table.Count(unasked[note], "case"), table.Clean(note))
	}
	failed := failures(all)
	fmt.Fprintf(&b, "%s: %d ok, %d failed\n", table.Count(len(all), "case"), len(all)-failed, failed)
	return b.String()
}

// diffLine colours a line of a difference.
func (a *app) diffLine(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return a.Paint(line, table.Green)
	case strings.HasPrefix(line, "-"):
		return a.Paint(line, table.Red)
	case strings.HasPrefix(line, "@@"):
		return a.Paint(line, table.Blue)
	}
	return line
}

// Whether the engine is asked about a template.
const (
	engineAuto = "auto" // where it and the providers are available
	engineOn   = "on"
	engineOff  = "off"
)

func checkEngineChoice(flag, value string) error {
	if !slices.Contains([]string{engineAuto, engineOn, engineOff}, value) {
		return cli.UsageError("--%s %q: want auto, on or off", flag, value)
	}
	return nil
}
