package library_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

type inputs = map[string]any

// goodInputs are taken by every kubernetes module.
func goodInputs() inputs {
	return inputs{
		"name": "a-cluster-1", "region": "r", "kubernetes_version": "1.33", "network_id": "n", "subnet_ids": []string{"a", "b"},
		"instance_type": "t", "node_pools": []any{pool(nil), inputs{"name": "b", "instance_type": "t", "min_count": 1, "max_count": 2}},
	}
}

// pool is a pool of nodes that is taken, with a change.
func pool(change inputs) inputs {
	p := inputs{"name": "a", "instance_type": "t", "count": 1}
	maps.Copy(p, change)
	return p
}

// badInputs are changes of good ones, each of which every kubernetes module refuses.
func badInputs() map[string]inputs {
	pools := func(all ...any) inputs { return inputs{"node_pools": all} }
	taint := func(effect string) inputs {
		return inputs{"taints": []any{inputs{"key": "a", "effect": effect}}}
	}
	return map[string]inputs{
		"name":         {"name": "Upper"},
		"name_long":    {"name": strings.Repeat("a", 100)},
		"name_end":     {"name": "a-"},
		"version":      {"kubernetes_version": "1.33.4"},
		"no_pool":      {"node_pools": []any{}},
		"pool_twice":   pools(pool(nil), pool(nil)),
		"pool_name":    pools(pool(inputs{"name": "A_b"})),
		"no_nodes":     {"node_count": 0},
		"half_a_node":  {"node_count": 1.5},
		"both_counts":  pools(pool(inputs{"min_count": 1, "max_count": 2})),
		"half_a_range": pools(pool(inputs{"count": nil, "min_count": 1})),
		"empty_pool":   pools(pool(inputs{"count": 0})),
		"upside_down":  pools(pool(inputs{"count": nil, "min_count": 3, "max_count": 2})),
		"first_taint":  pools(pool(taint("NoSchedule"))),
		"taint_effect": pools(pool(nil), pool(inputs{"name": "b"}), pool(inputs{"name": "c", "taints": taint("No")["taints"]})),
		"allowed":      {"allowed_cidrs": []string{"10.0.0.0"}},
		"no_allowed":   {"allowed_cidrs": []string{}},
	}
}

// calls is a root module that calls modules by many names.
type calls struct {
	text  strings.Builder
	names []string
}

func (c *calls) add(t *testing.T, name, cloud, kind string, in inputs) {
	t.Helper()
	c.names = append(c.names, name)
	fmt.Fprintf(&c.text, "module %q {\n  source = \"./%s/%s\"\n", name, cloud, kind)
	for _, input := range slices.Sorted(maps.Keys(in)) {
		data, err := json.Marshal(in[input])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&c.text, "  %s = %s\n", input, data)
	}
	c.text.WriteString("}\n")
}

// TestInputsAreValidated asks the engine about the inputs of every cloud: good
// ones and those of the examples are taken, bad ones refused. The modules are
// there with their variables alone, so that no provider is needed.
func TestInputsAreValidated(t *testing.T) {
	t.Parallel()

	dir, whole := t.TempDir(), library(t)
	var root calls
	for _, cloud := range clouds {
		for _, kind := range []string{"network", "kubernetes"} {
			write(t, dir, fstest.MapFS{path.Join(cloud, kind, "variables.tf"): whole[path.Join("kubernetes/modules", cloud, kind, "variables.tf")]})
		}
		root.add(t, "good_"+cloud, cloud, "kubernetes", goodInputs())
		short := goodInputs()
		short["node_pools"], short["node_count"] = nil, nil
		root.add(t, "good_"+cloud+"_short", cloud, "kubernetes", short)
		bare := goodInputs()
		bare["node_pools"] = []any{inputs{"name": "a"}}
		root.add(t, "good_"+cloud+"_bare_pool", cloud, "kubernetes", bare)
		for name, change := range badInputs() {
			in := goodInputs()
			maps.Copy(in, change)
			root.add(t, "bad_"+cloud+"_"+name, cloud, "kubernetes", in)
		}
		root.add(t, "good_"+cloud+"_network", cloud, "network", inputs{"name": "a", "region": "r", "cidr": "10.0.0.0/16"})
		for name, cidr := range map[string]string{"cidr": "10.0.0.0", "small": "10.0.0.0/28", "large": "10.0.0.0/7"} {
			root.add(t, "bad_"+cloud+"_network_"+name, cloud, "network", inputs{"name": "a", "region": "r", "cidr": cidr})
		}
	}
	tree := diskTree{os.DirFS("kubernetes")}
	for name, doc := range examples(t, tree) {
		resolved := resolve(t, tree, doc)
		cloud, _, _ := strings.Cut(name, "-")
		for _, kind := range []string{"network", "kubernetes"} {
			in := inputs{}
			for input := range read(t, path.Join("kubernetes/modules", cloud, kind)).Variables {
				if value, ok := resolved.Variables[input]; ok {
					in[input] = value
				} else if value, ok := goodInputs()[input]; ok {
					in[input] = value
				}
			}
			root.add(t, "good_"+name+"_"+kind, cloud, kind, in)
		}
	}
	write(t, dir, fstest.MapFS{"main.tf": {Data: []byte(root.text.String())}})
	if out, err := terraform(t, dir, "", nil, "init", "-input=false", "-no-color"); err != nil {
		t.Fatalf("terraform init: %v\n%s", err, out)
	}
	out, _ := terraform(t, dir, "", nil, "plan", "-input=false", "-no-color")
	for _, name := range root.names {
		refused := strings.Contains(out, fmt.Sprintf("in module %q", name))
		if want := strings.HasPrefix(name, "bad_"); refused != want {
			t.Errorf("the inputs of %s: refused is %t", name, refused)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}
