package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/unseen"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// words make requests of notifications.
type words struct {
	kind     Type
	template *template.Template // nil: the usual words
}

// textLimit is how many characters a template may make of one notification.
const textLimit = 2000

// newWords parses a template, and executes it with an example: one that is wrong is
// found before there is something to send. It has the fields of a notification, made
// harmless for the type, and of type Webhook the function json.
func newWords(kind Type, text string) (*words, error) {
	w := &words{kind: kind}
	if text == "" {
		return w, nil
	}
	asJSON := func(v any) (string, error) {
		b, err := json.Marshal(v)
		return string(b), err
	}
	t, err := template.New("template").Option("missingkey=error").Funcs(template.FuncMap{"json": asJSON}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the template is wrong: %w", err)
	}
	w.template = t
	for _, example := range examples() {
		if _, err := w.bodies([]outgoing.Notification{example}); err != nil {
			return nil, err
		}
		if _, err := w.execute(example); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// examples are a notification with everything, and one with the least.
func examples() []outgoing.Notification {
	return []outgoing.Notification{
		{
			ID: "id", Channel: "ops", Event: outgoing.NotifyFailed, Cluster: "prod-eu", Project: "payments", Environment: "production",
			Title: `apply failed: "quota" exceeded`, Detail: "5 of 5 VPCs\nare in use", Command: "holdfast apply prod-eu", Reason: holdfast.ReasonApplyFailed,
			Run: "run-1", PullRequest: "acme/clusters#7", URL: "https://holdfast.example.com/runs/run-1", At: time.Unix(0, 0).UTC(),
		},
		{ID: "id", Channel: "ops", Event: outgoing.NotifyApplied, Cluster: "dev", Title: "applied"},
	}
}

// execute is what the template makes of a notification.
func (w *words) execute(n outgoing.Notification) (string, error) {
	var b bytes.Buffer
	if err := w.template.Execute(&b, n); err != nil {
		return "", fmt.Errorf("the template is wrong: %w", err)
	}
	if w.kind == Webhook && !json.Valid(b.Bytes()) {
		return "", errors.New("the template does not make JSON: quote fields with {{json .Title}}")
	}
	return b.String(), nil
}

// own is what the template makes of a notification in a chat. It reports false without a
// template, and if that makes nothing of this one: no host takes an empty text, and what is
// behind it must not wait for it. The usual words are sent then.
func (w *words) own(n outgoing.Notification) (string, bool) {
	if w.template == nil {
		return "", false
	}
	text, err := w.execute(n)
	return shorten(text, textLimit), err == nil && strings.TrimSpace(text) != ""
}

// bodies are the requests for notifications.
func (w *words) bodies(notifications []outgoing.Notification) ([]body, error) {
	if len(notifications) == 0 {
		return nil, nil
	}
	switch w.kind {
	case Slack:
		return w.message(notifications, w.slack)
	case Teams:
		return w.message(notifications, w.teams)
	case Webhook:
		return w.webhook(notifications)
	default:
		return nil, fmt.Errorf("there is no type %q of channels", w.kind)
	}
}

const (
	most         = 20       // notifications in one message of a chat
	messageLimit = 27 << 10 // bytes of it: Teams takes 28 KB
)

// message makes one message of all.
func (w *words) message(notifications []outgoing.Notification, of func(shown []outgoing.Notification, more int) any) ([]body, error) {
	for shown := notifications[:min(len(notifications), most)]; ; shown = shown[:len(shown)/2] {
		b, err := json.Marshal(of(shown, len(notifications)-len(shown)))
		if err != nil || len(b) <= messageLimit || len(shown) == 1 {
			return []body{{notifications[0].ID, b}}, err
		}
	}
}

// webhook makes a request of all, or with a template one of each.
func (w *words) webhook(notifications []outgoing.Notification) ([]body, error) {
	if w.template == nil {
		b, err := json.Marshal(map[string]any{"notifications": notifications})
		return []body{{notifications[0].ID, b}}, err
	}
	bodies := make([]body, len(notifications))
	for i, n := range notifications {
		text, err := w.execute(n)
		bodies[i] = body{n.ID, []byte(text)}
		if err != nil { // those behind it must not wait for it
			if bodies[i].json, err = json.Marshal(map[string]any{"notifications": notifications[i : i+1]}); err != nil {
				return nil, err
			}
		}
	}
	return bodies, nil
}

// icons are what is seen first.
var icons = map[outgoing.NotificationEvent]string{ //nolint:gochecknoglobals // a constant table
	outgoing.NotifyApplied: "✅", outgoing.NotifyFailed: "❌", outgoing.NotifyWaiting: "✋",
	outgoing.NotifyDrift: "🟠", outgoing.NotifyDestroyed: "🗑️",
}

// place is where a cluster is: "production of payments".
func place(n outgoing.Notification) string {
	switch {
	case n.Environment == "":
		return n.Project
	case n.Project == "":
		return n.Environment
	default:
		return n.Environment + " of " + n.Project
	}
}

// harmless is a notification whose texts were put through a function, except for its
// address, which is ours.
func harmless(n outgoing.Notification, through func(string) string) outgoing.Notification {
	for _, field := range []*string{&n.Title, &n.Detail} {
		*field = through(shorten(oneLine(*field), 300))
	}
	for _, field := range []*string{&n.Cluster, &n.Project, &n.Environment, &n.Command, &n.Run, &n.PullRequest} {
		*field = through(shorten(oneLine(*field), 120))
	}
	n.Reason = holdfast.Reason(through(string(n.Reason)))
	return n
}

// oneLine is a text on one line, without what cannot be seen.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unseen.Is(r):
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

func shorten(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit-1]) + "…"
}
