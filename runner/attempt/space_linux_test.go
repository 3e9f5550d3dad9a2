package attempt

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeusers"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// starters are those of the modes that work for whoever runs the tests. Each has a user
// that nobody else has.
func starters(t *testing.T) (list []*sandbox.Starter) {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "program") // where every user can start it
	if err := errors.Join(os.Chmod(filepath.Dir(filepath.Dir(program)), 0o755), os.WriteFile(program, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, mode := range sandbox.Modes() {
		user := freeusers.Of(t, 1)
		slot := sandbox.Slot{UID: user, GID: user}
		s, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Slot: slot, Program: program})
		if err != nil {
			t.Log(err)
			continue
		}
		list = append(list, s)
	}
	if os.Geteuid() == 0 && len(list) < 3 {
		t.Errorf("root has %d modes only", len(list))
	}
	return list
}

func ofMode(s *sandbox.Starter, env map[string]string) *space {
	var a protocol.Assignment
	a.Env = env
	return &space{exec: &Executor{opts: Options{Isolation: Isolation{Starter: s}}}, work: "/work", a: a}
}

// TestPluginsWithoutTLS: engine and providers talk in the clear only where no other run
// can reach the socket.
func TestPluginsWithoutTLS(t *testing.T) {
	t.Parallel()
	for _, s := range starters(t) {
		env := map[string]string{}
		ofMode(s, nil).isolate(env)
		if off := env["TF_DISABLE_PLUGIN_TLS"] != ""; off != s.Mode().OwnRoot() {
			t.Errorf("%s: TLS is off: %t", s.Mode(), off)
		}
	}
}

// TestSocketOfACredential: an engine finds the SSH agent that its run's credentials name,
// and no other one, such as that of whoever has started the agent.
func TestSocketOfACredential(t *testing.T) {
	t.Parallel()
	for _, s := range starters(t) {
		for name, test := range map[string]struct {
			bound map[string]string
			want  string
		}{
			"bound":     {map[string]string{"SSH_AUTH_SOCK": "/run/bound.sock"}, "/run/bound.sock"},
			"not bound": {nil, ""},
		} {
			env := map[string]string{"SSH_AUTH_SOCK": "/run/agents.sock"}
			maps.Copy(env, test.bound)
			of := ofMode(s, test.bound)
			of.isolate(env)
			if s.Mode() != sandbox.ModeNone && env["SSH_AUTH_SOCK"] != test.want {
				t.Errorf("%s, %s: SSH_AUTH_SOCK=%q, want %q", s.Mode(), name, env["SSH_AUTH_SOCK"], test.want)
			}
			for _, path := range []string{"/run/bound.sock", "/run/agents.sock"} {
				if got := mounted(of.mounts(env), path); got != (path == test.want) {
					t.Errorf("%s, %s: %s is mounted: %t", s.Mode(), name, path, got)
				}
			}
		}
	}
}

// TestCertificatesAreMounted: engines find what SSL_CERT_DIR and SSL_CERT_FILE name, and
// cannot write it.
func TestCertificatesAreMounted(t *testing.T) {
	t.Parallel()
	of := ofMode(nil, nil)
	list := of.mounts(map[string]string{"SSL_CERT_DIR": "/certs/one:/certs/two:relative", "SSL_CERT_FILE": "/certs/file.pem"})
	for _, path := range []string{"/certs/one", "/certs/two", "/certs/file.pem"} {
		if !mounted(list, path) {
			t.Errorf("%s is not mounted read-only: %+v", path, list)
		}
	}
	if mounted(list, "relative") {
		t.Error("a relative folder is mounted")
	}
}

// mounted reports whether a path is mounted read-only, and may be missing.
func mounted(list []sandbox.Mount, path string) bool {
	return slices.Contains(list, sandbox.Mount{Source: path, Optional: true})
}
