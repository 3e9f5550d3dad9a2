package report_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	head    = holdfast.Revision("abc1234def5678abc1234def5678abc1234def56")
	older   = holdfast.Revision("0001234def5678abc1234def5678abc1234def56")
	merged  = holdfast.Revision("fff1234def5678abc1234def5678abc1234def56")
	sysText = `Terraform used the selected providers to generate the following execution
plan. Resource actions are indicated with the following symbols:
  ~ update in-place

Terraform will perform the following actions:

  # linode_lke_cluster.this must be replaced
-/+ resource "linode_lke_cluster" "this" {
      ~ id          = "4711" -> (known after apply)
      ~ k8s_version = "1.30" -> "1.33" # forces replacement
        region      = "eu-west"
    }

  # module.dns.linode_domain_record.api will be updated in-place
  ~ resource "linode_domain_record" "api" {
        id     = "12"
      ~ target = "192.0.2.1" -> (known after apply)
    }

Plan: 1 to add, 1 to change, 1 to destroy.`
)

var now = time.Date(2026, 3, 4, 12, 30, 0, 0, time.UTC)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func replacePlan() *holdfast.Plan {
	return &holdfast.Plan{
		Counts: holdfast.Counts{Replace: 1, Update: 1},
		Changes: []holdfast.ResourceChange{
			{
				Address: "linode_lke_cluster.this", Type: "linode_lke_cluster", Action: holdfast.ActionReplace,
				Reason: "replace_because_cannot_update", ReplacePaths: []string{"k8s_version"},
				Attributes: []holdfast.AttributeChange{
					{Path: "k8s_version", Before: raw(`"1.30"`), After: raw(`"1.33"`), Forces: true},
					{Path: "id", Before: raw(`"4711"`), After: raw(`"(known after apply)"`), Unknown: true},
				},
			},
			{
				Address: "module.dns.linode_domain_record.api", Type: "linode_domain_record", Action: holdfast.ActionUpdate,
				Attributes: []holdfast.AttributeChange{
					{Path: "target", Before: raw(`"192.0.2.1"`), After: raw(`"(known after apply)"`), Unknown: true},
				},
			},
		},
		Drift: []holdfast.ResourceChange{{
			Address: "linode_firewall.nodes", Type: "linode_firewall", Action: holdfast.ActionUpdate,
			Attributes: []holdfast.AttributeChange{{Path: "tags[0]", Before: raw(`"a"`), After: raw(`"b"`)}},
		}},
		Warnings: []holdfast.Diagnostic{{Severity: "warning", Summary: "Deprecated attribute", Detail: "Use pool.", File: "main.tf", Line: 3}},
		Text:     sysText, Fingerprint: "sha256:1",
	}
}

func smallPlan(cluster string) *holdfast.Plan {
	return &holdfast.Plan{
		Counts: holdfast.Counts{Create: 1, Update: 2, Outputs: 1},
		Changes: []holdfast.ResourceChange{
			{
				Address: `aws_eks_node_group.this["blue"]`, Type: "aws_eks_node_group", Action: holdfast.ActionUpdate,
				Attributes: []holdfast.AttributeChange{
					{Path: "scaling_config[0].desired_size", Before: raw(`3`), After: raw(`5`)},
					{Path: "tags.cluster", Before: raw(`"old"`), After: raw(`"` + cluster + `"`)},
				},
			},
			{
				Address: "aws_ssm_parameter.token", Type: "aws_ssm_parameter", Action: holdfast.ActionUpdate,
				Attributes: []holdfast.AttributeChange{
					{Path: "value", Before: raw(`"(sensitive value)"`), After: raw(`"(sensitive value)"`), Sensitive: true, BeforeMark: "sha256:a", AfterMark: "sha256:b"},
				},
			},
			{Address: "aws_iam_role.extra", Type: "aws_iam_role", Action: holdfast.ActionCreate},
		},
		OutputChanges: []holdfast.OutputChange{{Name: "endpoint", Action: holdfast.ActionUpdate}},
		Fingerprint:   "sha256:2",
	}
}

func emptyPlan() *holdfast.Plan { return &holdfast.Plan{Fingerprint: "sha256:3"} }

