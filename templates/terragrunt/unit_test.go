package terragrunt_test

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/terragrunt"
)

// tree is a tree in memory, whose hashes are contents.
type tree struct{ fstest.MapFS }

func (t tree) Hash(name string) (string, error) {
	data, err := t.ReadFile(name)
	if err == nil {
		return string(data), nil
	}
	_, err = fs.Stat(t.MapFS, name)
	return name, err
}

func treeOf(files map[string]string) tree {
	t := tree{fstest.MapFS{}}
	for name, text := range files {
		t.MapFS[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return t
}

// base is a tree with what units are made of.
func base() map[string]string {
	return map[string]string{
		"root.hcl":              "inputs = { a = 1 }\n",
		"live/env.hcl":          "locals { env = \"prod\" }\n",
		"live/tags.yaml":        "team: payments\n",
		"modules/app/main.tf":   "",
		"live/prod/app/main.tf": "",
	}
}

const withRoot = `include "root" {
  path = find_in_parent_folders("root.hcl")
}
`

func read(t *testing.T, files map[string]string, config string) (*terragrunt.Unit, holdfast.Faults) {
	t.Helper()
	files = maps.Clone(files)
	files["live/prod/app/terragrunt.hcl"] = config
	unit, faults, err := terragrunt.Read(treeOf(files), "live/prod/app")
	if err != nil {
		t.Fatal(err)
	}
	return unit, faults
}

// TestSource: where the module of a unit is, as it is written with the functions that tell
// paths.
func TestSource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		root, config string
		dir, address string
	}{
		"next to it":                  {dir: "live/prod/app"},
		"a path":                      {config: `terraform { source = "../../../modules/app" }`, dir: "modules/app"},
		"of a package":                {config: `terraform { source = "../../../modules//app" }`, dir: "modules/app"},
		"by a local":                  {config: "locals { base = \"../../../modules\" }\nterraform { source = \"${local.base}//app\" }", dir: "modules/app"},
		"from the unit's folder":      {config: `terraform { source = "${get_terragrunt_dir()}/../../../modules//app" }`, dir: "modules/app"},
		"from a file above":           {config: `terraform { source = "${dirname(find_in_parent_folders("root.hcl"))}/modules//app" }`, dir: "modules/app"},
		"of what is included":         {root: `terraform { source = "${get_parent_terragrunt_dir()}/modules//${basename(get_terragrunt_dir())}" }`, config: withRoot, dir: "modules/app"},
		"its own goes first":          {root: `terraform { source = "./nowhere" }`, config: withRoot + `terraform { source = "../../../modules/app" }`, dir: "modules/app"},
		"a repository":                {config: `terraform { source = "git::https://example.com/m.git//app?ref=v1" }`, dir: "live/prod/app", address: "git::https://example.com/m.git//app?ref=v1"},
		"a registry, by local values": {config: "locals { v = \"1.2.3\" }\nterraform { source = \"tfr:///a/b/c?version=${local.v}\" }", dir: "live/prod/app", address: "tfr:///a/b/c?version=1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := base()
			files["root.hcl"] += c.root + "\n"
			unit, faults := read(t, files, c.config)
			if len(faults) > 0 || unit.Source.Dir != c.dir || unit.Source.Address != c.address {
				t.Errorf("got %q, %q, faults %v", unit.Source.Dir, unit.Source.Address, faults)
			}
		})
	}
}

