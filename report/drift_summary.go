package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// DriftSummary returns the issue that reports all drifted clusters of a repository
// while there are more than get their own issue. reports are those of all of them, and
// the first own of them have one. The issue is closed if there are no others. It begins
// with DriftSummaryMarker and is never longer than 65,536 characters, however many
// clusters it is about, and it changes only if its content does.
func DriftSummary(repo string, reports []holdfast.DriftReport, own int, _ time.Time) (title, body string, closed bool) {
	marker := DriftSummaryMarker(repo)
	own = max(own, 0)
	if len(reports) == 0 {
		return issueTitle("Drift in " + repo + ": none left"), marker + "\n### ✅ No cluster of " + markdown.Code(markdown.Shorten(repo, 100)) +
			" drifts\n\nThis issue is reopened when many of them do.\n", true
	}
	if len(reports) <= own {
		return issueTitle("Drift in " + repo + ": no summary needed"), marker + "\n### ✅ Each drifted cluster of " + markdown.Code(markdown.Shorten(repo, 100)) +
			" has its own issue\n\nThis issue is reopened when more clusters drift than may have an issue (`drift.maxIssues`).\n", true
	}
	title = issueTitle(fmt.Sprintf("Drift in %s: %s", repo, markdown.Plural(len(reports), "cluster")))
	d := &summaryWriter{repo: repo, reports: reports, own: own, causes: causesOf(reports)}
	for _, level := range summaryDetails {
		if body := d.issue(level); len(body) <= commentLimit {
			return title, body, false
		}
	}
	return title, marker + "\n### " + d.headline() + "\n\nThere is too much to show: " + markdown.Code("holdfast get drift") + " shows all of it.\n", false
}

// summaryDetail is how much a summary shows.
type summaryDetail struct {
	causes   int // shared causes
	names    int // clusters of each
	clusters int // clusters without their own issue
}

var summaryDetails = []summaryDetail{
	{200, 50, 1000},
	{100, 20, 500},
	{50, 10, 200},
	{25, 5, 100},
	{10, 3, 30},
	{3, 1, 5},
}

// cause is what has drifted in the same way in several clusters.
type cause struct {
	what     []string // "aws_eks_node_group scaling_config", sorted
	template string   // "name@version"
	clusters []int    // indices of reports, in their order
}

// causesOf groups what drifted by what it is and by the template's version, the
// most frequent first; what drifted in one cluster only is left out. Causes of
// just the same clusters are one.
func causesOf(reports []holdfast.DriftReport) []cause {
	type key struct{ what, template string }
	where := map[key][]int{}
	for i, r := range reports {
		template, _, _ := strings.Cut(r.Template, " ")
		for _, what := range slices.Compact(slices.Sorted(slices.Values(r.State.Causes))) {
			k := key{what, template}
			where[k] = append(where[k], i)
		}
	}
	same := map[string]*cause{}
	for k, clusters := range where {
		if len(clusters) < 2 {
			continue
		}
		id := k.template + "\x00" + setOf(clusters)
		if same[id] == nil {
			same[id] = &cause{template: k.template, clusters: clusters}
		}
		same[id].what = append(same[id].what, k.what)
	}
	causes := make([]cause, 0, len(same))
	for _, c := range same {
		slices.Sort(c.what)
		causes = append(causes, *c)
	}
	slices.SortFunc(causes, func(a, b cause) int {
		return cmp.Or(cmp.Compare(len(b.clusters), len(a.clusters)), strings.Compare(a.what[0], b.what[0]), strings.Compare(a.template, b.template))
	})
	return causes
}

// setOf is the same for the same clusters only.
func setOf(clusters []int) string {
	d := holdfast.NewDigester("clusters")
	for _, i := range clusters {
		d.Add(fmt.Sprint(i))
	}
	return string(d.Digest())
}

type summaryWriter struct {
	page
	repo    string
	reports []holdfast.DriftReport
	own     int
	causes  []cause
	level   summaryDetail
}

func (d *summaryWriter) headline() string {
	return fmt.Sprintf("🟠 %s of %s %s drifted", markdown.Plural(len(d.reports), "cluster"), markdown.Code(markdown.Shorten(d.repo, 100)), oneOrMany(len(d.reports), "has", "have"))
}

