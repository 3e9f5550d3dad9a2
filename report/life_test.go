package report_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// destroyPlan is a plan of the destruction of a cluster of 14 resources.
func destroyPlan() *holdfast.Plan {
	plan := &holdfast.Plan{
		Fingerprint: "sha256:d",
		Changes: []holdfast.ResourceChange{
			{Address: "aws_eks_cluster.this", Type: "aws_eks_cluster", Action: holdfast.ActionDelete},
			{Address: "aws_db_instance.main", Type: "aws_db_instance", Action: holdfast.ActionDelete},
			{Address: "aws_s3_bucket.logs", Type: "aws_s3_bucket", Action: holdfast.ActionDelete},
		},
	}
	for i := range 11 {
		plan.Changes = append(plan.Changes, holdfast.ResourceChange{
			Address: fmt.Sprintf("aws_subnet.private[%d]", i), Type: "aws_subnet", Action: holdfast.ActionDelete,
		})
	}
	plan.Counts.Delete = len(plan.Changes)
	return plan
}

// deleted is a cluster whose document a pull request removes.
func deleted(name string, plan *holdfast.Plan) report.Cluster {
	c := planned(name, plan)
	c.Removed, c.Plan.Destroy = true, true
	return c
}

// gone is a deleted cluster whose destroy was queued, after the merge.
func gone(name string, plan *holdfast.Plan, status holdfast.RunStatus) report.Cluster {
	c := deleted(name, plan)
	c.Apply, c.Applied = run("destroy-"+name, name, holdfast.RunDestroy, status, plan), plan
	return c
}

