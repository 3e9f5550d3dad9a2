package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// A shot is a picture of docs/comments.md.
type shot struct {
	name, title string
	text        string // Markdown, as it is posted
}

// shots are the pictures of docs/comments.md, in their order. What is in them is invented.
func shots() []shot {
	var all []shot
	add := func(name, title string, r report.PullRequest) {
		all = append(all, shot{name, title, report.Comment(r)})
	}
	add("one", "One cluster changes", open(eu(growth()...)))
	add("replace", "A control plane is replaced, and a policy denies it", open(denied(), stage(), cluster("dev-eu", "development", plan())))
	add("fleet", "The same change in a whole fleet", fleet())
	add("destroy", "A cluster is destroyed", destroyed())
	add("unchanged", "Nothing changes", open(cluster("prod-eu", "production", plan()), cluster("stage-eu", "staging", plan())))
	add("failed", "A plan fails", open(broken(), stage()))
	add("faults", "Errors in the files", faulty())
	add("values", "Values that are long, secret or unknown", open(values()))
	add("instances", "Many instances", open(instances()))
	add("waiting", "Merged, and held", merged(held("prod-eu", holdfast.ReasonNotApproved), applied("stage-eu")))
	add("apply-failed", "Merged, and an apply fails", merged(applyFailed(), applied("stage-eu")))
	add("applied", "Merged and applied", merged(applied("prod-eu"), applied("stage-eu")))
	_, issue, _ := report.DriftIssue(drifted(), time.Time{})
	return append(all, shot{"drift", "The issue about drift", issue})
}

func open(clusters ...report.Cluster) report.PullRequest {
	r := example()
	r.Clusters = clusters
	r.PullRequest.URL = "https://github.com/acme/clusters/pull/41"
	r.LogURL = func(run string) string { return "https://holdfast.example.com/runs/" + run }
	return r
}

func merged(clusters ...report.Cluster) report.PullRequest {
	r := open(clusters...)
	r.PullRequest.State, r.PullRequest.MergeCommit = holdfast.PullRequestMerged, "4b1d5c0e29b41d4a716446655440000ffa710550"
	return r
}

func growth() []holdfast.ResourceChange {
	return []holdfast.ResourceChange{
		change(`module.kubernetes.aws_eks_node_group.this["general"]`, "aws_eks_node_group",
			attribute("scaling_config[0].desired_size", "3", "5"), attribute("instance_types[0]", `"m7i.large"`, `"m7i.xlarge"`)),
		change("module.network.aws_security_group.nodes", "aws_security_group",
			attribute("ingress_cidrs[0]", `"10.0.0.0/16"`, `"10.8.0.0/16"`), attribute("ingress_cidrs[1]", "", `"10.0.0.0/16"`)),
		create("module.network.aws_route53_record.api", "aws_route53_record"),
	}
}

func eu(changes ...holdfast.ResourceChange) report.Cluster {
	return cluster("prod-eu", "production", plan(changes...))
}

func stage() report.Cluster { return cluster("stage-eu", "staging", plan(growth()...)) }

func denied() report.Cluster {
	c := eu(append(growth(), replace("module.kubernetes.aws_eks_cluster.this", "aws_eks_cluster", "vpc_config[0].subnet_ids", `["subnet-0a1","subnet-0b2"]`, `["subnet-0a1","subnet-0c3"]`))...)
	c.Plan.Policies = &holdfast.PolicyReport{Evaluated: 14, Results: []holdfast.PolicyResult{
		{
			Policy: "control-plane-replaced", Severity: holdfast.PolicyDeny, Address: "module.kubernetes.aws_eks_cluster.this",
			Message: "the control plane would be replaced: every workload is gone", Link: "https://wiki.example.com/control-planes",
		},
		{Policy: "node-pool-without-surge", Severity: holdfast.PolicyWarn, Address: `module.kubernetes.aws_eks_node_group.this["general"]`, Message: "its nodes are replaced without a surge"},
	}}
	c.Gates = []holdfast.Gate{
		{Name: "approved", Missing: "nobody has approved it", From: "an approving review or `/holdfast approve` from anyone with write permission, except ann"},
		{Name: "mergeable", Met: true},
		{Name: "policy", Missing: "denied by control-plane-replaced", From: "a change that the policy allows"},
	}
	return c
}

