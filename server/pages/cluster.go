package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

// tabsOfCluster are the parts of a cluster's page, each with its own address.
var tabsOfCluster = []struct{ key, label string }{
	{"overview", "Overview"}, {"drift", "Drift"}, {"resources", "Resources"}, {"outputs", "Outputs"}, {"runs", "Runs"}, {"history", "History and audit"},
}

func (v *visit) cluster() (console.View, error) {
	name := v.r.PathValue("name")
	var c v1.Cluster
	if err := v.Get("/clusters/"+url.PathEscape(name), nil, &c); err != nil {
		return nil, err
	}
	v.frame.Title, v.frame.Here = c.Name, "c"
	v.frame.Crumbs = []console.Link{{Text: "Fleet", Href: "/"}}
	doc := words.DocumentOf(c)
	if doc.Project != "" {
		v.frame.Crumbs = append(v.frame.Crumbs, console.Link{Text: doc.Project, Href: words.With("/", url.Values{"project": {doc.Project}})})
	}
	v.frame.Crumbs = append(v.frame.Crumbs, console.Link{Text: c.Name})
	planned, err := v.visitor().PlannedRun(c)
	if err != nil {
		return nil, err
	}
	view := console.ClusterView{
		Name: c.Name, Phase: phaseState(c.Phase), Summary: clusterSummary(c, doc), Alerts: v.clusterAlerts(c, doc.Project, planned),
		Acts: v.visitor().ClusterActs(c, doc.Project, planned), Tab: "overview",
	}
	if v.visitor().May(access.Propose, doc.Project) && c.Deletion == nil && c.Desired.Document.Template != nil && c.Desired.Document.Template.Version != "" {
		view.Change = words.ClusterHref(c.Name) + "/change"
	}
	for _, tab := range tabsOfCluster {
		if tab.key == v.r.URL.Query().Get("tab") {
			view.Tab = tab.key
		}
	}
	for _, tab := range tabsOfCluster {
		href := words.With(words.ClusterHref(c.Name), url.Values{"tab": {tab.key}})
		if tab.key == "overview" {
			href = words.ClusterHref(c.Name)
		}
		option := console.Option{Label: tab.label, Href: href, On: tab.key == view.Tab}
		if tab.key == "drift" {
			option.Count = c.Drift.Counts.Drifted()
		}
		view.Tabs = append(view.Tabs, option)
	}
	fill := map[string]func(*console.ClusterView, v1.Cluster) error{
		"overview": v.clusterOverview, "drift": v.clusterDrift, "resources": v.clusterResources, "outputs": v.clusterOutputs,
		"runs": v.clusterRuns, "history": v.clusterHistory,
	}[view.Tab]
	return view, fill(&view, c)
}

func clusterSummary(c v1.Cluster, doc v1.Document) []console.Fact {
	var facts []console.Fact
	for _, f := range []console.Fact{
		{Name: "environment", Value: doc.Environment, Href: words.With("/", url.Values{"environment": {doc.Environment}})},
		{Name: "provider", Value: strings.TrimSpace(doc.Provider + " " + doc.Region)},
		{Name: "template", Value: templateOf(doc), Mono: true},
		{Name: "repository", Value: c.Owner},
	} {
		if f.Value != "" {
			facts = append(facts, f)
		}
	}
	return append(facts, console.Fact{Name: "changed", At: c.UpdatedAt})
}

func templateOf(doc v1.Document) string {
	switch {
	case doc.Template != nil && doc.Template.Path != "":
		return doc.Template.Path
	case doc.Template != nil:
		return doc.Template.Name + "@" + doc.Template.Version
	case doc.Module != nil:
		return doc.Module.Path
	default:
		return ""
	}
}

