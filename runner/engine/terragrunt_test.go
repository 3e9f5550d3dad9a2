package engine_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// TestChooseTerragrunt: the newest of the major version that is spoken, within what the unit
// and version files ask for.
func TestChooseTerragrunt(t *testing.T) {
	t.Parallel()
	everything := []string{"terragrunt 0.77.22", "terragrunt 1.0.2", "terragrunt 1.1.0", "terragrunt 2.0.0"}
	for name, c := range map[string]struct {
		installed []string
		config    string
		versions  map[string]string // version files by folder
		want      string
		cause     holdfast.Reason
		words     string
	}{
		"nothing is asked for":  {installed: everything, want: "1.1.0"},
		"the unit's constraint": {installed: everything, config: `terragrunt_version_constraint = "< 1.1"`, want: "1.0.2"},
		"a version file":        {installed: everything, versions: map[string]string{"live/prod": "1.0.2\n"}, want: "1.0.2"},
		"a version file above":  {installed: everything, versions: map[string]string{".": "1.0.2"}, want: "1.0.2"},
		"a strategy":            {installed: everything, versions: map[string]string{".": "latest"}, want: "1.1.0"},
		"another major version": {installed: everything, config: `terragrunt_version_constraint = "~> 0.77.0"`, cause: holdfast.CauseInvalidConfiguration, words: "no version of terragrunt can satisfy"},
		"not a constraint":      {installed: everything, config: `terragrunt_version_constraint = "newest"`, cause: holdfast.CauseInvalidConfiguration, words: "newest"},
		"none is installed":     {cause: holdfast.CauseNoEngine, words: "no terragrunt fits"},
		"only another major is": {installed: everything[:1], cause: holdfast.CauseNoEngine, words: "terragrunt 0.77.22"},
		"one does not answer":   {installed: []string{"terragrunt "}, cause: holdfast.CauseNoEngine, words: "does not report its version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bundle := t.TempDir()
			dir := filepath.Join(bundle, "live", "prod")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			files := map[string]string{filepath.Join(dir, "terragrunt.hcl"): "inputs = {}\n" + c.config + "\n"}
			for at, version := range c.versions {
				files[filepath.Join(bundle, at, ".terragrunt-version")] = version
			}
			for name, text := range files {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			store := engine.NewStore(engine.Options{
				Sources: engine.Sources{Dirs: []string{machine(t, c.installed...)}}, Dir: t.TempDir(),
				Env: map[string]string{"PATH": "/bin:/usr/bin"}, Logger: slog.New(slog.DiscardHandler),
			})
			got, err := store.ChooseTerragrunt(t.Context(), "~> 1.0", dir, bundle)
			if c.cause == "" {
				if err != nil || got.Version != c.want {
					t.Errorf("got %s, %v", got.Version, err)
				}
				return
			}
			var fault *failure.Error
			if !errors.As(err, &fault) || fault.Cause != c.cause || !strings.Contains(err.Error()+fault.Hint, c.words) {
				t.Errorf("got %v", err)
			}
		})
	}
}
