package document_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/document"
)

const fullCluster = `# The whole of it.
apiVersion: holdfast.dev/v1
kind: Cluster
metadata:
  name: prod-eu
  renamedFrom: production-eu
  labels: {team: payments}
spec:
  project: payments
  environment: production
  template: {name: kubernetes, version: 1.4.2, upgrades: "~> 1.4"}
  provider: aws
  region: eu-west-1
  variables: {node_count: 3, ratio: 0.5, big: 123456789012345678901234567890, since: 2024-01-01, ports: {80: http}, on: no}
  engine: {name: tofu, version: "~> 1.10"}
  state: {type: s3, bucket: acme-tfstate, region: eu-west-1, key: old.tfstate}
  dependsOn: [network-eu]
  drift:
    schedule: "0 */4 * * *"
    timeZone: Europe/Berlin
    onDrift: report
    ignore:
      - {address: module.kubernetes.aws_eks_node_group.*, attribute: "scaling_config[*].desired_size", reason: the autoscaler sets it}
      - {address: "module.legacy.**", reason: moves away, expires: 2027-01-31}
      - {address: '**', attribute: 'tags["kubernetes.io/cluster"]', reason: set by the cloud, expires: 2027-01-31T18:00:00+01:00}
  apply:
    onMerge: false
    requires: [approved, mergeable]
    windows:
      - {kind: allow, schedule: "0 8 * * 1-5", duration: 8h, timeZone: Europe/Berlin}
      - {kind: deny, schedule: "CRON_TZ=UTC 0 12 * * *", duration: 90m}
  deletion: {protected: true}
`

func TestParseClusters(t *testing.T) {
	t.Parallel()

	doc := clusterOf(t, "clusters/prod-eu.yaml", fullCluster)
	want := holdfast.Cluster{
		Name: "prod-eu", RenamedFrom: "production-eu", Labels: map[string]string{"team": "payments"},
		Project: "payments", Environment: "production",
		Template: &holdfast.TemplateRef{Name: "kubernetes", Version: "1.4.2", Upgrades: "~> 1.4"},
		Provider: "aws", Region: "eu-west-1",
		Engine:    holdfast.EngineRef{Name: "tofu", Version: "~> 1.10"},
		State:     &holdfast.StateBackend{Type: "s3", Config: map[string]any{"bucket": "acme-tfstate", "region": "eu-west-1", "key": "old.tfstate"}},
		DependsOn: []string{"network-eu"},
		Drift: holdfast.DriftSettings{
			Schedule: "0 */4 * * *", TimeZone: "Europe/Berlin", OnDrift: "report",
			Ignore: []holdfast.DriftRule{
				{Address: "module.kubernetes.aws_eks_node_group.*", Attribute: "scaling_config[*].desired_size", Reason: "the autoscaler sets it"},
				{Address: "module.legacy.**", Reason: "moves away", Expires: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)},
				{Address: "**", Attribute: `tags["kubernetes.io/cluster"]`, Reason: "set by the cloud", Expires: time.Date(2027, 1, 31, 17, 0, 0, 0, time.UTC)},
			},
		},
		Apply: holdfast.ApplySettings{
			Manual: true, Requires: []string{"approved", "mergeable"},
			Windows: []holdfast.ApplyWindow{
				{Kind: "allow", Schedule: "0 8 * * 1-5", Duration: 8 * time.Hour, TimeZone: "Europe/Berlin"},
				{Kind: "deny", Schedule: "CRON_TZ=UTC 0 12 * * *", Duration: 90 * time.Minute},
			},
		},
		Deletion: holdfast.DeletionSettings{Protected: true},
		Path:     "clusters/prod-eu.yaml", Line: 2,
	}
	got := doc.Cluster
	variables := fmt.Sprint(got.Variables)
	got.Variables = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if want := "map[big:123456789012345678901234567890 node_count:3 on:no ports:map[80:http] ratio:0.5 since:2024-01-01]"; variables != want {
		t.Errorf("variables are %s, want %s", variables, want)
	}
	if got := doc.Fault("wrong", "", "spec", "variables", "node_count").Position(); got != "clusters/prod-eu.yaml:14:27" {
		t.Errorf("node_count is at %s", got)
	}
}

// short returns a cluster whose spec has lines added.
func short(lines ...string) string {
	return "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\nspec:\n  project: p\n  environment: e\n  " +
		strings.Join(lines, "\n  ") + "\n"
}