func (d *summaryWriter) issue(level summaryDetail) string {
	d.level = level
	d.reset()
	d.line(DriftSummaryMarker(d.repo))
	d.line("### " + d.headline() + "\n")
	d.linef("%s\n", d.facts())
	d.shared()
	d.others()
	d.line("**What to do:** if many clusters drift in the same way, look for what they have in common: a script, " +
		"a cloud policy, a controller, the template. " + markdown.Code("holdfast describe drift NAME") + " shows all of a cluster, " +
		markdown.Code("holdfast get drift") + " lists them.\n")
	if d.own > 0 {
		d.line("This issue is closed when every drifted cluster has its own issue again.\n")
	} else {
		d.line("This issue is closed when there is no drift left.\n")
	}
	if d.dropped {
		d.linef("_Shortened to fit an issue. All of them: %s._", markdown.Code("holdfast get drift"))
	}
	return strings.TrimRight(d.b.String(), "\n") + "\n"
}

func (d *summaryWriter) facts() string {
	var sum holdfast.DriftCounts
	destroys := 0
	for _, r := range d.reports {
		c := r.State.Counts
		sum.Changed, sum.Gone, sum.Input = sum.Changed+c.Changed, sum.Gone+c.Gone, sum.Input+c.Input
		if r.State.Destroys {
			destroys++
		}
	}
	s := "Resources: " + orElse(driftedPhrase(sum), "none") + "."
	if d.own > 0 {
		s += fmt.Sprintf(" Only the %s %s an issue of %s own (`drift.maxIssues`).", d.longest(), oneOrMany(d.own, "has", "have"), oneOrMany(d.own, "its", "their"))
	}
	if destroys > 0 {
		s += fmt.Sprintf(" **In %s, reverting the drift destroys resources.**", markdown.Plural(destroys, "cluster"))
	}
	return s
}

func (d *summaryWriter) longest() string {
	if d.own == 1 {
		return "cluster that drifted first"
	}
	return fmt.Sprintf("%d that drifted first", d.own)
}

// shared is the table of what many clusters have in common.
func (d *summaryWriter) shared() {
	if len(d.causes) == 0 {
		return
	}
	d.line("**The same in several clusters**, most frequent first\n\n| Clusters | What has drifted | Template | Which |\n|--:|---|---|---|")
	shown := firstOf(&d.page, d.causes, d.level.causes)
	for _, c := range shown {
		template := "none"
		if c.template != "" {
			template = markdown.Code(markdown.Shorten(c.template, 80))
		}
		d.linef("| %d | %s | %s | %s |", len(c.clusters), d.whatCell(c), template, d.names(c.clusters))
	}
	if more := len(d.causes) - len(shown); more > 0 {
		d.linef("\n… and %d more.", more)
	}
	d.line("")
}

func (d *summaryWriter) whatCell(c cause) string {
	const most = 5
	parts := make([]string, 0, most)
	for _, what := range firstOf(&d.page, c.what, most) {
		kind, attribute, _ := strings.Cut(what, " ")
		part := markdown.Code(markdown.Shorten(kind, 100))
		if attribute != "" {
			part += " " + markdown.Code(markdown.Shorten(attribute, 100))
		}
		parts = append(parts, part)
	}
	if more := len(c.what) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, "<br>")
}

func (d *summaryWriter) names(clusters []int) string {
	names := make([]string, 0, min(len(clusters), d.level.names)+1)
	for _, i := range firstOf(&d.page, clusters, d.level.names) {
		names = append(names, markdown.Code(markdown.Shorten(d.reports[i].Cluster, 63)))
	}
	if more := len(clusters) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return markdown.List(names, len(names))
}

// others is the table of the clusters without their own issue.
func (d *summaryWriter) others() {
	others := d.reports[d.own:]
	d.linef("**Without their own issue** (%d)\n\n| Cluster | Drift | Since | Template |\n|---|---|---|---|", len(others))
	shown := firstOf(&d.page, others, d.level.clusters)
	for _, r := range shown {
		since, template := "", ""
		if !r.State.Since.IsZero() {
			since = r.State.Since.UTC().Format(time.DateOnly)
		}
		if r.Template != "" {
			template = markdown.Code(markdown.Shorten(r.Template, 80))
		}
		what := driftedPhrase(r.State.Counts)
		if r.State.Destroys {
			what += "; reverting it **destroys**"
		}
		d.linef("| %s | %s | %s | %s |", markdown.Code(markdown.Shorten(r.Cluster, 63)), what, since, template)
	}
	if more := len(others) - len(shown); more > 0 {
		d.linef("\n… and %s more.", markdown.Plural(more, "cluster"))
	}
	d.line("")
}
