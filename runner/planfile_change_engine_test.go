//go:build !race

package runner_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Fields of a plan and of the change of a resource in it.
const (
	fieldChange       = 3
	fieldOutputChange = 4
	fieldProvider     = 8
	fieldValues       = 9
	fieldAddress      = 13
)

// mapFields returns a message with other contents in the fields of a number.
func mapFields(message []byte, number protowire.Number, change func(content []byte) []byte) (made []byte) {
	for len(message) > 0 {
		n, kind, length := protowire.ConsumeField(message)
		if length < 0 {
			panic("not a message")
		}
		if n == number && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(message)
			content, _ := protowire.ConsumeBytes(message[tag:])
			made = appendField(made, number, change(content))
		} else {
			made = append(made, message[:length]...)
		}
		message = message[length:]
	}
	return made
}

// forgeChange changes a field of the change of a resource, or of an output if the
// address is its name.
func forgeChange(m map[string][]byte, address string, field protowire.Number, change func(content []byte) []byte) error {
	found := false
	of := protowire.Number(fieldChange)
	if !strings.Contains(address, ".") {
		of = fieldOutputChange
	}
	m["tfplan"] = mapFields(m["tfplan"], of, func(message []byte) []byte {
		name := protowire.Number(fieldAddress)
		if of == fieldOutputChange {
			name = 1
		}
		if !bytes.Contains(message, appendField(nil, name, []byte(address))) {
			return message
		}
		found = true
		return mapFields(message, field, change)
	})
	if !found {
		return fmt.Errorf("the plan changes no %s", address)
	}
	return nil
}

func replacing(old, with string) func([]byte) []byte {
	return func(content []byte) []byte {
		if !bytes.Contains(content, []byte(old)) {
			panic("it has no " + old)
		}
		return bytes.ReplaceAll(content, []byte(old), []byte(with))
	}
}

// hiding marks attributes as sensitive before the change.
func hiding(names ...string) func([]byte) []byte {
	return func(content []byte) []byte {
		for _, name := range names {
			content = appendField(content, 3, appendField(nil, 1, appendField(nil, 1, []byte(name))))
		}
		return content
	}
}

const (
	east = `provider["registry.terraform.io/holdfast-dev/cloud"]`
	west = east + ".west"
)

// cloudIn is an address of the provider of the cloud in the registry of the engine
// that has made the plan.
func cloudIn(m map[string][]byte, address string) string {
	if bytes.Contains(m["tfplan"], []byte("registry.opentofu.org/")) {
		return strings.Replace(address, "registry.terraform.io", "registry.opentofu.org", 1)
	}
	return address
}

func init() {
	forgers["what a deletion finds"] = func(m map[string][]byte) error {
		return forgeChange(m, "cloud_network.gone", fieldValues, func(content []byte) []byte {
			return hiding("id", "name", "status")(replacing("gone", "keep")(content))
		})
	}
	forgers["what a replacement finds"] = func(m map[string][]byte) error {
		return forgeChange(m, "cloud_network.swap", fieldValues, replacing("first", "third"))
	}
	forgers["what is hidden"] = func(m map[string][]byte) error {
		return forgeChange(m, "cloud_network.gone", fieldValues, hiding("name"))
	}
	forgers["a deletion and its state"] = func(m map[string][]byte) error {
		err := forgeChange(m, "cloud_network.gone", fieldValues, replacing("\xa4gone", "\xa4keep"))
		if err != nil {
			return err
		}
		return replaceIn(m, "tfstate", `"name": "gone",`+"\n            \"password\"", `"name": "keep",`+"\n            \"password\"")
	}
	forgers["a deletion, its state and marks"] = func(m map[string][]byte) error {
		if err := forgers["a deletion and its state"](m); err != nil {
			return err
		}
		if err := forgeChange(m, "cloud_network.gone", fieldValues, hiding("name")); err != nil {
			return err
		}
		return replaceIn(m, "tfstate", `"sensitive_attributes": [`, `"sensitive_attributes": [[{"type": "get_attr", "value": "name"}],`)
	}
	forgers["what is given"] = func(m map[string][]byte) error {
		return replaceIn(m, "tfstate", `"status": "ready"`, `"status": "forged"`)
	}
	for name, address := range map[string]string{"an update": "cloud_network.keep", "a replacement": "cloud_network.swap", "a creation": "cloud_network.new", "a deletion": "cloud_network.gone"} {
		forgers["the provider of "+name] = func(m map[string][]byte) error {
			return forgeChange(m, address, fieldProvider, func([]byte) []byte { return []byte(cloudIn(m, west)) })
		}
	}
	forgers["the provider of a state"] = func(m map[string][]byte) error {
		quoted := strings.ReplaceAll(cloudIn(m, east), `"`, `\"`)
		return replaceIn(m, "tfstate", quoted+`"`, quoted+`.west"`)
	}
	forgers["an import"] = func(m map[string][]byte) error {
		return forgeChange(m, "terraform_data.i", fieldValues, func(content []byte) []byte {
			return mapFields(content, 5, func(importing []byte) []byte {
				return mapFields(importing, 1, func([]byte) []byte { return []byte("harmless") })
			})
		})
	}
	forgers["an output that does not change"] = func(m map[string][]byte) error {
		return forgeChange(m, "same", 2, replacing("same", "evil"))
	}
	forgers["a hidden output"] = func(m map[string][]byte) error {
		m["tfplan"] = mapFields(m["tfplan"], fieldOutputChange, func(output []byte) []byte { return slices.Concat(output, []byte{0x18, 1}) })
		return nil
	}
}

