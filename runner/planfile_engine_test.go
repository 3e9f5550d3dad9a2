//go:build !race

package runner_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rootmodule"
)

// forgers change the members of a genuine plan file, as code that a plan executes
// could do it.
var forgers = map[string]func(members map[string][]byte) error{
	"state": func(m map[string][]byte) error {
		return replaceIn(m, "tfstate", `"terraform_data"`, `"terraform_datb"`)
	},
	"variables": func(m map[string][]byte) error {
		return replaceIn(m, "tfplan", "\xa2eu", "\xa2us")
	},
	"another variable": func(m map[string][]byte) error {
		m["tfplan"] = appendField(m["tfplan"], 2, appendField(appendField(nil, 1, []byte("size")), 2, appendField(nil, 1, []byte("\x92\xc4\x08\"number\"\x09"))))
		return nil
	},
	"no variable": func(m map[string][]byte) error { m["tfplan"] = withoutField(m["tfplan"], 2); return nil },
	"an apply-time variable": func(m map[string][]byte) error {
		m["tfplan"] = appendField(withoutField(m["tfplan"], 2), 28, []byte("region"))
		return nil
	},
	"backend": func(m map[string][]byte) error {
		config := []byte("\x82\xa4path\xa4lost\xadworkspace_dir\xc0")
		backend := appendField(appendField(appendField(nil, 1, []byte("local")), 2, appendField(nil, 1, config)), 3, []byte("default"))
		m["tfplan"] = appendField(withoutField(m["tfplan"], 13), 13, backend)
		return nil
	},
	"workspace": func(m map[string][]byte) error { return replaceIn(m, "tfplan", "\x1a\x07default", "\x1a\x07another") },
	"backend twice": func(m map[string][]byte) error {
		m["tfplan"] = appendField(m["tfplan"], 13, appendField(nil, 3, []byte("default")))
		return nil
	},
	"mode": func(m map[string][]byte) error { m["tfplan"] = append(m["tfplan"], 0x88, 0x01, 0x01); return nil },
	"targets": func(m map[string][]byte) error {
		m["tfplan"] = appendField(m["tfplan"], 5, []byte("terraform_data.x"))
		return nil
	},
	"actions":  func(m map[string][]byte) error { m["tfplan"] = appendField(m["tfplan"], 30, nil); return nil },
	"deferred": func(m map[string][]byte) error { m["tfplan"] = appendField(m["tfplan"], 27, nil); return nil },
	"unknown":  func(m map[string][]byte) error { m["tfplan"] = appendField(m["tfplan"], 99, []byte("x")); return nil },
	"lock file": func(m map[string][]byte) error {
		m[".terraform.lock.hcl"] = append(m[".terraform.lock.hcl"], "provider \"x/y/z\" {\n  version = \"1.0.0\"\n}\n"...)
		return nil
	},
	"code of a module":  func(m map[string][]byte) error { delete(m, "tfconfig/m-m/b_override.tf"); return nil },
	"JSON code":         func(m map[string][]byte) error { delete(m, "tfconfig/m-/more.tf.json"); return nil },
	"more code":         func(m map[string][]byte) error { m["tfconfig/m-m/c.tf"] = nil; return nil },
	"a module":          func(m map[string][]byte) error { return replaceIn(m, "tfconfig/modules.json", `"m"`, `"n"`) },
	"an unknown member": func(m map[string][]byte) error { m["tfmore"] = nil; return nil },
	"no plan":           func(m map[string][]byte) error { delete(m, "tfplan"); return nil },
	"half of a plan":    func(m map[string][]byte) error { m["tfplan"] = m["tfplan"][:len(m["tfplan"])-1]; return nil },
	"a lost object":     func(m map[string][]byte) error { return withoutResource(m, "keep") },
	"a tainted object": func(m map[string][]byte) error {
		return replaceIn(m, "tfstate", `"schema_version": 0`, `"status": "tainted", "schema_version": 0`)
	},
	"another name":    func(m map[string][]byte) error { return replaceIn(m, "tfstate", `"keep"`, `"kept"`) },
	"another lineage": func(m map[string][]byte) error { return replaceIn(m, "tfstate", `"lineage": "`, `"lineage": "x`) },
	"members twice": func(m map[string][]byte) error {
		return replaceIn(m, "tfstate", `"resources": [`, `"RESOURCES": [], "resources": [`)
	},
	"a member in another letter": func(m map[string][]byte) error { // encoding/json takes it for resources
		return replaceIn(m, "tfstate", `"resources": [`, `"re\u017fource\u017f": [], "resources": [`)
	},
	"moved to a data source": func(m map[string][]byte) error {
		deletion := appendField(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 5), 2, appendField(nil, 1, []byte("\xc0")))
		change := appendField(appendField(nil, 13, []byte("data.terraform_remote_state.x")), 14, []byte("terraform_data.keep"))
		change = appendField(appendField(change, 8, []byte(`provider["terraform.io/builtin/terraform"]`)), 9, deletion)
		m["tfplan"] = appendField(m["tfplan"], 3, change)
		return withoutResource(m, "keep")
	},
	"another id": func(m map[string][]byte) error {
		return replaceIn(m, "tfstate", `"id": "`, `"id": "0`)
	},
	"nothing, but repacked": func(map[string][]byte) error { return nil },
}

