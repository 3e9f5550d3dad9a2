package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sample is what a data file looks like, with all that must not become a price.
const sample = `{
 "cloud": "gcp", "currency": "USD",
 "items": [
  {"region": "us-central1", "kind": "control-plane", "sku": "gke", "unit": "hour", "price": "0.1", "origin": {"source": "s", "asOf": "2026-07-01"}},
  {"region": "*", "kind": "control-plane", "sku": "free", "unit": "hour", "price": "0", "origin": {"source": "s", "asOf": "2026-07-01"}},
  {"region": "*", "kind": "control-plane", "sku": "gke-free-tier-credit", "unit": "month", "price": "74.40", "origin": {"source": "s", "asOf": "stored copy, undated (after 2024)"}},
  {"region": "global", "kind": "monitoring", "sku": "metrics", "unit": "MiB", "price": "0.26", "origin": {"source": "s", "asOf": "stored copy, undated (after 2024)", "note": "n"}},
  {"region": "r", "kind": "load-balancer", "sku": "standard-rule", "unit": "hour", "price": "0.01", "origin": {"source": "s", "asOf": "2026-07-01"}},
  {"kind": "control-plane", "sku": "lke-e", "hourly": "0.45", "monthly": "300", "regions": {}, "origin": {"source": "s", "note": "a test double's number, not a recorded answer: check"}},
  {"kind": "disk", "sku": "volume", "unit": "GB", "hourly": "0.00015", "monthly": "0.1", "regions": {"id-cgk": {"hourly": "0.00018", "monthly": "0.12"}}, "origin": {"source": "s", "asOf": "Wed, 04 Sep 2024 17:59:26 GMT"}},
  {"kind": "ipv4", "sku": "reserved", "unit": "hour", "hourly": "0.0068", "monthly": null, "regions": {}, "origin": {"source": "s", "asOf": "2026-07-01"}},
  {"kind": "traffic", "sku": "t", "unit": "GB", "hourly": "0.01", "monthly": null, "regions": {}, "origin": {"source": "s", "asOf": "2026-07-01"}}
 ],
 "tables": {"origin": {"source": "t", "asOf": "2026-07-30"}, "tables": [
  {"kind": "ipv4", "sku": "ip", "unit": "month", "prices": {"a": "3.65"}},
  {"kind": "ipv4", "sku": "ip", "unit": "hour", "prices": {"a": "0.005", "b": "0"}},
  {"kind": "disk", "sku": "pd", "unit": "GB-month", "prices": {"a": "0.1"}}]},
 "nodes": [{"origin": {"source": "n", "asOf": "2026-06-18T03:43:41Z"}, "currency": "USD", "unit": "hour", "regions": ["a", "b"], "prices": {"n1": ["0.10", null], "n2": ["0.000", "0.2"]}}],
 "notFound": ["that"]
}`

func TestConvert(t *testing.T) {
	t.Parallel()
	table, left, err := convert([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range table.Blocks {
		for sku, row := range b.Prices {
			line := strings.Join([]string{b.Kind, sku, b.Unit, strings.Join(b.Regions, ","), strings.Join(row, ","), table.Origins[b.Origin].AsOf}, " ")
			if b.Note != "" {
				line += " (" + b.Note + ")"
			}
			got = append(got, line)
		}
	}
	slices.Sort(got)
	want := []string{
		"control-plane free hour * 0 2026-07-01 (free of charge)",
		"control-plane gke hour us-central1 0.1 2026-07-01",
		"disk pd GB-month a 0.1 2026-07-30",
		"disk volume GB-month *,id-cgk 0.1,0.12 2024-09-04",
		"ipv4 ip hour a 0.005 2026-07-30",
		"ipv4 reserved hour * 0.0068 2026-07-01",
		"monitoring metrics MiB * 0.26 ",
		"node n1 hour a,b 0.10,- 2026-06-18",
		"node n2 hour a,b -,0.2 2026-06-18",
	}
	if !slices.Equal(got, want) {
		t.Errorf("prices\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(left) != 5 || len(table.NotFound) != 6 {
		t.Errorf("left out\n%s\nmissing\n%s", strings.Join(left, "\n"), strings.Join(table.NotFound, "\n"))
	}
	i := slices.IndexFunc(table.Origins, func(o origin) bool { return o.Note == "stored copy, undated (after 2024); n" })
	if i < 0 {
		t.Errorf("an origin without a date does not say so: %+v", table.Origins)
	}
}

// What is written can be read again, and differs only where a price does.
func TestRun(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	for _, cloud := range []string{"aws", "azure", "digitalocean", "gcp", "linode"} {
		if err := os.WriteFile(filepath.Join(from, cloud+".json"), []byte(strings.Replace(sample, `"gcp"`, `"`+cloud+`"`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := run(&out, from, to); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(to, "azure.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) || !bytes.Contains(data, []byte("\n    \"n1\": \"0.10 -\",\n")) {
		t.Errorf("the table is\n%s", data)
	}
	if !strings.Contains(out.String(), "gcp: left out: 1 prices of machines that are zero in their origin\n") {
		t.Errorf("it says\n%s", out.String())
	}
	if err := os.WriteFile(filepath.Join(from, "aws.json"), []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(&out, from, to); err == nil || !strings.Contains(err.Error(), `aws.json is of "gcp"`) {
		t.Errorf("a file of another cloud: %v", err)
	}
}
