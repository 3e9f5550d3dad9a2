//go:build !race

package runner_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// The depth of code is measured by one goroutine, and megabytes of it take minutes
// with the race detector.

// TestHostileCode: code that would overflow a parser's stack is left to the
// engine, whose process it ends and not ours.
func TestHostileCode(t *testing.T) {
	t.Parallel()
	loop := "1"
	for range 12 {
		loop = "[for a in [" + strings.Repeat("1, ", 100) + "] : " + loop + "]"
	}
	for name, code := range map[string]string{
		"brackets":     "x = " + strings.Repeat("[", 1<<18),
		"signs":        "x = " + strings.Repeat("!", 1<<18),
		"signs, apart": "x = " + strings.Repeat("!/**/", 1<<16),
		"conditionals": "x = " + strings.Repeat("a?", 1<<17),
		"templates":    "x = " + strings.Repeat(`"${`, 1<<16),
		"objects":      "x = " + strings.Repeat("{a=", 1<<16),
		"loops":        "terraform_version_constraint = " + loop + "\n",
		"splats":       "x = a" + strings.Repeat("[*]", 150_000) + "\n",
		"sums":         "terraform {\n  required_version = " + strings.Repeat("1+", 1<<15) + "1\n}\n",
	} {
		for _, file := range []string{"main.tf", "terragrunt.hcl", "x.tf.json"} {
			t.Run(name+" in "+file, func(t *testing.T) {
				t.Parallel()
				e, _ := engineExecutor(t, nil)
				s := newMemorySession(map[string]string{file: code, "variables.tf": ""})
				s.state = "http://127.0.0.1:1/x"
				got := e.Execute(t.Context(), engineAssignment("run-1", holdfast.RunPlan), s)
				if got.Status != holdfast.RunPlanned && got.Reason != "InvalidConfiguration" {
					t.Errorf("%s: %s", got.Reason, got.Detail)
				}
			})
		}
	}
}
