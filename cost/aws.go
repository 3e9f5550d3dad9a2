package cost

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// awsCluster is a control plane. What extended support costs is said, too: a cluster comes
// into it by getting old, which no plan shows.
func awsCluster(s side) []item {
	items := []item{priced("control plane", s.key(price.ControlPlane, "eks"))}
	if support, _ := s.text("upgrade_policy", 0, "support_type"); support != "STANDARD" {
		items = append(items, byUsage("control plane in extended support, instead of the standard one", s.key(price.ControlPlane, "eks-extended-support")))
	}
	if auto, _ := s.is("compute_config", 0, "enabled"); auto {
		items = append(items, priced("nodes of Auto Mode", s.key(price.Node, "eks-auto-mode")))
	}
	return items
}

func awsNodeGroup(s side) []item {
	nodes, ok := s.span(scaled{
		count: []any{"scaling_config", 0, "desired_size"}, least: []any{"scaling_config", 0, "min_size"}, most: []any{"scaling_config", 0, "max_size"},
	})
	if !ok {
		return []item{s.notKnown("nodes", "the number of nodes", "scaling_config", 0, "desired_size")}
	}
	kind := price.Node
	if capacity, state := s.text("capacity_type"); state == given && capacity == "SPOT" {
		kind = price.SpotNode
	}
	templates, gap := s.launchTemplates(s.at("launch_template", 0))
	if gap != nil {
		gap.nodes = nodes
		return []item{*gap}
	}
	return slices.Concat(
		s.awsMachines(kind, nodes, s.at("instance_types"), templates),
		s.awsNodeDisks(nodes, templates),
	)
}

// awsMachines are the nodes of a pool: of a type that the pool names, otherwise its
// launch template. If it names several types, any may be used.
func (s side) awsMachines(kind price.Kind, nodes span, types value, templates []value) []item {
	i := item{name: "nodes", nodes: nodes, each: one()}
	windows := ""
	if ami, state := s.text("ami_type"); state == given && strings.HasPrefix(ami, "WINDOWS") {
		windows = " (Windows)"
	}
	add := func(v value) bool {
		sku, state := v.text()
		if state == given {
			if k := s.key(kind, sku+windows); !slices.Contains(i.keys, k) {
				i.keys = append(i.keys, k)
			}
		}
		return state == given
	}
	for _, one := range types.elements() {
		add(one)
	}
	if len(i.keys) > 0 {
		return []item{i}
	}
	for _, template := range templates {
		if !add(template.at("instance_type")) {
			gap := missing("nodes", holdfast.CostUnknownValue, "the machine type of the launch template is not in the plan", string(template.at("instance_type")))
			gap.nodes = nodes
			return []item{gap}
		}
	}
	if len(i.keys) == 0 { // what EKS uses by default
		i.keys = []price.Key{s.key(kind, "t3.medium"+windows)}
	}
	return []item{i}
}

// awsNodeDisks are the disks of a pool's nodes: of its launch template, otherwise of a size
// that it says.
func (s side) awsNodeDisks(nodes span, templates []value) []item {
	const name = "disks of nodes"
	if len(templates) == 0 {
		size, state := s.gigabytes(20, "disk_size")
		if state == unknown { // left to EKS
			size = money.Of(20)
		}
		i := s.either(name, price.Disk, "gp2", "gp3") // which of them depends on the image
		i.nodes, i.each = nodes, exactly(size)
		return []item{i}
	}
	var items []item
	for n, template := range templates {
		disks := s.awsMappings(name, nodes, template)
		switch {
		case n == 0:
			items = disks
		case !slices.EqualFunc(items, disks, item.same):
			return []item{missing(name, holdfast.CostUnknownValue, "which launch template the pool has is known after the apply", "")}
		}
	}
	return items
}

// awsMappings are the disks of a launch template.
func (s side) awsMappings(name string, nodes span, template value) (items []item) {
	mappings := template.at("block_device_mappings").elements()
	for _, mapping := range mappings {
		disk := mapping.at("ebs", 0)
		if disk.state() == given {
			items = append(items, s.awsDisk(name, nodes, disk, "volume_type", "volume_size")...)
		}
	}
	if len(items) == 0 {
		items = []item{missing(name, holdfast.CostUnknownValue, "the size of the disk is that of the image", string(template.at("image_id")))}
	}
	return items
}

