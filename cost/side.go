package cost

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// side is a resource as it is before a change, or after it. Its attributes are found once,
// as they are looked at many times.
type side struct {
	value
	after    bool
	resource *plandoc.Resource
	plan     *plan

	names  []value // as they are encoded, without the quotes
	values []value
	region string // where it is: what it says itself, otherwise where the cluster is
}

// newSide finds the attributes of a resource. One side is made at a time: the next one of
// its kind takes the same memory.
func newSide(v value, after bool, r *plandoc.Resource, p *plan) side {
	s := side{value: v, after: after, resource: r, plan: p}
	memory := &p.before
	if after {
		memory = &p.after
	}
	s.names, s.values = v.members(memory.names[:0], memory.values[:0])
	memory.names, memory.values = s.names, s.values
	cloud := cloudOf(r.Type)
	if s.region = ownRegion(cloud, s); s.region == "" {
		s.region = p.regions[cloud]
	}
	return s
}

// at returns what a path of names and indexes leads to.
func (s side) at(path ...any) value {
	if len(path) == 0 {
		return s.value
	}
	name, ok := path[0].(string)
	if !ok || len(s.names) == 0 {
		return s.value.at(path...)
	}
	for i := range s.names {
		if string(s.names[i]) == name {
			return s.values[i].at(path[1:]...)
		}
	}
	return nil
}

func (s side) text(path ...any) (string, known)         { return s.at(path...).text() }
func (s side) number(path ...any) (money.Amount, known) { return s.at(path...).number() }
func (s side) is(path ...any) (bool, known)             { return s.at(path...).is() }
func (s side) count(path ...any) (int, known)           { return s.at(path...).count() }

// billing is how a type of resource is billed.
type billing func(s side) []item

// billings are the types whose billing is known, by cloud.
var billings = map[price.Cloud]map[string]billing{ //nolint:gochecknoglobals // a constant table
	price.AWS: {
		"aws_autoscaling_group":    awsScalingGroup,
		"aws_cloudwatch_log_group": awsLogGroup,
		"aws_ebs_volume":           awsVolume,
		"aws_eip":                  awsAddress,
		"aws_eks_cluster":          awsCluster,
		"aws_eks_fargate_profile":  unsupported,
		"aws_eks_node_group":       awsNodeGroup,
		"aws_elb":                  awsClassicBalancer,
		"aws_instance":             awsInstance,
		"aws_alb":                  awsBalancer,
		"aws_lb":                   awsBalancer,
		"aws_nat_gateway":          awsNATGateway,
		"aws_vpc_endpoint":         awsEndpoint,
	},
	price.GCP: {
		"google_compute_address":         gcpAddress,
		"google_compute_disk":            gcpDisk,
		"google_compute_forwarding_rule": gcpForwardingRule,
		"google_compute_global_address":  gcpAddress,
		"google_compute_instance":        gcpInstance,
		"google_compute_router_nat":      gcpNAT,
		"google_container_cluster":       gcpCluster,
		"google_container_node_pool":     gcpNodePool,
	},
	price.Azure: {
		"azurerm_kubernetes_cluster":           azureCluster,
		"azurerm_kubernetes_cluster_node_pool": azureNodePool,
		"azurerm_lb":                           azureBalancer,
		"azurerm_lb_rule":                      azureRule,
		"azurerm_linux_virtual_machine":        azureMachine,
		"azurerm_managed_disk":                 azureDisk,
		"azurerm_nat_gateway":                  azureNATGateway,
		"azurerm_public_ip":                    azureAddress,
	},
	price.DigitalOcean: {
		"digitalocean_droplet":              doDroplet,
		"digitalocean_kubernetes_cluster":   doCluster,
		"digitalocean_kubernetes_node_pool": doNodePool,
		"digitalocean_loadbalancer":         doBalancer,
		"digitalocean_volume":               doVolume,
	},
	price.Linode: {
		"linode_instance":      linodeInstance,
		"linode_lke_cluster":   linodeCluster,
		"linode_lke_node_pool": linodeNodePool,
		"linode_nodebalancer":  linodeBalancer,
		"linode_volume":        linodeVolume,
	},
}

// prefixes of the types of each cloud.
var prefixes = map[string]price.Cloud{ //nolint:gochecknoglobals // a constant table
	"aws": price.AWS, "google": price.GCP, "azurerm": price.Azure, "digitalocean": price.DigitalOcean, "linode": price.Linode,
}

// cloudOf is whose a type is, empty if it is of none of the clouds.
func cloudOf(resourceType string) price.Cloud {
	prefix, _, _ := strings.Cut(resourceType, "_")
	return prefixes[prefix]
}

// items are what the resource is billed by on this side; none if it is not there.
func (s side) items() []item {
	if s.state() == absent {
		return nil
	}
	cloud := cloudOf(s.resource.Type)
	if bill, ok := billings[cloud][s.resource.Type]; ok {
		return bill(s)
	}
	if note := createsUnseen[s.resource.Type]; note != "" {
		if kind, state := s.text("spec", 0, "type"); strings.HasPrefix(s.resource.Type, "kubernetes_service") && state == given && kind != "LoadBalancer" {
			return nil
		}
		return []item{noted(note)}
	}
	return unsupported(s)
}

// isBilled reports whether a resource may be billed, or create what is.
func isBilled(r *plandoc.Resource) bool {
	return billings[cloudOf(r.Type)][r.Type] != nil || createsUnseen[r.Type] != "" || !isFree(r)
}

// either is what costs one of several prices: it is not known which.
func (s side) either(name string, kind price.Kind, skus ...string) item {
	i := item{name: name, nodes: single(), each: one()}
	for _, sku := range skus {
		i.keys = append(i.keys, s.key(kind, sku))
	}
	return i
}

