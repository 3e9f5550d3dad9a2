package report

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// refusal says why the whole pull request is not planned.
func (w *writer) refusal() {
	pr := w.r.PullRequest
	if pr.Reason == "" || w.r.merged() {
		return
	}
	if pr.Detail != "" {
		w.line("> [!WARNING]\n> " + shorten(words(pr.Detail), 2000) + "\n")
	}
	if hint := reasonOf(pr.Reason).hint; hint != "" {
		w.line("**What to do:** " + hint + ".\n")
	}
}

// danger is the banner for what destroys a cluster, or data, before it has
// happened.
func (w *writer) danger() {
	const most = 8
	var lines []string
	for _, o := range w.outcomes {
		if o.plan == nil || o.applied || o.stale || o.broken {
			continue
		}
		for _, c := range o.plan.Changes {
			if !c.Destroys() || c.Danger() == holdfast.DangerNone {
				continue
			}
			lines = append(lines, dangerLine(o.cluster.Name, c))
		}
	}
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

func dangerLine(cluster string, c holdfast.ResourceChange) string {
	what := "resource that keeps data"
	if c.Danger() == holdfast.DangerCluster {
		what = "cluster"
	}
	verb := "DESTROYED"
	if c.Action == holdfast.ActionReplace {
		verb = "REPLACED"
	}
	why := ""
	if len(c.ReplacePaths) > 0 {
		paths := make([]string, len(c.ReplacePaths))
		for i, path := range c.ReplacePaths {
			paths[i] = code(shorten(path, 80))
		}
		why = ": " + list(paths, 3) + " forces it"
	} else if words := reasonWords(c.Reason); words != "" {
		why = ": " + words
	}
	return fmt.Sprintf("**%s**: the %s %s will be **%s**%s", text(cluster), what, code(shorten(c.Address, 200)), verb, why)
}

// faults is what is wrong with the files, at their lines.
func (w *writer) faults() {
	faults := w.r.PullRequest.Faults
	if len(faults) == 0 {
		return
	}
	w.line("| Where | What is wrong | What to do |\n|---|---|---|")
	for _, f := range firstOf(&w.page, faults, w.level.notes) {
		w.linef("| %s | %s | %s |", code(shorten(f.Position(), 200)), shorten(text(f.Message), 1000), shorten(text(f.Hint), 500))
	}
	if more := len(faults) - w.level.notes; more > 0 {
		w.linef("\n… and %d more.", more)
	}
	w.line("")
}

// attention lists what waits for a person, with the command for it. Clusters
// that wait for the same thing are told together.
func (w *writer) attention() {
	for _, name := range w.total.reasons {
		var clusters, unplanned, lines []string
		for _, o := range w.outcomes {
			if o.stage != stageHeld || o.reason != name {
				continue
			}
			clusters = append(clusters, o.cluster.Name)
			if o.run == nil || o.run.Status != holdfast.RunPlanned {
				unplanned = append(unplanned, o.cluster.Name)
			}
			if o.detail != "" {
				lines = append(lines, fmt.Sprintf("> - %s: %s", code(o.cluster.Name), shorten(words(o.detail), 1500)))
			}
		}
		r := reasonOf(name)
		if r.does == appliesShown && len(unplanned) > 0 {
			r.next, r.does = []holdfast.Verb{holdfast.VerbPlan}, "plans it, to be looked at before it is applied"
		}
		w.linef("> [!IMPORTANT]\n> **%s** %s: %s.", text(name), names(clusters), r.words)
		for _, line := range firstOf(&w.page, lines, w.level.notes) {
			w.line(line)
		}
		if len(r.next) > 0 {
			w.line(">\n> " + w.remedy(r, clusters))
		}
		if r.hint != "" {
			w.line(">\n> " + r.hint + ".")
		}
		w.line("")
	}
}

// remedy is the commands for a reason, ready to be copied. A command without
// names is for all clusters.
func (w *writer) remedy(r reason, clusters []string) string {
	const most = 20
	switch {
	case len(clusters) == w.total.all && w.total.all > 1:
		clusters = nil
	case len(clusters) > most:
		clusters = clusters[:most]
	}
	parts := []string{fmt.Sprintf("%s %s", command(r.next[0], clusters...), r.does)}
	for _, verb := range r.next[1:] {
		parts = append(parts, fmt.Sprintf("%s plans again", command(verb, clusters...)))
	}
	return strings.Join(parts, " · ")
}

func names(clusters []string) string {
	quoted := make([]string, len(clusters))
	for i, name := range clusters {
		quoted[i] = code(name)
	}
	return list(quoted, 10)
}

// failures says what went wrong, cluster by cluster.
func (w *writer) failures() {
	told := 0
	for _, o := range w.outcomes {
		if o.failure == nil && o.stage != stageFailed {
			continue
		}
		if told++; told > w.level.notes {
			w.dropped = true
			return
		}
		w.failure(o)
	}
}

func (w *writer) failure(o outcome) {
	f := o.failure
	if f == nil {
		if o.detail != "" {
			w.linef("**%s** %s: %s\n", text(o.cluster.Name), o.result, shorten(words(o.detail), 1500))
		}
		return
	}
	w.linef("**%s**: %s", text(o.cluster.Name), orElse(shorten(text(f.Summary), 500), o.result))
	for _, d := range firstOf(&w.page, f.Diagnostics, min(w.level.notes, 5)) {
		w.linef("- %s", diagnosticLine(d, 500))
	}
	if more := len(f.Diagnostics) - min(w.level.notes, 5); more > 0 {
		w.linef("- … and %d more", more)
	}
	w.line("")
	if f.Detail != "" && w.level.rows > 0 {
		w.line("<details><summary>What the engine said</summary>\n\n" + fenced("", w.cut(f.Detail, min(w.level.notes*4, 100))) + "\n\n</details>\n")
	}
	if len(f.Unrecorded) > 0 {
		w.line("> [!CAUTION]\n> These were in progress when the engine died, and may exist without being in the state:")
		for _, address := range firstOf(&w.page, f.Unrecorded, max(w.level.notes, 5)) {
			w.line("> - " + code(shorten(address, 200)))
		}
		w.line("")
	}
	if len(o.cluster.Created) > 0 {
		created := make([]string, 0, len(o.cluster.Created))
		for _, address := range firstOf(&w.page, o.cluster.Created, max(w.level.notes, 5)) {
			created = append(created, code(shorten(address, 200)))
		}
		w.linef("Created before it failed: %s\n", list(created, len(created)))
	}
	if f.Hint != "" {
		w.linef("**What to do:** %s\n", shorten(text(f.Hint), 500))
	}
	if f.Transient && o.stage == stageFailed && o.cluster.Waiting == "BackingOff" {
		w.line("The cause (" + text(f.Cause) + ") is a passing one: it goes on by itself.\n")
	}
	// The file of a plan whose apply failed is never used again.
	if o.broken && o.reason != "" && !isPassing(o.reason) {
		again := reason{next: []holdfast.Verb{holdfast.VerbPlan}, does: "shows what is left to do"}
		w.line(w.remedy(again, []string{o.cluster.Name}) + "\n")
	}
}

func diagnosticLine(d holdfast.Diagnostic, limit int) string {
	line := shorten(text(d.Summary), limit)
	if d.Detail != "" {
		line += ": " + shorten(text(d.Detail), limit)
	}
	if d.File != "" {
		at := d.File
		if d.Line > 0 {
			at = fmt.Sprintf("%s:%d", d.File, d.Line)
		}
		line += " (" + code(shorten(at, 200)) + ")"
	}
	if d.Address != "" {
		line += " in " + code(shorten(d.Address, 200))
	}
	return line
}