// clusterAlerts say why a cluster waits, and the one thing that helps.
func (v *visit) clusterAlerts(c v1.Cluster, project string, planned v1.Run) []console.Alert {
	var alerts []console.Alert
	if d := c.Deletion; d != nil {
		alert := console.Alert{Tone: "info", Title: words.Sentence(reasonWords(d.Reason, ""))}
		if d.To != "" {
			alert.Why, alert.Action = "It was renamed to "+d.To+".", console.Action{Label: "Open", Href: words.ClusterHref(d.To)}
		}
		if d.Run != "" {
			alert.Action = console.Action{Label: "See the destroy", Href: words.RunHref(d.Run)}
		}
		alerts = append(alerts, alert)
	}
	if c.Unwatched {
		alerts = append(alerts, console.Alert{
			Tone: "warn", Title: "This cluster is not managed", Why: "Its repository, " + c.Owner + ", is no longer in the configuration.",
			Hint: "Add the repository to holdfast.yaml again, or transfer the cluster.",
		})
	}
	for _, fault := range c.Desired.Faults {
		alerts = append(alerts, console.Alert{Tone: "bad", Title: words.Sentence(fault.Message), Why: faultPlace(fault), Hint: words.Sentence(words.Unquoted(fault.Hint))})
	}
	if c.Suspended {
		why := "by " + cmp.Or(c.SuspendedBy, "somebody")
		if c.SuspendReason != "" {
			why += ": " + c.SuspendReason
		}
		alert := console.Alert{Tone: "warn", Title: "Suspended: no runs start", Why: words.Sentence(why), Command: "holdfast resume " + c.Name}
		if v.visitor().May(access.Suspend, project) {
			alert.Acts = []console.Act{v.visitor().Button("Resume", "resume", "cluster", c.Name)}
		}
		alerts = append(alerts, alert)
	}
	if c.Waiting != "" && c.Waiting != holdfast.ReasonSuspended && len(c.Desired.Faults) == 0 {
		alert := waitingAlert(c)
		alert.Acts = v.visitor().Helps(c, project, planned)
		alerts = append(alerts, alert)
	}
	if m := c.MayExist; m != nil {
		alerts = append(alerts, console.Alert{Tone: "bad", Title: "Resources may exist that are in no state", Why: "An apply died while it created them.", Items: m.Addresses})
	}
	return alerts
}

func faultPlace(f v1.Fault) string {
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return f.File
}

func waitingAlert(c v1.Cluster) console.Alert {
	info := c.Waiting.Info()
	alert := console.Alert{Tone: "info", Title: words.Sentence(words.Unquoted(info.Words)), Why: words.Sentence(words.Unquoted(c.WaitingDetail)), Hint: words.Sentence(words.Unquoted(info.Hint))}
	if info.Effect == holdfast.Blocks {
		alert.Tone = "warn"
		alert.Command = c.Waiting.Command(c.Name)
	}
	if info.Failed {
		alert.Tone = "bad"
	}
	if c.PlannedRun != "" {
		alert.Action = console.Action{Label: "Review plan", Href: words.RunHref(c.PlannedRun)}
	}
	return alert
}

// conditionWords are conditions in words. For Drifted and Blocked, True is the bad case.
var conditionWords = map[holdfast.ConditionType]struct{ good, bad string }{
	holdfast.ConditionCommitPlanned: {"Desired state planned", "Desired state not planned"},
	holdfast.ConditionPlanUpToDate:  {"Plan up to date", "Plan outdated"},
	holdfast.ConditionApplyUpToDate: {"Applied as desired", "Not applied as desired"},
	holdfast.ConditionDrifted:       {"No drift", "Drifted"},
	holdfast.ConditionBlocked:       {"Nothing blocks it", "Blocked"},
	holdfast.ConditionHealthy:       {"Healthy", "Not healthy"},
}

func conditionState(kind holdfast.ConditionType, status holdfast.ConditionStatus) (state console.State, words string) {
	good := status == holdfast.ConditionTrue
	if kind == holdfast.ConditionDrifted || kind == holdfast.ConditionBlocked {
		good = status == holdfast.ConditionFalse
	}
	named := conditionWords[kind]
	switch {
	case status == holdfast.ConditionUnknown || status == "":
		return console.State{Word: "unknown", Icon: "todo", Tone: "faint"}, cmp.Or(named.good, string(kind)) + ": not known"
	case good:
		return console.State{Word: "good", Icon: "ok"}, cmp.Or(named.good, string(kind))
	default:
		return console.State{Word: "not good", Icon: "guard", Tone: "warn"}, cmp.Or(named.bad, string(kind)+" is "+string(status))
	}
}

func (v *visit) clusterOverview(view *console.ClusterView, c v1.Cluster) error {
	for _, condition := range c.Conditions {
		if condition.Type == holdfast.ConditionHealthy && condition.Status == holdfast.ConditionUnknown {
			continue // nothing looks at that yet
		}
		step := console.TimeStep{Since: condition.Since}
		step.State, step.What = conditionState(condition.Type, condition.Status)
		step.Why = cmp.Or(words.Unquoted(condition.Message), words.Unquoted(condition.Reason.Info().Words))
		view.Time = append(view.Time, step)
	}
	doc := words.DocumentOf(c)
	view.Facts, view.Applied, view.Variables = documentFacts(c, doc), appliedFacts(c), variables(doc.Variables)
	runs, err := call.List[v1.Run](v.API, "/runs", call.Query("cluster", c.Name, "limit", "6"))
	if err != nil {
		return err
	}
	view.Runs.Items = runRows(runs.Items, v.now)
	var family v1.Family
	if err := v.Get("/clusters/"+url.PathEscape(c.Name)+"/family", nil, &family); err != nil {
		return err
	}
	view.Family = console.Family{Self: c.Name, Parents: nodes(family.Parents, 0), Dependents: nodes(family.Dependents, 0)}
	return nil
}

