package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Code in a plan tries to read what is the server's: its keys, its tokens, its
// database, its environment. It executes as another user, and cannot.
func TestCodeInAPlanCannotReadTheServersKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	needRoot(w)
	w.start()

	// While it is planned, by a function.
	var code strings.Builder
	targets := []string{"data/key", "data/admin.token", "data/db/holdfast.db", "forge-token", "webhook-secret", "holdfast.yaml"}
	for i, target := range targets {
		if _, err := os.Stat(w.path(target)); err != nil {
			t.Fatalf("there is nothing to steal: %v", err)
		}
		fmt.Fprintf(&code, "resource \"terraform_data\" \"found-%d\" { input = try(filebase64(%q), \"denied\") }\n", i, w.path(target))
	}
	plan := w.fleet().open(join(document("thief"), moduleFile("thief", code.String())))

	// While it is applied, by a script.
	var script strings.Builder
	script.WriteString("umask 0; out=" + w.witness("loot") + "; ")
	for _, target := range append(targets, fmt.Sprintf("../../proc/%d/environ", w.server.Process.Pid)) {
		fmt.Fprintf(&script, "cat %[1]s >>$out 2>/dev/null && echo stolen %[1]s >>$out; ", w.path(target))
	}
	script.WriteString("id -u >>$out; env >" + w.witness("env"))
	apply := w.fleet().open(worker("robber", "1", script.String()))

	plan.untilPlanned()
	if body := plan.comment(); strings.Count(body, "denied") < len(targets) {
		t.Errorf("functions read the server's files:\n%s", body)
	}
	apply.untilPlanned("2 to create")
	apply.merge()
	apply.untilApplied("2 created")
	if loot := w.said("loot"); loot == "" || strings.Contains(loot, "stolen") || strings.HasSuffix(loot, " 0") || loot == "0" {
		t.Errorf("the script came home with %q, want no more than another user's id", loot)
	}
	allowed := "PATH HOME TMPDIR LANG PWD OLDPWD SHLVL _ CHECKPOINT_DISABLE GOGC GOMEMLIMIT " +
		// Those of the network are the server's, which engines are to reach hosts with.
		"HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy SSL_CERT_FILE SSL_CERT_DIR"
	data, err := os.ReadFile(w.witness("env"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		name, _, _ := strings.Cut(line, "=")
		if !strings.Contains(" "+allowed+" ", " "+name+" ") && !strings.HasPrefix(name, "TF_") &&
			!strings.HasPrefix(name, "GIT_CONFIG_") { // whose folders Git may read
			t.Errorf("the script finds %s in its environment", name)
		}
	}
}

// 200 secrets stand wherever an engine can get at them: in the environment, in
// sensitive values, under names that tell. They are printed wherever it can
// print. None comes out: not in logs, comments, statuses, answers of the API,
// nor in any file of the server or the agent.
func TestNoSecretLeaves(t *testing.T) {
	t.Parallel()
	const each = 50
	w := newWorld(t, nil)
	secrets := make(map[string]string) // value → where it was planted
	plant := func(where string, i int) string {
		sum := sha256.Sum256([]byte(fmt.Sprintf("%s-%d", where, i)))
		value := hex.EncodeToString(sum[:])
		secrets[value] = fmt.Sprintf("%s %d", where, i)
		return value
	}
	env, variables := make(map[string]any), make(map[string]string)
	for i := range each {
		file := fmt.Sprintf("secrets/%d", i)
		w.write(file, plant("environment", i)+"\n", 0o600)
		env[fmt.Sprintf("SECRET_%d", i)] = map[string]any{"file": file}
		variables[fmt.Sprintf("v%d", i)] = plant("variable", i)
		plant("sensitive", i) // the module itself makes these
		plant("password", i)
	}
	w.set(settings{"credentials": []any{map[string]any{"secrets": env}}, "telemetry.logLevel": "debug"})
	w.start()

	pr := w.fleet().open(leaky("alpha", variables))
	pr.untilPlanned("to create")
	pr.merge()
	pr.untilApplied("created")
	failing := w.fleet().open(join(leaky("beta", variables), files{"infra/beta/check.tf": `resource "terraform_data" "check" {
  lifecycle {
    precondition {
      condition     = false
      error_message = "what I know: ${join(", ", values(nonsensitive(local.variables)))}"
    }
  }
}
`}))
	w.fleet().untilStatus(failing.head, holdfast.ContextPlan, holdfast.StatusFailure)
	w.untilIdle()

	seen := w.everythingSaid()
	printed := seen["log "+w.newest("alpha", holdfast.RunApply).ID]
	for _, words := range []string{"SECRET_0=", "the value of v0 is"} {
		if !strings.Contains(printed, words) { // otherwise the test proves nothing
			t.Errorf("the apply did not print %q:\n%.4000s", words, printed)
		}
	}
	if code := w.stop(); code != 0 { // what is in memory goes to disk
		t.Errorf("the server ended with code %d", code)
	}
	for name, text := range w.everyFile() {
		seen["file "+name] = text
	}
	leaks := 0
	for place, text := range seen {
		for value, where := range secrets {
			if strings.Contains(text, value) {
				leaks++
				if leaks <= 20 {
					t.Errorf("%s has the secret %s", place, where)
				}
			}
		}
	}
	if leaks > 0 {
		t.Errorf("%d leaks in %d places looked at", leaks, len(seen))
	}
}

