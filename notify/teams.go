package notify

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/outgoing"
)

// teams is a message with an adaptive card. Texts of others are in text runs, which have no
// markup.
func (w *words) teams(notifications []outgoing.Notification, more int) any {
	type object = map[string]any
	run := func(text string, bold bool) object {
		o := object{"type": "TextRun", "text": text}
		if bold {
			o["weight"] = "Bolder"
		}
		return o
	}
	block := func(inlines ...any) object { return object{"type": "RichTextBlock", "inlines": inlines} }
	var parts []any
	var actions []any
	for _, n := range notifications {
		plain := harmless(n, func(s string) string { return s })
		if text, ok := w.own(plain); ok {
			parts = append(parts, block(run(text, false)))
		} else {
			parts = append(parts, block(run(icons[n.Event]+" ", false), run(plain.Cluster, true), run(" "+plain.Title, false)))
			for _, line := range []string{plain.Detail, facts(plain)} {
				if line != "" {
					parts = append(parts, block(run(line, false)))
				}
			}
		}
		if isLink(n.URL) && len(actions) < 5 {
			actions = append(actions, object{"type": "Action.OpenUrl", "title": shorten(plain.Cluster, 40), "url": n.URL})
		}
	}
	if more > 0 {
		parts = append(parts, block(run(fmt.Sprintf("… and %d more", more), false)))
	}
	card := object{
		"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
		"fallbackText": summary(notifications, more), "body": parts,
	}
	if len(actions) > 0 {
		card["actions"] = actions
	}
	return object{
		"type":        "message",
		"attachments": []any{object{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}},
	}
}

// facts are what else there is to know of a notification, in a line.
func facts(n outgoing.Notification) string {
	var parts []string
	for _, fact := range []string{place(n), n.PullRequest, n.Command} {
		if fact != "" {
			parts = append(parts, fact)
		}
	}
	return strings.Join(parts, " · ")
}
