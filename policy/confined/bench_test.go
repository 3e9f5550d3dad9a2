package confined_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/holdfast-dev/holdfast/policy"
	"github.com/holdfast-dev/holdfast/policy/confined"
	"github.com/holdfast-dev/holdfast/protocol"
)

const (
	policies  = 50
	resources = 500
	types     = 25
)

// largePlan is a plan of 500 resources of 25 types, each with some forty attributes.
func largePlan(b *testing.B, grouped bool) []byte {
	b.Helper()
	attributes := func(i int) map[string]any {
		tags := map[string]any{}
		for t := range 10 {
			tags[fmt.Sprintf("tag-%d", t)] = fmt.Sprintf("value-%d-%d", i, t)
		}
		out := map[string]any{"id": fmt.Sprintf("id-%d", i), "tags": tags, "size": i, "public": i%7 == 0, "list": []string{"a", "b", "c"}}
		for a := range 25 {
			out[fmt.Sprintf("attribute_%d", a)] = fmt.Sprintf("text %d", a)
		}
		return out
	}
	var changes []any
	groups := map[string][]any{}
	for i := range resources {
		change := map[string]any{
			"address": fmt.Sprintf("module.m.type_%d.this[%d]", i%types, i), "mode": "managed", "type": fmt.Sprintf("type_%d", i%types), "name": "this", "index": i,
			"change": map[string]any{"actions": []string{"update"}, "before": attributes(i), "after": attributes(i + 1), "after_unknown": map[string]any{}},
		}
		changes = append(changes, change)
		name := fmt.Sprintf("type_%d", i%types)
		groups[name] = append(groups[name], change)
	}
	root := map[string]any{"format_version": "1.2", "resource_changes": changes}
	if grouped { // for whoever does not group it
		root = map[string]any{"format_version": "1.2", "holdfast": map[string]any{"by_type": groups}}
	}
	text, err := json.Marshal(root)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// manyPolicies are 50 policies of two rules each, over resources by their type.
func manyPolicies() (sources []policy.Source) {
	for i := range policies {
		sources = append(sources, policy.Source{Path: fmt.Sprintf("p%d.rego", i), Text: fmt.Sprintf(`package p%d

import rego.v1

deny contains {"msg": msg, "address": rc.address} if {
	some rc in input.holdfast.by_type.type_%d
	rc.change.actions[_] in {"create", "update"}
	not rc.change.after.tags["tag-3"]
	msg := sprintf("%%s has no tag", [rc.address])
}

warn contains {"msg": msg, "address": rc.address} if {
	some rc in input.holdfast.by_type.type_%d
	rc.change.after.public
	rc.change.after.size > 400
	msg := sprintf("%%s is large", [rc.address])
}
`, i, i%types, i%types)})
	}
	return sources
}

// reportCPU adds how much processor time an operation takes, of this process and of those that
// it has started: on a machine that others use, too, that says more than how long it takes.
func reportCPU(b *testing.B, who int) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	b.Cleanup(func() { b.ReportMetric(float64((used()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op") })
}

// BenchmarkEvaluate is all of it: the process is started, compiles, reads and evaluates.
func BenchmarkEvaluate(b *testing.B) {
	e, err := confined.New(confined.Options{})
	if err != nil {
		b.Fatal(err)
	}
	plan, sources := largePlan(b, false), manyPolicies()
	b.Logf("the plan has %d KiB", len(plan)/1024)
	reportCPU(b, syscall.RUSAGE_CHILDREN)
	for b.Loop() {
		report, err := e.Evaluate(context.Background(), protocol.AssignedPolicies{Sources: sources}, bytes.NewReader(plan))
		if err != nil || len(report.Faults) > 0 || len(report.Results) == 0 {
			b.Fatalf("got %+v, %v", report, err)
		}
	}
}

// BenchmarkInProcess is the same without a process.
func BenchmarkInProcess(b *testing.B) {
	plan, sources := largePlan(b, false), manyPolicies()
	reportCPU(b, syscall.RUSAGE_SELF)
	for b.Loop() {
		in, err := policy.ReadInput(bytes.NewReader(plan), policy.Context{})
		if err != nil {
			b.Fatal(err)
		}
		report := policy.Compile(sources, nil).Evaluate(context.Background(), in, policy.Limits{}, nil)
		if len(report.Faults) > 0 || len(report.Results) == 0 {
			b.Fatalf("got %+v", report)
		}
	}
}

// BenchmarkFloor is what OPA takes of that: it parses, compiles, converts the plan and
// evaluates one query for all.
func BenchmarkFloor(b *testing.B) {
	plan, sources := largePlan(b, true), manyPolicies()
	store := inmem.New()
	reportCPU(b, syscall.RUSAGE_SELF)
	for b.Loop() {
		modules := map[string]*ast.Module{}
		for _, s := range sources {
			modules[s.Path] = ast.MustParseModuleWithOpts(s.Text, ast.ParserOptions{})
		}
		c := ast.NewCompiler()
		if c.Compile(modules); c.Failed() {
			b.Fatal(c.Errors)
		}
		value, err := ast.ValueFromReader(bytes.NewReader(plan))
		if err != nil {
			b.Fatal(err)
		}
		query, err := c.QueryCompiler().Compile(ast.MustParseBody("x = data"))
		if err != nil {
			b.Fatal(err)
		}
		err = storage.Txn(context.Background(), store, storage.TransactionParams{}, func(txn storage.Transaction) error {
			_, err := topdown.NewQuery(query).WithCompiler(c).WithStore(store).WithTransaction(txn).WithInput(ast.NewTerm(value)).Run(context.Background())
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
