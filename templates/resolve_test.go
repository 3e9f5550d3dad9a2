package templates_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

const demoTemplate = `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: kubernetes}
spec:
  providers:
    aws:
      regions: [eu-west-1, us-east-1]
      defaults: {instance_type: t3.medium}
      modules:
        - {name: essentials, source: ./modules/essentials, dependsOn: [kubernetes]}
        - name: kubernetes
          source: ./modules/kubernetes
          inputs:
            subnet_ids: "${module.network.subnet_ids}"
            name: "k-${cluster.name}-$${x}"
            type: "${var.instance_type}"
        - {name: network, source: ./modules/network, inputs: {cidr: "10.0.0.0/16"}}
  variables:
    type: object
    required: [node_count]
    properties:
      node_count: {type: integer, minimum: 1, maximum: 100}
      instance_type: {type: string, enum: [t3.medium, t3.large]}
      password: {type: string, writeOnly: true, minLength: 8}
      tags: {type: object, additionalProperties: {type: string}}
  outputs:
    endpoint: "${module.kubernetes.endpoint}"
    kubeconfig: {value: "${module.kubernetes.endpoint}", sensitive: true}
`

const demoCluster = `apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: prod-eu}
spec:
  project: p
  environment: e
  template: {path: ../templates/kubernetes}
  provider: aws
  region: eu-west-1
  variables:
    node_count: 3
`

func demoFiles() map[string]string {
	return map[string]string{
		"clusters/prod-eu.yaml":                                 demoCluster,
		"templates/kubernetes/template.yaml":                    demoTemplate,
		"templates/kubernetes/modules/network/main.tf":          "variable \"cidr\" {}\noutput \"subnet_ids\" {\n  value = []\n}\n",
		"templates/kubernetes/modules/kubernetes/main.tf":       "variable \"subnet_ids\" {}\nvariable \"name\" {}\nvariable \"type\" {}\noutput \"endpoint\" {\n  value = 1\n}\n",
		"templates/kubernetes/modules/essentials/main.tf":       "module \"inner\" {\n  source = \"../shared\"\n}\n",
		"templates/kubernetes/modules/shared/main.tf":           "",
		"templates/kubernetes/modules/shared/run.sh":            "#!/bin/sh\n",
		"templates/kubernetes/modules/shared/terraform.tfstate": "{}",
		"templates/kubernetes/modules/unused/main.tf":           "",
	}
}

