package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/webhook"
)

const secret = "it's a secret to everybody"

// world is what stands around a Handler.
type world struct {
	mu       sync.Mutex
	commands map[string]holdfast.Command
	requests []holdfast.SourceRequest
	before   []time.Time // when commands were withdrawn that were given before
	stored   int
	err      error         // of the store
	hold     chan struct{} // the store waits until it is closed; nil: it does not
}

func (w *world) StoreCommand(ctx context.Context, c holdfast.Command) (bool, error) {
	if w.hold != nil {
		select {
		case <-w.hold:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return false, w.err
	}
	_, known := w.commands[c.ID]
	if !known {
		w.commands[c.ID] = c
	}
	return !known, nil
}

func (w *world) WithdrawCommands(_ context.Context, comment holdfast.Comment, before time.Time, why string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if comment.ID == "" || comment.PullRequest.Repo == "" || why == "" {
		return fmt.Errorf("the commands of %+v are withdrawn: %q", comment, why)
	}
	w.before = append(w.before, before)
	return w.err
}

func (w *world) enqueue(r holdfast.SourceRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r)
}

func newHandler(t testing.TB) (*webhook.Handler, *world) {
	t.Helper()
	w := &world{commands: make(map[string]holdfast.Command)}
	handler, err := webhook.New(webhook.Options{
		Repositories: []webhook.Repository{
			{Name: "app", FullName: "Acme/App", Secret: func() []byte { return []byte(secret) }},
			{Name: "hello", FullName: "Codertocat/Hello-World", Secret: func() []byte { return []byte(secret) }},
			{Name: "octo", FullName: "Octocoders/Hello-World", Secret: func() []byte { return []byte(secret) }},
			{Name: "other", FullName: "acme/other", Secret: func() []byte { return []byte("another secret") }},
			{Name: "open", FullName: "acme/open", Secret: func() []byte { return nil }},
		},
		Store: w, Enqueue: w.enqueue, Ignore: []string{"Robot"},
		Notify: webhook.Notify{Stored: func() { w.mu.Lock(); w.stored++; w.mu.Unlock() }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler, w
}

func sign(body, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func delivery(event, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, webhook.Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Event", event)
	r.Header.Set("X-Hub-Signature-256", sign(body, secret))
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func commentBody(repo string, id int64, login, kind, body, action string) string {
	payload := map[string]any{
		"action": action, "repository": map[string]any{"full_name": repo},
		"issue": map[string]any{"number": 7, "pull_request": map[string]any{"url": "x"}},
		"comment": map[string]any{
			"id": id, "body": body, "user": map[string]any{"login": login, "type": kind},
			"created_at": "2026-03-01T12:00:00Z", "updated_at": "2026-03-01T12:00:00Z",
		},
	}
	raw, _ := json.Marshal(payload)
	return string(raw)
}

// from is a payload with what its comment said before it was edited.
func from(former, body string) string {
	text, _ := json.Marshal(former)
	return fmt.Sprintf(`{"changes":{"body":{"from":%s}},`, text) + body[1:]
}

// editedBy is a payload with a sender.
func editedBy(login, body string) string {
	return fmt.Sprintf(`{"sender":{"login":%q},`, login) + body[1:]
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	pr := func(action string, merged bool) string {
		return fmt.Sprintf(`{"action":%q,"number":7,"pull_request":{"number":7,"merged":%v},"repository":{"full_name":"acme/app"}}`, action, merged)
	}
	one := []holdfast.SourceRequest{{Repo: "app", PullRequest: 7}}
	tests := map[string]struct {
		event, body string
		status      int
		want        []holdfast.SourceRequest
		commands    int
	}{
		"push":                {"push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/app"}}`, 200, []holdfast.SourceRequest{{Repo: "app"}}, 0},
		"opened":              {"pull_request", pr("opened", false), 200, one, 0},
		"synchronize":         {"pull_request", pr("synchronize", false), 200, one, 0},
		"reopened":            {"pull_request", pr("reopened", false), 200, one, 0},
		"edited":              {"pull_request", pr("edited", false), 200, one, 0},
		"ready":               {"pull_request", pr("ready_for_review", false), 200, one, 0},
		"draft":               {"pull_request", pr("converted_to_draft", false), 200, one, 0},
		"closed":              {"pull_request", pr("closed", false), 200, one, 0},
		"merged":              {"pull_request", pr("closed", true), 200, []holdfast.SourceRequest{{Repo: "app", PullRequest: 7}, {Repo: "app"}}, 0},
		"labeled":             {"pull_request", pr("labeled", false), 202, nil, 0},
		"review":              {"pull_request_review", pr("submitted", false), 200, one, 0},
		"unknown event":       {"check_run", `{"action":"created","number":"seven","repository":{"full_name":"acme/app"}}`, 202, nil, 0},
		"event of no repo":    {"installation", `{"action":"created"}`, 202, nil, 0},
		"ping":                {"ping", `{"zen":"x","repository":{"full_name":"acme/app"}}`, 200, nil, 0},
		"ping of an App":      {"ping", `{"zen":"x","hook":{}}`, 200, nil, 0},
		"command":             {"issue_comment", commentBody("acme/app", 1, "alice", "User", "/holdfast plan", "created"), 200, one, 1},
		"two commands":        {"issue_comment", commentBody("acme/app", 1, "alice", "User", "/holdfast plan\n/holdfast apply", "created"), 200, one, 2},
		"edited comment":      {"issue_comment", commentBody("acme/app", 1, "alice", "User", "/holdfast plan\n/holdfast apply", "edited"), 200, one, 1},
		"deleted, of a bot":   {"issue_comment", commentBody("acme/app", 1, "holdfast[bot]", "Bot", "the plan", "deleted"), 200, one, 0},
		"merge group":         {"merge_group", `{"action":"checks_requested","merge_group":{"head_sha":"a"},"repository":{"full_name":"acme/app"}}`, 200, []holdfast.SourceRequest{{Repo: "app"}}, 0},
		"group that ended":    {"merge_group", `{"action":"destroyed","reason":"dequeued","merge_group":{"head_sha":"a"},"repository":{"full_name":"acme/app"}}`, 200, []holdfast.SourceRequest{{Repo: "app"}}, 0},
		"deleted comment":     {"issue_comment", commentBody("acme/app", 1, "alice", "User", "/holdfast plan", "deleted"), 200, one, 0},
		"edited to say none":  {"issue_comment", commentBody("acme/app", 1, "alice", "User", "Never mind.", "edited"), 200, one, 0},
		"edited by a bot":     {"issue_comment", commentBody("acme/app", 1, "holdfast[bot]", "Bot", "Plan", "edited"), 202, nil, 0},
		"edited by itself":    {"issue_comment", editedBy("holdfast[bot]", commentBody("acme/app", 1, "holdfast[bot]", "Bot", "Plan", "edited")), 202, nil, 0},
		"of a bot, by others": {"issue_comment", editedBy("mallory", commentBody("acme/app", 1, "holdfast[bot]", "Bot", "Nothing to see", "edited")), 200, one, 0},
		"comment by a bot":    {"issue_comment", commentBody("acme/app", 1, "holdfast[bot]", "Bot", "/holdfast plan", "created"), 202, nil, 0},
		"comment of ours":     {"issue_comment", commentBody("acme/app", 1, "robot", "User", "/holdfast plan", "created"), 202, nil, 0},
		"talk":                {"issue_comment", commentBody("acme/app", 1, "alice", "User", "nice", "created"), 202, nil, 0},
		"comment on an issue": {"issue_comment", `{"action":"created","issue":{"number":7},"comment":{"id":1,"body":"/holdfast apply"},"repository":{"full_name":"acme/app"}}`, 202, nil, 0},

		"no JSON":             {"push", `nonsense`, 400, nil, 0},
		"nothing":             {"push", ``, 400, nil, 0},
		"truncated":           {"push", `{"ref":"refs/heads/main","repository":{"full_na`, 400, nil, 0},
		"another type":        {"push", `{"ref":7,"repository":{"full_name":"acme/app"}}`, 400, nil, 0},
		"an array":            {"push", `[]`, 400, nil, 0},
		"push without a ref":  {"push", `{"repository":{"full_name":"acme/app"}}`, 400, nil, 0},
		"no number":           {"pull_request", `{"action":"opened","pull_request":{},"repository":{"full_name":"acme/app"}}`, 400, nil, 0},
		"no comment":          {"issue_comment", `{"action":"created","issue":{"number":7,"pull_request":{}},"repository":{"full_name":"acme/app"}}`, 400, nil, 0},
		"no event":            {"", `{}`, 400, nil, 0},
		"deeply nested":       {"push", strings.Repeat("[", 100_000), 400, nil, 0},
		"another repository":  {"push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/other"}}`, 401, nil, 0},
		"unknown repository":  {"push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/app-prod"}}`, 202, nil, 0},
		"no secret":           {"push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/open"}}`, 401, nil, 0},
		"unknown, no secret":  {"check_run", `{"repository":{"full_name":"acme/open"}}`, 401, nil, 0},
		"large, of no repo":   {"installation", `{"x":"` + strings.Repeat("y", 65<<10) + `"}`, 401, nil, 0},
		"command, wrong repo": {"issue_comment", commentBody("acme/other", 1, "alice", "User", "/holdfast apply", "created"), 401, nil, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, w := newHandler(t)
			got := serve(h, delivery(test.event, test.body))
			if got.Code != test.status {
				t.Errorf("answered %d %s, want %d", got.Code, got.Body, test.status)
			}
			if diff := cmp.Diff(test.want, w.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if len(w.commands) != test.commands || (w.stored == 1) != (test.commands > 0) {
				t.Errorf("stored %d commands, told %d times, want %d", len(w.commands), w.stored, test.commands)
			}
		})
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	body := `{"ref":"refs/heads/main","repository":{"full_name":"acme/app"}}`
	good := sign(body, secret)
	tests := map[string]func(h http.Header){
		"none":            func(h http.Header) { h.Del("X-Hub-Signature-256") },
		"SHA-1 only":      func(h http.Header) { h.Del("X-Hub-Signature-256"); h.Set("X-Hub-Signature", "sha1="+good[7:47]) },
		"SHA-1 in place":  func(h http.Header) { h.Set("X-Hub-Signature-256", "sha1="+good[7:47]) },
		"of another body": func(h http.Header) { h.Set("X-Hub-Signature-256", sign(body+" ", secret)) },
		"wrong secret":    func(h http.Header) { h.Set("X-Hub-Signature-256", sign(body, "another secret")) },
		"empty secret":    func(h http.Header) { h.Set("X-Hub-Signature-256", sign(body, "")) },
		"one bit": func(h http.Header) {
			h.Set("X-Hub-Signature-256", good[:70]+map[bool]string{true: "1", false: "0"}[good[70] == '0'])
		},
		"short":          func(h http.Header) { h.Set("X-Hub-Signature-256", good[:69]) },
		"no hexadecimal": func(h http.Header) { h.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("z", 64)) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, w := newHandler(t)
			r := delivery("push", body)
			change(r.Header)
			if got := serve(h, r); got.Code != http.StatusUnauthorized || len(w.requests) != 0 {
				t.Errorf("answered %d %s, and %d requests", got.Code, got.Body, len(w.requests))
			}
		})
	}
}

func TestUnknownRepositoryLooksLikeABadSignature(t *testing.T) {
	t.Parallel()
	h, w := newHandler(t)
	forged := func(name string) *httptest.ResponseRecorder {
		body := `{"ref":"refs/heads/main","repository":{"full_name":"` + name + `"}}`
		r := delivery("push", body)
		r.Header.Set("X-Hub-Signature-256", sign(body, "a guess"))
		return serve(h, r)
	}
	unknown, known := forged("acme/nothing"), forged("acme/other")
	if unknown.Code != http.StatusUnauthorized || unknown.Code != known.Code || unknown.Body.String() != known.Body.String() {
		t.Errorf("%d %s differs from %d %s", unknown.Code, unknown.Body, known.Code, known.Body)
	}
	// Whoever has a secret of ours is told what is wrong.
	got := serve(h, delivery("push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/nothing"}}`))
	if got.Code != http.StatusAccepted || !strings.Contains(got.Body.String(), "acme/nothing is not in holdfast.yaml") {
		t.Errorf("a repository that is not configured: %d %s", got.Code, got.Body)
	}
	got = serve(h, delivery("push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/other"}}`))
	if got.Code != http.StatusUnauthorized || !strings.Contains(got.Body.String(), "secret of another repository") {
		t.Errorf("the secret of another one: %d %s", got.Code, got.Body)
	}
	if len(w.requests) != 0 {
		t.Errorf("%d requests came of them", len(w.requests))
	}
}

// A renamed repository delivers with its new name and its old id.
func TestRenamedRepository(t *testing.T) {
	t.Parallel()
	h, w := newHandler(t)
	renamed := func(id int64) *httptest.ResponseRecorder {
		return serve(h, delivery("push", fmt.Sprintf(`{"ref":"refs/heads/main","repository":{"id":%d,"full_name":"acme/new-name"}}`, id)))
	}
	if got := renamed(7); got.Code != http.StatusAccepted || len(w.requests) != 0 {
		t.Fatalf("before its id is known: %d %s", got.Code, got.Body)
	}
	h.Identify("Acme/app", 7)
	if got := renamed(7); got.Code != http.StatusOK || len(w.requests) != 1 || w.requests[0].Repo != "app" {
		t.Errorf("after GitHub said its id: %d %s, %+v", got.Code, got.Body, w.requests)
	}
	serve(h, delivery("push", `{"ref":"refs/heads/main","repository":{"id":8,"full_name":"codertocat/Hello-World"}}`))
	if got := renamed(8); got.Code != http.StatusOK || len(w.requests) != 3 || w.requests[2].Repo != "hello" {
		t.Errorf("after a delivery said its id: %d %s, %+v", got.Code, got.Body, w.requests)
	}
	// The id does not replace the secret.
	h.Identify("acme/other", 9)
	if got := renamed(9); got.Code != http.StatusUnauthorized || len(w.requests) != 3 {
		t.Errorf("with the secret of another one: %d %s", got.Code, got.Body)
	}
}

func TestForm(t *testing.T) {
	t.Parallel()
	h, w := newHandler(t)
	body := url.Values{"payload": {`{"ref":"refs/heads/main","repository":{"full_name":"acme/app"}}`}}.Encode()
	r := delivery("push", body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if got := serve(h, r); got.Code != http.StatusOK || len(w.requests) != 1 {
		t.Errorf("a form was answered %d %s", got.Code, got.Body)
	}
	r = delivery("push", body)
	r.Header.Set("Content-Type", "text/plain")
	if got := serve(h, r); got.Code != http.StatusBadRequest {
		t.Errorf("a text was answered %d", got.Code)
	}
}

func TestOtherMethodsAndPaths(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t)
	if got := serve(h, httptest.NewRequest(http.MethodGet, webhook.Path, nil)); got.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET was answered %d", got.Code)
	}
	if got := serve(h, httptest.NewRequest(http.MethodPost, "/webhooks/gitlab", nil)); got.Code != http.StatusNotFound {
		t.Errorf("another path was answered %d", got.Code)
	}
}

// zeros is a body of n zero bytes that counts what was read of it.
type zeros struct{ n, read int }

func (z *zeros) Read(p []byte) (int, error) {
	if z.read >= z.n {
		return 0, io.EOF
	}
	n := min(len(p), z.n-z.read)
	clear(p[:n])
	z.read += n
	return n, nil
}

func TestOversized(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t)
	for name, length := range map[string]int64{"announced": 25<<20 + 1, "unannounced": -1} {
		body := &zeros{n: 40 << 20}
		r := httptest.NewRequest(http.MethodPost, webhook.Path, body)
		r.ContentLength = length
		r.Header = delivery("push", "").Header
		got := serve(h, r)
		if got.Code != http.StatusRequestEntityTooLarge || (length > 0 && body.read > 0) || body.read > 26<<20 {
			t.Errorf("%s: answered %d after %d bytes", name, got.Code, body.read)
		}
	}
}

// TestSlowBodiesMakeRoom: what strangers send slowly does not keep out what comes
// at once, however much of it there is, and is not held beyond a bound.
func TestSlowBodiesMakeRoom(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t)
	front := httptest.NewServer(h)
	defer front.Close()
	const size, most = 20 << 20, 12 << 20
	answers := make(chan int, 4)
	var slow []*io.PipeWriter
	for range cap(answers) {
		body, w := io.Pipe()
		slow = append(slow, w)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+webhook.Path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength, r.Header = size, delivery("push", "").Header
		go func() {
			res, err := front.Client().Do(r)
			if err != nil {
				answers <- 0 // cut off
				return
			}
			res.Body.Close()
			answers <- res.StatusCode
		}()
		_, _ = io.Copy(w, &zeros{n: most}) // as far as it is read
	}
	gone := 0
	for len(answers) > 0 {
		if got := <-answers; got != http.StatusServiceUnavailable && got != 0 {
			t.Errorf("a slow body was answered %d", got)
		}
		gone++
	}
	large := `{"ref":"refs/heads/main","repository":{"full_name":"acme/app"},"x":"` + strings.Repeat("y", 15<<20) + `"}`
	for _, text := range []string{`{"ref":"refs/heads/main","repository":{"full_name":"acme/app"}}`, large} {
		signed := delivery("push", text)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+webhook.Path, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = signed.Header
		res, err := front.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("a delivery of %d bytes was answered %d", len(text), res.StatusCode)
		}
	}
	for _, w := range slow {
		_ = w.CloseWithError(errors.New("enough"))
	}
	for ; gone < len(slow); gone++ {
		<-answers
	}
}

func TestDoubled(t *testing.T) {
	t.Parallel()
	h, w := newHandler(t)
	body := commentBody("acme/app", 99, "alice", "User", "/holdfast apply", "created")
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			if got := serve(h, delivery("issue_comment", body)); got.Code != http.StatusOK {
				t.Errorf("answered %d %s", got.Code, got.Body)
			}
		})
	}
	wait.Wait()
	edited := commentBody("acme/app", 99, "alice", "User", "/holdfast cancel\n/holdfast apply", "edited")
	if got := serve(h, delivery("issue_comment", edited)); got.Code != http.StatusOK {
		t.Errorf("the edit was answered %d", got.Code)
	}
	if len(w.commands) != 1 || w.commands[holdfast.CommandID("app", "99", 0)].Verb != holdfast.VerbApply {
		t.Errorf("stored %v", w.commands)
	}
}

// What somebody has deleted or edited is not what they say: neither the commands that
// came before that, nor those whose deliveries come late.
func TestCommandsAreWithdrawn(t *testing.T) {
	t.Parallel()
	written := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		body   string
		before []time.Time // this has to be withdrawn, the first; that must not be, the second
		stored int
	}{
		"created": {body: commentBody("acme/app", 1, "alice", "User", "/holdfast plan", "created"), stored: 1},
		"edited": {
			body: commentBody("acme/app", 1, "alice", "User", "Not yet.", "edited"), before: []time.Time{written, written.Add(time.Nanosecond)},
		},
		"edited to another command": {
			body:   editedBy("alice", commentBody("acme/app", 1, "alice", "User", "/holdfast plan", "edited")),
			before: []time.Time{written, written.Add(time.Nanosecond)}, stored: 1,
		},
		"deleted": {
			body:   commentBody("acme/app", 1, "alice", "User", "/holdfast plan", "deleted"),
			before: []time.Time{written.Add(time.Nanosecond), written.Add(time.Minute)},
		},
		"of a bot": {body: editedBy("mallory", commentBody("acme/app", 1, "ci", "Bot", "done", "deleted"))},
		"of ours":  {body: editedBy("mallory", commentBody("acme/app", 1, "Robot", "User", "the plans", "edited"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, w := newHandler(t)
			if got := serve(h, delivery("issue_comment", test.body)); got.Code >= 300 {
				t.Fatalf("answered %d %s", got.Code, got.Body)
			}
			if len(w.commands) != test.stored || (len(w.before) > 0) != (test.before != nil) {
				t.Fatalf("stored %v, withdrawn before %v", w.commands, w.before)
			}
			if test.before != nil && (!test.before[0].Before(w.before[0]) || test.before[1].Before(w.before[0])) {
				t.Errorf("what was given before %v is withdrawn, of %v only the first", w.before, test.before)
			}
			if test.before == nil {
				return
			}
			w.err = errors.New("disk full")
			if got := serve(h, delivery("issue_comment", test.body)); got.Code != http.StatusServiceUnavailable {
				t.Errorf("without a store it was answered %d %s", got.Code, got.Body)
			}
		})
	}
}

// An edit commands what it has written, and nothing that the comment said before: who wrote
// that is not known where its delivery got lost.
func TestEditsCommandWhatTheyWrite(t *testing.T) {
	t.Parallel()
	const said = "/holdfast approve\n\n- [ ] read"
	edit := func(body string) string {
		return editedBy("alice", commentBody("acme/app", 1, "alice", "User", body, "edited"))
	}
	for name, test := range map[string]struct {
		body  string
		heard bool
	}{
		"the command is new":            {from("Not yet.", edit(said)), true},
		"it was another one":            {from("/holdfast plan", edit(said)), true},
		"it was for another cluster":    {from("/holdfast approve -c prod", edit("/holdfast approve -c dev")), true},
		"it was quoted":                 {from("> /holdfast approve", edit(said)), true},
		"a box was ticked":              {from(said, edit("/holdfast approve\n\n- [x] read")), false},
		"it stands elsewhere now":       {from("/holdfast plan\n/holdfast approve", edit("Well.\n\n  /holdfast approve  ")), false},
		"it was beyond the tenth":       {from(strings.Repeat("/holdfast plan\n", 12)+"/holdfast approve", edit("/holdfast approve")), false},
		"it was too long to be read":    {from("/holdfast approve\n\n"+strings.Repeat("long ", 5000), edit("/holdfast approve")), false},
		"the text has not changed":      {edit(said), false},
		"something else was changed":    {`{"changes":{"title":{"from":"a"}},` + edit(said)[1:], false},
		"others have edited it as well": {editedBy("mallory", from(said, commentBody("acme/app", 1, "alice", "User", said, "edited"))), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, w := newHandler(t)
			if got := serve(h, delivery("issue_comment", test.body)); got.Code != http.StatusOK {
				t.Fatalf("answered %d %s", got.Code, got.Body)
			}
			command, ok := w.commands[holdfast.CommandID("app", "1", 0)]
			if !ok || command.Verb != holdfast.VerbApprove || (command.Barred == "") != test.heard {
				t.Errorf("stored %+v, want one that is carried out: %t", w.commands, test.heard)
			}
		})
	}
}

func TestStoreThatFails(t *testing.T) {
	t.Parallel()
	h, w := newHandler(t)
	w.err = errors.New("disk full at /var/lib/holdfast")
	got := serve(h, delivery("issue_comment", commentBody("acme/app", 1, "alice", "User", "/holdfast apply", "created")))
	if got.Code != http.StatusServiceUnavailable || strings.Contains(got.Body.String(), "disk") {
		t.Errorf("answered %d %s", got.Code, got.Body)
	}
	w.err = nil
	got = serve(h, delivery("issue_comment", commentBody("acme/app", 1, "alice", "User", "/holdfast apply", "created")))
	if got.Code != http.StatusOK || len(w.commands) != 1 {
		t.Errorf("delivered again it was answered %d, stored %v", got.Code, w.commands)
	}
}

func TestSlowStoreHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	h, w := newHandler(t)
	w.hold = make(chan struct{})
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan int)
	go func() {
		r := delivery("issue_comment", commentBody("acme/app", 1, "alice", "User", "/holdfast apply", "created"))
		done <- serve(h, r.WithContext(ctx)).Code
	}()
	if got := serve(h, delivery("push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/app"}}`)); got.Code != http.StatusOK {
		t.Errorf("a push was answered %d meanwhile", got.Code)
	}
	hangUp() // the command has arrived all the same
	close(w.hold)
	if code := <-done; code != http.StatusOK || len(w.commands) != 1 {
		t.Errorf("the command was answered %d, stored %v", code, w.commands)
	}
}

func TestTraceParent(t *testing.T) {
	t.Parallel()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for header, want := range map[string]string{good: good, "": "", strings.ToUpper(good): "", good[:54] + "\n": ""} {
		h, w := newHandler(t)
		r := delivery("push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/app"}}`)
		r.Header.Set("traceparent", header)
		serve(h, r)
		if len(w.requests) != 1 || w.requests[0].TraceParent != want {
			t.Errorf("traceparent %q became %v", header, w.requests)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	key := func() []byte { return []byte(secret) }
	w := &world{}
	for name, opts := range map[string]webhook.Options{
		"no store":     {Enqueue: w.enqueue},
		"no queue":     {Store: w},
		"no secret":    {Store: w, Enqueue: w.enqueue, Repositories: []webhook.Repository{{Name: "a", FullName: "acme/app"}}},
		"no full name": {Store: w, Enqueue: w.enqueue, Repositories: []webhook.Repository{{Name: "a", Secret: key}}},
		"twice":        {Store: w, Enqueue: w.enqueue, Repositories: []webhook.Repository{{Name: "a", FullName: "acme/app", Secret: key}, {Name: "b", FullName: "ACME/app", Secret: key}}},
	} {
		if _, err := webhook.New(opts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Several entries may be branches of one repository: with one webhook, of which one
// of them has the secret.
func TestBranchesOfOneRepository(t *testing.T) {
	t.Parallel()
	w := &world{commands: make(map[string]holdfast.Command)}
	h, err := webhook.New(webhook.Options{
		Repositories: []webhook.Repository{
			{Name: "app", FullName: "acme/app", Branch: "main", Secret: func() []byte { return nil }},
			{Name: "app-release", FullName: "Acme/App", Branch: "release", Secret: func() []byte { return []byte(secret) }},
		},
		Store: w, Enqueue: w.enqueue,
	})
	if err != nil {
		t.Fatal(err)
	}
	pr := func(action, base string) string {
		return fmt.Sprintf(`{"action":%q,"pull_request":{"number":7,"base":{"ref":%q}},"repository":{"full_name":"acme/app"}}`, action, base)
	}
	both := func(number int) []holdfast.SourceRequest {
		return []holdfast.SourceRequest{{Repo: "app", PullRequest: number}, {Repo: "app-release", PullRequest: number}}
	}
	for _, test := range []struct {
		event, body string
		want        []holdfast.SourceRequest
	}{
		{"push", `{"ref":"refs/heads/release","repository":{"full_name":"acme/app"}}`, both(0)},
		{"pull_request", pr("opened", "main"), both(7)[:1]},
		{"pull_request", pr("synchronize", "release"), both(7)[1:]},
		{"pull_request_review", pr("submitted", "release"), both(7)[1:]},
		{"pull_request", pr("edited", "release"), both(7)}, // it may have been of main
		{"pull_request", pr("opened", "other"), both(7)},
		{"issue_comment", commentBody("acme/app", 5, "alice", "User", "/holdfast plan", "created"), both(7)},
	} {
		w.requests = nil
		if got := serve(h, delivery(test.event, test.body)); got.Code != http.StatusOK {
			t.Errorf("%s is answered %d %s", test.event, got.Code, got.Body)
		}
		if diff := cmp.Diff(test.want, w.requests); diff != "" {
			t.Errorf("%s %s asks for (-want +got):\n%s", test.event, test.body, diff)
		}
	}
	if len(w.commands) != 2 {
		t.Errorf("stored %v, want one command for each entry", w.commands)
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	var seen, kept []string
	w := &world{commands: make(map[string]holdfast.Command)}
	h, err := webhook.New(webhook.Options{
		Repositories: []webhook.Repository{{Name: "app", FullName: "acme/app", Secret: func() []byte { return []byte(secret) }}},
		Store:        w, Enqueue: w.enqueue,
		Notify: webhook.Notify{
			Answered: func(event string, status int, _ time.Duration) { seen = append(seen, fmt.Sprint(event, status)) },
			Delivered: func(d holdfast.Delivery) {
				kept = append(kept, fmt.Sprintf("%s %s %s %d %s", d.Event, d.Repo, d.About, d.Status, d.Result))
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	serve(h, delivery("push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/app"}}`))
	serve(h, delivery("push", `{`))
	serve(h, delivery("any-label-you-like", `{"repository":{"full_name":"acme/app"}}`))
	if diff := cmp.Diff([]string{"push200", "push400", "other202"}, seen); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
	want := []string{"push acme/app main 200 accepted", "push   400 the body is not a payload of GitHub's: at byte 1: unexpected end of JSON input", "any-label-you-like acme/app  202 ignored: nothing to do for this event"}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestForgeriesDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := &world{commands: make(map[string]holdfast.Command)}
	h, err := webhook.New(webhook.Options{
		Repositories: []webhook.Repository{{Name: "app", FullName: "acme/app", Secret: func() []byte { return []byte("right") }}},
		Store:        w, Enqueue: w.enqueue,
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	forge := func() { serve(h, delivery("push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/app"}}`)) }
	for range 100 {
		forge()
	}
	now = now.Add(time.Minute)
	forge()
	if got := strings.Count(log.String(), "refused a delivery"); got != 2 || strings.Contains(log.String(), "right") {
		t.Errorf("%d warnings, want 2:\n%s", got, log.String())
	}
}
