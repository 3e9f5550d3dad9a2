//go:build linux

package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestExposes: what lies where every sandbox, or this one, finds files can be read by an
// engine that has the agent's user, wherever links lead, and by no other one.
func TestExposes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shown, other := filepath.Join(dir, "shown"), filepath.Join(dir, "other")
	if err := errors.Join(os.Mkdir(shown, 0o700), os.Mkdir(other, 0o700),
		os.Symlink("/opt", filepath.Join(dir, "to-opt")), os.Symlink(other, filepath.Join(shown, "out"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/opt":                                "/opt",
		"/opt/holdfast/.holdfast/key":         "/opt",
		"/usr/local/etc/holdfast/../key":      "/usr",
		"/optional/key":                       "",
		"/var/lib/holdfast":                   "",
		"/etc/holdfast/key":                   "",
		filepath.Join(dir, "to-opt/holdfast"): "/opt",
		filepath.Join(shown, "key"):           shown,
		filepath.Join(shown, "out/key"):       "",
		shown + "-not":                        "",
	} {
		for _, mode := range sandbox.Modes() {
			expect := want
			if mode != userNamespace && mode != landlock {
				expect = ""
			}
			if got := mode.Exposes(path, "", shown); got != expect {
				t.Errorf("%s: %s is exposed by %q, want %q", mode, path, got, expect)
			}
		}
	}
	if got := landlock.Exposes("/var/lib/holdfast", "/"); got != "/" {
		t.Errorf("all is shown, and %q exposes a folder", got)
	}
}
