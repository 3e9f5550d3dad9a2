package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// What a cluster consists of is files, which the real provider hashicorp/local
// keeps: whoever edits or deletes one changes the world behind Holdfast's back.

// newFleet is newWorld with providers.
func newFleet(t testing.TB, more settings) *world {
	t.Helper()
	w := newWorld(t, more)
	w.useProviders()
	return w
}

// useProviders lets the engine find the providers of the tests. Without them a
// test is skipped on a laptop and fails in CI.
func (w *world) useProviders() {
	w.t.Helper()
	config, err := providerMirror()
	switch {
	case err != nil && os.Getenv("CI") == "true":
		w.t.Fatal(err)
	case err != nil:
		w.t.Skipf("no providers: %v", err)
	}
	w.set(settings{"engines.cliConfigFile": config})
}

// providerMirror lays out the providers as the engine looks for them, once for all
// tests, and returns the engine's configuration. The binaries are in
// HOLDFAST_TEST_PROVIDERS, otherwise where `go install` puts them; they are copied, as
// the agent is another user and may not be able to get there.
var providerMirror = sync.OnceValues(func() (string, error) {
	from := os.Getenv("HOLDFAST_TEST_PROVIDERS")
	if from == "" {
		out, err := exec.Command("go", "env", "GOPATH").Output()
		if err != nil {
			return "", err
		}
		from = filepath.Join(strings.TrimSpace(string(out)), "bin")
	}
	mirror := filepath.Join(filepath.Dir(binary), "mirror")
	for name, version := range map[string]string{"hashicorp/local": "2.5.0", "holdfast-dev/cloud": "1.0.0"} {
		command := "terraform-provider-" + filepath.Base(name)
		data, err := os.ReadFile(filepath.Join(from, command))
		for _, registry := range []string{"registry.terraform.io", "registry.opentofu.org"} {
			dir := filepath.Join(mirror, registry, filepath.FromSlash(name), version, runtime.GOOS+"_"+runtime.GOARCH)
			if err == nil {
				err = os.MkdirAll(dir, 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, command+"_v"+version), data, 0o755)
			}
		}
		if err != nil {
			return "", err
		}
	}
	config := filepath.Join(mirror, "engine.rc")
	text := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror { path = %q }\n}\n", mirror)
	return config, os.WriteFile(config, []byte(text), 0o644)
})

// fileModule is a root module that keeps files in a cluster's folder of the
// world, with whatever code is given besides.
func (w *world) fileModule(name, code string) files {
	w.t.Helper()
	return files{"infra/" + name + "/main.tf": "# " + name + `
terraform {
  required_providers {
    local = { source = "hashicorp/local" }
  }
}

variable "files" {
  type = map(string)
}

resource "local_file" "node" {
  for_each = var.files
  filename = "` + w.thing(name, "") + `/${each.key}"
  content  = each.value
}
` + code}
}

// thing is the path of a cluster's file in the world outside.
func (w *world) thing(cluster, file string) string {
	w.t.Helper()
	dir := w.path("outside", cluster)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // the agent is another user
		w.t.Fatal(err)
	}
	return filepath.Join(dir, file)
}

// change writes a cluster's file behind Holdfast's back.
func (w *world) change(cluster, file, content string) {
	w.t.Helper()
	if err := os.WriteFile(w.thing(cluster, file), []byte(content), 0o644); err != nil { //nolint:gosec // others read it
		w.t.Fatal(err)
	}
}

// replace is change for a file that is there, and is another user's.
func (w *world) replace(cluster, file, content string) {
	w.t.Helper()
	w.take(cluster, file)
	w.change(cluster, file, content)
}

// take deletes a cluster's file behind Holdfast's back.
func (w *world) take(cluster, file string) {
	w.t.Helper()
	if err := os.Remove(w.thing(cluster, file)); err != nil {
		w.t.Fatal(err)
	}
}

// things are a cluster's files outside, as "a=one b=two".
func (w *world) things(cluster string) string {
	w.t.Helper()
	entries, err := os.ReadDir(w.thing(cluster, ""))
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		data, err := os.ReadFile(w.thing(cluster, e.Name()))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
		out = append(out, e.Name()+"="+string(data))
	}
	return strings.Join(out, " ")
}

// keeper is a cluster that keeps files: "a=one b=two".
func (w *world) keeper(name, contents string, spec ...string) files {
	w.t.Helper()
	return join(keeps(name, contents, spec...), w.fileModule(name, ""))
}

