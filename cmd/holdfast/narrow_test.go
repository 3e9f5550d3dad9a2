package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// cutName is a name, an ID or an address that ends with an ellipsis.
var cutName = regexp.MustCompile(`(?:run-|vpc-|edge-|shop#|prod-|network-|module\.|aws_)\S*…`)

// TestNarrowTerminals: names and IDs are shown whole, or their column is left out and named,
// however narrow a terminal is. What a list is about is always there, also where that makes
// its lines wider than the terminal.
func TestNarrowTerminals(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"get clusters --all":       {"network-eu", "prod-eu"},
		"get drift --all":          {"network-eu", "prod-eu"},
		"get runs":                 {applyID, planID},
		"get queue":                {"prod-eu", "shop-us"},
		"get agents":               {"edge-1", "lab-2"},
		"get replicas":             {"hf-0-abcdef"},
		"get pullrequests":         {"shop#7"},
		"get resources":            {"module.network.aws_vpc.main", `aws_subnet.private["a"]`},
		"describe run " + applyID:  {applyID, "aws_eks_cluster.this"},
		"describe cluster prod-eu": {applyID, planID},
	} {
		for _, width := range []int{40, 60, 80} {
			srv := fleet().serve(t)
			var out bytes.Buffer
			a := app{&cli.App{
				Printer: table.Printer{Out: &out, Err: &out, Now: func() time.Time { return testNow }, Width: width},
				Getenv: func(key string) string {
					return map[string]string{"HOLDFAST_SERVER": srv.URL, "HOLDFAST_TOKEN": "t"}[key]
				},
			}}
			code := a.run(t.Context(), strings.Fields(line))
			srv.Close()
			for _, name := range want {
				if code != 0 || !strings.Contains(out.String(), name) {
					t.Errorf("%s in %d characters has no %s:\n%s", line, width, name, out.String())
				}
			}
			if cut := cutName.FindString(out.String()); cut != "" {
				t.Errorf("%s in %d characters cuts %q:\n%s", line, width, cut, out.String())
			}
		}
	}
}
