package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a task's environment has is kept where engines do not see it, and no process that the
// agent starts inherits it.
func TestTaskEnvironment(t *testing.T) {
	t.Setenv("HOLDFAST_TICKET", "run-1.1.secret")
	t.Setenv("HOLDFAST_CA", "the authority")
	f := agentFlags{dir: filepath.Join(t.TempDir(), "agent"), run: true}
	env := taskEnvironment{ticket: "HOLDFAST_TICKET", ca: "HOLDFAST_CA"}
	if err := env.take(&f); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{f.ticketFile: "run-1.1.secret", f.caFile: "the authority"} {
		text, err := os.ReadFile(file)
		info, _ := os.Stat(file)
		if err != nil || string(text) != want || info.Mode().Perm() != 0o600 || filepath.Dir(file) != f.dir {
			t.Errorf("%s has %q, %v, %v", file, text, info.Mode(), err)
		}
	}
	for _, name := range []string{"HOLDFAST_TICKET", "HOLDFAST_CA"} {
		if value, there := os.LookupEnv(name); there {
			t.Errorf("%s is still %q", name, value)
		}
	}
	for name, test := range map[string]struct {
		env  taskEnvironment
		f    agentFlags
		want string
	}{
		"an empty variable": {taskEnvironment{ticket: "HOLDFAST_TICKET"}, agentFlags{dir: t.TempDir()}, "variable HOLDFAST_TICKET is empty"},
		"both":              {taskEnvironment{ca: "HOME"}, agentFlags{dir: t.TempDir()}, "--ca-env and --ca-file"},
	} {
		if name == "both" {
			test.f.caFile = "x"
		}
		if err := test.env.take(&test.f); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
