package authoring_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/authoring"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// withCases is the template that New makes, with other test cases.
func withCases(t testing.TB, cases string) map[string][]byte {
	t.Helper()
	files := scaffolded(t, "kubernetes", "aws", "local")
	files["tests/basic.yaml"] = []byte("cases:\n" + cases)
	return files
}

// run runs the only case.
func run(t testing.TB, cases string, opts authoring.TestOptions) authoring.Outcome {
	t.Helper()
	d := open(t, below("templates/k", withCases(t, cases)), "templates/k")
	outcomes, err := d.Test(t.Context(), opts)
	if err != nil || len(outcomes) != 1 {
		t.Fatalf("%d outcomes, %v", len(outcomes), err)
	}
	return outcomes[0]
}

// A case passes if its faults are those that are expected, all of them, and says
// where and what is different otherwise.
func TestFaultsOfCases(t *testing.T) {
	t.Parallel()
	const at = "templates/k/tests/basic.yaml:"
	for name, tc := range map[string]struct {
		cases string
		want  []string // problems
	}{
		"valid": {cases: "  - {name: a, cluster: {provider: local}}\n"},
		"a fault that nobody expects": {
			cases: "  - name: a\n    cluster:\n      provider: local\n      variables: {node_count: 0}\n",
			want:  []string{at + "5:31: spec.variables.node_count: variable node_count must be at least 1, not 0"},
		},
		"a fault that does not come": {
			cases: "  - name: a\n    cluster: {provider: local}\n    faults: [{at: spec.variables.node_count, message: at least}]\n",
			want:  []string{at + `4: there is no fault at spec.variables.node_count that says "at least"`},
		},
		"in any order": {
			cases: "  - name: a\n    cluster: {provider: aws, region: eu-west-11, variables: {nodes: 3, node_count: x}}\n" +
				"    faults: [{message: must be an integer}, {at: spec.variables.nodes}, {at: spec.region, message: 'did you mean \"eu-west-1\"?'}]\n",
		},
		"somewhere else": {
			cases: "  - name: a\n    cluster: {provider: local, variables: {node_count: 0}}\n    faults: [{at: spec.variables.instance_type, message: at least 1}]\n",
			want: []string{
				at + `4: there is no fault at spec.variables.instance_type that says "at least 1"`,
				at + "3:56: spec.variables.node_count: variable node_count must be at least 1, not 0",
			},
		},
		"what is not written is told at what is above": {
			cases: "  - name: a\n    cluster: {provider: local, variables: {high_availability: true, node_count: 1}}\n    faults: [{at: spec.variables.node_count, message: at least 3}]\n",
		},
		"one fault is not two": {
			cases: "  - name: a\n    cluster: {provider: local, variables: {node_count: 0}}\n    faults: [{message: at least 1}, {message: node_count}]\n",
			want:  []string{at + `4: there is no fault anywhere that says "node_count"`},
		},
		"who can take another one does": {
			cases: "  - name: a\n    cluster: {provider: local, variables: {node_count: 0, nodes: 1}}\n    faults: [{message: variable}, {message: at least 1}]\n",
		},
		"a document that is wrong by itself": {
			cases: "  - name: a\n    cluster: {provider: local, drift: {schedule: never}}\n",
			want: []string{at + `3:50: spec.drift.schedule: spec.drift.schedule is "never" (write five fields such as "0 */4 * * *": ` +
				`minute, hour, day of month, month, day of week, or "off")`},
		},
		"an alias": {
			cases: "  - name: a\n    cluster: &c {provider: local, variables: {node_count: 0}}\n    faults: [{at: spec.variables.node_count}]\n",
		},
		"a name of one's own": {
			cases: "  - {name: a, cluster: {provider: local, name: some-name}}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, tc.cases, authoring.TestOptions{})
			if diff := cmp.Diff(tc.want, got.Problems); diff != "" || got.Failed != (len(tc.want) > 0) {
				t.Errorf("failed %v, problems (-want +got):\n%s", got.Failed, diff)
			}
		})
	}
}