// nodes are relations in the order in which they are drawn: each before its own.
func nodes(relations []v1.Relation, depth int) []console.Node {
	var out []console.Node
	for _, r := range relations {
		node := console.Node{Name: r.Name, Href: words.ClusterHref(r.Name), State: phaseState(r.Phase), Depth: min(depth, 5)}
		switch {
		case r.Phase == "":
			node.State = console.State{Word: "does not exist", Icon: "alert", Tone: "bad"}
		case r.Failed:
			node.State = console.State{Word: "failed", Icon: "bad", Tone: "bad"}
		}
		out = append(out, node)
		out = append(out, nodes(r.Relations, depth+1)...)
	}
	return out
}

func documentFacts(c v1.Cluster, doc v1.Document) []console.Fact {
	where := doc.Path
	if doc.Line > 1 {
		where = fmt.Sprintf("%s:%d", doc.Path, doc.Line)
	}
	facts := []console.Fact{
		{Name: "File", Value: where, Mono: true},
		{Name: "Revision", Value: c.Desired.Revision.Short(), Mono: true},
		{Name: "Apply", Value: applyWords(doc.Apply)},
		{Name: "On drift", Value: cmp.Or(doc.Drift.OnDrift, "report")},
		{Name: "Drift check", Value: doc.Drift.Schedule, Mono: true},
		{Name: "Engine", Value: strings.TrimSpace(doc.Engine.Name + " " + doc.Engine.Version)},
	}
	if doc.Deletion.Protected {
		facts = append(facts, console.Fact{Name: "Deletion", Value: "protected"})
	}
	if len(doc.Labels) > 0 {
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(doc.Labels)) {
			labels = append(labels, key+"="+doc.Labels[key])
		}
		facts = append(facts, console.Fact{Name: "Labels", Tags: labels})
	}
	return slices.DeleteFunc(facts, func(f console.Fact) bool { return f.Value == "" && len(f.Tags) == 0 })
}

func applyWords(a v1.ApplySettings) string {
	words := "when merged"
	if !a.OnMerge {
		words = "by command"
	}
	if len(a.Requires) > 0 {
		words += ", requires " + strings.Join(a.Requires, " and ")
	}
	if n := len(a.Windows); n > 0 {
		words += ", " + console.Plural(n, "window")
	}
	return words
}

func appliedFacts(c v1.Cluster) []console.Fact {
	a := c.Applied
	if a.Run == "" && a.Revision == "" {
		return nil
	}
	facts := []console.Fact{
		{Name: "When", At: a.At},
		{Name: "Run", Value: a.Run, Href: words.RunHref(a.Run), Mono: true},
		{Name: "Revision", Value: a.Revision.Short(), Mono: true},
		{Name: "Template", Value: a.Template, Mono: true},
		{Name: "Engine", Value: strings.TrimSpace(a.EngineName + " " + a.EngineVersion)},
		{Name: "State", Value: a.StateLocation, Mono: true},
		{Name: "Endpoint", Value: a.Endpoint, Mono: true},
	}
	if c.StateSerial > 0 {
		facts = append(facts, console.Fact{Name: "Serial", Value: fmt.Sprint(c.StateSerial)})
	}
	if a.NodeCount > 0 {
		facts = append(facts, console.Fact{Name: "Nodes", Value: fmt.Sprint(a.NodeCount)})
	}
	return slices.DeleteFunc(facts, func(f console.Fact) bool { return f.Value == "" && f.At.IsZero() })
}

func variables(values map[string]any) []console.Attribute {
	var out []console.Attribute
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text, ok := values[name].(string)
		if !ok {
			data, _ := json.Marshal(values[name]) // it came from JSON
			text = string(data)
		}
		out = append(out, console.Attribute{Path: name, Value: text})
	}
	return out
}

func (v *visit) clusterDrift(view *console.ClusterView, c v1.Cluster) error {
	view.Drift = console.DriftView{State: driftState(c.Drift.Status), CheckedAt: c.Drift.CheckedAt, Due: c.Drift.Due, RunHref: words.RunHref(c.Drift.Run)}
	if view.Drift.State.Word == "" {
		view.Drift.State.Word = "not checked"
	}
	var found v1.DriftReport
	err := v.Get("/clusters/"+url.PathEscape(c.Name)+"/drift", nil, &found)
	switch {
	case call.Is(err, http.StatusForbidden) || call.Is(err, http.StatusNotFound):
		view.Drift.Summary = words.Sentence(err.Error()) + "."
		return nil
	case err != nil:
		return err
	}
	switch {
	case found.Failure != nil:
		view.Alerts = append(view.Alerts, console.Alert{
			Tone: "bad", Title: "The last drift check failed", Why: found.Failure.Summary, Hint: words.Sentence(words.Unquoted(found.Failure.Hint)), Output: found.Failure.Detail,
			Action: console.Action{Label: "See the run", Href: words.RunHref(found.State.Run)},
		})
		view.Drift.Summary = "It is not known whether the cluster has drifted."
	case found.State.Status == "":
		view.Drift.Summary = "Not checked yet: the first check follows the first apply."
	default:
		view.Drift.Summary = "No drift: the infrastructure matches the last apply."
	}
	for i, item := range found.Items {
		view.Drift.Changes = append(view.Drift.Changes, driftChange(item, fmt.Sprintf("drift-%d", i)))
	}
	return nil
}

