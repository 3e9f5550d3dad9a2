package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// volumes is a cluster with a volume of so many GB, which a cloud bills.
func (w *world) volumes(name string, size int, spec ...string) files {
	w.t.Helper()
	return join(document(name, append(spec, "region: us-east", "variables: {nodes: 1}")...), moduleFile(name, fmt.Sprintf(`
terraform {
  required_providers {
    cloud = { source = "holdfast-dev/cloud" }
  }
}
provider "cloud" { folder = %q }
resource "linode_volume" "data" {
  provider = cloud
  name     = %q
  region   = "us-east"
  size     = %d
}
`, w.thing(name, ""), name, size)))
}

// The comment, the API and the command line say what plans add to the monthly price: by a price
// book, and else by the table in the program. An apply keeps what was shown.
func TestCostOfPlans(t *testing.T) {
	t.Parallel()
	w := newFleet(t, settings{"runs.max": 4})
	book := w.path("prices.yaml")
	text := "apiVersion: holdfast.dev/v1\nkind: PriceBook\nmetadata: {name: acme}\nspec:\n  currency: EUR\n  prices:\n" +
		"    - {cloud: linode, kind: disk, sku: volume, region: us-west, unit: GB-month, price: 0.5}\n" +
		"  discounts: [{cloud: linode, percent: 50}]\n"
	if err := os.WriteFile(book, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.set(settings{"cost.books": []any{book}})
	w.start()

	pr := w.fleet().open(join(w.volumes("alpha", 20), w.volumes("beta", 100), cluster("gamma", "nodes: 1")))
	pr.untilPlanned("3 clusters")
	pr.untilComment("**Cost:** +6.00 USD a month.", "| `alpha` | +1.00 USD a month |", "| `beta` | +5.00 USD a month |")
	pr.merge()
	pr.untilApplied("created")
	applied := w.record("alpha").Applied.Run
	out, _, _ := w.cli("describe", "run", applied)
	if !strings.Contains(out, "Monthly price: +1.00 USD") || !strings.Contains(out, "linode_volume.data") {
		t.Errorf("describe run does not say what it costs:\n%s", out)
	}

	dear := w.fleet().open(w.volumes("alpha", 50))
	dear.untilComment("**Cost:** +1.50 USD a month.")
}

// What a source has published takes the place of the price in the program, from the next plan on;
// no plan waits for it.
func TestPricesOfSources(t *testing.T) {
	t.Parallel()
	cloud := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/volumes/types") {
			http.NotFound(rw, r)
			return
		}
		fmt.Fprint(rw, `{"data": [{"id": "volume", "label": "Storage Volume", "price": {"hourly": 0.001, "monthly": 0.4}, "region_prices": [], "transfer": 0}], "page": 1, "pages": 1, "results": 1}`)
	}))
	t.Cleanup(cloud.Close)
	w := newFleet(t, settings{"runs.max": 4})
	w.set(settings{"cost.sources": []any{map[string]any{"type": "linode", "url": cloud.URL}}})
	w.start()

	pr := w.fleet().open(w.volumes("alpha", 20))
	pr.untilComment("**Cost:** +2.00 USD a month.")
	w.until("the price of the source is kept", func() (bool, string) {
		data, err := os.ReadFile(w.path("data", "prices.json"))
		return err == nil && strings.Contains(string(data), `"0.4"`), string(data)
	})
	pr.say(dev, "/holdfast plan")
	pr.untilComment("**Cost:** +8.00 USD a month.", "Prices of "+time.Now().UTC().Format("2006-"))
}
