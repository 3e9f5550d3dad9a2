package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// DriftMarker returns the hidden first line by which the issue of a cluster's
// drift is found again.
func DriftMarker(cluster string) string { return hidden("drift", cluster) }

// DriftSummaryMarker is DriftMarker for the issue that reports all drifted
// clusters of a repository.
func DriftSummaryMarker(repo string) string { return hidden("drift-summary", repo) }

// hidden is a comment that nothing in name can end.
func hidden(kind, name string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r == '<' || r == '>' || r > '~' {
			return -1
		}
		return r
	}, name)
	return fmt.Sprintf("<!-- holdfast:%s %s -->", kind, name)
}

// titleLimit is less than GitHub's 256 characters.
const titleLimit = 200

// failuresBeforeIssue is the number of failed checks in a row after which people are
// notified.
const failuresBeforeIssue = 3

// DriftIssue returns the issue of one cluster's drift, which begins with DriftMarker
// and is never longer than 65,536 characters. It changes only if its content does,
// never as time passes.
//
// An empty body means that there is nothing new to say: an issue that is there stays as
// it is, and none is made. That is so after a failed check, unless it was at least the
// third in a row.
//
// A closed issue names the check that proves that the drift is gone. The next
// one proves the same: what is closed already need not be written again.
func DriftIssue(r holdfast.DriftReport, _ time.Time) (title, body string, closed bool) {
	s := r.State
	failing := s.Status == holdfast.DriftFailed
	switch {
	case failing && s.Failures < failuresBeforeIssue:
		return "", "", false
	case failing && s.Fingerprint != "" && len(r.Items) == 0:
		return "", "", false // what is there tells more
	case failing && s.Fingerprint == "":
		return issueTitle("Drift of " + r.Cluster + " cannot be checked"), uncheckedBody(r), false
	case !failing && s.Status != holdfast.DriftFound, r.Document.Drift.OnDrift == "ignore":
		return issueTitle("Drift in " + r.Cluster + ": none left"), goneBody(r), true
	}
	d := &driftWriter{r: r, parts: partsOf(r.Items)}
	title = issueTitle("Drift in " + r.Cluster + ": " + orElse(driftedPhrase(s.Counts), "found"))
	for _, level := range driftDetails {
		if body := d.issue(level); len(body) <= commentLimit {
			return title, body, false
		}
	}
	return title, DriftMarker(r.Cluster) + "\n### " + d.headline() + "\n\nThere is too much to show: `holdfast describe drift` shows all of it.\n", false
}

func issueTitle(s string) string {
	return markdown.Shorten(strings.NewReplacer("@", "@"+markdown.ZeroWidth, "#", "#"+markdown.ZeroWidth, "`", "'").Replace(markdown.OneLine(s)), titleLimit)
}

// driftDetail is how much an issue shows.
type driftDetail struct {
	rows       int // resources of a table
	attributes int // of a resource
	folded     int // resources of a table that is folded away
}

var driftDetails = []driftDetail{{500, 20, 200}, {200, 10, 50}, {100, 5, 20}, {50, 3, 10}, {20, 2, 5}, {5, 1, 1}, {0, 0, 0}}

// driftParts are the items of a report by what they mean.
type driftParts struct {
	changed, gone, input, harmless, hidden []holdfast.DriftItem
}

func partsOf(items []holdfast.DriftItem) driftParts {
	var p driftParts
	for _, item := range items {
		switch {
		case item.Ignored != "":
			p.hidden = append(p.hidden, item)
		case item.Action == "":
			p.harmless = append(p.harmless, item)
		case item.Kind == holdfast.DriftGone:
			p.gone = append(p.gone, item)
		case item.Kind == holdfast.DriftInput:
			p.input = append(p.input, item)
		default:
			p.changed = append(p.changed, item)
		}
	}
	return p
}

// drifted are the items that count as drift.
func (p driftParts) drifted() []holdfast.DriftItem { return slices.Concat(p.changed, p.gone, p.input) }

// driftedPhrase is what counts as drift in words; empty if nothing does.
func driftedPhrase(c holdfast.DriftCounts) string {
	var parts []string
	if c.Changed > 0 {
		parts = append(parts, fmt.Sprintf("%d changed outside", c.Changed))
	}
	if c.Gone > 0 {
		parts = append(parts, fmt.Sprintf("%d gone", c.Gone))
	}
	if c.Input > 0 {
		parts = append(parts, markdown.Plural(c.Input, "input")+" changed")
	}
	return strings.Join(parts, ", ")
}

// driftPhrase is driftedPhrase with what does not count.
func driftPhrase(c holdfast.DriftCounts) string {
	parts := []string{}
	if drifted := driftedPhrase(c); drifted != "" {
		parts = append(parts, drifted)
	}
	if c.Harmless > 0 {
		parts = append(parts, fmt.Sprintf("%d harmless", c.Harmless))
	}
	if c.Ignored > 0 {
		parts = append(parts, hiddenPhrase(c.Ignored))
	}
	return orElse(strings.Join(parts, ", "), "nothing differs")
}

