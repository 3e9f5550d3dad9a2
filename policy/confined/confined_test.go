package confined_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/policy"
	"github.com/holdfast-dev/holdfast/policy/confined"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestMain is the program that an Evaluator starts, as well.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == confined.CommandName {
		if err := confined.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const planJSON = `{"format_version": "1.2", "resource_changes": [{"address": "a.b", "type": "a", "mode": "managed", "change": {"actions": ["delete"]}}]}`

func evaluate(ctx context.Context, t *testing.T, opts confined.Options, plan string, texts ...string) (holdfast.PolicyReport, error) {
	t.Helper()
	opts.Limits.Policy = time.Minute // the process is bounded, not the policy
	e, err := confined.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	var req protocol.AssignedPolicies
	for i, text := range texts {
		req.Sources = append(req.Sources, policy.Source{Path: fmt.Sprintf("p%d.rego", i), Text: text})
	}
	req.Context.Cluster.Name = "prod"
	return e.Evaluate(ctx, req, strings.NewReader(plan))
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	report, err := evaluate(t.Context(), t, confined.Options{}, planJSON,
		`package a
deny contains {"msg": sprintf("%s of %s", [rc.address, input.holdfast.cluster.name]), "address": rc.address} if some rc in input.holdfast.by_type.a`)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != 1 || report.Results[0].Message != "a.b of prod" || len(report.Policies) != 1 || report.Set == "" || report.Verdict == "" {
		t.Errorf("got %+v", report)
	}
}

// What a policy does to the process is its fault, names it, and is over when Evaluate returns.
func TestHostilePolicies(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		want string
	}{
		"loop":          {`some i in numbers.range(1, 1000000); some j in numbers.range(1, 1000000); i * j == -1`, ""},
		"graph":         {`count(graph.reachable_paths({n: numbers.range(1, 40) | some n in numbers.range(1, 40)}, {1})) == 0`, ""},
		"large number":  {`bits.lsh(1, 20000000000) == 0`, ""},
		"large text":    {`count(concat("", [x | some _ in numbers.range(1, 200000); x := sprintf("%5000d", [1])])) == 0`, ""},
		"large product": {`count([1 | some a in numbers.range(1, 5000); some b in numbers.range(1, 5000)]) == 0`, ""},
		"addresses":     {`count(net.cidr_expand("10.0.0.0/8")) == 0`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := confined.Options{Memory: 200 << 20, Timeout: 2 * time.Second}
			report, err := evaluate(t.Context(), t, opts, planJSON, "package bad\ndeny contains \"x\" if { "+tt.body+" }", "package good\ndeny contains \"x\" if false")
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Faults) != 1 || !report.Denies() {
				t.Fatalf("got %+v", report)
			}
			f := report.Faults[0]
			if f.Policy != "bad.deny" || !strings.Contains(f.Message, tt.want) || !strings.Contains(f.Message, "ended after 2s") && !strings.Contains(f.Message, "MiB of memory") {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// Memory that a policy wants and does not get is why it is not evaluated.
func TestMemory(t *testing.T) {
	t.Parallel()
	report, err := evaluate(t.Context(), t, confined.Options{Memory: 150 << 20, Timeout: time.Minute}, planJSON,
		"package bad\ndeny contains \"x\" if count(numbers.range(1, 100000000)) == 0")
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Faults) != 1 || report.Faults[0].Message != "it needed more than 150 MiB of memory" {
		t.Errorf("got %+v", report.Faults)
	}
}

// An answer that is too large ends the process.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	report, err := evaluate(t.Context(), t, confined.Options{Output: 10 << 10}, planJSON,
		"package bad\ndeny contains sprintf(\"%d %200d\", [i, i]) if some i in numbers.range(1, 900)")
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Faults) != 1 || !strings.Contains(report.Faults[0].Message, "it answered more than 0 MiB") {
		t.Errorf("got %+v", report.Faults)
	}
}

// A plan that cannot be read is an error of ours, and of no policy.
func TestUnreadablePlan(t *testing.T) {
	t.Parallel()
	if report, err := evaluate(t.Context(), t, confined.Options{}, "{", "package a\ndeny contains \"x\" if false"); err == nil {
		t.Errorf("got %+v", report)
	}
	if report, err := evaluate(t.Context(), t, confined.Options{Program: []string{"/nonexistent"}}, planJSON, "package a\ndeny contains \"x\" if false"); err == nil {
		t.Errorf("got %+v", report)
	}
}

// Who stops waiting gets his error, and the process is gone.
func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	report, err := evaluate(ctx, t, confined.Options{}, planJSON, "package bad\ndeny contains \"x\" if { some i in numbers.range(1, 1000000); some j in numbers.range(1, 1000000); i * j == -1 }")
	if err == nil {
		t.Errorf("got %+v", report)
	}
}

// What is not started by an Evaluator says so.
func TestServeByHand(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "hello\n", "-1\n", "5\n{}", "99999999999\n"} {
		if err := confined.Serve(strings.NewReader(text), &strings.Builder{}); err == nil {
			t.Errorf("%q is served", text)
		}
	}
}
