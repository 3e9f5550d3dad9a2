package docs_test

import (
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// The tables of drift.md and lifecycle.md have a row for each word of the code,
// and none for another.
func TestFleetWords(t *testing.T) {
	t.Parallel()
	drift, life := read(t, "drift.md"), read(t, "lifecycle.md")
	of := func(prefix, ofType string) []string {
		values := constantsOf(t, "..", func(name string) bool { return strings.HasPrefix(name, prefix) }, ofType)
		return slices.DeleteFunc(values, func(s string) bool { return s == "" }) // not checked yet: nothing is shown
	}
	because := constantsOf(t, "../reconciler", func(name string) bool { return strings.HasPrefix(name, "because") }, "")
	for _, words := range []struct {
		page, header string
		want         []string
	}{
		{drift, "Kind", union(of("Drift", "DriftKind"), []string{"harmless"})},
		{drift, "Status", of("Drift", "DriftStatus")},
		{life, "Phase", of("Phase", "Phase")},
		{life, "Condition", of("Condition", "ConditionType")},
		{life, "Because", because},
		{life, "Ended", []string{string(holdfast.ReasonDestroyed), string(holdfast.ReasonNeverApplied), string(holdfast.ReasonRenamed)}},
	} {
		if diff := cmp.Diff(words.want, firstCells(table(t, words.page, words.header))); diff != "" {
			t.Errorf("the table of %s is not that of the code (-code +page):\n%s", words.header, diff)
		}
	}
	for _, row := range table(t, life, "Because") {
		for _, c := range strings.Split(row[1], ", ") {
			if !slices.Contains(of("Condition", "ConditionType"), unquote(c)) {
				t.Errorf("%s is of %s, which is not a condition", row[0], c)
			}
		}
	}
	for _, status := range of("Condition", "ConditionStatus") {
		if status != string(holdfast.ConditionFalse) && !strings.Contains(life, "`"+status+"`") {
			t.Errorf("lifecycle.md does not tell of the status %s", status)
		}
	}
}

// Words in the manner of reasons, phases and conditions are such.
func TestFleetPagesNameNothingElse(t *testing.T) {
	t.Parallel()
	every := func(string) bool { return true }
	known := union(
		firstCells(table(t, read(t, "runs.md"), "Reason")), firstCells(table(t, read(t, "runs.md"), "Cause")),
		firstCells(table(t, read(t, "lifecycle.md"), "Because")),
		constantsOf(t, "..", every, "Phase"), constantsOf(t, "..", every, "ConditionType"), constantsOf(t, "..", every, "ConditionStatus"),
	)
	for _, page := range []string{"drift.md", "lifecycle.md", "templates.md"} {
		for _, m := range regexp.MustCompile("`([A-Z][a-z]+(?:[A-Z][a-z]+)*)`").FindAllStringSubmatch(read(t, page), -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s speaks of %s, which is neither a reason nor a phase nor a condition", page, m[1])
			}
		}
	}
}

