package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/template"
	"github.com/holdfast-dev/holdfast/templates/authoring"
)

// newTemplate begins a template in its own folder and returns that.
func newTemplate(t *testing.T, providers ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "web")
	args := []string{"template", "new", "web", "--dir", dir}
	if len(providers) > 0 {
		args = append(args, "--provider", strings.Join(providers, ","))
	}
	if got := holdfastCLI(t, nil, args...); got.code != 0 {
		t.Fatalf("template new: %+v", got)
	}
	return dir
}

// edit replaces text in a file of a template.
func edit(t *testing.T, dir, name, old, new string) {
	t.Helper()
	file := filepath.Join(dir, name)
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), old) {
		t.Fatalf("%s has no %q: %v", name, old, err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// want stops the test unless a command ended so, with all of these in what it
// printed.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	all := r.out + r.err
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("no %q in\n%s", text, all)
		}
	}
	if r.code != code {
		t.Fatalf("exit code %d, want %d:\n%s", r.code, code, all)
	}
}

func TestTemplateNew(t *testing.T) {
	t.Parallel()
	dir := newTemplate(t, "aws", "local")
	holdfastCLI(t, nil, "template", "validate", dir, "--engine", "off").want(t, 0, "web 0.1.0 (.): valid, with 2 examples and 6 test cases")
	before, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "CHANGELOG.md")); err != nil {
		t.Fatal(err)
	}
	holdfastCLI(t, nil, "template", "new", "other", "--dir", dir).want(t, 1, "README.md already exists", "nothing was written")
	after, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if _, gone := os.Stat(filepath.Join(dir, "CHANGELOG.md")); err != nil || string(before) != string(after) || gone == nil {
		t.Error("a command that was refused has written something")
	}
	holdfastCLI(t, nil, "template", "new", "../x").want(t, 2, `"../x" cannot be the name of a template`)
}

func TestTemplateValidate(t *testing.T) {
	t.Parallel()
	dir := newTemplate(t)
	holdfastCLI(t, nil, "template", "validate", filepath.Join(dir, "template.yaml"), "--engine", "off").want(t, 0, "valid")
	holdfastCLI(t, nil, "template", "validate", t.TempDir()).want(t, 1, "there is no template below", "holdfast template new NAME")
	holdfastCLI(t, nil, "template").want(t, 2, "holdfast template takes a command")
	holdfastCLI(t, nil, "template", "validat").want(t, 2, `holdfast template does not know "validat"`)
	holdfastCLI(t, nil, "template", "validate", dir, "--engine", "perhaps").want(t, 2, `--engine "perhaps": want auto, on or off`)
	holdfastCLI(t, nil, "template", "validate", "/nowhere/at/all").want(t, 1, "/nowhere/at/all is not a folder")
	edit(t, dir, "template.yaml", "means: endpoint", "means: endpiont")
	edit(t, dir, "tests/basic.yaml", "plan: {create: 5}", "plan: {created: 5}")
	got := holdfastCLI(t, nil, "template", "validate", dir)
	got.want(t, 1, "template.yaml:83:63:", `did you mean "endpoint"?`, "tests/basic.yaml:9:12:", `did you mean "create"?`, "2 faults in 1 template")
	for _, command := range []string{"render", "test", "docs"} {
		holdfastCLI(t, nil, "template", command, dir).want(t, 1, "2 faults", "holdfast template validate checks all of them")
	}
	var report template.Report
	got = holdfastCLI(t, nil, "template", "validate", dir, "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || len(report.Faults) != 2 || len(report.Templates) != 1 {
		t.Errorf("%v in %s", err, got.out)
	}
}

// cacheDir returns a folder for prepared modules, whose folders nobody can write to.
func cacheDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
	})
	return dir
}