// What the price of a gp3 disk includes.
const (
	gp3IOPS = 3000
	gp3MBps = 125
)

// awsDisk is a disk by its attributes.
func (s side) awsDisk(name string, nodes span, disk value, typeName, sizeName string) []item {
	size, state := disk.number(sizeName)
	if state != given || size.Sign() <= 0 {
		i := side{value: disk}.notKnown(name, "the size of the disk", sizeName)
		i.nodes = nodes
		return []item{i}
	}
	kinds := []string{"gp2", "gp3"} // which of them depends on the image, or the account
	if kind, state := disk.text(typeName); state == given && kind != "" {
		kinds = []string{kind}
	}
	i := s.either(name, price.Disk, kinds...)
	i.nodes, i.each = nodes, exactly(size)
	items := []item{i}
	more := func(what, attribute, sku string, included int64) {
		n, state := disk.number(attribute)
		if state == given && n.Cmp(money.Of(included)) > 0 {
			i := sized(what+" of "+name, s.key(price.Disk, sku), n.Sub(money.Of(included)))
			i.nodes = nodes
			items = append(items, i)
		}
	}
	switch kinds[0] {
	case "gp3":
		more("operations", "iops", "gp3-iops", gp3IOPS)
		more("throughput", "throughput", "gp3-throughput", gp3MBps)
	case "io1", "io2":
		more("operations", "iops", kinds[0]+"-iops", 0)
	}
	return items
}

func awsVolume(s side) []item {
	return s.awsDisk("disk", single(), s.value, "type", "size")
}

func awsInstance(s side) []item {
	i := s.machine("machine", price.Node, single(), "instance_type")
	if tenancy, state := s.text("tenancy"); state == given && tenancy != "default" && tenancy != "" && len(i.keys) > 0 {
		i.keys[0].SKU += " (" + tenancy + ")"
	}
	if s.at("instance_market_options", 0).state() == given && len(i.keys) > 0 {
		i.keys[0].Kind = price.SpotNode
	}
	items := []item{i}
	root := s.at("root_block_device", 0)
	if root.state() != given {
		items = append(items, missing("disk", holdfast.CostUnknownValue, "the size of the disk is that of the image", ""))
	} else {
		items = append(items, s.awsDisk("disk", single(), root, "volume_type", "volume_size")...)
	}
	for _, disk := range s.at("ebs_block_device").elements() {
		items = append(items, s.awsDisk("further disk", single(), disk, "volume_type", "volume_size")...)
	}
	return items
}

func awsScalingGroup(s side) []item {
	nodes, ok := s.span(scaled{count: []any{"desired_capacity"}, least: []any{"min_size"}, most: []any{"max_size"}})
	if !ok {
		return []item{s.notKnown("nodes", "the number of machines", "desired_capacity")}
	}
	if s.at("launch_template", 0).state() == absent {
		return []item{missing("nodes", holdfast.CostUnknownValue, "machines of several types, or of a launch configuration, are not priced", string(s.at("mixed_instances_policy")))}
	}
	templates, gap := s.launchTemplates(s.at("launch_template", 0))
	if gap != nil {
		gap.nodes = nodes
		return []item{*gap}
	}
	return slices.Concat(s.awsMachines(price.Node, nodes, nil, templates), s.awsNodeDisks(nodes, templates))
}

// launchTemplates returns the launch templates that a pool may have: the one that it names
// if the plan has it. One that is created with the pool has an id only after the apply:
// then it is one of those that the plan creates, that with the pool's own key in its module
// if there is just one.
func (s side) launchTemplates(block value) (found []value, gap *item) {
	if block.state() == absent {
		return nil, nil
	}
	id, state := block.text("id")
	if state != given {
		if name, named := block.text("name"); named == given && state == absent {
			id, state = name, given
		}
	}
	version, _ := block.text("version")
	if state != given {
		if found = s.newTemplates(); len(found) > 0 {
			return found, nil
		}
		i := missing("nodes", holdfast.CostUnknownValue, "the launch template is known after the apply", "")
		return nil, &i
	}
	detail := "the launch template " + id + " is not in the plan"
	for _, r := range s.plan.templates[id] {
		if one := s.versionOf(r, version); one != nil {
			return []value{one}, nil
		}
		detail = "version " + version + " of the launch template " + id + " is not in the plan"
	}
	i := missing("nodes", holdfast.CostUnknownValue, detail, id+" "+version)
	return nil, &i
}

