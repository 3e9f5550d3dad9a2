//go:build !race

package runner_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner"
)

// secretVariables is a root module whose secret variables go into a resource,
// into a provisioner that prints them, and into outputs with and without a mark.
const secretVariables = `
variable "db_password" {
  type      = string
  sensitive = true
}
variable "api_key" {
  type      = string
  sensitive = true
}
variable "signing_pem" {
  type      = string
  sensitive = true
}
resource "terraform_data" "db" {
  input            = { url = "postgres://app:${var.db_password}@db/app", pem = var.signing_pem }
  triggers_replace = [sha256(var.db_password)]
  provisioner "local-exec" { command = "echo made with ${nonsensitive(var.db_password)}, ${nonsensitive(base64encode(var.api_key))}" }
}
output "bare" { value = nonsensitive(var.api_key) }
output "marked" {
  value     = var.db_password
  sensitive = true
}
output "fixed" { value = "https://10.0.0.1" }
`

// secretLab runs secretVariables with one secret of each sort.
type secretLab struct {
	*lab
	dir    string // of the secret files
	script string // the store's command
	values map[string]string
}

func newSecretLab(t *testing.T) *secretLab {
	t.Helper()
	l := &secretLab{lab: newLab(t), dir: t.TempDir(), values: map[string]string{
		"db_password": `hunter2 "quoted" ${x} %{y}`, "api_key": "key-from-the-store-1",
		"signing_pem": "-----BEGIN KEY-----\nMIIEfirstline0000\nsecondline/+111111\n-----END KEY-----",
	}}
	l.script = filepath.Join(t.TempDir(), "vault")
	return l
}

func (l *secretLab) files(code string) map[string]string {
	return map[string]string{"main.tf": code, rootmodule.SecretFile: `{
		"db_password": {"env": "DB_PASSWORD"},
		"api_key": {"store": "vault", "key": "prod/api key"},
		"signing_pem": {"file": "` + filepath.Join(l.dir, "signing.pem") + `"}}`}
}

// give has an assignment bring what the references point to.
func (l *secretLab) give(a *protocol.Assignment) {
	writeFile(l.t, filepath.Join(l.dir, "signing.pem"), l.values["signing_pem"]+"\n", 0o600)
	writeFile(l.t, l.script, "#!/bin/sh\n[ \"$1$VAULT_TOKEN\" = 'get prod/api keyroot-token' ] && printf '%s\\n' '"+l.values["api_key"]+"'\n", 0o700)
	a.Env = map[string]string{"DB_PASSWORD": l.values["db_password"], "VAULT_TOKEN": "root-token"}
	a.Secrets = []string{"DB_PASSWORD", "VAULT_TOKEN"}
	a.SecretDirs, a.SecretStores = []string{l.dir}, map[string][]string{"vault": {l.script, "get {key}"}}
}

func (l *secretLab) secrets() []string { return slices.Collect(maps.Values(l.values)) }

// withOutputs are the sinks, and what is shown of outputs.
func (l *secretLab) withOutputs(id string) map[string]string {
	sinks := l.server.sinks(l.t, id)
	var outputs []holdfast.Output
	if l.artefact(id, protocol.ArtefactOutputs, &outputs) {
		for _, o := range outputs {
			if !o.Sensitive {
				sinks["output "+o.Name] = string(o.Value)
			}
		}
	}
	return sinks
}

