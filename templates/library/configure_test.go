package library_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/tfschema"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// inMemory is the folder of the template in memory, to be changed.
func inMemory(t *testing.T) fstest.MapFS {
	t.Helper()
	fsys, disk := fstest.MapFS{}, os.DirFS("kubernetes")
	err := fs.WalkDir(disk, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(disk, name)
		fsys[name] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// TestMistakesInConfigureAreFound makes mistakes in what the template says of providers
// and modules, and wants each to be told: by the template itself where it can know,
// otherwise by the checker.
func TestMistakesInConfigureAreFound(t *testing.T) {
	t.Parallel()

	known, whole := facts(t), inMemory(t)
	text := string(whole["template.yaml"].Data)
	for name, tc := range map[string]struct{ cloud, old, new, want string }{
		"argument of a provider":          {"aws", `arguments: {region: "${cluster.region}"}`, `arguments: {regoin: "${cluster.region}"}`, `unknown argument "regoin", did you mean "region"?`},
		"type of a provider's argument":   {"aws", `arguments: {region: "${cluster.region}"}`, `arguments: {region: ["${cluster.region}"]}`, "wrong type: string required"},
		"argument for another cloud":      {"gcp", `arguments: {region: "${cluster.region}"}` + "\n        - *kubernetes_by_exec", `arguments: {subscription_id: a}` + "\n        - *kubernetes_by_exec", `unknown argument "subscription_id"`},
		"block of a provider":             {"azure", "blocks: [{type: features}]", "blocks: [{type: feature}]", `unknown block "feature", did you mean "features"?`},
		"block within a block":            {"azure", "blocks: [{type: features}]", "blocks: [{type: features, blocks: [{type: key_valt}]}]", `unknown block "key_valt", did you mean "key_vault"?`},
		"argument of a block":             {"aws", "                command: \"${module.kubernetes.exec.command}\"\n                args: \"${module.kubernetes.exec.args}\"\n        - &helm", "                comand: \"${module.kubernetes.exec.command}\"\n                args: \"${module.kubernetes.exec.args}\"\n        - &helm", `unknown argument "comand", did you mean "command"?`},
		"a block that must be there":      {"aws", "                api_version: \"${module.kubernetes.exec.api_version}\"\n                command: \"${module.kubernetes.exec.command}\"\n                args: \"${module.kubernetes.exec.args}\"\n        - &helm", "                args: \"${module.kubernetes.exec.args}\"\n        - &helm", `the required argument "api_version" is missing`},
		"name in helm's kubernetes":       {"azure", "arguments: {kubernetes: *by_token}", "arguments: {kubernetes: {hots: x}}", `unknown attribute "hots", did you mean "host"?`},
		"helm's kubernetes as a block":    {"azure", "arguments: {kubernetes: *by_token}", "blocks: [{type: kubernetes, arguments: *by_token}]", `"kubernetes" is an argument, not a block`},
		"name in helm's exec":             {"aws", "              exec:\n                api_version: \"${module.kubernetes.exec.api_version}\"\n                command", "              exec:\n                api_version: \"${module.kubernetes.exec.api_version}\"\n                program", `wrong type`},
		"output of a module":              {"aws", `host: "${module.kubernetes.endpoint}"`, `host: "${module.kubernetes.endpont}"`, `no output "endpont"`},
		"version that the facts are not":  {"linode", `source: linode/linode, version: "~> 3.1"`, `source: linode/linode, version: "~> 2.1"`, `which "~> 2.1" does not allow`},
		"source of a provider":            {"linode", `source: linode/linode, version`, `source: linod/linode, version`, `the source of "linode" is "linode/linode", not "linod/linode"`},
		"provider that nobody needs":      {"linode", `{name: linode, source: linode/linode`, `{name: linod, source: linode/linode`, `the provider "linod" is required, but not used`},
		"input of a module":               {"local", "node_pools: \"${var.node_pools}\"\n", "node_pool: \"${var.node_pools}\"\n", `no variable "node_pool"`},
		"type of an input of a module":    {"local", `high_availability: "${var.high_availability}"` + "\n            enable_ingress", `high_availability: [true]` + "\n            enable_ingress", "high_availability"},
		"variable that is not declared":   {"local", `cidr: "${var.cidr}"`, `cidr: "${var.cdir}"`, `"cdir"`},
		"rule about no variable":          {"local", "!has(self.node_count) || !has(self.node_pools)", "!has(self.node_cuont) || !has(self.node_pools)", `node_cuont`},
		"rule about what may be absent":   {"local", "!self.high_availability || !has(self.node_count) || self.node_count >= 3", "!self.high_availability || self.node_count >= 3", "node_count"},
		"switch that may not be there":    {"local", "(has(self.enable_autoscaler) && self.enable_autoscaler)", "self.enable_autoscaler", "enable_autoscaler"},
		"machine by default not allowed":  {"aws", "instance_type: m7i.large\n", "instance_type: m7i.larg\n", "m7i.larg"},
		"meaning that there is not":       {"local", "means: nodeCount", "means: nodeCuont", "nodeCount"},
		"kubeconfig for everybody to see": {"local", "      sensitive: true\n      means: kubeconfig", "      means: kubeconfig", "sensitive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(text, tc.old) {
				t.Fatalf("template.yaml does not say %q", tc.old)
			}
			changed := maps.Clone(whole)
			changed["template.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(text, tc.old, tc.new, 1)), Mode: 0o644}
			if said := complaints(t, diskTree{changed}, tc.cloud+"-advanced", known); !strings.Contains(said, tc.want) {
				t.Errorf("%q for %q is not found, want %q; got\n%s", tc.new, tc.old, tc.want, said)
			}
		})
	}
}

// complaints is all that the template and the checker have to say about an
// example.
func complaints(t *testing.T, tree holdfast.Tree, example string, known tfschema.Facts) string {
	t.Helper()
	file := path.Join("examples", example+".yaml")
	data, err := tree.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	docs, faults := document.ParseClusters(file, data)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	root, faults, err := templates.NewResolver(nil).Resolve(t.Context(), tree, docs[0])
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for _, fault := range faults {
		said.WriteString(fault.Position() + ": " + fault.Message + " (" + fault.Hint + ")\n")
	}
	if root == nil {
		return said.String()
	}
	_, found := tfschema.Check(unpack(t, root), root.Dir, known)
	for _, fault := range found {
		said.WriteString(fault.String() + "\n")
	}
	return said.String()
}
