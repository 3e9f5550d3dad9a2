package notify_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/notify"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// hostile is a notification of which every text tries to be more than text.
func hostile(n int) outgoing.Notification {
	bad := "<!channel> <https://evil.example|click> @all *b* [x](https://evil.example) `c`\n\u202e& " + strings.Repeat("x", 3000)
	return outgoing.Notification{
		ID: fmt.Sprint("ops/", n), Channel: "ops", Event: outgoing.NotifyFailed, Cluster: "prod-eu", Project: bad, Environment: bad,
		Title: bad, Detail: bad, Command: bad, Reason: "ApplyFailed", Run: "run-1", PullRequest: bad,
		URL: "https://holdfast.example.com/runs/run-1", At: time.Unix(1, 0).UTC(),
	}
}

// host is a strict one: it refuses what the real one would, and keeps what it was sent.
type host struct {
	url   string
	got   [][]byte
	heads []http.Header
}

func serve(t *testing.T, check func(body []byte) error) *host {
	t.Helper()
	h := &host{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && (r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.URL.Path != "/services/T0/secret-path") {
			err = fmt.Errorf("a request %s %s with %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
		}
		if err == nil {
			err = check(body)
		}
		if err != nil {
			http.Error(w, "invalid_blocks: "+err.Error(), http.StatusBadRequest)
			return
		}
		h.got, h.heads = append(h.got, body), append(h.heads, r.Header)
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(server.Close)
	h.url = server.URL + "/services/T0/secret-path"
	return h
}

func (h *host) channel(t *testing.T, opts notify.Options) *notify.Channel {
	t.Helper()
	opts.URL = func() (string, error) { return h.url, nil }
	c, err := notify.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func strictly(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// slackRules are those of Slack's incoming webhooks and of its section blocks.
func slackRules(body []byte) error {
	var m struct {
		Text   string
		Blocks []struct {
			Type string
			Text struct {
				Type, Text string
				Verbatim   bool
			}
		}
	}
	if err := strictly(body, &m); err != nil {
		return err
	}
	if m.Text == "" || len(m.Blocks) == 0 || len(m.Blocks) > 50 {
		return fmt.Errorf("text %q and %d blocks", m.Text, len(m.Blocks))
	}
	for _, b := range m.Blocks {
		if n := utf8.RuneCountInString(b.Text.Text); b.Type != "section" || b.Text.Type != "mrkdwn" || n == 0 || n > 3000 {
			return fmt.Errorf("a block of type %s with %d characters", b.Type, n)
		}
		ours := strings.ReplaceAll(b.Text.Text, "<https://holdfast.example.com/runs/run-1|more>", "")
		if strings.ContainsAny(ours, "<>") || !b.Text.Verbatim {
			return fmt.Errorf("a text with markup: %s", b.Text.Text)
		}
	}
	return nil
}

// teamsRules are those of a workflow that posts a card, as far as we use them.
func teamsRules(body []byte) error {
	type inline struct{ Type, Text, Weight string }
	var m struct {
		Type        string
		Attachments []struct {
			ContentType string
			Content     struct {
				Schema                      string `json:"$schema"`
				Type, Version, FallbackText string
				Body                        []struct {
					Type    string
					Inlines []inline
				}
				Actions []struct{ Type, Title, URL string }
			}
		}
	}
	if err := strictly(body, &m); err != nil {
		return err
	}
	if m.Type != "message" || len(m.Attachments) != 1 || len(body) > 28<<10 {
		return fmt.Errorf("a message of type %q with %d attachments and %d bytes", m.Type, len(m.Attachments), len(body))
	}
	a := m.Attachments[0]
	if a.ContentType != "application/vnd.microsoft.card.adaptive" || a.Content.Type != "AdaptiveCard" || len(a.Content.Body) == 0 {
		return fmt.Errorf("no card: %s", body)
	}
	for _, b := range a.Content.Body {
		for _, i := range b.Inlines {
			if b.Type != "RichTextBlock" || i.Type != "TextRun" || i.Text == "" {
				return fmt.Errorf("a text that may have markup: %s in %s", i.Type, b.Type)
			}
		}
	}
	for _, action := range a.Content.Actions {
		if action.Type != "Action.OpenUrl" || !strings.HasPrefix(action.URL, "https://holdfast.example.com/") {
			return fmt.Errorf("an action %s to %s", action.Type, action.URL)
		}
	}
	return nil
}

// TestMessages: each host gets its own format, one message for many notifications, and
// nobody's text becomes a link, a mention or markup.
func TestMessages(t *testing.T) {
	t.Parallel()
	var many []outgoing.Notification
	for n := range 25 {
		many = append(many, hostile(n))
	}
	plain := outgoing.Notification{ID: "ops/1", Channel: "ops", Event: outgoing.NotifyApplied, Cluster: "dev", Title: "applied: 1 created"}
	for kind, rules := range map[notify.Type]func([]byte) error{notify.Slack: slackRules, notify.Teams: teamsRules} {
		for _, template := range []string{"", "{{.Cluster}}: {{.Title}} ({{.Reason}}) {{.Detail}}"} {
			h := serve(t, rules)
			c := h.channel(t, notify.Options{Type: kind, Template: template})
			for _, batch := range [][]outgoing.Notification{{plain}, many} {
				if _, err := c.Send(t.Context(), batch); err != nil {
					t.Errorf("%s with template %q: %v", kind, template, err)
				}
			}
			if len(h.got) != 2 || !strings.Contains(string(h.got[0]), "applied: 1 created") || !strings.Contains(string(h.got[1]), " more") {
				t.Errorf("%s got %d messages: %.2000s", kind, len(h.got), h.got)
			}
		}
	}
}

// TestWebhook: the body is what there is to know, signed, and each id is there for whoever
// has it already; a template makes a request of each.
func TestWebhook(t *testing.T) {
	t.Parallel()
	key := func() (string, error) { return "signing key", nil }
	h := serve(t, func([]byte) error { return nil })
	c := h.channel(t, notify.Options{Type: notify.Webhook, SigningKey: key})
	sent := []outgoing.Notification{hostile(1), hostile(2)}
	if _, err := c.Send(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	var got struct{ Notifications []outgoing.Notification }
	if err := strictly(h.got[0], &got); err != nil || len(got.Notifications) != 2 || got.Notifications[1] != sent[1] {
		t.Errorf("the body is %.300s (%v)", h.got[0], err)
	}
	mac := hmac.New(sha256.New, []byte("signing key"))
	mac.Write(h.got[0])
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); h.heads[0].Get(notify.SignatureHeader) != want || h.heads[0].Get("Holdfast-Notification") != "ops/1" {
		t.Errorf("the headers are %v, want the signature %s", h.heads[0], want)
	}
	c = h.channel(t, notify.Options{Type: notify.Webhook, Template: `{"summary": {{json .Title}}, "at": {{json .At}}}`})
	if _, err := c.Send(t.Context(), sent); err != nil || len(h.got) != 3 || !json.Valid(h.got[2]) || h.heads[2].Get("Holdfast-Notification") != "ops/2" {
		t.Errorf("with a template: %v, %d requests", err, len(h.got))
	}
}

// TestAnswers: what an answer means, and that neither the address nor much of the answer is
// in the error.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code  int
		after string
		want  error
		wait  time.Duration
	}{
		"moved":         {code: http.StatusFound, want: holdfast.ErrRejected},
		"gone":          {code: http.StatusGone, want: holdfast.ErrRejected},
		"not found":     {code: http.StatusNotFound, want: holdfast.ErrRejected},
		"too many":      {code: http.StatusTooManyRequests, after: "7", want: holdfast.ErrUnavailable, wait: 7 * time.Second},
		"much too many": {code: http.StatusTooManyRequests, after: "99999999", want: holdfast.ErrUnavailable, wait: time.Hour},
		"overloaded":    {code: http.StatusServiceUnavailable, want: holdfast.ErrUnavailable},
		"broken":        {code: http.StatusInternalServerError, want: holdfast.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", test.after)
				w.Header().Set("Location", "http://"+r.Host+"/elsewhere")
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, "no such hook: http://"+r.Host+r.URL.Path+strings.Repeat(" long", 5000))
			}))
			t.Cleanup(server.Close)
			c, err := notify.New(notify.Options{Type: notify.Slack, URL: func() (string, error) { return server.URL + "/secret-path", nil }})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Send(t.Context(), []outgoing.Notification{hostile(1)})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), fmt.Sprint(test.code)) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			limited := (*holdfast.RateLimitError)(nil)
			if errors.As(err, &limited); test.wait > 0 && (limited == nil || limited.Wait != test.wait) {
				t.Errorf("got %v, want a wait of %s", err, test.wait)
			}
			if strings.Contains(err.Error(), "secret-path") || len(err.Error()) > 400 {
				t.Errorf("the error has the address, or all of the answer: %v", err)
			}
		})
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c, err := notify.New(notify.Options{Type: notify.Slack, URL: func() (string, error) { return server.URL + "/secret-path", nil }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), []outgoing.Notification{hostile(1)}); !errors.Is(err, holdfast.ErrUnavailable) || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("who does not answer is %v", err)
	}
}

