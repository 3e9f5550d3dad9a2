//go:build !race

package runner_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// secretRoot has secrets in all places that a root module can have them, and
// copies each of them to attributes and outputs that no mark is on.
const secretRoot = `
terraform {
  BACKEND
  required_providers {
    local = { source = "hashicorp/local" }
  }
}
variable "map" {
  type      = map(string)
  sensitive = true
}
variable "list" {
  type      = list(string)
  sensitive = true
}
variable "environment_text" {
  type      = string
  sensitive = true
}
variable "environment_list" {
  type      = list(string)
  sensitive = true
}
variable "fallback" {
  sensitive = true
  default   = "FALLBACK"
}
variable "broken" {
  type    = bool
  default = false
}
data "local_sensitive_file" "x" { filename = "${path.module}/schema.txt" }
resource "terraform_data" "map" { input = var.map }
resource "terraform_data" "list" { input = { nested = [{ text = join(" ", var.list) }, var.list] } }
resource "terraform_data" "text" { input = "https://u:${var.environment_text}@host/" }
resource "terraform_data" "environment" { input = var.environment_list }
resource "terraform_data" "fallback" { input = var.fallback }
resource "terraform_data" "schema" { input = data.local_sensitive_file.x.content }
resource "terraform_data" "printed" {
  triggers_replace = var.fallback
  provisioner "local-exec" { command = "echo printed ${nonsensitive(var.fallback)} ${terraform_data.map.output["k1"]}; echo err ${nonsensitive(var.list[0])} >&2" }
}
resource "terraform_data" "broken" {
  input = "${terraform_data.map.output["k0"]}-${var.broken}"
  lifecycle {
    precondition {
      condition     = !var.broken
      error_message = "It is broken: ${terraform_data.list.output.nested[0].text}."
    }
  }
}
module "m" {
  source   = "./m"
  password = var.map["k2"]
}
output "map" { value = terraform_data.map.output }
output "list" { value = terraform_data.list.output }
output "schema" { value = terraform_data.schema.output }
output "child" { value = module.m.copied }
output "hidden" {
  value     = [var.map, data.local_sensitive_file.x.content]
  sensitive = true
}
`

const secretChild = `
variable "password" { sensitive = true }
resource "terraform_data" "x" { input = var.password }
output "copied" { value = terraform_data.x.output }
`

// secretFiles are the root module with the secrets of one generation, which are
// returned, too, with what the environment has of them.
func secretFiles(t *testing.T, generation uint64, backend string, broken bool) (files, env map[string]string, secrets []string) {
	t.Helper()
	random := rand.New(rand.NewPCG(generation, 1))
	take := func(n int) []string {
		var list []string
		for range n {
			list = append(list, corpusSecret(random, []int{0, 1, 2, 4, 6}[len(secrets)%5]))
			secrets = append(secrets, list[len(list)-1])
		}
		return list
	}
	encode := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	values := map[string]string{}
	for i, secret := range take(40) {
		values[fmt.Sprintf("k%d", i)] = secret
	}
	values["digits"] = "8472615938" // a number in a string
	secrets = append(secrets, values["digits"])
	list, texts := take(40), take(2)
	env = map[string]string{"TF_VAR_environment_text": texts[0], "TF_VAR_environment_list": encode(take(16))}
	files = map[string]string{
		"main.tf": strings.NewReplacer("BACKEND", backend, "FALLBACK", texts[1]).Replace(secretRoot),
		"m/m.tf":  secretChild, "schema.txt": take(1)[0],
		"a.auto.tfvars.json": encode(map[string]any{"map": values, "broken": broken}),
		"b.auto.tfvars":      "list = " + encode(list) + "\n",
	}
	return files, env, secrets
}

// sinks is what left the agent of one run.
func wantNoLeak(t *testing.T, run string, sinks map[string]string, secrets []string) {
	t.Helper()
	found := 0
	for where, text := range sinks {
		for _, secret := range secrets {
			if form := leak(text, secret); form != "" {
				found++
				at := strings.Index(text, form)
				line := text[strings.LastIndexByte(text[:at], '\n')+1:]
				line, _, _ = strings.Cut(line, "\n")
				t.Errorf("%s: %s holds %q: %.200s", run, where, form, line)
				if found > 5 {
					return
				}
			}
		}
	}
}