func hiddenPhrase(n int) string {
	return fmt.Sprintf("%d hidden by %s", n, oneOrMany(n, "a rule", "rules"))
}

// driftWriter writes the issue of one cluster.
type driftWriter struct {
	page
	r     holdfast.DriftReport
	parts driftParts
	level driftDetail
}

func (d *driftWriter) issue(level driftDetail) string {
	d.level = level
	d.reset()
	d.line(DriftMarker(d.r.Cluster))
	d.line("### " + d.headline() + "\n")
	d.line(d.facts() + "\n")
	d.failing()
	d.danger()
	d.items("Changed outside", "As it was applied → as it is", d.parts.changed, level.rows)
	d.items("Gone", "", d.parts.gone, level.rows)
	d.items("Inputs changed: data that the code reads from elsewhere", "As it is → as an apply would make it", d.parts.input, level.rows)
	d.folded(markdown.Plural(len(d.parts.harmless), "harmless difference")+": an apply does not change it", d.parts.harmless)
	d.folded(strings.ToUpper(hiddenPhrase(len(d.parts.hidden))[:1])+hiddenPhrase(len(d.parts.hidden))[1:], d.parts.hidden)
	d.notApplied()
	d.next()
	if d.dropped {
		d.linef("_Shortened to fit an issue. All of it: %s._", markdown.Code("holdfast describe drift "+markdown.Shorten(d.r.Cluster, 63)))
	}
	return strings.TrimRight(d.b.String(), "\n") + "\n"
}

func (d *driftWriter) headline() string {
	return fmt.Sprintf("🟠 %s has drifted: %s", markdown.Code(markdown.Shorten(d.r.Cluster, 63)), driftPhrase(d.r.State.Counts))
}

// facts says since when, and against what.
func (d *driftWriter) facts() string {
	r := d.r
	var parts []string
	if !r.State.Since.IsZero() && r.State.Status == holdfast.DriftFound {
		parts = append(parts, "Found on "+stamp(r.State.Since)+".")
	}
	if applied := appliedWords(r); applied != "" {
		parts = append(parts, "Last applied: "+applied+".")
	}
	where := markdown.ShortText(r.Document.Environment, 60)
	if project := markdown.ShortText(r.Document.Project, 60); project != "" && where != "" {
		where += " of " + project
	} else if project != "" {
		where = project
	}
	if where != "" {
		parts = append(parts, "Environment: "+where+".")
	}
	return strings.Join(parts, " ")
}