// lifeCases are pull requests that end clusters, rename them, or bring them in an
// order.
func lifeCases() map[string]report.PullRequest {
	waiting := deleted("old-eu", destroyPlan())
	waiting.Plan, waiting.Summary = nil, nil

	protected := waits(waiting, "Protected", "its document has to be restored first")
	protected.Name = "prod-eu"
	parent := waits(deleted("network-eu", destroyPlan()), "HasDependents", "waiting for these to be destroyed first: apps-eu")

	var many, guarded []report.Cluster
	for i := range 7 {
		c := waits(deleted(fmt.Sprintf("old-%d", i), destroyPlan()), "MassDeletion", "7 of 12 clusters would be destroyed at once")
		many, guarded = append(many, c), append(guarded, waits(c, "MassDeletion", ""))
	}
	renamed := planned("prod-west", smallPlan("prod-west"))
	renamed.Document.RenamedFrom = "prod-us"
	former := waits(waiting, "Renamed", "")
	former.Name = "prod-us"
	unborn := waits(waiting, "NeverApplied", "")
	unborn.Name = "try-out"

	apps := planned("apps-eu", smallPlan("apps-eu"))
	apps.Plan.Provisional = []string{"network-eu", "dns"}
	orphan := waits(planned("orphan", smallPlan("orphan")), "DependencyMissing", `cluster "dns-eu" does not exist`)

	failed := gone("old-eu", destroyPlan(), holdfast.RunErrored)
	failed.Apply.Begun = true
	failed.Apply.Failure = &holdfast.Failure{
		Step: "apply", Cause: "Conflict", Address: "aws_s3_bucket.logs", Summary: "BucketNotEmpty: the bucket you tried to delete is not empty",
		Hint:        "the cloud refuses this in the current state of the resource: remove what still uses it, or wait until its current change has finished",
		Diagnostics: []holdfast.Diagnostic{{Severity: "error", Summary: "deleting S3 Bucket (logs): BucketNotEmpty", Address: "aws_s3_bucket.logs"}},
		Remaining:   []string{"aws_s3_bucket.logs", "aws_kms_key.logs", "aws_vpc.this", `aws_subnet.private["a"]`},
		Completed:   []string{"aws_eks_cluster.this: destroyed", "aws_db_instance.main: destroyed"},
	}
	left := failed
	left.Failed = failed.Apply
	rest := &holdfast.Plan{Fingerprint: "sha256:r", Counts: holdfast.Counts{Delete: 1}, Changes: []holdfast.ResourceChange{
		{Address: "aws_s3_bucket.logs", Type: "aws_s3_bucket", Action: holdfast.ActionDelete},
	}}
	left.Apply, left.Applied = run("plan-old-eu", "old-eu", holdfast.RunPlan, holdfast.RunPlanned, rest), rest
	left.Apply.Destroy = true
	left = waits(left, "DestroyFailed", "left in the state: aws_s3_bucket.logs")
	held := waits(gone("prod-eu", destroyPlan(), holdfast.RunErrored), "Protected", "its document has to be restored first")
	held.Plan, held.Apply, held.Summary, held.Applied = nil, nil, nil, nil

	slow := appliedCluster("dev-us", smallPlan("dev-us"), holdfast.RunQueued)
	slow = waits(slow, "ProviderThrottled", "aws until 12:45:00 UTC")
	slow.Applied = nil
	half := appliedCluster("prod-eu", smallPlan("prod-eu"), holdfast.RunErrored)
	half.Apply.Begun = true
	half.Apply.Failure = &holdfast.Failure{
		Step: "apply", Summary: "quota exceeded", Cause: "Quota", Address: "aws_vpc.this", Hint: "raise the quota in the cloud, or request less",
		Completed: []string{"aws_iam_role.extra: created"},
	}
	half.Failed = half.Apply
	half.Apply = run("plan-prod-eu", "prod-eu", holdfast.RunPlan, holdfast.RunPlanned, smallPlan("prod-eu"))
	half = waits(half, "ApplyFailed", "")

	outside := gone("old-eu", destroyPlan(), holdfast.RunApplied)
	outside.Left = "may exist without being in the state, because an apply died: aws_vpc.spare"

	return map[string]report.PullRequest{
		"destroyed-outside": merge(pullRequest(outside)),
		"destroy":           pullRequest(deleted("old-eu", destroyPlan()), planned("dev-us", smallPlan("dev-us")), unborn),
		"destroy-planning":  pullRequest(waiting, planned("dev-us", smallPlan("dev-us"))),
		"destroy-guarded":   pullRequest(protected, parent),
		"destroy-many":      pullRequest(many...),
		"renamed":           pullRequest(renamed, former),
		"order":             pullRequest(apps, orphan, planned("network-eu", smallPlan("network-eu"))),
		"destroying": merge(pullRequest(gone("old-eu", destroyPlan(), holdfast.RunRunning), parent,
			waits(planned("apps-eu", smallPlan("apps-eu")), "DependencyPending", "network-eu is Updating"))),
		"destroyed": merge(pullRequest(gone("old-eu", destroyPlan(), holdfast.RunApplied), unborn,
			appliedCluster("dev-us", smallPlan("dev-us"), holdfast.RunApplied))),
		"destroy-failed": merge(pullRequest(failed)),
		"destroy-again":  merge(pullRequest(waits(failed, "BackingOff", "left in the state: aws_s3_bucket.logs"))),
		"destroy-left":   merge(pullRequest(left)),
		"destroy-held":   merge(pullRequest(append(guarded, held)...)),
		"merged-order": merge(pullRequest(
			waits(planned("apps-eu", smallPlan("apps-eu")), "DependencyFailed", "network-eu failed to apply (ApplyFailed)"), orphan,
		)),
		"merged-slow": merge(pullRequest(slow)),
		"merged-left": merge(pullRequest(half)),
	}
}

