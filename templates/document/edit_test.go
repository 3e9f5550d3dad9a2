package document_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// written is a document with § where the version and what is around it stands.
func written(name, template string) string {
	return "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec:\n  project: p\n  environment: e\n" + template
}

func documentOf(t testing.TB, data []byte, name string) document.Document {
	t.Helper()
	docs, _ := document.ParseClusters("a.yaml", data)
	for _, doc := range docs {
		if doc.Cluster.Name == name {
			return doc
		}
	}
	t.Fatalf("there is no cluster %s in\n%s", name, data)
	return document.Document{}
}

func TestSetVersion(t *testing.T) {
	t.Parallel()
	block := written("prod", "  template:\n    # why it is this one\n    version: 1.4.2   # since may\n    name: web\n")
	for name, text := range map[string]string{
		"block style":          block,
		"flow style":           written("prod", "  template: {name: web, version: 1.4.2, upgrades: \"~> 1.4\"}\n"),
		"flow over lines":      written("prod", "  template: {\n    name: web, version:\n      1.4.2,\n    upgrades: \"~> 1.4\"}\n"),
		"one line":             `{apiVersion: holdfast.dev/v1, kind: Cluster, metadata: {name: prod}, spec: {project: p, environment: e, template: {version: 1.4.2, name: web}}}`,
		"as JSON":              `{"apiVersion":"holdfast.dev/v1","kind":"Cluster","metadata":{"name":"prod"},"spec":{"project":"p","environment":"e","template":{"version":"1.4.2","name":"web"}}}`,
		"double quotes":        strings.ReplaceAll(block, "1.4.2", `"1.4.2"`),
		"single quotes":        strings.ReplaceAll(block, "1.4.2", `'1.4.2'`),
		"windows":              strings.ReplaceAll(block, "\n", "\r\n"),
		"old macs":             strings.ReplaceAll(block, "\n", "\r"),
		"no final newline":     strings.TrimRight(written("prod", "  template: {name: web, version: 1.4.2}"), "\n"),
		"version at the end":   written("prod", "  template:\n    name: web\n    version: 1.4.2"),
		"many-byte characters": written("prod", "  template: {upgrades: \"~> 1.4\", \"name\": web, version: 1.4.2} # für 東京 💥\n") + "# ü\n",
		"before it, too":       written("prod", "  variables: {\"ключ💥\": \"東京\", x: 1.4.2}\n  template: {name: web, version: 1.4.2}\n"),
		"on its line":          `{apiVersion: holdfast.dev/v1, kind: Cluster, metadata: {name: prod, labels: {"東京": "💥é"}}, spec: {project: p, environment: e, template: {version: 1.4.2, name: web}}}`,
		"byte order mark":      "\ufeff" + block,
		"mark, on line one":    "\ufeff" + `{apiVersion: holdfast.dev/v1, kind: Cluster, metadata: {name: prod}, spec: {project: p, environment: e, template: {version: 1.4.2, name: web}}}`,
		"tabs":                 written("prod", "  template: {\tname: web,\tversion:\t1.4.2\t} \t# tab\n"),
		"odd line ends":        strings.Replace(block, "# why", "# \u2028    # why", 1),
		"next line":            strings.Replace(block, "# why", "# \u0085# why", 1),
		"beside others": "# the first\n---\n" + written("other", "  template: {name: web, version: 1.4.2}\n") + "---\n" + block + "...\n---\n" +
			"kind: Other\nversion: 1.4.2\n---\n# nothing\n---\n" + written("third", "  template: {name: web, version: 1.4.2}\n"),
		"anchors elsewhere": written("prod", "  variables: {a: &a {x: 1}, b: *a}\n  template: &t {name: web, version: 1.4.2}\n"),
		"one that is wrong": "---\n" + written("wrong", "  tmplate: {name: web, version: 1.4.2}\n") + "---\n" + block,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, version := range []string{"1.5.0", "10.0.0-rc.1+build.7", "1.4.2"} {
				doc := documentOf(t, []byte(text), "prod")
				got, err := document.SetVersion([]byte(text), doc, version)
				if err != nil {
					t.Fatal(err)
				}
				if now := documentOf(t, got, "prod").Cluster.Template.Version; now != version {
					t.Errorf("the version is %q afterwards, want %q", now, version)
				}
				if len(got) != len(text)+len(version)-len("1.4.2") || !within(text, string(got), version) {
					t.Errorf("more was changed:\n%s\nwas\n%s", got, text)
				}
			}
		})
	}
}

// within reports whether b is a with one 1.4.2 replaced.
func within(a, b, version string) bool {
	for i := range a {
		if strings.HasPrefix(a[i:], "1.4.2") && a[:i]+version+a[i+len("1.4.2"):] == b {
			return true
		}
	}
	return false
}

