package pages

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// plansOnPage is how many different plans the page of a pull request shows.
const plansOnPage = 25

// pullRequestStates are what the list can be narrowed to.
var pullRequestStates = []struct{ label, value string }{{"Open", "open"}, {"Merged", "merged"}, {"Closed", "closed"}, {"All", "all"}}

func (v *visit) pullRequests() (console.View, error) {
	v.frame.Title, v.frame.Here = "Pull requests", "p"
	q := v.r.URL.Query()
	state := "open"
	view := console.PullRequestsView{}
	for _, one := range pullRequestStates {
		if q.Get("state") == one.value {
			state = one.value
		}
	}
	for _, one := range pullRequestStates {
		view.States = append(view.States, console.Option{Label: one.label, Href: words.With("/pullrequests", call.Query("state", one.value)), On: one.value == state})
	}
	wanted := state
	if state == "all" {
		wanted = ""
	}
	found, err := call.List[v1.PullRequest](v.API, "/pullrequests", call.Query("state", wanted, "cursor", q.Get("cursor"), "limit", "50"))
	if err != nil {
		return nil, err
	}
	for _, pr := range found.Items {
		view.Items = append(view.Items, console.PullRequestRow{
			Ref: pr.String(), Title: cmp.Or(pr.Title, pr.String()), Href: words.PullRequestHref(pr.Ref()), Author: pr.Author, State: pullRequestState(pr),
			Clusters: len(pr.Clusters), Why: reasonWords(pr.Reason, ""), UpdatedAt: pr.UpdatedAt,
		})
	}
	view.Pager = pager("/pullrequests", call.Query("state", state), q.Get("cursor"), found.Next, "pull requests")
	return view, nil
}

func pullRequestState(pr v1.PullRequest) console.State {
	switch {
	case len(pr.Faults) > 0 && pr.State == holdfast.PullRequestOpen:
		return console.State{Word: "Invalid", Icon: "alert", Tone: "bad"}
	case pr.State == holdfast.PullRequestMerged:
		return console.State{Word: "Merged", Icon: "ok"}
	case pr.State == holdfast.PullRequestClosed:
		return console.State{Word: "Closed", Icon: "skip"}
	case pr.Draft:
		return console.State{Word: "Draft", Icon: "todo"}
	default:
		return console.State{Word: "Open", Icon: "pull", Tone: "info"}
	}
}

func (v *visit) pullRequest() (console.View, error) {
	ref, err := pullRequestOf(v.r)
	if err != nil {
		return nil, err
	}
	q := call.Query("repo", ref.Repo, "number", strconv.Itoa(ref.Number))
	var detail v1.PullRequestDetail
	if err := v.Get("/pullrequests/get", q, &detail); err != nil {
		return nil, err
	}
	q.Set("limit", "500")
	runs, err := call.List[v1.Run](v.API, "/runs", q)
	if err != nil {
		return nil, err
	}
	pr := detail.PullRequest
	v.frame.Title, v.frame.Here = cmp.Or(pr.Title, pr.String()), "p"
	v.frame.Crumbs = []console.Link{{Text: "Pull requests", Href: "/pullrequests"}, {Text: pr.String()}}
	view := console.PullRequestView{
		Ref: pr.String(), Title: cmp.Or(pr.Title, pr.String()), State: pullRequestState(pr), Link: webLink(pr.URL), Facts: pullRequestFacts(pr),
		Alerts: pullRequestAlerts(pr), Gates: gates(detail), Statuses: statuses(detail), UpdatedAt: pr.UpdatedAt,
		Runs: console.RunList{Items: runRows(runs.Items[:min(len(runs.Items), 50)], v.now)},
	}
	return view, v.affected(&view, pr, runs.Items)
}

// webLink is an address that a code host has given, if a browser may open it.
func webLink(address string) string {
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return address
}

func pullRequestFacts(pr v1.PullRequest) []console.Fact {
	facts := []console.Fact{{Name: "", Value: pr.String()}}
	for _, f := range []console.Fact{
		{Name: "by", Value: pr.Author},
		{Name: "head", Value: pr.Head.Short(), Mono: true},
		{Name: "into", Value: pr.BaseBranch, Mono: true},
		{Name: "merged as", Value: pr.MergeCommit.Short(), Mono: true},
	} {
		if f.Value != "" {
			facts = append(facts, f)
		}
	}
	return append(facts, console.Fact{Name: "changed", At: pr.UpdatedAt})
}

