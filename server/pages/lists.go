package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// allProjects is why a page is empty for whoever may see some projects only.
const allProjects = "This page is about all projects, and you can see only some."

func (v *visit) queue() (console.View, error) {
	v.frame.Title, v.frame.Here = "Runs and queue", "q"
	view := console.QueueView{}
	running, err := call.List[v1.Run](v.API, "/runs", call.Query("status", "running", "limit", "100"))
	if err != nil {
		return nil, err
	}
	view.Running = runRows(running.Items, v.now)
	for i := range view.Running {
		view.Running[i].ID = "now-" + view.Running[i].ID
	}
	q := v.r.URL.Query()
	waiting, err := call.List[v1.QueuedRun](v.API, "/queue", call.Query("limit", "50", "cursor", q.Get("queued")))
	if err != nil {
		return nil, err
	}
	for _, r := range waiting.Items {
		view.Waiting = append(view.Waiting, queuedRow(r))
	}
	view.Pager = console.Pager{Noun: "waiting runs"}
	if waiting.Next != "" {
		view.Pager.Next = words.With("/queue", url.Values{"queued": {waiting.Next}})
	}
	if q.Get("queued") != "" {
		view.Pager.First = "/queue"
	}
	if err := v.recent(&view, q); err != nil {
		return nil, err
	}
	return view, v.agents(&view)
}

// kindsOfRuns are what the list of runs can be narrowed to.
var kindsOfRuns = []struct{ label, name, value string }{
	{"All", "", ""}, {"Failed", "status", "errored"}, {"Plans", "kind", "plan"}, {"Applies", "kind", "apply"}, {"Drift checks", "kind", "drift"}, {"Destroys", "kind", "destroy"},
}

func (v *visit) recent(view *console.QueueView, q url.Values) error {
	ask, kept := url.Values{"limit": {"50"}}, url.Values{}
	for _, name := range []string{"status", "kind"} {
		for _, one := range kindsOfRuns {
			if one.name == name && q.Get(name) == one.value {
				ask.Set(name, one.value)
				kept.Set(name, one.value)
			}
		}
	}
	for _, one := range kindsOfRuns {
		to := url.Values{}
		if one.name != "" {
			to.Set(one.name, one.value)
		}
		on := one.name == "" && len(kept) == 0 || one.name != "" && kept.Get(one.name) == one.value
		view.Filters = append(view.Filters, console.Option{Label: one.label, Href: words.With("/queue", to), On: on})
	}
	if cursor := q.Get("cursor"); cursor != "" {
		ask.Set("cursor", cursor)
	}
	runs, err := call.List[v1.Run](v.API, "/runs", ask)
	if err != nil {
		return err
	}
	view.Recent = console.RunList{Items: runRows(runs.Items, v.now), Pager: pager("/queue", kept, q.Get("cursor"), runs.Next, "runs")}
	return nil
}

func queuedRow(r v1.QueuedRun) console.QueuedRow {
	return console.QueuedRow{
		Position: r.Position, Kind: kindWord(r.Kind, false), Href: words.RunHref(r.Run), Cluster: r.Cluster, ClusterHref: words.ClusterHref(r.Cluster), Project: r.Project,
		Runner: r.Runner, Ahead: aheadWords(r.Ahead), Held: cmp.Or(words.Unquoted(r.Detail), reasonWords(r.Reason, "")), Since: r.CreatedAt,
	}
}

