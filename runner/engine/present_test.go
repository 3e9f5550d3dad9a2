package engine_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/engine"
)

// TestPresent: a backend without a state is not certain to be there, and init has to be
// asked for providers that only the state needs.
func TestPresent(t *testing.T) {
	t.Parallel()
	const locked = "provider \"registry.terraform.io/hashicorp/aws\" {\n  version = \"5.0.0\"\n}\n"
	of := func(provider string) string {
		return fmt.Sprintf(`{"lineage": "l", "resources": [{"mode": "data", "provider": %q}]}`, provider)
	}
	for name, c := range map[string]struct {
		state string
		want  bool
	}{
		"nothing":             {"", false},
		"no state":            {`{"version": 4, "serial": 0, "lineage": "", "resources": []}`, false},
		"what is not JSON":    {"Warning: no state\n", false},
		"an empty state":      {`{"version": 4, "serial": 1, "lineage": "l", "resources": []}`, true},
		"a locked provider":   {of(`module.m.provider["registry.terraform.io/hashicorp/aws"].west`), true},
		"the engine's own":    {of(`provider["terraform.io/builtin/terraform"]`), true},
		"only in the state":   {of(`provider["registry.terraform.io/hashicorp/google"]`), false},
		"another one's state": {of(`provider["registry.opentofu.org/hashicorp/aws"]`), false},
	} {
		if got := engine.Present([]byte(c.state), []byte(locked)); got != c.want {
			t.Errorf("%s shows %v, want %v", name, got, c.want)
		}
	}
}
