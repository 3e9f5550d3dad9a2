package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
	"github.com/holdfast-dev/holdfast/statelock"
)

// choice is one thing that a person can do about a failed run. Without a command
// it is done elsewhere, such as in the code.
type choice struct {
	comment  string // the command in a comment, with its cluster
	terminal string // the same for a terminal
	does     string
}

// inCode are causes that a change of code, or of the cluster's document, fixes.
var inCode = map[holdfast.Reason]bool{
	holdfast.CauseInvalidConfiguration: true, holdfast.ReasonInvalid: true, holdfast.CauseNotFound: true, holdfast.CauseConflict: true, holdfast.CauseEngineFailed: true,
	holdfast.CauseUnreadablePlan: true, holdfast.CauseUntrustedPlan: true, holdfast.CauseWorkspaceTooLarge: true,
}

// choicesOf are what can be done about a failed run, best first.
func choicesOf(run holdfast.Run) []choice {
	var choices []choice
	add := func(more ...choice) { choices = append(choices, more...) }
	logs := choice{terminal: "holdfast logs " + run.ID, does: "shows the full log"}
	if run.Attempt == 0 {
		logs = choice{}
	}
	f := holdfast.Failure{}
	if run.Failure != nil {
		f = *run.Failure
	}
	plan := choice{
		comment: commentCommand(holdfast.VerbPlan, run.Cluster), terminal: replanCommand(run),
		does: "plans again, once the cause is fixed",
	}
	apply := choice{comment: commentCommand(holdfast.VerbApply, run.Cluster), terminal: "holdfast apply " + run.Cluster}
	add(lockChoices(run, f.Cause)...)
	if f.Cause == holdfast.CauseStateUnsaved || !run.Kind.Plans() {
		add(stateChoices(run)...)
		add(logs)
		return slices.DeleteFunc(choices, func(c choice) bool { return c == choice{} })
	}
	switch {
	case run.Status == holdfast.RunRetrying:
		add(choice{does: "nothing to do: it is retried automatically"}, choice{
			comment: commentCommand(holdfast.VerbCancel, run.Cluster), terminal: "holdfast cancel " + run.ID, does: "cancels it",
		})
	case run.Kind == holdfast.RunDrift:
		add(choice{terminal: "holdfast drift check " + run.Cluster, does: "repeats the check, once the cause is fixed"})
	case run.Kind.Writes() && run.Begun && f.Transient:
		add(choice{does: "nothing to do: transient error, retried automatically a few times"})
	case run.Kind == holdfast.RunDestroy && run.Begun:
		apply.does = "destroys what is left, once its plan is shown and the cause is fixed"
		add(apply, choice{does: "restore the document in a pull request; resources already destroyed will be created again"})
	case run.Kind.Writes() && run.Begun:
		plan.does = "shows what is left to do"
		apply.does = "applies it, once the cause is fixed"
		add(plan, apply, choice{does: "revert the pull request; the revert is planned, reviewed and applied like any other change"})
	case !run.PullRequest.IsZero() && inCode[f.Cause]:
		add(choice{does: "correct the code and push: it is planned again automatically"}, plan)
	case inCode[f.Cause]:
		add(choice{does: "correct the code in a new pull request"}, plan)
	default:
		add(plan)
	}
	add(logs)
	return slices.DeleteFunc(choices, func(c choice) bool { return c == choice{} })
}

// lockChoices are what can be done about the lock that a run did not get.
func lockChoices(run holdfast.Run, cause holdfast.Reason) []choice {
	lock, known := statelock.Of(run)
	switch {
	case known:
		return []choice{{
			terminal: "holdfast unlock " + run.Cluster + " --lock " + lock.ID,
			does:     "releases the backend's lock, if it was left by a run of Holdfast that died; " + orElse(lock.Who, "somebody") + " holds it",
		}}
	case cause != holdfast.CauseStateLocked:
		return nil
	case run.StateLocation != "" && !holdfast.OwnState(run.StateLocation):
		return []choice{{does: "wait until the other process has finished, or end it; a lock in PostgreSQL ends with its session"}}
	default:
		return []choice{{
			comment: commentCommand(holdfast.VerbUnlock, run.Cluster), terminal: "holdfast unlock " + run.Cluster,
			does: "shows who holds the lock, and releases it if the holder is dead",
		}}
	}
}