func pullRequestAlerts(pr v1.PullRequest) []console.Alert {
	var alerts []console.Alert
	for _, fault := range pr.Faults {
		alerts = append(alerts, console.Alert{Tone: "bad", Title: words.Sentence(fault.Message), Why: faultPlace(fault), Hint: words.Sentence(words.Unquoted(fault.Hint))})
	}
	if pr.Reason != "" {
		alerts = append(alerts, console.Alert{Tone: "info", Title: words.Sentence(reasonWords(pr.Reason, pr.Detail)), Hint: words.Sentence(words.Unquoted(pr.Reason.Info().Hint))})
	}
	return alerts
}

func statuses(detail v1.PullRequestDetail) []console.StatusRow {
	var out []console.StatusRow
	for _, s := range detail.Statuses {
		row := console.StatusRow{Context: s.Context, Description: s.Description, NotSet: s.NotSet}
		switch s.State {
		case holdfast.StatusSuccess:
			row.State = console.State{Word: "success", Icon: "ok"}
		case holdfast.StatusPending:
			row.State = console.State{Word: "pending", Icon: "wait", Tone: "info"}
		default:
			row.State = console.State{Word: string(s.State), Icon: "bad", Tone: "bad"}
		}
		out = append(out, row)
	}
	return out
}

// affected fills in the clusters: those with equal plans together, the dangerous first.
func (v *visit) affected(view *console.PullRequestView, pr v1.PullRequest, runs []v1.Run) error {
	newest := map[string]v1.Run{}
	for _, r := range slices.Backward(runs) { // the newest come first
		if r.Kind == holdfast.RunPlan && (r.Status != holdfast.RunCanceled || newest[r.Cluster].ID == "") {
			newest[r.Cluster] = r
		}
	}
	groups := groupsOf(pr.Clusters, newest)
	shown := slices.DeleteFunc(slices.Collect(maps.Values(newest)), func(r v1.Run) bool { return r.Sample })
	slices.SortFunc(shown, func(a, b v1.Run) int { return cmp.Compare(a.ID, b.ID) })
	view.Acts = v.visitor().PullRequestActs(pr, shown, len(groups) <= plansOnPage)
	var total v1.Counts
	for _, g := range groups {
		for range 1 + len(g.others) {
			total = words.Sum(total, g.run.Counts)
		}
	}
	view.Counts = words.CountPills(total)
	switch {
	case len(pr.Clusters) == 0:
		view.Summary = "It affects no cluster."
	case len(groups) > plansOnPage:
		view.Summary = fmt.Sprintf("Showing the %d most dangerous of %d different plans; the list of runs has the others.", plansOnPage, len(groups))
	}
	for i, g := range groups[:min(len(groups), plansOnPage)] {
		shown, err := v.affectedCluster(g, i)
		if err != nil {
			return err
		}
		view.Clusters = append(view.Clusters, shown)
	}
	return nil
}

// group are clusters whose plans do the same.
type group struct {
	cluster v1.PullRequestCluster
	run     v1.Run // its newest plan; the zero Run if there is none
	others  []string
}

func groupsOf(clusters []v1.PullRequestCluster, newest map[string]v1.Run) []group {
	var groups []group
	at := map[holdfast.Digest]int{}
	for _, c := range clusters {
		run := newest[c.Name]
		if run.Fingerprint != "" {
			if i, ok := at[run.Fingerprint]; ok && groups[i].cluster.Removed == c.Removed {
				groups[i].others = append(groups[i].others, c.Name)
				continue
			}
			at[run.Fingerprint] = len(groups)
		}
		groups = append(groups, group{cluster: c, run: run})
	}
	rank := func(g group) int {
		return -(1000*(g.run.Counts.Replace+g.run.Counts.Delete) + g.run.Counts.Update + g.run.Counts.Create)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(rank(a), rank(b)) })
	return groups
}

func (v *visit) affectedCluster(g group, i int) (console.PullRequestCluster, error) {
	shown := console.PullRequestCluster{
		ID: "plan-" + strconv.Itoa(i), Name: g.cluster.Name, Href: words.ClusterHref(g.cluster.Name), State: console.State{Word: "Not planned", Icon: "todo"},
	}
	switch {
	case g.cluster.Removed:
		shown.What = "removed"
	case g.cluster.Sample:
		shown.What = "sample"
	case g.cluster.Added:
		shown.What = "changed while merging"
	}
	for _, name := range g.others {
		shown.Others = append(shown.Others, console.Node{Name: name, Href: words.ClusterHref(name)})
	}
	if g.run.ID == "" {
		shown.Plan.Why = "No plan yet."
		return shown, nil
	}
	shown.Run, shown.State = runRow(g.run, v.now), runState(g.run.Status, g.run.Kind)
	if g.run.Failure != nil || g.run.Status == holdfast.RunErrored {
		shown.Alerts = runAlerts(g.run)
	}
	var err error
	shown.Plan, err = v.planOf(g.run, "plan-"+strconv.Itoa(i)+"-", changesOnPage/4)
	return shown, err
}