// withoutResource takes the resources of a name out of the state.
func withoutResource(members map[string][]byte, name string) error {
	var state map[string]any
	if err := json.Unmarshal(members["tfstate"], &state); err != nil {
		return err
	}
	list, _ := state["resources"].([]any)
	left := slices.DeleteFunc(slices.Clone(list), func(r any) bool { return r.(map[string]any)["name"] == name })
	if len(left) == len(list) {
		return fmt.Errorf("the state has no %s", name)
	}
	state["resources"] = left
	var err error
	members["tfstate"], err = json.Marshal(state)
	return err
}

func replaceIn(members map[string][]byte, member, old, with string) error {
	var indented bytes.Buffer // OpenTofu writes states in one line
	if member == "tfstate" && json.Indent(&indented, members[member], "", "  ") == nil {
		members[member] = indented.Bytes()
	}
	if !bytes.Contains(members[member], []byte(old)) {
		return fmt.Errorf("%s has no %q", member, old)
	}
	members[member] = bytes.ReplaceAll(members[member], []byte(old), []byte(with))
	return nil
}

func appendField(to []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(bytes.Clone(to), number, protowire.BytesType), content)
}

func withoutField(message []byte, number protowire.Number) (left []byte) {
	for len(message) > 0 {
		n, _, length := protowire.ConsumeField(message)
		if length < 0 {
			panic("not a message")
		}
		if n != number {
			left = append(left, message[:length]...)
		}
		message = message[length:]
	}
	return left
}

// forge rewrites the plan file name.
func forge(name, how string) error {
	archive, err := zip.OpenReader(name)
	if err != nil {
		return err
	}
	defer archive.Close()
	members := map[string][]byte{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			return err
		}
		if members[f.Name], err = io.ReadAll(r); err != nil {
			return err
		}
		_ = r.Close()
	}
	if forgers[how] == nil {
		return fmt.Errorf("nobody knows how to forge %s", how)
	}
	if err := forgers[how](members); err != nil {
		return err
	}
	var forged bytes.Buffer
	w := zip.NewWriter(&forged)
	for name, data := range members {
		member, err := w.Create(name)
		if err != nil {
			return err
		}
		if _, err := member.Write(data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, forged.Bytes(), 0o600)
}

// forgerArgument makes this program a forger: it is followed by how and the file.
const forgerArgument = "-forge-plan-file"

func init() {
	programs[forgerArgument] = func(arguments []string) error { return forge(arguments[1], arguments[0]) }
}

