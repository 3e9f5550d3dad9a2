//go:build !race

package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// What a provisioner is given is in no change of a resource: if it is another
// value than the reviewed plan had, nothing is applied before somebody has seen
// it; what nothing is given may change.
func TestGivenValueHasChanged(t *testing.T) {
	t.Parallel()
	const head = `
data "terraform_remote_state" "x" {
  backend = "local"
  config  = { path = "WORLD/x.tfstate" }
}
`
	const noise = head + "resource \"terraform_data\" \"y\" { input = 1 }\n"
	provisioner := func(value string) string {
		return "resource \"terraform_data\" \"y\" {\n  provisioner \"local-exec\" { command = " + value + " }\n}\n"
	}
	for name, c := range map[string]struct {
		files map[string]string
		held  bool
	}{
		"directly": {files: map[string]string{"main.tf": head + provisioner("data.terraform_remote_state.x.outputs.cmd")}, held: true},
		"through a local": {held: true, files: map[string]string{
			"main.tf":   head + "locals { a = local.b }\n" + provisioner("local.a"),
			"b.tf.json": `{"locals": {"b": "${data.terraform_remote_state.x.outputs.cmd}"}}`,
		}},
		"through modules": {held: true, files: map[string]string{
			"main.tf":   "module \"from\" { source = \"./from\" }\nmodule \"to\" {\n  source = \"./to\"\n  cmd    = module.from.cmd\n}\n",
			"from/m.tf": head + "output \"cmd\" { value = data.terraform_remote_state.x.outputs.cmd }\n",
			"to/m.tf":   "variable \"cmd\" {}\n" + provisioner("var.cmd"),
		}},
		"nothing is given it": {files: map[string]string{"main.tf": noise}},
		"another attribute":   {files: map[string]string{"main.tf": head + provisioner(`"echo ${data.terraform_remote_state.x.backend}"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			says := func(cmd string) {
				state := fmt.Sprintf(`{"version":4,"terraform_version":"1.5.0","serial":1,"lineage":"x","resources":[],
					"outputs":{"cmd":{"value":%q,"type":"string"}}}`, cmd)
				writeFile(t, filepath.Join(l.world, "x.tfstate"), state, 0o644)
			}
			says("echo shown")
			planned, _ := l.run("run-1", holdfast.RunPlan, c.files, nil)
			l.want(planned, "run-1", holdfast.RunPlanned, "")
			says("echo other >" + filepath.Join(l.world, "done"))
			applied, _ := l.run("run-2", holdfast.RunApply, c.files, func(a *protocol.Assignment) { a.Reviews = review("run-1", planned) })
			if !c.held {
				l.want(applied, "run-2", holdfast.RunApplied, "")
				return
			}
			l.want(applied, "run-2", holdfast.RunPlanned, holdfast.ReasonPlanChanged)
			if !strings.Contains(applied.Detail, "data.terraform_remote_state.x: the value that was read has changed: outputs.cmd") {
				t.Errorf("detail %q", applied.Detail)
			}
			if _, err := os.Stat(filepath.Join(l.world, "done")); err == nil {
				t.Error("the other command was executed")
			}
			// What a person has seen is applied.
			confirmed, _ := l.run("run-3", holdfast.RunApply, c.files, func(a *protocol.Assignment) { a.Reviews = review("run-2", applied) })
			l.want(confirmed, "run-3", holdfast.RunApplied, "")
			if _, err := os.Stat(filepath.Join(l.world, "done")); err != nil {
				t.Error("the command that was confirmed was not executed")
			}
		})
	}
}

// A secret variable that a provisioner is given, and nothing else shows, is
// compared; one that only a provider is configured with is not.
func TestGivenSecretHasChanged(t *testing.T) {
	t.Parallel()
	l := newSecretLab(t)
	const code = `
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
  provisioner "local-exec" {
    command     = "true"
    environment = { PASSWORD = var.db_password }
  }
}
`
	files := l.files(code)
	planned, _ := l.run("run-1", holdfast.RunPlan, files, l.give)
	l.want(planned, "run-1", holdfast.RunPlanned, "")
	l.values["db_password"], l.values["api_key"] = "rotated-password", "key-from-the-store-2"
	held, starts := l.run("run-2", holdfast.RunApply, files, func(a *protocol.Assignment) {
		l.give(a)
		a.Reviews = review("run-1", planned)
	})
	l.want(held, "run-2", holdfast.RunPlanned, holdfast.ReasonPlanChanged)
	if starts["apply"] != 0 || !strings.Contains(held.Detail, "var.db_password") || strings.Contains(held.Detail, "var.api_key") {
		t.Errorf("%v, detail %q", starts, held.Detail)
	}
	l.values["api_key"] = "key-from-the-store-3"
	approved, _ := l.run("run-3", holdfast.RunApply, files, func(a *protocol.Assignment) { l.give(a); a.Reviews = review("run-2", held) })
	l.want(approved, "run-3", holdfast.RunApplied, "")
	for _, id := range []string{"run-1", "run-2", "run-3"} {
		wantNoLeak(t, id, l.withOutputs(id), l.secrets())
	}
}

// TestCodeThatOnlyEnginesRead: of code that the engine reads and we do not it is unknown
// what a plan depends on, so that the plan could not be compared.
func TestCodeThatOnlyEnginesRead(t *testing.T) {
	t.Parallel()
	l := newSecretLab(t)
	code := "locals {\n  a = " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "\n}\n"
	for _, name := range []string{"db_password", "api_key", "signing_pem"} {
		code += "variable \"" + name + "\" {\n  sensitive = true\n}\n"
	}
	got, _ := l.run("run-1", holdfast.RunPlan, l.files(code), l.give)
	if got.Status != holdfast.RunErrored || got.Reason != "InvalidConfiguration" || !strings.Contains(got.Detail, "main.tf: line 2: expressions are nested") {
		t.Errorf("%s %s: %s", got.Status, got.Reason, got.Detail)
	}
}