func run(id, cluster string, kind holdfast.RunKind, status holdfast.RunStatus, plan *holdfast.Plan) *holdfast.Run {
	r := &holdfast.Run{
		ID: id, Cluster: cluster, Kind: kind, Status: status,
		RunSpec: holdfast.RunSpec{
			Revision: head,
			Template: "kubernetes@1.4.2 (1a2b3c4)",
		},
		RunProgress: holdfast.RunProgress{Attempt: 1},
		RunOutcome:  holdfast.RunOutcome{EngineName: "terraform", EngineVersion: "1.11.4"},
	}
	if plan != nil {
		r.Counts = plan.Counts
	}
	return r
}

func planned(name string, plan *holdfast.Plan) report.Cluster {
	status := holdfast.RunPlanned
	if plan.Counts.Zero() {
		status = holdfast.RunNoChanges
	}
	c := report.Cluster{
		Name: name, Document: holdfast.Cluster{Name: name, Environment: "production"},
		Plan: run("run-"+name, name, holdfast.RunPlan, status, plan), Summary: plan,
	}
	c.Plan.PullRequest = holdfast.PullRequestRef{Repo: "fleet", Number: 7}
	return c
}

func appliedCluster(name string, plan *holdfast.Plan, status holdfast.RunStatus) report.Cluster {
	c := planned(name, plan)
	c.Apply, c.Applied = run("apply-"+name, name, holdfast.RunApply, status, plan), plan
	return c
}

func pullRequest(clusters ...report.Cluster) report.PullRequest {
	return report.PullRequest{
		PullRequest: holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: "fleet", Number: 7}, State: holdfast.PullRequestOpen, Head: head,
			BaseBranch: "main", Author: "ann",
		}},
		Clusters: clusters, Now: now,
	}
}

func merge(r report.PullRequest) report.PullRequest {
	r.PullRequest.State, r.PullRequest.MergeCommit = holdfast.PullRequestMerged, merged
	return r
}

func waits(c report.Cluster, reason holdfast.Reason, detail string) report.Cluster {
	c.Waiting, c.WaitingDetail = reason, detail
	return c
}

