//go:build !race

package runner_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rootmodule"
)

// newUnitLab is a lab with Terragrunt next to the engine: the one that the environment names,
// otherwise the stand-in.
func newUnitLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	command := os.Getenv("HOLDFAST_TEST_TERRAGRUNT")
	if command == "" {
		itself, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		command = fmt.Sprintf("%q terragrunt", itself)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", command)
	if err := os.WriteFile(filepath.Join(l.bin, "terragrunt"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return l
}

// unitFiles are a unit in live/prod of the module modules/app, which calls modules/part.
func unitFiles() map[string]string {
	return map[string]string{
		"live/root.hcl": `generate "made" {
  path      = "made.tf"
  if_exists = "overwrite_terragrunt"
  contents  = <<EOF
locals { made = "by terragrunt" }
EOF
}
inputs = { stage = "${path_relative_to_include()}-stage", size = 1 }
`,
		"live/prod/terragrunt.hcl": `include "root" {
  path = find_in_parent_folders("root.hcl")
}
terraform {
  source = "../../modules//app"
}
inputs = {
  size    = 3
  names   = ["a", "$${b}"]
  nothing = null
  token   = "correct-horse-battery"
}
`,
		"live/prod/extra.tf":               "resource \"terraform_data\" \"extra\" { input = \"of the unit\" }\n",
		"live/prod/" + rootmodule.UnitFile: "terraform {\n  required_version = \"= 0.0.0\"\n}\n",
		"modules/part/main.tf":             "resource \"terraform_data\" \"part\" {}\n",
		"modules/app/main.tf": `variable "stage" { type = string }
variable "size" { type = number }
variable "names" { type = list(string) }
variable "nothing" {
  type    = string
  default = "something"
}
variable "token" {
  type      = string
  sensitive = true
}
resource "terraform_data" "app" {
  input = "${var.stage} ${var.size} ${join("+", var.names)} ${var.nothing == null ? "null" : var.nothing} ${local.made}"
}
module "part" { source = "../part" }
`,
	}
}

func inUnit(a *protocol.Assignment) { a.Dir = "live/prod" }

// TestUnitOfTerragrunt: what Terragrunt makes of a unit is planned, applied as it was
// reviewed, checked for drift and destroyed as any root module.
func TestUnitOfTerragrunt(t *testing.T) {
	t.Parallel()
	l, files := newUnitLab(t), unitFiles()
	planned, _ := l.run("plan", holdfast.RunPlan, files, inUnit)
	l.want(planned, "plan", holdfast.RunPlanned, "")
	if diff := cmp.Diff([]string{
		"create module.part.terraform_data.part", "create terraform_data.app", "create terraform_data.extra",
	}, sorted(actions(l.plan("plan").Changes))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if want := "prod-stage 3 a+${b} null by terragrunt"; !strings.Contains(strings.ReplaceAll(l.plan("plan").Text, "$${", "${"), want) {
		t.Errorf("the plan lacks %q:\n%s", want, l.plan("plan").Text)
	}
	for name, sink := range l.server.sinks(t, "plan") {
		if strings.Contains(sink, "correct-horse") {
			t.Errorf("%s holds a secret input", name)
		}
	}

	reviewed := func(a *protocol.Assignment) {
		inUnit(a)
		a.Reviews = review("plan", planned)
	}
	// Another input is another plan than the one that was reviewed.
	other := maps.Clone(files)
	other["live/root.hcl"] = strings.Replace(files["live/root.hcl"], "-stage", "-other", 1)
	held, _ := l.run("held", holdfast.RunApply, other, reviewed)
	l.want(held, "held", holdfast.RunPlanned, holdfast.ReasonPlanChanged)

	applied, _ := l.run("apply", holdfast.RunApply, files, reviewed)
	l.want(applied, "apply", holdfast.RunApplied, "")
	if applied.Matched != "plan" {
		t.Errorf("the apply matched %q", applied.Matched)
	}
	clean, _ := l.run("drift", holdfast.RunDrift, files, inUnit)
	l.want(clean, "drift", holdfast.RunNoChanges, "")

	gone, _ := l.run("gone", holdfast.RunPlan, files, func(a *protocol.Assignment) {
		inUnit(a)
		a.Destroy = true
	})
	l.want(gone, "gone", holdfast.RunPlanned, "")
	destroyed, _ := l.run("destroy", holdfast.RunDestroy, files, func(a *protocol.Assignment) {
		inUnit(a)
		a.Reviews = review("gone", gone)
	})
	l.want(destroyed, "destroy", holdfast.RunApplied, "")
	if left := l.resources("destroy"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestUnitKeepsItsState: the state is where remote_state says, if that is what the server was
// told, and nowhere else.
func TestUnitKeepsItsState(t *testing.T) {
	t.Parallel()
	l, files := newUnitLab(t), unitFiles()
	files["live/root.hcl"] += `remote_state {
  backend  = "local"
  config   = { path = "WORLD/${path_relative_to_include()}.tfstate" }
  generate = { path = "backend.tf", if_exists = "overwrite_terragrunt" }
}
`
	refused, _ := l.run("refused", holdfast.RunPlan, files, inUnit)
	l.want(refused, "refused", holdfast.RunErrored, holdfast.CauseInvalidConfiguration)

	elsewhere := func(a *protocol.Assignment) {
		inUnit(a)
		a.OwnState = false
	}
	planned, _ := l.run("plan", holdfast.RunPlan, files, elsewhere)
	l.want(planned, "plan", holdfast.RunPlanned, "")
	applied, _ := l.run("apply", holdfast.RunApply, files, func(a *protocol.Assignment) {
		elsewhere(a)
		a.Reviews = review("plan", planned)
	})
	l.want(applied, "apply", holdfast.RunApplied, "")
	if _, err := os.Stat(filepath.Join(l.world, "prod.tfstate")); err != nil {
		t.Errorf("no state where remote_state says: %v", err)
	}

	// What nobody has told the server must not lead to an empty state.
	lost := maps.Clone(files)
	lost["live/root.hcl"], _, _ = strings.Cut(lost["live/root.hcl"], "remote_state")
	stateless, _ := l.run("stateless", holdfast.RunPlan, lost, elsewhere)
	l.want(stateless, "stateless", holdfast.RunErrored, holdfast.CauseInvalidConfiguration)
}

// TestUnitThatCannotBeRendered: what Terragrunt says about it is the failure, and an agent
// without Terragrunt says what is missing.
func TestUnitThatCannotBeRendered(t *testing.T) {
	t.Parallel()
	l, files := newUnitLab(t), unitFiles()
	files["live/prod/terragrunt.hcl"] = strings.Replace(files["live/prod/terragrunt.hcl"], `"root.hcl"`, `"nowhere.hcl"`, 1)
	broken, starts := l.run("broken", holdfast.RunPlan, files, inUnit)
	if broken.Reason != holdfast.CauseNotFound { // which Terragrunt's own words say
		l.want(broken, "broken", holdfast.RunErrored, holdfast.CauseInvalidConfiguration)
	}
	if len(starts) > 0 {
		t.Errorf("the engine was started: %v", starts)
	}
	bare := newLab(t)
	missing, _ := bare.run("missing", holdfast.RunPlan, unitFiles(), inUnit)
	bare.want(missing, "missing", holdfast.RunErrored, holdfast.CauseNoEngine)
}