// TestState: of the arguments of a remote state those are known that depend on the tree alone.
func TestState(t *testing.T) {
	t.Parallel()
	files := base()
	files["root.hcl"] = `locals { bucket = "acme-${get_env("STAGE")}" }
remote_state {
  backend = "s3"
  generate = {
    path      = "backend.tf"
    if_exists = "overwrite_terragrunt"
  }
  config = {
    bucket  = local.bucket
    key     = "${path_relative_to_include()}/terraform.tfstate"
    region  = "eu-west-1"
    encrypt = true
    where   = get_terragrunt_dir()
    endpoints = { s3 = "https://s3.example.com" }
  }
}
`
	unit, faults := read(t, files, withRoot)
	if len(faults) > 0 || unit.State == nil {
		t.Fatalf("faults %v", faults)
	}
	if unit.State.Backend != "s3" || unit.State.File != "backend.tf" || unit.State.Place.File != "root.hcl" {
		t.Errorf("got %+v", unit.State)
	}
	if diff := cmp.Diff(map[string]any{
		"key": "live/prod/app/terraform.tfstate", "region": "eu-west-1", "encrypt": "true", "endpoints.s3": "https://s3.example.com",
	}, unit.State.Config); diff != "" {
		t.Errorf("known (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"bucket": "local.bucket", "where": "get_terragrunt_dir()"}, unit.State.Unread); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}

// TestFiles: what a unit is made of outside of its folder, which includes what is looked for
// and is not there.
func TestFiles(t *testing.T) {
	t.Parallel()
	unit, faults := read(t, base(), withRoot+`locals {
  env  = read_terragrunt_config(find_in_parent_folders("env.hcl"))
  tags = yamldecode(file("../../tags.yaml"))
}
`)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := []string{"env.hcl", "live/env.hcl", "live/prod/env.hcl", "live/prod/root.hcl", "live/root.hcl", "live/tags.yaml", "root.hcl"}
	want = slices.DeleteFunc(want, func(name string) bool { return name == "env.hcl" }) // it is found below
	if diff := cmp.Diff(want, unit.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestRelativeNames: which folder a name is relative to is as Terragrunt has it: of file and
// the like, that of the file which says it, of all else, that of what is configured. What is read
// as another configuration includes files of its own.
func TestRelativeNames(t *testing.T) {
	t.Parallel()
	files := base()
	files["root.hcl"] = `locals {
  own   = file("of-root.txt")
  units = read_tfvars_file("../of-unit.tfvars")
}
`
	files["common/shared.hcl"] = `include "more" {
  path = "./deep/more.hcl"
}
locals {
  next = read_terragrunt_config("./deep/sub.hcl")
  dir  = fileexists("${get_terragrunt_dir()}/of-shared.txt")
  unit = fileexists("${get_original_terragrunt_dir()}/../of-original.txt")
}
`
	files["common/deep/more.hcl"] = "inputs = {\n  more = file(\"of-more.txt\")\n}\nterraform {\n  before_hook \"x\" {\n  }\n}\n"
	files["common/deep/sub.hcl"] = ""
	unit, faults := read(t, files, withRoot+`locals {
  shared = read_terragrunt_config("../../../common/shared.hcl")
}
`)
	if len(faults) != 1 || !strings.Contains(faults.Error(), "common/deep/more.hcl:5:3: hooks are not executed") {
		t.Error(faults)
	}
	want := []string{
		"common/deep/more.hcl", "common/deep/of-more.txt", "common/deep/sub.hcl", "common/of-shared.txt", "common/shared.hcl",
		"live/prod/of-original.txt", "live/prod/of-unit.tfvars", "live/prod/root.hcl", "live/root.hcl", "of-root.txt", "root.hcl",
	}
	if diff := cmp.Diff(want, unit.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestFaults: what a run would not do as it is written is refused where it is written.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ root, config, want string }{
		"dependency":            {"", "dependency \"vpc\" { config_path = \"../vpc\" }", "live/prod/app/terragrunt.hcl:1:1: a dependency reads outputs"},
		"dependency above":      {"\ndependency \"vpc\" { config_path = \"../vpc\" }", withRoot, "root.hcl:3:1: a dependency reads outputs"},
		"hook":                  {"", "terraform {\n  before_hook \"x\" {\n    commands = [\"plan\"]\n    execute = [\"true\"]\n  }\n}", "terragrunt.hcl:2:3: hooks are not executed"},
		"arguments":             {"", "terraform {\n  extra_arguments \"x\" {\n    commands = [\"plan\"]\n  }\n}", "terragrunt.hcl:2:3: extra_arguments would go past"},
		"role":                  {"", "iam_role = \"arn:x\"", "terragrunt.hcl:1:1: Terragrunt's role"},
		"engine":                {"", "engine { source = \"x\" }", "an engine of Terragrunt is not started"},
		"unknown":               {"", "something {}\n", "unknown block something"},
		"syntax":                {"", "inputs = {", "terragrunt.hcl:1:"},
		"generated backend":     {"", "generate \"b\" {\n  path = \"b.tf\"\n  if_exists = \"overwrite\"\n  contents = \"terraform { backend \\\"s3\\\" {} }\"\n}", "the generated code says where the state is"},
		"state without a file":  {"", "remote_state {\n  backend = \"s3\"\n  config = {}\n}", "remote_state has no generate"},
		"state as an attribute": {"", "remote_state = local.x", "remote_state is not a block"},
		"computed state":        {"", "remote_state {\n  backend = \"s3\"\n  generate = { path = \"b.tf\" }\n  config = local.x\n}", "where the state is, is only known to Terragrunt"},
		"source unknown":        {"", "terraform { source = get_env(\"X\") }", "the source is only known to Terragrunt"},
		"source outside":        {"", "terraform { source = \"../../../../x\" }", "the source leaves the repository"},
		"no such file":          {"", "include \"root\" { path = \"../x.hcl\" }", "there is no file live/prod/x.hcl"},
		"include unknown":       {"", "include \"root\" { path = get_env(\"X\") }", "which file is included is only known to Terragrunt"},
		"two states": {
			"remote_state {\n  backend = \"s3\"\n  generate = { path = \"b.tf\" }\n  config = {}\n}", withRoot + "include \"env\" { path = \"../../env.hcl\" }",
			"another remote_state block is in root.hcl",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := base()
			files["root.hcl"] += c.root
			if name == "two states" {
				files["live/env.hcl"] = c.root
			}
			_, faults := read(t, files, c.config)
			if !slices.ContainsFunc(faults, func(f holdfast.Fault) bool { return strings.Contains(f.Error(), c.want) }) {
				t.Errorf("got %v, want %s", faults, c.want)
			}
		})
	}
}

// TestDocumentSpeaksForTheUnit: what the configuration says of order and protection is for the
// cluster's document to say.
func TestDocumentSpeaksForTheUnit(t *testing.T) {
	t.Parallel()
	unit, _ := read(t, base(), "dependencies { paths = [\"../vpc\"] }\nprevent_destroy = true\n")
	if faults := unit.Faults(holdfast.Cluster{}); len(faults) != 2 {
		t.Errorf("got %v", faults)
	}
	if faults := unit.Faults(holdfast.Cluster{DependsOn: []string{"vpc"}, Deletion: holdfast.DeletionSettings{Protected: true}}); len(faults) > 0 {
		t.Errorf("got %v", faults)
	}
}

// TestIs: a terragrunt.hcl that only says which versions are wanted makes no unit.
func TestIs(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]bool{
		"": false, "terraform_version_constraint = \">= 1.5\"\n": false,
		"inputs = {}\n": true, "terraform {}\n": true, "inputs = {": true,
	} {
		got, err := terragrunt.Is(treeOf(map[string]string{"a/terragrunt.hcl": config}), "a")
		if err != nil || got != want {
			t.Errorf("%q: got %v, %v", config, got, err)
		}
	}
	if got, err := terragrunt.Is(treeOf(nil), "a"); err != nil || got {
		t.Errorf("no folder: got %v, %v", got, err)
	}
}

// TestExpressionsThatWouldNotEnd: locals that refer to themselves, or double one another, are
// not known.
func TestExpressionsThatWouldNotEnd(t *testing.T) {
	t.Parallel()
	text := "locals {\n  a = local.a\n  b0 = \"xxxxxxxx\"\n"
	for i := range 40 {
		text += fmt.Sprintf("  b%d = \"${local.b%d}${local.b%d}\"\n", i+1, i, i)
	}
	for _, source := range []string{"local.a", "local.b40"} {
		_, faults := read(t, base(), text+"}\nterraform { source = "+source+" }\n")
		if len(faults) != 1 {
			t.Errorf("%s: got %v", source, faults)
		}
	}
}