// TestPushOfDestroys: a commit that removes documents without a pull request.
func TestPushOfDestroys(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		cluster report.Cluster
		state   holdfast.StatusState
		says    string
	}{
		"destroyed":     {gone("a", destroyPlan(), holdfast.RunApplied), holdfast.StatusSuccess, "destroyed 1 cluster: 14 destroyed"},
		"nothing left":  {gone("a", emptyPlan(), holdfast.RunNoChanges), holdfast.StatusSuccess, "nothing to apply"},
		"destroying":    {gone("a", destroyPlan(), holdfast.RunRunning), holdfast.StatusPending, "applying 1 cluster"},
		"failed":        {lifeCases()["destroy-failed"].Clusters[0], holdfast.StatusFailure, "failed for a: BucketNotEmpty"},
		"unreviewed":    {waits(deleted("a", destroyPlan()), "Unreviewed", ""), holdfast.StatusPending, "Unreviewed: a held"},
		"protected":     {waits(report.Cluster{Name: "a", Removed: true}, "Protected", ""), holdfast.StatusFailure, "Protected: a held"},
		"many":          {waits(report.Cluster{Name: "a", Removed: true}, "MassDeletion", ""), holdfast.StatusPending, "MassDeletion: a held"},
		"dependents":    {waits(report.Cluster{Name: "a", Removed: true}, "HasDependents", "waiting for these to be destroyed first: b"), holdfast.StatusPending, "applying 1 cluster; a waits, HasDependents: waiting for these to be destroyed first: b"},
		"a parent":      {waits(planned("a", smallPlan("a")), "DependencyPending", ""), holdfast.StatusPending, "applying 1 cluster; a waits, DependencyPending: a cluster that it depends on must be applied first"},
		"missing":       {waits(report.Cluster{Name: "a", Removed: true}, "Missing", ""), holdfast.StatusFailure, "Missing: a held"},
		"never applied": {waits(report.Cluster{Name: "a", Removed: true}, "NeverApplied", ""), holdfast.StatusSuccess, "nothing to apply"},
		"renamed":       {waits(report.Cluster{Name: "a", Removed: true}, "Renamed", ""), holdfast.StatusSuccess, "nothing to apply"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.cluster.Name = "a"
			got := report.PushStatus(merged, []report.Cluster{test.cluster})
			if got.State != test.state || !strings.Contains(got.Description, test.says) {
				t.Errorf("PushStatus = %s %q, want %s with %q", got.State, got.Description, test.state, test.says)
			}
		})
	}
}

// TestDestroyIsCalledSo: nobody can take the removal of a cluster for a change,
// whatever the detail that a comment has room for.
func TestDestroyIsCalledSo(t *testing.T) {
	t.Parallel()

	big := destroyPlan()
	for i := range 3000 {
		big.Changes = append(big.Changes, holdfast.ResourceChange{Address: fmt.Sprintf("aws_subnet.more[%d]", i), Type: "aws_subnet", Action: holdfast.ActionDelete})
	}
	big.Counts.Delete = len(big.Changes)
	for name, plan := range map[string]*holdfast.Plan{"small": destroyPlan(), "big": big} {
		comment := report.Comment(pullRequest(deleted("prod-eu", plan)))
		for _, want := range []string{
			"🛑", "`prod-eu` will be destroyed", "[!CAUTION]", fmt.Sprintf("**destroys prod-eu**: %d resources, among them the cluster `aws_eks_cluster.this` and 2 that keep data", plan.Counts.Delete),
		} {
			if !strings.Contains(comment, want) {
				t.Errorf("%s: the comment lacks %q:\n%.1500s", name, want, comment)
			}
		}
		status := report.PlanStatus(pullRequest(deleted("prod-eu", plan))).Description
		if want := fmt.Sprintf("1 cluster, 1 to be destroyed: %d to destroy", plan.Counts.Delete); status != want {
			t.Errorf("%s: status %q, want %q", name, status, want)
		}
	}
}

