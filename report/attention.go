package report

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// refusal says why the whole pull request is not planned.
func (w *writer) refusal() {
	pr := w.r.PullRequest
	if pr.Reason == "" || w.r.merged() {
		return
	}
	if pr.Detail != "" {
		w.line("> [!WARNING]\n> " + markdown.ShortWords(pr.Detail, 2000) + "\n")
	}
	if hint := reasonOf(pr.Reason).Hint; hint != "" {
		w.line("**What to do:** " + hint + ".\n")
	}
}

// danger is the banner for what destroys a cluster, or data, before it has
// happened.
func (w *writer) danger() {
	const most = 8
	var lines []string
	for _, o := range w.outcomes {
		if o.plan == nil || o.applied || o.stale || o.broken || o.reason == holdfast.ReasonProtected || o.reason == holdfast.ReasonMissing {
			continue
		}
		lines = append(lines, stateLines(o)...)
		if o.destroy && o.plan.HasChanges() {
			lines = append(lines, destructionLine(o))
			continue
		}
		for _, c := range o.plan.Changes {
			if !c.Destroys() || plandiff.DangerOf(c) == plandiff.DangerNone {
				continue
			}
			lines = append(lines, dangerLine(o.cluster.Name, c))
		}
	}
	w.caution(lines, most)
}

// stateLines are for a cluster whose state would be written by another engine.
func stateLines(o outcome) (lines []string) {
	if o.run == nil {
		return nil
	}
	name := markdown.Text(o.cluster.Name)
	if wrote, _, _ := strings.Cut(o.cluster.Engine, " "); wrote != "" && o.run.EngineName != "" && o.run.EngineName != wrote {
		lines = append(lines, fmt.Sprintf("**changes the engine of %s** from %s to %s: once it has written the state, the other engine may not be able to read it",
			name, markdown.Text(markdown.Shorten(o.cluster.Engine, 60)), markdown.Text(markdown.Shorten(o.run.EngineName+" "+o.run.EngineVersion, 60))))
	}
	return lines
}

// caution is a box with what nobody must overlook, at most that many lines.
func (w *writer) caution(lines []string, most int) {
	if len(lines) == 0 {
		return
	}
	w.line("> [!CAUTION]")
	for i, line := range firstOf(&w.page, lines, most) {
		if i > 0 {
			w.line(">")
		}
		w.line("> " + line)
	}
	if more := len(lines) - most; more > 0 {
		w.linef(">\n> … and %d more", more)
	}
	w.line("")
}

// destructionLine is for a cluster whose document is removed.
func destructionLine(o outcome) string {
	var clusters []string
	data := 0
	for _, c := range o.plan.Changes {
		switch plandiff.DangerOf(c) {
		case plandiff.DangerCluster:
			clusters = append(clusters, codeText(markdown.Shorten(c.Address, 200)))
		case plandiff.DangerData:
			data++
		case plandiff.DangerNone:
		}
	}
	all := o.plan.Counts.Delete + o.plan.Counts.Replace
	line := fmt.Sprintf("**destroys %s**: %s", markdown.Text(o.cluster.Name), markdown.Plural(all, "resource"))
	among := []string{}
	if len(clusters) > 0 {
		among = append(among, "the cluster "+markdown.List(clusters, 3))
	}
	if data > 0 {
		among = append(among, fmt.Sprintf("%d that %s data", data, oneOrMany(data, "keeps", "keep")))
	}
	switch {
	case len(among) == 0:
		return line
	case all == 1 && len(clusters) > 0:
		return line + ", " + among[0]
	case all == 1:
		return line + ", which keeps data"
	default:
		return line + ", among them " + strings.Join(among, " and ")
	}
}

func dangerLine(cluster string, c holdfast.ResourceChange) string {
	return fmt.Sprintf("**%s**: the %s%s", markdown.Text(cluster), dangerWords(c, "will"), dangerCause(c))
}

// dangerCause is a colon, and why a resource is destroyed or replaced.
func dangerCause(c holdfast.ResourceChange) string {
	why := ""
	if len(c.ReplacePaths) > 0 {
		paths := make([]string, len(c.ReplacePaths))
		for i, path := range c.ReplacePaths {
			paths[i] = codeText(markdown.Shorten(path, 80))
		}
		why = " because " + markdown.List(paths, 3) + oneOrMany(len(paths), " changes", " change")
	} else if words := reasonWords(c.Reason); words != "" {
		why = ": " + words
	}
	if c.Forgets {
		why += ", " + oldOneStays
	}
	return why
}

// faults is what is wrong with the files, at their lines.
func (w *writer) faults() {
	faults := distinct(w.r.PullRequest.Faults)
	if len(faults) == 0 {
		return
	}
	w.line("| Where | What is wrong | What to do |\n|---|---|---|")
	for _, f := range firstOf(&w.page, faults, w.level.notes) {
		w.linef("| %s | %s | %s |", w.placeCell(f), markdown.ShortText(f.Message, 1000), markdown.ShortText(f.Hint, 500))
	}
	if more := len(faults) - w.level.notes; more > 0 {
		w.linef("\n… and %d more.", more)
	}
	w.line("")
}

// placeCell is where a fault is, with a link to its line on code hosts that have
// one.
func (w *writer) placeCell(f holdfast.Fault) string {
	return w.linked(markdown.Code(markdown.Shorten(f.Position(), 200)), f.File, f.Line)
}

// linked makes cell a link to a line of the head's file, on code hosts that have
// one.
func (w *writer) linked(cell, file string, line int) string {
	pr := w.r.PullRequest
	site, _, ok := strings.Cut(pr.URL, "/pull/")
	if !ok || file == "" || line == 0 || pr.Head == "" || pr.Fork {
		return cell
	}
	link := site + "/blob/" + string(pr.Head) + (&url.URL{Path: "/" + file}).EscapedPath() + fmt.Sprintf("#L%d", line)
	if !isLink(link) {
		return cell
	}
	return "[" + cell + "](" + link + ")"
}