func TestParseClustersFaults(t *testing.T) {
	t.Parallel()

	const module = "module: {path: infra}"
	tests := map[string]struct {
		text string
		want []string
	}{
		"unknown keys, all at once, with suggestions": {
			short(module, "variablez: {}", "drift: {onDrft: report}", "frobnicate: 1"),
			[]string{
				`c.yaml:8:3: unknown key "variablez" in spec (did you mean "variables"?)`,
				`c.yaml:9:11: unknown key "onDrft" in spec.drift (did you mean "onDrift"?)`,
				`c.yaml:10:3: unknown key "frobnicate" in spec (one of apply, deletion, dependsOn, drift, engine, environment, limits, module, project, provider, region, runner, … (15 in all))`,
			},
		},
		"wrong types": {
			short(module, "region: 5", "variables: [1]", "dependsOn: x", "apply: {onMerge: yes}", "deletion: on"),
			[]string{
				`c.yaml:8:11: spec.region must be text, not the number 5 (put it in quotes: "5")`,
				`c.yaml:9:14: spec.variables must be a mapping, not a list`,
				`c.yaml:10:14: spec.dependsOn must be a list, not the text "x" (write dependsOn: [x])`,
				`c.yaml:11:20: spec.apply.onMerge must be true or false, not the text "yes"`,
				`c.yaml:12:13: spec.deletion must be a mapping, not the text "on"`,
			},
		},
		"both template and module": {
			short(module, "template: {path: t}"),
			[]string{`c.yaml:7:3: spec has both template and module (remove one of them)`},
		},
		"neither template nor module": {
			short(),
			[]string{`c.yaml:5:3: spec has neither template nor module (add template: {name: …, version: …}, template: {path: …} or module: {path: …})`},
		},
		"template with name and path": {
			short("template: {name: k, version: 1.0.0, path: ../t}"),
			[]string{`c.yaml:7:39: spec.template has both name and path (name and version for a released template, path for one of the same repository)`},
		},
		"template version that is a constraint": {
			short(`template: {name: k, version: "~> 1.4"}`),
			[]string{`c.yaml:7:32: spec.template.version "~> 1.4" is not an exact version (write an exact version such as 1.4.2; constraints go into upgrades)`},
		},
		"template version with a v": {
			short(`template: {name: k, version: v1.4.2}`),
			[]string{`c.yaml:7:32: spec.template.version "v1.4.2" is not an exact version (write 1.4.2)`},
		},
		"template version that YAML reads as a number": {
			short(`template: {name: k, version: 1.10}`),
			[]string{`c.yaml:7:32: spec.template.version "1.10" is not an exact version (write an exact version such as 1.4.2)`},
		},
		"module path that leaves": {
			short("module: {path: a/../../b}"),
			[]string{`c.yaml:7:18: spec.module.path "a/../../b" leaves the repository (write a path from the root of the repository, without ..)`},
		},
		"engine": {
			short(module, "engine: {name: terrafrom, version: latest}"),
			[]string{
				`c.yaml:8:18: spec.engine.name is "terrafrom" (did you mean "terraform"?)`,
				`c.yaml:8:38: spec.engine.version "latest" is not a version constraint (write one such as "~> 1.10" or ">= 1.9, < 2.0")`,
			},
		},
		"drift": {
			short(module, "drift: {schedule: 0 0 30 2 *, onDrift: fix}"),
			[]string{
				`c.yaml:8:21: spec.drift.schedule "0 0 30 2 *" never comes (check the day of the month)`,
				`c.yaml:8:42: spec.drift.onDrift is "fix" (one of apply, ignore, report)`,
			},
		},
		"dependencies": {
			short(module, "dependsOn: [a, b, b, C]"),
			[]string{
				`c.yaml:8:15: the cluster depends on itself`,
				`c.yaml:8:21: spec.dependsOn names "b" twice`,
				`c.yaml:8:24: spec.dependsOn names "C", which cannot be a cluster (use a-z, 0-9 and - inside, at most 63 characters)`,
			},
		},
		"state": {
			short(module, "state: {type: s3, buket: x, secret_key: y}"),
			[]string{
				`c.yaml:8:10: spec.state.bucket is missing for a state in s3 (did you mean it by "buket"?)`,
				`c.yaml:8:31: spec.state has secret_key, which is a secret (give the credential to the project and environment in holdfast.yaml)`,
			},
		},
		"renamed with a state whose default would move": {
			strings.Replace(short(module, "state: {type: s3, bucket: x}"), "name: a", "name: a, renamedFrom: b", 1),
			[]string{`c.yaml:8:10: spec.state.key must be written for a renamed cluster: its state is where it was (add key: b/terraform.tfstate)`},
		},
		"bad name": {
			strings.Replace(short(module), "name: a", "name: Prod_EU", 1),
			[]string{`c.yaml:3:18: metadata.name is "Prod_EU" (use a-z, 0-9 and - inside, at most 63 characters)`},
		},
		"kind misspelt": {
			strings.Replace(short(module), "kind: Cluster", "kind: Clutser", 1),
			[]string{`c.yaml:2:7: kind is "Clutser" (did you mean "Cluster"?)`},
		},
		"version from the future": {
			strings.Replace(short(module), "dev/v1", "dev/v2", 1),
			[]string{`c.yaml:1:13: apiVersion is "holdfast.dev/v2" (this Holdfast knows holdfast.dev/v1)`},
		},
		"duplicate key": {
			short(module, "region: a", "region: b"),
			[]string{`c.yaml:9:3: key "region" is given twice, first in line 8 (remove one)`},
		},
		"tab": {
			short(module, "\tregion: a"),
			[]string{`c.yaml:8:3: file is not valid YAML: a tab indents this line (indent with spaces)`},
		},
		"syntax": {
			short(module, "region: [a"),
			[]string{`c.yaml:8: file is not valid YAML: did not find expected ',' or ']'`},
		},
		"quote without an end": {
			short(module, `region: "eu`, "provider: a"),
			[]string{`c.yaml:8:11: file is not valid YAML: the text that begins here with " is not closed (close it with ")`},
		},
		"quote without an end in a mapping": {
			short(module, `labels: {a: "b", c: 'd}`, "provider: a"),
			[]string{`c.yaml:8:23: file is not valid YAML: the text that begins here with ' is not closed (close it with ')`},
		},
		"quote that ends early": {
			short(module, "provider: a", "region: 'it's", "variables: {}"),
			[]string{`c.yaml:9: file is not valid YAML: did not find expected key (a text in quotes ends before this line does: between ' and ' write '' for ', between " and " write \" for ")`},
		},
		"another indent": {
			short(module, "variables: {}", " region: eu"),
			[]string{`c.yaml:9: file is not valid YAML: did not find expected key (indent this line as the other keys of its mapping)`},
		},
		"colon in a text": {
			short(module, "region: eu: west"),
			[]string{`c.yaml:8: file is not valid YAML: mapping values are not allowed in this context (put a text that has a colon in quotes, or indent this line as the one before)`},
		},
		"misspelt key that must be there": { // it is the cause, and alone
			strings.Replace(short(module), "project:", "projcet:", 1),
			[]string{`c.yaml:5:3: unknown key "projcet" in spec (did you mean "project"?)`},
		},
		"no spec": {
			"apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\n",
			[]string{`c.yaml:1:1: spec is missing`},
		},
		"nothing but its kind": {
			"{apiVersion: holdfast.dev/v1, kind: Cluster}",
			[]string{`c.yaml:1:1: metadata.name is missing`, `c.yaml:1:1: spec is missing`},
		},
		"not UTF-8": {
			short(module, "region: \xff"),
			[]string{`c.yaml:8:11: file is not UTF-8 text (save it as UTF-8)`},
		},
		"alias to itself": {
			short(module, "variables: &v {x: *v}"),
			[]string{`c.yaml:8:21: alias *v contains itself`},
		},
		"nested too deeply": {
			short(module, "variables: {x: "+strings.Repeat("[", 200)+strings.Repeat("]", 200)+"}"),
			[]string{`c.yaml:8:80: document is nested more than 64 levels deep`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := document.ParseClusters("c.yaml", []byte(tc.text))
			wantFaults(t, faults, tc.want...)
		})
	}
}