// cases are pull requests through their lives.
func cases() map[string]report.PullRequest {
	logs := pullRequest(planned("prod-eu", replacePlan()), planned("dev-us", smallPlan("dev-us")), planned("stg-us", emptyPlan()))
	logs.LogURL = func(run string) string { return "https://holdfast.example.com/runs/" + run }
	logs.Notices = []string{"planned again because prod-eu was applied by #12"}

	queued := planned("dev-eu", smallPlan("dev-eu"))
	queued.Plan, queued.Summary = run("r", "dev-eu", holdfast.RunPlan, holdfast.RunQueued, nil), nil
	queued.Queue = 2
	running := queued
	running.Name, running.Queue = "dev-us", 0
	running.Plan = run("r2", "dev-us", holdfast.RunPlan, holdfast.RunRunning, nil)
	running.Plan.Step = "init"
	previous := planned("prod-eu", replacePlan())
	previous.Plan, previous.Previous = run("r3", "prod-eu", holdfast.RunPlan, holdfast.RunRunning, nil), true
	locked := waits(queued, "Locked", "the apply of #12 since 12:01:02 UTC")
	locked.Name = "stg-eu"
	retrying := report.Cluster{Name: "stg-us", Plan: run("r4", "stg-us", holdfast.RunPlan, holdfast.RunRetrying, nil)}
	retrying.Plan.NotBefore = now.Add(90 * time.Second)
	retrying.Plan.Failure = &holdfast.Failure{Step: "init", Summary: "registry answered 503", Cause: "Network", Transient: true}

	failed := planned("prod-us", emptyPlan())
	failed.Summary = nil
	failed.Plan.Status = holdfast.RunErrored
	failed.Plan.Failure = &holdfast.Failure{
		Step: "plan", Summary: "the configuration is not valid", Cause: "InvalidConfiguration", Hint: "Correct the reference and push.",
		Detail: "Error: Reference to undeclared resource\n\n  on main.tf line 12:\n  12:   x = aws_vpc.nope.id\n",
		Diagnostics: []holdfast.Diagnostic{{
			Severity: "error", Summary: "Reference to undeclared resource", Detail: `A managed resource "aws_vpc" "nope" has not been declared.`,
			Address: "aws_subnet.a", File: "infra/prod-us/main.tf", Line: 12,
			Snippet: "  12:   x = aws_vpc.nope.id\n    ├────────────────\n    │ var.name is \"prod\"",
		}},
	}
	faulty := pullRequest(planned("dev-us", smallPlan("dev-us")), report.Cluster{Name: "prod-eu"})
	faulty.PullRequest.Faults = holdfast.Faults{
		{
			File: "clusters/prod-eu.yaml", Line: 12, Column: 17, Cluster: "prod-eu",
			Message: `spec.variables.node_count is "three", not an integer`, Hint: "write a number from 1 to 100",
		},
		{File: "clusters/broken.yaml", Line: 3, Message: "found a tab where an indentation is expected"},
	}
	conflict := pullRequest()
	conflict.PullRequest.Reason, conflict.PullRequest.Detail = "NotMergeable", "clusters/prod-eu.yaml changes in main too"
	gone := pullRequest()
	gone.Had = true
	settings := pullRequest()
	settings.PullRequest.Settings = []string{"prod-eu changes apply.requires: none → approved", "prod-us changes drift.ignore: 1 added, 0 removed"}
	both := pullRequest(planned("dev-us", smallPlan("dev-us")))
	both.PullRequest.Settings = settings.PullRequest.Settings[:1]

	interrupted := appliedCluster("prod-us", smallPlan("prod-us"), holdfast.RunInterrupted)
	interrupted.Apply.Reason, interrupted.Apply.Begun = "EngineKilled", true
	interrupted.Apply.Failure = &holdfast.Failure{
		Step: "apply", Summary: "the engine was killed", Cause: "EngineKilled", ProgressLost: true, Unrecorded: []string{"aws_instance.a", "aws_instance.b"},
		Hint: "Look for these resources before you apply again.",
	}
	interrupted.Apply.Failure.Completed = []string{"aws_iam_role.extra: created"}
	brokenApply := waits(appliedCluster("prod-eu", smallPlan("prod-eu"), holdfast.RunErrored), "ApplyFailed", "")
	brokenApply.Apply.Begun = true
	brokenApply.Apply.Failure = &holdfast.Failure{
		Step: "apply", Summary: "quota exceeded", Cause: "Quota", Address: "aws_vpc.this", Hint: "Raise the quota of the account, then apply again.",
		Diagnostics: []holdfast.Diagnostic{{Severity: "error", Summary: "LimitExceeded: 5 of 5 VPCs", Address: "aws_vpc.this"}},
	}
	brokenApply.Apply.Failure.Completed = []string{"aws_iam_role.extra: created"}
	changed := waits(appliedCluster("prod-eu", replacePlan(), holdfast.RunPlanned), "PlanChanged", "")
	changed.Apply.Reason = "PlanChanged"
	changed.Apply.Detail = "the plan differs from the reviewed one of run run-prod-eu: linode_lke_cluster.this: to be replaced now, was to be updated"
	applying := appliedCluster("dev-us", smallPlan("dev-us"), holdfast.RunRunning)
	applying.Apply.Step, applying.Applied = "apply", nil
	deleted := waits(report.Cluster{Name: "old-eu", Removed: true}, "NeverApplied", "")
	manual := planned("prod-eu", smallPlan("prod-eu"))
	manual.Document.Apply.Manual = true
	provisional := planned("apps-eu", smallPlan("apps-eu"))
	provisional.Plan.Provisional = []string{"network-eu"}

	ask := holdfast.Gate{Name: "approved", Missing: "nobody has approved it", From: "an approving review or `/holdfast approve` from anyone with write permission, except ann"}
	given := holdfast.Gate{Name: "approved", Met: true, Given: []string{"lead approved in a review", "bob approved by command"}}
	blocked := holdfast.Gate{Name: "mergeable", Missing: `the code host blocks the merge: "behind"`, From: "what the code host asks for: checks, reviews, no conflicts"}
	gated := pullRequest(planned("prod-eu", smallPlan("prod-eu")), planned("prod-us", smallPlan("prod-us")), planned("dev-us", smallPlan("dev-us")), planned("stg-us", emptyPlan()))
	gated.Clusters[0].Gates, gated.Clusters[1].Gates = []holdfast.Gate{ask, blocked}, []holdfast.Gate{ask}
	gated.Clusters[2].Gates, gated.Clusters[3].Gates = []holdfast.Gate{given}, []holdfast.Gate{ask}

	cases := map[string]report.PullRequest{
		"gates":            gated,
		"plan":             logs,
		"plan-one":         pullRequest(planned("dev-us", smallPlan("dev-us"))),
		"plan-same":        pullRequest(planned("dev-us", smallPlan("dev-us")), planned("dev-eu", smallPlan("dev-eu")), planned("dev-ap", smallPlan("dev-ap"))),
		"plan-unchanged":   pullRequest(planned("dev-us", emptyPlan()), planned("dev-eu", emptyPlan())),
		"plan-manual":      pullRequest(manual, deleted, provisional),
		"planning":         pullRequest(queued, running, previous, locked, retrying, planned("prod-ap", emptyPlan())),
		"plan-failed":      pullRequest(failed, planned("dev-us", smallPlan("dev-us"))),
		"faults":           faulty,
		"conflict":         conflict,
		"none":             gone,
		"settings":         settings,
		"settings-planned": both,
		"settings-merged":  merge(settings),
		"merged-applying":  merge(pullRequest(applying, appliedCluster("dev-eu", smallPlan("dev-eu"), holdfast.RunApplied))),
		"merged-applied":   merge(pullRequest(appliedCluster("dev-us", smallPlan("dev-us"), holdfast.RunApplied), appliedCluster("stg-us", emptyPlan(), holdfast.RunNoChanges))),
		"merged-changed":   merge(pullRequest(changed, appliedCluster("dev-us", smallPlan("dev-us"), holdfast.RunApplied))),
		"merged-failed":    merge(pullRequest(brokenApply, interrupted, appliedCluster("dev-us", smallPlan("dev-us"), holdfast.RunApplied))),
		"merged-waiting":   merge(pullRequest(waits(manual, "Manual", ""), waits(planned("dev-us", smallPlan("dev-us")), "Suspended", "suspended by ann"), waits(planned("dev-eu", smallPlan("dev-eu")), "NotApproved", ""))),
		"merged-unplanned": merge(pullRequest(report.Cluster{Name: "dev-us"})),
	}
	maps.Copy(cases, lifeCases())
	maps.Copy(cases, impactCases())
	return cases
}

