package pages

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

const (
	clustersOnPage = 50
	needsOnPage    = 5
	runsOnPage     = 5
	facetsInMenu   = 40
)

// navigate says where one can go, and what waits there.
func (v *visit) navigate() {
	v.frame.Nav = []console.NavItem{
		{Key: "c", Label: "Fleet", Icon: "fleet", Href: "/"},
		{Key: "p", Label: "Pull requests", Icon: "pull", Href: "/pullrequests"},
		{Key: "q", Label: "Runs and queue", Icon: "runs", Href: "/queue"},
		{Key: "d", Label: "Drift", Icon: "drift", Href: "/drift"},
		{Key: "t", Label: "Templates", Icon: "templates", Href: "/templates"},
		{Key: "a", Label: "Audit", Icon: "audit", Href: "/audit", Below: true},
		{Key: "w", Label: "Deliveries", Icon: "deliveries", Href: "/deliveries", Below: true},
		{Key: "s", Label: "Settings", Icon: "settings", Href: "/settings", Below: true},
	}
}

// tally puts numbers into the navigation.
func (v *visit) tally(o v1.Overview) {
	for i := range v.frame.Nav {
		switch item := &v.frame.Nav[i]; item.Key {
		case "c":
			item.Count = o.Total
		case "d":
			item.Count = facet(o.Drift, string(holdfast.DriftFound))
			item.Urgent = item.Count > 0
		}
	}
}

func facet(counts []v1.FacetCount, value string) int {
	for _, one := range counts {
		if one.Value == value {
			return one.Count
		}
	}
	return 0
}

// fleetParameters select clusters, in the address of the page and in the API alike.
var fleetParameters = []string{"q", "project", "environment", "provider", "template", "phase", "waiting", "drift", "owner"}

func (v *visit) fleet() (console.View, error) {
	v.frame.Title, v.frame.Here = "Fleet", "c"
	asked := v.r.URL.Query()
	selected := url.Values{}
	for _, name := range fleetParameters {
		if value := strings.TrimSpace(asked.Get(name)); value != "" {
			selected.Set(name, value)
		}
	}
	var o v1.Overview
	if err := v.Get("/overview", selected, &o); err != nil {
		return nil, err
	}
	v.tally(o)
	part := url.Values{"limit": {strconv.Itoa(clustersOnPage)}}
	for name := range selected {
		part.Set(name, selected.Get(name))
	}
	if cursor := asked.Get("cursor"); cursor != "" {
		part.Set("cursor", cursor)
	}
	clusters, err := call.List[v1.ClusterSummary](v.API, "/clusters", part)
	if err != nil {
		return nil, err
	}
	view := console.FleetView{
		Total: o.Total, Matching: o.Matching, Projects: len(o.Projects), Filtered: len(selected) > 0 || asked.Get("cursor") != "",
		Query: selected.Get("q"), Phases: phases(o.Phases, selected), Filters: filters(o, selected), Clear: "/",
		Clusters: clusterRows(clusters.Items), Pager: pager("/", selected, asked.Get("cursor"), clusters.Next, "clusters"),
		Empty: noClusters(o, len(selected) > 0),
	}
	if v.visitor().MayAnywhere(access.Propose) {
		view.New = words.With(NewPath, call.Query("project", selected.Get("project"), "environment", selected.Get("environment")))
	}
	for _, name := range fleetParameters[1:] {
		if value := selected.Get(name); value != "" {
			view.Hidden = append(view.Hidden, console.Hidden{Name: name, Value: value})
		}
	}
	if !view.Filtered {
		err = v.overview(&view, o)
	}
	return view, err
}

// overview fills in what needs somebody, and what runs.
func (v *visit) overview(view *console.FleetView, o v1.Overview) error {
	view.Needs, view.NeedsAll = needs(o), o.NeedsTotal
	if drifted := facet(o.Drift, string(holdfast.DriftFound)); drifted > 0 {
		view.NeedsAll++
	}
	running, err := call.List[v1.Run](v.API, "/runs", call.Query("status", "running", "limit", "100"))
	if err != nil {
		return err
	}
	view.RunsAll = strconv.Itoa(len(running.Items))
	if running.Next != "" {
		view.RunsAll += "+"
	}
	for _, r := range running.Items[:min(len(running.Items), runsOnPage)] {
		what := strings.ToLower(kindWord(r.Kind, r.Destroy))
		for _, more := range []string{r.Step, r.PullRequest.String()} {
			if more != "" && more != what {
				what += " · " + more
			}
		}
		view.Running = append(view.Running, console.RunningRun{
			ID: r.ID, Cluster: r.Cluster, Href: words.RunHref(r.ID), What: what, Since: begun(r),
		})
	}
	return nil
}

// begun is when a run was claimed first, or made.
func begun(r v1.Run) time.Time {
	if r.StartedAt.IsZero() {
		return r.CreatedAt
	}
	return r.StartedAt
}