// stateChoices are what can be done about a state that could not be saved, or pushed,
// and about a lock that could not be released.
func stateChoices(run holdfast.Run) []choice {
	if run.State.Unlocks() {
		return []choice{{
			terminal: "holdfast unlock " + run.Cluster + " --lock " + run.State.LockID,
			does:     "retries, once the cause is fixed",
		}}
	}
	if run.State.Migrates() {
		return []choice{{terminal: "holdfast state migrate " + run.Cluster, does: "starts again, once the cause is fixed; the state is still at its former place"}}
	}
	choices := []choice{
		{terminal: "holdfast state push " + run.Cluster, does: "pushes it now"},
		{terminal: "holdfast state get " + run.Cluster, does: "writes it to a file"},
		{terminal: "holdfast state waive " + run.Cluster + " --reason TEXT", does: "discards it: resources that are only in it will be created again"},
	}
	if run.Kind != holdfast.RunState || run.Failure != nil && run.Failure.Transient {
		choices = slices.Insert(choices, 0, choice{does: "wait: the state is pushed automatically as soon as the backend accepts it; nothing is planned or applied before"})
	}
	return choices
}

// replanCommand plans again what the run planned.
func replanCommand(run holdfast.Run) string {
	if run.PullRequest.IsZero() {
		return "holdfast replan " + run.Cluster
	}
	return "holdfast replan " + run.PullRequest.String() + " -c " + run.Cluster
}

func commentCommand(verb holdfast.Verb, cluster string) string {
	return "/holdfast " + string(verb) + " -c " + cluster
}

// failurePlace is where a run failed, to be followed by why.
func failurePlace(f holdfast.Failure) string {
	switch {
	case f.Address != "" && f.Step != "":
		return "at " + markdown.Code(markdown.Shorten(f.Address, 200)) + " " + during(markdown.Code(markdown.Shorten(f.Step, 40))) + ": "
	case f.Address != "":
		return "at " + markdown.Code(markdown.Shorten(f.Address, 200)) + ": "
	case f.Step != "":
		return during(markdown.Code(markdown.Shorten(f.Step, 40))) + ": "
	default:
		return ""
	}
}

// during says in which step something happened.
func during(step string) string {
	switch strings.Trim(step, "`") {
	case "plan":
		return "while planning"
	case "apply":
		return "while applying"
	default:
		return "in step " + step
	}
}

// tellFailure says in a comment what went wrong, where, what was done before, and how
// to fix it.
func (w *writer) failureBody(o outcome, f holdfast.Failure) {
	w.linef("**%s**: %s", markdown.Text(o.cluster.Name), orElse(markdown.ShortText(f.Summary, 500), o.result))
	if where := strings.TrimSuffix(failurePlace(f), ": "); where != "" {
		if f.Cause != "" {
			where += " (" + markdown.Code(markdown.Shorten(string(f.Cause), 60)) + ")"
		}
		w.line("- " + where)
	}
	for _, d := range firstOf(&w.page, f.Diagnostics, min(w.level.notes, 5)) {
		w.linef("- %s", w.diagnosticOf(o.cluster, d, 500))
		if d.Snippet != "" && w.level.rows > 0 {
			w.line("\n" + markdown.Fenced("", w.cut(d.Snippet, 12)) + "\n")
		}
	}
	if more := len(f.Diagnostics) - min(w.level.notes, 5); more > 0 {
		w.linef("- … and %d more", more)
	}
	if origin := originOf(w, o.cluster, f); origin != "" {
		w.line("- " + origin)
	}
	w.line("")
	// Do not repeat what a diagnostic already says.
	if f.Detail != "" && w.level.rows > 0 && !slices.ContainsFunc(f.Diagnostics, func(d holdfast.Diagnostic) bool { return d.Detail == f.Detail }) {
		w.line("<details><summary>Engine output</summary>\n\n" + markdown.Fenced("", w.cut(f.Detail, min(w.level.notes*4, 100))) + "\n\n</details>\n")
	}
	if len(f.Unrecorded) > 0 {
		w.line("> [!CAUTION]\n> These may exist without being in the state:")
		for _, address := range firstOf(&w.page, f.Unrecorded, max(w.level.notes, 5)) {
			w.line("> - " + markdown.Code(markdown.Shorten(address, 200)))
		}
		if more := len(f.Unrecorded) - max(w.level.notes, 5); more > 0 {
			w.linef("> - … and %d more", more)
		}
		w.line("")
	}
	if f.ProgressLost {
		w.line("> [!CAUTION]\n> " + progressLost + "\n")
	}
	w.addresses("Done before it failed", f.Completed)
	w.addresses("Left in the state", f.Remaining)
	if f.Hint != "" {
		w.linef("**What to do:** %s\n", sentence(markdown.ShortHint(f.Hint, 500)))
	}
}