func with(files map[string]string, pairs ...string) map[string]string {
	out := maps.Clone(files)
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// contents unpacks a bundle.
func contents(t testing.TB, root *templates.Root) map[string]string {
	t.Helper()
	data, digest, err := root.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	if digest != holdfast.DigestOf(data) {
		t.Error("digest is not that of the bundle")
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if head.Typeflag != tar.TypeReg || head.Uid != 0 || head.Uname != "" || head.ModTime.Unix() != 0 {
			t.Errorf("header %+v", head)
		}
		if _, twice := files[head.Name]; twice {
			t.Errorf("%s is given twice", head.Name)
		}
		files[head.Name] = string(body)
	}
}

func TestResolveTemplate(t *testing.T) {
	t.Parallel()

	tr := tree(demoFiles())
	root := resolve(t, tr, clusterOf(t, "clusters/prod-eu.yaml", demoCluster))
	if got, want := root.StateLocation, "clusters/prod-eu"; got != want || !root.OwnState || !strings.Contains(root.StateCode(), `backend "http"`) {
		t.Errorf("state is %q, own %v, in %s", got, root.OwnState, root.StateCode())
	}
	if got, want := root.Template, "kubernetes at templates/kubernetes"; got != want {
		t.Errorf("template is %q, want %q", got, want)
	}
	got := contents(t, root)
	want := map[string]string{
		"root/cluster.tf": `# Made by Holdfast from template kubernetes at templates/kubernetes for cluster prod-eu: a change here is lost.

terraform {
  backend "http" {
  }
}

locals {
  cluster = {
    "name" = "prod-eu"
  }
}
`,
		"root/holdfast.auto.tfvars.json": `{
  "instance_type": "t3.medium",
  "node_count": 3
}
`,
		"root/main.tf": `# Made by Holdfast from template kubernetes at templates/kubernetes: a change here is lost.

variable "instance_type" {
  type    = string
  default = null
}

variable "node_count" {
  type = number
}

variable "password" {
  type      = string
  default   = null
  sensitive = true
}

variable "tags" {
  type    = map(string)
  default = null
}

module "network" {
  source = "../template/templates/kubernetes/modules/network"
  cidr   = "10.0.0.0/16"
}

module "kubernetes" {
  source     = "../template/templates/kubernetes/modules/kubernetes"
  name       = "k-${local.cluster.name}-$${x}"
  subnet_ids = module.network.subnet_ids
  type       = var.instance_type
}

module "essentials" {
  source     = "../template/templates/kubernetes/modules/essentials"
  depends_on = [module.kubernetes]
}

output "endpoint" {
  value = module.kubernetes.endpoint
}

output "kubeconfig" {
  value     = module.kubernetes.endpoint
  sensitive = true
}
`,
	}
	for _, name := range []string{"network/main.tf", "kubernetes/main.tf", "essentials/main.tf", "shared/main.tf", "shared/run.sh"} {
		want["template/templates/kubernetes/modules/"+name] = demoFiles()["templates/kubernetes/modules/"+name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	first, _, _ := root.Bundle()
	again, _, _ := resolve(t, tree(demoFiles()), clusterOf(t, "clusters/prod-eu.yaml", demoCluster)).Bundle()
	if !bytes.Equal(first, again) {
		t.Error("the same inputs give other bytes")
	}
}

// TestDigest says what makes a plan necessary and what does not.
func TestDigest(t *testing.T) {
	t.Parallel()

	base := resolve(t, tree(demoFiles()), clusterOf(t, "clusters/prod-eu.yaml", demoCluster)).Digest
	cluster := func(old, replacement string) document.Document {
		text := strings.Replace(demoCluster, old, replacement, 1)
		if text == demoCluster {
			t.Fatalf("no %q", old)
		}
		return clusterOf(t, "clusters/prod-eu.yaml", text)
	}
	unchanged := clusterOf(t, "clusters/prod-eu.yaml", demoCluster)
	const dir = "templates/kubernetes/"
	tests := map[string]struct {
		doc   document.Document
		files map[string]string
		same  bool
	}{
		"label":                 {cluster("name: prod-eu", "name: prod-eu, labels: {a: b}"), demoFiles(), true},
		"protection":            {cluster("spec:", "spec:\n  deletion: {protected: true}"), demoFiles(), true},
		"drift":                 {cluster("spec:", "spec:\n  drift: {schedule: \"off\", onDrift: apply, ignore: [{address: \"**\", reason: r}]}"), demoFiles(), true},
		"apply":                 {cluster("spec:", "spec:\n  apply: {onMerge: false, requires: [approved], windows: [{kind: deny, schedule: \"@daily\", duration: 1h}]}"), demoFiles(), true},
		"dependencies":          {cluster("spec:", "spec:\n  dependsOn: [network-eu]"), demoFiles(), true},
		"moved document":        {clusterOf(t, "elsewhere/x.yaml", "# comment\n"+demoCluster), demoFiles(), true},
		"unused module":         {unchanged, with(demoFiles(), dir+"modules/unused/main.tf", "#"), true},
		"environment, not used": {cluster("environment: e", "environment: f"), demoFiles(), true},
		"default written out":   {cluster("node_count: 3", "node_count: 3\n    instance_type: t3.medium"), demoFiles(), true},
		"another cluster":       {unchanged, with(demoFiles(), "clusters/x.yaml", "x"), true},
		"variable":              {cluster("node_count: 3", "node_count: 4"), demoFiles(), false},
		"name, used":            {cluster("name: prod-eu", "name: prod-us"), demoFiles(), false},
		"module":                {unchanged, with(demoFiles(), dir+"modules/network/main.tf", demoFiles()[dir+"modules/network/main.tf"]+"#"), false},
		"module of a module":    {unchanged, with(demoFiles(), dir+"modules/shared/run.sh", "#"), false},
		"new file in a module":  {unchanged, with(demoFiles(), dir+"modules/shared/new.txt", "#"), false},
		"lock file":             {unchanged, with(demoFiles(), dir+".terraform.lock.hcl", "#"), false},
		"engine constraint":     {cluster("spec:", "spec:\n  engine: {version: \">= 1.0\"}"), demoFiles(), false},
		"engine name":           {cluster("spec:", "spec:\n  engine: {name: tofu}"), demoFiles(), false},
		"backend":               {cluster("spec:", "spec:\n  state: {type: s3, bucket: b}"), demoFiles(), false},
		"output":                {unchanged, with(demoFiles(), dir+"template.yaml", strings.Replace(demoTemplate, "endpoint: \"", "e: \"", 1)), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := tc.doc
			if doc.Cluster.Path == "elsewhere/x.yaml" {
				doc.Cluster.Template.Path = "../templates/kubernetes"
			}
			if got := resolve(t, tree(tc.files), doc).Digest; got.Equal(base) != tc.same {
				t.Errorf("digest is equal: %v, want %v", got.Equal(base), tc.same)
			}
		})
	}
}

func TestResolveVariableFaults(t *testing.T) {
	t.Parallel()

	text := strings.Replace(demoCluster, "    node_count: 3\n", `    node_count: many
    instance_type: t3.medum
    enable_monitorng: true
    password: short
    tags:
      team: 5
`, 1)
	text = strings.Replace(text, "eu-west-1", "eu-wset-1", 1)
	faults := resolveFaults(t, tree(demoFiles()), clusterOf(t, "clusters/prod-eu.yaml", text))
	wantFaults(t, faults,
		`clusters/prod-eu.yaml:9:11: kubernetes at templates/kubernetes has no region "eu-wset-1" for aws (did you mean "eu-west-1"? one of eu-west-1, us-east-1)`,
		`clusters/prod-eu.yaml:11:17: variable node_count must be an integer, not string (write the number without quotes)`,
		`clusters/prod-eu.yaml:12:20: variable instance_type is "t3.medum" (did you mean "t3.medium"? one of t3.large, t3.medium)`,
		`clusters/prod-eu.yaml:13:5: unknown variable "enable_monitorng" (one of instance_type, node_count, password, tags)`,
		`clusters/prod-eu.yaml:14:15: password is secret: say where its value is, such as {secret: {env: DB_PASSWORD}}`,
		`clusters/prod-eu.yaml:16:13: variable tags.team must be a string, not number (put it in quotes)`,
	)
	for _, fault := range faults {
		if fault.Cluster != "prod-eu" {
			t.Errorf("fault without its cluster: %+v", fault)
		}
	}

	missing := strings.Replace(demoCluster, "node_count: 3", "tags: {}", 1)
	wantFaults(t, resolveFaults(t, tree(demoFiles()), clusterOf(t, "clusters/prod-eu.yaml", missing)),
		`clusters/prod-eu.yaml:10:3: spec.variables has no node_count (the template requires it)`)
	misspelt := strings.Replace(demoCluster, "node_count: 3", "node_cuont: 3", 1)
	wantFaults(t, resolveFaults(t, tree(demoFiles()), clusterOf(t, "clusters/prod-eu.yaml", misspelt)),
		`clusters/prod-eu.yaml:11:5: unknown variable "node_cuont" (did you mean "node_count"?)`)
	much := strings.Replace(demoCluster, "node_count: 3", "node_count: 101", 1)
	wantFaults(t, resolveFaults(t, tree(demoFiles()), clusterOf(t, "clusters/prod-eu.yaml", much)),
		`clusters/prod-eu.yaml:11:17: variable node_count must be at most 100, not 101`)
	provider := strings.Replace(demoCluster, "aws", "awz", 1)
	wantFaults(t, resolveFaults(t, tree(demoFiles()), clusterOf(t, "clusters/prod-eu.yaml", provider)),
		`clusters/prod-eu.yaml:8:13: template kubernetes at templates/kubernetes has no provider "awz" (did you mean "aws"?)`)
	outside := strings.Replace(demoCluster, "../templates", "../../templates", 1)
	wantFaults(t, resolveFaults(t, tree(demoFiles()), clusterOf(t, "clusters/prod-eu.yaml", outside)),
		`clusters/prod-eu.yaml:7:20: spec.template.path "../../templates/kubernetes" leaves the repository (the path starts from the folder of the cluster's file)`)
	elsewhere := strings.Replace(demoCluster, "../templates/kubernetes", "kubernetes", 1)
	wantFaults(t, resolveFaults(t, tree(demoFiles()), clusterOf(t, "clusters/prod-eu.yaml", elsewhere)),
		`clusters/prod-eu.yaml:7:20: spec.template.path "kubernetes": clusters/kubernetes/template.yaml: no template here (the path starts from the folder of the cluster's file)`)
}

func TestTemplateFaults(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		old, replacement string
		want             []string
	}{
		"unknown key":        {"outputs:", "outptus:", []string{`templates/kubernetes/template.yaml:26:3: unknown key "outptus" in spec (did you mean "outputs"?)`}},
		"cycle":              {`cidr: "10.0.0.0/16"`, `cidr: "${module.kubernetes.endpoint}"`, []string{`templates/kubernetes/template.yaml:11:11: modules depend on one another in a circle: kubernetes → network → kubernetes`}},
		"unknown variable":   {"${var.instance_type}", "${var.instnace_type}", []string{`templates/kubernetes/template.yaml:16:13: ${var.instnace_type}: unknown variable "instnace_type" for aws (did you mean "instance_type"?)`}},
		"unknown module":     {"${module.network.", "${module.networq.", []string{`templates/kubernetes/template.yaml:14:13: ${module.networq.subnet_ids}: unknown module "networq" for aws (did you mean "network"?)`}},
		"unknown output":     {"network.subnet_ids", "network.subnets", []string{`templates/kubernetes/template.yaml:14:13: module "network" has no output "subnets" (the only one is subnet_ids)`}},
		"unknown field":      {"cluster.name", "cluster.namf", []string{`templates/kubernetes/template.yaml:15:13: ${cluster.namf}: unknown cluster field "namf" for aws (did you mean "name"?)`}},
		"unknown root":       {"${var.instance_type}", "${data.instance_type}", []string{`templates/kubernetes/template.yaml:16:13: ${data.instance_type} refers to "data" (one of cluster, module, var)`}},
		"expression":         {"${var.instance_type}", "${file(1)}", []string{`templates/kubernetes/template.yaml:16:19: "${file(1)}" is not a reference (write ${var.x}, ${module.x.y} or ${cluster.x}, and $${ for a literal ${)`}},
		"unknown input":      {"type: \"${var", "tpye: \"${var", []string{`templates/kubernetes/template.yaml:16:13: module "kubernetes" has no variable "tpye" (did you mean "type"?)`}},
		"unknown dependency": {"[kubernetes]", "[kubernets]", []string{`templates/kubernetes/template.yaml:10:72: dependsOn names the module "kubernets", which is not there (did you mean "kubernetes"?)`}},
		"module gone":        {"./modules/network", "./modules/networq", []string{`templates/kubernetes/template.yaml:17:35: module source "./modules/networq": there is no folder templates/kubernetes/modules/networq`}},
		"source that leaves": {"./modules/network", "../../../network", []string{`templates/kubernetes/template.yaml:17:35: module source "../../../network" leaves the repository`}},
		"source of a branch": {"./modules/network", `"git::https://example.com/network?depth=1&ref=refs%2Fheads%2Fmain"`, []string{`templates/kubernetes/template.yaml:17:35: module source "git::https://example.com/network?depth=1&ref=refs%2Fheads%2Fmain" names the branch refs/heads/main, which moves (write a tag or a commit after ?ref=)`}},
		"source of HEAD":     {"./modules/network", `"github.com/acme/network?ref=HEAD"`, []string{`templates/kubernetes/template.yaml:17:35: module source "github.com/acme/network?ref=HEAD" names the branch HEAD, which moves (write a tag or a commit after ?ref=)`}},
		"source not pinned":  {"./modules/network", "github.com/acme/network", []string{`templates/kubernetes/template.yaml:17:35: module source "github.com/acme/network" names no revision (add ?ref= with a tag or a commit)`}},
		"registry, no version": {"./modules/network", "terraform-aws-modules/vpc/aws", []string{
			`templates/kubernetes/template.yaml:17:35: module source "terraform-aws-modules/vpc/aws" has the version "" (write the exact version of a registry module)`,
		}},
		"default of nothing": {"instance_type: t3.medium}", "instnce_type: t3.medium}", []string{`templates/kubernetes/template.yaml:8:18: unknown variable "instnce_type" (did you mean "instance_type"?)`}},
		"schema":             {"type: integer, minimum: 1", "type: integr, minimum: 1", []string{`templates/kubernetes/template.yaml:22:26: spec.variables is not a JSON Schema that can be used: at /properties/node_count/type: `}},
		"remote reference":   {"type: integer, minimum: 1", "$ref: https://x.invalid/s, minimum: 1", []string{`templates/kubernetes/template.yaml:19:5: spec.variables is not a JSON Schema that can be used: $ref "https://x.invalid/s": only references such as "#/$defs/name" are followed`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(demoTemplate, tc.old, tc.replacement, 1)
			if text == demoTemplate {
				t.Fatalf("no %q", tc.old)
			}
			files := with(demoFiles(), "templates/kubernetes/template.yaml", text)
			faults := resolveFaults(t, tree(files), clusterOf(t, "clusters/prod-eu.yaml", demoCluster))
			if name == "schema" {
				if !strings.HasPrefix(faults.Error(), tc.want[0]) {
					t.Errorf("faults:\n%v", faults)
				}
				return
			}
			wantFaults(t, faults, tc.want...)
		})
	}
}

func TestSchemaThatWouldNotEnd(t *testing.T) {
	t.Parallel()

	var defs strings.Builder
	for i := range 60 {
		defs.WriteString("      d" + strings.Repeat("x", i) + ": {allOf: [{$ref: '#/$defs/d" + strings.Repeat("x", i+1) + "'}, {$ref: '#/$defs/d" + strings.Repeat("x", i+1) + "'}]}\n")
	}
	defs.WriteString("      d" + strings.Repeat("x", 60) + ": {type: integer}\n")
	text := strings.Replace(demoTemplate, "    type: object\n", "    type: object\n    $defs:\n"+defs.String(), 1)
	text = strings.Replace(text, "{type: integer, minimum: 1, maximum: 100}", "{$ref: '#/$defs/d'}", 1)
	faults := resolveFaults(t, tree(with(demoFiles(), "templates/kubernetes/template.yaml", text)), clusterOf(t, "clusters/prod-eu.yaml", demoCluster))
	if !strings.Contains(faults.Error(), "too many steps") {
		t.Errorf("faults:\n%v", faults)
	}

	recursive := strings.Replace(demoTemplate, "{type: object, additionalProperties: {type: string}}", "{$ref: '#/$defs/t'}\n    $defs: {t: {additionalProperties: {$ref: '#/$defs/t'}}}", 1)
	cluster := strings.Replace(demoCluster, "node_count: 3", "node_count: 3\n    tags: {a: {b: {c: {}}}}", 1)
	resolve(t, tree(with(demoFiles(), "templates/kubernetes/template.yaml", recursive)), clusterOf(t, "clusters/prod-eu.yaml", cluster))
}

// releases is a Versions with one template.
type releases struct {
	tree holdfast.Tree
	err  error
}

func (r releases) Version(_ context.Context, name, version string) (templates.TemplateVersion, error) {
	if r.err != nil {
		return templates.TemplateVersion{}, r.err
	}
	if name != "kubernetes" {
		return templates.TemplateVersion{}, &templates.NoVersionError{Name: name, Version: version, Templates: []string{"kubernetes"}}
	}
	if !slices.Contains([]string{"1.4.2", "1.5.0"}, version) {
		return templates.TemplateVersion{}, &templates.NoVersionError{Name: name, Version: version, Available: []string{"1.3.0", "1.4.2", "1.5.0"}}
	}
	return templates.TemplateVersion{
		Repo: "templates", Tag: "kubernetes/v" + version, Revision: "abc1234def", Tree: r.tree, Dir: "templates/kubernetes",
	}, nil
}

func TestResolveVersion(t *testing.T) {
	t.Parallel()

	cluster := func(ref string) document.Document {
		return clusterOf(t, "clusters/prod-eu.yaml", strings.Replace(demoCluster, "{path: ../templates/kubernetes}", ref, 1))
	}
	clusters := tree(map[string]string{"clusters/prod-eu.yaml": "x"})
	resolver := templates.NewResolver(releases{tree: tree(demoFiles())})
	root, faults, err := resolver.Resolve(t.Context(), clusters, cluster("{name: kubernetes, version: 1.4.2}"))
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	if root.Template != "kubernetes@1.4.2 (abc1234)" || root.TemplateRevision != "abc1234def" || root.Reads != nil {
		t.Errorf("template %q, revision %q, reads %v", root.Template, root.TemplateRevision, root.Reads)
	}
	if _, ok := contents(t, root)["template/templates/kubernetes/modules/network/main.tf"]; !ok {
		t.Error("module of the template repository is not in the bundle")
	}
	newer, _, _ := resolver.Resolve(t.Context(), clusters, cluster("{name: kubernetes, version: 1.5.0}"))
	if !newer.Digest.Equal(root.Digest) {
		t.Error("a version with the same content makes a plan necessary")
	}

	for ref, want := range map[string]string{
		"{name: kubernetes, version: 1.4.9}": `clusters/prod-eu.yaml:7:41: template kubernetes has no version 1.4.9 (nearest: 1.4.2)`,
		"{name: kubernetes, version: 1.0.0}": `clusters/prod-eu.yaml:7:41: template kubernetes has no version 1.0.0 (nearest: 1.3.0)`,
		"{name: kubernets, version: 1.4.2}":  `clusters/prod-eu.yaml:7:20: there is no template kubernets (did you mean "kubernetes"?)`,
	} {
		_, faults, err := resolver.Resolve(t.Context(), clusters, cluster(ref))
		if err != nil {
			t.Fatal(err)
		}
		wantFaults(t, faults, want)
	}

	broken := tree(with(demoFiles(), "templates/kubernetes/template.yaml", strings.Replace(demoTemplate, "outputs:", "outptus:", 1)))
	_, faults, err = templates.NewResolver(releases{tree: broken}).Resolve(t.Context(), clusters, cluster("{name: kubernetes, version: 1.4.2}"))
	if err != nil {
		t.Fatal(err)
	}
	wantFaults(t, faults, `clusters/prod-eu.yaml:7:41: template kubernetes@1.4.2: templates/kubernetes/template.yaml:26:3: unknown key "outptus" in spec (did you mean "outputs"?)`)

	_, faults, err = templates.NewResolver(releases{err: holdfast.ErrUnavailable}).Resolve(t.Context(), clusters, cluster("{name: kubernetes, version: 1.4.2}"))
	if !errors.Is(err, holdfast.ErrUnavailable) || faults != nil {
		t.Errorf("error %v, faults %v", err, faults)
	}
}

func TestTagsFor(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"kubernetes/v1.4.2", "v1.4.2"}, templates.TagsFor("kubernetes", "1.4.2")); diff != "" {
		t.Error(diff)
	}
}
