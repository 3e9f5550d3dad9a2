package cost

import (
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// gcpCluster is a control plane, and the nodes of its separate pools. The credit of an
// account is not deducted: it is for zonal and Autopilot clusters, and for one only.
func gcpCluster(s side) []item {
	items := []item{priced("control plane", s.key(price.ControlPlane, "gke"))}
	if autopilot, _ := s.is("enable_autopilot"); autopilot {
		return append(items, noted("Pods, by what they request"))
	}
	if removed, _ := s.is("remove_default_node_pool"); removed {
		return items
	}
	if pools := s.at("node_pool").elements(); len(pools) > 0 {
		for i, pool := range pools {
			if name, state := pool.text("name"); state != given || !s.plan.hasPool(name) {
				items = append(items, s.gcpPool([]any{"node_pool", i})...)
			}
		}
		return items
	}
	return append(items, s.gcpPool(nil)...)
}

// hasPool reports whether a pool is a separate resource: states list it in its cluster,
// too.
func (p *plan) hasPool(name string) bool {
	return slices.ContainsFunc(p.ofType("google_container_node_pool"), func(r *plandoc.Resource) bool {
		before, _ := of(r.Before).text("name")
		after, _ := of(r.After).text("name")
		return name == before || name == after
	})
}

func gcpNodePool(s side) []item { return s.gcpPool(nil) }

// gcpPool is the nodes of a pool, whose attributes are below a path. Most numbers are those
// of one zone.
func (s side) gcpPool(below []any) []item {
	path := func(steps ...any) []any { return slices.Concat(below, steps) }
	zones, state := s.gcpZones(path("node_locations"))
	total := scaled{count: path("none"), least: path("autoscaling", 0, "total_min_node_count"), most: path("autoscaling", 0, "total_max_node_count")}
	nodes, ok := s.span(total)
	if !ok {
		if state != given {
			return []item{s.notKnown("nodes", "in how many zones there are nodes", path("node_locations")...)}
		}
		count := path("node_count")
		if s.at(count...).state() != given {
			count = path("initial_node_count")
		}
		nodes, ok = s.span(scaled{count: count, least: path("autoscaling", 0, "min_node_count"), most: path("autoscaling", 0, "max_node_count"), zones: zones})
	}
	if !ok {
		return []item{s.notKnown("nodes", "the number of nodes", path("node_count")...)}
	}
	config := path("node_config", 0)
	kind := price.Node
	for _, attribute := range []string{"spot", "preemptible"} {
		if is, _ := s.is(slices.Concat(config, []any{attribute})...); is {
			kind = price.SpotNode
		}
	}
	machine := slices.Concat(config, []any{"machine_type"})
	nodesItem := s.machine("nodes", kind, nodes, machine...)
	if s.at(machine...).state() == absent { // what GKE uses by default
		nodesItem = priced("nodes", s.key(kind, "e2-medium"))
		nodesItem.nodes = nodes
	}
	items := []item{nodesItem, s.gcpNodeDisk(nodes, config)}
	return append(items, s.gcpExtras(nodes, config)...)
}

// gcpZones returns in how many zones a pool is.
func (s side) gcpZones(path []any) (int64, known) {
	location, state := s.text("location")
	zonal := state == given && gcpZone.MatchString(location)
	n, state := s.count(path...)
	switch {
	case state == given && n > 0 && zonal && s.resource.Type == "google_container_cluster":
		return int64(n) + 1, given // these come on top of its own
	case state == given && n > 0:
		return int64(n), given
	case zonal:
		return 1, given
	}
	return 0, unknown
}

// gcpOnlyHyperdisk are families of machines that have no persistent disks.
var gcpOnlyHyperdisk = regexp.MustCompile(`^(n4|c4|c4a|c4d|n4a|n4d|x4|a3-ultragpu|a4|h4d)-`)

// gcpNodeDisk is the boot disk of each node.
func (s side) gcpNodeDisk(nodes span, config []any) item {
	const name = "disks of nodes"
	at := func(attribute string) []any { return slices.Concat(config, []any{attribute}) }
	size, state := s.gigabytes(100, at("disk_size_gb")...)
	if state != given {
		size = money.Of(100) // left to GKE
	}
	kind, state := s.text(at("disk_type")...)
	if state != given {
		kind = "pd-balanced"
		if machine, _ := s.text(at("machine_type")...); gcpOnlyHyperdisk.MatchString(machine) {
			kind = "hyperdisk-balanced"
		}
	}
	i := sized(name, s.key(price.Disk, kind), size)
	i.nodes = nodes
	return i
}

// gcpExtras are local disks and accelerators of nodes.
func (s side) gcpExtras(nodes span, config []any) (items []item) {
	at := func(steps ...any) []any { return slices.Concat(config, steps) }
	const gbOfLocal = 375
	if n, state := s.whole(at("local_ssd_count")...); state == given && n > 0 {
		i := sized("local disks of nodes", s.key(price.Disk, "local"), money.Of(n*gbOfLocal))
		i.nodes = nodes
		items = append(items, i)
	}
	for n := range s.at(at("guest_accelerator")...).elements() {
		kind, _ := s.text(at("guest_accelerator", n, "type")...)
		count, _ := s.number(at("guest_accelerator", n, "count")...)
		i := sized("accelerators of nodes", s.key(price.Other, "accelerator "+kind), count)
		i.nodes = nodes
		items = append(items, i)
	}
	return items
}

// gcpNAT is Cloud NAT: each machine that uses it costs something, up to the price of a
// gateway with 32 of them. How many do is not in a plan.
func gcpNAT(s side) []item {
	gateway := priced("NAT gateway, by the machines that use it", s.key(price.NATGateway, "cloud-nat-gateway"))
	gateway.low = true
	items := []item{gateway, byUsage("data through the NAT gateway", s.key(price.NATGateway, "cloud-nat-data"))}
	if option, _ := s.text("nat_ip_allocate_option"); option == "AUTO_ONLY" {
		items = append(items, byUsage("addresses that the NAT gateway allocates", s.key(price.Address, "external-ip-vm")))
	}
	return items
}

// gcpAddress costs twice as much while nothing uses it.
func gcpAddress(s side) []item {
	if kind, _ := s.text("address_type"); kind == "INTERNAL" {
		return nil
	}
	i := s.either("public address", price.Address, "external-ip-vm", "external-ip-unused")
	if strings.HasSuffix(s.resource.Type, "_global_address") {
		for n := range i.keys {
			i.keys[n].Region = "global"
		}
	}
	return []item{i}
}

func gcpForwardingRule(s side) []item {
	return []item{
		priced("forwarding rule", s.key(price.LoadBalancer, "forwarding-rule")),
		byUsage("data into the load balancer", s.key(price.LoadBalancer, "ingress-data")),
	}
}

func gcpDisk(s side) []item {
	kind, state := s.text("type")
	if state != given {
		kind = "pd-standard" // what Compute Engine uses by default
	}
	kind = kind[strings.LastIndexByte(kind, '/')+1:]
	size, state := s.number("size")
	if state != given {
		return []item{s.notKnown("disk", "the size of the disk", "size")}
	}
	return []item{sized("disk", s.key(price.Disk, kind), size)}
}

func gcpInstance(s side) []item {
	kind := price.Node
	if model, _ := s.text("scheduling", 0, "provisioning_model"); model == "SPOT" {
		kind = price.SpotNode
	}
	disk := s.at("boot_disk", 0, "initialize_params", 0)
	items := []item{s.machine("machine", kind, single(), "machine_type")}
	size, state := disk.number("size")
	if state != given {
		return append(items, side{value: disk}.notKnown("disk", "the size of the disk", "size"))
	}
	diskType, state := disk.text("type")
	if state != given {
		diskType = "pd-standard"
	}
	return append(items, sized("disk", s.key(price.Disk, diskType), size))
}
