package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
	"github.com/holdfast-dev/holdfast/rollout"
)

// Upgrade is everything that our pull request for an upgrade of clusters shows.
type Upgrade struct {
	Template string
	Group    string // what the clusters have in common, such as "team=payments"; empty: nothing
	By       string // who asked for it; empty: the documents' `upgrades`
	Clusters []rollout.UpgradeCluster
	Left     []LeftOut     // clusters that could not be upgraded
	Steps    []UpgradeStep // one for each pair of versions, the most used first
	Held     []string      // newer versions that nobody is moved to, each in a sentence that says why
}

// LeftOut is a cluster that is not upgraded, and why.
type LeftOut struct {
	Name   string
	To     string          // what it would have been upgraded to
	Faults holdfast.Faults // of its document with that version
}

// UpgradeStep is what comes with going from one version to another.
type UpgradeStep struct {
	From, To string
	Clusters int
	Compared bool // false: one of the two cannot be read, and nobody knows what has changed
	Changes  []rollout.TemplateChange
	Notes    string // of the changelog, as Markdown; the text of others
}

// UpgradeTitle is the title of an upgrade's pull request, such as "Upgrade
// kubernetes to 1.5.0 for 12 clusters (team=payments)".
func UpgradeTitle(u Upgrade) string {
	title := "Upgrade " + u.Template
	to := make(map[string]bool)
	for _, c := range u.Clusters {
		to[c.To] = true
	}
	if len(to) == 1 {
		title += " to " + u.Clusters[0].To
	}
	if len(u.Clusters) == 1 {
		title += " for " + u.Clusters[0].Name
	} else {
		title += " for " + markdown.Plural(len(u.Clusters), "cluster")
	}
	if u.Group != "" {
		title += " (" + markdown.Shorten(u.Group, 100) + ")"
	}
	return issueTitle(title)
}

// UpgradeMessage is the message of its commit: the title, and the clusters.
func UpgradeMessage(u Upgrade) string {
	const most = 100
	var b strings.Builder
	b.WriteString(UpgradeTitle(u) + "\n\n")
	for _, c := range u.Clusters[:min(most, len(u.Clusters))] {
		fmt.Fprintf(&b, "%s: %s to %s\n", c.Name, c.From, c.To)
	}
	if more := len(u.Clusters) - most; more > 0 {
		fmt.Fprintf(&b, "and %s\n", markdown.Plural(more, "more cluster"))
	}
	return b.String()
}

// upgradeDetail is how much the description of an upgrade shows.
type upgradeDetail struct {
	clusters int
	left     int
	changes  int // of a step
	notes    int // lines of a step
	steps    int
}

var upgradeDetails = []upgradeDetail{
	{1000, 200, 500, 500, 10},
	{500, 100, 200, 300, 5},
	{300, 50, 100, 100, 3},
	{100, 20, 50, 30, 2},
	{50, 10, 20, 10, 1},
	{10, 3, 5, 0, 1},
	{0, 0, 0, 0, 0},
}

// UpgradeBody is the description of an upgrade's pull request, never longer than
// 65,536 characters: what does not fit is left out, and it says so. It changes
// only if what it tells does.
func UpgradeBody(u Upgrade) string {
	w := &upgradeWriter{u: u}
	body := ""
	for _, level := range upgradeDetails {
		if body = w.body(level); len(body) <= commentLimit {
			break
		}
	}
	return body
}

type upgradeWriter struct {
	page
	u     Upgrade
	level upgradeDetail
}

func (w *upgradeWriter) body(level upgradeDetail) string {
	w.level = level
	w.reset()
	w.linef("%s\n", w.headline())
	w.clusters()
	w.left()
	for _, held := range w.u.Held[:min(len(w.u.Held), 10)] {
		w.linef("- %s", markdown.Shorten(markdown.Text(held), 400))
	}
	if len(w.u.Held) > 0 {
		w.line("")
	}
	for _, step := range firstOf(&w.page, w.u.Steps, level.steps) {
		w.step(step)
	}
	w.ending()
	if w.dropped {
		w.line("\n_Shortened to fit a description._")
	}
	return strings.TrimRight(w.b.String(), "\n") + "\n"
}