// secretRuns are the runs that TestRealEngineLeaksNothing makes: of which generation of
// secrets, and their outcomes.
var secretRuns = []struct {
	id         string
	kind       holdfast.RunKind
	generation uint64
	broken     bool
	status     holdfast.RunStatus
	reviewed   string
}{
	{"run-1", holdfast.RunPlan, 1, false, holdfast.RunPlanned, ""},
	{"run-2", holdfast.RunApply, 1, false, holdfast.RunApplied, "run-1"},
	{"run-3", holdfast.RunPlan, 2, false, holdfast.RunPlanned, ""}, // all secrets are rotated
	{"run-4", holdfast.RunPlan, 2, true, holdfast.RunErrored, ""},  // fails in the middle of the plan
	{"run-5", holdfast.RunApply, 2, false, holdfast.RunApplied, "run-3"},
	{"run-6", holdfast.RunDestroy, 1, false, holdfast.RunPlanned, ""},
}

// TestRealEngineLeaksNothing plants about 200 secrets in a root module and its
// state and looks for them in all that leaves the agent, with a state in
// Holdfast's own backend and with one elsewhere, which the agent never sees.
func TestRealEngineLeaksNothing(t *testing.T) {
	t.Parallel()
	realEngine(t)
	config := providerMirror(t)
	for _, own := range []bool{true, false} {
		t.Run(map[bool]string{true: "own backend", false: "another backend"}[own], func(t *testing.T) {
			t.Parallel()
			e, _ := newExecutor(t, func(o *runner.ExecutorOptions) { o.Engines.CLIConfigFile = config })
			server, backend := newFakeServer(t), `backend "http" {}`
			if !own {
				backend = fmt.Sprintf(`backend "local" { path = %q }`, filepath.Join(t.TempDir(), "s.tfstate"))
			}
			_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: t.TempDir(), Executor: e})
			_, _, old := secretFiles(t, 1, "", false)
			_, _, rotated := secretFiles(t, 2, "", false)
			results := map[string]protocol.Result{}
			for _, run := range secretRuns {
				files, env, _ := secretFiles(t, run.generation, backend, run.broken)
				a, settings := engineAssignment(run.id, run.kind), assignment(run.id, run.kind)
				a.Token, a.Lease, a.Deadline, a.StateLocation = settings.Token, settings.Lease, settings.Deadline, settings.StateLocation
				a.OwnState, a.Env, a.Bundle = own, env, holdfast.DigestOf([]byte(run.id))
				if run.reviewed != "" {
					a.Reviews = review(run.reviewed, results[run.reviewed])
				}
				server.set(func() { server.objects[string(a.Bundle)] = tarball(files) })
				server.assign(a)
				result := server.result(t, run.id)
				results[run.id] = result
				sinks := server.sinks(t, run.id)
				if result.Status != run.status {
					t.Errorf("%s: got %s (%s): %+v\n%s", run.id, result.Status, result.Detail, result.Failure, sinks["log"])
				}
				wantNoLeak(t, run.id, sinks, slices.Concat(old, rotated))
			}
			log := server.sinks(t, "run-3")["log"]
			for _, line := range []string{"terraform_data.map: Refreshing state... [id=", "# terraform_data.map will be updated in-place", "Plan: "} {
				if !strings.Contains(log, line) {
					t.Errorf("the log of a plan lacks %q:\n%s", line, log)
				}
			}
			if log := server.sinks(t, "run-4")["log"]; !strings.Contains(log, "It is broken: (sensitive value)") && !strings.Contains(log, "Error: Resource precondition failed") {
				t.Errorf("the log of a plan that failed lacks why:\n%s", log)
			}
		})
	}
}

// sinks returns all that came of a run but what is kept encrypted: the plan file,
// and the outputs, which have their marks.
func (f *fakeServer) sinks(t *testing.T, run string) map[string]string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	result, err := json.Marshal(f.results[run])
	if err != nil {
		t.Fatal(err)
	}
	sinks := map[string]string{"log": string(f.logs[run]), "result": string(result)}
	for _, name := range slices.Sorted(maps.Keys(f.objects)) {
		artefact, ok := strings.CutPrefix(name, run+"/")
		if ok && fs.ValidPath(artefact) && artefact != protocol.ArtefactOutputs {
			sinks[artefact] = string(f.objects[name])
		}
	}
	return sinks
}
