package policies_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/policies"
	"github.com/holdfast-dev/holdfast/templates"
)

// tree is a commit.
type tree struct{ fstest.MapFS }

func (t tree) Hash(string) (string, error) { return "", fs.ErrNotExist }

// world is one repository with policies.
type world struct {
	refs    holdfast.Refs
	unread  error
	commits map[string]tree
	pins    map[string]holdfast.Revision
	opened  int
}

func (w *world) PinTag(_ context.Context, _, tag string, rev holdfast.Revision) (holdfast.Revision, error) {
	if was, ok := w.pins[tag]; ok {
		return was, nil
	}
	w.pins[tag] = rev
	return rev, nil
}

func (w *world) Tree(_ context.Context, _, revision string) (holdfast.Tree, error) {
	w.opened++
	t, ok := w.commits[revision]
	if !ok {
		return nil, holdfast.ErrNotFound
	}
	return t, nil
}

func newWorld() *world {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return &world{
		refs: holdfast.Refs{"refs/heads/main": "c2", "refs/tags/platform/v1.0.0": "c1"},
		pins: map[string]holdfast.Revision{},
		commits: map[string]tree{
			"c1": {fstest.MapFS{"rules/a.rego": file("package a"), "rules/a_test.rego": file("package a_test"), "rules/sub/data.json": file("{}"), "README.md": file("x")}},
			"c2": {fstest.MapFS{"rules/a.rego": file("package a # newer"), "README.md": file("x")}},
			"c3": {fstest.MapFS{"README.md": file("x"), "rules/README.md": file("x")}},
			"c4": {fstest.MapFS{"rules/a.rego": file(strings.Repeat("#", 3<<20))}},
		},
	}
}

func (w *world) reader(shipped *policies.Scope, sets ...policies.Set) *policies.Reader {
	return policies.NewReader(policies.Options{
		Sets: sets, Shipped: shipped, Pins: w, Git: w,
		Refs: func(context.Context, string) (holdfast.Refs, error) { return w.refs, w.unread },
	})
}

func platform(version string) policies.Set {
	return policies.Set{Name: "platform", Repo: "policies", Branch: "main", Dir: "rules", Version: version, Scope: policies.Scope{Projects: []string{"pay*"}}}
}

var payments = holdfast.Cluster{Name: "prod", Project: "payments", Environment: "production"} //nolint:gochecknoglobals // a constant

func TestFor(t *testing.T) {
	t.Parallel()
	w := newWorld()
	pinned, head := w.reader(nil, platform("1.0.0")), w.reader(nil, platform(""))
	one, err := pinned.For(t.Context(), payments)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, s := range one.Sources {
		paths = append(paths, s.From+":"+s.Path)
	}
	if want := []string{"platform:a.rego", "platform:sub/data.json"}; !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v", paths, want)
	}
	again, err := pinned.Digest(t.Context(), payments)
	if err != nil || again != one.Set || w.opened != 1 {
		t.Errorf("got %s (%v) after %d looks, want %s after one", again, err, w.opened, one.Set)
	}
	two, err := head.Digest(t.Context(), payments)
	if err != nil || two == one.Set {
		t.Errorf("the head has the digest of the version (%v)", err)
	}
	w.refs["refs/heads/main"] = "c1"
	if moved, err := head.Digest(t.Context(), payments); err != nil || moved != one.Set {
		t.Errorf("the moved head has %s (%v), want %s", moved, err, one.Set)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	w := newWorld()
	r := w.reader(&policies.Scope{Environments: []string{"prod*"}}, platform(""))
	tests := map[string]struct {
		c    holdfast.Cluster
		want int // sets; the shipped ones are one
	}{
		"both":    {payments, 2},
		"set":     {holdfast.Cluster{Project: "payments", Environment: "dev"}, 1},
		"shipped": {holdfast.Cluster{Project: "shop", Environment: "production"}, 1},
		"none":    {holdfast.Cluster{Project: "shop", Environment: "preprod"}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assigned, err := r.For(t.Context(), tt.c)
			if err != nil {
				t.Fatal(err)
			}
			from := map[string]bool{}
			if assigned != nil {
				for _, s := range assigned.Sources {
					from[s.From] = true
				}
			}
			required := r.Required(tt.c)
			if len(from) != tt.want || (assigned != nil) != (tt.want > 0) || slices.Contains(required, holdfast.GatePolicy) != (tt.want > 0) {
				t.Errorf("got %v, required %v, want %d", from, required, tt.want)
			}
		})
	}
}

