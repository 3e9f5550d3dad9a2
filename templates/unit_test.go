package templates_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
)

const unitCluster = `apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: app}
spec:
  project: p
  environment: e
  module: {path: live/prod/app}
`

func unitFiles() map[string]string {
	return map[string]string{
		"live/root.hcl": `inputs = { region = "eu" }
remote_state {
  backend  = "s3"
  generate = { path = "backend.tf", if_exists = "overwrite_terragrunt" }
  config = {
    bucket = "acme"
    key    = "${path_relative_to_include()}/terraform.tfstate"
  }
}
`,
		"live/prod/app/terragrunt.hcl": `include "root" { path = find_in_parent_folders("root.hcl") }
terraform { source = "../../../modules//app" }
`,
		"live/prod/app/.terraform.lock.hcl": "# lock",
		"live/prod/other/terragrunt.hcl":    "inputs = {}\n",
		"modules/app/main.tf":               "variable \"size\" { type = number }\nmodule \"part\" { source = \"../part\" }\n",
		"modules/part/main.tf":              "",
		"modules/other/main.tf":             "",
		"clusters/app.yaml":                 unitCluster,
	}
}

// TestResolveUnit: a bundle has what the unit is made of and nothing else, and its state is
// known before Terragrunt runs.
func TestResolveUnit(t *testing.T) {
	t.Parallel()
	root := resolve(t, tree(unitFiles()), clusterOf(t, "clusters/app.yaml", unitCluster+"  variables: {size: 3}\n"))
	if root.Dir != "live/prod/app" || root.OwnState || root.StateLocation != "s3:bucket=acme,key=prod/app/terraform.tfstate" {
		t.Errorf("root %q, own %v, state %q", root.Dir, root.OwnState, root.StateLocation)
	}
	var names []string
	got := contents(t, root)
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{
		"live/prod/app/.terraform.lock.hcl", "live/prod/app/holdfast.auto.tfvars.json", "live/prod/app/" + rootmodule.UnitFile,
		"live/prod/app/terragrunt.hcl", "live/root.hcl", "modules/app/main.tf", "modules/part/main.tf",
	}, names); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
	if !strings.Contains(got["live/prod/app/"+rootmodule.UnitFile], `required_version = "= 0.0.0"`) {
		t.Errorf("an older agent would plan it:\n%s", got["live/prod/app/"+rootmodule.UnitFile])
	}
}

// TestUnitIsAffected: by what it is made of, what it looks for and does not find, and nothing
// else.
func TestUnitIsAffected(t *testing.T) {
	t.Parallel()
	doc := clusterOf(t, "clusters/app.yaml", unitCluster)
	was := resolve(t, tree(unitFiles()), doc)
	for name, affects := range map[string]bool{
		"live/root.hcl": true, "live/prod/app/terragrunt.hcl": true, "modules/part/main.tf": true, "live/prod/root.hcl": true,
		"modules/other/main.tf": false, "live/prod/other/terragrunt.hcl": false,
	} {
		files := maps.Clone(unitFiles())
		files[name] += "# changed\n"
		if name == "live/prod/root.hcl" {
			files[name] = files["live/root.hcl"] + "# nearer\n"
		}
		if now := resolve(t, tree(files), doc); (now.Digest != was.Digest) != affects {
			t.Errorf("%s: digest changes: %v, want %v", name, now.Digest != was.Digest, affects)
		}
	}
	for _, name := range []string{"live/root.hcl", "live/prod/root.hcl", "live/prod/app", "modules/app", "modules/part"} {
		if !slices.Contains(was.Reads, name) {
			t.Errorf("%s is not among what it depends on: %v", name, was.Reads)
		}
	}
}

// TestUnitWithoutRemoteState: its state is Holdfast's, or where the document says.
func TestUnitWithoutRemoteState(t *testing.T) {
	t.Parallel()
	files := unitFiles()
	files["live/root.hcl"] = "inputs = {}\n"
	if root := resolve(t, tree(files), clusterOf(t, "clusters/app.yaml", unitCluster)); !root.OwnState {
		t.Errorf("state %q", root.StateLocation)
	}
	root := resolve(t, tree(files), clusterOf(t, "clusters/app.yaml", unitCluster+"  state: {type: s3, bucket: b, key: k}\n"))
	if root.StateLocation != "s3:bucket=b,key=k" {
		t.Errorf("state %q", root.StateLocation)
	}
}

// TestFaultsOfUnits: where two things are said of one, and what could change under the same
// words.
func TestFaultsOfUnits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, module, spec, want string }{
		"state twice":       {spec: "  state: {type: s3, bucket: b, key: k}\n", want: "spec.state in addition to the remote_state in live/root.hcl:2"},
		"backend twice":     {module: "terraform {\n  backend \"s3\" {}\n}\n", want: "remote_state in addition to the backend \"s3\""},
		"unknown variable":  {spec: "  variables: {sise: 3}\n", want: "module modules/app declares no variable \"sise\""},
		"no module":         {config: "terraform { source = \"../../../modules//nowhere\" }\n", want: "there is no folder modules/nowhere"},
		"branch":            {config: "terraform { source = \"git::https://example.com/m.git//app\" }\n", want: "names no revision"},
		"registry":          {config: "terraform { source = \"tfr:///a/b/c\" }\n", want: "names no version"},
		"registry, a range": {config: "terraform { source = \"tfr:///a/b/c?version=~1\" }\n", want: "names no version"},
		"values elsewhere": {
			config: "terraform { source = \"git::https://example.com/m.git//app?ref=v1\" }\n", spec: "  variables: {size: 3}\n",
			want: "spec.variables of a unit whose module is not in the repository",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := unitFiles()
			if c.config != "" {
				files["live/prod/app/terragrunt.hcl"] = c.config
			}
			files["modules/app/main.tf"] += c.module
			faults := resolveFaults(t, tree(files), clusterOf(t, "clusters/app.yaml", unitCluster+c.spec))
			if !slices.ContainsFunc(faults, func(f holdfast.Fault) bool { return strings.Contains(f.Error(), c.want) }) {
				t.Errorf("got %v, want %s", faults, c.want)
			}
		})
	}
	files := unitFiles()
	files["live/prod/app/terragrunt.hcl"] = "terraform { source = \"tfr:///a/b/c?version=1.2.3\" }\n"
	resolve(t, tree(files), clusterOf(t, "clusters/app.yaml", unitCluster))
}
