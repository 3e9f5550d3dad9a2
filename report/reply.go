package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

var verbs = []holdfast.Verb{
	holdfast.VerbPlan, holdfast.VerbApply, holdfast.VerbApprove, holdfast.VerbWaive, holdfast.VerbCancel, holdfast.VerbUnlock, holdfast.VerbHelp,
}

const helpText = "| Command | What it does |\n|---|---|\n" +
	"| `/holdfast plan` | plans all clusters of the pull request again |\n" +
	"| `/holdfast plan --all` | plans every cluster that a change of a template would change, not only samples |\n" +
	"| `/holdfast apply` | after the merge: applies, or destroys, exactly what the comment shows |\n" +
	"| `/holdfast approve` | approves the plans shown |\n" +
	"| `/holdfast waive POLICY --reason WHY` | has a policy not count for these plans, if you are one of its owners |\n" +
	"| `/holdfast cancel` | stops what is queued or running |\n" +
	"| `/holdfast unlock` | releases a lock whose holder is dead; `--force` also if its holder is alive |\n" +
	"| `/holdfast help` | shows this |\n\n" +
	"`-c NAME` limits a command to a cluster and may be repeated."

// Reply returns the answer to a command that was refused, or that asks for
// words. It is empty for a command that was done and has nothing to say: a
// reaction is enough.
func Reply(c holdfast.Command) string {
	quote := "> " + markdown.Code(markdown.Shorten(c.Text, 200)) + "\n\n"
	switch {
	case c.Barred != "":
		return quote + "**Refused:** " + replyWords(c.Barred) + "\n"
	case c.Verb == holdfast.VerbHelp:
		return quote + helpText + "\n"
	case c.Verb == holdfast.VerbUnknown:
		word := unknownWord(c.Text)
		answer := quote + "Unknown command."
		if guess := nearestVerb(word); guess != "" {
			answer += " Did you mean " + markdown.Code("/holdfast "+guess) + "?"
		}
		return answer + "\n\n" + helpText + "\n"
	case c.Status == holdfast.CommandRefused:
		return quote + "**Refused:** " + orElse(replyWords(c.Reply), "it cannot be done") + "\n"
	case c.Reply == "":
		return ""
	default:
		return quote + replyWords(c.Reply) + "\n"
	}
}

// replyWords is a reply as Markdown: several lines, of a cluster each, are a
// list, and what is in backticks is code.
func replyWords(s string) string {
	const most = 40
	var lines []string
	for line := range strings.Lines(s) {
		if line = markdown.OneLine(line); line != "" {
			lines = append(lines, spans(markdown.Shorten(line, 500)))
		}
	}
	switch {
	case len(lines) < 2:
		return strings.Join(lines, "")
	case len(lines) > most:
		lines = append(lines[:most], fmt.Sprintf("… and %d more", len(lines)-most))
	}
	return "\n- " + strings.Join(lines, "\n- ")
}

// spans is words with what is in backticks as code, if each backtick has a second one.
func spans(line string) string {
	parts := strings.Split(line, "`")
	if len(parts)%2 == 0 {
		return markdown.Words(line)
	}
	var b strings.Builder
	for i, part := range parts {
		switch inner := strings.TrimSpace(part); {
		case i%2 == 1 && inner == "":
			return markdown.Words(line)
		case i%2 == 1:
			b.WriteString(markdown.Code(inner))
		case inner == "":
			b.WriteString(part)
		default:
			before, after, _ := strings.Cut(part, inner)
			b.WriteString(before + markdown.Words(inner) + after)
		}
	}
	return b.String()
}

func unknownWord(line string) string {
	fields := strings.Fields(line)
	if i := slices.Index(fields, "/holdfast"); i >= 0 {
		fields = fields[i+1:]
	}
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// Help returns the commands as plain text.
func Help() string {
	var b strings.Builder
	for _, row := range strings.Split(helpText, "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		switch {
		case len(cells) == 2 && cells[0] != "Command":
			fmt.Fprintf(&b, "%-20s %s\n", plain(cells[0]), plain(cells[1]))
		case row != "" && !strings.HasPrefix(row, "|"):
			b.WriteString(plain(row) + "\n")
		}
	}
	return b.String()
}

// DidYouMean answers a line, or a word, that is not a command: a sentence that
// names the nearest one, or all of them if none is near.
func DidYouMean(line string) string {
	word := unknownWord(line)
	if word == "" {
		word = "/holdfast"
	}
	answer := fmt.Sprintf("unknown command %q", markdown.Shorten(markdown.OneLine(word), 40))
	if verb := nearestVerb(word); verb != "" {
		return answer + "; did you mean /holdfast " + verb + "?"
	}
	all := make([]string, len(verbs))
	for i, verb := range verbs {
		all[i] = string(verb)
	}
	return answer + "; there are " + markdown.List(all, len(all))
}

// nearestVerb returns the verb that word is nearest to; empty if it is near
// none.
func nearestVerb(word string) string {
	word = strings.ToLower(strings.Trim(word, ".,;:!?`'\"/"))
	if len(word) < 2 || len(word) > 20 {
		return ""
	}
	others := map[string]holdfast.Verb{
		"run": holdfast.VerbApply, "deploy": holdfast.VerbApply, "merge": holdfast.VerbApply, "replan": holdfast.VerbPlan,
		"preview": holdfast.VerbPlan, "diff": holdfast.VerbPlan, "stop": holdfast.VerbCancel, "abort": holdfast.VerbCancel,
		"lgtm": holdfast.VerbApprove, "ok": holdfast.VerbApprove, "confirm": holdfast.VerbApprove, "release": holdfast.VerbUnlock,
		"usage": holdfast.VerbHelp, "commands": holdfast.VerbHelp,
	}
	if verb, ok := others[word]; ok {
		return string(verb)
	}
	best, bestDistance := "", 3
	for _, verb := range verbs {
		distance := nearest.Distance(word, string(verb))
		if strings.HasPrefix(string(verb), word) && len(word) >= 3 {
			distance = min(distance, 1)
		}
		if distance < bestDistance && distance < len(word) {
			best, bestDistance = string(verb), distance
		}
	}
	return best
}