// Documents waive policies of their set, for the clusters that they name, until their day is over;
// some time after that they are still named.
func TestWaivers(t *testing.T) {
	t.Parallel()
	const rego = "# METADATA\n# custom:\n#   id: few\npackage few\n\ndeny contains \"x\" if true\n"
	waives := func(policy, scope string) string {
		return "apiVersion: holdfast.dev/v1\nkind: Waiver\nmetadata: {name: w}\nspec: {policy: " + policy + ", reason: r, by: alice, until: 2026-12-31, scope: {" + scope + "}}\n"
	}
	read := func(text, rules string, now time.Time) ([]holdfast.PolicyWaiver, error) {
		w := newWorld()
		w.commits["c2"] = tree{fstest.MapFS{"rules/a.rego": {Data: []byte(rules)}, "rules/waivers/w.yaml": {Data: []byte(text)}, "waivers/x.yaml": {Data: []byte("?")}}}
		return w.reader(nil, platform("")).Waivers(t.Context(), now, payments)
	}
	day := func(month time.Month, d int) time.Time { return time.Date(2026, month, d, 12, 0, 0, 0, time.UTC) }
	for name, test := range map[string]struct {
		now     time.Time
		scope   string
		want    string // part of its words; empty: it is not for the cluster, or long over
		expired bool
	}{
		"in force":        {day(11, 30), "projects: [pay*]", "r until 2026-12-31 (platform/waivers/w.yaml:4", false},
		"its last week":   {day(12, 28), "projects: [pay*]", "r until", false},
		"its last day":    {day(12, 31), "clusters: [prod]", "r until", false},
		"over":            {day(12, 32), "clusters: [prod]", "r until 2026-12-31", true},
		"long over":       {day(14, 15), "clusters: [prod]", "", false},
		"another cluster": {day(11, 30), "clusters: [dev]", "", false},
	} {
		got, err := read(waives("few", test.scope), rego, test.now)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want == "" && len(got) > 0:
			t.Errorf("%s: got %+v", name, got)
		case test.want != "" && (len(got) != 1 || got[0].Waives != "few" || got[0].By != "alice" || got[0].Until != "2026-12-31" || got[0].Expired != test.expired || !strings.Contains(got[0].Why, test.want)):
			t.Errorf("%s: got %+v, want %q", name, got, test.want)
		}
	}
	for text, want := range map[string]string{
		waives("many", "clusters: [prod]"): `platform/waivers/w.yaml:4:16: there is no policy "many"`,
		waives("few", "clusters: []"):      "spec.scope.clusters is empty",
		"nothing":                          "this document is not a waiver",
	} {
		if got, err := read(text, rego, day(11, 30)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v, want %q", got, err, want)
		}
	}
	strict := strings.Replace(rego, "id: few", "id: few\n#   waivable: false", 1)
	if got, err := read(waives("few", "clusters: [prod]"), strict, day(11, 30)); err == nil || !strings.Contains(err.Error(), "waivable: false") {
		t.Errorf("got %v, %v", got, err)
	}
}

// A document that takes a cluster to another project or environment does not take it out of the
// policies that it was applied with, nor does it lead to a waiver of others.
func TestPoliciesOfTheFormerDocument(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.commits["c2"] = tree{fstest.MapFS{
		"rules/a.rego": {Data: []byte("# METADATA\n# custom:\n#   id: few\npackage few\n\ndeny contains \"x\" if true\n")},
		"rules/waivers/w.yaml": {Data: []byte("apiVersion: holdfast.dev/v1\nkind: Waiver\nmetadata: {name: w}\nspec: {policy: few, reason: r, by: alice, until: 2026-12-31, " +
			"scope: {environments: [dev]}}\n")},
	}}
	r := w.reader(nil, platform(""))
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	left, moved := payments, payments
	left.Project, moved.Environment = "shop", "dev"
	for name, tt := range map[string]struct {
		documents []holdfast.Cluster
		has       bool
		waivers   int
	}{
		"another project":              {[]holdfast.Cluster{left}, false, 0},
		"another project than applied": {[]holdfast.Cluster{left, payments}, true, 0},
		"another environment":          {[]holdfast.Cluster{moved}, true, 1},
		"another than applied":         {[]holdfast.Cluster{moved, payments}, true, 0},
	} {
		assigned, err := r.For(t.Context(), tt.documents...)
		digest, err2 := r.Digest(t.Context(), tt.documents...)
		_, found, err3 := r.Policy(t.Context(), "few", tt.documents...)
		waivers, err4 := r.Waivers(t.Context(), now, tt.documents...)
		if err := errors.Join(err, err2, err3, err4); err != nil || (assigned != nil) != tt.has || (digest != "") != tt.has || found != tt.has || len(waivers) != tt.waivers {
			t.Errorf("%s: got %v, %q, %v, %+v (%v)", name, assigned != nil, digest, found, waivers, err)
		}
	}
}

// What cannot be read is an error, and never no policies.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		version string
		change  func(*world)
		want    string
	}{
		"unreachable":   {"", func(w *world) { w.unread = errors.New("no route") }, "read repository policies: no route"},
		"no branch":     {"", func(w *world) { delete(w.refs, "refs/heads/main") }, "has no branch main"},
		"no tag":        {"2.0.0", nil, "has no tag platform/v2.0.0 or v2.0.0"},
		"no folder":     {"", func(w *world) { w.commits["c2"] = tree{fstest.MapFS{"x": {}}} }, "there is no folder rules"},
		"no policy":     {"", func(w *world) { w.refs["refs/heads/main"] = "c3" }, "has no policy"},
		"too large":     {"", func(w *world) { w.refs["refs/heads/main"] = "c4" }, "there are more than"},
		"no commit":     {"", func(w *world) { w.refs["refs/heads/main"] = "c9" }, "open c9"},
		"the tag moved": {"1.0.0", func(w *world) { w.pins["platform/v1.0.0"] = "c0" }, "platform/v1.0.0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			if tt.change != nil {
				tt.change(w)
			}
			r := w.reader(nil, platform(tt.version))
			assigned, err := r.For(t.Context(), payments)
			if err == nil || assigned != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v, want %q", assigned, err, tt.want)
			}
			var moved *templates.MovedTagError
			if errors.As(err, &moved) != (name == "the tag moved") {
				t.Errorf("got %v", err)
			}
			if len(r.Required(payments)) == 0 {
				t.Error("the condition is gone")
			}
		})
	}
}