// The engine's word about modules is told as faults, and that it cannot be asked
// as a note. Examples and cases are looked at at the same time.
//
//holdfast:race
func TestTemplateEngine(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts an engine")
	}
	config := filepath.Join(t.TempDir(), "cli.tfrc")
	mirror := "provider_installation {\n  filesystem_mirror {\n    path = \"" + t.TempDir() + "\"\n  }\n}\n"
	if err := os.WriteFile(config, []byte(mirror), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) result {
		env := map[string]string{"XDG_CACHE_HOME": cacheDir(t)}
		return holdfastCLI(t, env, append([]string{"template"}, append(args, "--cli-config", config, "--download=false")...)...)
	}
	if _, err := exec.LookPath("terraform"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("terraform is not on PATH")
		}
		t.Skip("terraform is not on PATH: nothing is planned")
	}
	dir := newTemplate(t)
	command("validate", dir).want(t, 0, "the engine finds 1 of 1 example valid")
	command("test", dir).want(t, 0, "4 cases: 4 ok, 0 failed")
	edit(t, dir, "tests/basic.yaml", "plan: {create: 5}", "plan: {create: 6}")
	edit(t, dir, "modules/local/network/main.tf", `output "network_id"`, "resource \"acme_thing\" \"x\" {}\n\noutput \"network_id\"")
	command("validate", dir).want(t, 0, "engine check skipped", "hashicorp/acme")
	command("validate", dir, "--engine", "on").want(t, 1, "1 fault in 1 template", "hashicorp/acme")
	command("test", dir).want(t, 0, "2 cases: no plan was made", "4 cases: 4 ok")
	command("test", dir, "--plan", "on").want(t, 3, "FAIL  local, everything by default", "2 cases of 4 failed")
	edit(t, dir, "modules/local/network/main.tf", `resource "acme_thing" "x" {}`, `resource "terraform_data" "x" { inptu = 1 }`)
	command("validate", dir).want(t, 1, "the engine refuses the root module of local-example", "\nmodules/local/network/main.tf:", `Unsupported argument: An argument named "inptu" is not expected here`)
	command("test", dir).want(t, 3, "inptu")
}

func TestTemplateSecretsArePlannedWithout(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts an engine")
	}
	if _, err := exec.LookPath("terraform"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("terraform is not on PATH: nothing is planned")
	}
	config := filepath.Join(t.TempDir(), "cli.tfrc")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := newTemplate(t)
	edit(t, dir, "template.yaml", "      # db_password: {type: string, writeOnly: true}", "      db_password: {type: string, writeOnly: true}")
	edit(t, dir, "tests/basic.yaml", "cluster: {provider: local}", "cluster: {provider: local, variables: {db_password: {secret: {store: vault, key: db}}}}")
	env := map[string]string{"XDG_CACHE_HOME": cacheDir(t)}
	holdfastCLI(t, env, "template", "test", dir, "--plan", "on", "--cli-config", config).want(t, 0, "4 cases: 4 ok, 0 failed")
}

