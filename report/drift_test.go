package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/templates/document"
)

func attribute(path, before, after string) holdfast.AttributeChange {
	return holdfast.AttributeChange{Path: path, Before: raw(before), After: raw(after)}
}

// drifted is a report with everything in it that a check can find.
func drifted() holdfast.DriftReport {
	items := []holdfast.DriftItem{
		{
			Address: `aws_eks_node_group.this["blue"]`, Type: "aws_eks_node_group", Kind: holdfast.DriftChanged, Action: holdfast.ActionUpdate,
			Attributes: []holdfast.AttributeChange{
				attribute("scaling_config[0].desired_size", "3", "7"), attribute("labels.owner", "", `"bob"`),
			},
		},
		{
			Address: "aws_ssm_parameter.token", Type: "aws_ssm_parameter", Kind: holdfast.DriftChanged, Action: holdfast.ActionUpdate,
			Attributes: []holdfast.AttributeChange{attribute("value", `"(sensitive value)"`, `"(sensitive value)"`)},
		},
		{Address: "module.dns.aws_route53_record.api", Type: "aws_route53_record", Kind: holdfast.DriftGone, Action: holdfast.ActionCreate},
		{
			Address: "aws_instance.bastion", Type: "aws_instance", Kind: holdfast.DriftInput, Action: holdfast.ActionUpdate,
			Attributes: []holdfast.AttributeChange{attribute("ami", `"ami-1"`, `"ami-2"`)},
		},
		{
			Address: "aws_vpc.this", Type: "aws_vpc", Kind: holdfast.DriftChanged,
			Attributes: []holdfast.AttributeChange{attribute("tags_all.cost", "", `"42"`)},
		},
		{
			Address: "aws_autoscaling_group.green", Type: "aws_autoscaling_group", Kind: holdfast.DriftChanged, Action: holdfast.ActionUpdate,
			Attributes: []holdfast.AttributeChange{attribute("desired_capacity", "2", "5")}, Ignored: "the autoscaler's business",
		},
	}
	return holdfast.DriftReport{
		Cluster: "prod-eu", Document: holdfast.Cluster{Name: "prod-eu", Project: "payments", Environment: "production"},
		State: holdfast.DriftState{
			Status: holdfast.DriftFound, Run: "run-check", Applied: "run-apply", CheckedAt: now.Add(4 * time.Hour), Since: now,
			Due: now.Add(8 * time.Hour), Fingerprint: "sha256:9",
			Counts: holdfast.DriftCounts{Changed: 2, Gone: 1, Input: 1, Harmless: 1, Ignored: 1},
			Causes: []string{"aws_eks_node_group labels", "aws_eks_node_group scaling_config", "aws_route53_record"},
		},
		Items: items, Template: "kubernetes@1.4.2", Revision: head,
	}
}

func withRevert(status holdfast.RunStatus) holdfast.DriftReport {
	r := drifted()
	r.Document.Drift.OnDrift = "apply"
	r.State.Revert = "run-revert"
	r.Revert = &holdfast.Run{ID: "run-revert", Cluster: "prod-eu", Kind: holdfast.RunApply, Status: status, RunProgress: holdfast.RunProgress{Begun: true}}
	if status.Done() {
		r.Revert.FinishedAt = now.Add(time.Hour)
	}
	return r
}