// The picture of phases has them all, and no other.
func TestPictureOfPhases(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^    (\S+) --> ([A-Za-z\[*\]]+)`).FindAllStringSubmatch(read(t, "lifecycle.md"), -1) {
		seen[m[1]], seen[m[2]] = true, true
	}
	delete(seen, "[*]")
	want := constantsOf(t, "..", func(name string) bool { return strings.HasPrefix(name, "Phase") }, "Phase")
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(seen))); diff != "" {
		t.Errorf("the picture has other phases (-code +page):\n%s", diff)
	}
}

// What documents may say is what the pages say that they may.
func TestFleetKeys(t *testing.T) {
	t.Parallel()
	clusterOf := func(drift string) string {
		return "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\nspec:\n  project: p\n  environment: e\n" +
			"  module: {path: m}\n  drift: " + drift + "\n"
	}
	valid := func(drift string) bool {
		_, faults := document.ParseClusters("a.yaml", []byte(clusterOf(drift)))
		return len(faults) == 0
	}
	page := read(t, "drift.md")
	for _, row := range table(t, page, "onDrift") {
		if value := unquote(row[0]); !valid("{onDrift: " + value + "}") {
			t.Errorf("onDrift: %s is not valid", value)
		}
	}
	if len(table(t, page, "onDrift")) != 3 || valid("{onDrift: other}") {
		t.Error("there are other values of onDrift than three")
	}
	examples := map[string]string{"address": `"**"`, "attribute": "tags.a", "reason": "why", "expires": "2027-01-31"}
	var all []string
	for _, row := range table(t, page, "Key") {
		key := unquote(row[0])
		if examples[key] == "" {
			t.Errorf("%s is not known to be a key of a rule", key)
		}
		all = append(all, key+": "+examples[key])
	}
	if !valid("{ignore: [{" + strings.Join(all, ", ") + "}]}") {
		t.Error("a rule with all keys is not valid")
	}
}

// The numbers in the pages are those of the code, each where it is defined.
func TestFleetNumbers(t *testing.T) {
	t.Parallel()
	for _, number := range []struct{ dir, name, value, page, says string }{
		{"../templates", "maxJitter", "30 * time.Minute", "drift.md", "at most 30 minutes"},
		{"../reconciler", "driftRetry", "10 * time.Minute", "drift.md", "again in 10 minutes"},
		{"../reconciler", "driftRetryMost", "24 * time.Hour", "drift.md", "doubling up to a day"},
		{"../reconciler", "DriftFresh", "time.Hour", "drift.md", "older than an hour"},
		{"../reconciler", "maxIssues", "10", "drift.md", "`drift.maxIssues` (10)"},
		{"../reconciler", "failuresForIssue", "3", "drift.md", "after the third in a row"},
		{"../report", "failuresBeforeIssue", "3", "drift.md", "after the third in a row"},
		{"../reconciler", "massRemovals", "5", "lifecycle.md", "more than 5 clusters"},
		{"../reconciler", "massRemovalShare", "10", "lifecycle.md", "more than a tenth"},
		{"../reconciler", "maxDestroyRetries", "3", "lifecycle.md", "retried three times"},
		{"../reconciler/breaker", "breakerClusters", "3", "lifecycle.md", "runs of three clusters"},
		{"../reconciler/breaker", "breakerWindow", "5 * time.Minute", "lifecycle.md", "within five minutes"},
		{"../reconciler/breaker", "breakerPause", "time.Minute", "lifecycle.md", "pause for one minute"},
		{"../reconciler/breaker", "breakerLongest", "15", "lifecycle.md", "up to 15 times the first one"},
		{"../datastore", "keepTransitions", "100", "lifecycle.md", "the newest 100 of each cluster |"},
		{"../templates", "maxFileBytes", "1 << 20", "templates.md", "| `template.yaml` | 1 MiB,"},
		{"../templates", "maxNodes", "100_000", "templates.md", "100,000 nodes"},
		{"../templates", "maxDepth", "64", "templates.md", "nested 64 deep"},
		{"../templates", "MaxFaults", "100", "templates.md", "faults reported per document | 100 |"},
		{"../templates", "MaxSchemaSteps", "100_000", "templates.md", "| a schema | 100,000 steps"},
		{"../templates", "maxPattern", "1_000", "templates.md", "| 1,000 bytes |"},
		{"../templates", "maxInstanceTypes", "5_000", "templates.md", "of a provider | 5,000 |"},
		{"../templates", "maxExpressions", "200", "templates.md", "200 expressions in a template"},
		{"../templates", "maxExpression", "4_000", "templates.md", "4,000 characters"},
		{"../templates", "maxExpressionCost", "100_000", "templates.md", "100,000 steps each"},
		{"../templates", "maxModules", "500", "templates.md", "a root module reaches | 500 |"},
		{"../templates", "maxBundleFiles", "20_000", "templates.md", "20,000, and"},
		{"../templates", "maxBundleBytes", "256 << 20", "templates.md", "256 MiB"},
		{"../runner", "maxSecretValue", "64 << 10", "templates.md", "at most 64 KiB"},
		{"../reconciler", "samplesMost", "1000", "runs.md", "at most 1000 of a template"},
	} {
		if got := expressionOf(t, number.dir, number.name); got != number.value {
			t.Errorf("%s in %s is %s, %s says %q", number.name, number.dir, got, number.page, number.says)
		}
		if text := strings.Join(strings.Fields(read(t, number.page)), " "); !strings.Contains(text, number.says) {
			t.Errorf("%s does not say %q, for %s", number.page, number.says, number.name)
		}
	}
}

// expressionOf is what a constant of a package is defined as.
func expressionOf(t *testing.T, dir, name string) string {
	t.Helper()
	found := ""
	eachFile(t, dir, func(file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == 1 && spec.Names[0].Name == name {
				found = types.ExprString(spec.Values[0])
			}
			return true
		})
	})
	return found
}

// A cluster that must not go is held for the reasons in the table of guards.
func TestGuards(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	applied := holdfast.Applied{Run: "run-1", SourceDigest: "sha256:1", Document: holdfast.Cluster{Name: "prod"}}
	gone := func(change func(*decision.Input)) decision.Input {
		in := decision.Input{
			Now: now, Request: holdfast.Request{Cluster: "prod"}, Last: applied, Leaving: decision.Leaving{Removals: 1, Fleet: 100},
			Cluster: holdfast.ClusterRecord{
				Name: "prod", Applied: applied, Desired: holdfast.Desired{Removed: true, RemovedWith: 1},
			},
			Merges: []decision.Merge{{Review: holdfast.Review{Run: "run-2"}}},
		}
		change(&in)
		return in
	}
	held := make(map[string]bool)
	for _, change := range []func(*decision.Input){
		func(in *decision.Input) { in.Last.Document.Deletion.Protected = true },
		func(in *decision.Input) {
			in.Dependents = []holdfast.Relation{{Name: "app", Phase: holdfast.PhaseActive}}
		},
		func(in *decision.Input) { in.Removals = 6 },
		func(in *decision.Input) { in.Merges = nil },
		func(in *decision.Input) { in.Suspended = "fleet" },
		func(in *decision.Input) { in.Window.Closed = true },
	} {
		d := decision.Decide(gone(change))
		if d.Action == decision.ActionApply {
			t.Errorf("it is destroyed for %s", d.Reason)
		}
		held[string(d.Reason)] = true
	}
	if d := decision.Decide(gone(func(*decision.Input) {})); d.Action != decision.ActionApply {
		t.Errorf("without a guard it is not destroyed: %s %s", d.Action, d.Reason)
	}
	var documented []string
	for _, row := range table(t, read(t, "lifecycle.md"), "Guard") {
		for _, reason := range strings.Split(row[0], ", ") {
			documented = append(documented, unquote(reason))
		}
	}
	slices.Sort(documented)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(held)), documented); diff != "" {
		t.Errorf("the table of guards is not what Decide does (-code +page):\n%s", diff)
	}
}

// Outputs that are shown name commands that exist, and pages nobody's machine.
func TestOutputsAreClean(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`/tmp/\S+|/root/\S*`).FindAllString(string(data), -1) {
			t.Errorf("%s has the path %s", file, m)
		}
	}
}
