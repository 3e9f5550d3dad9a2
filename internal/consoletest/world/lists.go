package world

import (
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

func (w *World) drift(out http.ResponseWriter, r *http.Request) {
	answer := v1.List[v1.DriftLine]{Items: []v1.DriftLine{}}
	want := r.URL.Query().Get("drift")
	for i, line := range w.lines {
		if line.Drift == holdfast.DriftNone || want != "" && string(line.Drift) != want {
			continue
		}
		entry := v1.DriftLine{
			Cluster: line.Name, Owner: line.Owner, Project: line.Project, Environment: line.Environment, OnDrift: "report",
			State: v1.DriftState{Status: line.Drift, Counts: v1.DriftCounts(line.DriftCounts), CheckedAt: line.CheckedAt, Since: w.Now.Add(-time.Duration(i+3) * time.Hour), Causes: []string{"aws_eks_node_group tags", "aws_route"}},
		}
		if line.Drift == holdfast.DriftFailed {
			entry.State.Causes, entry.State.Detail = nil, "the provider did not answer: connection timed out"
		}
		answer.Items = append(answer.Items, entry)
	}
	write(out, answer)
}

func (w *World) queue(out http.ResponseWriter, _ *http.Request) {
	answer := v1.List[v1.QueuedRun]{Items: []v1.QueuedRun{}}
	for i, line := range w.lines[20:26] {
		queued := v1.QueuedRun{
			Position: i + 1, Run: fmt.Sprintf("r49%02d", i), Cluster: line.Name, Kind: holdfast.RunPlan, Status: holdfast.RunQueued, Project: line.Project, Runner: "local",
			PullRequest: fromPull(491), Ahead: v1.Ahead{Own: i / 2, Others: i - i/2}, CreatedAt: w.Now.Add(-time.Duration(90-i*11) * time.Second),
		}
		if i == 4 {
			queued.Reason, queued.Detail = holdfast.ReasonProviderThrottled, "aws answers too many requests; runs with it are limited to 2 until 14:20"
		}
		answer.Items = append(answer.Items, queued)
	}
	write(out, answer)
}

func (w *World) agents(out http.ResponseWriter, _ *http.Request) {
	write(out, v1.List[v1.Agent]{Items: []v1.Agent{
		{ID: "eu-west-1", Runner: "eu-west", Living: true, Kinds: []holdfast.RunKind{holdfast.RunPlan, holdfast.RunDrift}, Isolation: "users", Platform: "linux_amd64", Host: "ip-10-0-4-17", Version: "1.0.0", Slots: 8, Since: w.Now.Add(-40 * time.Hour), SeenAt: w.Now.Add(-2 * time.Second)},
		{ID: "eu-west-2", Runner: "eu-west", Living: true, Kinds: []holdfast.RunKind{holdfast.RunApply, holdfast.RunDestroy}, Isolation: "users", Platform: "linux_amd64", Host: "ip-10-0-4-18", Version: "1.0.0", Slots: 4, Since: w.Now.Add(-40 * time.Hour), SeenAt: w.Now.Add(-time.Second), Runs: []string{"r4812"}},
		{ID: "lab", Living: true, Kinds: []holdfast.RunKind{holdfast.RunPlan}, Isolation: "unavailable", Refused: "its isolation is weaker than the server asks for", Host: "lab-3", SeenAt: w.Now.Add(-5 * time.Second)},
		{ID: "old", Kinds: []holdfast.RunKind{holdfast.RunPlan}, Isolation: "users", Host: "ip-10-0-4-2", SeenAt: w.Now.Add(-7 * time.Hour)},
	}})
}

func (w *World) runners(out http.ResponseWriter, _ *http.Request) {
	write(out, v1.List[v1.Runner]{Items: []v1.Runner{
		{Name: "local", Type: runnerspec.Local, Environments: 14, Agents: 1}, {Name: "eu-west", Type: runnerspec.Kubernetes, Environments: 7, Agents: 2},
	}})
}

func (w *World) allTemplates() []v1.Template {
	var out []v1.Template
	for _, p := range providers {
		t := v1.Template{Name: p.template, Repo: "templates", Dir: "templates/" + p.template}
		behind := 0
		for _, line := range w.lines {
			if line.Provider != p.name {
				continue
			}
			use := v1.TemplateUse{Cluster: line.Name, Owner: line.Owner, Version: line.Template[len(p.template)+1:], Applied: line.Template[len(p.template)+1:], Upgrades: "~> 4.1"}
			if use.Version == "4.1.3" {
				use.Behind, use.Next, use.Proposed = 2, "4.2.0", 476
				behind++
				t.Users = append([]v1.TemplateUse{use}, t.Users...)
				continue
			}
			t.Users = append(t.Users, use)
		}
		t.Versions = []v1.TemplateVersion{
			{Version: "4.2.0", Tag: p.template + "/v4.2.0", Revision: head, Clusters: len(t.Users) - behind},
			{Version: "4.1.4", Tag: p.template + "/v4.1.4", Revision: "55aa", Unusable: "its module names a provider that the lock file does not have"},
			{Version: "4.1.3", Tag: p.template + "/v4.1.3", Revision: "71be0c4", Clusters: behind},
		}
		out = append(out, t)
	}
	return out
}

func (w *World) listTemplates(out http.ResponseWriter, _ *http.Request) {
	write(out, v1.List[v1.Template]{Items: w.allTemplates()})
}

func (w *World) template(out http.ResponseWriter, r *http.Request) {
	for _, t := range w.allTemplates() {
		if t.Name == r.PathValue("name") {
			write(out, t)
			return
		}
	}
	missing(out, fmt.Sprintf("template %q", r.PathValue("name")))
}

func (w *World) audit(out http.ResponseWriter, r *http.Request) {
	answer := v1.List[v1.AuditEntry]{Items: []v1.AuditEntry{}}
	for i, e := range []v1.AuditEntry{
		{Actor: "Jon Aas", Action: "run.apply", Object: "payments-prod-eu-1", Detail: "fleet#482"},
		{Actor: "holdfast", Action: "run.drift", Object: "media-prod-eu-2"},
		{Actor: "Sam Okoye", Action: "cluster.suspend", Object: "maps-stage-ap-3", Detail: "migration of the network"},
		{Actor: "ci", Action: "api.refuse", Object: "ledger-prod-eu-4", Detail: "token \"ci\" has role viewer; this requires operator"},
	} {
		e.At = w.Now.Add(-time.Duration(i*i*13+2) * time.Minute)
		if object := r.URL.Query().Get("object"); object == "" || object == e.Object {
			answer.Items = append(answer.Items, e)
		}
	}
	write(out, answer)
}

func (w *World) suspensions(out http.ResponseWriter, _ *http.Request) {
	write(out, v1.List[v1.Suspension]{Items: []v1.Suspension{{Project: "maps", By: "Sam Okoye", Reason: "migration of the network", At: w.Now.Add(-3 * time.Hour)}}})
}

func (w *World) replicas(out http.ResponseWriter, _ *http.Request) {
	write(out, v1.List[v1.Replica]{Items: []v1.Replica{
		{Identity: "a", Name: "holdfast-0", Version: "1.0.0", HeartbeatAt: w.Now.Add(-2 * time.Second), Living: true, Leads: []string{"fleet"}, Schedules: true},
		{Identity: "b", Name: "holdfast-1", Version: "1.0.0", HeartbeatAt: w.Now.Add(-time.Second), Living: true, Leads: []string{"templates"}},
	}})
}

func (w *World) deliveries(out http.ResponseWriter, _ *http.Request) {
	answer := v1.List[v1.Delivery]{Items: []v1.Delivery{}}
	for i, d := range []v1.Delivery{
		{Event: "push", Repo: "acme/fleet", About: "main", Status: http.StatusOK, Result: "accepted"},
		{Event: "pull_request", Repo: "acme/fleet", About: "#491 synchronize", Status: http.StatusOK, Result: "accepted"},
		{Event: "issue_comment", Repo: "acme/fleet", About: "", Status: http.StatusAccepted, Result: "ignored: no command"},
		{Event: "push", Repo: "acme/site", About: "main", Status: http.StatusAccepted, Result: "ignored: the repository acme/site is not in holdfast.yaml"},
		{Event: "push", Repo: "acme/fleet", About: "main", Status: http.StatusUnauthorized, Result: "the signature does not match"},
		{Event: "issue_comment", Repo: "acme/fleet", About: "", Status: http.StatusServiceUnavailable, Result: "the command could not be stored"},
	} {
		d.At, d.ID, d.Duration = w.Now.Add(-time.Duration(i*i*7+1)*time.Minute), fmt.Sprintf("72d3162e-cc78-11e3-81ab-4c936%07d", i), "3ms"
		answer.Items = append(answer.Items, d)
	}
	write(out, answer)
}