func driftCases() map[string]holdfast.DriftReport {
	destroys := drifted()
	destroys.Items = append([]holdfast.DriftItem{
		{
			Address: "aws_eks_cluster.this", Type: "aws_eks_cluster", Kind: holdfast.DriftChanged, Action: holdfast.ActionReplace,
			Attributes: []holdfast.AttributeChange{attribute("encryption_config[0].provider", "", `"kms"`)},
		},
		{Address: "aws_db_instance.old", Type: "aws_db_instance", Kind: holdfast.DriftInput, Action: holdfast.ActionDelete},
	}, destroys.Items...)
	destroys.State.Counts.Changed, destroys.State.Counts.Input = 3, 2
	destroys.State.Destroys, destroys.State.Hides = true, true
	destroys.State.Hold, destroys.Document.Drift.OnDrift = "DriftHeld", "apply"
	destroys.NotApplied, destroys.Waiting = true, "Unreviewed"

	failed := withRevert(holdfast.RunErrored)
	failed.Revert.Failure = &holdfast.Failure{
		Step: "apply", Summary: "quota exceeded", Cause: "Quota", Address: "aws_eks_node_group.this", Hint: "raise the quota in the cloud, or request less",
	}
	changed := withRevert(holdfast.RunPlanned)
	changed.Revert.Reason = "PlanChanged"
	pending := drifted()
	pending.Document.Drift.OnDrift = "apply"

	outside := drifted()
	outside.Document.Apply.Windows = []holdfast.ApplyWindow{{Kind: "allow", Schedule: "0 9 * * 1-5", Duration: 8 * time.Hour}}
	outside.Windows = "closed until 2026-03-02 09:00 UTC"

	again := withRevert(holdfast.RunApplied)
	again.State.Hold = "RevertFailed"

	just := withRevert(holdfast.RunApplied)
	just.State.CheckedAt = now
	reverted := withRevert(holdfast.RunApplied)
	reverted.State.Status, reverted.State.Counts, reverted.Items = holdfast.DriftNone, holdfast.DriftCounts{}, nil
	hidden := drifted()
	hidden.State.Status, hidden.State.Counts, hidden.Items = holdfast.DriftNone, holdfast.DriftCounts{Ignored: 1}, hidden.Items[5:]

	failing := drifted()
	failing.Items, failing.State.Fingerprint, failing.State.Counts = nil, "", holdfast.DriftCounts{}
	failing.State.Status, failing.State.Failures, failing.State.Detail = holdfast.DriftFailed, 3, "the token has expired"
	failing.Failure = &holdfast.Failure{
		Step: "plan", Summary: "ExpiredToken: the security token included in the request is expired", Cause: "Credentials",
		Hint: "check that the credentials for this project, environment and phase exist and have not expired",
	}
	kept := drifted()
	kept.State.Status, kept.State.Failures, kept.Failure = holdfast.DriftFailed, 4, failing.Failure
	ignored := drifted()
	ignored.Document.Drift.OnDrift = "ignore"
	ended := drifted()
	ended.State, ended.Items = holdfast.DriftState{}, nil

	return map[string]holdfast.DriftReport{
		"drift":           drifted(),
		"drift-destroys":  destroys,
		"drift-pending":   pending,
		"drift-outside":   outside,
		"drift-reverting": withRevert(holdfast.RunRunning),
		"drift-reverted":  just,
		"drift-again":     again,
		"drift-failed":    failed,
		"drift-changed":   changed,
		"drift-failing":   failing,
		"drift-kept":      kept,
		"drift-closed":    reverted,
		"drift-hidden":    hidden,
		"drift-ignored":   ignored,
		"drift-ended":     ended,
	}
}

func TestDriftIssue(t *testing.T) {
	t.Parallel()

	closedCases := map[string]bool{"drift-closed": true, "drift-hidden": true, "drift-ignored": true, "drift-ended": true}
	for name, r := range driftCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			title, body, closed := report.DriftIssue(r, now)
			golden(t, name+".golden.md", fmt.Sprintf("%s\n<!-- %s (closed: %t) -->\n", body, title, closed))
			golden(t, name+".golden.txt", report.DriftText(r))
			checkText(t, report.DriftMarker(r.Cluster), body)
			if closed != closedCases[name] {
				t.Errorf("closed: %t", closed)
			}
		})
	}
}

// TestDriftIssueStaysTheSame: what changes from one check to the next without
// the drift having changed is not told.
func TestDriftIssueStaysTheSame(t *testing.T) {
	t.Parallel()

	for name, r := range driftCases() {
		title, body, closed := report.DriftIssue(r, now)
		if closed {
			continue
		}
		r.State.Run, r.State.Due = "run-next", now.Add(52*time.Hour)
		if r.Revert == nil {
			r.State.CheckedAt = now.Add(48 * time.Hour) // after an apply that is news
		}
		r.State.Failures = max(r.State.Failures, 3)
		if r.State.Status == holdfast.DriftFailed {
			r.State.Failures = 17
		}
		title2, body2, closed2 := report.DriftIssue(r, now.Add(48*time.Hour))
		if diff := cmp.Diff([]any{title, body, closed}, []any{title2, body2, closed2}); diff != "" {
			t.Errorf("%s: the issue has changed with the time (-before +after):\n%s", name, diff)
		}
	}
}

// TestFailedCheck: one that fails alone is not news, three in a row are.
func TestFailedCheck(t *testing.T) {
	t.Parallel()

	for failures := range 6 {
		r := driftCases()["drift-failing"]
		r.State.Failures = failures
		if _, body, closed := report.DriftIssue(r, now); (body != "") != (failures >= 3) || closed {
			t.Errorf("%d failures: closed %t, %q", failures, closed, body)
		}
		r.State.Fingerprint = "sha256:9" // a drift is known: its issue tells more than this
		if _, body, closed := report.DriftIssue(r, now); body != "" || closed {
			t.Errorf("%d failures after a drift: closed %t, %q", failures, closed, body)
		}
	}
}