// distinct are faults as people see them: what is wrong with a template is wrong for
// each cluster that is made from it, and is reported once.
func distinct(faults holdfast.Faults) holdfast.Faults {
	listed := make(map[holdfast.Fault]bool, len(faults))
	out := make(holdfast.Faults, 0, len(faults))
	for _, f := range faults {
		f.Cluster = ""
		if !listed[f] {
			listed[f] = true
			out = append(out, f)
		}
	}
	return out
}

// attention lists what waits for a person, with the command for it. Clusters
// that wait for the same thing are listed together.
func (w *writer) attention() {
	for _, name := range w.total.reasons {
		var clusters, unplanned, lines, details []string
		for _, o := range w.outcomes {
			if o.shownReason() != name {
				continue
			}
			clusters = append(clusters, o.cluster.Name)
			if o.run == nil || o.run.Status != holdfast.RunPlanned {
				unplanned = append(unplanned, o.cluster.Name)
			}
			if o.detail != "" {
				lines = append(lines, fmt.Sprintf("> - %s: %s", markdown.Code(o.cluster.Name), markdown.ShortWords(o.detail, 1500)))
				details = append(details, o.detail)
			}
		}
		if len(details) == len(clusters) && len(details) > 1 && len(slices.Compact(details)) == 1 {
			lines = []string{">\n> " + sentence(markdown.ShortWords(details[0], 1500))} // the same for all
		}
		r := reasonOf(name)
		if r.Does == holdfast.AppliesShown && len(unplanned) > 0 {
			r.Next, r.Does = []holdfast.Verb{holdfast.VerbPlan}, "plans it, for review before it is applied"
		}
		w.linef("> [!IMPORTANT]\n> **%s** %s: %s.", markdown.Text(string(name)), names(clusters), r.Words)
		for _, line := range firstOf(&w.page, lines, w.level.notes) {
			w.line(line)
		}
		if len(r.Next) > 0 {
			later := ""
			if !w.r.merged() && r.Next[0] == holdfast.VerbApply {
				later = "After the merge: "
			}
			w.line(">\n> " + later + w.commands(r, clusters))
		}
		if r.Hint != "" {
			w.line(">\n> " + r.Hint + ".")
		}
		w.line("")
	}
}

// revert is the commands for a reason, ready to be copied. A command without
// names is for all clusters.
func (w *writer) commands(r holdfast.ReasonInfo, clusters []string) string {
	const most = 20
	part := ""
	switch {
	case len(clusters) == w.total.all && w.total.all > 1:
		clusters = nil
	case len(clusters) > most:
		part = fmt.Sprintf(" (%d of %d clusters)", most, len(clusters))
		clusters = clusters[:most]
	}
	parts := []string{fmt.Sprintf("%s %s%s", command(r.Next[0], clusters...), r.Does, part)}
	for _, verb := range r.Next[1:] {
		parts = append(parts, fmt.Sprintf("%s plans again", command(verb, clusters...)))
	}
	return strings.Join(parts, " · ")
}

func names(clusters []string) string {
	quoted := make([]string, len(clusters))
	for i, name := range clusters {
		quoted[i] = markdown.Code(name)
	}
	return markdown.List(quoted, 10)
}

// failures says what went wrong, cluster by cluster.
func (w *writer) failures() {
	listed := 0
	for _, o := range w.outcomes {
		if o.failure == nil && o.stage != stageFailed {
			continue
		}
		if listed++; listed > w.level.notes {
			w.dropped = true
			return
		}
		w.failure(o)
	}
}

func (w *writer) failure(o outcome) {
	if o.failure == nil {
		if o.detail != "" {
			w.linef("**%s** %s: %s\n", markdown.Text(o.cluster.Name), o.result, markdown.ShortWords(o.detail, 1500))
		}
		return
	}
	w.failureBody(o, *o.failure)
	passing := o.stage == stageFailed && isPassing(o.reason)
	switch {
	case passing && o.failure.Transient:
		w.line("The cause (" + markdown.Text(string(o.failure.Cause)) + ") is transient: it is retried automatically.\n")
	case passing:
		w.line("It is retried automatically, a few times.\n")
	}
	if o.failing != nil {
		w.choices(*o.failing, passing || o.stage == stageHeld)
	}
}

func diagnosticLine(d holdfast.Diagnostic, limit int) string {
	return diagnosticAt(d, limit, func(cell string) string { return cell })
}

// diagnosticOf is diagnosticLine with a link to the line, if that is in a root
// module of the repository's own: what is made from a template is in no file there.
func (w *writer) diagnosticOf(c Cluster, d holdfast.Diagnostic, limit int) string {
	return diagnosticAt(d, limit, func(cell string) string {
		if c.Document.Module == nil || w.r.merged() || !strings.HasPrefix(d.File, c.Document.Module.Path+"/") {
			return cell
		}
		return w.linked(cell, d.File, d.Line)
	})
}

func diagnosticAt(d holdfast.Diagnostic, limit int, place func(cell string) string) string {
	line := markdown.ShortText(d.Summary, limit)
	if d.Detail != "" {
		line += ": " + markdown.ShortText(d.Detail, limit)
	}
	if d.File != "" {
		at := d.File
		if d.Line > 0 {
			at = fmt.Sprintf("%s:%d", d.File, d.Line)
		}
		line += " (" + place(markdown.Code(markdown.Shorten(at, 200))) + ")"
	}
	if d.Address != "" {
		line += " in " + markdown.Code(markdown.Shorten(d.Address, 200))
	}
	return line
}
