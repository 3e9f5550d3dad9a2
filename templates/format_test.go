package templates_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

const richTemplate = `apiVersion: holdfast.dev/v1
kind: Template
metadata:
  name: kubernetes
  version: 1.5.0
  description: A cluster.
spec:
  providers:
    aws:
      regions: [eu-west-1]
      instanceTypes: ["m7i.*", t3.medium]
      defaults: {instance_type: m7i.large}
      configure:
        - name: helm
          source: hashicorp/helm
          version: "~> 3.0"
          arguments: {kubernetes: {host: "${module.kubernetes.endpoint}"}}
        - name: aws
          source: registry.example.com/hashicorp/aws
          version: "~> 6.0"
          arguments: {region: "${cluster.region}"}
          blocks:
            - {type: default_tags, arguments: {tags: "${var.tags}"}}
            - {type: features, blocks: [{type: inner}]}
      modules:
        - name: kubernetes
          source: ./modules/kubernetes
          inputs:
            node_count: "${var.node_count}"
            type: "${var.instance_type}"
            password: "${var.db_password}"
            agent: "${module.monitoring.agent}"
            environment: "${cluster.environment}"
        - name: monitoring
          source: ./modules/monitoring
          when: self.enable_monitoring
          inputs: {name: "${cluster.name}"}
        - name: logs
          source: ./modules/logs
          when: self.enable_monitoring
          dependsOn: [kubernetes, monitoring]
          inputs: {agent: "${module.monitoring.agent}"}
  variables:
    type: object
    required: [node_count]
    additionalProperties: false
    properties:
      node_count: {type: integer, minimum: 1}
      high_availability: {type: boolean, default: false}
      enable_monitoring: {type: boolean, default: false}
      instance_type: {type: string, format: instance-type}
      tags: {type: object, additionalProperties: {type: string}, default: {}}
      db_password: {type: string, minLength: 12, writeOnly: true}
      price: {type: number}
      pools:
        type: array
        items:
          type: object
          additionalProperties: false
          required: [name]
          properties:
            name: {type: string}
            instance_type: {type: string, format: instance-type}
            count: {type: integer}
  rules:
    - rule: "!self.high_availability || self.node_count >= 3"
      message: node_count must be at least 3 when high_availability is true
      path: node_count
    - rule: cluster.environment != "production" || self.high_availability
      message: production is highly available
    - rule: "!has(self.price) || self.price * 2.0 < 5.0"
      message: too expensive
      path: price
  outputs:
    endpoint: {value: "${module.kubernetes.endpoint}", means: endpoint}
    kubeconfig: {value: "${module.kubernetes.endpoint}", sensitive: true, means: kubeconfig}
    agent: "${module.monitoring.agent}"
`

const richCluster = `apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: prod-eu}
spec:
  project: p
  environment: staging
  template: {path: ../t}
  region: eu-west-1
  variables:
    node_count: 3
`

func richFiles() map[string]string {
	return map[string]string{
		"t/template.yaml": richTemplate,
		"t/modules/kubernetes/main.tf": `variable "node_count" { type = number }
variable "type" {}
variable "environment" {}
variable "password" { sensitive = true }
variable "agent" { default = null }
output "endpoint" { value = 1 }
`,
		"t/modules/monitoring/main.tf": "variable \"name\" {}\noutput \"agent\" { value = 1 }\n",
		"t/modules/logs/main.tf":       "variable \"agent\" {}\n",
	}
}

// clusterWith is richCluster with more, or other, lines of variables.
func clusterWith(t testing.TB, lines ...string) document.Document {
	t.Helper()
	text := richCluster
	if len(lines) > 0 {
		text = strings.Replace(text, "    node_count: 3\n", "    "+strings.Join(lines, "\n    ")+"\n", 1)
	}
	return clusterOf(t, "c/c.yaml", text)
}

func filesOf(root *templates.Root) map[string]string {
	out := map[string]string{}
	for _, f := range root.Files() {
		out[f.Name] = string(f.Data)
	}
	return out
}