var failures = map[string]holdfast.Run{
	"code": {
		ID: "run-1", Cluster: "prod-eu", Kind: holdfast.RunPlan, Status: holdfast.RunErrored,
		RunSpec:     holdfast.RunSpec{PullRequest: holdfast.PullRequestRef{Repo: "fleet", Number: 7}},
		RunProgress: holdfast.RunProgress{Attempt: 1},
		RunOutcome: holdfast.RunOutcome{
			Failure: &holdfast.Failure{
				Step: "plan", Summary: "Reference to undeclared resource", Cause: "InvalidConfiguration", Hint: "correct the code or the cluster's document where the message says",
				Detail:      "Error: Reference to undeclared resource\n\n  on main.tf line 12:\n  12:   x = aws_vpc.nope.id\n",
				Diagnostics: []holdfast.Diagnostic{{Severity: "error", Summary: "Reference to undeclared resource", Detail: `A managed resource "aws_vpc" "nope" has not been declared.`, File: "main.tf", Line: 12}},
			},
		},
	},
	"apply": {
		ID: "run-2", Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunErrored,
		RunSpec:     holdfast.RunSpec{Reviews: []holdfast.Review{{PullRequest: holdfast.PullRequestRef{Repo: "fleet", Number: 7}, Run: "run-1"}}},
		RunProgress: holdfast.RunProgress{Attempt: 1, Begun: true},
		RunOutcome: holdfast.RunOutcome{
			Failure: &holdfast.Failure{
				Step: "apply", Summary: "VpcLimitExceeded: the maximum number of VPCs has been reached", Cause: "Quota", Address: "aws_vpc.this",
				Hint: "raise the quota in the cloud, or request less", Completed: []string{"aws_iam_role.a: created", "aws_iam_role.b: created"},
			},
		},
	},
	"not begun": {
		ID: "run-3", Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunErrored,
		RunProgress: holdfast.RunProgress{Attempt: 2},
		RunOutcome:  holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "init", Summary: "403 Forbidden", Cause: "Permission", Hint: "give the credentials the permission that the message names"}},
	},
	"locked": {
		ID: "run-4", Cluster: "prod-eu", Kind: holdfast.RunPlan, Status: holdfast.RunErrored,
		RunProgress: holdfast.RunProgress{Attempt: 4},
		RunOutcome:  holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "plan", Summary: "the state is locked", Cause: "StateLocked", Transient: true, Hint: "somebody else works on this state: `holdfast unlock` shows the lock"}},
	},
	"retrying": {
		ID: "run-5", Cluster: "prod-eu", Kind: holdfast.RunPlan, Status: holdfast.RunRetrying,
		RunProgress: holdfast.RunProgress{Attempt: 1},
		RunOutcome:  holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "init", Summary: "registry answered 503", Cause: "ServiceUnavailable", Transient: true}},
	},
	"passing": {
		ID: "run-6", Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunErrored,
		RunProgress: holdfast.RunProgress{Attempt: 1, Begun: true},
		RunOutcome:  holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "apply", Summary: "Throttling: rate exceeded", Cause: "Throttled", Transient: true}},
	},
	"killed": {
		ID: "run-7", Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunInterrupted,
		RunProgress: holdfast.RunProgress{Attempt: 1, Begun: true},
		RunOutcome:  holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "apply", Summary: "the engine was killed", Cause: "EngineKilled", Unrecorded: []string{"aws_instance.a"}}},
	},
	"destroy": {
		ID: "run-8", Cluster: "old-eu", Kind: holdfast.RunDestroy, Status: holdfast.RunErrored,
		RunProgress: holdfast.RunProgress{Attempt: 1, Begun: true},
		RunOutcome: holdfast.RunOutcome{
			Failure: &holdfast.Failure{
				Step: "apply", Summary: "BucketNotEmpty", Cause: "Conflict", Address: "aws_s3_bucket.logs",
				Remaining: []string{"aws_s3_bucket.logs", "aws_vpc.this"}, Completed: []string{"aws_eks_cluster.this: destroyed"},
			},
		},
	},
	"drift": {
		ID: "run-9", Cluster: "prod-eu", Kind: holdfast.RunDrift, Status: holdfast.RunErrored,
		RunProgress: holdfast.RunProgress{Attempt: 1},
		RunOutcome:  holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "plan", Summary: "ExpiredToken", Cause: "Credentials"}},
	},
	"locked by a session": {
		ID: "run-11", Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunErrored,
		RunSpec:     holdfast.RunSpec{StateLocation: "pg:infra/prod"},
		RunProgress: holdfast.RunProgress{Attempt: 2},
		RunOutcome:  holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "plan", Summary: "the state is locked", Cause: "StateLocked", Transient: true}},
	},
	"state not pushed": {
		ID: "run-12", Cluster: "prod-eu", Kind: holdfast.RunState, Status: holdfast.RunErrored,
		RunSpec:     holdfast.RunSpec{State: &holdfast.StateJob{Action: holdfast.StatePush}},
		RunProgress: holdfast.RunProgress{Attempt: 1},
		RunOutcome:  holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "push", Summary: "cannot overwrite", Cause: "Conflict"}},
	},
	"state not pushed yet": {
		ID: "run-13", Cluster: "prod-eu", Kind: holdfast.RunState, Status: holdfast.RunErrored,
		RunSpec:     holdfast.RunSpec{State: &holdfast.StateJob{Action: holdfast.StatePush}},
		RunProgress: holdfast.RunProgress{Attempt: 1},
		RunOutcome:  holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "init", Summary: "connection refused", Cause: "Network", Transient: true}},
	},
	"not unlocked": {
		ID: "run-14", Cluster: "prod-eu", Kind: holdfast.RunState, Status: holdfast.RunErrored,
		RunSpec:     holdfast.RunSpec{State: &holdfast.StateJob{Action: holdfast.StateUnlock, LockID: "left-1"}},
		RunProgress: holdfast.RunProgress{Attempt: 1},
		RunOutcome:  holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "unlock", Summary: "no such lock", Cause: "EngineFailed"}},
	},
	"unattempted": {
		ID: "run-10", Cluster: "prod-eu", Kind: holdfast.RunPlan, Status: holdfast.RunErrored,
		RunOutcome: holdfast.RunOutcome{Failure: &holdfast.Failure{Step: "prepare", Summary: "clusters/prod-eu.yaml:3:1: no such template", Cause: "Invalid"}},
	},
}