func TestParseClustersKeepsTheOthers(t *testing.T) {
	t.Parallel()

	text := short("module: {path: a}") + "---\n" + strings.Replace(short("modul: {}"), "name: a", "name: b", 1) +
		"---\napiVersion: v1\nkind: ConfigMap\ndata: {x: 1, x: 2}\n---\n" + strings.Replace(short("module: {path: a}"), "name: a", "name: c", 1) +
		"---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\n---\n# nothing\n"
	docs, faults := document.ParseClusters("c.yaml", []byte(text))
	var names []string
	for _, doc := range docs {
		names = append(names, doc.Cluster.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Error(diff)
	}
	for _, fault := range faults {
		if fault.Cluster != "b" {
			t.Errorf("fault of another cluster: %+v", fault)
		}
	}
	if len(faults) != 2 {
		t.Errorf("faults:\n%v", faults)
	}
}

func TestParseClustersAnchors(t *testing.T) {
	t.Parallel()

	doc := clusterOf(t, "c.yaml", short("module: {path: a}", "variables:", "  base: &base {x: 1, y: 2}", "  more: {<<: *base, y: 3}", "  same: *base"))
	got := fmt.Sprint(doc.Cluster.Variables)
	if want := "map[base:map[x:1 y:2] more:map[x:1 y:3] same:map[x:1 y:2]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseClustersRefusesBombs(t *testing.T) {
	t.Parallel()

	bomb := []string{"module: {path: a}", "variables:", "  a0: &a0 [x, x, x, x, x, x, x, x, x]"}
	for i := 1; i < 30; i++ {
		bomb = append(bomb, fmt.Sprintf("  a%d: &a%d [%s]", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9)))
	}
	merges := []string{"module: {path: a}", "variables:", "  a0: &a0 {x: 1}"}
	for i := 1; i < 40; i++ {
		merges = append(merges, fmt.Sprintf("  a%d: &a%d {<<: [*a%d, *a%d]}", i, i, i-1, i-1))
	}
	tests := map[string]struct {
		data []byte
		want string
	}{
		"aliases":     {[]byte(short(bomb...)), "more than 100000 values"},
		"merges":      {[]byte(short(merges...)), "more than 100000 values"},
		"two MiB":     {append([]byte(short("module: {path: a}")), bytes.Repeat([]byte("# x\n"), 1<<19)...), "bytes, more than the 1048576"},
		"brackets":    {append([]byte(short("variables: ")), bytes.Repeat([]byte("["), 1<<19)...), "not valid YAML"},
		"documents":   {[]byte("apiVersion: holdfast.dev/v1\n" + strings.Repeat("---\na: b\n", 2000)), "more than 1000 documents"},
		"many faults": {[]byte(short(strings.Repeat("a: [\n", 2))), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := document.ParseClusters("c.yaml", tc.data)
			if len(faults) == 0 || !strings.Contains(faults.Error(), tc.want) {
				t.Errorf("faults:\n%.500s\nwant %q", faults.Error(), tc.want)
			}
		})
	}
}

