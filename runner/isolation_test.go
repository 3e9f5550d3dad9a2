package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/freeusers"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// isolation returns the strongest that works for whoever runs the tests.
func isolation(t *testing.T) runner.Isolation {
	t.Helper()
	const slots = 2
	first := freeusers.Of(t, slots)
	starter, err := sandbox.Probe(t.Context(), sandbox.Options{Slot: sandbox.Slot{UID: first, GID: first}})
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return runner.Isolation{Starter: starter, FirstUser: first, Slots: slots}
}

// TestConfigurationInASandbox: what engines would not find, or must not have, is
// told when the agent starts.
func TestConfigurationInASandbox(t *testing.T) {
	t.Parallel()
	o := isolation(t)
	for name, c := range map[string]struct {
		config string            // of the engines
		home   map[string]string // files
		names  []string          // of home, that engines find
		want   string            // in the error; empty: there is none
	}{
		"nothing":                 {},
		"a mirror":                {config: "provider_installation {\n  filesystem_mirror { path = \"/srv/mirror\" }\n}\n"},
		"a cache":                 {config: "plugin_cache_dir = \"/srv/cache\"\n"},
		"a relative mirror":       {config: "provider_installation {\n  filesystem_mirror { path = \"mirror\" }\n}\n", want: "not absolute"},
		"overrides":               {config: "provider_installation {\n  dev_overrides {\n    \"a/b\" = \"/tmp\"\n  }\n}\n", want: "isolation: none"},
		"a helper that is absent": {config: "credentials_helper \"x\" {\n  args = []\n}\n", want: "terraform-credentials-x"},
		"a helper": {
			config: "credentials_helper \"x\" {\n  args = []\n}\n", home: map[string]string{".terraform.d/plugins/terraform-credentials-x": "#!/bin/sh\n"},
		},
		"only in HOME":          {home: map[string]string{".terraformrc": ""}, want: "sandbox.paths"},
		"in HOME and named":     {home: map[string]string{".terraformrc": ""}, names: []string{".terraformrc"}},
		"tokens only in HOME":   {home: map[string]string{".terraform.d/credentials.tfrc.json": "{}"}, want: "sandbox.paths"},
		"plugins only in HOME":  {home: map[string]string{".terraform.d/plugins/x": ""}, want: "sandbox.paths"},
		"what cannot be parsed": {config: "x = {", want: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			for file, text := range c.home {
				path := filepath.Join(home, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			opts := runner.ExecutorOptions{WorkDir: t.TempDir(), Engines: runner.Engines{Env: map[string]string{"HOME": home}}, Isolation: o}
			for _, file := range c.names {
				opts.Isolation.ReadOnly = append(opts.Isolation.ReadOnly, filepath.Join(home, file))
			}
			if c.config != "" {
				opts.Engines.CLIConfigFile = filepath.Join(t.TempDir(), "engine.rc")
				if err := os.WriteFile(opts.Engines.CLIConfigFile, []byte(c.config), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := runner.NewExecutor(opts)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestNoIsolation: where nothing may be used no engine is started, and the run
// says what to do.
func TestNoIsolation(t *testing.T) {
	t.Parallel()
	e, calls := engineExecutor(t, func(o *runner.ExecutorOptions) {
		o.Isolation.Unavailable = sandbox.ErrUnavailable
	})
	s := newMemorySession(map[string]string{"main.tf": ""})
	got := e.Execute(t.Context(), engineAssignment("run-1", holdfast.RunPlan), s)
	wantStatus(t, got, holdfast.RunErrored, "NoIsolation", s)
	if got.Failure == nil || !strings.Contains(got.Failure.Hint, "isolation: none") {
		t.Errorf("failure %+v", got.Failure)
	}
	if started := strings.Join(calls(), ""); started != "" {
		t.Errorf("engines were started: %s", started)
	}
}

// TestForeignStateIsNotTaken: a file that looks like a state which could not be
// saved is taken from no bundle.
func TestForeignStateIsNotTaken(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	s := newMemorySession(map[string]string{"main.tf": "", "errored.tfstate": `{"serial": 99}`})
	s.state = "http://127.0.0.1:1/x"
	a := engineAssignment("run-1", holdfast.RunPlan)
	planned := e.Execute(t.Context(), a, s)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	s = newMemorySession(map[string]string{"main.tf": "", "errored.tfstate": `{"serial": 99}`, "fake": "apply fail it broke"})
	s.state = "http://127.0.0.1:1/x"
	a.Run, a.Kind, a.Reviews = "run-2", holdfast.RunApply, review("run-1", planned)
	got := e.Execute(t.Context(), a, s)
	if got.Status != holdfast.RunErrored || !got.Applying {
		t.Errorf("%s: %s", got.Status, got.Detail)
	}
	if state := s.artefact(protocol.ArtefactErrored); len(state) > 0 {
		t.Errorf("a state was taken: %s", state)
	}
}
