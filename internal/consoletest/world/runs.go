package world

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

const head = holdfast.Revision("8c21f0e4b7a95d3c2e1f0a9b8c7d6e5f4a3b2c1d")

func fromPull(number int) v1.PullRequestRef { return v1.PullRequestRef{Repo: "fleet", Number: number} }

// base is a run of a cluster, made some time ago.
func (w *World) base(id, cluster string, kind holdfast.RunKind, status holdfast.RunStatus, ago, took time.Duration) v1.Run {
	created := w.Now.Add(-ago)
	line, _ := w.line(cluster)
	r := v1.Run{
		ID: id, Cluster: cluster, Kind: kind, Status: status, Runner: "local", CreatedAt: created, StartedAt: created.Add(4 * time.Second),
		RunSpec:     v1.RunSpec{Repo: "fleet", Revision: head, Project: line.Project, Environment: line.Environment, Template: line.Template},
		RunProgress: v1.RunProgress{Attempt: 1, Agent: "eu-west-2"},
		RunOutcome:  v1.RunOutcome{EngineName: "terraform", EngineVersion: "1.13.4"},
	}
	if status.Done() {
		r.FinishedAt = r.StartedAt.Add(took)
	}
	return r
}

func (w *World) allRuns() {
	apply := w.base("r4812", "payments-prod-eu-1", holdfast.RunApply, holdfast.RunRunning, 161*time.Second, 0)
	apply.PullRequest, apply.Actor, apply.Step, apply.Begun, apply.Matched = fromPull(482), "Jon Aas", "apply", true, "r4790"
	apply.Counts = v1.Counts{Create: 4, Update: 3, Replace: 1, Delete: 1}
	failed := w.base("r4807", "ledger-prod-eu-4", holdfast.RunApply, holdfast.RunErrored, 14*time.Minute, 102*time.Second)
	failed.PullRequest, failed.Counts, failed.Failure = fromPull(480), v1.Counts{Create: 2, Update: 1}, quotaFailure()
	approve := w.base("r4801", "search-prod-us-14", holdfast.RunPlan, holdfast.RunPlanned, 34*time.Minute, 41*time.Second)
	approve.PullRequest, approve.Counts, approve.Fingerprint = fromPull(479), v1.Counts{Replace: 1, Update: 2}, "sha256:aa"
	direct := w.base("r4799", "media-prod-eu-2", holdfast.RunPlan, holdfast.RunPlanned, time.Hour, 30*time.Second)
	direct.Counts = v1.Counts{Update: 3}
	reviewed := w.base("r4790", "payments-prod-eu-1", holdfast.RunPlan, holdfast.RunPlanned, 50*time.Minute, 38*time.Second)
	reviewed.PullRequest, reviewed.Counts, reviewed.Fingerprint = fromPull(482), apply.Counts, "sha256:bb"
	destroy := w.base("r4795", "maps-dev-we-21", holdfast.RunPlan, holdfast.RunPlanned, 5*time.Hour, 22*time.Second)
	destroy.PullRequest, destroy.Destroy, destroy.Counts = fromPull(470), true, v1.Counts{Delete: 64}
	w.runs = []v1.Run{apply, failed, approve, direct, reviewed, destroy}
	w.plans = map[string]v1.Plan{"r4812": nodePlan(), "r4790": nodePlan(), "r4801": controlPlane(), "r4799": tags(), "r4807": tags(), "r4795": removal()}
	w.logs["r4812"], w.logs["r4807"] = applyLog(), failedLog()
	steps := []string{"apply", "init", "plan", "prepare"}
	for i, line := range w.lines {
		if i%29 == 11 && len(w.runs) < 14 {
			r := w.base(fmt.Sprintf("r48%02d", 13+i%80), line.Name, holdfast.RunDrift, holdfast.RunRunning, time.Duration(6+i%50)*time.Second, 0)
			r.Step = steps[i%len(steps)]
			w.runs = append(w.runs, r)
		}
		if i%7 == 3 {
			r := w.base(fmt.Sprintf("r47%03d", i), line.Name, []holdfast.RunKind{holdfast.RunDrift, holdfast.RunPlan, holdfast.RunApply}[i%3], holdfast.RunNoChanges, time.Duration(i+70)*time.Minute, time.Duration(9+i%40)*time.Second)
			if i%3 == 1 {
				r.Status, r.Counts = holdfast.RunPlanned, v1.Counts{Update: i % 5, Create: 1}
			}
			w.runs = append(w.runs, r)
		}
	}
	slices.SortStableFunc(w.runs, func(a, b v1.Run) int { return b.CreatedAt.Compare(a.CreatedAt) })
}