func TestIsCluster(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		data string
		want bool
	}{
		"c.yaml":      {"apiVersion: holdfast.dev/v1", true},
		"c.yml":       {"apiVersion: holdfast.dev/v1", true},
		"c.tf":        {"apiVersion: holdfast.dev/v1", false},
		"values.yaml": {"image: nginx", false},
		"utf16.yaml":  {"h\x00o\x00l\x00d\x00f\x00a\x00s\x00t\x00.\x00d\x00e\x00v\x00", true},
	}
	for name, tc := range tests {
		if got := decode.IsCluster(name, []byte(tc.data)); got != tc.want {
			t.Errorf("IsCluster(%q) is %v", name, got)
		}
	}
	// What cannot be a cluster is not read, however large or broken.
	if docs, faults := document.ParseClusters("x.yaml", bytes.Repeat([]byte("["), 5<<20)); docs != nil || faults != nil {
		t.Errorf("a file of other people's gives %v, %v", docs, faults)
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()

	var docs []document.Document
	add := func(file, name, dependsOn string) {
		docs = append(docs, clusterOf(t, file, strings.Replace(short("module: {path: a}", "dependsOn: ["+dependsOn+"]"), "name: a", "name: "+name, 1)))
	}
	add("1.yaml", "x", "y")
	add("2.yaml", "y", "z, elsewhere")
	add("3.yaml", "z", "x")
	add("4.yaml", "w", "x")
	add("5.yaml", "y", "")
	wantFaults(t, document.Conflicts(docs),
		`1.yaml:8:14: clusters depend on one another in a circle: x → y → z → x`,
		`5.yaml:3:18: the name "y" is taken by 2.yaml:1 (names are unique in the fleet)`)
}

func FuzzParseClusters(f *testing.F) {
	f.Add([]byte(fullCluster))
	f.Add([]byte(short("module: {path: a}", "variables: &v {x: *v}")))
	f.Add([]byte(short("state: {type: s3}", "drift: {schedule: \"CRON_TZ=X\"}", "variables: {<<: [{a: 1}], ? [a] : b}")))
	f.Add([]byte("apiVersion: holdfast.dev/v1\nkind: Cluster\nspec: !!binary aGVsbG8=\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, faults := document.ParseClusters("c.yaml", data)
		named := map[string]bool{}
		for _, fault := range faults {
			named[fault.Cluster] = true
			if fault.Line < 0 || fault.Message == "" || len(fault.Error()) > 4000 {
				t.Errorf("fault %+.500v", fault)
			}
		}
		for _, doc := range docs {
			c := doc.Cluster
			if c.Name == "" || len(c.Name) > 63 {
				t.Errorf("cluster without a name: %+v", c)
			}
			if len(faults) == 0 && (c.Template == nil) == (c.Module == nil) {
				t.Errorf("cluster with neither or both: %+v", c)
			}
		}
	})
}