func TestTemplateRender(t *testing.T) {
	t.Parallel()
	dir := newTemplate(t, "aws", "local")
	holdfastCLI(t, nil, "template", "render", dir).want(t, 0, "# ==== examples/aws-basic.yaml, cluster aws-example", "# ---- main.tf", `module "monitoring"`)
	got := holdfastCLI(t, nil, "template", "render", dir, "--example", "local-basic")
	if got.want(t, 0, "local-example"); strings.Contains(got.out, "aws-example") {
		t.Error("another example was rendered")
	}
	holdfastCLI(t, nil, "template", "render", dir, "--example", "gcp").want(t, 1, `there is no example "gcp"`, "there are aws-basic.yaml, local-basic.yaml")
	out := t.TempDir()
	holdfastCLI(t, nil, "template", "render", dir, "--out", out).want(t, 0, "the root module is in")
	for _, name := range []string{"aws-example/root/main.tf", "local-example/template/modules/local/network/main.tf"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	cluster := filepath.Join(t.TempDir(), "prod.yaml")
	text := "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: prod}\nspec: {project: p, environment: e, template: {name: web, version: 9.9.9}, provider: local, variables: {node_count: 7}}\n"
	if err := os.WriteFile(cluster, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	holdfastCLI(t, nil, "template", "render", dir, "-f", cluster).want(t, 0, "cluster prod", `"node_count": 7`)
	edit(t, filepath.Dir(cluster), "prod.yaml", "node_count: 7", "node_count: 700")
	holdfastCLI(t, nil, "template", "render", dir, "-f", cluster).want(t, 1, "prod.yaml:4:", "at most 100")
}

func TestTemplateTest(t *testing.T) {
	t.Parallel()
	dir := newTemplate(t)
	edit(t, dir, "tests/basic.yaml", "# golden: golden/local-basic", "golden: golden/local-basic")
	holdfastCLI(t, nil, "template", "test", dir, "--plan", "off").want(t, 3,
		"FAIL  local, everything by default", "tests/golden/local-basic/main.tf is not there: --update writes it", "2 cases: engine check skipped", "1 case of 4 failed")
	holdfastCLI(t, nil, "template", "test", dir, "--plan", "off", "--update").want(t, 0, "wrote tests/golden/local-basic/main.tf", "4 cases: 4 ok")
	got := holdfastCLI(t, nil, "template", "test", dir, "--plan", "off", "-o", "json")
	var outcomes []authoring.Outcome
	if err := json.Unmarshal([]byte(got.out), &outcomes); err != nil || len(outcomes) != 4 || got.code != 0 {
		t.Errorf("%v in %+v", err, got)
	}
	edit(t, dir, "template.yaml", "default: 3", "default: 4")
	holdfastCLI(t, nil, "template", "test", dir, "--plan", "off").want(t, 3, "-  default     = 3", "+  default     = 4")
	holdfastCLI(t, nil, "template", "test", dir, "--plan", "off", "--run", "high").want(t, 0, "1 case: 1 ok")
	holdfastCLI(t, nil, "template", "test", dir, "--plan", "off", "--run", "nothing").want(t, 1, "there are no test cases", "--run matches none")
	holdfastCLI(t, nil, "template", "test", dir, "--run", "(").want(t, 2, "is not a regular expression")
}

// A golden folder that is a link does not lead out of the work tree.
func TestTemplateTestStaysInside(t *testing.T) {
	t.Parallel()
	dir := newTemplate(t)
	outside := t.TempDir()
	edit(t, dir, "tests/basic.yaml", "# golden: golden/local-basic", "golden: golden/x")
	if err := os.Symlink(outside, filepath.Join(dir, "tests", "golden")); err != nil {
		t.Fatal(err)
	}
	if got := holdfastCLI(t, nil, "template", "test", dir, "--plan", "off", "--update"); got.code == 0 {
		t.Errorf("a link was followed: %s", got.out)
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) > 0 {
		t.Errorf("%d files were written outside, %v", len(list), err)
	}
}

func TestTemplateDocsAndSchema(t *testing.T) {
	t.Parallel()
	dir := newTemplate(t)
	holdfastCLI(t, nil, "template", "docs", dir).want(t, 0, "# Template web 0.1.0", "| `node_count` | `integer` | `3` |")
	page := filepath.Join(t.TempDir(), "page.md")
	holdfastCLI(t, nil, "template", "docs", dir, "--out", page).want(t, 0, "wrote "+page)
	file := filepath.Join(t.TempDir(), "s.json")
	holdfastCLI(t, nil, "schema", "--template", dir, "--out", file).want(t, 0, "# yaml-language-server: $schema="+file)
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), `"web.local"`) || !json.Valid(data) {
		t.Errorf("%v in %s", err, data)
	}
	holdfastCLI(t, nil, "schema", "--template", dir, "--template", newTemplate(t)).want(t, 1, "template web is defined twice")
	holdfastCLI(t, nil, "schema").want(t, 0, `"A cluster of Holdfast"`)
}

