package world

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

func (w *World) pullRequests() {
	for _, p := range []struct {
		number   int
		title    string
		author   string
		state    holdfast.PullRequestState
		ago      time.Duration
		clusters []string
	}{
		{491, "Ledger: smaller node pools in dev", "Ines Duarte", holdfast.PullRequestOpen, 3 * time.Minute, nil},
		{482, "Raise node pool to 6 and move to 1.33", "Mira Kovač", holdfast.PullRequestMerged, 20 * time.Minute, []string{"payments-prod-eu-1"}},
		{480, "Ledger: spot instances for batch", "Jon Aas", holdfast.PullRequestMerged, 25 * time.Minute, []string{"ledger-prod-eu-4"}},
		{479, "Search: subnets of the new network", "Ines Duarte", holdfast.PullRequestOpen, 34 * time.Minute, []string{"search-prod-us-14", "payments-prod-eu-1", "media-prod-eu-2"}},
		{470, "Remove maps-dev-we-21", "Sam Okoye", holdfast.PullRequestMerged, 5 * time.Hour, []string{"maps-dev-we-21"}},
	} {
		pr := v1.PullRequest{Repo: "fleet", Number: p.number, Title: p.title, Author: p.author, State: p.state, URL: fmt.Sprintf("https://git.example.com/fleet/pull/%d", p.number), UpdatedAt: w.Now.Add(-p.ago)}
		pr.Branch, pr.Head, pr.BaseBranch, pr.Mergeable = "change", head, "main", true
		for _, name := range p.clusters {
			line, _ := w.line(name)
			pr.Clusters = append(pr.Clusters, v1.PullRequestCluster{Name: name, SourceDigest: "sha256:cc", Removed: p.number == 470, Document: document(line)})
		}
		w.pulls = append(w.pulls, pr)
	}
}

func document(line holdfast.ClusterSummary) v1.Document {
	return v1.Document{
		Name: line.Name, Labels: line.Labels, Project: line.Project, Environment: line.Environment, Provider: line.Provider, Region: "eu-central-1",
		Template: &v1.TemplateRef{Name: "eks", Version: "4.2.0", Upgrades: "~> 4.2"}, Variables: map[string]any{"kubernetes_version": "1.33", "node_count": 6, "admin_password": "(sensitive value)", "zones": []string{"a", "b", "c"}},
		Drift: v1.DriftSettings{Schedule: "17 */4 * * *", OnDrift: "report"}, Apply: v1.ApplySettings{OnMerge: true, Requires: []string{"approved", "mergeable"}},
		Deletion: v1.DeletionSettings{Protected: true}, Path: "clusters/" + line.Name + ".yaml", Line: 1,
	}
}

func (w *World) listPullRequests(out http.ResponseWriter, r *http.Request) {
	answer := v1.List[v1.PullRequest]{Items: []v1.PullRequest{}}
	for _, pr := range w.pulls {
		if state := r.URL.Query().Get("state"); state == "" || string(pr.State) == state {
			answer.Items = append(answer.Items, pr)
		}
	}
	write(out, answer)
}

// gates are what an apply requires: two approvals, of which there is one, and no more cost.
func gates(pr v1.PullRequest) []v1.Gate {
	var all []v1.Gate
	for _, c := range pr.Clusters {
		all = append(all,
			v1.Gate{Cluster: c.Name, Name: holdfast.GateApproved, Given: []string{"Jonas Brandt approved in a review"}, Missing: "1 of 2 approvals", From: "an approving review or `/holdfast approve` from anyone else with write permission, except " + pr.Author},
			v1.Gate{Cluster: c.Name, Name: holdfast.GateMergeable, Met: true},
			v1.Gate{Cluster: c.Name, Name: holdfast.GatePolicy, Met: true, Given: []string{"4 policies deny nothing"}},
			v1.Gate{Cluster: c.Name, Name: holdfast.GateCost, Met: true, Given: []string{"+ 84.00 USD a month"}})
	}
	return all
}

func (w *World) pullRequest(out http.ResponseWriter, r *http.Request) {
	for _, pr := range w.pulls {
		if strconv.Itoa(pr.Number) == r.URL.Query().Get("number") {
			write(out, v1.PullRequestDetail{PullRequest: pr, Gates: gates(pr), Statuses: []v1.CommitStatus{
				{Revision: head, Context: "holdfast/plan", State: holdfast.StatusSuccess, Description: "3 clusters planned"},
				{Revision: head, Context: "holdfast/apply", State: holdfast.StatusPending, Description: "waits for an approval"},
			}})
			return
		}
	}
	missing(out, "pull request fleet#"+r.URL.Query().Get("number"))
}