// TestSecretsThatAreKnownLate: a provisioner prints what only the state, afterwards, calls
// sensitive. It has been streamed by then, as the provisioner waits for that, and is taken
// out of the log that is stored.
func TestSecretsThatAreKnownLate(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	files := map[string]string{"main.tf": `
resource "terraform_data" "token" { input = "made-${uuid()}" }
resource "terraform_data" "use" {
  provisioner "local-exec" {
    command = "echo it is ${terraform_data.token.output} && until [ -e WORLD/streamed ]; do sleep 0.1; done && echo and that is all"
  }
}
output "token" {
  value     = terraform_data.token.output
  sensitive = true
}
`}
	planned, _ := l.run("run-1", holdfast.RunPlan, files, nil)
	l.want(planned, "run-1", holdfast.RunPlanned, "")
	l.assign("run-2", holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("run-1", planned) })
	l.server.until(t, "the provisioner's line was streamed", func() bool { return strings.Contains(string(l.server.logs["run-2"]), "it is made-") })
	if err := os.WriteFile(filepath.Join(l.world, "streamed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.want(l.server.result(t, "run-2"), "run-2", holdfast.RunApplied, "")
	log := l.log("run-2")
	if strings.Contains(log, "made-") || !strings.Contains(log, "(local-exec): it is ***") || !strings.Contains(log, "(local-exec): and that is all") {
		t.Errorf("the log that is stored:\n%s", log)
	}
	if !slices.Contains(l.server.events, "mask") {
		t.Error("the value was taken out of the log without a word to the server")
	}
}

// TestSecretVariables states that the engine gets the values with every command,
// that the plan and the apply are what they were without a secret, and that no
// value is in anything that leaves the agent, nor in a workspace that stays.
func TestSecretVariables(t *testing.T) {
	t.Parallel()
	l := newSecretLab(t)
	files := l.files(secretVariables)
	planned, _ := l.run("run-1", holdfast.RunPlan, files, l.give)
	l.want(planned, "run-1", holdfast.RunPlanned, "")
	applied, starts := l.run("run-2", holdfast.RunApply, files, func(a *protocol.Assignment) {
		l.give(a)
		a.Reviews = review("run-1", planned)
	})
	l.want(applied, "run-2", holdfast.RunApplied, "")
	if starts["init"] != 0 {
		t.Error("what was prepared was not used again")
	}
	if state := l.server.states[len(l.server.states)-1]; !strings.Contains(state, `postgres://app:hunter2 \"quoted\" ${x} %{y}@db/app`) {
		t.Errorf("the engine got another value:\n%s", state)
	}
	drift, _ := l.run("run-3", holdfast.RunDrift, files, l.give)
	l.want(drift, "run-3", holdfast.RunNoChanges, "")
	var outputs []holdfast.Output
	if !l.artefact("run-3", protocol.ArtefactOutputs, &outputs) || len(outputs) != 3 || string(outputs[1].Value) != `"https://10.0.0.1"` ||
		!outputs[2].Sensitive || outputs[2].Value != nil {
		t.Errorf("outputs of a check: %+v", outputs)
	}
	destroyed, _ := l.run("run-4", holdfast.RunPlan, files, func(a *protocol.Assignment) { l.give(a); a.Destroy = true })
	l.want(destroyed, "run-4", holdfast.RunPlanned, "")
	for _, id := range []string{"run-1", "run-2", "run-3", "run-4"} {
		wantNoLeak(t, id, l.withOutputs(id), append(l.secrets(), "root-token"))
		if log := l.log(id); !strings.Contains(log, "db_password (environment variable DB_PASSWORD)") || !strings.Contains(log, "api_key (store vault, key prod/api key)") {
			t.Errorf("%s: the log does not say where the values come from:\n%s", id, log)
		}
	}
	if !strings.Contains(l.log("run-2"), "made with (sensitive value)") {
		t.Errorf("the provisioner did not print what the test looks for:\n%s", l.log("run-2"))
	}
}

// TestSecretHasChanged states what becomes of an apply when a secret is another
// one than when the plan was made: nothing is applied that nobody has seen, and
// it says why.
func TestSecretHasChanged(t *testing.T) {
	t.Parallel()
	l := newSecretLab(t)
	files := l.files(secretVariables)
	planned, _ := l.run("run-1", holdfast.RunPlan, files, l.give)
	old := l.secrets()

	l.values["db_password"], l.values["api_key"] = "rotated-password", "key-from-the-store-2"
	held, starts := l.run("run-2", holdfast.RunApply, files, func(a *protocol.Assignment) {
		l.give(a)
		a.Reviews = review("run-1", planned)
	})
	l.want(held, "run-2", holdfast.RunPlanned, holdfast.ReasonPlanChanged)
	if starts["apply"] != 0 || !strings.Contains(held.Detail, "the values of the secret variables api_key, db_password have changed") {
		t.Errorf("%v, detail %q", starts, held.Detail)
	}

	// What a person approves after that has the new values.
	approved, _ := l.run("run-4", holdfast.RunApply, files, func(a *protocol.Assignment) { l.give(a); a.Reviews = review("run-2", held) })
	l.want(approved, "run-4", holdfast.RunApplied, "")
	// A drift check finds that a secret has changed since the apply.
	l.values["db_password"] = "rotated-once-more"
	old = append(old, "rotated-password")
	drift, _ := l.run("run-6", holdfast.RunDrift, files, l.give)
	l.want(drift, "run-6", holdfast.RunPlanned, "")
	for _, id := range []string{"run-1", "run-2", "run-4", "run-6"} {
		wantNoLeak(t, id, l.withOutputs(id), append(l.secrets(), old...))
	}
}

// A secret that no resource has, such as a provider's, may change between the
// review and the apply: what happens is what was reviewed.
func TestSecretThatNoResourceHas(t *testing.T) {
	t.Parallel()
	l := newSecretLab(t)
	files := l.files(strings.NewReplacer("${var.db_password}", "", "var.signing_pem", `""`,
		"var.db_password", `"x"`, "nonsensitive(var.api_key)", `""`, "${nonsensitive(base64encode(var.api_key))}", "",
		`nonsensitive("x")`, `"x"`).Replace(secretVariables))
	planned, _ := l.run("run-1", holdfast.RunPlan, files, l.give)
	l.want(planned, "run-1", holdfast.RunPlanned, "")
	l.values["api_key"] = "key-from-the-store-2"
	applied, _ := l.run("run-2", holdfast.RunApply, files, func(a *protocol.Assignment) {
		l.give(a)
		a.Reviews = review("run-1", planned)
	})
	l.want(applied, "run-2", holdfast.RunApplied, "")
}

// TestSecretsOfALaptop states that whoever plans on their own machine has the secrets
// of its environment and files.
func TestSecretsOfALaptop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "pem"), "from-a-file\r\n", 0o600)
	installed, _ := realEngine(t)
	states := newStateServer(t)
	run := func(env map[string]string) (protocol.Result, *memorySession) {
		e, _ := newExecutor(t, func(o *runner.ExecutorOptions) {
			o.Secrets.Open, o.Engines.Dirs = true, []string{installed}
			maps.Copy(o.Engines.Env, env)
		})
		s := newMemorySession(map[string]string{"main.tf": secretVariables, rootmodule.SecretFile: `{
			"db_password": {"env": "DB_PASSWORD"}, "api_key": {"store": "vault", "key": "a"},
			"signing_pem": {"file": "` + filepath.Join(dir, "pem") + `"}}`})
		s.state = states.URL + "/laptop"
		return e.Execute(t.Context(), engineAssignment("run-1", holdfast.RunPlan), s), s
	}
	got, s := run(map[string]string{"DB_PASSWORD": "of-the-person", "TF_VAR_api_key": "given-by-hand"})
	wantStatus(t, got, holdfast.RunPlanned, "", s)
	wantNoLeak(t, "plan", map[string]string{"log": s.logged(), "plan": string(s.artefact(protocol.ArtefactDocument)), "information": string(s.artefact(protocol.ArtefactInfo))},
		[]string{"of-the-person", "given-by-hand", "from-a-file"})
	got, s = run(nil)
	wantStatus(t, got, holdfast.RunErrored, "SecretUnavailable", s)
	if f := got.Failure; !strings.Contains(f.Detail, "the environment has no DB_PASSWORD") ||
		!strings.Contains(f.Detail, "store vault is the server's, and not here") || f.Hint != "set TF_VAR_api_key in the environment" || strings.Contains(f.Detail, "signing_pem") {
		t.Errorf("failure %+v", f)
	}
}