func (w *upgradeWriter) headline() string {
	u := w.u
	what := fmt.Sprintf("%s of template %s", markdown.Plural(len(u.Clusters), "cluster"), markdown.Code(u.Template))
	if u.Group != "" {
		what += " with " + markdown.Code(markdown.Shorten(u.Group, 200))
	}
	if len(u.Clusters) == 1 {
		what += " gets"
	} else {
		what += " get"
	}
	why := " a newer version, within what `upgrades` in " + itsTheir(len(u.Clusters)) + " allows."
	if u.By != "" {
		why = " another version, as " + markdown.Text(markdown.Shorten(u.By, 100)) + " has asked for."
	}
	s := what + why + " Only the version lines are edited."
	if n := w.breaks(); n > 0 {
		s += fmt.Sprintf("\n\n⚠️ **Read this before it is merged:** %s of the template %s breaking.", markdown.Plural(n, "change"), oneOrMany(n, "is", "are"))
	}
	return s
}

func itsTheir(n int) string {
	if n == 1 {
		return "its document"
	}
	return "their documents"
}

func (w *upgradeWriter) breaks() int {
	n := 0
	for _, step := range w.u.Steps {
		n = max(n, breaking(step.Changes)) // the steps tell much of the same
	}
	return n
}

func (w *upgradeWriter) clusters() {
	w.line("| Cluster | From | To | File |\n|---|---|---|---|")
	for _, c := range firstOf(&w.page, w.u.Clusters, w.level.clusters) {
		w.linef("| %s | %s | **%s** | %s |", markdown.Code(c.Name), markdown.Text(c.From), markdown.Text(c.To), markdown.Code(markdown.Shorten(c.Path, 200)))
	}
	if more := len(w.u.Clusters) - w.level.clusters; more > 0 {
		w.linef("\n… and %s.", markdown.Plural(more, "more cluster"))
	}
	w.line("")
}

func (w *upgradeWriter) left() {
	if len(w.u.Left) == 0 {
		return
	}
	w.linef("**Not upgraded: %s.** The newer version would refuse %s as %s:\n", markdown.Plural(len(w.u.Left), "cluster"),
		itsTheir(len(w.u.Left)), itTheyAre(len(w.u.Left)))
	for _, l := range firstOf(&w.page, w.u.Left, w.level.left) {
		w.linef("- %s to %s: %s", markdown.Code(l.Name), markdown.Text(l.To), leftReason(l.Faults))
	}
	if more := len(w.u.Left) - w.level.left; more > 0 {
		w.linef("- … and %s", markdown.Plural(more, "more cluster"))
	}
	w.line("")
}

func itTheyAre(n int) string {
	if n == 1 {
		return "it is"
	}
	return "they are"
}

func leftReason(faults holdfast.Faults) string {
	const most = 3
	if len(faults) == 0 {
		return "it is faulty"
	}
	parts := make([]string, 0, most)
	for _, f := range faults[:min(most, len(faults))] {
		part := markdown.Code(markdown.Shorten(f.Position(), 200)) + " " + markdown.Text(markdown.Shorten(f.Message, 300))
		if f.Hint != "" {
			part += " (" + markdown.Text(markdown.Shorten(f.Hint, 200)) + ")"
		}
		parts = append(parts, part)
	}
	if more := len(faults) - most; more > 0 {
		parts = append(parts, markdown.Plural(more, "more fault"))
	}
	return strings.Join(parts, "; ")
}

func (w *upgradeWriter) step(step UpgradeStep) {
	w.linef("### %s → %s (%s)\n", markdown.Text(step.From), markdown.Text(step.To), markdown.Plural(step.Clusters, "cluster"))
	if !step.Compared {
		w.linef("What has changed is not known: version %s can no longer be read.\n", markdown.Text(step.From))
	} else if len(step.Changes) == 0 {
		w.line("The variables and outputs are the same, as far as the template defines them.\n")
	} else if w.level.changes > 0 {
		w.dropped = w.dropped || len(step.Changes) > w.level.changes
		w.line(ChangesText(step.Changes, w.level.changes))
	}
	if step.Notes == "" || w.level.notes == 0 {
		w.dropped = w.dropped || step.Notes != ""
		return
	}
	w.line("<details><summary>Notes</summary>\n")
	w.line(w.quoted(step.Notes))
	w.line("\n</details>\n")
}

