package world

import (
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

func (w *World) cluster(out http.ResponseWriter, r *http.Request) {
	line, ok := w.line(r.PathValue("name"))
	if !ok {
		missing(out, fmt.Sprintf("cluster %q", r.PathValue("name")))
		return
	}
	c := v1.Cluster{
		Name: line.Name, Owner: line.Owner, Desired: v1.Desired{Revision: head, SourceDigest: "sha256:cc", Document: document(line)}, UpToDate: line.UpToDate, StateSerial: 41,
		Applied: v1.Applied{Run: "r4790", Revision: head, Template: "eks@4.1.3 71be0c4", EngineName: "terraform", EngineVersion: "1.13.4", At: w.Now.Add(-26 * time.Hour), Endpoint: "https://3f9c.eks.eu-central-1.example.com", NodeCount: 6, StateLocation: "clusters/" + line.Name},
		Drift:   v1.DriftState{Status: line.Drift, CheckedAt: line.CheckedAt, Due: w.Now.Add(3 * time.Hour), Since: w.Now.Add(-9 * time.Hour), Counts: v1.DriftCounts(line.DriftCounts)}, Phase: line.Phase, UpdatedAt: line.UpdatedAt,
		Suspended: line.Suspended, SuspendedBy: "Sam Okoye", SuspendReason: "migration of the network",
	}
	c.Waiting, c.PlannedRun = line.Waiting, w.planOf(line.Name)
	if line.Waiting == holdfast.ReasonNotApproved {
		c.WaitingDetail = "it replaces the control plane; needs one of platform-leads"
	}
	blocked := holdfast.ConditionFalse
	if line.Waiting != "" {
		blocked = holdfast.ConditionTrue
	}
	for _, condition := range []struct {
		kind   holdfast.ConditionType
		status holdfast.ConditionStatus
		reason holdfast.Reason
	}{
		{holdfast.ConditionCommitPlanned, holdfast.ConditionTrue, holdfast.ReasonMerged},
		{holdfast.ConditionPlanUpToDate, holdfast.ConditionTrue, holdfast.ReasonReplanned},
		{holdfast.ConditionApplyUpToDate, holdfast.ConditionFalse, holdfast.ReasonInProgress},
		{holdfast.ConditionDrifted, holdfast.ConditionFalse, holdfast.ReasonChecked},
		{holdfast.ConditionBlocked, blocked, line.Waiting},
	} {
		c.Conditions = append(c.Conditions, v1.Condition{Type: condition.kind, Status: condition.status, Reason: condition.reason, Since: line.UpdatedAt})
	}
	write(out, c)
}

func (w *World) family(out http.ResponseWriter, r *http.Request) {
	if r.PathValue("name") != "payments-prod-eu-1" {
		write(out, v1.Family{})
		return
	}
	write(out, v1.Family{
		Parents:    []v1.Relation{{Name: "platform-prod-eu-1", Phase: holdfast.PhaseActive, Settled: true, Relations: []v1.Relation{{Name: "identity-prod-eu-1", Phase: holdfast.PhaseActive, Settled: true}}}},
		Dependents: []v1.Relation{{Name: "search-prod-us-14", Phase: holdfast.PhasePending}, {Name: "ledger-prod-eu-4", Phase: holdfast.PhaseFailed, Failed: true}},
	})
}

func (w *World) driftOf(out http.ResponseWriter, r *http.Request) {
	line, _ := w.line(r.PathValue("name"))
	report := v1.DriftReport{Cluster: line.Name, State: v1.DriftState{Status: line.Drift, CheckedAt: line.CheckedAt}}
	if line.Drift == holdfast.DriftFound {
		report.Items = []v1.DriftItem{
			{Address: "module.nodes.aws_eks_node_group.main", Type: "aws_eks_node_group", Kind: holdfast.DriftChanged, Action: holdfast.ActionUpdate, Attributes: []v1.AttributeChange{changed("scaling_config[0].desired_size", 6, 9), changed("tags.owner", "platform", "nobody")}},
			{Address: "module.network.aws_route.nat[2]", Type: "aws_route", Kind: holdfast.DriftGone, Action: holdfast.ActionCreate},
		}
	}
	write(out, report)
}

func (w *World) outputs(out http.ResponseWriter, _ *http.Request) {
	write(out, v1.List[v1.Output]{Items: []v1.Output{
		{Name: "cluster_endpoint", Value: raw("https://3f9c.eks.eu-central-1.example.com")},
		{Name: "kubeconfig", Sensitive: true},
		{Name: "node_count", Value: raw(6)},
		{Name: "subnets", Value: raw([]string{"subnet-0a41f2", "subnet-0b77c9", "subnet-0c1033"})},
	}})
}

func (w *World) history(out http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	write(out, v1.List[v1.Transition]{Items: []v1.Transition{
		{Cluster: name, At: w.Now.Add(-2 * time.Minute), What: "phase", From: "Active", To: "Updating", Reason: holdfast.ReasonMerged, Run: "r4812"},
		{Cluster: name, At: w.Now.Add(-2 * time.Minute), What: "ApplyUpToDate", From: "True", To: "False", Reason: holdfast.ReasonNewRevision},
		{Cluster: name, At: w.Now.Add(-26 * time.Hour), What: "phase", From: "Provisioning", To: "Active", Reason: holdfast.ReasonApplied, Run: "r4790"},
	}})
}

func (w *World) resources(out http.ResponseWriter, r *http.Request) {
	answer := v1.List[v1.Resource]{Items: []v1.Resource{}}
	for i := range 40 {
		answer.Items = append(answer.Items, v1.Resource{Cluster: r.URL.Query().Get("cluster"), Address: fmt.Sprintf("module.network.aws_subnet.nodes[%d]", i), Type: "aws_subnet", ID: fmt.Sprintf("subnet-0%05x", 40961+i*331), Run: "r4790", ChangedAt: w.Now.Add(-26 * time.Hour)})
	}
	write(out, answer)
}
