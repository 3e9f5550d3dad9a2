package templates_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/document"
)

const checkedTemplate = `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: web}
spec:
  providers:
    aws: {regions: [eu-west-1, us-east-1], defaults: {size: small}, modules: [{name: a, source: ./a}]}
    gcp: {modules: [{name: a, source: ./a}]}
  variables:
    type: object
    required: [nodes, size]
    properties:
      nodes: {type: integer, minimum: 1}
      size: {type: string, enum: [small, large]}
      tier: {type: string}
      safe: {type: boolean}
      alarm: {type: boolean, default: true}
    if: {properties: {tier: {const: gold}}, required: [tier]}
    then: {properties: {nodes: {minimum: 5}}}
  rules:
    - {rule: "!has(self.safe) || self.nodes >= 3", message: three nodes are safe, path: nodes}
    - {rule: "!self.alarm || self.nodes != 7", message: seven alarms are too many, path: nodes}
    - {rule: "cluster.region != 'us-east-1' || self.nodes < 9", message: no room there, path: nodes}
`

// TestFaultsAtOnce: all that is wrong with a cluster is reported in one round, and nothing
// that only follows from another fault.
func TestFaultsAtOnce(t *testing.T) {
	t.Parallel()
	const unknownKey = `c/c.yaml:11:3: unknown key "dependson" in spec (did you mean "dependsOn"?)`
	for name, tc := range map[string]struct{ spec, want string }{
		"nothing": {"template: {path: ../t}\nprovider: aws\nregion: eu-west-1\nvariables: {nodes: 3, safe: true}", ""},
		"the text, the provider and variables": {
			"template: {path: ../t}\nprovider: asw\nregion: nowhere\nvariables: {nodes: three, color: red}\ndependson: [b]",
			`c/c.yaml:8:13: template web at t has no provider "asw" (did you mean "aws"?)
c/c.yaml:10:22: variable nodes must be an integer, not string (write the number without quotes)
c/c.yaml:10:29: unknown variable "color" (one of alarm, nodes, safe, size, tier)
` + unknownKey,
		},
		"the region, a variable and a rule about others": {
			"template: {path: ../t}\nprovider: aws\nregion: eu-west-2\nvariables: {nodes: 1, safe: true, size: huge}",
			`c/c.yaml:9:11: web at t has no region "eu-west-2" for aws (did you mean "eu-west-1"? one of eu-west-1, us-east-1)
c/c.yaml:10:22: three nodes are safe
c/c.yaml:10:43: variable size is "huge" (one of large, small)`,
		},
		"no rule about a variable that is refused": {
			"template: {path: ../t}\nprovider: aws\nregion: us-east-1\nvariables: {nodes: 0, safe: true, size: huge}",
			`c/c.yaml:10:22: variable nodes must be at least 1, not 0
c/c.yaml:10:43: variable size is "huge" (one of large, small)`,
		},
		"no rule about a variable that is misspelt": {
			"template: {path: ../t}\nprovider: aws\nregion: eu-west-1\nvariables: {nodse: 3, safe: true}",
			`c/c.yaml:10:15: unknown variable "nodse" (did you mean "nodes"?)`,
		},
		"no rule about a variable with a default whose name is misspelt": {
			"template: {path: ../t}\nprovider: aws\nregion: eu-west-1\nvariables: {nodes: 7, alram: false}",
			`c/c.yaml:10:25: unknown variable "alram" (did you mean "alarm"?)`,
		},
		"no rule about a region that is not text": {
			"template: {path: ../t}\nprovider: aws\nregion: 12\nvariables: {nodes: 10, size: huge}",
			`c/c.yaml:9:11: spec.region must be text, not the number 12 (put it in quotes: "12")
c/c.yaml:10:32: variable size is "huge" (one of large, small)`,
		},
		"nothing is missing while the key of the variables is misspelt": {
			"template: {path: ../t}\nprovider: aws\nregion: eu-west-1\nvarables: {nodes: 0}\ndependson: [b]",
			`c/c.yaml:10:3: unknown key "varables" in spec (did you mean "variables"?)
` + unknownKey,
		},
		"an unknown provider may have defaults": {
			"template: {path: ../t}\nprovider: asw\nregion: eu-west-1\nvariables: {tier: gold, nodes: 4}",
			`c/c.yaml:8:13: template web at t has no provider "asw" (did you mean "aws"?)`,
		},
		"a provider that is not text": {
			"template: {path: ../t}\nprovider: [aws]\nregion: eu-west-1\nvariables: {nodes: 0}",
			`c/c.yaml:8:13: spec.provider must be text, not a list
c/c.yaml:10:22: variable nodes must be at least 1, not 0`,
		},
		"the template is not known": {
			"template: {path: ../t, version: 1.0.0}\nprovider: asw\nregion: eu-west-1\nvariables: {nodes: 0}",
			`c/c.yaml:7:26: spec.template.version is only valid with a name, not with a path (a template by path is the one of the same revision)`,
		},
		"a module": {
			"module: {path: t/a}\nprovider: aws\nregion: eu-west-1\nvariables: {nodes: 0}\ndependson: [b]",
			`c/c.yaml:10:15: module t/a declares no variable "nodes"
` + unknownKey,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := tree(map[string]string{"t/template.yaml": checkedTemplate, "t/a/main.tf": "", "c/c.yaml": ""})
			docs, faults := document.ParseClusters("c/c.yaml", []byte(short(strings.Split(tc.spec, "\n")...)))
			if len(docs) != 1 {
				t.Fatalf("%d documents: %v", len(docs), faults.Err())
			}
			if len(faults) == 0 {
				faults = resolveFaults(t, files, docs[0])
			} else {
				more, err := templates.NewResolver(nil).Check(t.Context(), files, docs[0])
				if err != nil {
					t.Fatal(err)
				}
				faults = append(faults, more...)
				decode.SortFaults(faults)
			}
			wantFaults(t, faults, tc.want)
		})
	}
}