func aheadWords(a v1.Ahead) string {
	var words []string
	for _, one := range []struct {
		n    int
		what string
	}{{a.Priority, "of a kind with priority"}, {a.Own, "older ones of its own"}, {a.Others, "of others"}, {a.Overdue, "overdue"}} {
		if one.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	if len(words) == 0 {
		return "next"
	}
	return strings.Join(words, ", ")
}

func (v *visit) agents(view *console.QueueView) error {
	agents, err := call.List[v1.Agent](v.API, "/agents", nil)
	if call.Is(err, http.StatusForbidden) || call.Is(err, http.StatusNotFound) {
		view.NoAccess = allProjects
		return nil
	} else if err != nil {
		return err
	}
	for _, a := range agents.Items {
		view.Agents = append(view.Agents, agentRow(a))
	}
	runners, err := call.List[v1.Runner](v.API, "/runners", nil)
	if call.Is(err, http.StatusNotFound) || call.Is(err, http.StatusForbidden) {
		return nil
	}
	for _, r := range runners.Items {
		row := console.RunnerRow{Name: r.Name, Type: string(r.Type), Agents: r.Agents, Environments: r.Environments, State: console.State{Word: "in force", Icon: "ok"}}
		if len(r.Faults) > 0 {
			row.State, row.Why = console.State{Word: "faulty document", Icon: "alert", Tone: "bad"}, r.Faults[0].Message
		}
		view.Runners = append(view.Runners, row)
	}
	return err
}

func agentRow(a v1.Agent) console.AgentRow {
	row := console.AgentRow{
		ID: a.ID, Runner: cmp.Or(a.Runner, "local"), Host: a.Host, Refused: a.Refused, Version: a.Version, Platform: a.Platform, SeenAt: a.SeenAt,
		State: console.State{Word: "idle", Icon: "ok"},
	}
	if len(a.Runs) > 0 {
		row.State = console.State{Word: "working", Icon: "run", Tone: "info", Spin: true}
	}
	switch {
	case !a.Living:
		row.State = console.State{Word: "gone", Icon: "bad", Tone: "muted"}
	case a.Refused != "":
		row.State = console.State{Word: "refused", Icon: "alert", Tone: "bad"}
	}
	kinds := make([]string, len(a.Kinds))
	for i, kind := range a.Kinds {
		kinds[i] = string(kind)
	}
	slices.Sort(kinds)
	row.Kinds = cmp.Or(strings.Join(kinds, ", "), "all kinds")
	switch isolation := cmp.Or(a.Isolation, "none"); isolation {
	case "none":
		row.Isolation = console.State{Word: "none", Icon: "alert", Tone: "warn"}
	case "unavailable":
		row.Isolation = console.State{Word: "unavailable", Icon: "bad", Tone: "bad"}
	default:
		row.Isolation = console.State{Word: isolation, Icon: "ok"}
	}
	for _, run := range a.Runs {
		row.Runs = append(row.Runs, console.Link{Text: run, Href: words.RunHref(run)})
	}
	return row
}

func (v *visit) driftList() (console.View, error) {
	v.frame.Title, v.frame.Here = "Drift", "d"
	var o v1.Overview
	if err := v.Get("/overview", nil, &o); err != nil {
		return nil, err
	}
	v.tally(o)
	q := v.r.URL.Query()
	status := q.Get("drift")
	if !slices.Contains([]string{string(holdfast.DriftFound), string(holdfast.DriftFailed)}, status) {
		status = ""
	}
	lines, err := call.List[v1.DriftLine](v.API, "/drift", call.Query("drift", status, "cursor", q.Get("cursor"), "limit", "50"))
	if err != nil {
		return nil, err
	}
	kept := call.Query("drift", status)
	view := console.DriftListView{
		Drifted: facet(o.Drift, string(holdfast.DriftFound)), Failed: facet(o.Drift, string(holdfast.DriftFailed)), Clean: facet(o.Drift, string(holdfast.DriftNone)),
		Pager: pager("/drift", kept, q.Get("cursor"), lines.Next, "clusters"),
	}
	view.Never = max(0, o.Total-view.Drifted-view.Failed-view.Clean)
	for _, one := range []struct{ label, value string }{{"All", ""}, {"Drifted", string(holdfast.DriftFound)}, {"Check failed", string(holdfast.DriftFailed)}} {
		view.Options = append(view.Options, console.Option{Label: one.label, Href: words.With("/drift", call.Query("drift", one.value)), On: status == one.value})
	}
	for _, line := range lines.Items {
		view.Items = append(view.Items, driftRow(line))
	}
	return view, nil
}

func driftRow(l v1.DriftLine) console.DriftRow {
	row := console.DriftRow{
		Cluster: l.Cluster, Href: words.With(words.ClusterHref(l.Cluster), url.Values{"tab": {"drift"}}), Project: l.Project, Environment: l.Environment, State: driftState(l.State.Status),
		Causes: l.State.Causes[:min(len(l.State.Causes), 4)], Policy: l.OnDrift, Since: l.State.Since, CheckedAt: l.State.CheckedAt, Issue: l.Issue,
	}
	var words []string
	for _, one := range []struct {
		n    int
		what string
	}{{l.State.Counts.Changed, "changed"}, {l.State.Counts.Gone, "gone"}, {l.State.Counts.Input, "changed inputs"}, {l.State.Counts.Ignored, "ignored"}} {
		if one.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	row.What = strings.Join(words, ", ")
	if l.State.Status == holdfast.DriftFailed {
		row.What = l.State.Detail
	}
	return row
}

func (v *visit) templates() (console.View, error) {
	v.frame.Title, v.frame.Here = "Templates", "t"
	found, err := call.List[v1.Template](v.API, "/templates", call.Query("limit", "1000"))
	if call.Is(err, http.StatusForbidden) || call.Is(err, http.StatusNotFound) {
		return console.TemplatesView{NoAccess: allProjects}, nil
	} else if err != nil {
		return nil, err
	}
	view := console.TemplatesView{}
	for _, t := range found.Items {
		row := console.TemplateRow{Name: t.Name, Href: "/templates/" + url.PathEscape(t.Name), Repo: t.Repo, Versions: len(t.Versions), Users: len(t.Users), Trouble: t.Trouble}
		if len(t.Versions) > 0 {
			row.Newest = t.Versions[0].Version
		}
		proposals := map[int]bool{}
		for _, u := range t.Users {
			if u.Behind > 0 {
				row.Behind++
			}
			if u.Proposed > 0 {
				proposals[u.Proposed] = true
			}
		}
		row.Proposed = len(proposals)
		view.Items = append(view.Items, row)
	}
	return view, nil
}

// usersOnPage is how many clusters the page of a template lists.
const usersOnPage = 200

func (v *visit) template() (console.View, error) {
	var t v1.Template
	if err := v.Get("/templates/"+url.PathEscape(v.r.PathValue("name")), nil, &t); err != nil {
		return nil, err
	}
	v.frame.Title, v.frame.Here = t.Name, "t"
	v.frame.Crumbs = []console.Link{{Text: "Templates", Href: "/templates"}, {Text: t.Name}}
	view := console.TemplateView{Name: t.Name, Facts: []console.Fact{{Name: "repository", Value: t.Repo}, {Name: "folder", Value: t.Dir, Mono: true}, {Name: "used by", Value: console.Plural(len(t.Users), "cluster")}}}
	if t.Prepared != "" {
		view.Facts = append(view.Facts, console.Fact{Name: "prepared", Value: t.Prepared, Mono: true})
	}
	if t.Trouble != "" {
		view.Alerts = append(view.Alerts, console.Alert{Tone: "warn", Title: "It cannot be used", Why: words.Sentence(words.Unquoted(t.Trouble))})
	}
	for _, version := range t.Versions {
		row := console.VersionRow{Version: version.Version, Tag: version.Tag, Revision: string(version.Revision), Clusters: version.Clusters, Trouble: words.Unquoted(version.Unusable)}
		if len(t.Users) > 0 {
			row.Share = version.Clusters * 100 / len(t.Users)
		}
		if version.Clusters > 0 {
			row.Href = words.With("/", url.Values{"template": {t.Name + "@" + version.Version}})
		}
		if version.MovedTo != "" {
			row.Trouble = "refused: its tag was moved"
		}
		view.Versions = append(view.Versions, row)
	}
	for _, u := range t.Users[:min(len(t.Users), usersOnPage)] {
		row := console.UserRow{Cluster: u.Cluster, Href: words.ClusterHref(u.Cluster), Version: cmp.Or(u.Version, "a folder"), Applied: u.Applied, Behind: u.Behind, Next: u.Next, Trouble: words.Unquoted(u.Trouble)}
		if u.Proposed > 0 {
			ref := v1.PullRequestRef{Repo: u.Owner, Number: u.Proposed}
			row.Proposal = console.Link{Text: "proposed in #" + strconv.Itoa(u.Proposed), Href: words.PullRequestHref(ref)}
		}
		view.Users = append(view.Users, row)
	}
	view.More = max(0, len(t.Users)-usersOnPage)
	return view, nil
}

func (v *visit) audit() (console.View, error) {
	v.frame.Title, v.frame.Here = "Audit", "a"
	q := v.r.URL.Query()
	view := console.AuditView{Object: strings.TrimSpace(q.Get("object"))}
	entries, err := call.List[v1.AuditEntry](v.API, "/audit", call.Query("object", view.Object, "cursor", q.Get("cursor")))
	if call.Is(err, http.StatusForbidden) || call.Is(err, http.StatusNotFound) {
		view.NoAccess = allProjects
		return view, nil
	}
	view.Items = auditRows(entries.Items)
	view.Pager = pager("/audit", call.Query("object", view.Object), q.Get("cursor"), entries.Next, "entries")
	return view, err
}

// deliveries are the webhooks that were taken in.
func (v *visit) deliveries() (console.View, error) {
	v.frame.Title, v.frame.Here = "Deliveries", "w"
	q := v.r.URL.Query()
	view := console.DeliveriesView{}
	found, err := call.List[v1.Delivery](v.API, "/deliveries", call.Query("cursor", q.Get("cursor")))
	if call.Is(err, http.StatusForbidden) || call.Is(err, http.StatusNotFound) {
		view.NoAccess = "Webhooks are shown to administrators of all projects."
		return view, nil
	}
	for _, d := range found.Items {
		row := console.DeliveryRow{At: d.At, Event: cmp.Or(d.Event, "none"), Repo: d.Repo, About: d.About, Result: d.Result, ID: d.ID, Took: d.Duration}
		row.State = console.State{Word: strconv.Itoa(d.Status), Icon: "ok"}
		switch {
		case d.Status >= http.StatusInternalServerError:
			row.State.Icon, row.State.Tone = "bad", "bad"
		case d.Status >= http.StatusBadRequest:
			row.State.Icon, row.State.Tone = "guard", "warn"
		case d.Status != http.StatusOK:
			row.State.Icon = "skip"
		}
		view.Items = append(view.Items, row)
	}
	view.Pager = pager("/deliveries", nil, q.Get("cursor"), found.Next, "deliveries")
	return view, err
}

func auditRows(entries []v1.AuditEntry) []console.AuditRow {
	rows := make([]console.AuditRow, len(entries))
	for i, e := range entries {
		rows[i] = console.AuditRow{At: e.At, Actor: e.Actor, Action: e.Action, Object: e.Object, Detail: e.Detail}
		if e.Object != "" {
			rows[i].Href = words.With("/audit", url.Values{"object": {e.Object}})
		}
	}
	return rows
}

func (v *visit) settings() (console.View, error) {
	v.frame.Title, v.frame.Here = "Settings", "s"
	view := console.SettingsView{Who: []console.Fact{{Name: "Name", Value: v.who.Name}, {Name: "Role", Value: v.who.Role}, {Name: "Projects", Value: cmp.Or(strings.Join(v.who.Projects, ", "), "all")}}}
	var version v1.Version
	if err := v.Get("/version", nil, &version); err != nil {
		return nil, err
	}
	view.Server = []console.Fact{{Name: "Version", Value: cmp.Or(version.Version, "development"), Mono: true}, {Name: "Time", Value: version.Time.Format("2006-01-02 15:04:05 UTC")}}
	for _, one := range []struct{ label, value string }{{"As the system", ""}, {"Light", "light"}, {"Dark", "dark"}} {
		view.Themes = append(view.Themes, console.Option{Label: one.label, Href: cmp.Or(one.value, "system"), On: v.frame.Theme == one.value})
	}
	suspensions, err := call.List[v1.Suspension](v.API, "/suspensions", nil)
	if err != nil {
		return nil, err
	}
	for _, s := range suspensions.Items {
		row := console.SuspensionRow{What: "All clusters", By: s.By, Reason: s.Reason, At: s.At}
		switch {
		case s.Cluster != "":
			row.What, row.Href = s.Cluster, words.ClusterHref(s.Cluster)
		case s.Project != "":
			row.What, row.Href = "Project "+s.Project, words.With("/", url.Values{"project": {s.Project}})
		}
		view.Suspensions = append(view.Suspensions, row)
	}
	replicas, err := call.List[v1.Replica](v.API, "/replicas", nil)
	if call.Is(err, http.StatusForbidden) || call.Is(err, http.StatusNotFound) {
		return view, nil
	}
	for _, r := range replicas.Items {
		row := console.ReplicaRow{Name: r.Name, Version: r.Version, Leads: cmp.Or(strings.Join(r.Leads, ", "), "all"), State: console.State{Word: "alive", Icon: "ok"}, HeartbeatAt: r.HeartbeatAt}
		if !r.Living {
			row.State = console.State{Word: "gone", Icon: "bad", Tone: "muted"}
		}
		view.Replicas = append(view.Replicas, row)
	}
	return view, err
}
