package prices_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/cost/prices"
)

func lookup(cloud price.Cloud, region string, kind price.Kind, sku string) string {
	var parts []string
	for _, p := range (prices.Embedded{}).Lookup(price.Key{Cloud: cloud, Region: region, Kind: kind, SKU: sku}) {
		parts = append(parts, p.Monthly().String()+" "+p.Currency+" "+p.Origin.AsOf)
	}
	return strings.Join(parts, ", ")
}

// The facts, and what is easily got wrong in them: each was compared with its origin by hand.
func TestFacts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cloud     price.Cloud
		region    string
		kind      price.Kind
		sku, want string
	}{
		{price.AWS, "us-east-1", price.Node, "m7i.large", "73.584 USD 2026-07-20"}, // 0.1008 × 730
		{price.AWS, "eu-west-1", price.Node, "t3.medium", "33.288 USD 2022-05-22"}, // 0.0456 × 730
		{price.AWS, "eu-west-1", price.Node, "m7i.large", ""},                      // younger than the table
		{price.AWS, "cn-north-1", price.Node, "t3.medium", "191.917 CNY 2024-11-06"},
		{price.AWS, "us-east-1", price.ControlPlane, "eks", "73 USD 2025-07-07"},
		{price.AWS, "eu-west-1", price.ControlPlane, "eks", ""}, // of no other region
		{price.AWS, "us-east-1", price.LoadBalancer, "alb", "16.425 USD 2024-07-01"},
		{price.GCP, "us-central1", price.Node, "n2-standard-4", "141.79228 USD 2026-07-30"}, // hours, without discounts
		{price.GCP, "europe-west1", price.Node, "n4-standard-4", "145.80986712 USD 2026-07-30"},
		{price.GCP, "us-central1", price.Disk, "hyperdisk-balanced", ""},
		{price.GCP, "us-central1", price.NATGateway, "cloud-nat-gateway", "32.704 USD 2026-07-30"},
		{price.GCP, "us-central1", price.Address, "external-ip-unused", "7.3 USD 2026-07-30"}, // twice that of one in use
		{price.GCP, "us-central1", price.Address, "external-ip-vm", "3.65 USD 2026-07-30"},
		{price.GCP, "us-central1", price.ControlPlane, "gke-free-tier-credit", ""}, // not a price
		{price.Azure, "westeurope", price.Node, "Standard_D4s_v5", "167.9 USD 2026-06-18"},
		{price.Azure, "spaincentral", price.Node, "Standard_L8as_v3", ""}, // zero in its origin
		{price.Azure, "westeurope", price.Node, "Dsv3_Type3", ""},         // a host
		{price.Azure, "westeurope", price.ControlPlane, "free", "0 USD 2024-08-30"},
		{price.Azure, "westeurope", price.ControlPlane, "premium", ""},
		{price.Azure, "eastus", price.Disk, "P10-LRS", "19.71 USD 2025-01-15"},
		{price.Azure, "westus", price.LoadBalancer, "standard-rule", ""},                             // its origins disagree
		{price.DigitalOcean, "fra1", price.Node, "g-2vcpu-8gb", "63 USD "},                           // 672 hours
		{price.DigitalOcean, "fra1", price.Node, "s-8vcpu-16gb", "98.99904 USD , 96 USD 2022-07-01"}, // both
		{price.DigitalOcean, "fra1", price.ControlPlane, "doks-ha", "40 USD "},
		{price.DigitalOcean, "fra1", price.LoadBalancer, "regional-node", ""},
		{price.Linode, "eu-central", price.Node, "g6-nanode-1", "5 USD 2024-07-11"}, // not 730 × 0.0075
		{price.Linode, "id-cgk", price.Node, "g6-standard-4", "57.6 USD 2024-07-11"},
		{price.Linode, "br-gru", price.ControlPlane, "lke-ha", "84 USD 2024-09-05"},
		{price.Linode, "us-east", price.ControlPlane, "lke-e", ""}, // of a test double
		{price.Linode, "us-east", price.Disk, "volume", "0.1 USD 2024-09-04"},
		{price.Linode, "us-east", price.Address, "reserved-ipv4", "4.964 USD 2026-05-11"}, // has no limit
	} {
		if got := lookup(test.cloud, test.region, test.kind, test.sku); got != test.want {
			t.Errorf("%s %s in %s costs %q, want %q", test.cloud, test.sku, test.region, got, test.want)
		}
	}
}

// Each cloud has a table that can be read, says where it is from and what is missing, and
// gives nothing away but what is known to be free.
func TestTables(t *testing.T) {
	t.Parallel()
	free := []string{"doks", "free", "lke-sa"}
	for _, cloud := range price.Clouds() {
		nodes := 0
		prices.Each(cloud, func(k price.Key, p price.Price) {
			if k.Kind == price.Node {
				nodes++
			}
			switch {
			case p.Amount.Sign() < 0, p.Amount.IsZero() && !slices.Contains(free, k.SKU):
				t.Errorf("%s costs %s", k, p.Amount)
			case len(p.Currency) != 3, p.Origin.Source == "", !slices.Contains(price.Units(), p.Unit), !slices.Contains(price.Kinds(), k.Kind):
				t.Errorf("%s: %+v", k, p)
			case p.Cap != nil && p.Cap.Cmp(p.Amount) < 0:
				t.Errorf("%s costs %s an hour and %s a month", k, p.Amount, p.Cap)
			}
		})
		if nodes < 10 || len(prices.Missing(cloud)) == 0 {
			t.Errorf("%s has %d prices of nodes, and lists %d things that are missing", cloud, nodes, len(prices.Missing(cloud)))
		}
	}
	v := prices.Embedded{}.Version()
	if v.ID == "" || v.AsOf != "2026-07-30" || v.Name != "embedded" {
		t.Errorf("%+v", v)
	}
}
