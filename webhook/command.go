package webhook

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

const (
	trigger = "/holdfast"
	// ownMarker begins a line of every comment of ours.
	ownMarker = "<!-- holdfast:"
	// maxCommands is how many commands of a comment count.
	maxCommands = 10
	// maxText bounds the line of a command that is kept, in characters.
	maxText = 500
)

// Commands returns the commands in a comment, complete and with the ids under
// which they are stored once: deliveries and polls make the same ones. Bots
// command nothing, nor do our own comments. Of a comment that was edited only
// the first command counts, under the id that the first one had before: an
// edit neither repeats nor adds a command, and one whose first version got
// lost is still heard.
func Commands(comment holdfast.Comment) []holdfast.Command {
	if comment.Bot {
		return nil
	}
	commands := ParseCommands(comment.Body)
	if comment.UpdatedAt.After(comment.CreatedAt) && len(commands) > 1 {
		commands = commands[:1]
	}
	for i := range commands {
		c := &commands[i]
		c.ID = holdfast.CommandID(comment.PullRequest.Repo, comment.ID, i)
		c.PullRequest, c.CommentID, c.Author = comment.PullRequest, comment.ID, comment.Author
		// The oldest command is obeyed first, so those of one comment follow
		// one another.
		c.Status, c.CreatedAt = holdfast.CommandReceived, comment.CreatedAt.Add(time.Duration(i)*time.Millisecond)
	}
	return commands
}

// isOurs reports whether a body has a line that begins with our marker. One
// that quotes such a line is not ours.
func isOurs(body string) bool {
	for line := range strings.Lines(body) {
		if strings.HasPrefix(strings.TrimSpace(line), ownMarker) {
			return true
		}
	}
	return false
}

// ParseCommands returns the commands in a comment's body, in order, ten at
// most. A command is a line of its own:
//
//	/holdfast plan|apply|approve|cancel|unlock|help [-c|--cluster NAME ...] [--force] [NAME ...]
//	/holdfast plan --all
//
// What is quoted, code, or not shown to readers (an HTML comment) is none, and
// nothing is in a comment of ours, which a marker tells. A line that asks for
// something else, or with a flag that does not exist, is a VerbUnknown: better
// answered than guessed at. Only Verb, Clusters, Force, All
// and Text are set.
func ParseCommands(body string) []holdfast.Command {
	if isOurs(body) {
		return nil
	}
	var commands []holdfast.Command
	var m markdown
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\r\n")
		if !m.isText(line) {
			continue
		}
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != trigger {
			continue
		}
		command := parseCommand(words[1:])
		command.Text = clip(strings.TrimSpace(line))
		commands = append(commands, command)
		if len(commands) == maxCommands {
			break
		}
	}
	return commands
}

func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if utf8.RuneCountInString(text) <= maxText {
		return text
	}
	return string([]rune(text)[:maxText-1]) + "…"
}

func parseCommand(words []string) holdfast.Command {
	unknown := holdfast.Command{Verb: holdfast.VerbUnknown}
	if len(words) == 0 {
		return holdfast.Command{Verb: holdfast.VerbHelp}
	}
	command := holdfast.Command{Verb: holdfast.Verb(strings.ToLower(words[0]))}
	switch command.Verb {
	case holdfast.VerbPlan, holdfast.VerbApply, holdfast.VerbApprove, holdfast.VerbCancel, holdfast.VerbUnlock, holdfast.VerbHelp:
	default:
		return unknown
	}
	for words = words[1:]; len(words) > 0; words = words[1:] {
		// Keyboards make one long dash of two short ones.
		word := strings.Replace(words[0], "—", "--", 1)
		names := word
		switch {
		case word == "--force" || word == "-f":
			command.Force = true
			continue
		case word == "--all" && command.Verb == holdfast.VerbPlan:
			command.All = true
			continue
		case word == "-c" || word == "--cluster":
			if len(words) == 1 {
				return unknown
			}
			words = words[1:]
			names = words[0]
		case strings.HasPrefix(word, "--cluster="):
			names = strings.TrimPrefix(word, "--cluster=")
		}
		for name := range strings.SplitSeq(names, ",") {
			if name = strings.Trim(name, "`'\""); name == "" || strings.HasPrefix(name, "-") {
				return unknown
			}
			if !slices.Contains(command.Clusters, name) {
				command.Clusters = append(command.Clusters, name)
			}
		}
	}
	if command.All && len(command.Clusters) > 0 {
		return unknown // all, or these?
	}
	return command
}

// markdown tells what of a comment a reader takes for the writer's own words.
// It goes through the lines once.
type markdown struct {
	fence  string // that the open code block began with; empty: none
	hidden string // what ends the open HTML comment or preformatted block
	quote  bool   // in a quoted paragraph: the next line may go on without a >
}

// isText reports whether the next line is ordinary text.
func (m *markdown) isText(line string) bool {
	text := strings.TrimLeft(line, " ")
	indented := len(line)-len(text) >= 4 || strings.HasPrefix(text, "\t")
	switch {
	case m.fence != "":
		run := text[:len(text)-len(strings.TrimLeft(text, m.fence[:1]))]
		if !indented && len(run) >= len(m.fence) && strings.TrimSpace(text[len(run):]) == "" {
			m.fence = ""
		}
		return false
	case m.hidden != "":
		m.endHidden(text)
		return false
	case strings.TrimSpace(text) == "":
		m.quote = false
		return false
	case indented:
		return false
	}
	if fence := fenceOf(text); fence != "" {
		m.fence, m.quote = fence, false
		return false
	}
	m.quote = m.quote || strings.HasPrefix(text, ">")
	m.endHidden(text)
	return !m.quote && m.hidden == ""
}

// fenceOf returns the fence that a line opens a code block with, if it does.
func fenceOf(text string) string {
	for _, char := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, char)
		run := text[:len(text)-len(rest)]
		if len(run) >= 3 && (char == "~" || !strings.Contains(rest, "`")) {
			return run
		}
	}
	return ""
}

// endHidden follows HTML comments and preformatted blocks through a line.
func (m *markdown) endHidden(text string) {
	text = strings.ToLower(text)
	for {
		if m.hidden != "" {
			_, rest, ok := strings.Cut(text, m.hidden)
			if !ok {
				return
			}
			m.hidden, text = "", rest
		}
		comment, pre := strings.Index(text, "<!--"), strings.Index(text, "<pre")
		switch {
		case comment < 0 && pre < 0:
			return
		case pre < 0 || (comment >= 0 && comment < pre):
			m.hidden, text = "-->", text[comment+len("<!--"):]
		default:
			m.hidden, text = "</pre>", text[pre+len("<pre"):]
		}
	}
}