// keeps is the document alone.
func keeps(name, contents string, spec ...string) files {
	kept := make(map[string]string)
	for _, pair := range strings.Fields(contents) {
		file, content, _ := strings.Cut(pair, "=")
		kept[file] = content
	}
	text, err := json.Marshal(map[string]any{"files": kept})
	if err != nil {
		panic(err) // strings always marshal
	}
	return document(name, append(spec, "variables: "+string(text))...)
}

// gone are files that a pull request takes away.
func gone(names ...string) files {
	out := make(files)
	for _, name := range names {
		out["clusters/"+name+".yaml"] = deleted
	}
	return out
}

// bring brings files to the branch by a pull request and waits until what they
// say is applied.
func (r *repo) bring(f files) *pull {
	r.w.t.Helper()
	p := r.open(f)
	p.untilPlanned()
	p.merge()
	p.untilApplied()
	return p
}

// do runs a command of holdfast that has to succeed and to say all of that.
func (w *world) do(command string, says ...string) string {
	w.t.Helper()
	out, stderr, code := w.cli(strings.Fields(command)...)
	if code != 0 {
		w.t.Fatalf("holdfast %s: code %d: %s%s", command, code, out, stderr)
	}
	for _, words := range says {
		if !strings.Contains(out, words) {
			w.t.Errorf("holdfast %s does not say %q:\n%s", command, words, out)
		}
	}
	return out
}

// line is the line of a table that begins with a name, its columns parted by two
// spaces.
func line(table, name string) string {
	for l := range strings.Lines(table) {
		if fields := strings.Fields(l); len(fields) > 0 && fields[0] == name {
			return strings.Join(fields, " ")
		}
	}
	return ""
}

// issue returns the issue of ours whose body contains the marker of a cluster's
// drift, or of the repository's summary; a second one is an error.
func (r *repo) issue(marker string) githubserver.Issue {
	r.w.t.Helper()
	var found []githubserver.Issue
	for _, issue := range r.hub.Issues() {
		if strings.HasPrefix(issue.Body, "<!-- holdfast:"+marker+" -->") {
			found = append(found, issue)
		}
	}
	if len(found) > 1 {
		r.w.t.Fatalf("there are %d issues for %q, want one", len(found), marker)
	} else if len(found) == 0 {
		return githubserver.Issue{}
	}
	return found[0]
}

// untilIssue waits until the issue is open, or closed, and says all of that.
func (r *repo) untilIssue(marker string, closed bool, says ...string) githubserver.Issue {
	r.w.t.Helper()
	var issue githubserver.Issue
	r.w.until(fmt.Sprintf("the issue %q (closed: %t) says %q", marker, closed, says), func() (bool, string) {
		issue = r.issue(marker)
		missing := slices.ContainsFunc(says, func(words string) bool {
			return !strings.Contains(issue.Title+"\n"+issue.Body, words)
		})
		return issue.Number != 0 && issue.Closed == closed && !missing,
			fmt.Sprintf("%v\n%s\n%s", issue.Actions(), issue.Title, issue.Body)
	})
	return issue
}

// untilPhase waits until a cluster is in a phase.
func (w *world) untilPhase(cluster string, phase holdfast.Phase) v1.Cluster {
	w.t.Helper()
	var rec v1.Cluster
	w.until(fmt.Sprintf("%s is %s", cluster, phase), func() (bool, string) {
		rec = w.record(cluster)
		return rec.Phase == phase, fmt.Sprintf("%s, waits: %q %q", rec.Phase, rec.Waiting, rec.WaitingDetail)
	})
	return rec
}

// untilLate is until for what the clock brings about once a minute.
func (w *world) untilLate(what string, ok func() (done bool, state string)) {
	w.t.Helper()
	for end := time.Now().Add(70 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if done, _ := ok(); done {
			return
		}
	}
	w.until(what, ok)
}

// addLocalRepo is addRepo for a repository that no code host has: it is read by
// its path.
func (w *world) addLocalRepo(name string) *repo {
	w.t.Helper()
	r := w.addRepo("nobody/"+name, nil) // who calls GitHub for it is seen there
	r.config = map[string]any{"name": name, "url": r.git.Path, "clusters": []string{"clusters/**/*.yaml"}}
	return r
}

func itoa(n int) string { return strconv.Itoa(n) }