const twoClouds = `
terraform {
  required_providers {
    cloud = { source = "holdfast-dev/cloud" }
  }
}
provider "cloud" { folder = "WORLD" }
provider "cloud" {
  alias  = "west"
  folder = "WORLD/west"
}
output "same" { value = "same" }
`

// What the changes of a plan file say that was before, with which configurations of
// providers they are made, what they hide, and what outputs they leave, is that of the
// state and of the code: otherwise the plan is refused, before anybody has seen it.
func TestForgedChanges(t *testing.T) {
	t.Parallel()
	first := twoClouds + `
resource "cloud_network" "keep" { name = "keep" }
resource "cloud_network" "gone" { name = "gone" }
resource "cloud_network" "swap" { name = "first" }
`
	second := twoClouds + `
resource "cloud_network" "keep" {
  name = "keep"
  size = 2
}
resource "cloud_network" "swap" { name = "second" }
resource "cloud_network" "new" { name = "new" }
output "other" { value = "other" }
`
	l := newForgerLab(t, "cloud")
	if err := os.Mkdir(filepath.Join(l.world, "west"), 0o777); err != nil {
		t.Fatal(err)
	}
	l.apply("first", map[string]string{"main.tf": first})
	number := 0
	for how, says := range map[string]string{
		"what a deletion finds":          "cloud_network.gone: somebody has changed the plan file: the former object of the change",
		"what a replacement finds":       "cloud_network.swap: somebody has changed the plan file: the former object of the change",
		"what is given":                  "cloud_network.keep: somebody has changed the plan file: the former object of the change",
		"what is hidden":                 "cloud_network.gone: somebody has changed the plan file: the change hides attributes",
		"the provider of an update":      "cloud_network.keep: somebody has changed the plan file: it has another configuration of its provider",
		"the provider of a replacement":  "cloud_network.swap: somebody has changed the plan file: it has another configuration of its provider",
		"the provider of a deletion":     "cloud_network.gone: somebody has changed the plan file: it has another configuration of its provider",
		"the provider of a creation":     "cloud_network.new: somebody has changed the plan file: it has another configuration of its provider",
		"the provider of a state":        "it has another configuration of its provider",
		"an output that does not change": "output same: somebody has changed the plan file: it is said not to change",
		"a hidden output":                "output other: somebody has changed the plan file: it hides a value",
		"nothing, but repacked":          "",
	} {
		number++
		id := fmt.Sprintf("plan-%d", number)
		t.Run(how, func(t *testing.T) {
			l.in(t)
			l.put("forge", how)
			planned, _ := l.run(id, holdfast.RunPlan, map[string]string{"main.tf": second}, nil)
			if how == "nothing, but repacked" {
				l.want(planned, id, holdfast.RunPlanned, "")
				return
			}
			l.want(planned, id, holdfast.RunErrored, "UntrustedPlan")
			if f := planned.Failure; !strings.Contains(f.Summary, says) || f.Transient {
				t.Errorf("failure %+v, want %q", f, says)
			}
		})
	}
}

