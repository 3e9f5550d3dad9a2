package world

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/proposals"
)

// templateVersion is what a version of the template says; 9.9.9 is gone.
func templateVersion(out http.ResponseWriter, r *http.Request) {
	if r.PathValue("version") == "9.9.9" {
		refuse(out, v1.ProblemOf(http.StatusNotFound, "template "+r.PathValue("name")+" 9.9.9 cannot be used: its tag was moved", ""))
		return
	}
	text := map[string]any{"type": "string"}
	write(out, v1.TemplateDetail{
		Name: r.PathValue("name"), Version: r.PathValue("version"), Description: "A Kubernetes cluster on AWS", Required: []string{"kubernetes_version"},
		Rules: []v1.TemplateRule{{Rule: "self.node_count >= 3 || !self.high_availability", Message: "high availability needs at least three nodes", Path: "node_count"}},
		Providers: []v1.TemplateProvider{
			{Name: "aws", Regions: []string{"eu-central-1", "us-east-1"}, InstanceTypes: []string{"m7i.large", "m7i.xlarge", "c7i.*large"}, Defaults: map[string]any{"instance_type": "m7i.large"}},
			{Name: "azure", Defaults: map[string]any{"instance_type": "Standard_D4s_v5"}},
		},
		Schema: map[string]any{"type": "object", "properties": map[string]any{
			"kubernetes_version": map[string]any{"type": "string", "enum": []any{"1.32", "1.33"}, "description": "The version of Kubernetes."},
			"node_count":         map[string]any{"type": "integer", "minimum": 1, "maximum": 100, "default": 3, "description": "How many nodes there are at first."},
			"instance_type":      map[string]any{"type": "string", "description": "The size of a node."},
			"high_availability":  map[string]any{"type": "boolean", "default": false, "description": "Spread over three zones."},
			"zones":              map[string]any{"type": "array", "items": text, "maxItems": 3},
			"tags":               map[string]any{"type": "object", "additionalProperties": text, "description": "Tags of everything that the cloud bills."},
			"admin_password":     map[string]any{"type": "string", "writeOnly": true},
		}},
	})
}

// propose makes documents of proposals: too many nodes are a fault.
func propose(out http.ResponseWriter, r *http.Request) {
	var req v1.ClusterProposal
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(out, v1.ProblemOf(http.StatusBadRequest, err.Error(), ""))
		return
	}
	if req.Change == proposals.Update {
		req.Project, req.Environment, req.Version = "payments", "prod", cmp.Or(req.Version, "4.2.0")
	}
	made := v1.ProposedCluster{Repo: "fleet", Path: "clusters/" + req.Cluster + ".yaml", Line: 1}
	variables := map[string]string{}
	for _, set := range req.Set {
		key, value, _ := strings.Cut(set, "=")
		variables[strings.TrimPrefix(key, "variables.")] = value
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata:\n  name: %s\nspec:\n  project: %s\n  environment: %s\n  template: {name: eks, version: %s}\n  variables:\n", req.Cluster, req.Project, req.Environment, req.Version)
	for i, name := range slices.Sorted(maps.Keys(variables)) {
		fmt.Fprintf(&b, "    %s: %s\n", name, variables[name])
		if name == "node_count" && len(variables[name]) > 2 {
			made.Faults = append(made.Faults, v1.Fault{File: made.Path, Line: 10 + i, Column: 17, Message: "spec.variables.node_count is " + variables[name], Hint: "use at most 100"})
		}
	}
	made.Document = b.String()
	if req.Change == proposals.Delete {
		made.Document = ""
	}
	if !req.DryRun && len(made.Faults) == 0 {
		made.PullRequest, made.State, made.Branch = v1.PullRequestRef{Repo: "fleet", Number: 491}, "open", "holdfast/cluster/"+req.Cluster
	}
	write(out, made)
}
