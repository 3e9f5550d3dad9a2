package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// helpers are programs that tests start by running this test binary under
// another name: a link to it with that base name.
func helpers() map[string]func(args []string) int {
	return map[string]func([]string) int{
		"terraform": fakeEngine,
		"tofu":      fakeEngine,
	}
}

func TestMain(m *testing.M) {
	if helper := helpers()[filepath.Base(os.Args[0])]; helper != nil {
		os.Exit(helper(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// installHelper links this test binary into dir under name.
func installHelper(t *testing.T, dir, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(fmt.Errorf("install helper: %w", err))
	}
	return path
}
