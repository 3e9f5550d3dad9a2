package cost_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cost"
	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/internal/testenv/plandoctest"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// tree is values as a test writes them.
type tree = map[string]any

// list is a block, or a list.
type list = []any

var later = plandoc.Mark{Unknown: true}

// resource is a change; nil is what there is not.
func resource(address string, before, after tree) plandoc.Resource {
	r := plandoc.Resource{Address: address, Actions: []string{"update"}}
	rest := address
	for strings.HasPrefix(rest, "module.") {
		_, rest, _ = strings.Cut(strings.TrimPrefix(rest, "module."), ".")
	}
	r.Type, _, _ = strings.Cut(rest, ".")
	switch {
	case before == nil:
		r.Actions = []string{"create"}
	case after == nil:
		r.Actions = []string{"delete"}
	}
	if before != nil {
		r.Before = plandoctest.Value(plain(before))
	}
	if after != nil {
		r.After = plandoctest.Value(plain(after))
	}
	return r
}

// plain makes numbers what plan documents have.
func plain(v any) any {
	switch v := v.(type) {
	case tree:
		out := tree{}
		for key, value := range v {
			out[key] = plain(value)
		}
		return out
	case list:
		out := make(list, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	case int:
		return json.Number(fmt.Sprint(v))
	}
	return v
}

func document(t *testing.T, resources ...plandoc.Resource) plandoc.Document {
	t.Helper()
	d := plandoc.Document{Version: plandoc.Version, Resources: resources}
	d.Sort()
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	return d
}

// list prices of the tests: round ones.
func testPrices() price.Chain {
	table := price.NewTable("test")
	add := func(cloud price.Cloud, kind price.Kind, sku, amount string, unit price.Unit) {
		table.Add(price.Key{Cloud: cloud, Region: "r", Kind: kind, SKU: sku}, price.Price{
			Amount: money.MustParse(amount), Unit: unit, Currency: "USD", Origin: price.Origin{Source: "test", AsOf: "2026-11-01"},
		})
	}
	add(price.AWS, price.ControlPlane, "eks", "100", price.Month)
	add(price.AWS, price.ControlPlane, "eks-extended-support", "600", price.Month)
	add(price.AWS, price.Node, "small", "10", price.Month)
	add(price.AWS, price.Node, "large", "40", price.Month)
	add(price.AWS, price.Disk, "gp2", "0.2", price.GBMonth)
	add(price.AWS, price.Disk, "gp3", "0.1", price.GBMonth)
	add(price.AWS, price.Disk, "gp3-iops", "0.01", price.IOPSMonth)
	add(price.AWS, price.NATGateway, "nat-gateway", "30", price.Month)
	add(price.AWS, price.NATGateway, "data-processed", "0.05", price.GB)
	add(price.GCP, price.ControlPlane, "gke", "70", price.Month)
	add(price.GCP, price.Node, "e2", "20", price.Month)
	add(price.GCP, price.Disk, "pd-balanced", "0.1", price.GBMonth)
	add(price.GCP, price.NATGateway, "cloud-nat-gateway", "32", price.Month)
	add(price.GCP, price.NATGateway, "cloud-nat-data", "0.05", price.GB)
	add(price.DigitalOcean, price.ControlPlane, "doks", "0", price.Month)
	add(price.DigitalOcean, price.ControlPlane, "doks-ha", "40", price.Month)
	add(price.DigitalOcean, price.Node, "s", "24", price.Month)
	add(price.DigitalOcean, price.Node, "argued", "96", price.Month)
	add(price.DigitalOcean, price.Node, "argued", "99", price.Month)
	table.Add(price.Key{Cloud: price.Linode, Region: price.AnyRegion, Kind: price.Node, SKU: "g"}, price.Price{Amount: money.Of(5), Unit: price.Month, Currency: "USD"})
	return price.Chain{table}
}

// changes are the changes of all totals: "USD 10..30".
func changes(c holdfast.Cost) string {
	var parts []string
	for _, t := range c.Totals {
		text := t.Currency + " " + string(t.Change.Low)
		if t.Change.Low != t.Change.High {
			text += ".." + string(t.Change.High)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// gaps are what is unpriced: "address name gap".
func gaps(c holdfast.Cost) string {
	var parts []string
	for _, u := range c.Unpriced {
		text := strings.Join(strings.Fields(u.Address+" "+u.Name+" "+string(u.Gap)), " ")
		if u.Gone {
			text += " gone"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// doPool is a pool of DigitalOcean.
func doPool(size any, count any, least, most int) tree {
	return tree{"size": size, "node_count": count, "auto_scale": most > 0, "min_nodes": least, "max_nodes": most}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	const pool = "digitalocean_kubernetes_node_pool.p"
	for name, test := range map[string]struct {
		resources []plandoc.Resource
		changes   string
		gaps      string
	}{
		"a pool is created": {
			resources: []plandoc.Resource{resource(pool, nil, doPool("s", 3, 0, 0))}, changes: "USD 72",
		},
		"a pool is destroyed": {
			resources: []plandoc.Resource{resource(pool, doPool("s", 3, 0, 0), nil)}, changes: "USD -72",
		},
		"a pool grows": {
			resources: []plandoc.Resource{resource(pool, doPool("s", 3, 0, 0), doPool("s", 5, 0, 0))}, changes: "USD 48",
		},
		"a pool is scaled": {
			resources: []plandoc.Resource{resource(pool, nil, doPool("s", later, 2, 5))}, changes: "USD 48..120",
		},
		"the count of a scaled pool moves, which is its autoscaler's decision": {
			resources: []plandoc.Resource{resource(pool, doPool("s", 3, 2, 5), doPool("s", 4, 2, 5))}, changes: "",
		},
		"a scaled pool may grow further: with little load nothing is added": {
			resources: []plandoc.Resource{resource(pool, doPool("s", 3, 2, 5), doPool("s", 3, 2, 8))}, changes: "USD 0..72",
		},
		"a scaled pool keeps more nodes: with much load nothing is added": {
			resources: []plandoc.Resource{resource(pool, doPool("s", 3, 2, 5), doPool("s", 3, 4, 5))}, changes: "USD 0..48",
		},
		"a fixed pool becomes scaled": {
			resources: []plandoc.Resource{resource(pool, doPool("s", 3, 0, 0), doPool("s", later, 2, 5))}, changes: "USD -24..48",
		},
		"other machines, of two prices that origins disagree about": {
			resources: []plandoc.Resource{resource(pool, doPool("s", 1, 0, 0), doPool("argued", 1, 0, 0))}, changes: "USD 72..75",
		},
		"one more machine of such a price": {
			resources: []plandoc.Resource{resource(pool, doPool("argued", 3, 0, 0), doPool("argued", 4, 0, 0))}, changes: "USD 96..99",
		},
		"only labels change": {
			resources: []plandoc.Resource{resource(pool, tree{"size": "s", "node_count": 3}, tree{"size": "s", "node_count": 3, "labels": tree{"a": "b"}})}, changes: "",
		},
		"nothing of its price changes, though it has none": {
			resources: []plandoc.Resource{resource(pool, tree{"size": "x", "node_count": 3}, tree{"size": "x", "node_count": 3, "labels": tree{"a": "b"}})}, changes: "",
		},
		"a machine without a price": {
			resources: []plandoc.Resource{resource(pool, nil, doPool("x", 3, 0, 0))}, gaps: pool + " nodes NoPrice",
		},
		"more machines without a price": {
			resources: []plandoc.Resource{resource(pool, doPool("x", 3, 0, 0), doPool("x", 4, 0, 0))}, gaps: pool + " nodes NoPrice",
		},
		"other machines, without a price: nothing looks saved": {
			resources: []plandoc.Resource{resource(pool, doPool("s", 3, 0, 0), doPool("x", 3, 0, 0))}, gaps: pool + " nodes NoPrice",
		},
		"other machines, of which the old ones had no price": {
			resources: []plandoc.Resource{resource(pool, doPool("x", 3, 0, 0), doPool("s", 3, 0, 0))}, changes: "USD 72", gaps: pool + " nodes NoPrice gone",
		},
		"a pool without a price is destroyed": {
			resources: []plandoc.Resource{resource(pool, doPool("x", 3, 0, 0), nil)}, gaps: pool + " nodes NoPrice gone",
		},
		"a number below zero, which would hide another cost": {
			resources: []plandoc.Resource{resource(pool, nil, doPool("s", -3, 0, 0))}, gaps: pool + " nodes UnknownValue",
		},
		"a region that nobody knows, of a cloud with one price for most": {
			resources: []plandoc.Resource{resource("linode_instance.i", nil, tree{"type": "g", "region": later})}, gaps: "linode_instance.i machine NoPrice",
		},
		"a machine that is known after the apply": {
			resources: []plandoc.Resource{resource(pool, nil, doPool(later, 3, 0, 0))}, gaps: pool + " nodes UnknownValue",
		},
		"a number that is known after the apply, without bounds": {
			resources: []plandoc.Resource{resource(pool, nil, doPool("s", later, 0, 0))}, gaps: pool + " nodes UnknownValue",
		},
		"a machine that is secret": {
			resources: []plandoc.Resource{resource(pool, nil, doPool(plandoc.Mark{HMAC: plandoctest.HMAC(1)}, 3, 0, 0))}, gaps: pool + " nodes UnknownValue",
		},
		"a secret machine becomes another one": {
			resources: []plandoc.Resource{resource(pool, doPool(plandoc.Mark{HMAC: plandoctest.HMAC(1)}, 3, 0, 0), doPool(plandoc.Mark{HMAC: plandoctest.HMAC(2)}, 3, 0, 0))},
			gaps:      pool + " nodes UnknownValue",
		},
		"a control plane becomes highly available": {
			resources: []plandoc.Resource{resource("digitalocean_kubernetes_cluster.c",
				tree{"region": "r", "ha": false, "node_pool": list{doPool("s", 3, 0, 0)}}, tree{"region": "r", "ha": true, "node_pool": list{doPool("s", 3, 0, 0)}})},
			changes: "USD 40",
		},
		"whether a control plane is highly available is known after the apply": {
			resources: []plandoc.Resource{resource("digitalocean_kubernetes_cluster.c", nil, tree{"region": "r", "ha": later, "node_pool": list{doPool("s", 1, 0, 0)}})},
			changes:   "USD 24..64",
		},
		"a type that nobody has said how to bill": {
			resources: []plandoc.Resource{resource("aws_db_instance.d", nil, tree{"instance_class": "db.t3.small"})}, gaps: "aws_db_instance.d UnknownType",
		},
		"only the tags of such a type": {
			resources: []plandoc.Resource{resource("aws_db_instance.d", tree{"tags": tree{"a": "b"}}, tree{"tags": tree{"a": "c"}})},
		},
		"a provider of no cloud": {
			resources: []plandoc.Resource{resource("hcloud_server.s", nil, tree{"type": "cx22"})}, gaps: "hcloud_server.s UnknownType",
		},
		"what is free": {
			resources: []plandoc.Resource{resource("aws_vpc.v", nil, tree{}), resource("aws_iam_role.r", nil, tree{}), resource("digitalocean_vpc.v", nil, tree{})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			region := "r"
			if strings.HasPrefix(test.resources[0].Type, "linode") {
				region = ""
			}
			c := cost.Estimate(cost.Input{Document: document(t, test.resources...), Region: region}, testPrices())
			if got := changes(c); got != test.changes {
				t.Errorf("changes %q, want %q", got, test.changes)
			}
			if got := gaps(c); got != strings.ReplaceAll(test.gaps, "UnknownType", "Unsupported") {
				t.Errorf("unpriced %q, want %q", got, test.gaps)
			}
		})
	}
}

// What leaves the state, or comes into it, costs what it cost.
func TestNothingIsBuilt(t *testing.T) {
	t.Parallel()
	values := doPool("s", 3, 0, 0)
	forget := resource("digitalocean_kubernetes_node_pool.a", values, nil)
	forget.Actions = []string{"forget"}
	imported := resource("digitalocean_kubernetes_node_pool.b", values, values)
	imported.Actions, imported.Importing = []string{"no-op"}, plandoctest.Value("id")
	moved := resource("digitalocean_kubernetes_node_pool.c", values, values)
	moved.Actions, moved.Previous = []string{"no-op"}, "digitalocean_kubernetes_node_pool.d"
	replaced := resource("digitalocean_kubernetes_node_pool.e", values, values)
	replaced.Actions = []string{"delete", "create"}
	c := cost.Estimate(cost.Input{Document: document(t, forget, imported, moved, replaced), Region: "r"}, testPrices())
	if len(c.Totals)+len(c.Resources)+len(c.Unpriced) > 0 {
		t.Errorf("%+v", c)
	}
	// One that is forgotten, and created again, is there twice.
	replaced.Actions = []string{"create", "forget"}
	c = cost.Estimate(cost.Input{Document: document(t, replaced), Region: "r"}, testPrices())
	if got := changes(c); got != "USD 72" {
		t.Errorf("a forgotten pool with a new one in its place changes %q", got)
	}
}

// group is a node group of EKS.
func group(template tree, least, most int) tree {
	g := tree{"region": "r", "scaling_config": list{tree{"desired_size": least, "min_size": least, "max_size": most}}}
	if template != nil {
		g["launch_template"] = list{template}
	}
	return g
}

// template is a launch template.
func template(id, version any, machine string, gb int) tree {
	return tree{
		"region": "r", "id": id, "latest_version": version, "instance_type": machine,
		"block_device_mappings": list{tree{"device_name": "/dev/xvda", "ebs": list{tree{"volume_type": "gp3", "volume_size": gb}}}},
	}
}

func TestLaunchTemplates(t *testing.T) {
	t.Parallel()
	known := tree{"id": "lt-1", "version": "1"}
	next := tree{"id": "lt-1", "version": later}
	latest := tree{"id": "lt-1", "version": "$Latest"}
	fresh := tree{"id": later, "version": later}
	unchanged := func(address string, values tree) plandoc.Resource {
		r := resource(address, values, values)
		r.After = nil
		return r
	}
	for name, test := range map[string]struct {
		resources, unchanged []plandoc.Resource
		changes, gaps        string
	}{
		"created with their groups, each with its key": {
			resources: []plandoc.Resource{
				resource(`module.k.aws_launch_template.pool["a"]`, nil, template(later, later, "small", 50)),
				resource(`module.k.aws_launch_template.pool["b"]`, nil, template(later, later, "large", 100)),
				resource(`module.k.aws_eks_node_group.fixed["a"]`, nil, group(fresh, 2, 2)),
				resource(`module.k.aws_eks_node_group.scaled["b"]`, nil, group(fresh, 1, 3)),
			},
			changes: "USD 80..180", // 2 × (10 + 5) + 1..3 × (40 + 10)
		},
		"created with a group that may have either": {
			resources: []plandoc.Resource{
				resource(`aws_launch_template.one`, nil, template(later, later, "small", 50)),
				resource(`aws_launch_template.two`, nil, template(later, later, "large", 50)),
				resource(`module.k.aws_eks_node_group.fixed["a"]`, nil, group(fresh, 1, 1)),
			},
			changes: "USD 15..45",
		},
		"a new version of one, with its group": {
			resources: []plandoc.Resource{
				resource(`aws_launch_template.a`, template("lt-1", 1, "small", 50), template("lt-1", later, "large", 50)),
				resource(`aws_eks_node_group.a`, group(known, 3, 3), group(next, 3, 3)),
			},
			changes: "USD 90",
		},
		"a new version of one whose group takes the latest one": {
			resources: []plandoc.Resource{resource(`aws_launch_template.a`, template("lt-1", 1, "small", 50), template("lt-1", later, "large", 50))},
			unchanged: []plandoc.Resource{unchanged(`aws_eks_node_group.a`, group(latest, 3, 3))},
			changes:   "USD 90",
		},
		"a new version of one whose group stays with its own": {
			resources: []plandoc.Resource{resource(`aws_launch_template.a`, template("lt-1", 1, "small", 50), template("lt-1", later, "large", 50))},
			unchanged: []plandoc.Resource{unchanged(`aws_eks_node_group.a`, group(known, 3, 3))},
		},
		"a new version of one whose group is not in the plan": {
			resources: []plandoc.Resource{resource(`aws_launch_template.a`, template("lt-1", 1, "small", 50), template("lt-1", later, "large", 50))},
			gaps:      "aws_launch_template.a UnknownValue",
		},
		"a new version of one whose group had an older one": {
			resources: []plandoc.Resource{
				resource(`aws_launch_template.a`, template("lt-1", 4, "small", 50), template("lt-1", later, "large", 50)),
				resource(`aws_eks_node_group.a`, group(known, 3, 3), group(next, 3, 3)),
			},
			changes: "USD 135", gaps: "aws_eks_node_group.a nodes UnknownValue gone",
		},
		"only a group grows": {
			resources: []plandoc.Resource{resource(`aws_eks_node_group.a`, group(known, 3, 3), group(known, 5, 5))},
			unchanged: []plandoc.Resource{unchanged(`aws_launch_template.a`, template("lt-1", 1, "small", 50))},
			changes:   "USD 30",
		},
		"only a group grows, and nobody knows its template": {
			resources: []plandoc.Resource{resource(`aws_eks_node_group.a`, group(known, 3, 3), group(known, 5, 5))},
			gaps:      "aws_eks_node_group.a nodes UnknownValue",
		},
		"only a label of such a group changes": {
			resources: []plandoc.Resource{resource(`aws_eks_node_group.a`, group(known, 3, 3), group(known, 3, 3))},
		},
		"a group without one, of a type that depends on the market": {
			resources: []plandoc.Resource{func() plandoc.Resource {
				g := group(nil, 1, 1)
				g["instance_types"], g["disk_size"] = list{"small", "large"}, 100
				return resource("aws_eks_node_group.a", nil, g)
			}()},
			changes: "USD 20..60", // 10..40, and 100 GB of 0.1..0.2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cost.Estimate(cost.Input{Document: document(t, test.resources...), Unchanged: test.unchanged}, testPrices())
			if got := changes(c); got != test.changes {
				t.Errorf("changes %q, want %q", got, test.changes)
			}
			if got := gaps(c); got != test.gaps {
				t.Errorf("unpriced %q, want %q", got, test.gaps)
			}
		})
	}
}

// Zones, ranges, and what is billed by usage.
func TestGoogle(t *testing.T) {
	t.Parallel()
	pool := func(more tree) tree {
		v := tree{"location": "r", "node_locations": list{"a", "b", "c"}, "node_config": list{tree{"machine_type": "e2", "disk_size_gb": 50, "disk_type": later}}}
		for key, value := range more {
			v[key] = value
		}
		return v
	}
	for name, test := range map[string]struct {
		resource plandoc.Resource
		changes  string
		gaps     string
	}{
		"nodes of each zone": {resource: resource("google_container_node_pool.p", nil, pool(tree{"node_count": 2})), changes: "USD 150"},
		"scaled in each zone": {
			resource: resource("google_container_node_pool.p", nil, pool(tree{"initial_node_count": 1, "autoscaling": list{tree{"min_node_count": 1, "max_node_count": 2, "total_min_node_count": 0, "total_max_node_count": 0}}})),
			changes:  "USD 75..150",
		},
		"scaled in all zones": {
			resource: resource("google_container_node_pool.p", nil, pool(tree{"autoscaling": list{tree{"total_min_node_count": 3, "total_max_node_count": 12}}})),
			changes:  "USD 75..300",
		},
		"in zones that nobody knows": {
			resource: resource("google_container_node_pool.p", nil, pool(tree{"node_locations": later, "node_count": 1})), gaps: "google_container_node_pool.p nodes UnknownValue",
		},
		"in one zone": {resource: resource("google_container_node_pool.p", nil, pool(tree{"location": "r-x1-a", "node_locations": nil, "node_count": 1})), gaps: "google_container_node_pool.p nodes NoPrice, google_container_node_pool.p disks of nodes NoPrice"},
		"spot machines": {
			resource: resource("google_container_node_pool.p", nil, pool(tree{"node_count": 1, "node_config": list{tree{"machine_type": "e2", "spot": true}}})),
			changes:  "USD 30", gaps: "google_container_node_pool.p nodes NoPrice",
		},
		"a gateway, by the machines that use it": {resource: resource("google_compute_router_nat.n", nil, tree{"region": "r"}), changes: "USD 0..32"},
		"a pool that is a resource of its own is not the cluster's": {
			resource: resource("google_container_cluster.c", nil, tree{"location": "r", "remove_default_node_pool": true, "node_pool": later}), changes: "USD 70",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cost.Estimate(cost.Input{Document: document(t, test.resource)}, testPrices())
			if got := changes(c); got != test.changes {
				t.Errorf("changes %q, want %q", got, test.changes)
			}
			if got := gaps(c); got != test.gaps {
				t.Errorf("unpriced %q, want %q", got, test.gaps)
			}
		})
	}
}

// Currencies are never added up, neither of resources nor of clusters.
func TestCurrencies(t *testing.T) {
	t.Parallel()
	table := price.NewTable("test")
	for sku, currency := range map[string]string{"u": "USD", "e": "EUR"} {
		table.Add(price.Key{Cloud: price.DigitalOcean, Region: price.AnyRegion, Kind: price.Node, SKU: sku}, price.Price{Amount: money.Of(10), Unit: price.Month, Currency: currency})
	}
	d := document(t,
		resource("digitalocean_kubernetes_node_pool.a", nil, doPool("u", 1, 0, 0)),
		resource("digitalocean_kubernetes_node_pool.b", nil, doPool("e", 2, 0, 0)),
		resource("digitalocean_kubernetes_node_pool.c", doPool("u", 1, 0, 0), doPool("e", 1, 0, 0)))
	c := cost.Estimate(cost.Input{Document: d}, price.Chain{table})
	if got := changes(c); got != "EUR 30, USD 0" {
		t.Errorf("changes %q", got)
	}
	if got := cost.Sum(c, c); len(got) != 2 || got[0].Currency != "EUR" || got[0].Change.High != "60" || got[1].Change.Low != "0" {
		t.Errorf("sums %+v", got)
	}
}

// The region is what the resource says, otherwise what the cluster or the others say.
func TestRegions(t *testing.T) {
	t.Parallel()
	key := func(region string) string {
		return "t3.medium in " + region
	}
	machine := func(more tree) plandoc.Resource {
		v := tree{"instance_type": "t3.medium", "root_block_device": list{tree{"volume_type": "gp3", "volume_size": 8}}}
		for k, value := range more {
			v[k] = value
		}
		return resource("aws_instance.i", nil, v)
	}
	for name, test := range map[string]struct {
		region    string
		resources []plandoc.Resource
		want      string
	}{
		"its own":                {region: "eu-west-1", resources: []plandoc.Resource{machine(tree{"region": "us-east-1"})}, want: key("us-east-1")},
		"its zone":               {region: "eu-west-1", resources: []plandoc.Resource{machine(tree{"availability_zone": "us-gov-west-1b"})}, want: key("us-gov-west-1")},
		"that of the cluster":    {region: "eu-west-1", resources: []plandoc.Resource{machine(nil)}, want: key("eu-west-1")},
		"that of the others":     {resources: []plandoc.Resource{machine(nil), resource("aws_subnet.s", nil, tree{"availability_zone": "eu-west-3a"})}, want: key("eu-west-3")},
		"unknown: others differ": {resources: []plandoc.Resource{machine(nil), resource("aws_subnet.s", nil, tree{"availability_zone": "eu-west-3a"}), resource("aws_subnet.t", nil, tree{"availability_zone": "eu-west-1a"})}, want: "t3.medium in a region that is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cost.Estimate(cost.Input{Document: document(t, test.resources...), Region: test.region}, price.Chain{price.NewTable("empty")})
			if len(c.Unpriced) == 0 || c.Unpriced[0].Detail != test.want {
				t.Errorf("unpriced %+v, want %q", c.Unpriced, test.want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	d := document(t,
		resource("aws_nat_gateway.n", nil, tree{"region": "r"}),
		resource("aws_eks_cluster.c", nil, tree{"region": "r"}),
		resource("helm_release.h", nil, tree{}),
		resource("kubernetes_service_v1.s", nil, tree{"spec": list{tree{"type": "ClusterIP"}}}),
		resource("kubernetes_service_v1.t", nil, tree{"spec": list{tree{"type": "LoadBalancer"}}}),
		resource("aws_cloudwatch_log_group.l", nil, tree{"region": "r"}))
	c := cost.Estimate(cost.Input{Document: d}, testPrices())
	var lines []string
	for _, u := range c.Usage {
		lines = append(lines, strings.TrimSpace(u.Address+" "+string(u.Price)+" "+u.Unit))
	}
	want := "aws_eks_cluster.c 600 month, aws_nat_gateway.n 0.05 GB, helm_release.h, kubernetes_service_v1.t"
	if got := strings.Join(lines, ", "); got != want {
		t.Errorf("usage\n%s\nwant\n%s", got, want)
	}
	if got := changes(c) + "; " + gaps(c); got != "USD 130; aws_cloudwatch_log_group.l logs taken in NoPrice, aws_cloudwatch_log_group.l logs kept NoPrice" {
		t.Errorf("%s", got)
	}
	if c.UnpricedResources() != 1 || c.Prices.Oldest != "2026-11-01" || c.Prices.Newest != "2026-11-01" || c.Prices.ID == "" {
		t.Errorf("%d unpriced, prices %+v", c.UnpricedResources(), c.Prices)
	}
}