func quotaFailure() *v1.Failure {
	return &v1.Failure{
		Step: "apply", Summary: "creating EC2 instance: VcpuLimitExceeded", Cause: holdfast.CauseQuota, Address: "module.nodes.aws_instance.spot[3]",
		Hint:        "raise the quota \"Running On-Demand Standard instances\" in eu-central-1, then apply again: retrying will not help before",
		Diagnostics: []v1.Diagnostic{{Severity: "error", Summary: "creating EC2 instance: VcpuLimitExceeded", Detail: "You have requested more vCPU capacity than your current vCPU limit of 64 allows for the instance bucket that the specified instance type belongs to.", Address: "module.nodes.aws_instance.spot[3]", File: "modules/nodes/main.tf", Line: 41, Snippet: "resource \"aws_instance\" \"spot\" {"}},
	}
}

func raw(v any) json.RawMessage {
	data, _ := json.Marshal(v) // plain values
	return data
}

func changed(path string, before, after any) v1.AttributeChange {
	return v1.AttributeChange{Path: path, Before: raw(before), After: raw(after)}
}

func nodePlan() v1.Plan {
	image := changed("image_id", "ami-0c1f8e2d77a1b3390", "ami-05de91a4c2f0bb812")
	image.Forces = true
	plan := v1.Plan{
		Counts: v1.Counts{Create: 4, Update: 3, Replace: 1, Delete: 1},
		Changes: []v1.ResourceChange{
			{Address: "module.nodes.aws_launch_template.workers", Type: "aws_launch_template", Action: holdfast.ActionReplace, ReplacePaths: []string{"image_id"}, Attributes: []v1.AttributeChange{image, changed("tags.release", "1.32.8", "1.33.2")}},
			{Address: "module.nodes.aws_autoscaling_group.spot", Type: "aws_autoscaling_group", Action: holdfast.ActionDelete, Reason: "delete_because_no_resource_config", Attributes: []v1.AttributeChange{{Path: "name", Before: raw("payments-prod-eu-1-spot")}, {Path: "max_size", Before: raw(12)}}},
			{Address: "module.cluster.aws_eks_cluster.this", Type: "aws_eks_cluster", Action: holdfast.ActionUpdate, Attributes: []v1.AttributeChange{changed("version", "1.32", "1.33")}},
			{Address: "module.nodes.aws_eks_node_group.main", Type: "aws_eks_node_group", Action: holdfast.ActionUpdate, Attributes: []v1.AttributeChange{changed("scaling_config[0].desired_size", 4, 6), changed("scaling_config[0].max_size", 6, 8)}},
			{Address: "module.network.aws_iam_policy.nodes", Type: "aws_iam_policy", Action: holdfast.ActionUpdate, Attributes: []v1.AttributeChange{changed("policy", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ec2:DescribeInstances"],"Resource":"*"}]}`, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ec2:DescribeInstances","ec2:DescribeVolumes"],"Resource":"*"}]}`), changed("user_data", "#!/bin/sh\nset -e\n/opt/start --nodes 4\nexit 0\n", "#!/bin/sh\nset -e\n/opt/start --nodes 6\nexit 0\n")}},
		},
	}
	for i := range 3 {
		plan.Changes = append(plan.Changes, v1.ResourceChange{Address: fmt.Sprintf("module.network.aws_subnet.pods[%d]", i), Type: "aws_subnet", Action: holdfast.ActionCreate, Attributes: []v1.AttributeChange{{Path: "cidr_block", After: raw(fmt.Sprintf("10.8.%d.0/20", i*16))}, {Path: "id", After: raw(holdfast.UnknownValue), Unknown: true}}})
	}
	plan.Changes = append(plan.Changes, v1.ResourceChange{Address: "module.network.aws_route_table.pods", Type: "aws_route_table", Action: holdfast.ActionCreate, Attributes: []v1.AttributeChange{{Path: "id", After: raw(holdfast.UnknownValue), Unknown: true}, {Path: "password", After: raw(holdfast.SensitiveValue), Sensitive: true}}})
	return plan
}

func controlPlane() v1.Plan {
	subnets := changed("vpc_config[0].subnet_ids", []string{"subnet-0a41", "subnet-0b77"}, []string{"subnet-0c90", "subnet-0d13"})
	subnets.Forces = true
	return v1.Plan{Counts: v1.Counts{Replace: 1, Update: 2}, Changes: []v1.ResourceChange{
		{Address: "module.cluster.aws_eks_cluster.this", Type: "aws_eks_cluster", Action: holdfast.ActionReplace, ReplacePaths: []string{"vpc_config[0].subnet_ids"}, Attributes: []v1.AttributeChange{subnets}},
		{Address: "module.nodes.aws_eks_node_group.main", Type: "aws_eks_node_group", Action: holdfast.ActionUpdate, Attributes: []v1.AttributeChange{changed("version", "1.32", "1.33")}},
		{Address: "module.nodes.aws_eks_node_group.spot", Type: "aws_eks_node_group", Action: holdfast.ActionUpdate, Attributes: []v1.AttributeChange{changed("version", "1.32", "1.33")}},
	}}
}

func tags() v1.Plan {
	plan := v1.Plan{Counts: v1.Counts{Update: 3}}
	for _, name := range []string{"aws_vpc.main", "aws_subnet.nodes[0]", "aws_subnet.nodes[1]"} {
		plan.Changes = append(plan.Changes, v1.ResourceChange{Address: "module.network." + name, Action: holdfast.ActionUpdate, Attributes: []v1.AttributeChange{changed("tags.cost-centre", "4410", "4415")}})
	}
	return plan
}

func removal() v1.Plan {
	plan := v1.Plan{Counts: v1.Counts{Delete: 64}}
	for i := range 64 {
		plan.Changes = append(plan.Changes, v1.ResourceChange{Address: fmt.Sprintf("module.network.aws_subnet.all[%d]", i), Action: holdfast.ActionDelete, Attributes: []v1.AttributeChange{{Path: "id", Before: raw(fmt.Sprintf("subnet-%04x", 40960+i*17))}}})
	}
	return plan
}

func applyLog() string {
	var b strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&b, "\x1b[0m\x1b[1mmodule.network.data.aws_subnet.existing[%d]:\x1b[0m Read complete after %ds\n", i, i%3)
	}
	b.WriteString("\x1b[2mterraform apply -input=false -lock-timeout=0 plan.bin\x1b[0m\n")
	for i := range 3 {
		fmt.Fprintf(&b, "\x1b[1mmodule.network.aws_subnet.pods[%d]:\x1b[0m Creating...\n", i)
	}
	b.WriteString("\x1b[1mmodule.network.aws_subnet.pods[0]:\x1b[0m Creation complete after 1s \x1b[2m[id=subnet-0a41f2]\x1b[0m\n")
	b.WriteString("\x1b[1mmodule.network.aws_subnet.pods[1]:\x1b[0m Creation complete after 1s \x1b[2m[id=subnet-0b77c9]\x1b[0m\n")
	b.WriteString("\x1b[1mmodule.cluster.aws_eks_cluster.this:\x1b[0m Modifying... \x1b[2m[id=payments-prod-eu-1]\x1b[0m\n")
	for i := 10; i < 100; i += 10 {
		fmt.Fprintf(&b, "\x1b[1mmodule.cluster.aws_eks_cluster.this:\x1b[0m Still modifying... \x1b[2m[%ds elapsed]\x1b[0m\n", i)
	}
	b.WriteString("\x1b[33mWarning:\x1b[0m Argument is deprecated\n\x1b[2m  on modules/nodes/main.tf line 41, in resource \"aws_eks_node_group\" \"main\":\n  41:   release_version = var.release\x1b[0m\n")
	b.WriteString("\x1b[1mmodule.cluster.aws_eks_cluster.this:\x1b[0m \x1b[32mModifications complete after 1m34s\x1b[0m\n")
	return b.String()
}

func failedLog() string {
	return "\x1b[1mmodule.nodes.aws_instance.spot[3]:\x1b[0m Creating...\n\x1b[31m╷\n│ Error: creating EC2 instance: VcpuLimitExceeded\n│ \n│   with module.nodes.aws_instance.spot[3],\n│   on modules/nodes/main.tf line 41\n╵\x1b[0m\n"
}

func (w *World) listRuns(out http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	if limit == 0 {
		limit = 100
	}
	answer := v1.List[v1.Run]{Items: []v1.Run{}}
	passed := q.Get("cursor") == ""
	for _, run := range w.runs {
		fits := (q.Get("cluster") == "" || run.Cluster == q.Get("cluster")) && (q.Get("status") == "" || string(run.Status) == q.Get("status")) &&
			(q.Get("kind") == "" || string(run.Kind) == q.Get("kind")) && (q.Get("number") == "" || strconv.Itoa(run.PullRequest.Number) == q.Get("number"))
		switch {
		case !fits:
		case !passed:
			passed = run.ID == q.Get("cursor")
		case len(answer.Items) == limit:
			answer.Next = answer.Items[limit-1].ID
		default:
			answer.Items = append(answer.Items, run)
		}
	}
	write(out, answer)
}

func (w *World) run(out http.ResponseWriter, r *http.Request) {
	for _, run := range w.runs {
		if run.ID == r.PathValue("run") {
			write(out, run)
			return
		}
	}
	missing(out, fmt.Sprintf("run %q", r.PathValue("run")))
}

func (w *World) plan(out http.ResponseWriter, r *http.Request) {
	if plan, ok := w.plans[r.PathValue("run")]; ok {
		write(out, plan)
		return
	}
	missing(out, fmt.Sprintf("plan of run %q", r.PathValue("run")))
}

func (w *World) log(out http.ResponseWriter, r *http.Request) {
	log := w.logs[r.PathValue("run")]
	offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
	out.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = out.Write([]byte(log[min(offset, len(log)):]))
}