func TestModulesThatAreOff(t *testing.T) {
	t.Parallel()

	root := resolve(t, tree(richFiles()), clusterWith(t))
	got := contents(t, root)
	if diff := cmp.Diff(map[string]string{
		"root/cluster.tf": `# Made by Holdfast from template kubernetes at t for cluster prod-eu: a change here is lost.

terraform {
  backend "http" {
  }
}

locals {
  cluster = {
    "environment" = "staging"
    "region"      = "eu-west-1"
  }
}
`,
		"root/holdfast.auto.tfvars.json": "{\n  \"instance_type\": \"m7i.large\",\n  \"node_count\": 3\n}\n",
		"root/providers.tf": `# Made by Holdfast from template kubernetes at t: a change here is lost.

terraform {
  required_providers {
    aws = {
      source  = "registry.example.com/hashicorp/aws"
      version = "~> 6.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = "~> 3.0"
    }
  }
}

provider "aws" {
  region = local.cluster.region

  default_tags {
    tags = var.tags
  }

  features {
    inner {
    }
  }
}

provider "helm" {
  kubernetes = {
    "host" = module.kubernetes.endpoint
  }
}
`,
		"template/t/modules/kubernetes/main.tf": richFiles()["t/modules/kubernetes/main.tf"],
	}, without(got, "root/main.tf")); diff != "" {
		t.Error(diff)
	}
	for _, there := range []string{"module \"kubernetes\"", "output \"endpoint\"", "output \"kubeconfig\""} {
		if !strings.Contains(got["root/main.tf"], there) {
			t.Errorf("main.tf has no %s", there)
		}
	}
	for _, gone := range []string{`"monitoring"`, "logs", "agent", "helm"} {
		if strings.Contains(got["root/main.tf"], gone) {
			t.Errorf("main.tf has %s:\n%s", gone, got["root/main.tf"])
		}
	}
	if diff := cmp.Diff([]string{"t/.terraform.lock.hcl", "t/modules/kubernetes", "t/template.yaml"}, root.Reads); diff != "" {
		t.Error(diff)
	}
	means := map[string]string{holdfast.OutputRoleEndpoint: "endpoint", holdfast.OutputRoleKubeconfig: "kubeconfig"}
	if diff := cmp.Diff(means, root.OutputRoles); diff != "" {
		t.Error(diff)
	}

	on := filesOf(resolve(t, tree(richFiles()), clusterWith(t, "node_count: 3", "enable_monitoring: true")))
	for _, there := range []string{
		"module \"monitoring\" {\n", "  agent       = module.monitoring.agent\n", "  depends_on = [module.kubernetes, module.monitoring]\n",
		"output \"agent\" {\n",
	} {
		if !strings.Contains(on["main.tf"], there) {
			t.Errorf("main.tf has no %q:\n%s", there, on["main.tf"])
		}
	}
	if !strings.Contains(on["providers.tf"], `provider "helm" {`) || !strings.Contains(on["cluster.tf"], `"name"        = "prod-eu"`) {
		t.Errorf("providers.tf:\n%s\ncluster.tf:\n%s", on["providers.tf"], on["cluster.tf"])
	}
}

func without(files map[string]string, names ...string) map[string]string {
	out := maps.Clone(files)
	for _, name := range names {
		delete(out, name)
	}
	return out
}

// TestProviderOfAModuleThatIsOff: it is declared, and not configured.
func TestProviderOfAModuleThatIsOff(t *testing.T) {
	t.Parallel()

	text := strings.Replace(richTemplate, "host: \"${module.kubernetes.endpoint}\"", "host: \"${module.monitoring.agent}\"", 1)
	got := filesOf(resolve(t, tree(with(richFiles(), "t/template.yaml", text)), clusterWith(t)))["providers.tf"]
	if !strings.Contains(got, "helm = {\n      source  = \"hashicorp/helm\"") || strings.Contains(got, `provider "helm"`) {
		t.Errorf("providers.tf:\n%s", got)
	}
}

