package price

import (
	"github.com/holdfast-dev/holdfast/cost/money"
)

// Cloud is whose price it is.
type Cloud string

// The clouds.
const (
	AWS          Cloud = "aws"
	GCP          Cloud = "gcp"
	Azure        Cloud = "azure"
	DigitalOcean Cloud = "digitalocean"
	Linode       Cloud = "linode"
)

// Clouds are all of them.
func Clouds() []Cloud { return []Cloud{AWS, Azure, DigitalOcean, GCP, Linode} }

// Kind is what is paid for.
type Kind string

// The kinds. What a SKU of each is called is the cloud's business: the machine types of
// nodes, for example.
const (
	Node         Kind = "node"
	SpotNode     Kind = "spot-node" // one that the cloud may take back
	ControlPlane Kind = "control-plane"
	Disk         Kind = "disk"
	LoadBalancer Kind = "load-balancer"
	NATGateway   Kind = "nat-gateway"
	Address      Kind = "ipv4"
	Monitoring   Kind = "monitoring"
	Endpoint     Kind = "endpoint" // a private way to a service
	Other        Kind = "other"    // named by the resource's type
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{ControlPlane, Disk, Endpoint, Address, LoadBalancer, Monitoring, NATGateway, Node, Other, SpotNode}
}

// AnyRegion is the region of what costs the same in all regions of which nothing else is
// known.
const AnyRegion = "*"

// Key is what a price is asked for by.
type Key struct {
	Cloud  Cloud  `json:"cloud"`
	Region string `json:"region"`
	Kind   Kind   `json:"kind"`
	SKU    string `json:"sku"`
}

// String returns the key in words: "m7i.large in eu-west-1".
func (k Key) String() string {
	if k.Region == AnyRegion || k.Region == "" {
		return k.SKU
	}
	return k.SKU + " in " + k.Region
}

// Unit is what an amount is for.
type Unit string

// The units. Those with Month are for a month, Hour for an hour; the others are for each
// unit that is used, whenever that is.
const (
	Hour      Unit = "hour"
	Month     Unit = "month"
	GBMonth   Unit = "GB-month"
	IOPSMonth Unit = "IOPS-month"
	MBpsMonth Unit = "MB/s-month"
	LCUMonth  Unit = "LCU-month"
	VMHour    Unit = "VM-hour"
	GB        Unit = "GB"
	GiB       Unit = "GiB"
	MiB       Unit = "MiB"
)

// Hours of a month.
const (
	Hours      = 730
	HoursOf28D = 672 // of the month of DigitalOcean
)

// Units are all of them.
func Units() []Unit {
	return []Unit{Hour, Month, GBMonth, IOPSMonth, MBpsMonth, LCUMonth, VMHour, GB, GiB, MiB}
}

// ByUsage reports whether the unit is of something that is used up, so that nobody knows
// beforehand how much of it there will be.
func (u Unit) ByUsage() bool { return u == GB || u == GiB || u == MiB || u == LCUMonth }

// Origin is where a price was found.
type Origin struct {
	Source string `json:"source"`         // such as a repository, an API or a price book
	AsOf   string `json:"asOf,omitempty"` // YYYY-MM-DD, YYYY-MM or YYYY; empty: it has no date
	Note   string `json:"note,omitempty"`
}

// Price is what one unit costs.
type Price struct {
	Amount   money.Amount `json:"amount"`
	Unit     Unit         `json:"unit"`
	Currency string       `json:"currency"` // ISO 4217
	// Cap is the most that a month of hours costs; nil: it has no limit.
	Cap *money.Amount `json:"cap,omitempty"`
	// Hours are those of a month; 0: 730.
	Hours  int64  `json:"hours,omitempty"`
	Origin Origin `json:"origin"`
}

// Monthly is what one unit costs for a month.
func (p Price) Monthly() money.Amount {
	if p.Unit != Hour && p.Unit != VMHour {
		return p.Amount
	}
	hours := p.Hours
	if hours == 0 {
		hours = Hours
	}
	month := p.Amount.Mul(money.Of(hours))
	if p.Cap != nil {
		return money.Min(month, *p.Cap)
	}
	return month
}