// TestProposedRules: the rules that an issue proposes are valid, and hide what
// they are said to.
func TestProposedRules(t *testing.T) {
	t.Parallel()

	r := drifted()
	r.Items = append([]holdfast.DriftItem{{
		Address: `module.x["it's: a #key"].null_resource.y[0]`, Type: "null_resource", Kind: holdfast.DriftChanged, Action: holdfast.ActionUpdate,
		Attributes: []holdfast.AttributeChange{attribute(`triggers.a`, "1", "2")},
	}}, r.Items...)
	_, body, _ := report.DriftIssue(r, now)
	_, snippet, found := strings.Cut(body, "```yaml\nspec:\n")
	snippet, _, ended := strings.Cut(snippet, "\n```")
	if !found || !ended {
		t.Fatalf("no rules in:\n%s", body)
	}
	text := "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: prod-eu}\nspec:\n  project: p\n  environment: e\n  module: {path: infra}\n" + snippet + "\n"
	docs, faults := document.ParseClusters("prod-eu.yaml", []byte(text))
	if len(faults) > 0 || len(docs) != 1 {
		t.Fatalf("the proposed rules are not valid: %v\n%s", faults, text)
	}
	want := []holdfast.DriftRule{
		{Address: r.Items[0].Address, Attribute: "triggers.a"},
		{Address: r.Items[1].Address, Attribute: "scaling_config[0].desired_size"},
		{Address: r.Items[1].Address, Attribute: "labels.owner"},
	}
	got := docs[0].Cluster.Drift.Ignore
	for i := range got {
		if got[i].Reason == "" || !got[i].Expires.After(now) {
			t.Errorf("rule %+v has no reason, or no end", got[i])
		}
		got[i].Reason, got[i].Expires = "", time.Time{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func manyDrifted(n int) []holdfast.DriftReport {
	reports := make([]holdfast.DriftReport, n)
	for i := range reports {
		r := drifted()
		r.Cluster = fmt.Sprintf("cluster-%05d", i)
		r.Items = nil
		r.State.Since = now.Add(time.Duration(i) * time.Minute)
		switch i % 10 {
		case 3:
			r.State.Causes = []string{"aws_security_group ingress"}
			r.Template = "kubernetes@1.3.0 (0badc0f)"
		case 7:
			r.State.Causes = []string{"aws_vpc tags", fmt.Sprintf("aws_instance.%d", i)}
			r.Template = ""
			r.State.Destroys = true
		}
		reports[i] = r
	}
	return reports
}

type summaryCase struct {
	reports []holdfast.DriftReport
	own     int
	closed  bool
}

func summaryCases() map[string]summaryCase {
	return map[string]summaryCase{
		"drift-summary":        {manyDrifted(24), 5, false},
		"drift-summary-none":   {manyDrifted(4), 0, false},
		"drift-summary-closed": {manyDrifted(5), 5, true},
	}
}

func TestDriftSummary(t *testing.T) {
	t.Parallel()

	for name, test := range summaryCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			title, body, closed := report.DriftSummary("fleet", test.reports, test.own, now)
			golden(t, name+".golden.md", fmt.Sprintf("%s\n<!-- %s (closed: %t) -->\n", body, title, closed))
			checkText(t, report.DriftSummaryMarker("fleet"), body)
			if closed != test.closed {
				t.Errorf("closed: %t", closed)
			}
			for range 5 { // maps are walked in any order
				if _, again, _ := report.DriftSummary("fleet", test.reports, test.own, now.Add(time.Hour)); again != body {
					t.Fatal("the same input gives another issue")
				}
			}
		})
	}
}

// TestDriftSummaryOfMany: the issue holds for a whole fleet, and for names and
// causes of any length.
func TestDriftSummaryOfMany(t *testing.T) {
	t.Parallel()

	long := manyDrifted(3000)
	for i := range long {
		long[i].Cluster = strings.Repeat("x", 58) + fmt.Sprintf("%05d", i)
		long[i].Template = strings.Repeat("template", 20) + fmt.Sprintf("@1.0.%d", i/2)
		long[i].State.Causes = nil
		for n := range 20 {
			long[i].State.Causes = append(long[i].State.Causes, strings.Repeat("resource|`@me`", 20)+fmt.Sprintf("_%d attribute", n))
		}
	}
	for name, reports := range map[string][]holdfast.DriftReport{"10000": manyDrifted(10_000), "long": long} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			title, body, closed := report.DriftSummary("fleet", reports, 20, now)
			checkText(t, report.DriftSummaryMarker("fleet"), body)
			if closed || !strings.Contains(title, fmt.Sprint(len(reports))) {
				t.Errorf("title %q, closed %t", title, closed)
			}
			for _, want := range []string{"Shortened to fit an issue", "| Clusters | What has drifted |", "clusters more."} {
				if !strings.Contains(body, want) {
					t.Errorf("the issue lacks %q:\n%.3000s", want, body)
				}
			}
		})
	}
}

func TestDriftIssueOfMany(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("has many clusters")
	}

	for _, n := range []int{1, 100, 3000} {
		for _, size := range []int{1, 100, 1000} {
			r := drifted()
			changed := attribute(strings.Repeat("a.", size), "1", `"`+strings.Repeat("value", size)+`"`)
			attributes := slices.Repeat([]holdfast.AttributeChange{changed}, 22)
			for i := range n {
				item := r.Items[i%6]
				item.Address, item.Attributes = fmt.Sprintf("%s[%d]", strings.Repeat("long|`", size), i), attributes
				r.Items = append(r.Items, item)
			}
			_, body, _ := report.DriftIssue(r, now)
			checkText(t, report.DriftMarker(r.Cluster), body)
			if n == 3000 && !strings.Contains(body, "Shortened to fit an issue") {
				t.Errorf("%d of %d: the issue does not say that something is left out", n, size)
			}
			r.State.Status = holdfast.DriftNone
			_, body, _ = report.DriftIssue(r, now)
			checkText(t, report.DriftMarker(r.Cluster), body)
		}
	}
}