// TestDigestOfWhatIsOn: what is off does not make a plan necessary.
func TestDigestOfWhatIsOn(t *testing.T) {
	t.Parallel()

	changed := func(old, replacement string) map[string]string {
		text := strings.Replace(richTemplate, old, replacement, 1)
		if text == richTemplate {
			t.Fatalf("no %q", old)
		}
		return with(richFiles(), "t/template.yaml", text)
	}
	off, on := clusterWith(t), clusterWith(t, "node_count: 3", "enable_monitoring: true")
	for name, tc := range map[string]struct {
		files           map[string]string
		offSame, onSame bool
	}{
		"monitoring's code":   {files: with(richFiles(), "t/modules/monitoring/x.txt", "x"), offSame: true},
		"monitoring's inputs": {files: changed(`inputs: {name: "${cluster.name}"}`, `inputs: {name: "x"}`), offSame: true},
		"a provider":          {files: changed("hashicorp/helm", "opentofu/helm")},
		"kubernetes' code":    {files: with(richFiles(), "t/modules/kubernetes/x.txt", "x")},
		"version":             {files: changed("version: 1.5.0", "version: 1.6.0"), offSame: true, onSame: true},
		"description":         {files: changed("description: A cluster.", "description: Another."), offSame: true, onSame: true},
		"a new variable":      {files: changed("      price: {type: number}\n", "      price: {type: number}\n      new: {type: string, default: x}\n"), offSame: true, onSame: true},
		"what a variable is":  {files: changed("{type: integer, minimum: 1}", "{type: integer, minimum: 1, description: how many}"), offSame: true, onSame: true},
		"what an output is":   {files: changed(", means: endpoint", ", means: endpoint, description: where"), offSame: true, onSame: true},
		"a default":           {files: changed("additionalProperties: {type: string}, default: {}", "additionalProperties: {type: string}, default: {a: b}")},
		"rules":               {files: changed("too expensive", "too cheap"), offSame: true, onSame: true},
		"regions":             {files: changed("[eu-west-1]", "[eu-west-1, eu-west-2]"), offSame: true, onSame: true},
		"means":               {files: changed(", means: endpoint", ""), offSame: true, onSame: true},
		"the aws provider":    {files: changed(`"~> 6.0"`, `"~> 6.1"`)},
	} {
		for which, doc := range map[string]document.Document{"off": off, "on": on} {
			before, after := resolve(t, tree(richFiles()), doc), resolve(t, tree(tc.files), doc)
			want := tc.offSame
			if which == "on" {
				want = tc.onSame
			}
			if got := before.Digest.Equal(after.Digest); got != want {
				t.Errorf("%s, monitoring %s: the digest is equal: %v, want %v", name, which, got, want)
			}
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()

	production := strings.Replace(richCluster, "environment: staging", "environment: production", 1)
	for name, tc := range map[string]struct {
		doc  document.Document
		want []string
	}{
		"kept":           {clusterWith(t, "node_count: 3", "high_availability: true"), nil},
		"not kept":       {clusterWith(t, "node_count: 1", "high_availability: true"), []string{"c/c.yaml:10:17: node_count must be at least 3 when high_availability is true"}},
		"of the cluster": {clusterOf(t, "c/c.yaml", production), []string{"c/c.yaml:9:3: production is highly available"}},
		"several": {clusterOf(t, "c/c.yaml", production+"    price: 3\n"), []string{
			"c/c.yaml:9:3: production is highly available", "c/c.yaml:11:12: too expensive",
		}},
		"a number without a fraction": {clusterWith(t, "node_count: 3", "price: 2"), nil},
		"a whole number with one":     {clusterWith(t, "node_count: 3.0", "high_availability: true"), nil},
		"only when the schema accepts": {clusterWith(t, "node_count: 0", "high_availability: true"), []string{
			"c/c.yaml:10:17: variable node_count must be at least 1, not 0",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want == nil {
				resolve(t, tree(richFiles()), tc.doc)
				return
			}
			wantFaults(t, resolveFaults(t, tree(richFiles()), tc.doc), tc.want...)
		})
	}
}

func TestRuleThatCannotBeEvaluated(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ rule, line, want string }{
		"no such key": {
			rule: "self.pools.all(p, p.count > 0)", line: "pools: [{name: a}]",
			want: `c/c.yaml:9:3: rule "self.pools.all(p, p.count > 0)" of the template cannot be evaluated: there is no count (the rule is to say: m)`,
		},
		"division": {
			rule: "10 / (self.node_count - 3) > 0", line: "price: 1",
			want: `c/c.yaml:9:3: rule "10 / (self.node_count - 3) > 0" of the template cannot be evaluated: division by zero (the rule is to say: m)`,
		},
		"cost": {
			rule: "self.pools.all(a, self.pools.all(b, self.pools.all(c, self.pools.all(d, a.name + b.name + c.name + d.name != 'x'))))",
			line: "pools: [" + strings.Repeat("{name: a},", 100) + "]",
			want: `c/c.yaml:9:3: rule "self.pools.all(a, self.pools.all(b, self.pools.all(c, self.pools.all(d, a.name +…" of the template cannot be evaluated: it takes too many steps (the rule is to say: m)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := tc.rule
			if strings.Contains(rule, "pools") {
				rule = "!has(self.pools) || " + rule
			}
			text := strings.Replace(richTemplate, "  rules:\n", "  rules:\n    - {rule: \""+rule+"\", message: m}\n", 1)
			want := strings.ReplaceAll(tc.want, `rule "self.pools`, `rule "!has(self.pools) || self.pools`)
			if name == "cost" {
				want = `c/c.yaml:9:3: rule "!has(self.pools) || self.pools.all(a, self.pools.all(b, self.pools.all(c, self.p…" of the template cannot be evaluated: it takes too many steps (the rule is to say: m)`
			}
			wantFaults(t, resolveFaults(t, tree(with(richFiles(), "t/template.yaml", text)), clusterWith(t, "node_count: 3", tc.line)), want)
		})
	}
}

func TestInstanceTypes(t *testing.T) {
	t.Parallel()

	resolve(t, tree(richFiles()), clusterWith(t, "node_count: 3", "instance_type: t3.medium", "pools: [{name: a, instance_type: m7i.xlarge}]"))
	wantFaults(t, resolveFaults(t, tree(richFiles()), clusterWith(t, "node_count: 3", "instance_type: t3.medum", "pools: [{name: a, instance_type: z9}]")),
		`c/c.yaml:11:20: variable instance_type is "t3.medum": not allowed for aws (did you mean "t3.medium"? one of t3.medium, m7i.*)`,
		`c/c.yaml:12:38: variable pools.0.instance_type is "z9": not allowed for aws (one of t3.medium, m7i.*)`)

	// A region that is wrong and variables that are wrong come together.
	doc := clusterOf(t, "c/c.yaml", strings.NewReplacer("eu-west-1", "eu-wset-1", "node_count: 3", "node_count: 0").Replace(richCluster))
	wantFaults(t, resolveFaults(t, tree(richFiles()), doc),
		`c/c.yaml:8:11: kubernetes at t has no region "eu-wset-1" for aws (did you mean "eu-west-1"?)`,
		`c/c.yaml:10:17: variable node_count must be at least 1, not 0`)
}

func TestBlueprint(t *testing.T) {
	t.Parallel()

	loaded, faults, err := templates.NewResolver(nil).Load(tree(richFiles()), "t")
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	got := loaded.Blueprint()
	schema := got.Schema
	got.Schema = nil
	want := templates.Blueprint{
		Name: "kubernetes", Version: "1.5.0", Description: "A cluster.", Required: []string{"node_count"},
		Rules: []templates.RuleBlueprint{
			{Rule: "!self.high_availability || self.node_count >= 3", Message: "node_count must be at least 3 when high_availability is true", Path: "node_count"},
			{Rule: `cluster.environment != "production" || self.high_availability`, Message: "production is highly available"},
			{Rule: "!has(self.price) || self.price * 2.0 < 5.0", Message: "too expensive", Path: "price"},
		},
		Providers: []templates.ProviderBlueprint{{
			Name: "aws", Regions: []string{"eu-west-1"}, InstanceTypes: []string{"m7i.*", "t3.medium"},
			Defaults: map[string]any{"instance_type": "m7i.large"},
			Configure: []templates.EngineProvider{
				{Name: "helm", Source: "hashicorp/helm", Version: "~> 3.0"},
				{Name: "aws", Source: "registry.example.com/hashicorp/aws", Version: "~> 6.0"},
			},
			Modules: []templates.ModuleBlueprint{
				{
					Name: "monitoring", Source: "./modules/monitoring", When: "self.enable_monitoring",
					Inputs: map[string]string{"name": "${cluster.name}"},
				},
				{
					Name: "kubernetes", Source: "./modules/kubernetes", Needs: []string{"monitoring"},
					Inputs: map[string]string{
						"node_count": "${var.node_count}", "type": "${var.instance_type}", "password": "${var.db_password}",
						"agent": "${module.monitoring.agent}", "environment": "${cluster.environment}",
					},
				},
				{
					Name: "logs", Source: "./modules/logs", When: "self.enable_monitoring",
					DependsOn: []string{"kubernetes", "monitoring"}, Needs: []string{"kubernetes", "monitoring"},
					Inputs: map[string]string{"agent": "${module.monitoring.agent}"},
				},
			},
		}},
		Outputs: []templates.OutputBlueprint{
			{Name: "agent", Value: "${module.monitoring.agent}"},
			{Name: "endpoint", Value: "${module.kubernetes.endpoint}", Means: "endpoint"},
			{Name: "kubeconfig", Value: "${module.kubernetes.endpoint}", Sensitive: true, Means: "kubeconfig"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	properties, _ := schema["properties"].(map[string]any)
	if names := slices.Sorted(maps.Keys(properties)); !slices.Equal(names, loaded.Variables()) || len(names) != 8 {
		t.Errorf("variables %v and %v", names, loaded.Variables())
	}
}

// TestVersionOfATag: a release is what its template.yaml says.
func TestVersionOfATag(t *testing.T) {
	t.Parallel()

	says := func(version string) map[string]string {
		return with(demoFiles(), "templates/kubernetes/template.yaml",
			strings.Replace(demoTemplate, "{name: kubernetes}", "{name: kubernetes, version: "+version+"}", 1))
	}
	doc := clusterOf(t, "clusters/prod-eu.yaml", strings.Replace(demoCluster, "{path: ../templates/kubernetes}", "{name: kubernetes, version: 1.4.2}", 1))
	for version, want := range map[string]string{
		"1.4.2": "",
		"1.5.0": `clusters/prod-eu.yaml:7:41: template kubernetes@1.4.2: templates/kubernetes/template.yaml at tag kubernetes/v1.4.2 says that it is version 1.5.0 (release it with another tag, or make metadata.version that of the tag)`,
	} {
		resolver := templates.NewResolver(nil).Using(releases{tree: tree(says(version))})
		_, faults, err := resolver.Resolve(t.Context(), tree(nil), doc)
		if err != nil {
			t.Fatal(err)
		}
		if faults.Error() != want {
			t.Errorf("faults:\n%v", faults)
		}
	}
}

// TestSameBytes: documents that say the same give the same bytes, by whatever
// way they come.
func TestSameBytes(t *testing.T) {
	t.Parallel()

	shared := templates.NewResolver(nil)
	var bundles [][]byte
	for _, doc := range []document.Document{clusterWith(t), clusterWith(t, "node_count: 4"), clusterWith(t)} {
		root, faults, err := shared.Resolve(t.Context(), tree(richFiles()), doc)
		if err != nil || len(faults) > 0 {
			t.Fatal(err, faults)
		}
		data, _, err := root.Bundle()
		if err != nil {
			t.Fatal(err)
		}
		bundles = append(bundles, data)
	}
	if !bytes.Equal(bundles[0], bundles[2]) || bytes.Equal(bundles[0], bundles[1]) {
		t.Error("the same documents give other bytes, or others the same")
	}
}