// findTemplates finds the launch templates by what pools call them: an id, or a name.
func (p *plan) findTemplates() {
	p.templates = make(map[string][]*plandoc.Resource)
	for _, r := range p.ofType("aws_launch_template") {
		called := make(map[string]bool)
		for _, v := range []value{of(r.Before), of(r.After)} {
			for _, attribute := range []string{"id", "name"} {
				if text, _ := v.text(attribute); text != "" && !called[text] {
					called[text] = true
					p.templates[text] = append(p.templates[text], r)
				}
			}
		}
	}
}

// versionOf returns the version of a launch template that a pool has: a number, or the one
// that is the latest. nil: it is neither the one before nor the one after the change.
func (s side) versionOf(r *plandoc.Resource, version string) value {
	before, after := of(r.Before), of(r.After)
	old, oldState := before.number("latest_version")
	next, nextState := after.number("latest_version")
	latest := version == "" || strings.HasPrefix(version, "$")
	switch {
	case latest && s.after, s.after && nextState == given && next.String() == version:
		return after
	case latest, oldState == given && old.String() == version:
		return before
	}
	return nil
}

// newTemplates are the launch templates that the plan creates.
func (s side) newTemplates() (all []value) {
	module, key := placeOf(s.resource)
	var own []value
	for _, r := range s.plan.ofType("aws_launch_template") {
		if _, state := of(r.After).text("id"); state != unknown {
			continue
		}
		all = append(all, of(r.After))
		if m, k := placeOf(r); m == module && k == key {
			own = append(own, of(r.After))
		}
	}
	if len(own) == 1 {
		return own
	}
	return all
}

// placeOf returns the module that a resource is in, and its key among its instances.
func placeOf(r *plandoc.Resource) (module, key string) {
	at := strings.Index("."+r.Address, "."+r.Type+".")
	if at < 0 {
		return "", ""
	}
	rest := r.Address[at+len(r.Type)+1:]
	if i := strings.IndexByte(rest, '['); i >= 0 {
		key = rest[i:]
	}
	return r.Address[:at], key
}

func awsNATGateway(s side) []item {
	return []item{
		priced("NAT gateway", s.key(price.NATGateway, "nat-gateway")),
		byUsage("data through the NAT gateway", s.key(price.NATGateway, "data-processed")),
	}
}

func awsAddress(s side) []item {
	return []item{priced("public address", s.key(price.Address, "public-ipv4"))}
}

func awsBalancer(s side) []item {
	kind, state := s.text("load_balancer_type")
	switch {
	case state == unknown:
		return []item{s.notKnown("load balancer", "the type of the load balancer", "load_balancer_type")}
	case state == absent, kind == "application":
		return []item{
			priced("load balancer", s.key(price.LoadBalancer, "alb")),
			byUsage("capacity units of the load balancer", s.key(price.LoadBalancer, "alb-lcu")),
		}
	case kind == "network":
		return []item{
			priced("load balancer", s.key(price.LoadBalancer, "nlb")),
			byUsage("capacity units of the load balancer", s.key(price.LoadBalancer, "nlb-lcu")),
		}
	}
	return []item{priced("load balancer", s.key(price.LoadBalancer, kind))}
}

func awsClassicBalancer(s side) []item {
	return []item{
		priced("load balancer", s.key(price.LoadBalancer, "classic")),
		byUsage("data through the load balancer", s.key(price.LoadBalancer, "classic-data-processed")),
	}
}

func awsLogGroup(s side) []item {
	return []item{
		byUsage("logs taken in", s.key(price.Monitoring, "cloudwatch-logs-ingest")),
		byUsage("logs kept", s.key(price.Monitoring, "cloudwatch-logs-storage")),
	}
}

// awsEndpoint is free if it is a gateway, as that of S3 is.
func awsEndpoint(s side) []item {
	kind, state := s.text("vpc_endpoint_type")
	switch {
	case state == unknown:
		return []item{s.notKnown("endpoint", "the type of the endpoint", "vpc_endpoint_type")}
	case state == absent, kind == "Gateway":
		return nil
	}
	return []item{priced("endpoint", s.key(price.Endpoint, strings.ToLower(kind)))}
}