// TestSentInPart: where each notification is a separate request, those that were sent before a
// refusal count as sent, and are not sent again.
func TestSentInPart(t *testing.T) {
	t.Parallel()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests > 2 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(server.Close)
	c, err := notify.New(notify.Options{
		Type: notify.Webhook, Template: `{"title": {{json .Title}}}`, URL: func() (string, error) { return server.URL, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := c.Send(t.Context(), []outgoing.Notification{hostile(1), hostile(2), hostile(3), hostile(4)})
	if sent != 2 || !errors.Is(err, holdfast.ErrUnavailable) || requests != 3 {
		t.Errorf("%d were sent in %d requests: %v", sent, requests, err)
	}
}

// TestTemplates: one that is wrong is refused at once.
func TestTemplates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind     notify.Type
		template string
		want     string
	}{
		"no such field":       {notify.Slack, "{{.Password}}", "Password"},
		"not a template":      {notify.Teams, "{{.Title", "unclosed action"},
		"not JSON":            {notify.Webhook, `{"text": "{{.Title}}"}`, "does not make JSON"},
		"no such function":    {notify.Slack, `{{env "HOME"}}`, `function "env" not defined`},
		"a type of nobody":    {"pager", "{{.Title}}", `no type "pager"`},
		"only of some events": {notify.Slack, `{{if eq .Event "applied"}}{{.Nothing}}{{end}}`, "Nothing"},
	} {
		if _, err := notify.New(notify.Options{Type: test.kind, Template: test.template}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestTemplatesThatFail: a template that makes nothing, or not JSON, of one notification keeps
// no other waiting: that one is sent in the usual words.
func TestTemplatesThatFail(t *testing.T) {
	t.Parallel()
	odd := outgoing.Notification{ID: "ops/1", Channel: "ops", Event: outgoing.NotifyApplied, Cluster: "o-neil", Title: "it's <applied>"}
	for kind, template := range map[notify.Type]string{
		notify.Slack: `{{if ne .Cluster "o-neil"}}{{.Title}}{{end}}`, notify.Teams: `{{if eq .Cluster "o-neil"}}{{slice .Title 99}}{{end}}`, notify.Webhook: `{"a": "{{js .Title}}"}`,
	} {
		rules := map[notify.Type]func([]byte) error{notify.Slack: slackRules, notify.Teams: teamsRules, notify.Webhook: func(body []byte) error {
			if !json.Valid(body) {
				return errors.New("not JSON")
			}
			return nil
		}}[kind]
		h := serve(t, rules)
		sent, err := h.channel(t, notify.Options{Type: kind, Template: template}).Send(t.Context(), []outgoing.Notification{odd, hostile(2)})
		if sent != 2 || err != nil || len(h.got) == 0 || !strings.Contains(string(h.got[0]), "o-neil") {
			t.Errorf("%s: %d sent, %v: %.2000s", kind, sent, err, h.got)
		}
	}
}

// TestAnswersThatTell: no part of an address that may be a secret is in an error.
func TestAnswersThatTell(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "unknown token tOkEn123 of \\/services\\/T0000000, signature "+r.URL.Query().Get("sig"))
	}))
	t.Cleanup(server.Close)
	c, err := notify.New(notify.Options{Type: notify.Slack, URL: func() (string, error) { return server.URL + "/services/T0000000/tOkEn123?sig=abc%2Bdefghi", nil }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Send(t.Context(), []outgoing.Notification{hostile(1)})
	for _, secret := range []string{"tOkEn123", "T0000000", "abc+defghi"} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in %v", secret, err)
		}
	}
}
