package library_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/policy"
	shipped "github.com/holdfast-dev/holdfast/policy/library"
	"github.com/holdfast-dev/holdfast/protocol"
)

// harm is a change of a cluster that exists, and the shipped policies that speak against it.
type harm struct {
	kind  string // of the resources that it changes
	path  []any  // of the attribute; nil: the resource is replaced
	value any
	want  []string
}

// harms are by cloud. That each names an attribute of the examples' plans is part of the test.
var harms = map[string][]harm{ //nolint:gochecknoglobals // a constant table
	"aws": {
		{"aws_eks_cluster", nil, nil, []string{"control-plane-replaced"}},
		{"aws_eks_cluster", []any{"version"}, "1.99", []string{"version-skipped"}},
		{"aws_eks_cluster", []any{"version"}, "1.2", []string{"version-downgraded"}},
		{"aws_eks_cluster", []any{"enabled_cluster_log_types"}, []any{"api"}, []string{"logging-disabled"}},
		{"aws_eks_node_group", nil, nil, []string{"node-pool-replaced"}},
		{"aws_vpc", []any{"cidr_block"}, "10.99.0.0/16", []string{"network-changed"}},
		{"aws_subnet", nil, nil, []string{"network-changed"}},
		{"aws_iam_openid_connect_provider", nil, nil, []string{"oidc-issuer-changed"}},
		{"aws_cloudwatch_log_group", nil, nil, []string{"logging-disabled"}},
		{"aws_launch_template", []any{"block_device_mappings", 0, "ebs", 0, "encrypted"}, "false", []string{"encryption-disabled"}},
	},
	"azure": {
		{"azurerm_kubernetes_cluster", nil, nil, []string{"control-plane-replaced"}},
		{"azurerm_kubernetes_cluster", []any{"kubernetes_version"}, "1.99", []string{"version-skipped"}},
		{"azurerm_kubernetes_cluster", []any{"oidc_issuer_enabled"}, false, []string{"oidc-issuer-changed"}},
		{"azurerm_virtual_network", []any{"address_space"}, []any{"10.99.0.0/16"}, []string{"network-changed"}},
		{"azurerm_subnet", []any{"address_prefixes"}, []any{"10.99.0.0/24"}, []string{"network-changed"}},
	},
	"gcp": {
		{"google_container_cluster", nil, nil, []string{"control-plane-replaced"}},
		{"google_container_cluster", []any{"min_master_version"}, "1.99", []string{"version-skipped"}},
		{"google_container_cluster", []any{"workload_identity_config", 0, "workload_pool"}, "other.svc.id.goog", []string{"oidc-issuer-changed"}},
		{"google_compute_subnetwork", []any{"ip_cidr_range"}, "10.99.0.0/20", []string{"network-changed"}},
		{"google_compute_router_nat", []any{"log_config", 0, "enable"}, false, []string{"logging-disabled"}},
		{"google_container_node_pool", nil, nil, []string{"node-pool-replaced"}},
	},
	"linode": {
		{"linode_lke_cluster", nil, nil, []string{"control-plane-replaced"}},
		{"linode_lke_cluster", []any{"k8s_version"}, "1.99", []string{"version-skipped"}},
		{"linode_vpc_subnet", []any{"ipv4"}, "10.99.0.0/24", []string{"network-changed"}},
	},
	"digitalocean": {
		{"digitalocean_kubernetes_cluster", nil, nil, []string{"control-plane-replaced"}},
		{"digitalocean_vpc", []any{"ip_range"}, "10.99.0.0/24", []string{"network-changed"}},
	},
}

// shippedPolicies holds the shipped policies against the plan of an example: nothing is wrong
// with a new cluster, nor with one that stays as it is, and each harm is found.
func shippedPolicies(t *testing.T, cloud string, printed []byte) {
	t.Helper()
	set := policy.Compile(shipped.Sources(), nil)
	if got := saidBy(t, set, printed, holdfast.RunPlan); len(got) > 0 {
		t.Errorf("a new cluster: %v", got)
	}
	if got := saidBy(t, set, changedPlan(t, printed, &harm{}), holdfast.RunPlan); len(got) > 0 {
		t.Errorf("a cluster that stays as it is: %v", got)
	}
	for _, h := range harms[cloud] {
		plan := changedPlan(t, printed, &h)
		if plan == nil {
			continue
		}
		if got := saidBy(t, set, plan, holdfast.RunPlan); !cmp.Equal(got, h.want) {
			t.Errorf("%s %v: got %v, want %v", h.kind, h.path, got, h.want)
		}
	}
}

// saidBy are the policies that say something of a plan.
func saidBy(t *testing.T, set *policy.Set, plan []byte, kind holdfast.RunKind) (ids []string) {
	t.Helper()
	in, err := policy.ReadInput(bytes.NewReader(plan), policy.Context{Run: protocol.PolicyRun{Kind: kind}})
	if err != nil {
		t.Fatal(err)
	}
	report := set.Evaluate(t.Context(), in, policy.Limits{}, nil)
	for _, f := range report.Faults {
		t.Error(f.Error())
	}
	for _, r := range report.Results {
		ids = append(ids, r.Policy)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// changedPlan makes, of the plan of a new cluster, one of a cluster that exists and stays as it
// is except for a harm. It is nil if the example has no such pool of nodes: not every one has.
func changedPlan(t *testing.T, printed []byte, h *harm) []byte {
	t.Helper()
	var plan map[string]any
	if err := json.Unmarshal(printed, &plan); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, item := range plan["resource_changes"].([]any) {
		rc := item.(map[string]any)
		change := rc["change"].(map[string]any)
		if rc["mode"] != "managed" {
			continue
		}
		after := change["after"]
		var before any
		text, err := json.Marshal(after)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &before); err != nil {
			t.Fatal(err)
		}
		change["before"], change["after_unknown"], change["actions"] = before, map[string]any{}, []any{"no-op"}
		switch {
		case rc["type"] != h.kind:
		case h.path == nil:
			changed++
			change["actions"] = []any{"delete", "create"}
		case put(after, h.path, h.value):
			changed++
			change["actions"] = []any{"update"}
		}
	}
	if h.kind != "" && changed == 0 {
		if !strings.Contains(h.kind, "node") {
			t.Errorf("no %s has the attribute %v", h.kind, h.path)
		}
		return nil
	}
	out, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// put sets a value in a tree, and reports whether there was another one.
func put(tree any, path []any, value any) bool {
	for i, step := range path {
		last := i == len(path)-1
		switch at := step.(type) {
		case string:
			object, ok := tree.(map[string]any)
			if !ok || object[at] == nil || last && cmp.Equal(object[at], value) {
				return false
			}
			if last {
				object[at] = value
				return true
			}
			tree = object[at]
		case int:
			list, ok := tree.([]any)
			if !ok || len(list) <= at {
				return false
			}
			tree = list[at]
		}
	}
	return false
}
