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
	// tooLong says why a comment of more than maxMarkdown commands nothing.
	tooLong = "a comment longer than 16 KiB is not searched for commands; write the command in a comment without the rest"
	// tooMany says why the first command beyond maxCommands, and all after it, are not carried out.
	tooMany = "only the first 10 commands of a comment are carried out; this one and those after it are not: " +
		"write them in another comment"
)

// Commands returns the commands in a comment, complete and with the ids under which
// they are stored once: deliveries and polls make the same ones. Bots command nothing,
// nor do our own comments. In a comment that was edited only the first command counts,
// under the id that the first one had before: an edit neither repeats nor adds a
// command, and one whose first version got lost is still obeyed. If its author is not
// known to have edited it, that one is barred: whoever may write in a repository can
// edit everybody's comments.
func Commands(comment holdfast.Comment) []holdfast.Command {
	if comment.Bot {
		return nil
	}
	commands := ParseCommands(comment.Body)
	if comment.Edited() && len(commands) > 1 {
		commands = commands[:1]
	}
	for i := range commands {
		c := &commands[i]
		c.ID = holdfast.CommandID(comment.PullRequest.Repo, comment.ID, i)
		c.PullRequest, c.CommentID, c.Author = comment.PullRequest, comment.ID, comment.Author
		// The oldest command is obeyed first, so those of one comment follow
		// one another.
		c.Status, c.CreatedAt = holdfast.CommandReceived, comment.CreatedAt.Add(time.Duration(i)*time.Millisecond)
		c.Said = comment.UpdatedAt
		if !comment.ByAuthor() {
			c.Barred = editedBy(comment)
		}
	}
	return commands
}

// editedBy says why an edited comment commands nothing.
func editedBy(comment holdfast.Comment) string {
	who := "the code host does not say by whom"
	if comment.Editor != "" {
		who = "by " + comment.Editor + ", who is not its author"
	}
	return "the comment was edited, " + who + "; write the command in a new comment"
}

// keptCommand says why the command of an edited comment is not carried out.
const keptCommand = "the comment had this command before it was edited, and the code host does not say who wrote it; " +
	"write the command in a new comment"

// keeps reports whether an edit has left the first command of a body as it was. Its
// author is not known if the delivery of that got lost: the sender, or whoever edited the
// comment before. What is too long to be read may have had every command.
func keeps(former, body string) bool {
	commands := ParseCommands(body)
	return len(commands) > 0 && slices.ContainsFunc(ParseCommands(former), func(c holdfast.Command) bool {
		return c.Barred != "" || c.Text == commands[0].Text
	})
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

// ParseCommands returns the commands in a comment's body, in order, ten at most; one that is barred
// follows them if there are more. A command is a separate line in a plain paragraph:
//
//	/holdfast plan|apply|approve|cancel|unlock|help [-c|--cluster NAME ...] [--force] [NAME ...]
//	/holdfast plan --all
//	/holdfast waive POLICY [-c|--cluster NAME ...] --reason WORDS
//
// What is quoted, code, part of a list, or not shown to readers is not one (see
// ownLines), and nothing is in a comment of ours, which a marker tells. A line
// that asks for something else, or with a flag that does not exist, is a
// VerbUnknown: better answered than guessed at. Only Verb, Clusters, Force, All,
// Waiver, Text and Barred are set.
func ParseCommands(body string) []holdfast.Command {
	if isOurs(body) || !mayCommand(body) {
		return nil
	}
	if len(body) > maxMarkdown {
		return []holdfast.Command{{Verb: holdfast.VerbUnknown, Text: trigger, Barred: tooLong}}
	}
	var commands []holdfast.Command
	for _, line := range ownLines(body) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != trigger {
			continue
		}
		text := clip(strings.TrimSpace(line))
		if len(commands) == maxCommands {
			return append(commands, holdfast.Command{Verb: holdfast.VerbUnknown, Text: text, Barred: tooMany})
		}
		command := parseCommand(words[1:])
		command.Text = text
		commands = append(commands, command)
	}
	return commands
}

// mayCommand reports whether a line of the source begins as a command does: few do, and
// only these are worth parsing.
func mayCommand(body string) bool {
	for line := range strings.Lines(body) {
		if isTrigger(line) {
			return true
		}
	}
	return false
}

func isTrigger(line string) bool {
	words := strings.Fields(line)
	return len(words) > 0 && words[0] == trigger
}

func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if utf8.RuneCountInString(text) <= maxText {
		return text
	}
	return string([]rune(text)[:maxText-1]) + "…"
}

// waiverOf takes the policy and, to the end of the line, the reason out of the words of a
// waiver. Without both it is not one.
func waiverOf(words []string) (rest []string, w holdfast.Waiver) {
	at := slices.IndexFunc(words, func(word string) bool {
		return word == "--reason" || word == "—reason" || strings.HasPrefix(word, "--reason=") || strings.HasPrefix(word, "—reason=")
	})
	if len(words) < 2 || at < 2 || strings.HasPrefix(words[1], "-") {
		return words, w
	}
	_, first, _ := strings.Cut(words[at], "=")
	why := strings.Trim(strings.Join(append([]string{first}, words[at+1:]...), " "), " \"'")
	if why == "" {
		return words, w
	}
	rest = slices.Concat(words[:1], words[2:at])
	return rest, holdfast.Waiver{Waives: strings.Trim(words[1], "`'\""), Why: clip(why)}
}

func parseCommand(words []string) holdfast.Command {
	unknown := holdfast.Command{Verb: holdfast.VerbUnknown}
	if len(words) == 0 {
		return holdfast.Command{Verb: holdfast.VerbHelp}
	}
	command := holdfast.Command{Verb: holdfast.Verb(strings.ToLower(words[0]))}
	switch command.Verb {
	case holdfast.VerbWaive:
		if words, command.Waiver = waiverOf(words); command.Waives == "" {
			return unknown
		}
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
