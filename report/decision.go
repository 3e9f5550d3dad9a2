package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// decisionWriter writes what a reader decides by.
type decisionWriter struct{ *writer }

// decision is what a reader decides by, in two lines: what bars the merge or its apply,
// and what can be done now.
func (w decisionWriter) decision() {
	if blockers := w.blockers(); len(blockers) > 0 {
		const most = 6
		shown := firstOf(&w.page, blockers, most)
		if more := len(blockers) - len(shown); more > 0 {
			shown = append(slices.Clone(shown), fmt.Sprintf("%d more", more))
		}
		w.line("**Blocked by:** " + strings.Join(shown, " · ") + "\n")
	}
	w.next()
}

// blockers are what an open pull request still needs, or has to get rid of, before its
// change is applied, each in a few words.
func (w decisionWriter) blockers() (blockers []string) {
	if w.r.merged() || w.r.PullRequest.Reason != "" {
		return nil
	}
	if n := len(distinct(w.r.PullRequest.Faults)); n > 0 {
		blockers = append(blockers, "❌ "+markdown.Plural(n, "error")+" in the files")
	}
	for _, kind := range []struct {
		words func(o outcome) string
		icon  string
	}{
		{func(o outcome) string {
			if o.stage != stageFailed || hasFault(w.r.PullRequest.Faults, o.cluster.Name) {
				return ""
			}
			return "plan failed"
		}, "❌"},
		{func(o outcome) string { return markdown.Text(string(o.shownReason())) }, "✋"},
	} {
		blockers = append(blockers, w.blockedClusters(kind.icon, kind.words)...)
	}
	return append(blockers, w.missingBlockers()...)
}

// blockedClusters puts together the clusters of which the same words are to be said.
func (w decisionWriter) blockedClusters(icon string, words func(o outcome) string) (blockers []string) {
	var said []string
	clusters := map[string][]string{}
	for _, o := range w.outcomes {
		word := words(o)
		if word == "" {
			continue
		}
		if clusters[word] == nil {
			said = append(said, word)
		}
		clusters[word] = append(clusters[word], o.cluster.Name)
	}
	for _, word := range said {
		blockers = append(blockers, icon+" "+word+w.ofClusters(clusters[word]))
	}
	return blockers
}

// missingBlockers are the conditions that are not met yet.
func (w decisionWriter) missingBlockers() (blockers []string) {
	clusters := map[string][]string{}
	for _, o := range w.outcomes {
		for _, g := range gatesOf(o) {
			if !g.Met {
				clusters[g.Name] = append(clusters[g.Name], o.cluster.Name)
			}
		}
	}
	for _, name := range missingGates(w.outcomes) {
		blockers = append(blockers, gateIcon(holdfast.Gate{Name: name})+" "+markdown.Text(holdfast.GateMissing(name))+w.ofClusters(clusters[name]))
	}
	return blockers
}

// ofClusters names the clusters that something is said of, unless it is all of them.
func (w decisionWriter) ofClusters(clusters []string) string {
	if len(clusters) == len(w.outcomes) {
		return ""
	}
	quoted := make([]string, len(clusters))
	for i, name := range clusters {
		quoted[i] = markdown.Code(markdown.Shorten(name, 63))
	}
	return " (" + markdown.List(quoted, 3) + ")"
}
