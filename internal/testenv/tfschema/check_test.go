package tfschema_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/internal/testenv/tfschema"
)

const cloud = `{
  "provider": "cloud", "source": "acme/cloud", "version": "2.3.0",
  "config": {
    "attributes": {"region": "optional string", "access": "optional object({host=string,token=optional(string)})"},
    "blocks": {"features": {"nesting": "list", "min": 1, "attributes": {"purge": "optional bool"}}}
  },
  "resources": {
    "cloud_cluster": {
      "attributes": {
        "id": "computed string",
        "name": "required string",
        "size": "optional number",
        "private": "optional bool",
        "zones": "optional set(string)",
        "labels": "optional map(string)",
        "set": "optional list(object({name=string,value=optional(string)}))",
        "endpoint": "computed string",
        "access": "computed list(object({token=string}))"
      },
      "blocks": {
        "network": {"nesting": "list", "min": 1, "max": 1, "attributes": {"cidr": "required string"}},
        "taint": {"nesting": "set", "attributes": {"key": "required string"}},
        "timeouts": {"nesting": "single", "attributes": {"create": "optional string"}}
      }
    }
  },
  "data_sources": {
    "cloud_zones": {"attributes": {"names": "computed list(string)"}}
  }
}`

const head = `terraform {
  required_providers {
    cloud = {
      source  = "acme/cloud"
      version = "~> 2.1"
    }
  }
}
`

// check checks a module whose main.tf is the text, and returns the faults in it;
// those of another file only if there is one alone.
func check(t *testing.T, text string) []string {
	t.Helper()
	fsys := fstest.MapFS{
		"facts/cloud.json": {Data: []byte(cloud)},
		"m/main.tf":        {Data: []byte(text)},
		"m/versions.tf":    {Data: []byte(head)},
		"child/main.tf": {Data: []byte(`variable "name" { type = string }
variable "size" {
  type    = number
  default = 1
}
output "url" { value = "https://${var.name}/${var.size}" }
`)},
	}
	facts, err := tfschema.Load(fsys, "facts")
	if err != nil {
		t.Fatal(err)
	}
	_, faults := tfschema.Check(fsys, "m", facts)
	var got []string
	for _, f := range faults {
		if f.File == "m/main.tf" || len(faults) == 1 {
			got = append(got, strings.TrimPrefix(f.String(), "m/"))
		}
	}
	return got
}