// createsUnseen are types that create things in the cloud which no plan shows.
var createsUnseen = map[string]string{ //nolint:gochecknoglobals // a constant table
	"helm_release":                          "load balancers and disks that the chart creates",
	"kubectl_manifest":                      "load balancers and disks that the manifest creates",
	"kubernetes_manifest":                   "load balancers and disks that the manifest creates",
	"kubernetes_persistent_volume_claim":    "the disk that the claim creates",
	"kubernetes_service":                    "the load balancer that a service of that type creates",
	"kubernetes_service_v1":                 "the load balancer that a service of that type creates",
	"kubernetes_persistent_volume_claim_v1": "the disk that the claim creates",
	"kubernetes_stateful_set":               "disks that the set creates",
	"kubernetes_stateful_set_v1":            "disks that the set creates",
}

// unsupported is what nobody has said how to bill. Which of its values matter is not known:
// it is another one with each change, except for its names.
func unsupported(s side) []item {
	var ref strings.Builder
	for i, name := range s.names {
		if !naming[string(name)] {
			fmt.Fprintf(&ref, "%s=%s\n", name, s.values[i])
		}
	}
	return []item{missing("", holdfast.CostUnsupported, "resources of the type "+s.resource.Type+" are not priced", ref.String())}
}

// naming are attributes that cost nothing.
var naming = map[string]bool{ //nolint:gochecknoglobals // a constant table
	"tags": true, "tags_all": true, "labels": true, "terraform_labels": true, "effective_labels": true, "description": true,
}

// key is that of a price in the region of the resource.
func (s side) key(kind price.Kind, sku string) price.Key {
	return price.Key{Cloud: cloudOf(s.resource.Type), Region: s.region, Kind: kind, SKU: sku}
}

var gcpZone = regexp.MustCompile(`^([a-z]+-[a-z]+[0-9]+)-[a-z]$`)

var awsZone = regexp.MustCompile(`^([a-z]{2}(?:-[a-z]+)+-[0-9]+)[a-z]$`)

// regionAttributes are those that say where a resource is.
var regionAttributes = map[price.Cloud][]string{ //nolint:gochecknoglobals // a constant table
	price.AWS: {"region", "availability_zone"}, price.GCP: {"region", "location", "zone"}, price.Azure: {"location"},
	price.DigitalOcean: {"region"}, price.Linode: {"region"},
}

// ownRegion is the region that the values of a resource name, empty if they name none.
func ownRegion(cloud price.Cloud, v interface {
	text(path ...any) (string, known)
},
) string {
	for _, name := range regionAttributes[cloud] {
		text, state := v.text(name)
		if state != given || text == "" {
			continue
		}
		if i := strings.LastIndexByte(text, '/'); i >= 0 { // a link to it
			text = text[i+1:]
		}
		if m := gcpZone.FindStringSubmatch(text); m != nil && cloud == price.GCP {
			return m[1]
		}
		if m := awsZone.FindStringSubmatch(text); m != nil && cloud == price.AWS {
			return m[1]
		}
		if cloud == price.Azure { // "West Europe" is westeurope
			text = strings.ToLower(strings.ReplaceAll(text, " ", ""))
		}
		return text
	}
	return ""
}

// notKnown returns an item that depends on a value which is not known.
func (s side) notKnown(name, what string, path ...any) item {
	detail, ref := what+" is known after the apply", ""
	switch v := s.at(path...); {
	case v.state() == absent:
		detail = what + " is not in the plan"
	case v.state() == given:
		detail, ref = what+" is something else than expected", string(v)
	case strings.HasPrefix(string(v), `{"$mark":`):
		detail, ref = what+" is secret", string(v)
	}
	return missing(name, holdfast.CostUnknownValue, detail, ref)
}

// machine is nodes of a type, with the number of them.
func (s side) machine(name string, kind price.Kind, nodes span, path ...any) item {
	sku, state := s.text(path...)
	if state != given {
		i := s.notKnown(name, "the machine type", path...)
		i.nodes = nodes
		return i
	}
	i := priced(name, s.key(kind, sku))
	i.nodes = nodes
	return i
}

// whole returns the whole number at a path.
func (s side) whole(path ...any) (int64, known) {
	n, state := s.number(path...)
	if state != given {
		return 0, state
	}
	i, ok := n.Int()
	if !ok || i < 0 {
		return 0, absent
	}
	return i, given
}

// scaled is how many nodes a pool has: a fixed number, or the bounds between which it
// follows the load.
type scaled struct {
	count, least, most []any // paths
	// only is the path of a boolean: if that is false, the bounds mean nothing.
	only []any
	// zones is how many zones have that many nodes each; 0: they are counted together.
	zones int64
}

// span returns how many nodes there are. It is not known if neither a number nor both
// bounds are.
func (s side) span(p scaled) (span, bool) {
	factor := max(p.zones, 1)
	low, lowState := s.whole(p.least...)
	high, highState := s.whole(p.most...)
	off := false
	if len(p.only) > 0 {
		on, state := s.is(p.only...)
		off = state == given && !on
	}
	if lowState == given && highState == given && high > 0 && !off {
		return span{low * factor, max(low, high) * factor}, true
	}
	if n, state := s.whole(p.count...); state == given {
		return span{n * factor, n * factor}, true
	}
	return span{}, false
}

// gigabytes returns the number at a path, or what a cloud takes if nothing is said.
func (s side) gigabytes(fallback int64, path ...any) (money.Amount, known) {
	n, state := s.number(path...)
	if state == absent || state == given && n.IsZero() {
		return money.Of(fallback), given
	}
	return n, state
}
