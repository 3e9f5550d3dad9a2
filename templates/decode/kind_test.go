package decode_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// TestSpoiledHeads: a mistake in a document's head, or between two documents, is a
// fault at its line. Nobody takes the cluster for removed.
func TestSpoiledHeads(t *testing.T) {
	t.Parallel()

	first := short("module: {path: infra}")
	second := strings.Replace(first, "name: a", "name: b", 1)
	replaced := func(old, replacement string) string {
		text := strings.Replace(first, old, replacement, 1)
		if text == first {
			t.Fatalf("no %q", old)
		}
		return text + "---\n" + second
	}
	const ours, kind = "apiVersion: holdfast.dev/v1\n", "kind: Cluster\n"
	foreign := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	item := "- " + strings.ReplaceAll(strings.TrimSpace(first), "\n", "\n  ") + "\n"
	tests := map[string]struct {
		text  string
		fault string // of the first
		names string
	}{
		"no mistake":                   {first + "---\n" + second, "", "a b"},
		"key kinnd":                    {replaced("kind:", "kinnd:"), `c.yaml:2:1: unknown key "kinnd" in the document (did you mean "kind"?)`, "a b"},
		"key Kind":                     {replaced("kind:", "Kind:"), `c.yaml:2:1: unknown key "Kind" in the document (did you mean "kind"?)`, "a b"},
		"no kind":                      {replaced(kind, ""), `c.yaml:1:1: kind is missing (write kind: Cluster)`, "a b"},
		"kind is a comment":            {replaced(kind, "# "+kind), `c.yaml:1:1: kind is missing (write kind: Cluster)`, "a b"},
		"kind is empty":                {replaced(kind, "kind:\n"), `c.yaml:2:6: kind must be text, not nothing (one of Cluster, Runner, RunnerRule, Template)`, "a b"},
		"kind is a list":               {replaced(kind, "kind: [Cluster]\n"), `c.yaml:2:7: kind must be text, not a list (one of Cluster, Runner, RunnerRule, Template)`, "a b"},
		"kind in small letters":        {replaced(kind, "kind: cluster\n"), `c.yaml:2:7: kind is "cluster" (did you mean "Cluster"?)`, "a b"},
		"kind is another word":         {replaced(kind, "kind: Fleet\n"), `c.yaml:2:7: kind is "Fleet" (one of Cluster, Runner, RunnerRule, Template)`, "a b"},
		"kind with a space of its own": {replaced(kind, "kind: Cluster\u00a0\n"), "c.yaml:2:7: kind is \"Cluster\\u00a0\" (did you mean \"Cluster\"?)", "a b"},
		"no apiVersion":                {replaced(ours, ""), `c.yaml:1:1: apiVersion is missing (write apiVersion: holdfast.dev/v1)`, "a b"},
		"apiVersion is a comment":      {replaced(ours, "# "+ours), `c.yaml:2:1: apiVersion is missing (write apiVersion: holdfast.dev/v1)`, "a b"},
		"key apiVerison":               {replaced("apiVersion:", "apiVerison:"), `c.yaml:1:1: unknown key "apiVerison" in the document (did you mean "apiVersion"?)`, "a b"},
		"apiVersion is empty":          {replaced(ours, "apiVersion:\n"), `c.yaml:1:1: apiVersion is missing (write apiVersion: holdfast.dev/v1)`, "a b"},
		"another domain":               {replaced("holdfast.dev", "holdfast.com"), `c.yaml:1:13: apiVersion is "holdfast.com/v1" (this Holdfast knows holdfast.dev/v1)`, "a b"},
		"a letter less":                {replaced("holdfast.dev", "holdfst.dev"), `c.yaml:1:13: apiVersion is "holdfst.dev/v1" (this Holdfast knows holdfast.dev/v1)`, "a b"},
		"no group":                     {replaced("holdfast.dev/v1", "v1"), `c.yaml:1:13: apiVersion is "v1" (this Holdfast knows holdfast.dev/v1)`, "a b"},
		"neither word":                 {replaced(ours+kind, ""), `c.yaml:1:1: apiVersion and kind are missing (write apiVersion: holdfast.dev/v1 and kind: Cluster)`, "a b"},
		"both keys":                    {replaced(ours+kind, "apiVerison: holdfast.dev/v1\nkinnd: Cluster\n"), `c.yaml:1:1: unknown key "apiVerison" in the document (did you mean "apiVersion"?)`, "a b"},
		"byte order mark":              {second + "---\n\ufeff" + strings.Replace(first, kind, "", 1), `c.yaml:9:1: unknown key "\ufeffapiVersion" in the document (did you mean "apiVersion"?)`, "b a"},
		"list":                         {item + "---\n" + second, `c.yaml:1:3: this Holdfast document is an item of a list (write it without "- " and indentation, and separate documents with a line ---)`, "a b"},
		"list of Kubernetes":           {"apiVersion: v1\nkind: List\nitems:\n" + item + "---\n" + second, `c.yaml:4:3: this Holdfast document is an item of a list (write it without "- " and indentation, and separate documents with a line ---)`, "b"},
		"below a key":                  {"cluster:\n  " + strings.ReplaceAll(strings.TrimSpace(first), "\n", "\n  ") + "\n---\n" + second, `c.yaml:1:1: this Holdfast document is nested below the key "cluster" (write it without that key and without indentation)`, "b"},
		"text":                         {second + "--- |\n  " + strings.ReplaceAll(first, "\n", "\n  "), `c.yaml:8:5: this Holdfast document is written as a string (remove what follows the --- above it)`, "b"},
		"line is a comment":            {first + "# ---\n" + second, `c.yaml:9:1: key "apiVersion" is given twice, first in line 1 (separate documents with a line ---)`, "a"},
		"no line":                      {first + second, `c.yaml:8:1: key "apiVersion" is given twice, first in line 1 (separate documents with a line ---)`, "a"},
		"line runs into a key":         {first + "---" + second, `c.yaml:9:1: key "kind" is given twice, first in line 2 (separate documents with a line ---)`, "a"},
		"no line after another's":      {strings.Replace(foreign, "name: a", "name: x", 1) + first + "---\n" + second, `c.yaml:4:13: apiVersion or kind is given twice in one document (separate documents with a line ---)`, "b"},
		"tab":                          {second + "---\n" + strings.Replace(first, "  module", "\tmodule", 1), `c.yaml:15:1: file is not valid YAML: a tab indents this line (indent with spaces)`, "b"},
		"end of lines of Windows":      {strings.ReplaceAll(replaced("kind:", "kinnd:"), "\n", "\r\n"), `c.yaml:2:1: unknown key "kinnd" in the document (did you mean "kind"?)`, "a b"},
		"Kubernetes' own":              {foreign + "---\n" + second, "", "b"},
		"another API's cluster":        {"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n---\n" + second, "", "b"},
		"other values":                 {"defaults: {kind: Cluster}\nfind: x\n---\n" + second, "", "b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			docs, faults := document.ParseClusters("c.yaml", []byte(tc.text))
			var names []string
			for _, doc := range docs {
				names = append(names, doc.Cluster.Name)
			}
			if diff := cmp.Diff(tc.names, strings.Join(names, " ")); diff != "" {
				t.Error(diff)
			}
			if tc.fault == "" {
				wantFaults(t, faults)
			} else if len(faults) == 0 || !strings.HasPrefix(faults[0].Error(), tc.fault) {
				t.Errorf("faults:\n%v\nwant\n%s", faults, tc.fault)
			}
		})
	}
}

// TestSpoiledHeadsAlone: the same in a file without any other document of ours.
func TestSpoiledHeadsAlone(t *testing.T) {
	t.Parallel()

	whole := short("module: {path: infra}")
	for name, tc := range map[string]struct {
		text   string
		faulty bool
	}{
		"no apiVersion":         {strings.Replace(whole, "apiVersion: holdfast.dev/v1\n", "", 1), true},
		"another domain":        {strings.Replace(whole, "holdfast.dev", "holdfast.com", 1), true},
		"key apiVerison":        {strings.Replace(whole, "apiVersion", "apiVerison", 1), true},
		"another API's cluster": {"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: a}\n", false},
		"another API's chart":   {"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: {{ .name }}}\n", false},
	} {
		if _, faults := document.ParseClusters("c.yaml", []byte(tc.text)); len(faults) > 0 != tc.faulty {
			t.Errorf("%s: faults are %v", name, faults)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()

	text := short("module: {path: infra}") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n---\nmetadata: {name: c}\n"
	if diff := cmp.Diff(map[string]int{"b": 9, "c": 13}, decode.Names("c.yaml", []byte(text))); diff != "" {
		t.Error(diff)
	}
}