func TestCheckAccepts(t *testing.T) {
	t.Parallel()

	got := check(t, `variable "pools" {
  type = list(object({
    name   = string
    taints = optional(list(object({ key = string })), [])
    size   = optional(number)
  }))
  default = [{ name = "a", taints = [{ key = "b" }] }]

  validation {
    condition     = alltrue([for p in var.pools : p.size != null ? p.size > 0 : true])
    error_message = "No."
  }
}

variable "private" {
  type    = bool
  default = false
}

data "cloud_zones" "all" {}

locals {
  pools = { for p in var.pools : p.name => p }
  zones = var.private ? [] : slice(sort(data.cloud_zones.all.names), 0, 2)
  token = one(cloud_cluster.by_count[*].access[0].token)
}

resource "cloud_cluster" "this" {
  for_each = local.pools

  name    = "x-${each.key}"
  size    = each.value.size
  private = var.private
  zones   = local.zones
  labels  = merge({ a = 1, b = true }, { (each.key) = "c" })
  set     = concat([{ name = "a", value = "b" }], [{ name = "c", value = jsonencode({ x = [1] }) }])

  network {
    cidr = cidrsubnet("10.0.0.0/8", 8, 1)
  }

  dynamic "taint" {
    for_each = each.value.taints

    content {
      key = taint.value.key
    }
  }

  timeouts {
    create = "1h"
  }

  lifecycle {
    ignore_changes = [size, network[0].cidr, labels["a"]]

    precondition {
      condition     = length(local.zones) > 0
      error_message = "No zones: ${join(", ", local.zones)}."
    }
    postcondition {
      condition     = self.endpoint != ""
      error_message = "No endpoint."
    }
  }

  depends_on = [data.cloud_zones.all]
}

resource "cloud_cluster" "by_count" {
  count = var.private ? 1 : 0
  name  = format("n-%d", count.index)

  dynamic "network" {
    for_each = { a = "10.0.0.0/8" }
    iterator = net

    content {
      cidr = net.value
    }
  }

  provisioner "local-exec" {
    when    = destroy
    command = "echo ${self.id}"
  }
}

resource "terraform_data" "note" {
  input = { token = local.token }
}

module "child" {
  source = "../child"
  name   = values(cloud_cluster.this)[0].network[0].cidr
}

output "urls" {
  value = [module.child.url, terraform_data.note.output.token, try(cloud_cluster.by_count[0].access[0].token, null)]
}
`)
	if diff := cmp.Diff([]string(nil), got); diff != "" {
		t.Error(diff)
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()

	// A resource with the text inside, which begins on line 2.
	resource := func(inner string) string {
		return "resource \"cloud_cluster\" \"this\" {\n" + inner + "\nname = \"a\"\nnetwork {\ncidr = \"b\"\n}\n}\n"
	}
	cases := map[string]struct {
		text string
		want []string
	}{
		"no syntax":              {"resource {", []string{"main.tf:1:10: Unclosed configuration block: There is no closing brace for this block before the end of the file. This may be caused by incorrect brace nesting elsewhere in this file."}},
		"unknown top block":      {"resorce \"a\" \"b\" {}\n", []string{`main.tf:1:1: unknown block "resorce", did you mean "resource"?`}},
		"unknown resource":       {"resource \"cloud_clusters\" \"a\" {}\n", []string{`main.tf:1:10: nothing is known about the resource "cloud_clusters", did you mean "cloud_cluster"? (if it is a new one, generate the facts anew)`}},
		"unknown provider":       {"resource \"other_thing\" \"a\" {}\n", []string{`main.tf:1:10: nothing is known about the provider "other"`}},
		"unknown argument":       {resource("sise = 3"), []string{`main.tf:2:1: unknown argument "sise", did you mean "size"?`}},
		"computed argument":      {resource("endpoint = \"a\""), []string{`main.tf:2:1: the argument "endpoint" cannot be set: the provider sets it`}},
		"missing argument":       {"resource \"cloud_cluster\" \"this\" {\n  network {\n  }\n}\n", []string{`main.tf:1:1: the required argument "name" is missing`, `main.tf:2:3: the required argument "cidr" is missing`}},
		"null argument":          {"resource \"cloud_cluster\" \"this\" {\n  name = null\n  network {\n    cidr = \"a\"\n  }\n}\n", []string{`main.tf:2:10: the required argument "name" is null`}},
		"missing block":          {"resource \"cloud_cluster\" \"this\" {\n  name = \"a\"\n}\n", []string{`main.tf:1:1: the required block "network" is missing`}},
		"block twice":            {resource("network {\ncidr = \"c\"\n}"), []string{`main.tf:1:1: the block "network" may stand here once, not 2 times`}},
		"unknown block":          {resource("taints {\nkey = \"a\"\n}"), []string{`main.tf:2:1: unknown block "taints", did you mean "taint"?`}},
		"block for argument":     {resource("labels {\n}"), []string{`main.tf:2:1: "labels" is an argument, not a block: write labels = ...`}},
		"argument for block":     {resource("taint = []"), []string{`main.tf:2:1: "taint" is a block, not an argument: no "=" before its brace`}},
		"unknown dynamic block":  {resource("dynamic \"taints\" {\nfor_each = []\ncontent {}\n}"), []string{`main.tf:2:9: unknown block "taints", did you mean "taint"?`}},
		"in a dynamic block":     {resource("dynamic \"taint\" {\nfor_each = [{ k = 1 }]\ncontent {\nkey = taint.value.q\n}\n}"), []string{`main.tf:5:18: there is no attribute "q"`}},
		"iterator elsewhere":     {resource("labels = { a = taint.value }"), []string{`main.tf:2:16: taint.value is not declared`}},
		"literal of wrong type":  {resource("size = \"big\""), []string{"main.tf:2:8: wrong type: a number is required"}},
		"list for a string":      {resource("zones = \"a\""), []string{"main.tf:2:9: wrong type: set of string required, but have string"}},
		"variable of wrong type": {resource("size = var.x") + "variable \"x\" {\n  type = list(string)\n}\n", []string{"main.tf:2:8: wrong type: number required, but have list of string"}},
		"local of wrong type":    {resource("zones = local.x") + "locals {\n  x = { a = 1 }\n}\n", []string{"main.tf:2:9: wrong type: set of string required"}},
		"branch of wrong type":   {resource("size = var.x ? 1 : [2]") + "variable \"x\" {\n  type = bool\n}\n", []string{"main.tf:2:8: the two results of the condition have no type in common: number and tuple"}},
		"object's unknown key":   {resource("set = [{ name = \"a\", valeu = \"b\" }]"), []string{`main.tf:2:22: unknown attribute "valeu", did you mean "value"?`}},
		"object's quoted key":    {resource("set = [{ name = \"a\", \"valeu\" = \"b\" }]"), []string{`main.tf:2:22: unknown attribute "valeu", did you mean "value"?`}},
		"object's missing key":   {resource("set = [{ value = \"b\" }]"), []string{`main.tf:2:7: wrong type: element 0: attribute "name" is required`}},
		"unknown attribute":      {resource("labels = { a = cloud_cluster.this.endpont }"), []string{`main.tf:2:34: there is no attribute "endpont", did you mean "endpoint"?`}},
		"list as an object":      {resource("labels = { a = cloud_cluster.this.access.token }"), []string{"main.tf:2:41: Unsupported attribute: Can't access attributes on a list of objects. Did you mean to access attribute \"token\" for a specific element of the list, or across all elements of the list?"}},
		"count without index":    {"output \"a\" {\n  value = cloud_cluster.many.id\n}\n" + "resource \"cloud_cluster\" \"many\" {\ncount = 1\nname = \"a\"\nnetwork {\ncidr = \"a\"\n}\n}\n", []string{"main.tf:2:29: Unsupported attribute: Can't access attributes on a list of objects. Did you mean to access attribute \"id\" for a specific element of the list, or across all elements of the list?"}},
		"unknown resource name":  {"output \"a\" {\n  value = cloud_cluster.ths.id\n}\n" + resource(""), []string{`main.tf:2:11: cloud_cluster.ths is not declared, did you mean "this"?`}},
		"unknown variable":       {resource("size = var.nodes"), []string{`main.tf:2:8: variable "nodes" is not declared`}},
		"unknown local":          {resource("size = local.nodes"), []string{`main.tf:2:8: local value "nodes" is not declared`}},
		"unknown data source":    {resource("zones = data.cloud_zones.all.names"), []string{"main.tf:2:9: data.cloud_zones.all is not declared"}},
		"unused local":           {resource("") + "locals {\n  a = 1\n}\n", []string{`main.tf:9:3: local value "a" is not used`}},
		"local of itself":        {"locals {\n  a = local.a\n}\noutput \"a\" {\n  value = local.a\n}\n" + resource(""), []string{`main.tf:2:7: local value "a" refers to itself`}},
		"each without for_each":  {resource("labels = { a = each.key }"), []string{"main.tf:2:16: each means nothing here"}},
		"for_each of a list":     {resource("for_each = [\"a\"]"), []string{"main.tf:2:12: for_each takes a map or a set of strings, not tuple"}},
		"each of wrong type":     {resource("for_each = { a = [1] }\nsize = each.value"), []string{"main.tf:3:8: wrong type: number required, but have tuple"}},
		"in an untaken branch":   {resource("size = true ? 1 : var.q"), []string{`main.tf:2:19: variable "q" is not declared`}},
		"in a for":               {resource("zones = [for z in [{ n = \"a\" }] : z.m]"), []string{`main.tf:2:36: there is no attribute "m"`}},
		"in a splat":             {"output \"a\" {\n  value = cloud_cluster.this.access[*].tokn\n}\n" + resource(""), []string{`main.tf:2:39: there is no attribute "tokn", did you mean "token"?`}},
		"unknown function":       {resource("labels = tomapp({})"), []string{`main.tf:2:10: there is no function "tomapp", did you mean "tomap"?`}},
		"wrong function call":    {resource("name2 = lower([])"), []string{`main.tf:2:1: unknown argument "name2", did you mean "name"?`, "main.tf:2:15: wrong argument of lower: string required, but have tuple"}},
		"too many arguments":     {resource("labels = { a = lower(\"a\", \"b\") }"), []string{"main.tf:2:16: lower takes 1 arguments, not 2"}},
		"ignored changes":        {resource("lifecycle {\nignore_changes = [sice, endpoint, network[0].cdr]\n}"), []string{`main.tf:3:19: there is no attribute "sice", did you mean "size"?`, `main.tf:3:25: "endpoint" is set by the provider alone: there is no change to ignore`, `main.tf:3:45: there is no attribute "cdr", did you mean "cidr"?`}},
		"unknown setting":        {resource("lifecycle {\nprevent_destro = true\n}"), []string{`main.tf:3:1: a lifecycle block has no argument "prevent_destro", did you mean "prevent_destroy"?`}},
		"variable's default":     {resource("size = var.x") + "variable \"x\" {\n  type = number\n  default = \"many\"\n}\n", []string{`main.tf:10:13: the default of variable "x" is not of its type: a number is required`}},
		"module's input":         {"module \"c\" {\n  source = \"../child\"\n  nam = \"a\"\n}\n" + resource(""), []string{`main.tf:1:1: the module needs the input "name"`, `main.tf:3:3: the module has no variable "nam", did you mean "name"?`}},
		"module's input's type":  {"module \"c\" {\n  source = \"../child\"\n  name = \"a\"\n  size = []\n}\n" + resource(""), []string{"main.tf:4:10: wrong type: number required, but have tuple"}},
		"module's output":        {"module \"c\" {\n  source = \"../child\"\n  name = \"a\"\n}\noutput \"a\" {\n  value = module.c.uri\n}\n" + resource(""), []string{`main.tf:6:19: there is no attribute "uri", did you mean "url"?`}},
		"provider's argument":    {"provider \"cloud\" {\n  regoin = \"a\"\n  features {}\n}\n", []string{`main.tf:2:3: unknown argument "regoin", did you mean "region"?`}},
		"provider's block":       {"provider \"cloud\" {\n  features {\n    prge = true\n  }\n}\n", []string{`main.tf:3:5: unknown argument "prge", did you mean "purge"?`}},
		"provider lacks a block": {"provider \"cloud\" {\n  region = \"a\"\n}\n", []string{`main.tf:1:1: the required block "features" is missing`}},
		"provider's reference":   {"provider \"cloud\" {\n  region = var.x\n  features {}\n}\n", []string{`main.tf:2:12: variable "x" is not declared`}},
		"provider's object":      {"provider \"cloud\" {\n  access = { hots = \"a\", host = \"b\" }\n  features {}\n}\n", []string{`main.tf:2:14: unknown attribute "hots", did you mean "host"?`}},
		"provider's type":        {"provider \"cloud\" {\n  alias  = \"x\"\n  region = [1]\n  features {}\n}\n", []string{"main.tf:3:12: wrong type: string required, but have tuple"}},
		"unknown provider block": {"provider \"clod\" {\n}\n" + resource(""), []string{`main.tf:1:10: nothing is known about the provider "clod", did you mean "cloud"?`}},
		"unused provider":        {"output \"a\" {\n  value = 1\n}\n", []string{`versions.tf:3:5: the provider "cloud" is required, but not used`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, check(t, tc.text)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCheckHoldsVersionsToTheFacts(t *testing.T) {
	t.Parallel()

	for version, want := range map[string]string{
		"~> 2.1":   "",
		"~> 3.0":   `the facts about "cloud" are of 2.3.0, which "~> 3.0" does not allow`,
		"nonsense": `the version of "cloud": malformed constraint: nonsense`,
	} {
		fsys := fstest.MapFS{
			"facts/cloud.json": {Data: []byte(cloud)},
			"m/main.tf":        {Data: []byte(strings.Replace(head, "~> 2.1", version, 1) + "data \"cloud_zones\" \"all\" {}\n")},
		}
		facts, err := tfschema.Load(fsys, "facts")
		if err != nil {
			t.Fatal(err)
		}
		_, faults := tfschema.Check(fsys, "m", facts)
		got := ""
		if len(faults) > 0 {
			got = faults[0].Message
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}

func TestLoadRefusesWhatIsNotAFact(t *testing.T) {
	t.Parallel()

	for _, attr := range []string{`"string"`, `"required strin"`, `"optional list("`, `3`} {
		fsys := fstest.MapFS{"f/a.json": {Data: []byte(`{"provider": "a", "resources": {"a_b": {"attributes": {"c": ` + attr + `}}}}`)}}
		if _, err := tfschema.Load(fsys, "f"); err == nil {
			t.Errorf("%s is taken for a fact", attr)
		}
	}
}
