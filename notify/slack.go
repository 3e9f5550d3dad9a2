package notify

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/outgoing"
)

type slackMessage struct {
	Text   string       `json:"text"` // what a notification of a phone shows
	Blocks []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type string    `json:"type"`
	Text slackText `json:"text"`
}

type slackText struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Verbatim bool   `json:"verbatim"` // no text becomes a link or a mention
}

// slackSection is how long the text of a section may be.
const slackSection = 3000

// slack is a message with a section for each notification.
func (w *words) slack(notifications []outgoing.Notification, more int) any {
	message := slackMessage{Text: slackEscape(summary(notifications, more))}
	add := func(text string) {
		message.Blocks = append(message.Blocks, slackBlock{"section", slackText{"mrkdwn", shorten(text, slackSection), true}})
	}
	for _, n := range notifications {
		add(w.slackText(harmless(n, slackEscape)))
	}
	if more > 0 {
		add(fmt.Sprintf("… and %d more", more))
	}
	return message
}

// slackText is one notification whose texts are escaped.
func (w *words) slackText(n outgoing.Notification) string {
	if text, ok := w.own(n); ok {
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s *%s* %s", icons[n.Event], n.Cluster, n.Title)
	if n.Detail != "" {
		b.WriteString("\n" + n.Detail)
	}
	var facts []string
	for _, fact := range []string{place(n), n.PullRequest} {
		if fact != "" {
			facts = append(facts, fact)
		}
	}
	if n.Command != "" {
		facts = append(facts, "`"+strings.ReplaceAll(n.Command, "`", "'")+"`")
	}
	if isLink(n.URL) {
		facts = append(facts, "<"+n.URL+"|more>")
	}
	if len(facts) > 0 {
		b.WriteString("\n" + strings.Join(facts, " · "))
	}
	return b.String()
}

// slackEscape makes that of a text harmless which could be a link or a mention.
func slackEscape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// summary is all in a line.
func summary(notifications []outgoing.Notification, more int) string {
	first := notifications[0]
	line := shorten(oneLine(fmt.Sprintf("%s %s %s", icons[first.Event], first.Cluster, first.Title)), 300)
	if n := len(notifications) - 1 + more; n > 0 {
		line += fmt.Sprintf(" (and %d more)", n)
	}
	return line
}

// isLink reports whether something may be the target of a link.
func isLink(url string) bool {
	return (strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")) &&
		!strings.ContainsFunc(url, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("|<>\"'`", r) })
}