// templateHistory is a repository with two releases of a template, and a third
// that is being written.
func templateHistory(t *testing.T) string {
	t.Helper()
	dir := newTemplate(t, "aws", "local")
	git := func(args ...string) string {
		t.Helper()
		command := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	git("tag", "web/v0.1.0")
	edit(t, dir, "template.yaml", "version: 0.1.0", "version: 0.2.0")
	edit(t, dir, "template.yaml", "maximum: 100", "maximum: 2")
	edit(t, dir, "template.yaml", "default: 3", "default: 2")
	git("commit", "-q", "-a", "-m", "two")
	git("tag", "v0.2.0")
	edit(t, dir, "modules/monitoring/main.tf", "input = var.endpoint", "input = [var.endpoint]")
	return dir
}

func TestTemplateDiff(t *testing.T) {
	t.Parallel()
	dir := templateHistory(t)
	diff := func(args ...string) result {
		return holdfastCLI(t, nil, append([]string{"template", "diff", "--repo", dir}, args...)...)
	}
	diff("0.1.0", "0.2.0").want(t, 0, "web: 0.1.0 → 0.2.0", "Breaking: only a new major version may bring it",
		"variable node_count  allows at most 2, not 100", "variable node_count  now defaults to 2, not 3",
		"Refused: aws-example", "examples/aws-basic.yaml:12:17: variable node_count must be at most 2, not 3")
	diff("v0.2.0", ".").want(t, 0, "Nothing that a document or an output could notice has changed.")
	diff("main", "web/v0.1.0").want(t, 0, "variable node_count  allows at most 100, not 2")
	diff("0.3.0", ".").want(t, 1, `"0.3.0" is not a version, tag, branch or commit of`, "there are 0.1.0, 0.2.0")
	diff("0.1.0", "0.1.0").want(t, 2, "are the same version")
	diff("0.2.0", ".", "--name", "other").want(t, 1, "there is no template other at 0.2.0")
	diff("mian", ".").want(t, 1, "did you mean main?")
	got := diff("0.1.0", "0.2.0", "-o", "json")
	var out template.Diff
	if err := json.Unmarshal([]byte(got.out), &out); err != nil || len(out.Changes) != 2 || len(out.Refused) != 2 || !out.Changes[0].Breaking {
		t.Errorf("%v in %s", err, got.out)
	}
	holdfastCLI(t, nil, "template", "diff", "1.0.0", ".", "--repo", newTemplate(t)).want(t, 1, "is not in a Git repository")
}

// With --cluster it is the root module of that cluster that is compared, in what
// it changes and in what it does not.
func TestTemplateDiffOfCluster(t *testing.T) {
	t.Parallel()
	dir := templateHistory(t)
	fleet := t.TempDir()
	write := func(name, variables string) {
		text := "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {project: p, environment: e, template: {name: web, version: 0.1.0}, provider: local, variables: " + variables + "}\n"
		if err := os.WriteFile(filepath.Join(fleet, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("small", "{node_count: 1}")
	write("watched", "{node_count: 1, enable_monitoring: true}")
	diff := func(from, to, cluster string) result {
		return holdfastCLI(t, nil, "template", "diff", from, to, "--repo", dir, "--cluster", cluster, "-d", fleet)
	}
	diff("0.1.0", "0.2.0", "small").want(t, 0, "main.tf of small", "-  default     = 3\n  +  default     = 2")
	diff("0.2.0", ".", "small").want(t, 0, "Same root module: small")
	diff("0.2.0", ".", "watched").want(t, 0, "modules of watched", "modules/monitoring")
	diff("0.2.0", ".", "smal").want(t, 1, `there is no cluster "smal"`, "there are small, watched")
}

// TestTemplateTestFollowsNoLink: golden files are written where they are said to
// be, and nowhere else.
func TestTemplateTestFollowsNoLink(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"tests/golden", "tests/golden/local-basic", "tests/golden/local-basic/main.tf"} {
		dir := newTemplate(t)
		edit(t, dir, "tests/basic.yaml", "# golden: golden/local-basic", "golden: golden/local-basic")
		outside := filepath.Join(dir, "elsewhere")
		victim := filepath.Join(outside, "README")
		if err := os.MkdirAll(outside, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(victim, []byte("theirs"), 0o600); err != nil {
			t.Fatal(err)
		}
		target := outside
		if strings.HasSuffix(link, ".tf") {
			target = victim
		}
		at := filepath.Join(dir, link)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		way, err := filepath.Rel(filepath.Dir(at), target)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(way, at); err != nil {
			t.Fatal(err)
		}
		if got := holdfastCLI(t, nil, "template", "test", dir, "--plan", "off", "--update"); got.code == 0 {
			t.Errorf("%s: %+v", link, got)
		}
		if data, err := os.ReadFile(victim); err != nil || string(data) != "theirs" {
			t.Errorf("%s: the file is %q: %v", link, data, err)
		}
		if list, err := os.ReadDir(outside); err != nil || len(list) != 1 {
			t.Errorf("%s: %v %v", link, list, err)
		}
	}
}