func TestComment(t *testing.T) {
	t.Parallel()

	for name, r := range cases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			comment := report.Comment(r)
			golden(t, name+".golden.md", comment+statuses(r))
			check(t, r, comment)
			if again := report.Comment(r); again != comment {
				t.Error("the same input gives another comment")
			}
		})
	}
}

// statuses are kept with the comment, in a comment.
func statuses(r report.PullRequest) string {
	list := []holdfast.CommitStatus{report.PlanStatus(r)}
	if status, ok := report.ApplyStatus(r); ok {
		list = append(list, status)
	}
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "\n<!-- %s on %s: %s: %s -->\n", s.Context, s.Revision.Short(), s.State, s.Description)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestGoldenFilesAreUsed finds files that no case has.
func TestGoldenFilesAreUsed(t *testing.T) {
	t.Parallel()

	want := []string{"plan.golden.txt", "failures.golden.txt"}
	for name := range maps.Keys(cases()) {
		want = append(want, name+".golden.md")
	}
	for name := range maps.Keys(driftCases()) {
		want = append(want, name+".golden.md", name+".golden.txt")
	}
	for name := range maps.Keys(summaryCases()) {
		want = append(want, name+".golden.md")
	}
	slices.Sort(want)
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if !e.IsDir() {
			got = append(got, e.Name())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("testdata (-want +got):\n%s", diff)
	}
}

func TestCommentIsSilent(t *testing.T) {
	t.Parallel()

	if got := report.Comment(pullRequest()); got != "" {
		t.Errorf("no affected cluster: %q", got)
	}
	if s := report.PlanStatus(pullRequest()); s.State != holdfast.StatusSuccess || s.Description != "no cluster affected" ||
		s.Revision != head || s.Context != holdfast.ContextPlan {
		t.Errorf("status = %+v", s)
	}
}

func TestPlanText(t *testing.T) {
	t.Parallel()

	plan := *smallPlan("dev-us")
	plan.Changes = append(replacePlan().Changes, plan.Changes...)
	plan.Drift, plan.Warnings = replacePlan().Drift, replacePlan().Warnings
	golden(t, "plan.golden.txt", report.PlanText(plan))
	if got := report.PlanText(holdfast.Plan{}); got != "No changes.\n" {
		t.Errorf("empty plan: %q", got)
	}
	if got := report.ColourPlanText(plan); !strings.Contains(got, "\x1b[31m-/+ linode_lke_cluster.this") {
		t.Errorf("no colours in %q", got)
	}
	plan.Changes[0].Address = "a.b\x1b[2J\r\x07"
	if got := report.PlanText(plan); strings.ContainsAny(got, "\x1b\r\x07") {
		t.Errorf("control characters in %q", got)
	}
}
