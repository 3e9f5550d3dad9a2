package e2e_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
)

// A server that is not root isolates engines with user namespaces of its own, where
// these are allowed: with providers of a mirror it plans, applies, finds drift and
// destroys as root's does.
func TestServerOfAPlainUser(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	if os.Getuid() == 0 {
		w.under = []string{"unshare", "--user", "--map-user=1000", "--map-group=1000", "--"}
	}
	w.start()
	fleet := w.fleet()
	fleet.bring(w.keeper("alpha", "a=one", "deletion: {protected: false}"))
	if log := w.agentLog(); !strings.Contains(log, "mode=user-namespace") {
		t.Errorf("the agent does not say in which mode it is:\n%s", log)
	}
	change := fleet.open(keeps("alpha", "a=two", "deletion: {protected: false}"))
	change.untilPlanned("1 to replace")
	change.merge()
	change.untilApplied("1 replaced")
	if got := w.things("alpha"); got != "a=two" {
		t.Errorf("alpha keeps %q", got)
	}
	w.do("drift check alpha --wait", "none")
	removal := fleet.open(gone("alpha"))
	fleet.untilStatus(removal.head, holdfast.ContextPlan, holdfast.StatusSuccess)
	removal.merge()
	w.untilPhase("alpha", holdfast.PhaseDeleted)
	if got := w.things("alpha"); got != "" {
		t.Errorf("alpha keeps %q", got)
	}
}

// A server that is not root does not start with its data, or a token, where the code of every
// plan could read it, nor does an agent: each says which key or flag it is about. Root's
// engines are other users, and do not matter.
func TestPrivatePlacesOfAPlainUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"isolation": "user-namespace"})
	data := filepath.Join("/opt", filepath.Base(w.dir))
	t.Cleanup(func() { os.RemoveAll(data) })
	w.write("shared/token", strings.Repeat("t", 32), 0o600)
	w.set(settings{
		"dataDir": data, "sandbox.paths.readOnly": []string{w.path("shared")}, "server.api.tokens": []any{
			map[string]any{"name": "me", "role": "admin", "token": map[string]any{"file": "shared/token"}},
		},
	})
	text, err := yaml.Marshal(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.write("holdfast.yaml", string(text), 0o600)
	var under []string
	if os.Getuid() == 0 {
		under = []string{"unshare", "--user", "--map-user=1000", "--map-group=1000", "--"}
	}
	holdfast := func(under []string, args ...string) (said string, code int) {
		line := append(slices.Clone(under), append([]string{binary}, args...)...)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, line[0], line[1:]...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // one that starts, with its agent
		cmd.Dir, cmd.Env = w.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir}
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	const readable = ", which the code of every plan can read: in mode user-namespace engines run as the "
	for name, args := range map[string][]string{
		"start": {"serve", "--config", "holdfast.yaml"}, "check": {"serve", "--check", "--config", "holdfast.yaml"},
	} {
		said, code := holdfast(under, args...)
		for _, want := range []string{
			"dataDir: " + data + " is in /opt" + readable + "server's user",
			"server.api.tokens[0].token: " + w.path("shared", "token") + " is in " + w.path("shared") + readable,
		} {
			if code != 1 || !strings.Contains(said, want) {
				t.Errorf("%s: code %d, want 1 and %q:\n%s", name, code, want, said)
			}
		}
	}
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
	if said, code := holdfast(nil, "serve", "--check", "--config", "holdfast.yaml"); os.Getuid() == 0 && code != 0 {
		t.Errorf("root's server: code %d:\n%s", code, said)
	}
	agent := []string{"agent", "--server", "unix:///nowhere", "--id", "edge", "--isolation", "user-namespace", "--sandbox-read", w.path("shared")}
	w.write("token", strings.Repeat("t", 32), 0o600)
	for flag, args := range map[string][]string{
		"--dir: " + w.path("shared", "agent"):        {"--dir", "shared/agent", "--token-file", w.path("token")},
		"--token-file: " + w.path("shared", "token"): {"--dir", w.path("agent"), "--token-file", "shared/token"},
	} {
		said, code := holdfast(under, append(agent, args...)...)
		if want := flag + " is in " + w.path("shared") + readable + "agent's user"; code != 1 || !strings.Contains(said, want) {
			t.Errorf("an agent: code %d, want 1 and %q:\n%s", code, want, said)
		}
	}
}