// Golden files are written when that is asked for, and compared otherwise. They
// are the same wherever the template lies, and whatever its version.
func TestGolden(t *testing.T) {
	t.Parallel()
	const cases = "  - {name: a, cluster: {provider: aws, region: eu-west-1}, golden: golden/aws}\n"
	files := withCases(t, cases)
	written := map[string][]byte{}
	update := func(name string, data []byte) error {
		written[name] = data
		return nil
	}
	one := func(dir string, files map[string][]byte, opts authoring.TestOptions) authoring.Outcome {
		outcomes, err := open(t, below(dir, files), dir).Test(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		return outcomes[0]
	}
	missing := one("x/k", files, authoring.TestOptions{})
	if !missing.Failed || !strings.Contains(strings.Join(missing.Problems, "\n"), "x/k/tests/golden/aws/main.tf is not there: --update writes it") {
		t.Errorf("without files: %+v", missing)
	}
	if got := one("x/k", files, authoring.TestOptions{Update: update}); got.Failed || len(got.Wrote) != len(written) || len(written) < 3 {
		t.Fatalf("update: %+v", got)
	}
	for name, data := range written {
		if strings.Contains(string(data), "Made by Holdfast") || strings.Contains(string(data), "x/k") {
			t.Errorf("%s says where it was made:\n%s", name, data)
		}
		files[strings.TrimPrefix(name, "x/k/")] = data
	}
	if got := one(".", files, authoring.TestOptions{}); got.Failed {
		t.Errorf("elsewhere: %v", got.Problems)
	}
	newer := replaced(t, files, "template.yaml", "version: 0.1.0", "version: 0.1.1")
	if got := one("y", newer, authoring.TestOptions{}); got.Failed {
		t.Errorf("a newer version: %v", got.Problems)
	}

	changed := replaced(t, files, "template.yaml", "default: 3", "default: 4")
	changed["tests/golden/aws/old.tf"] = []byte("x")
	got := one("k", changed, authoring.TestOptions{})
	problems := strings.Join(got.Problems, "\n")
	for _, want := range []string{"+++ rendered", "-  default     = 3\n+  default     = 4", "k/tests/golden/aws/old.tf is no longer rendered: --update removes it"} {
		if !got.Failed || !strings.Contains(problems, want) {
			t.Errorf("problems have no %q:\n%s", want, problems)
		}
	}
	clear(written)
	got = one("k", changed, authoring.TestOptions{Update: update})
	var names []string
	for _, name := range slices.Sorted(maps.Keys(written)) {
		names = append(names, fmt.Sprintf("%s %v", path.Base(name), written[name] != nil))
	}
	if diff := cmp.Diff([]string{"main.tf true", "old.tf false"}, slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "holdfast") })); diff != "" || got.Failed {
		t.Errorf("only what differs is written (-want +got):\n%s", diff)
	}
}

// answeringEngine answers the same for all.
type answeringEngine struct {
	counts holdfast.Counts
	err    error
}

func (e answeringEngine) Validate(context.Context, document.Document, *templates.Root) error {
	return e.err
}

func (e answeringEngine) Plan(context.Context, document.Document, *templates.Root) (holdfast.Counts, error) {
	return e.counts, e.err
}

func TestPlans(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("%w: no engine", authoring.ErrNotAtHand)
	for name, tc := range map[string]struct {
		plan     string
		opts     authoring.TestOptions
		problems []string
		notes    []string
	}{
		"as it should be": {plan: "{create: 5}", opts: authoring.TestOptions{Engine: answeringEngine{counts: holdfast.Counts{Create: 5, Update: 1}}}},
		"not so": {
			plan: "{create: 5, change: 0, replace: 1, destroy: 2}", opts: authoring.TestOptions{Engine: answeringEngine{counts: holdfast.Counts{Create: 4, Replace: 1}}},
			problems: []string{
				"templates/k/tests/basic.yaml:2: the plan has create: 4, not 5",
				"templates/k/tests/basic.yaml:2: the plan has destroy: 0, not 2",
			},
		},
		"valid":               {plan: "{valid: true}", opts: authoring.TestOptions{Engine: answeringEngine{}}},
		"not valid":           {plan: "{valid: true}", opts: authoring.TestOptions{Engine: answeringEngine{err: errors.New("no argument")}}, problems: []string{"no argument"}},
		"nobody is asked":     {plan: "{create: 5}", notes: []string{"engine check skipped"}},
		"nobody is there":     {plan: "{create: 5}", opts: authoring.TestOptions{Engine: answeringEngine{err: away}}, notes: []string{"no plan was made: not available: no engine"}},
		"somebody must be":    {plan: "{create: 5}", opts: authoring.TestOptions{Engine: answeringEngine{err: away}, NeedEngine: true}, problems: []string{"not available: no engine"}},
		"but one has to look": {plan: "{valid: true}", opts: authoring.TestOptions{Engine: answeringEngine{err: away}, NeedEngine: true}, problems: []string{"not available: no engine"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, "  - {name: a, cluster: {provider: local}, plan: "+tc.plan+"}\n", tc.opts)
			if diff := cmp.Diff(tc.problems, got.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, got.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	d := open(t, below("k", scaffolded(t, "k", "aws", "local")), "k")
	outcomes, err := d.Test(t.Context(), authoring.TestOptions{Select: regexp.MustCompile("^basic.yaml: aws")})
	if err != nil || len(outcomes) != 2 {
		t.Errorf("%d outcomes, %v", len(outcomes), err)
	}
}

// Whoever stops the tests stops them.
func TestStop(t *testing.T) {
	t.Parallel()
	d := open(t, below("k", scaffolded(t, "k")), "k")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Test(ctx, authoring.TestOptions{Engine: answeringEngine{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a test that was stopped ended with %v", err)
	}
}
