package cost

import (
	"github.com/holdfast-dev/holdfast/cost/price"
)

// The clouds with prices that are the same in most regions: DigitalOcean and Linode.

// doCluster is a control plane, which costs something if it is highly available, and the
// pool that each cluster has.
func doCluster(s side) []item {
	control := priced("control plane", s.key(price.ControlPlane, "doks"))
	if ha, state := s.is("ha"); ha {
		control = priced("control plane, highly available", s.key(price.ControlPlane, "doks-ha"))
	} else if state == unknown {
		control = s.either("control plane", price.ControlPlane, "doks", "doks-ha")
	}
	return append([]item{control}, s.doPool("node_pool", 0)...)
}

func doNodePool(s side) []item { return s.doPool() }

// doPool is the nodes of a pool, whose attributes are below a path. Their disks are part of
// them.
func (s side) doPool(below ...any) []item {
	path := func(attribute string) []any { return append(append([]any{}, below...), attribute) }
	nodes, ok := s.span(scaled{count: path("node_count"), least: path("min_nodes"), most: path("max_nodes"), only: path("auto_scale")})
	if !ok {
		return []item{s.notKnown("nodes", "the number of nodes", path("node_count")...)}
	}
	return []item{s.machine("nodes", price.Node, nodes, path("size")...)}
}

func doDroplet(s side) []item {
	items := []item{s.machine("machine", price.Node, single(), "size")}
	if backups, _ := s.is("backups"); backups {
		items = append(items, priced("backups", s.key(price.Other, "backups")))
	}
	return items
}

func doBalancer(s side) []item {
	i := priced("load balancer", s.key(price.LoadBalancer, "regional-node"))
	if n, state := s.number("size_unit"); state == given && n.Sign() > 0 {
		i.each = exactly(n)
	}
	return []item{i}
}

func doVolume(s side) []item {
	size, state := s.number("size")
	if state != given {
		return []item{s.notKnown("disk", "the size of the disk", "size")}
	}
	return []item{sized("disk", s.key(price.Disk, "volume"), size)}
}

// linodeCluster is a control plane, which costs something if it is highly available or of
// the tier enterprise, and the pools that are separate resources.
func linodeCluster(s side) []item {
	control := priced("control plane", s.key(price.ControlPlane, "lke-sa"))
	tier, _ := s.text("tier")
	ha, state := s.is("control_plane", 0, "high_availability")
	switch {
	case tier == "enterprise":
		control = priced("control plane, enterprise", s.key(price.ControlPlane, "lke-e"))
	case ha:
		control = priced("control plane, highly available", s.key(price.ControlPlane, "lke-ha"))
	case state == unknown:
		control = s.either("control plane", price.ControlPlane, "lke-sa", "lke-ha")
	}
	items := []item{control}
	for i := range s.at("pool").elements() {
		items = append(items, s.linodePool([]any{"pool", i}, "count")...)
	}
	return items
}

func linodeNodePool(s side) []item { return s.linodePool(nil, "node_count") }

// linodePool is the nodes of a pool, whose attributes are below a path. Their disks are part
// of them.
func (s side) linodePool(below []any, count string) []item {
	path := func(steps ...any) []any { return append(append([]any{}, below...), steps...) }
	nodes, ok := s.span(scaled{count: path(count), least: path("autoscaler", 0, "min"), most: path("autoscaler", 0, "max")})
	if !ok {
		return []item{s.notKnown("nodes", "the number of nodes", path(count)...)}
	}
	return []item{s.machine("nodes", price.Node, nodes, path("type")...)}
}

func linodeInstance(s side) []item {
	items := []item{s.machine("machine", price.Node, single(), "type")}
	if backups, _ := s.is("backups_enabled"); backups {
		items = append(items, priced("backups", s.key(price.Other, "backups")))
	}
	return items
}

func linodeBalancer(s side) []item {
	return []item{priced("load balancer", s.key(price.LoadBalancer, "nodebalancer"))}
}

func linodeVolume(s side) []item {
	size, state := s.number("size")
	if state != given {
		return []item{s.notKnown("disk", "the size of the disk", "size")}
	}
	return []item{sized("disk", s.key(price.Disk, "volume"), size)}
}