func driftChange(item v1.DriftItem, id string) console.Change {
	change := console.Change{ID: id, Glyph: "~", Word: "changed", Address: item.Address, Lines: attributeLines(item.Attributes), Open: item.Ignored == "", Why: "changed outside"}
	switch item.Kind {
	case holdfast.DriftGone:
		change.Glyph, change.Tone, change.Word, change.Why = "−", "del", "gone", "deleted outside"
	case holdfast.DriftInput:
		change.Why = "an input has changed"
	case holdfast.DriftChanged:
	}
	if item.Action != "" {
		change.Notes = append(change.Notes, "An apply would "+looks[item.Action].word+" it")
	}
	if item.Ignored != "" {
		change.Why = "ignored: " + item.Ignored
	}
	return change
}

func (v *visit) clusterResources(view *console.ClusterView, c v1.Cluster) error {
	q := v.r.URL.Query()
	view.Resources.Query = q.Get("address")
	part, err := call.List[v1.Resource](v.API, "/resources", call.Query("cluster", c.Name, "address", q.Get("address"), "cursor", q.Get("cursor"), "limit", "100"))
	if err != nil {
		return err
	}
	for _, r := range part.Items {
		view.Resources.Items = append(view.Resources.Items, console.ResourceRow{Address: r.Address, Type: r.Type, ID: r.ID, RunHref: words.RunHref(r.Run), ChangedAt: r.ChangedAt})
	}
	view.Resources.Pager = pager(words.ClusterHref(c.Name), url.Values{"tab": {"resources"}, "address": {q.Get("address")}}, q.Get("cursor"), part.Next, "resources")
	return nil
}

func (v *visit) clusterOutputs(view *console.ClusterView, c v1.Cluster) error {
	part, err := call.List[v1.Output](v.API, "/clusters/"+url.PathEscape(c.Name)+"/outputs", nil)
	if call.Is(err, http.StatusForbidden) || call.Is(err, http.StatusNotFound) {
		return nil
	}
	for _, o := range part.Items {
		view.Outputs = append(view.Outputs, console.Output{Name: o.Name, Value: value(o.Value), Secret: o.Sensitive || len(o.Value) == 0 && o.Omitted == 0, Omitted: o.Omitted})
	}
	return err
}

func (v *visit) clusterRuns(view *console.ClusterView, c v1.Cluster) error {
	cursor := v.r.URL.Query().Get("cursor")
	part, err := call.List[v1.Run](v.API, "/runs", call.Query("cluster", c.Name, "cursor", cursor, "limit", "50"))
	if err != nil {
		return err
	}
	view.Runs = console.RunList{Items: runRows(part.Items, v.now), Pager: pager(words.ClusterHref(c.Name), url.Values{"tab": {"runs"}}, cursor, part.Next, "runs")}
	return nil
}

func (v *visit) clusterHistory(view *console.ClusterView, c v1.Cluster) error {
	part, err := call.List[v1.Transition](v.API, "/clusters/"+url.PathEscape(c.Name)+"/history", nil)
	if err != nil {
		return err
	}
	for _, t := range part.Items {
		view.History = append(view.History, moment(t))
	}
	entries, err := call.List[v1.AuditEntry](v.API, "/audit", call.Query("object", c.Name))
	if call.Is(err, http.StatusForbidden) || call.Is(err, http.StatusNotFound) {
		return nil // the trail is of all projects
	}
	view.Audit = auditRows(entries.Items)
	return err
}

func moment(t v1.Transition) console.Moment {
	m := console.Moment{Why: reasonWords(t.Reason, ""), RunHref: words.RunHref(t.Run), At: t.At, From: t.From, To: t.To}
	if t.What == "phase" {
		m.IsPhase, m.State, m.What = true, phaseState(holdfast.Phase(t.To)), t.To
		m.State.Spin = false // it is past
		return m
	}
	m.State, m.What = conditionState(holdfast.ConditionType(t.What), holdfast.ConditionStatus(t.To))
	return m
}