// An attribute of the state that no honest refresh has changed is shown as a change
// made outside, and held against what was reviewed where it reaches a command or the
// destruction of an object. One that reaches nothing stops no apply.
func TestForgedAttributes(t *testing.T) {
	t.Parallel()
	first := twoClouds + `
resource "cloud_network" "keep" { name = "keep" }
resource "cloud_network" "gone" { name = "gone" }
`
	deleted := twoClouds + "resource \"cloud_network\" \"keep\" { name = \"keep\" }\n"
	ran := first + `
resource "terraform_data" "run" {
  provisioner "local-exec" { command = "echo ${cloud_network.keep.status} >WORLD/done" }
}
`
	keyed := func(keys string) string {
		return twoClouds + "resource \"cloud_network\" \"keep\" {\n  for_each = toset([" + keys + "])\n  name     = each.key\n" +
			"  provisioner \"local-exec\" {\n    when    = destroy\n    command = \"echo ${self.status} >WORLD/done\"\n  }\n}\n"
	}
	shared := newForgerLab(t, "cloud") // of those that end with nothing applied
	shared.apply("first", map[string]string{"main.tf": first})
	number := 0
	for name, c := range map[string]struct {
		how, code string
		first     string // empty: the usual
		drift     []string
		says      string // what the apply of an honest review says; empty: it applies
	}{
		"before a deletion": {
			how: "a deletion and its state", code: deleted, drift: []string{"cloud_network.gone: name"},
			says: `cloud_network.gone: it has changed since the review: name ("keep", reviewed was "gone")`,
		},
		"before a deletion, hidden": {
			how: "a deletion, its state and marks", code: deleted, drift: []string{"cloud_network.gone: name"},
			says: "cloud_network.gone: it has changed since the review: name",
		},
		"given to a provisioner": {
			how: "what is given", code: ran, drift: []string{"cloud_network.gone: status", "cloud_network.keep: status"},
			says: `cloud_network.keep: the value that was read has changed: status ("forged", reviewed was "ready")`,
		},
		"given to a provisioner of a deletion": {
			how: "what is given", first: keyed(`"keep", "gone"`), code: keyed(`"keep"`),
			drift: []string{`cloud_network.keep["gone"]: status`, `cloud_network.keep["keep"]: status`},
			says:  `cloud_network.keep["gone"]: read now, and not when it was reviewed`,
		},
		"given to a provisioner of what is removed": {
			how: "what is given", drift: []string{"cloud_network.gone: status", "cloud_network.keep: status"},
			code: deleted + "removed {\n  from = cloud_network.gone\n  lifecycle {\n    destroy = true\n  }\n" +
				"  provisioner \"local-exec\" {\n    when    = destroy\n    command = \"echo ${self.status} >WORLD/done\"\n  }\n}\n",
			says: "cloud_network.gone: read now, and not when it was reviewed",
		},
		"given to nothing": {
			how: "what is given", code: first + "resource \"terraform_data\" \"run\" {}\n",
			drift: []string{"cloud_network.gone: status", "cloud_network.keep: status"},
		},
	} {
		number++
		plan, again, apply := fmt.Sprintf("plan-%d", number), fmt.Sprintf("forged-%d", number), fmt.Sprintf("apply-%d", number)
		t.Run(name, func(t *testing.T) {
			l, files := shared, map[string]string{"main.tf": c.code}
			if c.first != "" || c.says == "" {
				l = newForgerLab(t, "cloud")
				l.apply("first", map[string]string{"main.tf": cmp.Or(c.first, first)})
			}
			l.in(t)
			honest, _ := l.run(plan, holdfast.RunPlan, files, nil)
			l.want(honest, plan, holdfast.RunPlanned, "")
			l.put("forge", c.how)
			defer l.remove("forge")
			forged, _ := l.run(again, holdfast.RunPlan, files, nil)
			l.want(forged, again, holdfast.RunPlanned, "")
			var drift []string
			for _, change := range l.plan(again).Drift {
				line := change.Address + ":"
				for _, a := range change.Attributes {
					line += " " + a.Path
				}
				drift = append(drift, line)
			}
			slices.Sort(drift)
			if !slices.Equal(drift, c.drift) {
				t.Errorf("it shows as drift %q, want %q", drift, c.drift)
			}
			applied, _ := l.run(apply, holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review(plan, honest) })
			if c.says == "" {
				l.want(applied, apply, holdfast.RunApplied, "")
				return
			}
			l.want(applied, apply, holdfast.RunPlanned, holdfast.ReasonPlanChanged)
			if !strings.Contains(applied.Detail, c.says) {
				t.Errorf("detail %q, want %q", applied.Detail, c.says)
			}
			for _, file := range []string{"cloud_network.keep.json", "cloud_network.gone.json"} {
				if _, err := os.Stat(filepath.Join(l.world, file)); err != nil {
					t.Errorf("an object is gone: %v", err)
				}
			}
			if _, err := os.Stat(filepath.Join(l.world, "done")); err == nil {
				t.Error("the command was executed")
			}
		})
	}
}

