package authoring_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/authoring"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// countingEngine answers for root modules of the beginning that Holdfast makes.
type countingEngine struct{}

func (countingEngine) Validate(context.Context, document.Document, *templates.Root) error {
	return nil
}

func (countingEngine) Plan(_ context.Context, _ document.Document, root *templates.Root) (holdfast.Counts, error) {
	nodes := 3
	if root.Variables["node_count"] == int64(1) {
		nodes = 1
	}
	counts := holdfast.Counts{Create: 2 + nodes}
	if root.Variables["enable_monitoring"] == true {
		counts.Create++
	}
	return counts, nil
}

// What New writes is valid, wherever it is put; its tests pass and its examples
// can be rendered.
func TestNew(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		providers []string
		dir       string
		examples  int
	}{
		"by default":          {examples: 1, dir: "."},
		"in a folder":         {examples: 1, dir: "templates/kubernetes", providers: []string{"local"}},
		"all that is known":   {examples: 6, dir: "t", providers: []string{"aws", "gcp", "azure", "digitalocean", "linode", "local"}},
		"one of their own":    {examples: 1, dir: "t", providers: []string{"metal"}},
		"a cloud and another": {examples: 2, dir: "t", providers: []string{"aws", "metal"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, below(tc.dir, scaffolded(t, "kubernetes", tc.providers...)), tc.dir)
			if len(d.Examples) != tc.examples {
				t.Errorf("%d examples, want %d", len(d.Examples), tc.examples)
			}
			outcomes, err := d.Test(t.Context(), authoring.TestOptions{Engine: countingEngine{}, NeedEngine: true})
			if err != nil || len(outcomes) < 4 {
				t.Fatalf("%d outcomes, %v", len(outcomes), err)
			}
			for _, o := range outcomes {
				if o.Failed || len(o.Notes) > 0 {
					t.Errorf("%s: %v %v", o.Name, o.Problems, o.Notes)
				}
			}
		})
	}
}

// The parts that wait in comments for somebody to use them are right, too.
func TestNewComments(t *testing.T) {
	t.Parallel()
	files := scaffolded(t, "kubernetes", "aws", "gcp", "azure", "digitalocean", "linode")
	text := string(files["template.yaml"])
	for _, line := range []string{"configure:", "  - name:", "    source:", "    arguments:", "    blocks:"} {
		text = strings.ReplaceAll(text, "# "+line, line)
	}
	text = strings.Replace(text, "# db_password:", "db_password:", 1)
	files["template.yaml"] = []byte(text)
	d := open(t, below("t", files), "t")
	if n := len(d.Blueprint.Providers[0].Configure); n != 1 {
		t.Errorf("%d providers of the engine are configured, want 1", n)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		name      string
		providers []string
		want      string
	}{
		"no name":          {"", nil, "cannot be the name of a template"},
		"a path":           {"../x", nil, "cannot be the name of a template"},
		"a provider's":     {"x", []string{"a b"}, "cannot be the name of a provider"},
		"a provider twice": {"x", []string{"aws", "aws"}, "given twice"},
	} {
		if _, err := authoring.New(tc.name, tc.providers); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
