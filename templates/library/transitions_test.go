package library_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// transition is a change of a cluster's variables, and what its plan may do.
type transition struct {
	name string
	to   inputs
	// forget is what the state of an earlier version does not have.
	forget string
	// env is of the stand-ins.
	env []string
	// refused is part of the reason for which the change cannot be planned.
	refused string
	// shows is what the printed plan has in it.
	shows string
}

// systemPool is a first pool by that name, with a change, and more of them.
func systemPool(name string, change inputs, more ...any) inputs {
	first := inputs{"name": name, "count": 3}
	maps.Copy(first, change)
	return inputs{"node_pools": append([]any{first}, more...)}
}

// transitions are ordinary changes of a cluster that has nothing but monitoring, by cloud.
// What replaces a resource is in testdata/replaces.json.
func transitions() map[string][]transition {
	cidr := transition{name: "another range", to: inputs{"cidr": "10.8.0.0/16"}, refused: "cidr cannot be changed"}
	renamed := transition{name: "another name of the first pool", to: systemPool("workers", nil)}
	return map[string][]transition{
		"aws": {cidr},
		"gcp": {
			cidr,
			{name: "tags that are one label", to: inputs{"tags": map[string]any{"Team": "a", "team": "b"}}, refused: "some are the same label"},
		},
		"azure": {
			cidr, renamed,
			{
				name: "a pool with the name that the first one had", to: systemPool("workers", nil, inputs{"name": "system", "count": 1}),
				refused: "has that name in the cloud for good",
			},
			{name: "private", to: inputs{"private_endpoint": true}, refused: "private_endpoint cannot be changed"},
			{name: "from a version that remembers no name", forget: "module.kubernetes.terraform_data.system_name"},
		},
		"digitalocean": {
			cidr, renamed,
			{name: "another machine", to: inputs{"instance_type": "s-8vcpu-16gb"}, refused: "machines of the first pool"},
			{name: "another disk for metrics", to: inputs{"monitoring_disk_gb": 200}, refused: "monitoring_disk_gb cannot be changed"},
			{
				name: "a tag, and the version is no longer offered", to: inputs{"tags": map[string]any{"a": "b"}},
				env: []string{"FACTS_EMPTY=digitalocean_kubernetes_versions"}, shows: `"timeouts":{"delete":"30m"}`,
			},
			{
				name: "a version that is not offered", to: inputs{"kubernetes_version": "1.99"},
				env: []string{"FACTS_EMPTY=digitalocean_kubernetes_versions"}, refused: "does not offer Kubernetes 1.99",
			},
			{name: "from a version that remembers no disk", forget: "module.essentials.terraform_data.monitoring_disk[0]"},
		},
		"linode": {
			cidr, renamed,
			{name: "another machine", to: inputs{"instance_type": "g6-standard-6"}, refused: "machines of the first pool"},
		},
	}
}

// TestTransitions has the engine apply a cluster of each cloud, and plan changes of it: none
// replaces its control plane, its network or its first pool.
func TestTransitions(t *testing.T) {
	t.Parallel()
	config := standIns(t)
	tree := diskTree{os.DirFS("kubernetes")}
	all := examples(t, tree)
	for cloud, changes := range transitions() {
		t.Run(cloud, func(t *testing.T) {
			t.Parallel()
			doc := all[cloud+"-basic"]
			doc.Cluster.Variables = inputs{"enable_monitoring": true}
			env := standInEnv(t, doc)
			dir := applyTwice(t, unpack(t, resolve(t, tree, doc)), config, env)
			for _, change := range changes {
				t.Run(change.name, func(t *testing.T) {
					doc.Cluster.Variables = inputs{"enable_monitoring": true}
					maps.Copy(doc.Cluster.Variables, change.to)
					env := append(slices.Clone(env), change.env...)
					if change.forget != "" {
						if out, err := terraform(t, dir, config, env, "state", "rm", change.forget); err != nil {
							t.Fatalf("terraform state rm: %v\n%s", err, out)
						}
					}
					write(t, filepath.Dir(dir), unpack(t, resolve(t, tree, doc)))
					out, err := terraform(t, dir, config, env, "plan", "-input=false", "-no-color", "-out=plan")
					if change.refused != "" {
						if err == nil || !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(out, "│", "")), " "), change.refused) {
							t.Errorf("the plan does not fail because of %q: %v\n%s", change.refused, err, out)
						}
						return
					}
					if err != nil {
						t.Fatalf("terraform plan: %v\n%s", err, out)
					}
					shown, err := terraform(t, dir, config, env, "show", "-json", "plan")
					if err != nil {
						t.Fatal(err)
					}
					if got := destroyed(t, shown); len(got) > 0 {
						t.Errorf("the plan destroys %v\n%s", got, out)
					}
					if !strings.Contains(shown, change.shows) {
						t.Errorf("the plan does not show %s\n%s", change.shows, shown)
					}
				})
			}
			if cloud == "aws" {
				nodesGoBeforeTheirWayOut(t, dir, config, env)
			}
		})
	}
}

// nodesGoBeforeTheirWayOut destroys a cluster of aws. What frees its volumes and load balancers
// runs on nodes, and calls the cloud.
func nodesGoBeforeTheirWayOut(t *testing.T, dir, config string, env []string) {
	t.Helper()
	out, err := terraform(t, dir, config, env, "apply", "-destroy", "-auto-approve", "-input=false", "-no-color")
	if err != nil {
		t.Fatalf("terraform apply -destroy: %v\n%s", err, out)
	}
	lines := strings.Split(out, "\n")
	gone := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "module.kubernetes.aws_eks_node_group.fixed[") && strings.Contains(line, ": Destruction complete")
	})
	for _, way := range []string{"aws_route.internet", "aws_route.nat", "aws_route_table_association.public", "aws_vpc_endpoint.s3"} {
		goes := slices.IndexFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, "module.network."+way) && strings.Contains(line, ": Destroying")
		})
		if gone < 0 || goes < gone {
			t.Errorf("%s is destroyed before the nodes are:\n%s", way, out)
		}
	}
}

// destroyed returns the addresses that a printed plan destroys or replaces, sorted.
func destroyed(t *testing.T, printed string) []string {
	t.Helper()
	var plan struct {
		Changes []struct {
			Address string
			Change  struct{ Actions []string }
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal([]byte(printed), &plan); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range plan.Changes {
		if slices.Contains(c.Change.Actions, "delete") {
			out = append(out, c.Address)
		}
	}
	slices.Sort(out)
	return out
}