// quoted is a changelog as a quotation. Headings, lists, code and emphasis of
// whole words are all the markup that is left of it: nobody is mentioned, nothing
// is referred to or closed, and there is no HTML.
func (w *upgradeWriter) quoted(notes string) string {
	lines := strings.Split(markdown.Printable(notes), "\n")
	lines = firstOf(&w.page, lines, w.level.notes)
	out := make([]string, 0, len(lines))
	fenced := false
	for _, line := range lines {
		trimmed := strings.TrimSpace(line)
		fence := strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")
		switch {
		case fence:
			fenced = !fenced
			continue
		case trimmed == "":
			out = append(out, ">")
		case fenced:
			out = append(out, "> "+markdown.Code(markdown.Shorten(line, 300))+"  ")
		default:
			out = append(out, "> "+noteLine(line))
		}
	}
	return strings.Join(out, "\n")
}

func noteLine(line string) string {
	trimmed := strings.TrimSpace(line)
	indent := min((len(line)-len(strings.TrimLeft(line, " \t")))/2*2, 6)
	if heading := strings.TrimLeft(trimmed, "#"); heading != trimmed && strings.HasPrefix(heading, " ") {
		return "**" + noteText(strings.TrimSpace(heading)) + "**"
	}
	for _, bullet := range []string{"- ", "* ", "+ "} {
		if rest, ok := strings.CutPrefix(trimmed, bullet); ok {
			return strings.Repeat(" ", indent) + "- " + noteText(rest)
		}
	}
	return noteText(trimmed)
}

// noteText is a line of the text of others. What is between backticks stays code.
func noteText(s string) string {
	s = markdown.Shorten(s, 1000)
	parts := strings.Split(s, "`")
	if len(parts)%2 == 0 || slices.Contains(parts[1:max(1, len(parts)-1)], "") {
		parts = []string{s}
	}
	var b strings.Builder
	for i, part := range parts {
		switch {
		case i%2 == 1:
			b.WriteString(markdown.Code(part))
		case part != "":
			b.WriteString(spaced(part, unlinked(markdown.Text(part))))
		}
	}
	return b.String()
}

// spaced gives text the space back that it began or ended with: what is next to it
// is code.
func spaced(s, text string) string {
	if text == "" {
		return " "
	}
	if strings.HasPrefix(s, " ") {
		text = " " + text
	}
	if strings.HasSuffix(s, " ") {
		text += " "
	}
	return text
}

// unlinked keeps addresses and numbers of issues from being links: "fixes" before
// one would close somebody's issue.
func unlinked(s string) string {
	return strings.NewReplacer("://", ":"+markdown.ZeroWidth+"//", "www.", "www"+markdown.ZeroWidth+".",
		"GH-", "GH"+markdown.ZeroWidth+"-", "gh-", "gh"+markdown.ZeroWidth+"-", "Gh-", "Gh"+markdown.ZeroWidth+"-", "gH-", "gH"+markdown.ZeroWidth+"-").Replace(s)
}

func (w *upgradeWriter) ending() {
	w.line("---\n")
	w.line("**When this is merged:** every cluster is planned here first, as for any pull request, and what was reviewed is what is " +
		"applied. To leave a cluster out, remove or narrow `upgrades` in its document; this pull request is updated.\n")
	if w.u.By != "" {
		w.line("**To decline:** close this pull request. It is not opened again unless somebody asks for it.\n")
	} else {
		w.line("**To decline:** close this pull request. The same versions are not proposed again automatically; a newer one is, and " +
			"`holdfast template upgrade` proposes at once.\n")
	}
	w.line("It is kept up to date, and closed when nothing is left to upgrade, unless someone else pushes to its branch.")
}

// UpgradeWithdrawn says why a pull request is closed in which nothing is left to
// upgrade: the documents that are left would be refused, or, with a version, that is
// not allowed or can no longer be used; otherwise what it proposed is so already.
func UpgradeWithdrawn(left []LeftOut, version string) string {
	const nothing = "Nothing is left to upgrade: "
	switch {
	case len(left) > 0:
		return nothing + "the newer version would refuse " + itsTheir(len(left)) + ", such as that of " +
			markdown.Code(left[0].Name) + ": " + leftReason(left[0].Faults)
	case version != "":
		return nothing + "version " + markdown.Text(version) + " can no longer be used, or the documents do not allow it."
	default:
		return nothing + "the documents have been changed or removed since."
	}
}

// AskedBy says who has asked for a pull request. People choose their names themselves.
func AskedBy(name string) string { return "Asked for by " + markdown.Text(name) }
