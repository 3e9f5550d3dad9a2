package terragrunt_test

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/terragrunt"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// TestEnvironment: what others set for Terragrunt leads it nowhere, and it sees no state.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"PATH": "/bin", "TG_SOURCE": "elsewhere", "TERRAGRUNT_CONFIG": "x", "TF_HTTP_PASSWORD": "secret", "TF_VAR_size": "3",
	}
	terragrunt.Command{Program: "/bin/terragrunt", Unit: "/work/bundle/live", Downloads: "/work/terragrunt"}.Environment(env)
	want := map[string]string{
		"PATH": "/bin", "TF_VAR_size": "3", "TG_WORKING_DIR": "/work/bundle/live", "TG_DOWNLOAD_DIR": "/work/terragrunt",
		"TG_NON_INTERACTIVE": "true", "TG_NO_COLOR": "true", "TG_NO_TIPS": "true", "TG_LOG_FORMAT": "key-value", "TG_NO_AUTO_PROVIDER_CACHE_DIR": "true",
	}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// TestModule: a root module is looked for where Terragrunt was told to make it, and nowhere
// else.
func TestModule(t *testing.T) {
	t.Parallel()
	c := terragrunt.Command{Downloads: "/work/terragrunt"}
	for answer, want := range map[string][2]string{
		`{"working_dir": "/work/terragrunt/a/b/modules/app"}`: {"a/b", "modules/app"},
		`{"working_dir": "/work/terragrunt/a/b"}`:             {"a/b", ""},
	} {
		made, root, err := c.Module([]byte(answer))
		if got := [2]string{made, root}; err != nil || got != want {
			t.Errorf("%s: got %q, %v", answer, got, err)
		}
	}
	for _, answer := range []string{
		"", `{}`, `{"working_dir": "/work/bundle/live"}`, `{"working_dir": "/work/terragrunt/a"}`, `{"working_dir": "/work/terragrunt/../bundle/a/b"}`,
	} {
		if made, root, err := c.Module([]byte(answer)); err == nil {
			t.Errorf("%s: got %q, %q", answer, made, root)
		}
	}
}

// TestReadRendered: inputs are as Terragrunt gives them to engines: texts as they are, all else
// as expressions in which nothing is a template.
func TestReadRendered(t *testing.T) {
	t.Parallel()
	got, err := terragrunt.ReadRendered([]byte(`{
  "inputs": {"text": "${a}", "large": 12345678901234567890, "on": true, "none": null, "list": ["${a}", "%{b}", {"k": "v"}]},
  "remote_state": {"backend": "s3", "config": {"bucket": "b"}}, "terraform_version_constraint": ">= 1.5", "locals": {"x": 1}
}`))
	want := terragrunt.Rendered{
		Inputs: map[string]string{
			"text": "${a}", "large": "12345678901234567890", "on": "true", "list": `["$${a}","%%{b}",{"k":"v"}]`,
		},
		Nulls: []string{"none"}, Backend: "s3", Engine: ">= 1.5",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if nulls := string(got.NullValues()); nulls != `{"none":null}` {
		t.Errorf("nulls: %s", nulls)
	}
	if got, err := terragrunt.ReadRendered([]byte(`{"remote_state": null}`)); err != nil || got.Backend != "" || got.NullValues() != nil {
		t.Errorf("nothing: %+v, %v", got, err)
	}
	deep := bytes.Repeat([]byte("["), 200)
	if _, err := terragrunt.ReadRendered([]byte(`{"inputs": {"deep": ` + string(deep) + string(bytes.Repeat([]byte("]"), 200)) + `}}`)); err == nil {
		t.Error("an input that is nested too deeply was read")
	}
}

// packed writes a bundle of a folder, and unpacks it.
func packed(t *testing.T, dir string, limit int64) (map[string]string, holdfast.Digest, error) {
	t.Helper()
	var bundle bytes.Buffer
	digest, err := terragrunt.Pack{
		Dir: dir, Root: "app", Limit: limit, Files: map[string][]byte{"added.json": []byte("{}")},
		Open: func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, name)) },
	}.Write(t.Context(), &bundle)
	if err != nil {
		return nil, "", err
	}
	to, files := t.TempDir(), map[string]string{}
	if err := workspace.Unpack(t.Context(), &bundle, to, limit); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(to, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := os.ReadFile(name)
			rel, _ := filepath.Rel(to, name)
			files[rel] = string(data)
		}
		return err
	})
	return files, digest, err
}

// TestPack: a bundle has what was copied and made, without what Terragrunt and Git keep for
// themselves; the same content has the same digest.
func TestPack(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"app/main.tf": "x", "app/.terraform.lock.hcl": "lock", "part/main.tf": "y", ".terragrunt-source-version": "1",
		"app/.terragrunt-module-manifest": "2", "app/.git/HEAD": "ref", "app/.terragrunt-cache/a": "z",
	}
	made := func(change map[string]string) string {
		dir := t.TempDir()
		all := maps.Clone(files)
		maps.Copy(all, change)
		for name, text := range all {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	got, digest, err := packed(t, made(nil), 1<<20)
	want := map[string]string{"app/main.tf": "x", "app/.terraform.lock.hcl": "lock", "part/main.tf": "y", "app/added.json": "{}"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, again, _ := packed(t, made(map[string]string{".terragrunt-source-version": "9"}), 1<<20); again != digest {
		t.Error("the same content has another digest")
	}
	if _, other, _ := packed(t, made(map[string]string{"part/main.tf": "w"}), 1<<20); other == digest {
		t.Error("other content has the same digest")
	}
	if _, _, err := packed(t, made(nil), 3); err == nil {
		t.Error("a bundle is larger than it may be")
	}
	odd := made(nil)
	if err := os.Symlink("/etc/passwd", filepath.Join(odd, "app", "link")); err != nil {
		t.Fatal(err)
	}
	var bundle bytes.Buffer
	if _, err := (terragrunt.Pack{Dir: odd, Root: "app", Limit: 1 << 20, Open: func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(odd, name)) }}).
		Write(t.Context(), &bundle); err != nil {
		t.Fatal(err)
	}
	if err := workspace.Unpack(t.Context(), &bundle, t.TempDir(), 1<<20); err == nil {
		t.Error("a link that leads out of the bundle was unpacked")
	}
}
