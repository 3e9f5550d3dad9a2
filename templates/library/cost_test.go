package library_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cost"
	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/cost/prices"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// priced are the regions of each cloud in which the table of the program has the most
// prices, and one in which Linode costs more.
var priced = map[string]string{"aws": "us-east-1", "gcp": "us-central1", "azure": "eastus", "linode": "id-cgk"} //nolint:gochecknoglobals // a constant table

// TestCostOfExamples has the engine plan every example of the five clouds, also in regions of
// which more is known, and shows what its plan costs. What is in the golden files was
// checked against the tables by hand; the note in testdata/cost/README.md says how. Basic
// examples are planned nowhere else.
func TestCostOfExamples(t *testing.T) {
	t.Parallel()
	config := standIns(t)
	tree := diskTree{os.DirFS("kubernetes")}
	for name, doc := range examples(t, tree) {
		cloud, _, _ := strings.Cut(name, "-")
		if cloud == "local" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := "" // init is for all regions
			for _, region := range []string{doc.Cluster.Region, priced[cloud]} {
				if region == "" {
					continue
				}
				doc := doc
				doc.Cluster.Region = region
				d, printed := planned(t, tree, config, doc, &dir)
				shippedPolicies(t, cloud, printed)
				got := costText(cost.Estimate(cost.Input{Document: d, Region: region}, price.Chain{prices.Embedded{}}))
				golden(t, filepath.Join("testdata", "cost", name+"-"+region+".golden"), got)
			}
		})
	}
}

// planned is the plan document of a cluster, made by a real engine, and what that prints. The
// root module is written to a folder that a former one of the same template has left, if
// there is any, and else to a new one.
func planned(t *testing.T, tree diskTree, config string, doc document.Document, dir *string) (d plandoc.Document, printed []byte) {
	t.Helper()
	env, bundle := standInEnv(t, doc), unpack(t, resolve(t, tree, doc))
	if *dir == "" {
		*dir = engineRuns(t, bundle, config, env)
	} else {
		write(t, filepath.Dir(*dir), bundle)
	}
	if out, err := terraform(t, *dir, config, env, "plan", "-input=false", "-no-color", "-out=plan"); err != nil {
		t.Fatalf("terraform plan in %s: %v\n%s", doc.Cluster.Region, err, out)
	}
	out, err := terraform(t, *dir, config, env, "show", "-json", "plan")
	if err != nil {
		t.Fatalf("terraform show: %v\n%s", err, out)
	}
	read, err := plan.Read(bytes.NewReader([]byte(out)), plan.Options{Key: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	return read.Document, []byte(out)
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// costText is all of a cost, in lines.
func costText(c holdfast.Cost) string {
	var b strings.Builder
	for _, t := range c.Totals {
		fmt.Fprintf(&b, "total %s %s\n", rangeText(t.Change), t.Currency)
	}
	fmt.Fprintf(&b, "%d resources have something without a price\n", c.UnpricedResources())
	for _, r := range c.Resources {
		for _, t := range r.Totals {
			fmt.Fprintf(&b, "\n%s: %s %s\n", r.Address, rangeText(t.Change), t.Currency)
		}
		for _, i := range r.Items {
			fmt.Fprintf(&b, "  %s: %s of %s in %s at %s a month = %s\n", i.Name, i.Quantity, i.SKU, i.Region, rangeText(i.Price), rangeText(i.Monthly))
			for _, o := range i.Origins {
				fmt.Fprintf(&b, "    %s, as of %s\n", o.Source, o.AsOf)
			}
		}
	}
	b.WriteString("\nunpriced\n")
	for _, u := range c.Unpriced {
		fmt.Fprintf(&b, "  %s: %s: %s %s\n", u.Address, u.Name, u.Gap, u.Detail)
	}
	b.WriteString("\nby usage\n")
	for _, u := range c.Usage {
		fmt.Fprintf(&b, "  %s: %s: %s %s per %s\n", u.Address, u.Name, u.Price, u.Currency, u.Unit)
	}
	return b.String()
}

func rangeText(r holdfast.AmountRange) string {
	if r.Low == r.High {
		return string(r.Low)
	}
	return string(r.Low) + ".." + string(r.High)
}
