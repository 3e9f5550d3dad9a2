package report

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

const kindRule = "RunnerRule"

// runnersPhrase counts the changes of runners and rules.
func runnersPhrase(changes []holdfast.RunnerChange) string {
	rules := 0
	for _, c := range changes {
		if c.Kind == kindRule {
			rules++
		}
	}
	var parts []string
	if n := len(changes) - rules; n > 0 {
		parts = append(parts, markdown.Plural(n, "runner"))
	}
	if rules > 0 {
		parts = append(parts, markdown.Plural(rules, "runner rule"))
	}
	return strings.Join(parts, " and ")
}

// runners lists the environments and clusters on which changes of runners and rules bear.
func (w *writer) runners() {
	changes := w.r.PullRequest.Runners
	if len(changes) == 0 {
		return
	}
	w.line("#### Runners\n")
	for _, c := range firstOf(&w.page, changes, w.level.clusters) {
		w.runner(c)
	}
	w.line("")
}

func (w *writer) runner(c holdfast.RunnerChange) {
	what, name := "Runner", markdown.Code(markdown.OneLine(c.Name))
	if c.Kind == kindRule {
		what = "Rule"
	}
	switch {
	case len(c.Environments) > 0 && c.Kind == kindRule:
		w.linef("- %s %s is %s. No environment moves now. `holdfast refresh runner` would have another result for:", what, name, c.Change)
	case len(c.Environments) > 0:
		w.linef("- %s %s is %s. It executes the runs of:", what, name, c.Change)
	case c.Kind == kindRule:
		w.linef("- %s %s is %s. It does not move environments that have had runs.", what, name, c.Change)
	default:
		w.linef("- %s %s is %s. No environment is pinned to it.", what, name, c.Change)
	}
	for _, env := range firstOf(&w.page, c.Environments, w.level.clusters) {
		w.line("  - " + w.affected(env, c.Kind == kindRule))
	}
}

// affected is an environment with its clusters.
func (w *writer) affected(env holdfast.AffectedEnvironment, moves bool) string {
	text := markdown.Code(markdown.OneLine(env.String()))
	switch {
	case moves && env.Next != "":
		text += fmt.Sprintf(" from %s to %s", markdown.Code(markdown.OneLine(env.Runner)), markdown.Code(markdown.OneLine(env.Next)))
	case moves:
		text += ", which no rule matches now"
	}
	if len(env.Clusters) == 0 {
		return text + ": it has no clusters"
	}
	names := firstOf(&w.page, env.Clusters, w.level.names)
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = markdown.Code(markdown.OneLine(name))
	}
	text += fmt.Sprintf(": %s, %s", markdown.Plural(len(env.Clusters), "cluster"), strings.Join(shown, ", "))
	if more := len(env.Clusters) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
