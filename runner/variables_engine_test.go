//go:build !race

package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rootmodule"
)

// TestDocumentsVariablesWin: what the cluster's document says of a variable goes
// before every file of variables in the module's folder, whatever its name.
func TestDocumentsVariablesWin(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	files := map[string]string{
		"main.tf": "variable \"size\" {\n  type = number\n}\nvariable \"other\" {\n  default = \"code\"\n}\n" +
			"resource \"terraform_data\" \"x\" {\n  input = \"size-${var.size}-${var.other}\"\n}\n",
		rootmodule.VariablesFile:                `{"size": 4}`,
		"terraform.tfvars":                      "size = 5\n",
		"terraform.tfvars.json":                 `{"size": 6}`,
		"zzz.auto.tfvars":                       "size = 7\nother = \"file\"\n",
		"~~~~.auto.tfvars.json":                 `{"size": 8}`,
		"\u00fcber.auto.tfvars":                 "size = 9\n",
		"holdfast.auto.tfvars.tf":               "",
		"holdfast.auto.tfvars.json.auto.tfvars": "size = 10\n",
	}
	l.apply("run-1", files)
	if state := l.server.states[len(l.server.states)-1]; !strings.Contains(state, `"size-4-file"`) {
		t.Errorf("the engine took other values:\n%s", state)
	}
	destroyed, _ := l.run("run-9", holdfast.RunPlan, files, func(a *protocol.Assignment) { a.Destroy = true })
	l.want(destroyed, "run-9", holdfast.RunPlanned, "")
}

// TestValuesOfAllTypesAreApplied: an engine that compares the values of an apply
// with those in the plan file finds that they are the same.
func TestValuesOfAllTypesAreApplied(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.apply("run-1", map[string]string{
		"main.tf": `
variable "none" {
  type    = string
  default = "default"
}
variable "set" { type = set(string) }
variable "list" { type = list(number) }
variable "map" { type = map(string) }
variable "object" {
  type = object({ a = string, b = optional(number, 3), c = optional(string) })
}
variable "any" { type = any }
variable "flag" { type = bool }
variable "secret" {
  type      = string
  sensitive = true
}
variable "strict" {
  type     = string
  nullable = false
  default  = "strict"
}
resource "terraform_data" "x" {
  input = jsonencode([coalesce(var.none, "null"), var.set, var.list, var.map, var.object, var.any, var.flag, sha1(var.secret), var.strict])
}
`,
		rootmodule.VariablesFile: `{"none": null, "set": ["b", "a", "a"], "list": ["1", 2], "map": {"a": 1, "b": true}, "object": {"a": 1},
"any": [1, "x", {"y": null}], "flag": "true", "secret": "hidden-value", "strict": null, "undeclared": 1}`,
		"zzz.auto.tfvars": `
none   = "other"
set    = []
list   = [3]
map    = {}
object = { a = "z" }
any    = 1
flag   = false
secret = "other-value"
`,
	})
	state := l.server.states[len(l.server.states)-1]
	for _, want := range []string{`[\"null\",`, `[\"a\",\"b\"]`, `[1,2]`, `\"b\":3`, `{\"y\":null}`, `true,`, `\"strict\"`} {
		if !strings.Contains(state, want) {
			t.Errorf("%s is not in the state:\n%s", want, state)
		}
	}
}

// TestEphemeralValuesOfAnApply: a value that is in no plan file is the document's
// in an apply as well.
func TestEphemeralValuesOfAnApply(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.apply("run-1", map[string]string{
		"main.tf": `
variable "token" {
  type      = string
  ephemeral = true
}
resource "terraform_data" "x" {
  provisioner "local-exec" {
    command = "printf %s '${var.token}' >'WORLD/token'"
  }
}
`,
		rootmodule.VariablesFile: `{"token": "of-the-document"}`,
		"zzz.auto.tfvars":        "token = \"of-a-file\"\n",
	})
	if got, err := os.ReadFile(filepath.Join(l.world, "token")); err != nil || string(got) != "of-the-document" {
		t.Errorf("the apply had the value %q (%v)", got, err)
	}
}

// TestDocumentsVariablesDecideSources: OpenTofu evaluates a module's source in
// each of its commands, with the document's values. Terraform refuses it.
func TestDocumentsVariablesDecideSources(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	files := map[string]string{
		"root/main.tf": `
variable "flavour" { type = string }
module "m" { source = "../mod-${var.flavour}" }
`,
		"root/" + rootmodule.VariablesFile: `{"flavour": "a"}`,
		"root/zzz.auto.tfvars":             "flavour = \"b\"\n",
		"mod-a/main.tf":                    "resource \"terraform_data\" \"x\" { input = \"made by a\" }\n",
		"mod-b/main.tf":                    "resource \"terraform_data\" \"y\" { input = \"made by b\" }\n",
	}
	in := func(a *protocol.Assignment) { a.Dir = "root" }
	planned, _ := l.run("run-1", holdfast.RunPlan, files, in)
	if l.engine == "terraform" {
		l.want(planned, "run-1", holdfast.RunErrored, "InvalidConfiguration")
		return
	}
	l.want(planned, "run-1", holdfast.RunPlanned, "")
	applied, _ := l.run("run-2", holdfast.RunApply, files, func(a *protocol.Assignment) {
		in(a)
		a.Bundle, a.Reviews = holdfast.DigestOf([]byte("run-1")), review("run-1", planned)
	})
	l.want(applied, "run-2", holdfast.RunApplied, "")
	if state := l.server.states[len(l.server.states)-1]; !strings.Contains(state, "made by a") {
		t.Errorf("the engine took another module:\n%s", state)
	}
}