func TestCommentOfAPlanThatFailsAfterAKilledApply(t *testing.T) {
	t.Parallel()
	c := planned("prod-eu", smallPlan("prod-eu"))
	c.Apply = run("run-8", "prod-eu", holdfast.RunPlan, holdfast.RunErrored, nil)
	c.Apply.Failure = &holdfast.Failure{Step: "plan", Summary: "the state is locked", Cause: holdfast.CauseStateLocked}
	killed := failures["killed"]
	c.Failed = &killed
	r := pullRequest(c)
	r.PullRequest.State, r.PullRequest.MergeCommit = holdfast.PullRequestMerged, head
	body := report.Comment(r)
	for _, want := range []string{"the state is locked", "These may exist without being in the state", "aws_instance.a"} {
		if !strings.Contains(body, want) {
			t.Errorf("the comment does not say %q:\n%s", want, body)
		}
	}
	if len(c.Apply.Failure.Unrecorded) > 0 {
		t.Error("the run that was given has changed")
	}
}

func TestFailureText(t *testing.T) {
	t.Parallel()

	var all strings.Builder
	for _, name := range []string{"code", "apply", "not begun", "locked", "retrying", "passing", "killed", "destroy", "drift", "unattempted", "locked by a session", "state not pushed", "state not pushed yet", "not unlocked"} {
		text := report.FailureText(failures[name])
		fmt.Fprintf(&all, "# %s\n%s\n", name, text)
		if strings.ContainsAny(text, "`\x1b") || strings.Contains(text, "**") {
			t.Errorf("%s: markup in %q", name, text)
		}
	}
	golden(t, "failures.golden.txt", all.String())
	if got := report.FailureText(holdfast.Run{ID: "run-1", Status: holdfast.RunPlanned}); got != "" {
		t.Errorf("a run that did not fail: %q", got)
	}
}

// A lock that a run could not release is to be released again, whatever code that had: there
// is nothing to plan.
func TestFailureOfARelease(t *testing.T) {
	t.Parallel()
	for _, kind := range []holdfast.RunKind{holdfast.RunState, holdfast.RunUnlock} {
		run := failures["not unlocked"]
		run.Kind, run.PullRequest = kind, holdfast.PullRequestRef{Repo: "acme/fleet", Number: 7}
		text := report.FailureText(run)
		if !strings.Contains(text, "holdfast unlock prod-eu --lock left-1") || strings.Contains(text, "replan") {
			t.Errorf("of a run of kind %s: %s", kind, text)
		}
	}
}

// terminal is a command for a terminal.
var terminal = regexp.MustCompile(`(?:^|[^/\w])holdfast ((?:[a-z]+)(?: [a-z]+)?)`)

// TestTerminalCommandsExist reads the commands for a terminal in all texts.
func TestTerminalCommandsExist(t *testing.T) {
	t.Parallel()

	known := []string{"apply", "replan", "approve", "cancel", "logs", "unlock", "resume", "suspend", "get runs", "get drift", "describe drift", "drift check", "state push", "state get", "state waive"}
	var texts []string
	for _, r := range cases() {
		texts = append(texts, report.Comment(r))
	}
	for _, run := range failures {
		texts = append(texts, report.FailureText(run))
	}
	for _, r := range driftCases() {
		_, body, _ := report.DriftIssue(r, now)
		texts = append(texts, body, report.DriftText(r))
	}
	for _, s := range summaryCases() {
		_, body, _ := report.DriftSummary("fleet", s.reports, s.own, now)
		texts = append(texts, body)
	}
	for _, text := range texts {
		for _, m := range terminal.FindAllStringSubmatch(text, -1) {
			first, _, _ := strings.Cut(m[1], " ")
			found := false
			for _, command := range known {
				found = found || command == m[1] || command == first
			}
			if !found {
				t.Errorf("no command %q", m[0])
			}
		}
	}
}
