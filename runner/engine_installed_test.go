package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner"
)

// shy installs an engine that does as a shell script says before it answers.
func shy(t *testing.T, dir, tool, version, script string) {
	t.Helper()
	real := filepath.Join(t.TempDir(), version)
	installEngine(t, real, tool)
	bin := filepath.Join(dir, tool, version)
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = version ]; then\n%s\nfi\nexec %q \"$@\"\n", script, filepath.Join(real, tool))
	if err := os.WriteFile(filepath.Join(bin, tool), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestEngineThatDoesNotAnswer: a binary that is killed while it is asked for its
// version is asked again, and no other is taken in its place.
func TestEngineThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool, version    string
		pinName, pin     string
		exact            bool
		script           string // of its version, before it answers; in it KILL is a file that there is at first
		first, afterward string // what is used, empty: nothing
	}{
		"killed, and preferred":              {tool: "tofu", version: "1.10.2", script: "[ ! -e KILL ] || kill -9 $$", afterward: "tofu 1.10.2"},
		"killed, and maybe newer":            {tool: "terraform", version: "1.12.0", pinName: "terraform", pin: "1.4.0", script: "[ ! -e KILL ] || kill -9 $$", afterward: "terraform 1.12.0"},
		"killed, and applied last":           {tool: "terraform", version: "1.9.8", pinName: "terraform", pin: "1.9.8", script: "[ ! -e KILL ] || kill -9 $$", afterward: "terraform 1.9.8"},
		"killed, and destroyed with":         {tool: "terraform", version: "1.9.8", pinName: "terraform", pin: "1.9.8", exact: true, script: "[ ! -e KILL ] || kill -9 $$", afterward: "terraform 1.9.8"},
		"its child killed":                   {tool: "tofu", version: "1.10.2", script: "[ ! -e KILL ] || exit 137", afterward: "tofu 1.10.2"},
		"no memory":                          {tool: "tofu", version: "1.10.2", script: "[ ! -e KILL ] || { echo 'fatal error: runtime: out of memory' >&2; exit 2; }", afterward: "tofu 1.10.2"},
		"killed once":                        {tool: "tofu", version: "1.10.2", script: "rm KILL 2>/dev/null && kill -9 $$", first: "tofu 1.10.2", afterward: "tofu 1.10.2"},
		"killed, and another is asked for":   {tool: "tofu", version: "1.10.2", pinName: "terraform", pin: "1.11.4", script: "[ ! -e KILL ] || kill -9 $$", first: "terraform 1.11.4", afterward: "terraform 1.11.4"},
		"a shim without a version":           {tool: "tofu", version: "1.10.2", script: "[ ! -e KILL ] || { echo 'No version is set' >&2; exit 126; }", first: "terraform 1.11.4", afterward: "tofu 1.10.2"},
		"something else of that name":        {tool: "tofu", version: "1.10.2", script: "[ ! -e KILL ] || { echo soy; exit 0; }", first: "terraform 1.11.4", afterward: "tofu 1.10.2"},
		"killed, beside the one to go on by": {tool: "terraform", version: "1.12.0", pinName: "terraform", pin: "1.11.4", script: "[ ! -e KILL ] || kill -9 $$", first: "terraform 1.11.4", afterward: "terraform 1.11.4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, kill := t.TempDir(), filepath.Join(t.TempDir(), "kill")
			if err := os.WriteFile(kill, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			installEngine(t, filepath.Join(dir, "terraform", "1.11.4"), "terraform")
			shy(t, dir, c.tool, c.version, strings.ReplaceAll(c.script, "KILL", kill))
			e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.Engines.Dirs = []string{dir} })
			run := func(id, want string) {
				t.Helper()
				s := newMemorySession(map[string]string{"main.tf": ""})
				s.state = "http://127.0.0.1:1/x"
				a := engineAssignment(id, holdfast.RunPlan)
				a.PinName, a.PinVersion, a.Exact = c.pinName, c.pin, c.exact
				got := e.Execute(t.Context(), a, s)
				if want == "" {
					wantStatus(t, got, holdfast.RunErrored, "NoEngine", s)
					if f := got.Failure; !f.Transient || !strings.Contains(f.Summary, filepath.Join(c.version, c.tool)+" does not report its version") {
						t.Errorf("failure %+v", f)
					}
					return
				}
				wantStatus(t, got, holdfast.RunPlanned, "", s)
				if used := got.EngineName + " " + got.EngineVersion; used != want {
					t.Errorf("%s: used %s, want %s", id, used, want)
				}
			}
			run("run-1", c.first)
			_ = os.Remove(kill)
			run("run-2", c.afterward)
		})
	}
}
