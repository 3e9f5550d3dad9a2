package main

import (
	"fmt"
	"path"
)

const (
	perProject = 100 // clusters of a project, which is a folder
	fleetLabel = "tier"
)

// member is a cluster of a generated fleet.
type member struct {
	name, project, environment string
	number                     int
	released                   bool // made from a version of a published template, see blueprintFleet
}

var (
	fleetEnvironments = []string{"development", "staging", "production"}
	fleetRegions      = []string{"eu-west-1", "us-east-1", "ap-southeast-2"}
)

// fleet returns n clusters. Projects grow in number, not in size.
func fleet(n int) []member {
	members := make([]member, n)
	for i := range members {
		environment := fleetEnvironments[i%len(fleetEnvironments)]
		members[i] = member{
			name:    fmt.Sprintf("c%06d-%s", i, environment[:3]),
			project: fmt.Sprintf("project-%03d", i/perProject), environment: environment, number: i,
		}
	}
	return members
}

func (m member) path() string { return path.Join("clusters", m.project, m.name+".yaml") }

// document is what people write of such a cluster. One in fifty has the label
// that lists are filtered by; edited goes into a variable, so that another
// number asks for another infrastructure.
func (m member) document(edited int) string {
	if m.released {
		return m.releasedDocument(edited)
	}
	tier := "standard"
	if m.number%50 == 0 {
		tier = "gold"
	}
	return fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Cluster
metadata:
  name: %s
  labels: {team: team-%02d, %s: %s, cost-center: "%d"}
spec:
  project: %s
  environment: %s
  template: {path: ../../templates/kubernetes}
  provider: any
  region: %s
  variables:
    node_count: %d
    instance_type: medium
    kubernetes_version: "1.34"
    enable_monitoring: true
    owners: [platform@example.com, team-%02d@example.com]
  engine: {version: ">= 1.5.0"}
  apply: {requires: [approved]}
  drift:
    schedule: "0 3 * * *"
    ignore:
      - {address: "module.kubernetes.**", attribute: tags, reason: the scanner writes them}
  deletion: {protected: %t}
`, m.name, m.number%40, fleetLabel, tier, 4000+m.number%90, m.project, m.environment,
		fleetRegions[m.number%len(fleetRegions)], 3+edited, m.number%40, m.environment == "production")
}

// fleetFiles are the files of the repository that defines the clusters.
func fleetFiles(members []member) map[string]string {
	files := map[string]string{
		"README.md": "A fleet.\n",
		"templates/kubernetes/template.yaml": `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: kubernetes}
spec:
  providers:
    any:
      regions: [eu-west-1, us-east-1, ap-southeast-2]
      defaults: {instance_type: small}
      modules:
        - name: network
          source: ./modules/network
          inputs: {name: "${cluster.name}", region: "${cluster.region}"}
        - name: kubernetes
          source: ./modules/kubernetes
          inputs:
            name: "${cluster.name}"
            network: "${module.network.id}"
            kubernetes_version: "${var.kubernetes_version}"
            node_count: "${var.node_count}"
            instance_type: "${var.instance_type}"
        - name: essentials
          source: ./modules/essentials
          inputs: {endpoint: "${module.kubernetes.endpoint}", monitoring: "${var.enable_monitoring}", owners: "${var.owners}"}
          dependsOn: [kubernetes]
  variables:
    type: object
    required: [node_count]
    properties:
      node_count: {type: integer, minimum: 1, maximum: 1000000}
      instance_type: {type: string, enum: [small, medium, large]}
      kubernetes_version: {type: string, enum: ["1.33", "1.34", "1.35"]}
      enable_monitoring: {type: boolean}
      owners: {type: array, items: {type: string}}
  outputs: {endpoint: "${module.kubernetes.endpoint}"}
`,
		"templates/kubernetes/modules/network/main.tf":    stub("id", "name", "region"),
		"templates/kubernetes/modules/kubernetes/main.tf": stub("endpoint", "name", "network", "kubernetes_version", "node_count", "instance_type"),
		"templates/kubernetes/modules/essentials/main.tf": stub("done", "endpoint", "monitoring", "owners"),
	}
	for _, m := range members {
		files[m.path()] = m.document(0)
	}
	return files
}

// stub is a module with some inputs, and an output that depends on them.
func stub(output string, inputs ...string) string {
	code, all := "", ""
	for _, name := range inputs {
		code += fmt.Sprintf("variable %q {}\n", name)
		all += "    " + name + " = var." + name + "\n"
	}
	return code + "\nresource \"terraform_data\" \"this\" {\n  input = {\n" + all +
		"  }\n}\n\noutput \"" + output + "\" {\n  value = terraform_data.this.id\n}\n"
}
