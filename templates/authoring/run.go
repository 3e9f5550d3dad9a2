package authoring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// Engine asks the engine about a root module. Its errors wrap ErrNotAtHand if there is
// no engine here, or no provider.
type Engine interface {
	// Validate returns what the engine says is wrong, nil if nothing is.
	Validate(ctx context.Context, doc document.Document, root *templates.Root) error
	// Plan returns what would be done from nothing.
	Plan(ctx context.Context, doc document.Document, root *templates.Root) (holdfast.Counts, error)
}

// ErrNotAtHand is the answer of an Engine that cannot be asked on this machine.
var ErrNotAtHand = errors.New("not available")

// TestOptions say how tests are run. All are optional.
type TestOptions struct {
	Engine Engine // nil: plans are passed over
	// NeedEngine makes an unavailable engine a failure.
	NeedEngine bool
	// Update writes a golden file, by its path in the tree, and removes those
	// whose data is nil. Nil: golden files are compared.
	Update  func(name string, data []byte) error
	Select  *regexp.Regexp // only cases whose "file: name" it matches
	Workers int            // plans at once; zero means 2
}

// Outcome is the outcome of a case.
type Outcome struct {
	Name     string   `json:"name"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Failed   bool     `json:"failed"`
	Problems []string `json:"problems,omitempty"` // why it failed; each may have several lines
	Notes    []string `json:"notes,omitempty"`    // what was not looked at, and why
	Wrote    []string `json:"wrote,omitempty"`    // golden files
}

func (o *Outcome) fail(format string, args ...any) {
	o.Failed = true
	o.Problems = append(o.Problems, fmt.Sprintf(format, args...))
}

// Test runs the test cases of a draft, in their order. A case that fails is an Outcome;
// an error is a failure of ours.
func (d *Draft) Test(ctx context.Context, opts TestOptions) ([]Outcome, error) {
	if d.Template == nil {
		return nil, errors.New("run tests: the template has faults")
	}
	if opts.Workers == 0 {
		opts.Workers = 2
	}
	var cases []Case
	for _, suite := range d.Suites {
		for _, c := range suite.Cases {
			if opts.Select == nil || opts.Select.MatchString(path.Base(c.File)+": "+c.Name) {
				cases = append(cases, c)
			}
		}
	}
	outcomes := make([]Outcome, len(cases))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(opts.Workers)
	for i, c := range cases {
		outcomes[i] = Outcome{Name: c.Name, File: c.File, Line: c.Line}
		root, err := d.check(ctx, c, opts, &outcomes[i])
		if err != nil {
			return nil, errors.Join(err, group.Wait())
		}
		if c.Plan != nil && root != nil {
			group.Go(func() error { return c.plan(ctx, root, opts, &outcomes[i]) })
		}
	}
	return outcomes, group.Wait()
}

// check does all of a case that needs no engine. It returns the root module if
// the cluster is valid, as it should be.
func (d *Draft) check(ctx context.Context, c Case, opts TestOptions, out *Outcome) (*templates.Root, error) {
	faults := c.faults
	var root *templates.Root
	if len(faults) == 0 {
		var err error
		if root, faults, err = d.Resolve(ctx, c.doc); err != nil {
			return nil, fmt.Errorf("test %q: %w", c.Name, err)
		}
	}
	c.compareFaults(faults, out)
	if root == nil || len(c.Faults) > 0 || c.Golden == "" {
		return root, nil
	}
	return root, d.golden(c, root, opts, out)
}

// compareFaults matches faults with the expected ones, and reports those that are left
// over on either side.
func (c Case) compareFaults(faults holdfast.Faults, out *Outcome) {
	taken := match(len(c.Faults), len(faults), func(want, got int) bool { return c.expects(c.Faults[want], faults[got]) })
	for i, want := range c.Faults {
		if !slices.Contains(taken, i) {
			where := "anywhere"
			if want.At != "" {
				where = "at " + want.At
			}
			out.fail("%s:%d: there is no fault %s that says %q", c.File, want.Line, where, want.Message)
		}
	}
	for i, got := range faults {
		if taken[i] < 0 {
			out.fail("%s", c.describe(got))
		}
	}
}

// match returns, for each of what was got, the index of the wanted one that it matches,
// -1 if none does. It matches as many as possible.
func match(wanted, got int, fits func(want, got int) bool) []int {
	taken := slices.Repeat([]int{-1}, got)
	for want := range wanted {
		seen := make([]bool, got)
		var try func(int) bool
		try = func(want int) bool {
			for i := range got {
				if seen[i] || !fits(want, i) {
					continue
				}
				seen[i] = true
				if taken[i] < 0 || try(taken[i]) {
					taken[i] = want
					return true
				}
			}
			return false
		}
		try(want)
	}
	return taken
}

// expects reports whether a fault is the expected one. What is not written
// in the document is reported at the nearest of its parents that is.
func (c Case) expects(want ExpectedFault, got holdfast.Fault) bool {
	if !strings.Contains(got.Message, want.Message) && !strings.Contains(got.Hint, want.Message) {
		return false
	}
	if want.At == "" {
		return true
	}
	_, written := at(c.text, want.At)
	return got.File == c.File && c.pathOf(got) == written
}

func (c Case) pathOf(f holdfast.Fault) string {
	if f.Line == 0 || f.Column == 0 {
		return ""
	}
	return pathAt(c.text, f.Line, f.Column)
}

// describe is a fault that was not expected, at its place in the case.
func (c Case) describe(f holdfast.Fault) string {
	if f.File == c.File {
		p := c.pathOf(f)
		words := strings.TrimPrefix(strings.TrimPrefix(p, "spec"), ".")
		place := c.written
		if words != "" {
			place, _ = at(c.written, words)
		}
		f.Line, f.Column = place.Line, place.Column
		if p != "" {
			return fmt.Sprintf("%s: %s: %s", f.Position(), p, withHint(f))
		}
	}
	return fmt.Sprintf("%s: %s", f.Position(), withHint(f))
}

func withHint(f holdfast.Fault) string {
	if f.Hint == "" {
		return f.Message
	}
	return f.Message + " (" + f.Hint + ")"
}

// golden compares the files of a root module with those in the case's folder, or
// writes them there.
func (d *Draft) golden(c Case, root *templates.Root, opts TestOptions, out *Outcome) error {
	want := map[string][]byte{}
	list, err := d.tree.ReadDir(c.Golden)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", c.Golden, err)
	}
	for _, item := range list {
		name := path.Join(c.Golden, item.Name())
		if want[item.Name()], err = d.tree.ReadFile(name); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	got := d.Golden(root)
	names := slices.Collect(func(yield func(string) bool) {
		for name := range got {
			yield(name)
		}
	})
	for name := range want {
		if got[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		file := path.Join(c.Golden, name)
		before, had := want[name]
		after, has := got[name]
		switch {
		case had && has && bytes.Equal(before, after):
		case opts.Update != nil:
			if err := opts.Update(file, after); err != nil {
				return fmt.Errorf("write %s: %w", file, err)
			}
			out.Wrote = append(out.Wrote, file)
		case !had:
			out.fail("%s is not there: --update writes it", file)
		case !has:
			out.fail("%s is no longer rendered: --update removes it", file)
		default:
			out.fail("%s", strings.TrimRight(Unified(file, "rendered", before, after), "\n"))
		}
	}
	return nil
}

// Golden returns the files of a root module as golden files have them: without
// the header that says what they were made from, and with the sources of the
// template's own modules as if its folder were the root of the repository. So a
// new version changes only what it changes.
func (d *Draft) Golden(root *templates.Root) map[string][]byte {
	out := map[string][]byte{}
	for _, file := range root.Files() {
		data := file.Data
		if bytes.HasPrefix(data, []byte("# Made by Holdfast")) {
			_, data, _ = bytes.Cut(data, []byte("\n"))
			data = bytes.TrimLeft(data, "\n")
		}
		if d.Dir != "." {
			data = bytes.ReplaceAll(data, []byte(`"../template/`+d.Dir+`/`), []byte(`"../template/`))
		}
		if data == nil {
			data = []byte{}
		}
		out[file.Name] = data
	}
	return out
}

// plan asks the engine.
func (c Case) plan(ctx context.Context, root *templates.Root, opts TestOptions, out *Outcome) error {
	if opts.Engine == nil {
		out.Notes = append(out.Notes, "engine check skipped")
		return nil
	}
	var counts holdfast.Counts
	var err error
	if c.Plan.onlyValid() {
		err = opts.Engine.Validate(ctx, c.doc, root)
	} else {
		counts, err = opts.Engine.Plan(ctx, c.doc, root)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrNotAtHand) && !opts.NeedEngine:
		out.Notes = append(out.Notes, "no plan was made: "+err.Error())
		return nil
	case err != nil:
		out.fail("%s", err.Error())
		return nil
	}
	for _, count := range []struct {
		name string
		want *int
		got  int
	}{
		{"create", c.Plan.Create, counts.Create},
		{"change", c.Plan.Change, counts.Update},
		{"replace", c.Plan.Replace, counts.Replace},
		{"destroy", c.Plan.Destroy, counts.Delete},
	} {
		if count.want != nil && *count.want != count.got {
			out.fail("%s:%d: the plan has %s: %d, not %d", c.File, c.Line, count.name, count.got, *count.want)
		}
	}
	return nil
}
