package library_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/authoring"
	"github.com/holdfast-dev/holdfast/templates/document"
)

var update = flag.Bool("update", false, "write golden files and REFERENCE.md")

// draft opens the template as its author sees it.
func draft(t *testing.T) *authoring.Draft {
	t.Helper()
	d, faults, err := authoring.Open(t.Context(), diskTree{os.DirFS("kubernetes")}, ".")
	if err != nil || len(faults) > 0 {
		t.Fatalf("%v\n%v", err, faults)
	}
	return d
}

// engine asks terraform about root modules that need no provider.
type engine struct{ t *testing.T }

func (e engine) run(root *templates.Root, args ...string) (string, error) {
	dir := e.t.TempDir()
	write(e.t, dir, unpack(e.t, root))
	dir = filepath.Join(dir, "root")
	write(e.t, dir, localBackend())
	if out, err := terraform(e.t, dir, "", nil, "init", "-input=false", "-no-color"); err != nil {
		return "", fmt.Errorf("init: %w\n%s", err, out)
	}
	out, err := terraform(e.t, dir, "", nil, args...)
	if err != nil || args[0] != "plan" {
		return out, err
	}
	return terraform(e.t, dir, "", nil, "show", "-json", "plan")
}

// Validate implements authoring.Engine.
func (e engine) Validate(_ context.Context, _ document.Document, root *templates.Root) error {
	if out, err := e.run(root, "validate", "-no-color"); err != nil {
		return fmt.Errorf("validate: %w\n%s", err, out)
	}
	return nil
}

// Plan implements authoring.Engine.
func (e engine) Plan(_ context.Context, _ document.Document, root *templates.Root) (holdfast.Counts, error) {
	out, err := e.run(root, "plan", "-input=false", "-no-color", "-out=plan")
	if err != nil {
		return holdfast.Counts{}, fmt.Errorf("plan: %w\n%s", err, out)
	}
	var plan struct {
		Changes []struct {
			Change struct {
				Actions []string `json:"actions"`
			} `json:"change"`
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		return holdfast.Counts{}, fmt.Errorf("read plan: %w", err)
	}
	counts := holdfast.Counts{Create: len(plan.Changes)}
	for _, c := range plan.Changes {
		if len(c.Change.Actions) != 1 || c.Change.Actions[0] != "create" {
			return holdfast.Counts{}, fmt.Errorf("read plan: from nothing it would %v", c.Change.Actions)
		}
	}
	return counts, nil
}

// TestCases runs the template's own test cases. With -update it writes their
// golden files.
func TestCases(t *testing.T) {
	t.Parallel()

	options := authoring.TestOptions{Engine: engine{t}, NeedEngine: true}
	if *update {
		options.Update = func(name string, data []byte) error {
			file := filepath.Join("kubernetes", filepath.FromSlash(name))
			if data == nil {
				return os.Remove(file)
			}
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			return os.WriteFile(file, data, 0o644)
		}
	}
	outcomes, err := draft(t).Test(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		for _, problem := range o.Problems {
			t.Errorf("%s: %s: %s", o.File, o.Name, problem)
		}
	}
	if len(outcomes) < 50 {
		t.Errorf("there are %d cases", len(outcomes))
	}
}

// TestEveryRuleHasACase takes each rule away, and each switch of a module, and
// wants a test case to notice.
func TestEveryRuleHasACase(t *testing.T) {
	t.Parallel()

	whole := inMemory(t)
	var document yaml.Node
	if err := yaml.Unmarshal(whole["template.yaml"].Data, &document); err != nil {
		t.Fatal(err)
	}
	expressions := expressionsOf(&document)
	if len(expressions) < 15 {
		t.Fatalf("found %d rules and switches", len(expressions))
	}
	for _, node := range expressions {
		written := node.Value
		node.Value = "true"
		data, err := yaml.Marshal(&document)
		node.Value = written
		if err != nil {
			t.Fatal(err)
		}
		changed := maps.Clone(whole)
		changed["template.yaml"] = &fstest.MapFile{Data: data, Mode: 0o644}
		t.Run(fmt.Sprintf("line %d", node.Line), func(t *testing.T) {
			t.Parallel()
			d, faults, err := authoring.Open(t.Context(), diskTree{changed}, ".")
			if err != nil || len(faults) > 0 {
				t.Fatalf("%v\n%v", err, faults)
			}
			outcomes, err := d.Test(t.Context(), authoring.TestOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(outcomes, func(o authoring.Outcome) bool { return o.Failed }) {
				t.Errorf("no test case notices that template.yaml:%d is taken away: %s", node.Line, written)
			}
		})
	}
}

// expressionsOf returns the values of all keys rule and when.
func expressionsOf(n *yaml.Node) []*yaml.Node {
	var found []*yaml.Node
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && child.Kind == yaml.ScalarNode && (n.Content[i-1].Value == "rule" || n.Content[i-1].Value == "when") {
			found = append(found, child)
		}
		found = append(found, expressionsOf(child)...)
	}
	return found
}

// TestReference holds the generated page to the template. With -update it writes
// the page.
func TestReference(t *testing.T) {
	t.Parallel()

	const file = "kubernetes/REFERENCE.md"
	want := draft(t).Page()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what `holdfast template docs` writes: run go test ./templates/library -run TestReference -update", file)
	}
}