// An import that says another id than that of the object in the state shows both.
func TestForgedImport(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code := "import {\n  to = terraform_data.i\n  id = \"found\"\n}\nresource \"terraform_data\" \"i\" {}\n"
	l := newHostileLab(t, fmt.Sprintf("%q %s %q \"$PLAN\" || code=9", self, forgerArgument, "an import"))
	planned, _ := l.run("plan-1", holdfast.RunPlan, map[string]string{"main.tf": code}, nil)
	l.want(planned, "plan-1", holdfast.RunPlanned, "")
	if got := l.plan("plan-1").Changes; len(got) != 1 || got[0].Importing != `{"id":"harmless","object":"found"}` {
		t.Errorf("it shows %+v", got)
	}
}

// What honest plans do with objects that have drifted, moved, were deposed, tainted
// or are sensitive, with configurations of providers that modules are given, inherit or
// have, and with such that the code has changed, is planned and applied.
func TestHonestChanges(t *testing.T) {
	t.Parallel()
	l := newLab(t, "cloud")
	files := map[string]string{
		"given/m.tf":     needsCloud + "resource \"cloud_network\" \"x\" { name = \"given\" }\nmodule \"below\" { source = \"../inherits\" }\n",
		"inherits/m.tf":  needsCloud + "resource \"cloud_network\" \"x\" { name = \"inherits-${basename(path.module)}-${length(var.x)}\" }\nvariable \"x\" { default = \"\" }\nresource \"terraform_data\" \"x\" {}\n",
		"own/m.tf":       needsCloud + "provider \"cloud\" { folder = \"WORLD\" }\nprovider \"terraform\" {}\nresource \"cloud_network\" \"x\" { name = \"own\" }\nresource \"terraform_data\" \"x\" {}\nmodule \"below\" { source = \"./below\" }\n",
		"own/below/m.tf": needsCloud + "resource \"cloud_network\" \"x\" { name = \"below\" }\nresource \"terraform_data\" \"x\" {}\n",
	}
	head := strings.ReplaceAll(twoClouds, "WORLD/west", "WORLD") + `
module "given" {
  source    = "./given"
  providers = { cloud = cloud.west }
}
module "inherits" {
  source = "./inherits"
  count  = 1
  x      = "x"
}
module "own" { source = "./own" }
variable "name" {
  default   = "secret-name"
  sensitive = true
}
`
	number := 0
	plan := func(kind holdfast.RunKind, code string) (string, protocol.Result) {
		t.Helper()
		number++
		id := fmt.Sprintf("step-%d", number)
		files["main.tf"] = head + code
		planned, _ := l.run("plan-"+id, holdfast.RunPlan, files, func(a *protocol.Assignment) { a.Destroy = kind == holdfast.RunDestroy })
		l.want(planned, "plan-"+id, holdfast.RunPlanned, "")
		return id, planned
	}
	step := func(kind holdfast.RunKind, code string, want ...string) {
		t.Helper()
		id, planned := plan(kind, code)
		var got []string
		for _, change := range l.plan("plan-" + id).Changes {
			if !strings.HasPrefix(change.Address, "module.") {
				got = append(got, change.Address+" "+string(change.Action))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s shows %q, want %q", id, got, want)
		}
		applied, _ := l.run(id, kind, files, func(a *protocol.Assignment) { a.Reviews = review("plan-"+id, planned) })
		l.want(applied, id, holdfast.RunApplied, "")
	}
	drift := func(name string) {
		t.Helper()
		l.edit(name, func(object map[string]any) { object["status"], object["size"] = "odd", 3 })
	}
	const (
		net    = "resource \"cloud_network\" \"net\" { name = \"net\" }\n"
		hidden = "resource \"cloud_network\" \"hidden\" {\n  name     = var.name\n  password = \"correct-horse-battery\"\n}\n"
		each   = "resource \"cloud_network\" \"each\" {\n  for_each = toset([KEYS])\n  provider = cloud.PROVIDER\n  name     = each.key\n}\n"
		before = "resource \"cloud_network\" \"before\" {\n  name = \"NAME\"\n  lifecycle {\n    create_before_destroy = true\n  }\n}\n"
	)
	keyed := func(keys, provider string) string {
		return strings.NewReplacer("KEYS", keys, ".PROVIDER", provider).Replace(each)
	}
	named := func(name string) string { return strings.Replace(before, "NAME", name, 1) }
	tainted := "resource \"terraform_data\" \"tainted\" {\n  provisioner \"local-exec\" { command = \"test -e WORLD/well\" }\n}\n"

	step(holdfast.RunApply, net+hidden+keyed(`"a", "b"`, ".west")+named("one"), `cloud_network.before create`,
		`cloud_network.each["a"] create`, `cloud_network.each["b"] create`, "cloud_network.hidden create", "cloud_network.net create")
	// What has drifted is destroyed, with another configuration than it was made with.
	drift("cloud_network.net")
	drift("cloud_network.b")
	step(holdfast.RunApply, hidden+keyed(`"a"`, "")+named("one"), `cloud_network.each["b"] delete`, "cloud_network.net delete")
	// A sensitive one that has drifted is replaced.
	drift("cloud_network.secret-name")
	head = strings.Replace(head, "secret-name", "other-secret", 1)
	step(holdfast.RunApply, hidden+keyed(`"a"`, "")+named("one"), "cloud_network.hidden replace")
	// One stays deposed, and has drifted when it goes.
	l.put("fail.delete.one", "Busy\n")
	id, planned := plan(holdfast.RunApply, hidden+keyed(`"a"`, "")+named("two"))
	failed, _ := l.run(id, holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("plan-"+id, planned) })
	if failed.Status != holdfast.RunErrored || failed.Failure == nil {
		t.Fatalf("the deletion did not fail: %+v", failed)
	}
	l.remove("fail.delete.one")
	drift("cloud_network.one")
	id, planned = plan(holdfast.RunApply, hidden+keyed(`"a"`, "")+named("two"))
	if got := l.plan("plan-" + id).Changes; len(got) != 1 || !strings.HasPrefix(got[0].Address, "cloud_network.before (deposed object") || got[0].Action != holdfast.ActionDelete {
		t.Errorf("it shows %+v", got)
	}
	applied, _ := l.run(id, holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("plan-"+id, planned) })
	l.want(applied, id, holdfast.RunApplied, "")
	// One is tainted, and made again.
	id, planned = plan(holdfast.RunApply, hidden+keyed(`"a"`, "")+named("two")+tainted)
	if failed, _ = l.run(id, holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("plan-"+id, planned) }); failed.Status != holdfast.RunErrored {
		t.Fatalf("the provisioner did not fail: %+v", failed)
	}
	l.put("well", "")
	step(holdfast.RunApply, hidden+keyed(`"a"`, "")+named("two")+tainted, "terraform_data.tainted replace")
	drift("cloud_network.two")
	step(holdfast.RunDestroy, hidden+keyed(`"a"`, ".west")+named("two")+tainted,
		"cloud_network.before delete", `cloud_network.each["a"] delete`, "cloud_network.hidden delete", "terraform_data.tainted delete")
}

const needsCloud = `
terraform {
  required_providers {
    cloud = { source = "holdfast-dev/cloud" }
  }
}
`