// needs are what waits for a person: clusters, and the drifted ones together.
func needs(o v1.Overview) []console.Need {
	var out []console.Need
	for _, n := range o.Needs {
		need := console.Need{
			ID: "need-" + n.Cluster, State: needState(n), What: n.Cluster + " " + predicate(n), Href: words.ClusterHref(n.Cluster), Since: n.Since,
			Why: words.Sentence(needWhy(n)), Action: console.Action{Label: "Open", Href: words.ClusterHref(n.Cluster)},
		}
		if n.Run != "" {
			need.Action = console.Action{Label: "Review plan", Href: words.RunHref(n.Run)}
		}
		out = append(out, need)
	}
	if drifted := facet(o.Drift, string(holdfast.DriftFound)); drifted > 0 {
		is := " clusters drifted"
		if drifted == 1 {
			is = " cluster drifted"
		}
		out = append(out[:min(len(out), needsOnPage-1)], console.Need{
			ID: "need-drift", State: console.State{Icon: "drift", Tone: "warn"}, What: strconv.Itoa(drifted) + is, Href: "/drift",
			Why: "The infrastructure differs from the last apply", Action: console.Action{Label: "Compare", Href: "/drift"},
		})
	}
	return out[:min(len(out), needsOnPage)]
}

func needState(n v1.Need) console.State {
	if n.Phase == holdfast.PhaseFailed || n.Reason.Info().Failed {
		return console.State{Icon: "bad", Tone: "bad"}
	}
	if n.Phase == holdfast.PhaseDeleting {
		return console.State{Icon: "trash", Tone: "violet"}
	}
	return console.State{Icon: "guard", Tone: "warn"}
}

// predicate is what a headline says of a cluster that waits.
func predicate(n v1.Need) string {
	switch one := n.Reason.Info().One; {
	case n.Reason == "":
		return "has failed"
	case one != "":
		return words.Unquoted(one)
	default:
		return "waits: " + string(n.Reason)
	}
}

func needWhy(n v1.Need) string {
	if n.Detail != "" {
		return words.Unquoted(n.Detail)
	}
	return words.Unquoted(n.Reason.Info().Words)
}

// phaseOrder is how phases follow one another in the bar.
var phaseOrder = []holdfast.Phase{
	holdfast.PhaseActive, holdfast.PhaseUpdating, holdfast.PhaseProvisioning, holdfast.PhaseConfiguring, holdfast.PhasePending,
	holdfast.PhaseDeleting, holdfast.PhaseFailed,
}

func phases(counts []v1.FacetCount, selected url.Values) []console.Option {
	var out []console.Option
	for _, phase := range phaseOrder {
		n, on := facet(counts, string(phase)), selected.Get("phase") == string(phase)
		if n == 0 && !on {
			continue
		}
		href := words.With("/", set(selected, "phase", string(phase)))
		if on {
			href = words.With("/", set(selected, "phase", ""))
		}
		out = append(out, console.Option{Label: string(phase), Count: n, Href: href, On: on})
	}
	return out
}

func filters(o v1.Overview, selected url.Values) []console.Filter {
	var out []console.Filter
	for _, f := range []struct {
		label, name string
		counts      []v1.FacetCount
	}{
		{"Project", "project", o.Projects},
		{"Environment", "environment", o.Environments},
		{"Provider", "provider", o.Providers},
		{"Template", "template", o.Templates},
		{"Drift", "drift", o.Drift},
	} {
		filter := console.Filter{Label: f.label, Value: selected.Get(f.name), Clear: words.With("/", set(selected, f.name, ""))}
		for _, one := range f.counts[:min(len(f.counts), facetsInMenu)] {
			filter.Options = append(filter.Options, console.Option{
				Label: one.Value, Count: one.Count, Href: words.With("/", set(selected, f.name, one.Value)), On: filter.Value == one.Value,
			})
		}
		out = append(out, filter)
	}
	if waiting := selected.Get("waiting"); waiting != "" {
		value := waiting
		if value == "*" {
			value = "any reason"
		}
		out = append(out, console.Filter{Label: "Waiting", Value: value, Clear: words.With("/", set(selected, "waiting", ""))})
	}
	return slices.DeleteFunc(out, func(f console.Filter) bool { return f.Value == "" && len(f.Options) == 0 })
}

func clusterRows(clusters []v1.ClusterSummary) []console.ClusterRow {
	rows := make([]console.ClusterRow, len(clusters))
	for i, c := range clusters {
		row := console.ClusterRow{
			Name: c.Name, Href: words.ClusterHref(c.Name), Project: c.Project, Environment: c.Environment, Provider: c.Provider, Template: c.Template,
			Phase: phaseState(c.Phase), Drift: driftState(c.Drift), UpdatedAt: c.UpdatedAt,
		}
		for _, flag := range []struct {
			on    bool
			state console.State
		}{
			{c.Suspended, console.State{Word: "Suspended", Icon: "pause", Tone: "warn"}},
			{c.Invalid, console.State{Word: "Invalid", Icon: "alert", Tone: "bad"}},
			{c.Unwatched, console.State{Word: "Unwatched", Icon: "skip", Tone: "warn"}},
		} {
			if flag.on {
				row.Flags = append(row.Flags, flag.state)
			}
		}
		rows[i] = row
	}
	return rows
}

// pager leads to the first part of a list, and to the next one.
func pager(path string, q url.Values, cursor, next, noun string) console.Pager {
	p := console.Pager{Noun: noun}
	if cursor != "" {
		p.First = words.With(path, set(q, "cursor", ""))
	}
	if next != "" {
		p.Next = words.With(path, set(q, "cursor", next))
	}
	return p
}

func noClusters(o v1.Overview, filtered bool) console.Empty {
	if o.Total == 0 {
		return console.Empty{Why: "No clusters yet.", Next: "Add a document to a watched repository: its cluster appears here within a minute."}
	}
	if filtered {
		return console.Empty{Why: "No cluster matches.", Action: console.Action{Label: "Clear filters", Href: "/"}}
	}
	return console.Empty{Why: "No more clusters.", Action: console.Action{Label: "First page", Href: "/"}}
}
