package main

import (
	"encoding/json"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// example is a pull request that a reviewer should think about twice: one
// cluster grows, and the other one loses a database that it has data in.
func example() report.PullRequest {
	production := cluster("prod-eu", "production", plan(
		change(`module.kubernetes.aws_eks_cluster.this`, "aws_eks_cluster", attribute("version", `"1.32"`, `"1.33"`)),
		change(`module.kubernetes.aws_eks_node_group.this["general"]`, "aws_eks_node_group",
			attribute("scaling_config[0].desired_size", "3", "5"), attribute("version", `"1.32"`, `"1.33"`)),
		replace("aws_db_instance.orders", "aws_db_instance", "storage_encrypted", "false", "true"),
		create(`aws_route53_record.node[3]`, "aws_route53_record"),
		create(`aws_route53_record.node[4]`, "aws_route53_record"),
	))
	production.Gates = []holdfast.Gate{{
		Name: "approved", Missing: "nobody has approved it",
		From: "an approving review or `/holdfast approve` from anyone with write permission, except ann",
	}}
	staging := cluster("stage-eu", "staging", plan(
		change(`module.kubernetes.aws_eks_cluster.this`, "aws_eks_cluster", attribute("version", `"1.32"`, `"1.33"`)),
		change(`module.kubernetes.aws_eks_node_group.this["general"]`, "aws_eks_node_group", attribute("version", `"1.32"`, `"1.33"`)),
	))
	return report.PullRequest{
		PullRequest: holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
			PullRequestRef: pullRequest, State: holdfast.PullRequestOpen, Head: head, BaseBranch: "main", Author: "ann",
		}},
		Clusters: []report.Cluster{production, staging, cluster("dev-eu", "development", plan())},
		Now:      time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC),
	}
}

const head = holdfast.Revision("ffa71055e29b41d4a716446655440000ffa71055")

var pullRequest = holdfast.PullRequestRef{Repo: "acme/clusters", Number: 41}

func cluster(name, environment string, p *holdfast.Plan) report.Cluster {
	status := holdfast.RunPlanned
	if p.Counts.Zero() {
		status = holdfast.RunNoChanges
	}
	return report.Cluster{
		Name: name, Document: holdfast.Cluster{Name: name, Environment: environment}, Summary: p,
		Plan: &holdfast.Run{
			ID: "run-" + name, Cluster: name, Kind: holdfast.RunPlan, Status: status,
			RunSpec: holdfast.RunSpec{
				Revision:    head,
				PullRequest: pullRequest, Template: "kubernetes@1.5.0 (1a2b3c4)",
			},
			RunProgress: holdfast.RunProgress{Attempt: 1},
			RunOutcome: holdfast.RunOutcome{
				Counts:     p.Counts,
				EngineName: "tofu", EngineVersion: "1.12.6",
			},
		},
	}
}

func plan(changes ...holdfast.ResourceChange) *holdfast.Plan {
	p := &holdfast.Plan{Changes: changes, Fingerprint: "sha256:1"}
	counts := map[holdfast.ChangeAction]*int{
		holdfast.ActionCreate: &p.Counts.Create, holdfast.ActionUpdate: &p.Counts.Update, holdfast.ActionReplace: &p.Counts.Replace,
		holdfast.ActionDelete: &p.Counts.Delete,
	}
	for _, c := range changes {
		*counts[c.Action]++
	}
	return p
}

func create(address, kind string) holdfast.ResourceChange {
	return holdfast.ResourceChange{Address: address, Type: kind, Action: holdfast.ActionCreate}
}

func change(address, kind string, attributes ...holdfast.AttributeChange) holdfast.ResourceChange {
	return holdfast.ResourceChange{Address: address, Type: kind, Action: holdfast.ActionUpdate, Attributes: attributes}
}

func replace(address, kind, path, before, after string) holdfast.ResourceChange {
	forces := attribute(path, before, after)
	forces.Forces = true
	return holdfast.ResourceChange{
		Address: address, Type: kind, Action: holdfast.ActionReplace, Reason: "replace_because_cannot_update",
		ReplacePaths: []string{path}, Attributes: []holdfast.AttributeChange{forces},
	}
}

func attribute(path, before, after string) holdfast.AttributeChange {
	return holdfast.AttributeChange{Path: path, Before: json.RawMessage(before), After: json.RawMessage(after)}
}
