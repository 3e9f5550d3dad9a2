package templates_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/rootmodule"
)

const secretModule = `variable "password" {
  sensitive = true
}
variable "token" {
  type      = string
  sensitive = true
}
variable "open" {
  type = string
}
variable "vault" {
  type = object({ secret = object({ env = string }) })
}
`

// TestSecretsOfAModule: a document's variables refer to secrets as those of
// templates do; where the code has an object of that shape, it is one.
func TestSecretsOfAModule(t *testing.T) {
	t.Parallel()

	files := map[string]string{"infra/own/main.tf": secretModule}
	doc := clusterOf(t, "infra/own/cluster.yaml", moduleCluster+
		"  variables: {password: {secret: {env: DB}}, token: {secret: {store: vault, key: a}}, vault: {secret: {env: x}}, open: x}\n")
	root := resolve(t, tree(files), doc)
	want := map[string]rootmodule.SecretRef{"password": {Env: "DB"}, "token": {Store: "vault", Key: "a"}}
	if diff := cmp.Diff(want, root.Secrets); diff != "" {
		t.Error(diff)
	}
	made := contents(t, root)
	var written map[string]rootmodule.SecretRef
	if err := json.Unmarshal([]byte(made["infra/own/"+rootmodule.SecretFile]), &written); err != nil || !maps.Equal(written, want) {
		t.Errorf("%s is %q: %v", rootmodule.SecretFile, made["infra/own/"+rootmodule.SecretFile], err)
	}
	if got := made["infra/own/"+rootmodule.VariablesFile]; got != "{\n  \"open\": \"x\",\n  \"vault\": {\n    \"secret\": {\n      \"env\": \"x\"\n    }\n  }\n}\n" {
		t.Errorf("%s is %s", rootmodule.VariablesFile, got)
	}
	other := clusterOf(t, "infra/own/cluster.yaml", moduleCluster+
		"  variables: {password: {secret: {env: DB2}}, token: {secret: {store: vault, key: a}}, vault: {secret: {env: x}}, open: x}\n")
	if resolve(t, tree(files), other).Digest.Equal(root.Digest) {
		t.Error("another reference is the same source")
	}
}

func TestSecretsOfAModuleFaults(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		variables string
		files     map[string]string
		want      []string
	}{
		"not declared sensitive": {
			"{open: {secret: {env: X}}}", nil,
			[]string{"infra/own/cluster.yaml:8:15: variable open refers to a secret, and infra/own does not declare it as sensitive (add sensitive = true to its declaration)"},
		},
		"no such way": {
			"{token: {secret: {env: X, store: y}}}", nil,
			[]string{"infra/own/cluster.yaml:8:31: token refers to a secret: say where its value is, such as {secret: {env: DB_PASSWORD}} (exactly one of env, file and store)"},
		},
		"beside a file of the code": {
			"{token: {secret: {env: X}}}",
			map[string]string{"infra/own/" + rootmodule.SecretFile: `{"password": {"env": "Y"}}`},
			[]string{"infra/own/cluster.yaml:8:15: variable token refers to a secret, in addition to infra/own/holdfast_secrets.json (write all references in one of the two)"},
		},
		"a file would win": {
			"{token: {secret: {env: X}}}",
			map[string]string{"infra/own/a.auto.tfvars": "open = \"x\"\ntoken = \"y\"\n", "infra/own/terraform.tfvars.json": `{"token": "z"}`},
			[]string{
				"infra/own/a.auto.tfvars:2: variable token is secret, and the engine would take this value (remove it here)",
				"infra/own/terraform.tfvars.json: variable token is secret, and the engine would take this value (remove it here)",
			},
		},
		"a file that cannot be read": {
			"{token: {secret: {env: X}}}",
			map[string]string{"infra/own/a.auto.tfvars": "open = \"x\"\ntoken = " + strings.Repeat("[", 900_000)},
			[]string{"infra/own/a.auto.tfvars:2: expressions are nested deeper than 1,000 levels"},
		},
		"a file would win over one of the code": {
			"{open: x}",
			map[string]string{"infra/own/a.auto.tfvars": "token = \"y\"\n", "infra/own/" + rootmodule.SecretFile: `{"token": {"env": "Y"}}`},
			[]string{"infra/own/a.auto.tfvars:1: variable token is secret, and the engine would take this value (remove it here)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"infra/own/main.tf": secretModule}
			maps.Copy(files, tc.files)
			doc := clusterOf(t, "infra/own/cluster.yaml", moduleCluster+"  variables: "+tc.variables+"\n")
			wantFaults(t, resolveFaults(t, tree(files), doc), tc.want...)
		})
	}
}