// forgedRoot has a variable of each kind, a module with an override, and code in
// JSON.
var forgedRoot = map[string]string{
	"infra/main.tf": `variable "region" { type = string }
variable "size" { default = 4 }
variable "text" {}
variable "list" { type = list(string) }
variable "object" { type = object({ a = number, b = optional(string) }) }
variable "any" { type = any }
variable "big" { type = number }
variable "empty" { default = null }
module "m" {
  source = "../modules/m"
  region = var.region
}
`,
	"infra/more.tf.json":                `{"locals": {"more": 1}}`,
	"infra/terraform.tfvars":            "region = \"xx\"\ntext = \"a\\n\\u00fc$${x}\"\nlist = [\"a\", null]\nobject = { a = 1 }\nundeclared = 1\nbig = 0.1\nempty = null\n",
	"infra/a.auto.tfvars.json":          `{"region": "eu", "any": {"a": [1, 2.5, {}, null, true]}, "object": {"a": 1, "b": "b"}}`,
	"infra/b.auto.tfvars":               "big = 12345678901234567890123.5\n",
	"modules/m/main.tf":                 "variable \"region\" {}\nresource \"terraform_data\" \"x\" {\n  input = var.region\n}\n",
	"modules/m/b_override.tf":           "resource \"terraform_data\" \"x\" {\n  triggers_replace = 1\n}\n",
	"modules/unused/main.tf":            "x {",
	"infra/tests/setup.tftest.hcl":      "run \"setup\" {\n  module {\n    source = \"./tests/helper\"\n  }\n}\n",
	"infra/tests/helper/helper.tf":      "locals {\n  x = 1\n}\n",
	"infra/" + rootmodule.VariablesFile: `{"region": "eu"}`,
}

// A plan file whose backend, variables, code, lock file or kind are not those of
// the run is refused, in the pull request as in the apply, and so is one that has
// what nobody here knows. The same file is applied if it is only packed again.
func TestForgedPlanFiles(t *testing.T) {
	t.Parallel()
	l := newForgerLab(t)
	in := func(a *protocol.Assignment) {
		a.Dir = "infra"
		a.Env = map[string]string{"TF_VAR_text": "from the environment, and no less", "TF_VAR_list": `["x"]`}
	}
	number := 0
	for how, c := range map[string]struct {
		says  string
		cause holdfast.Reason
	}{
		"variables":              {says: `another value of variable "region"`},
		"another variable":       {says: `a value of variable "size"`},
		"no variable":            {says: `lacks the value of variable`},
		"an apply-time variable": {says: `variable`},
		"backend":                {says: `a backend of type "local", the run has "http"`},
		"backend twice":          {says: "twice"},
		"workspace":              {says: `the workspace "another"`},
		"mode":                   {says: "another kind of plan"},
		"targets":                {says: "limited to targets"},
		"actions":                {says: "invokes actions", cause: "UnreadablePlan"},
		"deferred":               {says: "defers changes", cause: "UnreadablePlan"},
		"unknown":                {says: "field 99", cause: "UnreadablePlan"},
		"lock file":              {says: "another lock file"},
		"code of a module":       {says: "lacks modules/m/b_override.tf"},
		"JSON code":              {says: "lacks infra/more.tf.json"},
		"more code":              {says: "not of this root module"},
		"a module":               {says: "not of this root module"},
		"an unknown member":      {says: "tfmore"},
		"no plan":                {says: "no tfplan"},
		"half of a plan":         {says: "EOF"},
	} {
		number++
		id := fmt.Sprintf("plan-%d", number)
		t.Run(how, func(t *testing.T) {
			l.in(t)
			l.put("forge", how)
			planned, _ := l.run(id, holdfast.RunPlan, forgedRoot, in)
			cause := c.cause
			if cause == "" {
				cause = "UntrustedPlan"
			}
			l.want(planned, id, holdfast.RunErrored, cause)
			if f := planned.Failure; !strings.Contains(f.Summary, c.says) || f.Transient {
				t.Errorf("failure %+v, which does not say %q", f, c.says)
			}
		})
	}

	l.put("forge", "nothing, but repacked")
	planned, _ := l.run("plan", holdfast.RunPlan, forgedRoot, in)
	l.want(planned, "plan", holdfast.RunPlanned, "")
	applied, _ := l.run("apply", holdfast.RunApply, forgedRoot, func(a *protocol.Assignment) {
		in(a)
		a.Reviews = review("plan", planned)
	})
	l.want(applied, "apply", holdfast.RunApplied, "")
}

