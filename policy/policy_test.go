package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/policy"
	"github.com/holdfast-dev/holdfast/protocol"
)

const planJSON = `{
	"format_version": "1.2", "terraform_version": "1.10.3",
	"resource_changes": [
		{"address": "aws_vpc.main", "mode": "managed", "type": "aws_vpc", "name": "main",
		 "change": {"actions": ["create"], "before": null, "after": {"cidr_block": "10.0.0.0/16", "tags": {"a": 1}}, "after_unknown": {"id": true}}},
		{"address": "aws_s3_bucket.logs", "mode": "managed", "type": "aws_s3_bucket", "name": "logs",
		 "change": {"actions": ["delete"], "before": {"acl": "private"}, "after": null, "after_unknown": {}}},
		{"address": "aws_s3_bucket.old", "mode": "managed", "type": "aws_s3_bucket", "name": "old",
		 "change": {"actions": ["update"], "before": {"acl": "private"}, "after": {"acl": "public-read"}, "after_unknown": {}}}
	],
	"configuration": {"root_module": {}},
	"holdfast": {"forged": true}
}`

func input(t *testing.T, plan string) policy.Input {
	t.Helper()
	in, err := policy.ReadInput(strings.NewReader(plan), policy.Context{
		Run:     protocol.PolicyRun{Kind: holdfast.RunPlan},
		Cluster: holdfast.Cluster{Name: "prod", Environment: "production"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func evaluate(t *testing.T, files map[string]string) holdfast.PolicyReport {
	t.Helper()
	return set(files).Evaluate(t.Context(), input(t, planJSON), policy.Limits{}, nil)
}

func set(files map[string]string) *policy.Set {
	var sources []policy.Source
	for name, text := range files {
		sources = append(sources, policy.Source{Path: name, Text: text})
	}
	return policy.Compile(sources, map[string]any{"limit": 3})
}

// lines are a report in short.
func lines(r holdfast.PolicyReport) string {
	var b strings.Builder
	for _, result := range r.Results {
		fmt.Fprintf(&b, "%s %s [%s] %s", result.Severity, result.Policy, result.Address, result.Message)
		if result.Excepted {
			b.WriteString(" (excepted)")
		}
		if result.Link != "" {
			b.WriteString(" " + result.Link)
		}
		b.WriteString("\n")
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "fault %s at %s\n", f.Policy, f.Error())
	}
	for _, id := range r.Undecided {
		fmt.Fprintf(&b, "undecided %s\n", id)
	}
	return b.String()
}

// What policies are: their names, their answers, their metadata, in both languages of Rego.
func TestEvaluate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want string
	}{
		"conftest": {
			`package main
			deny[msg] { rc := input.resource_changes[_]; rc.change.actions[_] == "delete"; msg := sprintf("%s goes", [rc.address]) }
			warn[msg] { msg := "look" }`,
			"deny main.deny [] aws_s3_bucket.logs goes\nwarn main.warn [] look\n",
		},
		"by type": {
			`package buckets
			deny_public contains {"msg": "public", "address": rc.address, "link": "https://example.com"} if {
				some rc in input.holdfast.by_type.aws_s3_bucket
				rc.change.after.acl == "public-read"
			}`,
			"deny buckets.deny_public [aws_s3_bucket.old] public https://example.com\n",
		},
		"metadata": {
			`# METADATA
# title: Buckets are private
# related_resources:
# - https://example.com/buckets
# custom:
#   id: private-buckets
#   owners: ["@acme/security"]
#   waivable: false
package buckets
			deny if input.resource_changes[_].change.after.acl == "public-read"`,
			"deny private-buckets [] Buckets are private https://example.com/buckets\n",
		},
		"of the rule": {
			`package buckets
# METADATA
# title: Of a rule
# custom:
#   id: one
deny_a contains "x" if true
# METADATA
# custom:
#   id: two
info_b contains "y" if true`,
			"deny one [] x\ninfo two [] y\n",
		},
		"text":       {`package a` + "\n" + `deny := "no" if true`, "deny a.deny [] no\n"},
		"violation":  {`package a` + "\n" + `violation contains {"msg": "no", "details": {}} if true`, "deny a.violation [] no\n"},
		"nothing":    {`package a` + "\n" + `deny contains "no" if false`, ""},
		"false":      {`package a` + "\n" + `default deny := false`, ""},
		"cluster":    {`package a` + "\n" + `deny contains input.holdfast.cluster.environment if input.holdfast.run.kind == "plan"`, "deny a.deny [] production\n"},
		"settings":   {`package a` + "\n" + `deny contains "over" if data.holdfast.limit < 4`, "deny a.deny [] over\n"},
		"not forged": {`package a` + "\n" + `deny contains "forged" if input.holdfast.forged`, ""},
		"exception": {
			`package main
			deny_public contains "public" if true
			deny_large contains "large" if true
			exception contains rules if { rules := ["public"] }`,
			"deny main.deny_large [] large\ninfo main.deny_public [] public (excepted)\n",
		},
		"each once": {`package a` + "\n" + `deny contains {"msg": "x", "n": n} if some n in [1, 2]`, "deny a.deny [] x\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := evaluate(t, map[string]string{"p.rego": tt.text})
			if diff := cmp.Diff(tt.want, lines(report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A policy that cannot answer, or that nobody asks, is a fault with its place, and never
// agrees.
func TestFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"syntax":            {map[string]string{"p.rego": "package a\ndeny contains x if {"}, "fault  at p.rego:"},
		"unknown function":  {map[string]string{"p.rego": "package a\n\ndeny contains x if x := nothing(1)"}, "p.rego:3:"},
		"network":           {map[string]string{"p.rego": `package a` + "\n" + `deny contains "x" if http.send({"method": "get", "url": "http://127.0.0.1"}).status_code == 200`}, "undefined function http.send (policies have no network"},
		"clock":             {map[string]string{"p.rego": "package a\n" + `deny contains "x" if time.now_ns() > 1`}, "undefined function time.now_ns (policies have no network, no clock"},
		"environment":       {map[string]string{"p.rego": "package a\n" + `deny contains "x" if opa.runtime().env.HOME`}, "undefined function opa.runtime"},
		"built-in error":    {map[string]string{"p.rego": "package a\n\n" + `deny contains "x" if to_number("abc") == 1`}, "fault a.deny at p.rego:3:"},
		"division by zero":  {map[string]string{"p.rego": "package a\n" + `deny contains "x" if 1 / input.holdfast.cluster.zero == 1`, "q.rego": "package b\n" + `deny contains "x" if 1 / (1 - 1) == 1`}, "fault b.deny at q.rego:2:"},
		"conflict":          {map[string]string{"p.rego": "package a\ndeny := \"a\" if true\ndeny := \"b\" if true"}, "fault a.deny at p.rego"},
		"number":            {map[string]string{"p.rego": "package a\ndeny contains 3 if true"}, "want a text, or an object with a text msg"},
		"no message":        {map[string]string{"p.rego": "package a\n" + `deny contains {"message_": "x"} if true`}, "has no text"},
		"empty message":     {map[string]string{"p.rego": "package a\n" + `deny contains "" if true`}, "has no text"},
		"function":          {map[string]string{"p.rego": "package a\n" + `deny(x) := "no" if x`}, "deny is a function"},
		"misspelt":          {map[string]string{"p.rego": "package a\n\n" + `denny contains "x" if true`}, "p.rego:3:1: the rule denny is not a policy"},
		"no rule":           {map[string]string{"p.rego": "package a\n\nx := 1"}, "p.rego:1:1: no rule of it is a policy, and nothing uses package a"},
		"only tests use it": {map[string]string{"p.rego": "package a\n\nx := 1", "p_test.rego": "package a_test\nimport data.a\ntest_x if a.x == 1"}, "no rule of it is a policy"},
		"two of one id":     {map[string]string{"p.rego": "# METADATA\n# custom:\n#   id: one\npackage a\ndeny contains \"x\" if true", "q.rego": "# METADATA\n# custom:\n#   id: one\npackage b\ndeny contains \"x\" if true"}, "fault one at q.rego:5: there is another policy with the id one, at p.rego:5"},
		"comments only":     {map[string]string{"p.rego": "# nothing\n"}, "p.rego"},
		"data":              {map[string]string{"data.json": "[1]", "p.rego": "package a\ndeny contains \"x\" if false"}, "it is not a JSON object"},
		"data of ours":      {map[string]string{"data.json": `{"holdfast": 1}`, "p.rego": "package a\ndeny contains \"x\" if false"}, "settings of holdfast.yaml are there"},
		"recursion":         {map[string]string{"p.rego": "package a\ndeny contains x if x := deny[_]"}, "recursive"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := evaluate(t, tt.files)
			if got := lines(report); !strings.Contains(got, tt.want) || !report.Denies() {
				t.Errorf("got %q, want it to have %q and to deny", got, tt.want)
			}
		})
	}
}

// The policies of other files answer nevertheless.
func TestOneBrokenFile(t *testing.T) {
	t.Parallel()
	report := evaluate(t, map[string]string{
		"a.rego": "package a\ndeny contains x if x := nothing(1)",
		"b.rego": "package b\nwarn contains \"look\" if true",
		"c.rego": "package c\ndeny contains \"x\" if {",
	})
	if got := lines(report); !strings.Contains(got, "warn b.warn [] look\n") || strings.Count(got, "fault") != 2 {
		t.Errorf("got %s", got)
	}
}

// A policy that takes too long is stopped, and the next one is evaluated.
func TestSlowPolicy(t *testing.T) {
	t.Parallel()
	s := set(map[string]string{
		"a.rego": "package a\ndeny contains \"x\" if { some i in numbers.range(1, 100000); some j in numbers.range(1, 100000); i * j == -1 }",
		"b.rego": "package b\ndeny contains \"no\" if true",
	})
	report := s.Evaluate(t.Context(), input(t, planJSON), policy.Limits{Policy: 50 * time.Millisecond}, nil)
	if got, want := lines(report), "deny b.deny [] no\nfault a.deny at a.rego:2: it took longer than 50ms\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if report := s.Evaluate(stopped, input(t, planJSON), policy.Limits{}, nil); !report.Denies() {
		t.Error("an evaluation that was stopped agrees")
	}
}

// What does not fit is counted; the gravest stay, and the verdict is of all.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := set(map[string]string{"a.rego": `package a
		deny contains sprintf("%d %s", [i, "é"]) if some i in numbers.range(1, 5)
		warn contains {"msg": concat("", ["x" | some _ in numbers.range(1, 50)]), "address": "a"} if true`})
	all := s.Evaluate(t.Context(), input(t, planJSON), policy.Limits{}, nil)
	few := s.Evaluate(t.Context(), input(t, planJSON), policy.Limits{Results: 2, Message: 4}, nil)
	if len(few.Results) != 2 || few.Omitted != 4 || few.Results[0].Severity != holdfast.PolicyDeny || few.Results[0].Message != "1 é" {
		t.Errorf("got %+v", few)
	}
	if all.Verdict != few.Verdict || all.Omitted != 0 {
		t.Errorf("got %+v and %+v", all, few)
	}
}

// The verdict is of policies, severities and addresses, and of nothing else.
func TestVerdict(t *testing.T) {
	t.Parallel()
	verdict := func(text string) holdfast.Digest {
		return evaluate(t, map[string]string{"a.rego": "package a\n" + text}).Verdict
	}
	base := verdict(`deny contains {"msg": "a", "address": "x"} if true`)
	if verdict(`deny contains {"msg": "b", "address": "x"} if true`) != base {
		t.Error("another message is another verdict")
	}
	for _, text := range []string{
		`deny contains {"msg": "a", "address": "y"} if true`, `warn contains {"msg": "a", "address": "x"} if true`,
		`deny_b contains {"msg": "a", "address": "x"} if true`, `deny contains {"msg": "a", "address": "x"} if 1 / 0 == 1`,
		`deny contains "a" if false`,
	} {
		if verdict(text) == base {
			t.Errorf("%s has the same verdict", text)
		}
	}
}

// The digest of a set changes with each file and with the settings.
func TestDigest(t *testing.T) {
	t.Parallel()
	one, two := policy.Source{Path: "a.rego", Text: "package a"}, policy.Source{Path: "b.rego", Text: "package b"}
	base := policy.Digest([]policy.Source{one, two}, nil)
	if policy.Digest([]policy.Source{two, one}, nil) != base {
		t.Error("the order counts")
	}
	if policy.Digest([]policy.Source{one}, nil) == base || policy.Digest([]policy.Source{one, two}, map[string]any{"a": 1}) == base {
		t.Error("equal digests")
	}
}

// A policy that reads a value which a stored plan does not have is undecided, whatever it does
// with it; one that reads others is not.
func TestHidden(t *testing.T) {
	t.Parallel()
	value := func(tree any) plandoc.Value {
		v, err := plandoc.NewValue(tree)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	hmac := strings.Repeat("A", 43)
	doc := plandoc.Document{Version: plandoc.Version, Resources: []plandoc.Resource{{
		Address: `module.db.aws_db_instance.this["a.b"]`, Type: "aws_db_instance", Actions: []string{"delete", "create"}, Replace: []string{"engine", `tags["a.b"][0].x`},
		Before: value(map[string]any{"engine": "mysql", "password": plandoc.Mark{HMAC: hmac}, "list": []any{plandoc.Mark{HMAC: hmac}}}),
		After:  value(map[string]any{"engine": "postgres", "password": plandoc.Mark{HMAC: hmac}, "id": plandoc.Mark{Unknown: true}, "list": []any{plandoc.Mark{HMAC: hmac}}}),
	}}}
	const rc = "rc := input.resource_changes[_]; "
	tests := map[string]struct {
		body      string
		undecided bool
	}{
		"another attribute":   {rc + `rc.change.after.engine == "postgres"`, false},
		"address and name":    {rc + `rc.name == "this"; rc.address == "module.db.aws_db_instance.this[\"a.b\"]"`, false},
		"by type":             {`input.holdfast.by_type.aws_db_instance[_].change.before.engine == "mysql"`, false},
		"unknown":             {rc + `rc.change.after_unknown.id == true; not rc.change.after.id`, false},
		"where it is secret":  {rc + `rc.change.after_sensitive.password == true`, false},
		"replace paths":       {rc + `rc.change.replace_paths == [["engine"], ["tags", "a.b", 0, "x"]]`, false},
		"names":               {rc + `count(object.keys(rc.change.after)) == 3`, false},
		"equal":               {rc + `rc.change.after.password == "x"`, true},
		"not equal":           {rc + `rc.change.after.password != "x"`, true},
		"there":               {rc + `rc.change.after.password`, true},
		"not there":           {rc + `not rc.change.after.password`, true},
		"of both sides":       {rc + `rc.change.after.password == rc.change.before.password`, true},
		"whole objects":       {rc + `rc.change.after == rc.change.before`, true},
		"other whole objects": {rc + `rc.change.after == {"engine": "postgres", "password": "x", "list": ["y"]}`, true},
		"object.get":          {rc + `object.get(rc.change.after, "password", "") == ""`, true},
		"object.get of path":  {rc + `object.get(rc, ["change", "after", "password"], "") == ""`, true},
		"by a variable":       {rc + `some key; rc.change.after[key] == "x"`, true},
		"every":               {rc + `every _, v in rc.change.after { v != "x" }`, true},
		"in":                  {rc + `"x" in rc.change.after`, true},
		"walk":                {`walk(input, [path, v]); v == "x"`, true},
		"json":                {rc + `contains(json.marshal(rc), "x")`, true},
		"text":                {rc + `contains(sprintf("%v", [rc.change.after]), "x")`, true},
		"in a list":           {rc + `rc.change.after.list[0] == "x"`, true},
		"a list":              {rc + `count(rc.change.after.list) == 1`, true},
		"type":                {rc + `is_string(rc.change.after.password)`, true},
		"union":               {rc + `object.union(rc.change.after, {"a": 1}).password == "x"`, true},
		"comprehension":       {rc + `count([v | v := rc.change.after[_]]) == 3`, true},
		"set":                 {`{"engine": "postgres", "password": "x", "list": ["y"]} in {rc.change.after | rc := input.resource_changes[_]}`, true},
		"with":                {rc + `x with input as rc.change.after`, true},
		"configuration":       {`input.configuration.root_module`, true},
		"no planned values":   {`not input.planned_values.root_module`, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := policy.FromDocument(doc, policy.Context{})
			if err != nil {
				t.Fatal(err)
			}
			s := set(map[string]string{"a.rego": "package a\nimport rego.v1\nx if input.password == \"x\"\ndeny contains \"found\" if { " + tt.body + " }"})
			report := s.Evaluate(t.Context(), in, policy.Limits{}, nil)
			want := "deny a.deny [] found\n"
			if tt.undecided {
				want = "undecided a.deny\n"
			}
			if got := lines(report); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Tests of policies, with fixtures and coverage.
func TestTests(t *testing.T) {
	t.Parallel()
	s := set(map[string]string{
		"a.rego": "package a\n\ndeny contains \"gone\" if {\n\tinput.resource_changes[_].change.actions[_] == \"delete\"\n}\n\nwarn contains \"x\" if {\n\tinput.never\n\tinput.reached\n}\n",
		"a_test.rego": `package a_test
import data.a
test_deny if count(a.deny) == 1 with input as data.fixtures.plan
test_wrong if count(a.deny) == 7 with input as data.fixtures.plan
test_broken if to_number("x") == 1
todo_test_later if false
`,
	})
	if err := s.AddFixtures(t.Context(), map[string]policy.Input{"plan": input(t, planJSON)}); err != nil {
		t.Fatal(err)
	}
	report := s.Test(t.Context(), "", policy.Limits{})
	var got []string
	for _, r := range report.Tests {
		got = append(got, fmt.Sprintf("%s:%d %s %t %t %t", r.File, r.Line, r.Name, r.Passed, r.Skipped, r.Error != ""))
	}
	want := []string{
		"a_test.rego:3 test_deny true false false", "a_test.rego:4 test_wrong false false false",
		"a_test.rego:5 test_broken false false true", "a_test.rego:6 todo_test_later false true false",
	}
	if diff := cmp.Diff(want, got); diff != "" || !report.Failed() {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(report.Coverage) != 1 || report.Percent <= 0 || report.Percent >= 100 || len(report.Coverage[0].Missed) == 0 {
		t.Errorf("coverage %+v", report.Coverage)
	}
}

// What cannot be read is an error, and no plan without changes.
func TestReadInput(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "[]", "{", "{} {}", "null"} {
		if _, err := policy.ReadInput(strings.NewReader(text), policy.Context{}); err == nil {
			t.Errorf("%q is a plan", text)
		}
	}
}