// leaky is a cluster that prints all that it knows.
func leaky(name string, variables map[string]string) files {
	code := fmt.Sprintf(`variable "secrets" {
  type      = map(string)
  sensitive = true
}

locals {
  variables = var.secrets
  sensitive = [for i in range(%[1]d) : sensitive(sha256("sensitive-${i}"))]
}

resource "terraform_data" "variables" {
  input = local.variables

  provisioner "local-exec" {
    command = "env | sort; env >&2; env | tr -d '\\n'"
  }
}

resource "terraform_data" "plain" {
  input = [for name, value in nonsensitive(local.variables) : "the value of ${name} is ${value}"]

  provisioner "local-exec" {
    command = "echo ${join(" ", self.input)}; exec >&2; echo '${join("", self.input)}'"
  }
}

resource "terraform_data" "sensitive" {
  input = local.sensitive
}

resource "terraform_data" "passwords" {
  count = %[1]d
  input = { password = sha256("password-${count.index}"), user = "u${count.index}" }
}

output "variables" {
  value     = local.variables
  sensitive = true
}

output "sensitive" {
  value     = local.sensitive
  sensitive = true
}

output "admin_password" {
  value = terraform_data.passwords[0].output.password
}
`, len(variables))
	data, err := json.Marshal(variables)
	if err != nil {
		panic(err) // strings always marshal
	}
	return join(document(name, "variables: {secrets: "+string(data)+"}"),
		files{"infra/" + name + "/main.tf": "# " + name + "\n" + code})
}

// everythingSaid is all that the server and the code host show to anybody, and
// what was logged.
func (w *world) everythingSaid() map[string]string {
	w.t.Helper()
	seen := map[string]string{"server's log": w.log.all(), "agents' logs": w.agentLog()}
	read := func(name, path string) {
		status, body := w.get(w.api + path)
		if status != 200 && status != 404 {
			w.t.Errorf("%s was answered with %d", path, status)
		}
		seen[name] = body
	}
	for _, path := range []string{"/metrics", "/api/v1/clusters", "/api/v1/runs", "/api/v1/pullrequests", "/api/v1/audit"} {
		read(path, path)
	}
	for _, name := range []string{"alpha", "beta"} {
		read("cluster "+name, "/api/v1/clusters/"+name)
		read("outputs of "+name, "/api/v1/clusters/"+name+"/outputs")
		for _, run := range w.runs(name) {
			read("run "+run.ID, "/api/v1/runs/"+run.ID)
			read("plan "+run.ID, "/api/v1/runs/"+run.ID+"/plan")
			read("attempts "+run.ID, "/api/v1/runs/"+run.ID+"/attempts")
			read("log "+run.ID, "/api/v1/runs/"+run.ID+"/log")
		}
	}
	for _, pr := range w.fleet().pulls {
		query := url.Values{"repo": {w.fleet().name}, "number": {fmt.Sprint(pr.number)}}
		read(fmt.Sprint("pull request ", pr.number), "/api/v1/pullrequests/get?"+query.Encode())
		for _, comment := range w.fleet().hub.Comments(pr.number) {
			seen[fmt.Sprint("comment ", comment.ID)] = comment.Body
		}
	}
	for _, sha := range w.fleet().hub.StatusRevisions() {
		seen["statuses of "+sha] = fmt.Sprintf("%+v", w.fleet().hub.Statuses(sha))
	}
	return seen
}

// everyFile are the files below the data folder.
func (w *world) everyFile() map[string]string {
	w.t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(w.path("data"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, w.dir)] = string(bytes.Clone(data))
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(found) < 10 {
		w.t.Fatalf("only %d files were found", len(found))
	}
	return found
}
