package cost

import (
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

// azureCluster is a control plane, and the pool that each cluster has.
func azureCluster(s side) []item {
	tier, state := s.text("sku_tier")
	if state != given || tier == "" {
		tier = "Free" // what AKS uses by default
	}
	control := priced("control plane", s.key(price.ControlPlane, strings.ToLower(tier)))
	if state == unknown {
		control = s.either("control plane", price.ControlPlane, "free", "standard", "premium")
	}
	items := append([]item{control}, s.azurePool("default_node_pool", 0)...)
	if s.at("oms_agent", 0).state() == given || s.at("monitor_metrics", 0).state() == given {
		items = append(items, noted("logs and metrics that Azure Monitor takes in"))
	}
	return items
}

func azureNodePool(s side) []item { return s.azurePool() }

// azurePool is the nodes of a pool, whose attributes are below a path.
func (s side) azurePool(below ...any) []item {
	path := func(attribute string) []any { return slices.Concat(below, []any{attribute}) }
	nodes, ok := s.span(scaled{count: path("node_count"), least: path("min_count"), most: path("max_count"), only: path("auto_scaling_enabled")})
	if !ok {
		return []item{s.notKnown("nodes", "the number of nodes", path("node_count")...)}
	}
	kind := price.Node
	if priority, _ := s.text(path("priority")...); priority == "Spot" {
		kind = price.SpotNode
	}
	machine := s.machine("nodes", kind, nodes, path("vm_size")...)
	if system, _ := s.text(path("os_type")...); system == "Windows" && len(machine.keys) > 0 {
		machine.keys[0].SKU += " (Windows)"
	}
	items := []item{machine}
	if disk, _ := s.text(path("os_disk_type")...); disk == "Ephemeral" { // on the machine itself
		return items
	}
	return append(items, s.azureNodeDisk(nodes, path))
}

// azureNodeDisk is the disk of each node's system. Without a size it follows from how large
// the machine is.
func (s side) azureNodeDisk(nodes span, path func(string) []any) item {
	const name = "disks of nodes"
	size, state := s.number(path("os_disk_size_gb")...)
	vm, _ := s.text(path("vm_size")...)
	letter := "S"
	if azurePremium(vm) {
		letter = "P"
	}
	var i item
	if state != given || size.IsZero() {
		i = s.either(name, price.Disk, letter+"10-LRS", letter+"15-LRS", letter+"20-LRS", letter+"30-LRS")
	} else {
		i = priced(name, s.key(price.Disk, azureTier(letter, size)+"-LRS"))
	}
	i.nodes = nodes
	return i
}

var azureFeatures = regexp.MustCompile(`^Standard_[A-Z]+[0-9]+(?:-[0-9]+)?([a-z]*)`)

// azurePremium reports whether a machine can have premium disks: there is an s among the
// letters behind its number of processors.
func azurePremium(vm string) bool {
	m := azureFeatures.FindStringSubmatch(vm)
	return m != nil && strings.Contains(m[1], "s")
}

// azureTiers are the sizes of disks in GiB, which are billed by the next larger one.
var azureTiers = []struct { //nolint:gochecknoglobals // a constant table
	gib    int64
	number string
}{
	{4, "1"},
	{8, "2"},
	{16, "3"},
	{32, "4"},
	{64, "6"},
	{128, "10"},
	{256, "15"},
	{512, "20"},
	{1024, "30"},
	{2048, "40"},
	{4096, "50"},
	{8192, "60"},
	{16384, "70"},
	{32767, "80"},
}

// azureTier is what a disk of a size is billed as: P10, for example.
func azureTier(letter string, size money.Amount) string {
	for _, tier := range azureTiers {
		if letter == "S" && tier.gib < 32 { // standard ones begin with S4
			continue
		}
		if size.Cmp(money.Of(tier.gib)) <= 0 {
			return letter + tier.number
		}
	}
	return letter + " with " + size.String() + " GiB"
}

func azureDisk(s side) []item {
	kind, state := s.text("storage_account_type")
	size, sizeState := s.number("disk_size_gb")
	switch {
	case state != given:
		return []item{s.notKnown("disk", "the type of the disk", "storage_account_type")}
	case sizeState != given:
		return []item{s.notKnown("disk", "the size of the disk", "disk_size_gb")}
	}
	return []item{priced("disk", s.key(price.Disk, azureDiskSKU(kind, size)))}
}

// azureDiskSKU is what a disk of a type and a size is billed as.
func azureDiskSKU(kind string, size money.Amount) string {
	for prefix, letter := range map[string]string{"Premium_": "P", "StandardSSD_": "E", "Standard_": "S"} {
		if redundancy, ok := strings.CutPrefix(kind, prefix); ok {
			return azureTier(letter, size) + "-" + redundancy
		}
	}
	return kind
}

func azureMachine(s side) []item {
	kind := price.Node
	if priority, _ := s.text("priority"); priority == "Spot" {
		kind = price.SpotNode
	}
	items := []item{s.machine("machine", kind, single(), "size")}
	storage, state := s.text("os_disk", 0, "storage_account_type")
	size, sizeState := s.number("os_disk", 0, "disk_size_gb")
	if state != given || sizeState != given {
		return append(items, s.notKnown("disk", "the size of the disk", "os_disk", 0, "disk_size_gb"))
	}
	return append(items, priced("disk", s.key(price.Disk, azureDiskSKU(storage, size))))
}

func azureNATGateway(s side) []item {
	return []item{
		priced("NAT gateway", s.key(price.NATGateway, "nat-gateway")),
		byUsage("data through the NAT gateway", s.key(price.NATGateway, "data-processed")),
	}
}

// azureAddress is billed by its SKU, how it is allocated, and how far it reaches.
func azureAddress(s side) []item {
	words := []string{"standard", "static", "regional"} // what azurerm uses by default
	for i, attribute := range []string{"sku", "allocation_method", "sku_tier"} {
		text, state := s.text(attribute)
		if state == unknown {
			return []item{s.notKnown("public address", "the SKU of the address", attribute)}
		}
		if state == given {
			words[i] = strings.ToLower(text)
		}
	}
	if version, _ := s.text("ip_version"); version == "IPv6" {
		words = append(words, "ipv6")
	}
	return []item{priced("public address", s.key(price.Address, strings.Join(words, "-")))}
}

// azureBalancer is billed by its rules, which are separate resources, except for one whose
// SKU is known not to be Standard.
func azureBalancer(s side) []item {
	if sku, state := s.text("sku"); state == given && sku == "Gateway" {
		return []item{priced("load balancer", s.key(price.LoadBalancer, "gateway"))}
	}
	return []item{byUsage("data through the load balancer", s.key(price.LoadBalancer, "standard-data-processed"))}
}

func azureRule(s side) []item {
	return []item{priced("rule of the load balancer", s.key(price.LoadBalancer, "standard-rule"))}
}
