package waiver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/policy/waiver"
)

const head = "apiVersion: holdfast.dev/v1\nkind: Waiver\nmetadata: {name: migration}\n"

func TestParse(t *testing.T) {
	t.Parallel()
	all, faults := waiver.Parse("w.yaml", []byte(head+"spec:\n  policy: few-nodes\n  reason: migration\n  by: alice\n"+
		"  until: 2026-12-31\n  scope: {projects: [shop], clusters: [\"prod-*\"]}\n"))
	if len(faults) > 0 || len(all) != 1 {
		t.Fatalf("got %v, %v", all, faults)
	}
	w := all[0]
	if w.Policy != "few-nodes" || w.Reason != "migration" || w.By != "alice" || !w.Until.Equal(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v", w)
	}
	for _, c := range []struct {
		project, name string
		is            bool
	}{{"shop", "prod-eu", true}, {"shop", "dev", false}, {"pay", "prod-eu", false}} {
		if w.Is(holdfast.Cluster{Project: c.project, Name: c.name}) != c.is {
			t.Errorf("it is for %+v", c)
		}
	}
	if f := w.Fault("x", ""); f.Position() != "w.yaml:5:11" {
		t.Errorf("a fault is at %s", f.Position())
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const rest = "  policy: p\n  reason: r\n  by: a\n  until: 2026-12-31\n"
	for name, test := range map[string]struct{ text, want string }{
		"another kind":    {"apiVersion: holdfast.dev/v1\nkind: Cluster\n", "w.yaml:1:1: this document is not a waiver"},
		"no spec":         {head, "spec is missing"},
		"no scope":        {head + "spec:\n" + rest, "spec.scope is missing"},
		"an empty scope":  {head + "spec:\n" + rest + "  scope: {}\n", "w.yaml:9:10: spec.scope names nothing"},
		"an empty list":   {head + "spec:\n" + rest + "  scope: {projects: []}\n", "spec.scope.projects is empty"},
		"a bad pattern":   {head + "spec:\n" + rest + "  scope: {projects: [\"[\"]}\n", `w.yaml:9:22: spec.scope.projects[0] is "["`},
		"a wrong key":     {head + "spec:\n" + rest + "  scope: {cluster: [a]}\n", "did you mean \"clusters\""},
		"no reason":       {head + "spec: {policy: p, by: a, until: 2026-12-31, scope: {projects: [a]}}\n", "spec.reason is missing"},
		"not a date":      {head + "spec: {policy: p, reason: r, by: a, until: soon, scope: {projects: [a]}}\n", `spec.until is "soon"`},
		"not YAML":        {"a: [", "w.yaml:1"},
		"a long reason":   {head + "spec: {policy: p, reason: " + strings.Repeat("r", 501) + ", by: a, until: 2026-12-31, scope: {projects: [a]}}\n", "longer than 500 bytes"},
		"without a until": {head + "spec: {policy: p, reason: r, by: a, scope: {projects: [a]}}\n", "spec.until is missing"},
	} {
		all, faults := waiver.Parse("w.yaml", []byte(test.text))
		if all != nil || !strings.Contains(faults.Error(), test.want) {
			t.Errorf("%s: got %v, %v, want %q", name, all, faults, test.want)
		}
	}
}
