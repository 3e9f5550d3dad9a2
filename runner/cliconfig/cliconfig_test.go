package cliconfig_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/cliconfig"
)

// write writes files, by their paths below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRead: what engines in sandboxes get of a configuration, and what they must not
// have. HOME stands for the agent's home folder.
func TestRead(t *testing.T) {
	t.Parallel()
	const mirror = "provider_installation {\n  filesystem_mirror {\n    path = \"/srv/mirror/\"\n  }\n}\n"
	const helper = "credentials_helper \"vault\" {}\n"
	plugin := map[string]string{".terraform.d/plugins/example.com/x": "a provider"}
	token := map[string]string{".terraform.d/credentials.tfrc.json": "{}"}
	for name, tt := range map[string]struct {
		config   string            // the file that is named; empty: none is
		home     map[string]string // files of the agent's home folder
		seen     bool              // engines see that folder
		homeless bool              // the agent has none
		mirrors  []string
		has, not string // of what engines get
		err      string
	}{
		"nothing":                      {},
		"a mirror":                     {config: mirror, mirrors: []string{"/srv/mirror"}, has: "filesystem_mirror"},
		"a mirror of a relative path":  {config: strings.ReplaceAll(mirror, "/srv", "srv"), err: "is not absolute"},
		"a network mirror":             {config: "provider_installation {\n  network_mirror {\n    url = \"https://m/\"\n  }\n}\n", has: "network_mirror"},
		"credentials stay as they are": {config: "credentials \"r.example.com\" {\n  token = \"t-1\"\n}\n", has: "t-1"},
		"a plugin cache is left out":   {config: "plugin_cache_dir = \"/var/cache\"\ndisable_checkpoint = true\n", has: "disable_checkpoint", not: "plugin_cache_dir"},
		"others' programs":             {config: "provider_installation {\n  dev_overrides {\n    \"a/b\" = \"/tmp/b\"\n  }\n}\n", err: "isolation: none"},
		"not HCL":                      {config: "provider_installation {", err: "cannot be read"},
		"nested too deep":              {config: "a = " + strings.Repeat("[", 5000), err: "engine configuration"},
		"a helper that does not exist": {config: "credentials_helper \"vault\" {}\n", err: "there is no terraform-credentials-vault"},
		"a helper that is a path":      {config: "credentials_helper \"x/../../vault\" {}\n", err: "not a name"},
		"one in the home folder":       {home: map[string]string{".terraformrc": mirror}, err: "sandbox.paths"},
		"one that engines see":         {home: map[string]string{".terraformrc": mirror}, seen: true, mirrors: []string{"/srv/mirror"}},
		"one for each engine":          {home: map[string]string{".terraformrc": mirror, ".tofurc": ""}, seen: true, err: "engines.cliConfigFile"},
		"one for each, and one named":  {config: mirror, home: map[string]string{".terraformrc": "", ".tofurc": ""}, mirrors: []string{"/srv/mirror"}},
		"that of OpenTofu":             {home: map[string]string{".tofurc": mirror}, seen: true, mirrors: []string{"/srv/mirror"}},
		"providers in the home folder": {home: plugin, err: "providers are only in"},
		"providers that engines see":   {home: plugin, seen: true, err: "providers are only in"},
		"providers of the user's data": {home: map[string]string{".local/share/terraform/plugins/example.com/x": "a provider"}, err: "providers are only in"},
		"a helper": {
			config: helper, home: map[string]string{".terraform.d/plugins/terraform-credentials-vault": "a helper"},
		},
		"providers next to a helper": {
			config: helper, err: "providers are only in",
			home: map[string]string{".terraform.d/plugins/terraform-credentials-vault": "a helper", ".terraform.d/plugins/example.com/x": "a provider"},
		},
		"providers and a mirror":        {config: mirror, home: plugin, mirrors: []string{"/srv/mirror"}},
		"tokens in the home folder":     {home: token, err: "such as registry credentials"},
		"tokens that engines see":       {home: token, seen: true, err: "such as registry credentials"},
		"tokens and a named file":       {config: mirror, home: token, mirrors: []string{"/srv/mirror"}},
		"a file next to the main one":   {home: map[string]string{".terraformrc": mirror, ".terraform.d/more.tfrc": ""}, seen: true, err: "more.tfrc"},
		"an agent without a home":       {config: mirror, homeless: true, mirrors: []string{"/srv/mirror"}},
		"a helper, and nowhere to look": {config: "credentials_helper \"vault\" {}\n", homeless: true, err: "there is no terraform-credentials-vault"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, home := t.TempDir(), t.TempDir()
			write(t, home, tt.home)
			opts := cliconfig.Options{Home: home, Logger: slog.New(slog.DiscardHandler)}
			if tt.config != "" {
				write(t, dir, map[string]string{"engine.tfrc": tt.config})
				opts.File = filepath.Join(dir, "engine.tfrc")
			}
			if tt.seen {
				opts.Seen = []string{home}
			}
			if tt.homeless {
				opts.Home = ""
			}
			got, err := cliconfig.Read(opts)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("Read() = %v, want an error with %q", err, tt.err)
				}
				return
			}
			if err != nil || !slices.Equal(got.Mirrors, tt.mirrors) {
				t.Errorf("Read() = mirrors %q, %v, want %q", got.Mirrors, err, tt.mirrors)
			}
			if text := string(got.Data); !strings.Contains(text, tt.has) || tt.not != "" && strings.Contains(text, tt.not) {
				t.Errorf("engines get %q: want %q in it, and not %q", text, tt.has, tt.not)
			}
		})
	}
}

// TestFurnish: a credentials helper is where the engine of each attempt looks for it,
// and can be started.
func TestFurnish(t *testing.T) {
	t.Parallel()
	dir, home, attempt := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "home")
	const helper = ".terraform.d/plugins/terraform-credentials-vault"
	write(t, home, map[string]string{helper: "#!/bin/sh\n"})
	write(t, dir, map[string]string{"engine.tfrc": "credentials_helper \"vault\" {}\n"})
	c, err := cliconfig.Read(cliconfig.Options{File: filepath.Join(dir, "engine.tfrc"), Home: home, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Furnish(attempt); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(attempt, helper))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the helper is %v, %v", info, err)
	}
	if err := os.Remove(filepath.Join(home, helper)); err != nil {
		t.Fatal(err)
	}
	if err := c.Furnish(attempt); err == nil {
		t.Error("a helper that is gone is not an error")
	}
}
