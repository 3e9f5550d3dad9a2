package templates_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates"
)

// TestFaultsOfTheFormat plants one mistake in a template that is fine.
func TestFaultsOfTheFormat(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ old, replacement, want string }{
		"version":                        {"version: 1.5.0", "version: v1.5", `5:12: metadata.version "v1.5" is not an exact version (write an exact version such as 1.4.2)`},
		"version v":                      {"version: 1.5.0", "version: v1.5.0", `5:12: metadata.version "v1.5.0" is not an exact version (write 1.5.0)`},
		"version number":                 {"version: 1.5.0", "version: 1.5", `5:12: metadata.version "1.5" is not an exact version (write an exact version such as 1.4.2)`},
		"description":                    {"description: A cluster.", "description: 5", `6:16: metadata.description must be text, not the number 5 (put it in quotes: "5")`},
		"metadata key":                   {"description: A", "descriptin: A", `6:3: unknown key "descriptin" in metadata (did you mean "description"?)`},
		"spec key":                       {"  rules:\n", "  rulez:\n", `65:3: unknown key "rulez" in spec (did you mean "rules"?)`},
		"provider key":                   {"      instanceTypes:", "      instancetypes:", `11:7: unknown key "instancetypes" in spec.providers.aws (did you mean "instanceTypes"?)`},
		"instance types, a text":         {"instanceTypes: [\"m7i.*\", t3.medium]", "instanceTypes: t3.medium", `11:22: spec.providers.aws.instanceTypes must be a list, not the text "t3.medium" (write instanceTypes: [t3.medium])`},
		"glob":                           {"\"m7i.*\", t3", "\"m7i.[\", t3", `11:23: instance type "m7i.[" is not a pattern (write one such as t3.medium or "m7i.*")`},
		"glob slash":                     {"\"m7i.*\", t3", "\"m7i/*\", t3", `11:23: instance type "m7i/*" has a / (write one such as t3.medium or "m7i.*")`},
		"glob empty":                     {"\"m7i.*\", t3", "\"\", t3", `11:23: instance type "" is empty (write one such as t3.medium or "m7i.*")`},
		"no format":                      {"pools:\n        type: array", "pools:\n        type: arrai", `56:15: spec.variables is not a JSON Schema that can be used: at /properties/pools/type: value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'`},
		"default not allowed":            {"{instance_type: m7i.large}", "{instance_type: z9.large}", `12:33: variable instance_type is "z9.large": not allowed for aws (one of t3.medium, m7i.*)`},
		"default of wrong type":          {"{instance_type: m7i.large}", "{node_count: three}", `12:30: variable node_count must be an integer, not string (write the number without quotes)`},
		"default below the minimum":      {"{instance_type: m7i.large}", "{node_count: 0}", `12:30: variable node_count must be at least 1, not 0`},
		"schema default":                 {"minimum: 1}", "minimum: 1, default: 0}", `48:56: the default of variable node_count must be at least 1, not 0`},
		"default, secret literal":        {"{instance_type: m7i.large}", "{db_password: hunter2}", `12:31: db_password is secret: its default says where its value is, such as {secret: {env: DB_PASSWORD}}`},
		"schema default, secret literal": {"writeOnly: true", "writeOnly: true, default: hunter2", `53:76: db_password is secret: its default says where its value is, such as {secret: {env: DB_PASSWORD}}`},
		"secret type":                    {"{type: string, minLength: 12, writeOnly: true}", "{type: integer, writeOnly: true}", `53:47: variable db_password is secret (writeOnly) and must have type: string`},
		"secret inside":                  {"name: {type: string}", "name: {type: string, writeOnly: true}", `62:45: writeOnly is not at a variable itself (only a variable as a whole can be secret)`},
		"configure name":                 {"name: helm", "name: Helm_2", `14:17: "Helm_2" cannot be the name of a provider of the engine (use a-z, 0-9 and - inside, as the modules call it)`},
		"configure no name":              {"- name: helm\n          source", "- source", `14:11: spec.providers.aws.configure[0].name is missing`},
		"configure twice":                {"name: helm", "name: aws", `18:17: provider "aws" is configured twice (remove one)`},
		"configure source":               {"source: hashicorp/helm", "source: helm", `15:19: "helm" is not a provider source (write [host/]namespace/type, such as hashicorp/aws)`},
		"configure no source":            {"          source: hashicorp/helm\n", "", `14:11: spec.providers.aws.configure[0].source is missing`},
		"configure version":              {"\"~> 6.0\"", "latest", `20:20: spec.providers.aws.configure[1].version "latest" is not a version constraint (write one such as "~> 1.10" or ">= 1.9, < 2.0")`},
		"configure key":                  {"arguments: {kubernetes: {host", "argumnts: {kubernetes: {host", `17:11: unknown key "argumnts" in spec.providers.aws.configure[0] (did you mean "arguments"?)`},
		"configure reference":            {"{region: \"${cluster.region}\"}", "{region: \"${cluster.regin}\"}", `21:23: ${cluster.regin}: unknown cluster field "regin" for aws (did you mean "region"?)`},
		"configure output":               {"{kubernetes: {host: \"${module.kubernetes.endpoint}\"}}", "{kubernetes: {host: \"${module.kubernetes.endpont}\"}}", `17:23: module "kubernetes" has no output "endpont" (did you mean "endpoint"?)`},
		"configure argument":             {"{region: \"${cluster.region}\"}", "{\"re gion\": x}", `21:23: "re gion" cannot be the name of an argument (use letters, digits, _ and -)`},
		"configure alias":                {"{region: \"${cluster.region}\"}", "{alias: x}", `21:23: alias is not an argument of a provider here (every provider is configured once)`},
		"configure version argument":     {"{region: \"${cluster.region}\"}", "{version: x}", `21:23: version is not an argument of a provider here (write it next to source)`},
		"configure for_each":             {"{region: \"${cluster.region}\"}", "{for_each: x}", `21:23: "for_each" cannot be the name of an argument: it means something else to the engine`},
		"block type":                     {"type: default_tags", "type: default tags", `23:22: "default tags" cannot be the type of a block (use letters, digits, _ and -)`},
		"block dynamic":                  {"type: default_tags", "type: dynamic", `23:22: "dynamic" cannot be the type of a block: it means something else to the engine`},
		"block no type":                  {"{type: inner}", "{arguments: {}}", `24:41: spec.providers.aws.configure[1].blocks[1].blocks[0].type is missing`},
		"block key":                      {"{type: inner}", "{type: inner, argments: {}}", `24:55: unknown key "argments" in spec.providers.aws.configure[1].blocks[1].blocks[0] (did you mean "arguments"?)`},
		"blocks mapping":                 {"blocks: [{type: inner}]", "blocks: {type: inner}", `24:40: spec.providers.aws.configure[1].blocks[1].blocks must be a list, not a mapping`},
		"configure when":                 {"version: \"~> 3.0\"\n          arguments", "when: self.enable_monitoring\n          arguments", `16:17: a configured provider has no when (what a module made is destroyed when it is switched off, and that needs its provider: give the when to the module)`},
		"when unknown":                   {"when: self.enable_monitoring\n          inputs: {name", "when: self.enable_monitorin\n          inputs: {name", `36:17: when of module "monitoring" names the unknown variable self.enable_monitorin (did you mean "enable_monitoring"?)`},
		"when index":                     {"when: self.enable_monitoring\n          inputs: {name", "when: self[\"enable_monitorin\"]\n          inputs: {name", `36:17: when of module "monitoring" names the unknown variable self.enable_monitorin (did you mean "enable_monitoring"?)`},
		"when type":                      {"when: self.enable_monitoring\n          inputs: {name", "when: self.node_count\n          inputs: {name", `36:17: when of module "monitoring" is int, not true or false (compare it with something)`},
		"when boolean":                   {"when: self.enable_monitoring\n          inputs: {name", "when: true\n          inputs: {name", `36:17: spec.providers.aws.modules[1].when must be text, not the boolean true (put it in quotes: "true")`},
		"when empty":                     {"when: self.enable_monitoring\n          inputs: {name", "when: \"\"\n          inputs: {name", `36:17: spec.providers.aws.modules[1].when is empty`},
		"when syntax":                    {"when: self.enable_monitoring\n          inputs: {name", "when: self.enable_monitoring &&\n          inputs: {name", `36:17: when of module "monitoring" is not valid CEL: mismatched input '<EOF>' (at character 26)`},
		"when absent": {"when: self.enable_monitoring\n          inputs: {name", "when: self.price > 1.0\n          inputs: {name", `36:17: when of module "monitoring" needs self.price, which may be left out (give it a default, require it, or ask has(self.price) first)
42:20: module "logs" needs the input "agent", which is left out while module "monitoring" is off (give the module's variable a default, or the module the same when: self.price > 1.0)`},
		"when secret":                           {"when: self.enable_monitoring\n          inputs: {name", "when: self.db_password == \"\"\n          inputs: {name", `36:17: when of module "monitoring" asks for the value of db_password, which is secret (has(self.db_password) says whether it is given)`},
		"when self":                             {"when: self.enable_monitoring\n          inputs: {name", "when: size(self) > 1\n          inputs: {name", `36:17: when of module "monitoring" uses self without a name behind it (write self.x or self["x"])`},
		"when self dynamic index":               {"when: self.enable_monitoring\n          inputs: {name", "when: self[cluster.name]\n          inputs: {name", `36:17: when of module "monitoring" uses self without a name behind it (write self.x or self["x"])`},
		"when shadow":                           {"when: self.enable_monitoring\n          inputs: {name", "when: \"[1].exists(self, self > 0)\"\n          inputs: {name", `36:17: when of module "monitoring" gives self or cluster another meaning (use another name for the item)`},
		"when cluster":                          {"when: self.enable_monitoring\n          inputs: {name", "when: cluster.regio == \"x\"\n          inputs: {name", `36:17: when of module "monitoring" names the unknown field cluster.regio (did you mean "region"?)`},
		"when overload":                         {"when: self.enable_monitoring\n          inputs: {name", "when: self.node_count == \"3\"\n          inputs: {name", `36:17: when of module "monitoring" cannot be used: == does not go with (int, string) (at character 17)`},
		"when field":                            {"when: self.enable_monitoring\n          inputs: {name", "when: has(self.pools) && self.pools.exists(p, p.cuont > 1)\n          inputs: {name", `36:17: when of module "monitoring" asks for the field "cuont", which is not there (at character 42) (did you mean "count"?)`},
		"when name":                             {"when: self.enable_monitoring\n          inputs: {name", "when: node_count > 1\n          inputs: {name", `36:17: when of module "monitoring" asks for "node_count", which is not there (at character 1) (did you mean self.node_count?)`},
		"rule not there":                        {"rule: \"!has(self.price)", "rulee: \"!has(self.price)", `71:7: unknown key "rulee" in spec.rules[2] (did you mean "rule"?)`},
		"rule, no message":                      {"      message: too expensive\n", "", `71:7: spec.rules[2].message is missing`},
		"rule path":                             {"path: price", "path: prise", `73:13: path names the variable "prise", which is not there (did you mean "price"?)`},
		"rule unknown":                          {"self.price * 2.0", "self.prize * 2.0", `71:13: rule names the unknown variable self.prize (did you mean "price"?)`},
		"rule absent":                           {"!has(self.price) || self.price * 2.0 < 5.0", "self.price * 2.0 < 5.0", `71:13: rule needs self.price, which may be left out (give it a default, require it, or ask has(self.price) first)`},
		"rule not a mapping":                    {"    - rule: \"!has(self.price) || self.price * 2.0 < 5.0\"\n      message: too expensive\n      path: price\n", "    - self.price\n", `71:7: spec.rules[2] must be a mapping, not the text "self.price"`},
		"means":                                 {"means: endpoint", "means: endpont", `75:63: spec.outputs.endpoint.means is "endpont" (did you mean "endpoint"?)`},
		"means not sensitive":                   {"sensitive: true, means: kubeconfig", "means: kubeconfig", `76:65: output kubeconfig is a kubeconfig and not sensitive (add sensitive: true)`},
		"input type, variable":                  {"node_count: \"${var.node_count}\"", "node_count: \"${var.instance_type}\"", `29:13: module "kubernetes" wants node_count as number, and variable "instance_type" is a string`},
		"input type, literal":                   {"node_count: \"${var.node_count}\"", "node_count: three", `29:13: module "kubernetes" wants node_count as number, and this is "three"`},
		"input type, list":                      {"node_count: \"${var.node_count}\"", "node_count: [3]", `29:13: module "kubernetes" wants node_count as number, and this is a list`},
		"input type, bool":                      {"node_count: \"${var.node_count}\"", "node_count: true", `29:13: module "kubernetes" wants node_count as number, and this is true`},
		"input type, cluster":                   {"node_count: \"${var.node_count}\"", "node_count: \"${cluster.name}\"", `29:13: module "kubernetes" wants node_count as number, and cluster.name is a string`},
		"input of a module that is off, needed": {"environment: \"${cluster.environment}\"", "environment: \"${module.monitoring.agent}\"", `33:13: module "kubernetes" needs the input "environment", which is left out while module "monitoring" is off (give the module's variable a default, or the module the same when: self.enable_monitoring)`},
		"field of a list":                       {"type: \"${var.instance_type}\"", "type: \"${var.pools[0].nme}\"", `30:13: ${var.pools[0].nme}: variable "pools" has no "nme" there (did you mean "name"?)`},
		"several": {"means: endpoint", "means: x, sensitve: true", `75:63: spec.outputs.endpoint.means is "x" (one of endpoint, kubeconfig, nodeCount)
75:66: unknown key "sensitve" in spec.outputs.endpoint (did you mean "sensitive"?)`},
		"secret in an output": {"sensitive: true, means: kubeconfig}\n", "sensitive: true, means: kubeconfig}\n    password: \"x${var.db_password}\"\n", `77:5: output password shows db_password, which is secret (add sensitive: true)`},
		"means twice":         {"sensitive: true, means: kubeconfig}\n", "sensitive: true, means: kubeconfig}\n    again: {value: x, means: endpoint}\n", `77:30: outputs endpoint and again both mean endpoint (one of them can)`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(richTemplate, tc.old, tc.replacement, 1)
			if text == richTemplate {
				t.Fatalf("no %q", tc.old)
			}
			_, faults, err := templates.NewResolver(nil).Load(tree(with(richFiles(), "t/template.yaml", text)), "t")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.ReplaceAll(faults.Error(), "t/template.yaml:", ""); got != tc.want {
				t.Errorf("faults:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}
