package modulecode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// TestPinnedSources: commits, and tags that read like versions, stay the same. Branches
// do not, whatever version they are named by.
func TestPinnedSources(t *testing.T) {
	t.Parallel()
	const commit = "0123456789012345678901234567890123456789"
	for call, pinned := range map[string]bool{
		`source = "acme/net/aws"` + "\n" + `version = "1.2.3"`:         true,
		`source = "acme/net/aws"` + "\n" + `version = "= v1.2.3-rc.1"`: true,
		`source = "acme/net/aws"` + "\n" + `version = "~> 1.2.3"`:      false,
		`source = "acme/net/aws"` + "\n" + `version = "1.2.3, < 2"`:    false,
		`source = "acme/net/aws"`:                                      false,
		`source = "git::https://x.test/m.git"`:                         false,
		`source = "git::https://x.test/m.git?ref=main"`:                false,
		`source = "git::https://x.test/m.git?ref=` + commit + `"`:      true,
		`source = "git::https://x.test/m.git?depth=1&ref=v1.2.3"`:      true,
		`source = "git::https://x.test/m.git?ref=1.2.3-rc.1&depth=1"`:  true,
		`source = "git::https://x.test/m.git?ref=v1.2.3%2Bbuild.7"`:    true,
		`source = "git::https://x.test/m.git?ref=refs/tags/v1.2.3"`:    true,
		`source = "git::https://x.test/m.git?ref=vpc/v1.2.3"`:          true,
		`source = "git::https://x.test/m.git?ref=vpc%2Fv1.2.3"`:        true,
		`source = "git::https://x.test/m.git?ref=vpc-v1.2.3"`:          true,
		`source = "git::https://x.test/m.git?ref=v1.2"`:                false,
		`source = "git::https://x.test/m.git?ref=v1.2.3/fix"`:          false,
		`source = "git::https://x.test/m.git?ref=release-1.2.0"`:       false,
		`source = "git::https://x.test/m.git?ref=release/v1.2.0"`:      false,
		`source = "git::https://x.test/m.git?ref=hotfix/1.2.3-x"`:      false,
		`source = "git::https://x.test/m.git?ref=vpc/release-1.2.0"`:   false,
		`source = "git::https://x.test/m.git?ref=refs/heads/v1.2.0"`:   false,
	} {
		dir := moduleFiles(t, map[string]string{"main.tf": "module \"m\" {\n" + call + "\n}\n"})
		if got := !modulecode.Read(t.Context(), dir, dir, "").Unpinned; got != pinned {
			t.Errorf("%s: pinned is %v, want %v", call, got, pinned)
		}
	}
}

// TestCallsOfFetchedModules: what a fetched module calls can move as well, in whatever
// folder and form its code is.
func TestCallsOfFetchedModules(t *testing.T) {
	t.Parallel()
	list := func(dirs ...string) string {
		text := `{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"own","Source":"./own","Dir":"own"}`
		for i, dir := range dirs {
			text += fmt.Sprintf(`,{"Key":"m%d","Source":"x","Dir":%q}`, i, dir)
		}
		return text + "]}"
	}
	const moving = "module \"n\" {\n  source = \"acme/net/aws\"\n  version = \"~> 1.2\"\n}\n"
	const pinned = "module \"n\" {\n  source = \"acme/net/aws\"\n  version = \"1.2.3\"\n}\nmodule \"l\" { source = \"./sub\" }\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"a range": {map[string]string{"modules.json": list(".terraform/modules/m"), "m/main.tf": moving}, true},
		"exact":   {map[string]string{"modules.json": list(".terraform/modules/m"), "m/main.tf": pinned}, false},
		"in a folder of it": {map[string]string{
			"modules.json": list(".terraform/modules/m", ".terraform/modules/m/sub"), "m/main.tf": pinned, "m/sub/main.tf": moving,
		}, true},
		"in a folder that nothing calls": {map[string]string{
			"modules.json": list(".terraform/modules/m"), "m/main.tf": pinned, "m/examples/main.tf": moving,
		}, false},
		"in JSON":           {map[string]string{"modules.json": list(".terraform/modules/m"), "m/main.tf.json": `{"module":{"n":{"source":"git::https://x.test/n.git"}}}`}, true},
		"of another engine": {map[string]string{"modules.json": list(".terraform/modules/m"), "m/main.tofu": moving}, false},
		"a path of a variable": {map[string]string{
			"modules.json": list(".terraform/modules/m"), "m/main.tf": "module \"n\" { source = \"./${var.kind}\" }\n",
		}, true},
		"only overridden": {map[string]string{
			"modules.json": list(".terraform/modules/m"), "m/main.tf": pinned, "m/main_override.tf": "module \"n\" { cidr = \"x\" }\n",
		}, false},
		"not parsed":     {map[string]string{"modules.json": list(".terraform/modules/m"), "m/main.tf": "module {"}, true},
		"not there":      {map[string]string{"modules.json": list(".terraform/modules/m")}, true},
		"without a list": {map[string]string{"m/main.tf": pinned}, true},
	} {
		if got := modulecode.CallsUnpinned(moduleFiles(t, c.files), modulecode.Terraform); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// moduleFiles is a folder with these files.
func moduleFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
