package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/runner/plan"
)

// TestModuleChanges: which modules are others is said by name.
func TestModuleChanges(t *testing.T) {
	t.Parallel()
	then := map[string]plan.Module{
		"net": {Content: "sha256:1"}, "net.dns": {Version: "1.2.0", Content: "sha256:2"}, "old": {Content: "sha256:3"},
		"same": {Version: "2.0.0", Content: "sha256:4"}, "was": {Version: "1.0.0", Content: "sha256:5"},
	}
	now := map[string]plan.Module{
		"net": {Content: "sha256:9"}, "net.dns": {Version: "1.3.0", Content: "sha256:8"}, "new": {Content: "sha256:3"},
		"same": {Version: "2.0.0", Content: "sha256:4"}, "was": {Content: "sha256:5"},
	}
	const unknown = "a module that init fetches has changed: is its version pinned?"
	for name, c := range map[string]struct {
		now, then map[string]plan.Module
		want      []string
	}{
		"others": {now, then, []string{
			"module net has changed: its source is not pinned to a version or a commit",
			"module net.dns is 1.3.0, it was 1.2.0",
			"module new is new",
			"module old is gone",
			"module was is of no version, it was 1.0.0",
		}},
		"not noted before": {now, nil, []string{unknown}},
		"all gone":         {nil, map[string]plan.Module{"a": {}}, []string{"module a is gone"}},
		"in other places":  {then, then, []string{unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, plan.ModuleChanges(c.now, c.then)); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
			if len(c.now) > 0 {
				got := plan.Input{Modules: "sha256:a", Fetched: c.now}.ChangesSince(plan.Input{Modules: "sha256:b", Fetched: c.then})
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("of inputs (-want +got):\n%s", diff)
				}
			}
		})
	}
}