// variableName is a variable in what an engine says.
var variableName = regexp.MustCompile(`\bvar\.([A-Za-z_][A-Za-z0-9_-]*)`)

// originOf is where in its repository a cluster's refused configuration comes from: its
// document, and which of the document's variables the engine names. What is rendered from a
// template is in no file there.
func originOf(w *writer, c Cluster, f holdfast.Failure) string {
	if c.Document.Template == nil || c.Document.Path == "" || !inCode[f.Cause] {
		return ""
	}
	var named []string
	for _, d := range f.Diagnostics {
		for _, m := range variableName.FindAllStringSubmatch(markdown.Clip(d.Summary+" "+d.Detail+" "+d.Snippet, 1000), -1) {
			name := markdown.Code(markdown.Shorten(m[1], 80))
			if _, set := c.Document.Variables[m[1]]; set && !slices.Contains(named, name) {
				named = append(named, name)
			}
		}
	}
	place := fmt.Sprintf("%s:%d", c.Document.Path, max(c.Document.Line, 1))
	origin := "rendered from " + w.linked(markdown.Code(markdown.Shorten(place, 200)), c.Document.Path, max(c.Document.Line, 1))
	if len(named) > 0 {
		origin += ", which sets " + oneOrMany(len(named), "the variable ", "the variables ") + markdown.List(named, 5)
	}
	return origin
}

// progressLost is the text for a list of what an apply did whose end is lost.
const progressLost = "The record of this apply is incomplete: it may have begun or completed more than is listed."

// addresses is a list that is folded away when it is long.
func (w *writer) addresses(title string, lines []string) {
	const short = 3
	if len(lines) == 0 {
		return
	}
	shown := firstOf(&w.page, lines, max(w.level.notes, short))
	quoted := make([]string, len(shown))
	for i, line := range shown {
		quoted[i] = doneWords(line)
	}
	more := len(lines) - len(shown)
	if len(lines) <= short {
		w.linef("%s: %s\n", title, markdown.List(quoted, len(quoted)))
		return
	}
	w.linef("<details><summary>%s (%d)</summary>\n", title, len(lines))
	for _, line := range quoted {
		w.line("- " + line)
	}
	if more > 0 {
		w.linef("- … and %d more", more)
	}
	w.line("\n</details>\n")
}

// doneWords is "aws_vpc.main: created" with the address as code.
func doneWords(line string) string {
	i := strings.LastIndex(line, ": ")
	if i < 0 || strings.Trim(line[i+2:], "abcdefghijklmnopqrstuvwxyz ") != "" {
		return markdown.Code(markdown.Shorten(line, 200))
	}
	return markdown.Code(markdown.Shorten(line[:i], 200)) + " " + markdown.ShortText(line[i+2:], 40)
}

// choices lists what can be done, with commands that are ready to be copied.
// Where the command is shown elsewhere, only the others are left.
func (w *writer) choices(run holdfast.Run, commandsShown bool) {
	if w.level.rows == 0 || run.Status == holdfast.RunRetrying {
		return // the table says when it is retried
	}
	next := !w.r.merged() && w.lone() // which has the commands, and says to push
	choices := slices.DeleteFunc(choicesOf(run), func(c choice) bool {
		return c.comment != "" && (commandsShown || next) || next && c.comment+c.terminal == ""
	})
	if len(choices) == 0 {
		return
	}
	// Those of one cluster are shown; for the others it says that they are the same.
	same := fmt.Sprint(choices)
	for _, s := range []string{run.ID, run.Cluster} {
		if s != "" {
			same = strings.ReplaceAll(same, s, "…")
		}
	}
	if first := w.choicesOf[same]; first != "" && first != run.Cluster {
		w.linef("What you can do: see **%s** above.\n", markdown.Text(first))
		return
	}
	if w.choicesOf == nil {
		w.choicesOf = map[string]string{}
	}
	w.choicesOf[same] = run.Cluster
	w.line("**What you can do:**")
	for _, c := range choices {
		switch command := orElse(c.comment, c.terminal); command {
		case "":
			w.line("- " + c.does)
		default:
			w.line("- " + markdown.Code(markdown.Shorten(command, 200)) + " " + c.does)
		}
	}
	w.line("")
}

