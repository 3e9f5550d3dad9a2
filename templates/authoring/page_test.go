package authoring_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/templates/authoring"
)

var update = flag.Bool("update", false, "write golden files again")

func TestPageGolden(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string][]byte{
		"web": scaffolded(t, "web", "aws", "local"),
		"rich": {
			"template.yaml": []byte(richTemplate), "m/main.tf": []byte("# nothing\n"),
			"CHANGELOG.md": []byte("# Changes\n\n## [1.0.0] - 2026-01-01\n\n### Added\n\n- `x` <script>alert(1)</script>\n\n## 0.9.0\n"),
		},
	} {
		got := open(t, below(name, files), name).Page()
		golden := filepath.Join("testdata", "page-"+name+".golden.md")
		if *update {
			if err := os.WriteFile(golden, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for range 3 {
			if again := open(t, below(name, files), name).Page(); !bytes.Equal(again, got) {
				t.Fatalf("%s: two pages of one template differ", name)
			}
		}
	}
}

// quoted is text in YAML, whatever is in it.
func quoted(t testing.TB, text string) string {
	t.Helper()
	out, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

var (
	fences  = regexp.MustCompile("(?s)\n(`{3,})[a-z]*\n.*?\n`{3,}(?:\n|$)")
	ourTags = regexp.MustCompile(`</?(?:details|summary)>|<!-- Made by [^<>]* -->`)
	spans   = regexp.MustCompile("(`+)[^`](?:.*?[^`])??`+")
)

// Whatever an author writes: it makes no tag, no row, and no column.
func FuzzPage(f *testing.F) {
	for _, text := range []string{"<script>alert(1)</script>", "a | b\n| c |", "`<b>`", "``` x", "](javascript:x)", "![x](y)", "<!-- -->", "a\\|b", "\\", "`a|b`", "$x$", "@all #1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r == 0xfffd || r == 0x7f }) || strings.TrimSpace(text) == "" {
			t.Skip("not what YAML can say, or nothing")
		}
		q := quoted(t, text)
		files := map[string][]byte{
			"m/main.tf": []byte("# nothing\n"),
			"template.yaml": []byte("apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: x, description: " + q + "}\nspec:\n" +
				"  providers: {local: {regions: [" + q + ", b], defaults: {a: " + q + "}, modules: [{name: m, source: ./m}]}}\n" +
				"  variables: {properties: {a: {type: string, description: " + q + ", enum: [" + q + ", " + q + "x]}}}\n" +
				"  rules: [{rule: 'has(self.a)', message: " + q + "}]\n  outputs: {o: {value: a, description: " + q + "}}\n"),
		}
		d, faults, err := authoring.Open(t.Context(), below(".", files), ".")
		if err != nil {
			t.Fatal(err)
		}
		if len(faults) > 0 {
			t.Skip("the template is refused")
		}
		page := fences.ReplaceAllString(string(d.Page()), "\n")
		columns := 0
		for line := range strings.Lines(page) {
			line = strings.TrimSuffix(line, "\n")
			bare := ourTags.ReplaceAllString(line, "")
			if !strings.HasPrefix(line, "|") {
				columns = 0
				if tags := spans.ReplaceAllString(bare, ""); strings.ContainsAny(tags, "<>") {
					t.Errorf("%q has a tag", line)
				}
				continue
			}
			pipes := strings.Count(regexp.MustCompile(`\\.`).ReplaceAllString(line, ""), "|")
			if columns == 0 {
				columns = pipes
			}
			if pipes != columns {
				t.Errorf("%q has %d columns, want %d", line, pipes-1, columns-1)
			}
			if tags := spans.ReplaceAllString(bare, ""); strings.ContainsAny(tags, "<>") {
				t.Errorf("%q has a tag", line)
			}
		}
	})
}

// TestPageShowsNoSecret: whatever a schema says of a secret's value, the page and
// the editor's schema have none; nor has the page what speaks to a terminal.
func TestPageShowsNoSecret(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{
		"m/main.tf": []byte("# nothing\n"),
		"template.yaml": []byte(`apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: web, description: "\x1b[31m\x9b\u202e\ufe0f red"}
spec:
  providers: {local: {modules: [{name: m, source: ./m}]}}
  variables:
    type: object
    properties:
      password: {type: string, writeOnly: true, enum: [hunter2, hunter3], const: hunter2, examples: [hunter2], minLength: 8}
`),
	}
	d := open(t, below("web", files), "web")
	schema, err := authoring.EditorSchema([]*authoring.Draft{d})
	if err != nil {
		t.Fatal(err)
	}
	page := string(d.Page())
	if strings.ContainsAny(page, "\x1b\u009b\u202e\ufe0f") {
		t.Errorf("%q", page)
	}
	if strings.Contains(page+string(schema), "hunter") || !strings.Contains(page, "at least 8 characters") {
		t.Errorf("%s\n%s", page, schema)
	}
}