func fleet() report.PullRequest {
	var clusters []report.Cluster
	for i := range 12 {
		name := fmt.Sprintf("shop-%02d", i+1)
		clusters = append(clusters, cluster(name, "production", plan(
			change(`module.kubernetes.aws_eks_cluster.this`, "aws_eks_cluster", attribute("version", `"1.32"`, `"1.33"`)),
			change("module.essentials.helm_release.agent", "helm_release", attribute("set[0].value", `"old"`, fmt.Sprintf("%q", name))),
		)))
	}
	return open(append(clusters, cluster("tools", "tooling", plan()))...)
}

func destroyed() report.PullRequest {
	gone := func(address, kind string) holdfast.ResourceChange {
		return holdfast.ResourceChange{Address: address, Type: kind, Action: holdfast.ActionDelete, Reason: "delete_because_no_resource_config"}
	}
	c := eu(gone("module.kubernetes.aws_eks_cluster.this", "aws_eks_cluster"), gone("aws_db_instance.orders", "aws_db_instance"),
		gone("module.network.aws_vpc.this", "aws_vpc"), gone("module.network.aws_subnet.private[0]", "aws_subnet"),
		gone("module.network.aws_subnet.private[1]", "aws_subnet"), gone("module.network.aws_subnet.private[2]", "aws_subnet"))
	c.Removed, c.Plan.Destroy = true, true
	return open(c)
}

func broken() report.Cluster {
	c := cluster("prod-eu", "production", plan())
	c.Document.Template, c.Document.Path, c.Document.Line = &holdfast.TemplateRef{Name: "kubernetes", Version: "1.5.0"}, "clusters/prod-eu.yaml", 1
	c.Document.Variables = map[string]any{"node_count": 300}
	c.Summary, c.Plan.Status = nil, holdfast.RunErrored
	c.Plan.Failure = &holdfast.Failure{
		Step: "plan", Cause: holdfast.CauseInvalidConfiguration, Summary: "the configuration is not valid", Hint: "Correct the value and push.",
		Detail: "Error: Invalid value for variable\n\n  on main.tf line 12, in module \"kubernetes\":\n  12:   node_count = var.node_count\n",
		Diagnostics: []holdfast.Diagnostic{{
			Severity: "error", Summary: "Invalid value for variable", Detail: "A node group has at most 100 nodes.", File: "main.tf", Line: 12,
			Snippet: "12:   node_count = var.node_count\n    ├────────────────\n    │ var.node_count is 300",
		}},
	}
	return c
}

func faulty() report.PullRequest {
	r := open(stage(), report.Cluster{Name: "prod-eu", Document: holdfast.Cluster{Name: "prod-eu", Environment: "production"}})
	r.PullRequest.Faults = holdfast.Faults{
		{File: "clusters/prod-eu.yaml", Line: 14, Column: 3, Cluster: "prod-eu", Message: `unknown key "vars"`, Hint: `did you mean "variables"?`},
		{File: "clusters/prod-eu.yaml", Line: 9, Column: 15, Cluster: "prod-eu", Message: `there is no version 1.7.0 of the template kubernetes`, Hint: "the newest one is 1.5.0"},
	}
	return r
}

