//go:build !race

package runner_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestValidate: the engine checks code and types; it looks for no state, no
// credentials of a backend, and no values of variables.
func TestValidate(t *testing.T) {
	t.Parallel()
	e, _ := newRealExecutor(t)
	const elsewhere = "terraform {\n  backend \"s3\" {\n    bucket = \"none\"\n    key    = \"k\"\n    region = \"eu-west-1\"\n  }\n}\n"
	for name, tc := range map[string]struct {
		code   string
		status holdfast.RunStatus
		reason holdfast.Reason
	}{
		"valid":           {code: "terraform {\n  backend \"http\" {}\n}\nvariable \"needed\" {}\nresource \"terraform_data\" \"x\" { input = var.needed }\n", status: holdfast.RunNoChanges},
		"another backend": {code: elsewhere + "resource \"terraform_data\" \"x\" {}\n", status: holdfast.RunNoChanges},
		"not valid":       {code: "resource \"terraform_data\" \"x\" { inptu = 1 }\n", status: holdfast.RunErrored, reason: "InvalidConfiguration"},
	} {
		s := newMemorySession(map[string]string{"main.tf": tc.code})
		a := engineAssignment("run-"+name, holdfast.RunPlan)
		a.OwnState = name != "another backend"
		got := e.Validate(t.Context(), a, s)
		wantStatus(t, got, tc.status, tc.reason, s)
		if last := got.Steps[len(got.Steps)-1].Name; last != "validate" {
			t.Errorf("%s: the last step was %s", name, last)
		}
	}
}