// appliedWords is what a check compares with.
func appliedWords(r holdfast.DriftReport) string {
	var parts []string
	if r.Revision != "" {
		parts = append(parts, markdown.Code(markdown.Shorten(r.Revision.Short(), 40)))
	}
	if r.State.Applied != "" {
		parts = append(parts, "by "+markdown.Code(markdown.Shorten(r.State.Applied, 60)))
	}
	if r.Template != "" {
		parts = append(parts, "with "+markdown.Code(markdown.Shorten(r.Template, 80)))
	}
	return strings.Join(parts, " ")
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// failing says that what is shown may be old.
func (d *driftWriter) failing() {
	if d.r.State.Status != holdfast.DriftFailed {
		return
	}
	since := ""
	if !d.r.State.Since.IsZero() {
		since = " since " + stamp(d.r.State.Since)
	}
	d.line("> [!WARNING]\n> Checks have failed" + since + "; this is what the last successful one found.")
	for _, line := range checkFailure(d.r) {
		d.line(">\n> " + line)
	}
	d.line("")
}

// checkFailure is why checks fail, without what differs from one to the next.
func checkFailure(r holdfast.DriftReport) []string {
	f := r.Failure
	if f == nil {
		return []string{"**Why:** " + orElse(markdown.ShortText(r.State.Detail, 500), "the run gave no reason") + "."}
	}
	lines := []string{"**Why:** " + failurePlace(*f) + orElse(markdown.ShortText(f.Summary, 500), "it failed") + "."}
	if f.Hint != "" {
		lines = append(lines, "**What to do:** "+sentence(markdown.ShortHint(f.Hint, 500)))
	}
	return lines
}

// sentence ends s like one.
func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// danger is the banner for what reverting the drift would destroy.
func (d *driftWriter) danger() {
	const most = 8
	var lines []string
	for _, item := range d.parts.drifted() {
		c := holdfast.ResourceChange{Address: item.Address, Type: item.Type, Action: item.Action}
		if c.Destroys() {
			lines = append(lines, "the "+dangerWords(c, "will"))
		}
	}
	if len(lines) == 0 && !d.r.State.Destroys {
		return
	}
	d.line("> [!CAUTION]\n> Reverting this **DESTROYS** resources:")
	if len(lines) == 0 {
		d.line("> read its plan first.")
	}
	for _, line := range firstOf(&d.page, lines, most) {
		d.line("> - " + line)
	}
	if more := len(lines) - most; more > 0 {
		d.linef("> - … and %d more", more)
	}
	d.line("")
}

// dangerWords names a resource that will, or would, be destroyed or replaced.
func dangerWords(c holdfast.ResourceChange, will string) string {
	what := map[plandiff.Danger]string{
		plandiff.DangerCluster: "cluster", plandiff.DangerData: "resource that keeps data", plandiff.DangerNone: "resource",
	}[plandiff.DangerOf(c)]
	verb := "DESTROYED"
	if c.Action == holdfast.ActionReplace {
		verb = "REPLACED"
	}
	return fmt.Sprintf("%s %s %s be **%s**", what, codeText(markdown.Shorten(c.Address, 200)), will, verb)
}

// items is the table of one kind of drift.
func (d *driftWriter) items(title, differs string, items []holdfast.DriftItem, most int) {
	if len(items) == 0 {
		return
	}
	d.linef("**%s** (%d)\n", title, len(items))
	d.table(differs, "An apply would", items, most, func(item holdfast.DriftItem) string { return applyCell(item) })
}

// folded is the table of what does not count as drift.
func (d *driftWriter) folded(title string, items []holdfast.DriftItem) {
	if len(items) == 0 {
		return
	}
	d.line("<details><summary>" + title + "</summary>\n")
	last, cell := "", func(holdfast.DriftItem) string { return "" }
	if items[0].Ignored != "" {
		last, cell = "Why it is hidden", func(item holdfast.DriftItem) string { return markdown.ShortText(item.Ignored, 300) }
	}
	d.table("As it was applied → as it is", last, items, d.level.folded, cell)
	d.line("</details>\n")
}

// table is a row for each resource; a column without a title is left out.
func (d *driftWriter) table(differs, last string, items []holdfast.DriftItem, most int, lastCell func(holdfast.DriftItem) string) {
	header, rule := "| Resource |", "|---|"
	for _, column := range []string{differs, last} {
		if column != "" {
			header, rule = header+" "+column+" |", rule+"---|"
		}
	}
	shown := firstOf(&d.page, items, most)
	if len(shown) > 0 {
		d.line(header + "\n" + rule)
	}
	for _, item := range shown {
		if d.full() {
			return // a less detailed level is next, and nothing of this one is shown
		}
		row := "| " + codeText(markdown.Shorten(item.Address, 300)) + " |"
		if differs != "" {
			row += " " + d.attributes(item) + " |"
		}
		if last != "" {
			row += " " + lastCell(item) + " |"
		}
		d.line(row)
	}
	if more := len(items) - len(shown); more > 0 {
		d.linef("\n… and %d more.", more)
	}
	d.line("")
}

func (d *driftWriter) attributes(item holdfast.DriftItem) string {
	if item.Kind == holdfast.DriftGone {
		return "it is gone"
	}
	var parts []string
	for _, a := range firstOf(&d.page, item.Attributes, d.level.attributes) {
		part := codeText(markdown.Shorten(a.Path, 120))
		if cell := changeCell(a).cell; cell != "" {
			part += " " + cell
		}
		parts = append(parts, part)
	}
	if more := len(item.Attributes) - d.level.attributes; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, "<br>")
}

// revertCell is what an apply would do about drift.
func applyCell(item holdfast.DriftItem) string {
	switch item.Action {
	case holdfast.ActionReplace:
		return "♻️ **DESTROY it and create a new one**"
	case holdfast.ActionDelete:
		return "🔴 **DESTROY it**"
	case holdfast.ActionCreate:
		if item.Kind == holdfast.DriftGone {
			return "➕ create it again"
		}
		return "➕ create it"
	case holdfast.ActionUpdate:
		if item.Kind == holdfast.DriftChanged {
			return "🔵 change it back"
		}
		return "🔵 change it"
	case "":
		return "leave it as it is"
	default:
		return actionIcon(item.Action) + " it"
	}
}

// notApplied keeps a change that waits apart from drift.
func (d *driftWriter) notApplied() {
	if !d.r.NotApplied {
		return
	}
	d.line("> [!NOTE]\n> **Not drift:** " + notAppliedWords(d.r) + "\n")
}

func notAppliedWords(r holdfast.DriftReport) string {
	line := "this cluster has changes in Git that are not applied yet. They are not shown here."
	if r.Waiting != "" {
		line += fmt.Sprintf(" They wait: %s (%s).", reasonOf(r.Waiting).Words, markdown.Text(string(r.Waiting)))
	}
	return line
}