func TestSetVersionRefuses(t *testing.T) {
	t.Parallel()
	plain := written("prod", "  template: {name: web, version: 1.4.2}\n")
	for name, tc := range map[string]struct{ text, version, want string }{
		"an alias":            {written("prod", "  variables: {v: &v 1.4.2}\n  template: {name: web, version: *v}\n"), "1.5.0", "is an alias"},
		"an anchor":           {written("prod", "  template: {name: web, version: &v 1.4.2}\n"), "1.5.0", "has an anchor, &v"},
		"a tag":               {written("prod", "  template: {name: web, version: !!str 1.4.2}\n"), "1.5.0", "not plain text"},
		"an escape":           {written("prod", "  template: {name: web, version: \"1.4\\x2e2\"}\n"), "1.5.0", "not written as it reads"},
		"a folded text":       {written("prod", "  template:\n    name: web\n    version: >-\n      1.4.2\n"), "1.5.0", "not written as it reads"},
		"an alias around it":  {written("prod", "  template: *t\n  variables: {t: 1}\n"), "1.5.0", ""},
		"a mapping elsewhere": {written("prod", "  variables: {t: &t {name: web, version: 1.4.2}}\n  template: *t\n"), "1.5.0", "alias"},
		"a merged mapping":    {written("prod", "  variables: {t: &t {version: 1.4.2}}\n  template: {<<: *t, name: web}\n"), "1.5.0", "version is not written in its own document"},
		"one that others use": {written("prod", "  template: &t {name: web, version: 1.4.2}\n  variables: {t: *t}\n"), "1.5.0", "would mean something else"},
		"no version":          {plain, "1.5", "not an exact version"},
		"an injection":        {plain, "1.5.0, path: x", "not an exact version"},
		"a line":              {plain, "1.5.0\n", "not an exact version"},
		"a broken file":       {plain + "---\n{", "1.5.0", "not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			docs, _ := document.ParseClusters("a.yaml", []byte(tc.text))
			if tc.want == "" {
				return // it cannot even be read
			}
			_, err := document.SetVersion([]byte(tc.text), docs[0], tc.version)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %s", err, tc.want)
			}
		})
	}
	doc := documentOf(t, []byte(plain), "prod")
	for name, now := range map[string]string{
		"another version":  strings.Replace(plain, "1.4.2", "1.4.3", 1),
		"another document": "---\n" + strings.Replace(plain, "prod", "test", 1),
		"nothing":          "",
	} {
		if _, err := document.SetVersion([]byte(now), doc, "1.5.0"); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("%s: error = %v, want ErrConflict", name, err)
		}
	}
}

func TestSetVersionsOfManyDocuments(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 500 {
		text.WriteString("---\n" + written(fmt.Sprintf("c%d", i), "  template: {name: web, version: 1.4.2}\n"))
	}
	docs, _ := document.ParseClusters("a.yaml", []byte(text.String()))
	edits := make([]document.VersionEdit, 0, len(docs))
	for i, doc := range docs {
		if i%2 == 0 {
			edits = append(edits, document.VersionEdit{Document: doc, Version: "1.5.0"})
		}
	}
	got, err := document.SetVersions([]byte(text.String()), edits)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(got, []byte("1.5.0")) != 250 || bytes.Count(got, []byte("1.4.2")) != 250 {
		t.Errorf("%d documents have the new version, want 250", bytes.Count(got, []byte("1.5.0")))
	}
}

func FuzzSetVersion(f *testing.F) {
	f.Add(written("prod", "  template: {name: web, version: 1.4.2}\n"), "1.5.0")
	f.Add("\ufeff"+written("prod", "  template:\r\n    name: web # é\r\n    version: '1.4.2'\r\n"), "2.0.0-rc.1")
	f.Add(written("prod", "  template: &t {name: web, version: 1.4.2}\n  variables: {t: *t}\n"), "1.5.0")
	f.Add("---\n"+written("a", "  template: {name: web, version: 1.4.2}\n")+"---\n"+written("b", "  template: {name: web, version: \"1.4.2\"}"), "1.4.3")
	f.Fuzz(func(t *testing.T, text, version string) {
		docs, _ := document.ParseClusters("a.yaml", []byte(text))
		for i, doc := range docs {
			got, err := document.SetVersion([]byte(text), doc, version)
			if err != nil {
				continue
			}
			was := doc.Cluster.Template.Version
			if len(got) != len(text)+len(version)-len(was) {
				t.Fatalf("%d bytes became %d", len(text), len(got))
			}
			// What is before and after the version is as it was.
			head := 0
			for head < len(got) && head < len(text) && got[head] == text[head] {
				head++
			}
			tail := len(got) - head
			for tail > 0 && (tail > len(text) || string(got[len(got)-tail:]) != text[len(text)-tail:]) {
				tail--
			}
			if head+tail < len(got)-len(version) {
				t.Fatalf("more than the version changed: %q became %q", text, got)
			}
			now, _ := document.ParseClusters("a.yaml", got)
			if len(now) != len(docs) || now[i].Cluster.Template.Version != version || now[i].Cluster.Name != doc.Cluster.Name {
				t.Fatalf("cluster %d is %+v, want version %s", i, now[i].Cluster, version)
			}
		}
	})
}
