package edit_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates/edit"
)

const written = `# the shop
apiVersion: holdfast.dev/v1
kind: Cluster
metadata:
  name: prod-eu   # never rename

spec:
  template: {name: eks, version: "4.2.0"}

  variables:
    # how many
    node_count: 3     # of each zone
    zones:
    - a
    - b
    note: |
      two
      lines

    admin: 'o''neil'
  drift:
    schedule: 1h
`

// TestSet: only the lines of what is set change, as far as that can be.
func TestSet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set      []string
		old, new string
	}{
		"a number":   {[]string{"variables.node_count=5"}, "    node_count: 3     # of each zone\n", "    node_count: 5 # of each zone\n"},
		"a list":     {[]string{"variables.zones=[c]"}, "    zones:\n    - a\n    - b\n", "    zones: [c]\n"},
		"a new one":  {[]string{"variables.size=large"}, "    admin: 'o''neil'\n", "    admin: 'o''neil'\n    size: large\n"},
		"removed":    {[]string{"variables.zones="}, "    zones:\n    - a\n    - b\n", ""},
		"lines":      {[]string{"variables.note=short"}, "    note: |\n      two\n      lines\n", "    note: short\n"},
		"two":        {[]string{"variables.node_count=5", "drift.schedule=2h"}, "", ""},
		"not there":  {[]string{"variables.nothing="}, "", ""},
		"the last":   {[]string{"drift.schedule=30m"}, "    schedule: 1h\n", "    schedule: 30m\n"},
		"a quoted":   {[]string{"variables.admin=\"yes\""}, "    admin: 'o''neil'\n", "    admin: \"yes\"\n"},
		"a mapping":  {[]string{"variables.pool.size=3"}, "", ""},
		"below flow": {[]string{"template.version=\"4.3.0\""}, "", ""},
	} {
		got, err := edit.Set([]byte(written), "spec", tc.set)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := strings.Replace(written, tc.old, tc.new, 1); tc.old != "" && string(got) != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		if !strings.Contains(string(got), "# the shop") || !strings.Contains(string(got), "# never rename") || !strings.Contains(string(got), "kind: Cluster") {
			t.Errorf("%s lost what it is not about:\n%s", name, got)
		}
	}
	both, err := edit.Set([]byte(written), "spec", []string{"variables.node_count=5", "drift.schedule=2h"})
	if err != nil || !strings.Contains(string(both), "node_count: 5 # of each zone\n") || !strings.Contains(string(both), "schedule: 2h\n") || !strings.Contains(string(both), "    # how many\n") {
		t.Errorf("%v\n%s", err, both)
	}
	flow, err := edit.Set([]byte(written), "spec", []string{"template.version=\"4.3.0\""})
	if err != nil || !strings.Contains(string(flow), `version: 4.3.0`) {
		t.Errorf("%v\n%s", err, flow)
	}
	for _, bad := range []string{"", "x", "=1", "a..b=1", "variables=[", "variables.node_count.x=1", "variables.node_count=# five", "variables.node_count=5\n---\n6"} {
		if _, err := edit.Set([]byte(written), "spec", []string{bad}); err == nil {
			t.Errorf("%q can be set", bad)
		}
	}
}

// TestParts: documents of a file are replaced, removed and added without touching others.
func TestParts(t *testing.T) {
	t.Parallel()
	file := "a: 1\n---\nb: 2\n--- # third\nc: 3\n"
	parts := edit.Parts([]byte(file))
	if len(parts) != 3 {
		t.Fatalf("%q", parts)
	}
	if got := string(edit.Replace(parts, 1, []byte("x: 9\n"))); got != "a: 1\n---\nx: 9\n--- # third\nc: 3\n" {
		t.Errorf("replaced: %q", got)
	}
	if got := string(edit.Remove(parts, 0)); got != "---\nb: 2\n--- # third\nc: 3\n" {
		t.Errorf("removed: %q", got)
	}
	if got := edit.Remove(edit.Parts([]byte("a: 1\n")), 0); got != nil {
		t.Errorf("the last one leaves %q", got)
	}
	if got := string(edit.Append([]byte("a: 1\n\n"), []byte("b: 2\n"))); got != "a: 1\n---\nb: 2\n" {
		t.Errorf("added: %q", got)
	}
	if got := string(edit.Append(nil, []byte("b: 2\n"))); got != "b: 2\n" {
		t.Errorf("a new file: %q", got)
	}
}

// TestSetLosesNothing: what a change is not about stays, however it is written.
func TestSetLosesNothing(t *testing.T) {
	t.Parallel()
	windows := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	for name, tc := range map[string]struct{ text, set, want string }{
		"ends of lines": {
			windows(written), "variables.node_count=5", windows(strings.Replace(written, "node_count: 3     # of", "node_count: 5 # of", 1)),
		},
		"ends of lines of a whole document": {
			windows("spec: {a: 1} # why\n"), "b=2", windows("spec: {a: 1, b: 2} # why\n"),
		},
		"a comment of the key before": {
			"spec:\n  variables:\n    a: 1\n    # of a\n  # of the region\n  region: x\n  provider: y\n", "region=",
			"spec:\n  variables:\n    a: 1\n    # of a\n  provider: y\n",
		},
	} {
		got, err := edit.Set([]byte(tc.text), "spec", []string{tc.set})
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, tc.want)
		}
	}
	anchored := "spec:\n  variables:\n    a: &s small\n    b: *s\n"
	if got, err := edit.Set([]byte(anchored), "spec", []string{"variables.a=large"}); err == nil || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("what another key refers to was changed: %v\n%s", err, got)
	}
	if got := string(edit.Append([]byte("a: 1\r\n\r\n"), []byte("b: 2\n"))); got != "a: 1\r\n---\r\nb: 2\r\n" {
		t.Errorf("added: %q", got)
	}
	if got := string(edit.Replace(edit.Parts([]byte("a: 1\r\n---\r\nb: 2\r\n")), 1, []byte("c: 3\n"))); got != "a: 1\r\n---\r\nc: 3\r\n" {
		t.Errorf("replaced: %q", got)
	}
	for text, want := range map[string]bool{"": true, "a: 1\n...\n": true, "a: 1\n...\nb: 2\n": false, "a: 1\n...\n# only this\n": true} {
		if edit.IsOne([]byte(text)) != want {
			t.Errorf("%q is one document: %v", text, !want)
		}
	}
}