// FailureText returns why a run failed, where, what it had done before, and what
// can be done now, as plain text for a terminal. It is empty if the run did not
// fail.
func FailureText(run holdfast.Run) string {
	f := run.Failure
	if f == nil {
		return ""
	}
	p := &painter{}
	p.line("", "%s", orElse(markdown.OneLine(f.Summary), "it failed"))
	if f.Address != "" {
		p.line("", "  at %s", markdown.OneLine(f.Address))
	}
	if f.Step != "" || f.Cause != "" {
		p.line("", "  failed %s (%s)", during(orElse(markdown.OneLine(f.Step), "unknown")), orElse(markdown.OneLine(string(f.Cause)), "unknown cause"))
	}
	for _, d := range f.Diagnostics {
		p.line("", "  %s", diagnosticText(d))
		for _, line := range strings.Split(strings.TrimRight(d.Snippet, "\n"), "\n") {
			if line != "" {
				p.line("", "    | %s", line)
			}
		}
	}
	p.block("Engine output:", f.Detail)
	p.list("These may exist without being in the state:", f.Unrecorded)
	if f.ProgressLost {
		p.line("", progressLost)
	}
	p.list("Done before it failed:", f.Completed)
	p.list("Left in the state:", f.Remaining)
	if f.Hint != "" {
		p.line("", "What to do: %s", sentence(markdown.OneLine(strings.ReplaceAll(f.Hint, "`", ""))))
	}
	p.choices(run)
	return p.b.String()
}

func diagnosticText(d holdfast.Diagnostic) string {
	line := orElse(markdown.OneLine(d.Severity), "error") + ": " + markdown.OneLine(d.Summary)
	if d.Detail != "" {
		line += ": " + markdown.Shorten(markdown.OneLine(d.Detail), 1000)
	}
	if d.File != "" {
		line += fmt.Sprintf(" (%s:%d)", markdown.OneLine(d.File), d.Line)
	}
	if d.Address != "" {
		line += " in " + markdown.OneLine(d.Address)
	}
	return line
}

// block is lines of others, set apart.
func (p *painter) block(title, s string) {
	s = strings.Trim(markdown.Printable(s), "\n")
	if s == "" {
		return
	}
	p.line("", "%s", title)
	for _, line := range strings.Split(s, "\n") {
		p.line("", "%s", strings.TrimRight("  | "+line, " "))
	}
}

func (p *painter) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.line("", "%s", title)
	for _, line := range lines {
		p.line("", "  %s", markdown.OneLine(line))
	}
}

func (p *painter) choices(run holdfast.Run) {
	pr := pullRequestOf(run)
	choices := slices.DeleteFunc(choicesOf(run), func(c choice) bool {
		return pr == "" && c.terminal == "" && c.comment != "" // nowhere to write it
	})
	width := 0
	for _, c := range choices {
		width = max(width, len(orElse(c.terminal, c.comment)))
	}
	if len(choices) == 0 {
		return
	}
	p.line("", "What you can do:")
	for _, c := range choices {
		does := c.does
		if c.terminal == "" && c.comment != "" {
			does += " (as a comment on " + pr + ")"
		}
		if command := orElse(c.terminal, c.comment); command != "" {
			does = fmt.Sprintf("%-*s  %s", min(width, 60), markdown.OneLine(command), does)
		}
		p.line("", "  %s", does)
	}
}

// pullRequestOf is where a run can be commanded by a comment; empty if it came
// to the tracked branch without a pull request.
func pullRequestOf(run holdfast.Run) string {
	if !run.PullRequest.IsZero() {
		return markdown.OneLine(run.PullRequest.String())
	}
	for _, review := range run.Reviews {
		if !review.PullRequest.IsZero() {
			return markdown.OneLine(review.PullRequest.String())
		}
	}
	return ""
}
