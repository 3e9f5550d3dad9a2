package attempt

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestSettingsStore: what was used last is remembered, and what was forgotten is not.
func TestSettingsStore(t *testing.T) {
	t.Parallel()
	var s settingsStore
	name := func(n int) holdfast.Digest { return holdfast.Digest(fmt.Sprint(n)) }
	for n := range maxSettings {
		s.keep(name(n), []byte{byte(n)})
	}
	if s.get(name(0)) == nil {
		t.Error("the first is forgotten before there are too many")
	}
	s.keep(name(maxSettings), []byte("one more"))
	if s.get(name(0)) == nil || s.get(name(1)) != nil || string(s.get(name(maxSettings))) != "one more" {
		t.Error("with one too many, not the one that was not used for longest is forgotten")
	}
	s.forget(name(0))
	s.forget("")
	if s.get(name(0)) != nil || len(s.kept) != maxSettings-1 || len(s.used) != len(s.kept) {
		t.Errorf("%d are kept, %d names", len(s.kept), len(s.used))
	}
}

// TestProves: a backend without a state is not certain to be there, and init has to be
// asked for providers that only the state needs.
func TestProves(t *testing.T) {
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
		if got := proves([]byte(c.state), []byte(locked)); got != c.want {
			t.Errorf("%s proves %v, want %v", name, got, c.want)
		}
	}
}

// TestHasPassword: connection strings have passwords in them.
func TestHasPassword(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"conn_str": "host=db user=ann password=hunter2"}`:   true,
		`{"conn_str": "host=db password = hunter2"}`:          true,
		`{"address": "https://host/state?access_token=abc"}`:  true,
		`{"conn_str": "host=db user=ann sslmode=require"}`:    false,
		`{"path": "/states/a=b", "password": null, "key": 1}`: false,
	} {
		if got := hasPassword(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