// A prior state in a plan file that is not what a refresh can have made of the
// run's state is refused, or what it would do to the state is shown, counted and
// compared: an object cannot leave the state without a word.
func TestForgedPriorStates(t *testing.T) {
	t.Parallel()
	root := map[string]string{"main.tf": "resource \"terraform_data\" \"keep\" {\n  input = 1\n}\n"}
	more := map[string]string{"main.tf": root["main.tf"] + "resource \"terraform_data\" \"new\" {}\n"}
	l := newForgerLab(t)
	l.apply("first", root)
	honest, _ := l.run("plan", holdfast.RunPlan, more, nil)
	l.want(honest, "plan", holdfast.RunPlanned, "")
	number := 0
	for how, c := range map[string]struct {
		says string
		want []string // what the plan shows
	}{
		"a lost object":    {want: []string{"terraform_data.keep forget", "terraform_data.new create"}},
		"another id":       {want: []string{"terraform_data.keep update", "terraform_data.new create"}},
		"a tainted object": {says: "in another condition"},
		"another name":     {says: "terraform_data.kept in its state"},
		"another lineage":  {says: "another state"},
		"members twice":    {says: `"RESOURCES" is not a member`},

		"a member in another letter": {says: "is not a member"},
		"moved to a data source":     {want: []string{"terraform_data.keep forget", "terraform_data.new create"}},
	} {
		number++
		id := fmt.Sprintf("apply-%d", number)
		t.Run(how, func(t *testing.T) {
			l.in(t)
			l.put("forge", how)
			// What was reviewed was honest, the plan of the apply is not.
			applied, _ := l.run(id, holdfast.RunApply, more, func(a *protocol.Assignment) { a.Reviews = review("plan", honest) })
			if c.says != "" {
				l.want(applied, id, holdfast.RunErrored, "UntrustedPlan")
				if !strings.Contains(applied.Failure.Summary, c.says) {
					t.Errorf("failure %+v, which does not say %q", applied.Failure, c.says)
				}
				return
			}
			l.want(applied, id, holdfast.RunPlanned, "PlanChanged")
			var got []string
			for _, change := range l.plan(id).Changes {
				got = append(got, change.Address+" "+string(change.Action))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the plan shows %q, want %q", got, c.want)
			}
		})
	}
}

// An engine that reports success, and has written no state, has recorded nothing.
func TestApplyThatWritesNoState(t *testing.T) {
	t.Parallel()
	l := newScriptLab(t, `[ "$1" = apply ] || exec "$engine" "$@"
echo "terraform_data.x: Creation complete after 0s"
`)
	root := map[string]string{"main.tf": "resource \"terraform_data\" \"x\" {}\n"}
	planned, _ := l.run("plan-1", holdfast.RunPlan, root, nil)
	l.want(planned, "plan-1", holdfast.RunPlanned, "")
	applied, _ := l.run("apply-1", holdfast.RunApply, root, func(a *protocol.Assignment) { a.Reviews = review("plan-1", planned) })
	l.want(applied, "apply-1", holdfast.RunErrored, "UntrustedPlan")
	if f := applied.Failure; !strings.Contains(f.Summary, "no state was written") || f.Hint == "" || !applied.Applying {
		t.Errorf("result %+v, failure %+v", applied, f)
	}
}