func values() report.Cluster {
	policy := func(action string) string {
		return fmt.Sprintf("%q", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:GetObject"],"Resource":"arn:aws:s3:::acme-artefacts/*"},{"Effect":"Allow","Action":"`+action+`","Resource":"*"}]}`)
	}
	script := func(size int) string {
		return fmt.Sprintf("%q", fmt.Sprintf("#!/bin/sh\nset -eu\nyum install -y agent\nexport POOL_SIZE=%d\nexec agent\n", size))
	}
	secret := attribute("master_password", `"`+holdfast.SensitiveValue+`"`, `"`+holdfast.SensitiveValue+`"`)
	secret.Sensitive, secret.BeforeMark, secret.AfterMark = true, "sha256:1", "sha256:2"
	unknown := attribute("endpoint", `"10.0.0.7"`, `"`+holdfast.UnknownValue+`"`)
	unknown.Unknown = true
	return eu(
		change("aws_iam_policy.nodes", "aws_iam_policy", attribute("policy", policy("ec2:DescribeInstances"), policy("ec2:*"))),
		change("aws_launch_template.nodes", "aws_launch_template", attribute("user_data", script(4), script(8))),
		change("aws_rds_cluster.orders", "aws_rds_cluster", secret, unknown),
		change("aws_eks_cluster.this", "aws_eks_cluster",
			attribute("public_access_cidrs[0]", `"192.0.2.0/24"`, `"198.51.100.0/24"`), attribute("public_access_cidrs[1]", `"198.51.100.0/24"`, "")),
	)
}

func instances() report.Cluster {
	var changes []holdfast.ResourceChange
	for i := range 6 {
		changes = append(changes, change(fmt.Sprintf("module.pool.aws_eks_node_group.this[%d]", i), "aws_eks_node_group", attribute("version", `"1.32"`, `"1.33"`)))
	}
	for _, zone := range strings.Fields("a b c") {
		changes = append(changes,
			create(fmt.Sprintf("module.network.aws_subnet.private[%q]", "eu-west-1"+zone), "aws_subnet"),
			create(fmt.Sprintf("module.network.aws_nat_gateway.this[%q]", "eu-west-1"+zone), "aws_nat_gateway"))
	}
	for i := range 12 {
		if i != 7 {
			changes = append(changes, create(fmt.Sprintf("aws_route53_record.node[%d]", i), "aws_route53_record"))
		}
	}
	return eu(changes...)
}

func applied(name string) report.Cluster {
	c := cluster(name, "production", plan(growth()...))
	run := *c.Plan
	run.ID, run.Kind, run.Status = "apply-"+name, holdfast.RunApply, holdfast.RunApplied
	c.Apply, c.Applied = &run, c.Summary
	return c
}

func held(name string, reason holdfast.Reason) report.Cluster {
	c := cluster(name, "production", plan(growth()...))
	c.Waiting = reason
	return c
}

func applyFailed() report.Cluster {
	c := applied("prod-eu")
	c.Apply.Status, c.Apply.Begun, c.Waiting = holdfast.RunErrored, true, holdfast.ReasonApplyFailed
	c.Apply.Failure = &holdfast.Failure{
		Step: "apply", Cause: holdfast.CauseQuota, Summary: "quota exceeded", Hint: "Raise the quota of the account, then apply again.",
		Address:     `module.kubernetes.aws_eks_node_group.this["general"]`,
		Diagnostics: []holdfast.Diagnostic{{Severity: "error", Summary: "VcpuLimitExceeded: 64 of 64 vCPUs", Address: `module.kubernetes.aws_eks_node_group.this["general"]`}},
		Completed:   []string{"module.network.aws_route53_record.api: created"},
	}
	return c
}

func drifted() holdfast.DriftReport {
	found := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	return holdfast.DriftReport{
		Cluster: "prod-eu", Document: holdfast.Cluster{Name: "prod-eu", Project: "shop", Environment: "production"}, Template: "kubernetes@1.5.0", Revision: head,
		State: holdfast.DriftState{Status: holdfast.DriftFound, Run: "drift-1", Applied: "apply-1", CheckedAt: found, Since: found, Fingerprint: "sha256:1", Counts: holdfast.DriftCounts{Changed: 1, Gone: 1}},
		Items: []holdfast.DriftItem{
			{
				Address: `module.kubernetes.aws_eks_node_group.this["general"]`, Type: "aws_eks_node_group", Kind: holdfast.DriftChanged, Action: holdfast.ActionUpdate,
				Attributes: []holdfast.AttributeChange{attribute("scaling_config[0].desired_size", "3", "7")},
			},
			{Address: "module.network.aws_route53_record.api", Type: "aws_route53_record", Kind: holdfast.DriftGone, Action: holdfast.ActionCreate},
		},
	}
}
