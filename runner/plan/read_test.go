package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

var printKey = []byte("0123456789abcdef0123456789abcdef")

// planFile reads a plan that a real engine made.
func planFile(t *testing.T, name string) (planJSON []byte, text string) {
	t.Helper()
	planJSON, err := os.ReadFile(filepath.Join("testdata", "plans", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join("testdata", "plans", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return planJSON, string(raw)
}

// parsed is the plan that a document of the engine's JSON shows.
func parsed(planJSON, key []byte, text string) (holdfast.Plan, error) {
	found, err := plan.Read(bytes.NewReader(planJSON), plan.Options{Key: key, Text: text})
	if err != nil {
		return holdfast.Plan{}, err
	}
	return plandiff.Plan(found.Document, found.Info), nil
}

// document is what a plan would do.
func document(t *testing.T, planJSON string) plandoc.Document {
	t.Helper()
	found, err := plan.Read(strings.NewReader(planJSON), plan.Options{Key: printKey})
	if err != nil {
		t.Fatal(err)
	}
	return found.Document
}

func parsePlan(t *testing.T, name string) holdfast.Plan {
	t.Helper()
	planJSON, text := planFile(t, name)
	plan, err := parsed(planJSON, printKey, text)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestParsePlanOfAnEngine(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		counts  holdfast.Counts
		changes []string // action address, in order
		outputs []string
		drift   []string
	}{
		"create": {
			counts:  holdfast.Counts{Create: 3, Outputs: 2},
			changes: []string{"create terraform_data.network", `create terraform_data.pool["blue"]`, `create terraform_data.pool["green"]`},
			outputs: []string{"create network", "create size"},
		},
		"update": {
			counts:  holdfast.Counts{Update: 1, Outputs: 3},
			changes: []string{"update terraform_data.pool"},
			outputs: []string{"create new", "delete old", "update size"},
		},
		"replace": {
			counts:  holdfast.Counts{Replace: 2},
			changes: []string{"replace terraform_data.cluster", "replace terraform_data.pool"},
		},
		"delete": {
			counts:  holdfast.Counts{Delete: 2, Outputs: 1},
			changes: []string{"delete terraform_data.a", "delete terraform_data.b[1]"},
			outputs: []string{"delete gone"},
		},
		"move": {
			counts:  holdfast.Counts{Update: 1, Move: 2},
			changes: []string{"update terraform_data.changed", "move terraform_data.new"},
		},
		"import": {
			counts:  holdfast.Counts{Import: 2, Update: 1},
			changes: []string{"update terraform_data.grown", "import terraform_data.adopted"},
		},
		"forget": {
			counts:  holdfast.Counts{Forget: 1},
			changes: []string{"forget terraform_data.kept"},
		},
		"tainted": {
			counts:  holdfast.Counts{Replace: 1},
			changes: []string{"replace terraform_data.node"},
		},
		"drift": {
			counts:  holdfast.Counts{Create: 1},
			changes: []string{"create local_file.conf"},
			drift:   []string{"delete local_file.conf"},
		},
		"changed": {
			counts:  holdfast.Counts{Create: 2, Update: 1},
			changes: []string{"update cloud_cluster.main", "create cloud_node_pool.pool[0]", "create cloud_node_pool.pool[1]"},
			drift:   []string{"delete cloud_node_pool.pool[0]", "delete cloud_node_pool.pool[1]", "update cloud_cluster.main"},
		},
		"answered": { // by the provider Mastercard/restapi
			counts:  holdfast.Counts{Create: 1, Update: 1},
			changes: []string{"update terraform_data.reader", "create restapi_object.gone"},
			drift:   []string{"delete restapi_object.gone", "update restapi_object.pool"},
		},
		"sensitive": {
			counts:  holdfast.Counts{Create: 2, Update: 1, Outputs: 1},
			changes: []string{"update terraform_data.db", "create terraform_data.app", "create terraform_data.list"},
			outputs: []string{"create password"},
		},
		"warning":  {counts: holdfast.Counts{Create: 1}, changes: []string{"create terraform_data.a"}},
		"nochange": {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			plan := parsePlan(t, name)
			if diff := cmp.Diff(test.counts, plan.Counts); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.changes, actions(plan.Changes)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.drift, actions(plan.Drift)); diff != "" {
				t.Errorf("drift (-want +got):\n%s", diff)
			}
			var outputs []string
			for _, o := range plan.OutputChanges {
				outputs = append(outputs, fmt.Sprintf("%s %s", o.Action, o.Name))
			}
			if diff := cmp.Diff(test.outputs, outputs); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
			if plan.HasChanges() == plan.Counts.Zero() || plan.Fingerprint == "" {
				t.Errorf("HasChanges = %v, fingerprint %q", plan.HasChanges(), plan.Fingerprint)
			}
		})
	}
}

func actions(changes []holdfast.ResourceChange) []string {
	var out []string
	for _, c := range changes {
		out = append(out, fmt.Sprintf("%s %s", c.Action, c.Address))
	}
	return out
}

func attributes(t *testing.T, plan holdfast.Plan, address string) []string {
	t.Helper()
	for _, c := range plan.Changes {
		if c.Address != address {
			continue
		}
		var out []string
		for _, a := range c.Attributes {
			line := uuid.ReplaceAllString(fmt.Sprintf("%s: %s -> %s", a.Path, a.Before, a.After), "UUID")
			for flag, set := range map[string]bool{" sensitive": a.Sensitive, " unknown": a.Unknown, " forces": a.Forces} {
				if set {
					line += flag
				}
			}
			out = append(out, line)
		}
		return out
	}
	t.Fatalf("no change of %s", address)
	return nil
}

func TestParsePlanAttributes(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		plan, address string
		want          []string
	}{
		"nested, odd key, grown list, unknown": {
			"update", "terraform_data.pool",
			[]string{
				`input.labels["odd key"]: "x" -> "y"`,
				`input.size: 3 -> 5`,
				`input.zones[1]:  -> "b"`,
				`output: {"labels":{"odd key":"x","team":"payments"},"size":3,"zones":["a"]} -> "(known after apply)" unknown`,
			},
		},
		"large number": {
			"create", `terraform_data.pool["blue"]`,
			[]string{
				`id:  -> "(known after apply)" unknown`,
				`input.big:  -> 9007199254740993`,
				`input.network:  -> "(known after apply)" unknown`,
				`input.size:  -> 3`,
				`output:  -> "(known after apply)" unknown`,
			},
		},
		"what forces a replacement comes first": {
			"replace", "terraform_data.cluster",
			[]string{
				`triggers_replace.version: "1.30" -> "1.33" forces`,
				`id: "UUID" -> "(known after apply)" unknown`,
				`output: "v1" -> "(known after apply)" unknown`,
			},
		},
		"marked, in a marked object, copied where nothing is marked": {
			"sensitive", "terraform_data.db",
			[]string{
				`input.conf: "(sensitive value)" -> "(sensitive value)" sensitive`,
				`input.password: "(sensitive value)" -> "(sensitive value)" sensitive`,
				`input.user: "admin" -> "root"`,
				`output: {"conf":{"hidden_key":"(sensitive value)"},"password":"(sensitive value)","user":"admin"} -> "(known after apply)" unknown`,
			},
		},
		"named like a secret, inside of another string": {
			"sensitive", "terraform_data.app",
			[]string{
				`id:  -> "(known after apply)" unknown`,
				`input.api_token:  -> "(sensitive value)" sensitive`,
				`input.token_ttl:  -> 3600`,
				`input.url:  -> "https://x?p=(sensitive value)"`,
				`output:  -> "(known after apply)" unknown`,
			},
		},
		"marked in a list": {
			"sensitive", "terraform_data.list",
			[]string{
				`id:  -> "(known after apply)" unknown`,
				`input[0]:  -> "(sensitive value)" sensitive`,
				`input[1]:  -> "plain"`,
				`output:  -> "(known after apply)" unknown`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, attributes(t, parsePlan(t, test.plan), test.address)); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParsePlanReasons(t *testing.T) {
	t.Parallel()

	replace := parsePlan(t, "replace")
	if got := replace.Changes[0]; got.CreateFirst || !cmp.Equal(got.ReplacePaths, []string{"triggers_replace"}) {
		t.Errorf("cluster: create first %v, replace paths %v", got.CreateFirst, got.ReplacePaths)
	}
	if got := replace.Changes[1]; !got.CreateFirst {
		t.Error("pool is not created first")
	}
	if got := parsePlan(t, "tainted").Changes[0].Reason; got != "replace_because_tainted" {
		t.Errorf("reason = %q", got)
	}
	if got := parsePlan(t, "move").Changes[1].PreviousAddress; got != "terraform_data.old" {
		t.Errorf("previous address = %q", got)
	}
	if got := parsePlan(t, "import").Changes[1].Importing; got != "0f8b6a7e-1111-2222-3333-444455556666" {
		t.Errorf("importing = %q", got)
	}
}

func TestParsePlanWarnings(t *testing.T) {
	t.Parallel()

	want := []holdfast.Diagnostic{{
		Severity: "warning", Summary: "Check block assertion failed", File: "main.tf", Line: 7,
		Detail: "The input is not b, which is what everybody wants it to be, and this sentence\n" +
			"is long enough to be wrapped by the engine.",
	}}
	if diff := cmp.Diff(want, parsePlan(t, "warning").Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	framed := "Plan: 1 to add, 0 to change, 0 to destroy.\n╷\n│ Warning: Deprecated Parameter\n│ \n│   with aws_eks_cluster.this,\n" +
		"│   on main.tf line 3, in resource \"aws_eks_cluster\" \"this\":\n│    3:   a = 1\n│ \n│ Use b.\n╵\n╷\n│ Warning: Other\n│ \n│ Text.\n╵\n\nNot this.\n"
	planJSON, _ := planFile(t, "create")
	plan, err := parsed(planJSON, printKey, framed)
	if err != nil {
		t.Fatal(err)
	}
	want = []holdfast.Diagnostic{
		{Severity: "warning", Summary: "Deprecated Parameter", Address: "aws_eks_cluster.this", File: "main.tf", Line: 3, Detail: "Use b."},
		{Severity: "warning", Summary: "Other", Detail: "Text."},
	}
	if diff := cmp.Diff(want, plan.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestParsePlanKeepsNoSecret reads everything that a Plan holds.
func TestParsePlanKeepsNoSecret(t *testing.T) {
	t.Parallel()

	raw, err := json.Marshal(parsePlan(t, "sensitive"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "planted-") {
		t.Errorf("the plan holds a secret:\n%s", raw)
	}
	if strings.Contains(string(raw), "input.conf.hidden_key") {
		t.Error("the plan holds the keys of a sensitive object")
	}
}

func TestParsePlanRefuses(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		json string
		want string
	}{
		"nothing":         {"", "ends too early"},
		"garbage":         {"Error: hunter22", "not JSON"},
		"cut off":         {`{"format_version":"1.2","resource_changes":[`, "ends too early"},
		"wrong shape":     {`{"format_version":"1.2","resource_changes":"hunter22"}`, "unexpected string"},
		"other version":   {`{"format_version":"2.0"}`, `format version "2.0"`},
		"not finished":    {`{"format_version":"1.2","errored":true}`, "could not finish"},
		"unknown actions": {change(`"actions":["teleport"]`), `a.b: unknown actions "teleport"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parsed([]byte(test.json), printKey, "")
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter22") {
				t.Errorf("error = %v, want one with %q", err, test.want)
			}
		})
	}
	if _, err := parsed([]byte(`{"format_version":"1.2"}`), nil, ""); err == nil {
		t.Error("no key is not an error")
	}
}

// change returns a plan with one change of the resource a.b.
func change(fields string) string { return resource("a.b", fields) }

func resource(address, fields string) string {
	return fmt.Sprintf(`{"format_version":"1.2","resource_changes":[{"address":%q,"mode":"managed","type":"a","change":{%s}}]}`, address, fields)
}

func TestParsePlanActions(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		fields string
		want   holdfast.Counts
	}{
		"read":                    {`"actions":["read"]`, holdfast.Counts{}},
		"no-op":                   {`"actions":["no-op"],"before":{},"after":{}`, holdfast.Counts{}},
		"create before destroy":   {`"actions":["create","delete"]`, holdfast.Counts{Replace: 1}},
		"create then forget":      {`"actions":["create","forget"]`, holdfast.Counts{Replace: 1}},
		"import by identity":      {`"actions":["no-op"],"importing":{"identity":{"arn":"x"}}`, holdfast.Counts{Import: 1}},
		"import of an unknown id": {`"actions":["no-op"],"importing":{"unknown":true}`, holdfast.Counts{Import: 1}},
		"import that replaces":    {`"actions":["delete","create"],"importing":{"id":"x"}`, holdfast.Counts{Import: 1, Replace: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := parsed([]byte(change(test.fields)), printKey, "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, plan.Counts); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParsePlanOrdersByDanger(t *testing.T) {
	t.Parallel()

	list := []string{}
	for _, c := range [][3]string{
		{"aws_instance.b", "aws_instance", "create"},
		{"aws_instance.aa", "aws_instance", "update"},
		{"aws_instance.zz", "aws_instance", "delete"},
		{"aws_db_instance.yy", "aws_db_instance", "delete"},
		{"aws_eks_cluster.xx", "aws_eks_cluster", "delete"},
		{"aws_instance.ay", "aws_instance", "forget"},
		{"linode_lke_cluster.cc", "linode_lke_cluster", "create"},
	} {
		list = append(list, fmt.Sprintf(`{"address":%q,"mode":"managed","type":%q,"change":{"actions":[%q]}}`, c[0], c[1], c[2]))
	}
	list = append(list, `{"address":"aws_instance.ww","mode":"managed","type":"aws_instance","change":{"actions":["delete","create"]}}`)
	plan, err := parsed([]byte(`{"format_version":"1.2","resource_changes":[`+strings.Join(list, ",")+`]}`), printKey, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"delete aws_eks_cluster.xx", "delete aws_db_instance.yy", "replace aws_instance.ww", "delete aws_instance.zz",
		"forget aws_instance.ay", "update aws_instance.aa", "create linode_lke_cluster.cc", "create aws_instance.b",
	}
	if diff := cmp.Diff(want, actions(plan.Changes)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "plans", "*.json"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		found, err := plan.Read(bytes.NewReader(raw), plan.Options{Key: printKey, Text: string(raw)})
		if err != nil {
			return
		}
		again, err := plan.Read(bytes.NewReader(raw), plan.Options{Key: printKey})
		if err != nil || again.Document.Digest() != found.Document.Digest() {
			t.Errorf("read twice: %v, digests %s and %s", err, found.Document.Digest(), again.Document.Digest())
		}
		if !reviewed.Remains(found.Document, again.Document) {
			t.Error("a plan is not a subset of itself")
		}
		if counts := plandiff.Plan(found.Document, found.Info).Counts; counts != found.Document.Counts() {
			t.Errorf("counts %+v and %+v", counts, found.Document.Counts())
		}
	})
}
