package githubserver

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
)

// Delivery is a webhook delivery and how it was answered.
type Delivery struct {
	ID     string // X-GitHub-Delivery
	Event  string
	Action string
	Body   []byte

	Dropped  bool          // lost on the way, as Drop asked for
	Status   int           // 0: no answer, Err says why
	Err      error         // of the transport
	Duration time.Duration // until the answer
}

// SetWebhook makes the repository deliver its events to url, signed with
// secret. An empty url stops it. Deliveries are sent one by one, before the
// call that caused them returns; GitHub waits for ten seconds, so does this.
func (r *Repo) SetWebhook(url, secret string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.hookURL, r.hookSecret = url, secret
}

// Drop loses the next n deliveries on the way.
func (r *Repo) Drop(n int) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.drop = n
}

// Deliveries returns what was delivered, oldest first.
func (r *Repo) Deliveries() []Delivery {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return slices.Clone(r.deliveries)
}

// Redeliver sends the latest delivery of an event again, with the same id and
// body, as GitHub's button does, also if it was dropped.
func (r *Repo) Redeliver(event string) Delivery {
	r.s.t.Helper()
	for _, d := range slices.Backward(r.Deliveries()) {
		if d.Event == event {
			return r.send(Delivery{ID: d.ID, Event: d.Event, Action: d.Action, Body: d.Body})
		}
	}
	r.s.t.Errorf("%s has delivered no %s", r.fullName, event)
	return Delivery{}
}

// Push delivers a push of ref (refs/heads/main) from before to after. Forty
// zeros, or nothing, stand for a ref that did not exist or does no more.
func (r *Repo) Push(ref, before, after string) Delivery {
	zero := strings.Repeat("0", 40)
	before, after = or(before, zero), or(after, zero)
	r.Knows(before, after)
	payload := r.recorded("push", 0)
	maps.Copy(payload, map[string]any{
		"ref": ref, "before": before, "after": after, "created": before == zero, "deleted": after == zero, "commits": []any{},
	})
	if head, ok := payload["head_commit"].(map[string]any); ok && after != zero {
		head["id"] = after
	} else if after == zero {
		payload["head_commit"] = nil
	}
	repo := maps.Clone(r.shape())
	maps.Copy(repo, map[string]any{"created_at": 1557933565, "pushed_at": 1557933657, "master_branch": r.defaultBranch}) // numbers, only here
	payload["repository"] = repo
	return r.deliver("push", payload)
}

// Ping delivers a ping.
func (r *Repo) Ping() Delivery { return r.deliver("ping", r.recorded("ping", 0)) }

// Deliver delivers any event with a payload of the caller's.
func (r *Repo) Deliver(event string, body []byte) Delivery {
	return r.send(Delivery{ID: r.deliveryID(), Event: event, Body: body})
}

func (r *Repo) deliverPull(number int, action string, extra map[string]any) {
	payload := r.recorded("pull_request", number)
	r.s.mu.Lock()
	payload["pull_request"] = r.pullShape(r.pulls[number])
	author := r.pulls[number].Author
	r.s.mu.Unlock()
	maps.Copy(payload, map[string]any{"action": action, "number": number, "sender": userShape(author)})
	maps.Copy(payload, extra)
	r.deliver("pull_request", payload)
}

func (r *Repo) deliverReview(number int, login, state string) {
	payload := r.recorded("pull_request_review", number)
	action := "submitted"
	if state == "DISMISSED" {
		action = "dismissed"
	}
	r.s.mu.Lock()
	p := r.pulls[number]
	payload["review"] = r.reviewShape(p, p.reviews[len(p.reviews)-1])
	payload["review"].(map[string]any)["state"] = strings.ToLower(state) // deliveries say it in lower case
	payload["pull_request"] = r.listShape([]*pull{p})[0]
	r.s.mu.Unlock()
	maps.Copy(payload, map[string]any{"action": action, "sender": userShape(login)})
	r.deliver("pull_request_review", payload)
}

// deliverComment delivers what sender did to a comment: its user remains who
// wrote it first. s.mu is held, and let go of.
func (r *Repo) deliverComment(c *comment, sender, action, before string) {
	payload := r.recorded("issue_comment", c.Number)
	payload["comment"] = r.commentShape(c.Comment)
	issue := payload["issue"].(map[string]any)
	issue["number"] = c.Number
	if !c.Issue {
		u := fmt.Sprintf("https://api.github.com/repos/%s/pulls/%d", r.fullName, c.Number)
		issue["pull_request"] = map[string]any{"url": u, "html_url": fmt.Sprintf("https://github.com/%s/pull/%d", r.fullName, c.Number)}
	}
	r.s.mu.Unlock()
	maps.Copy(payload, map[string]any{"action": action, "sender": userShape(sender)})
	if action == "edited" {
		payload["changes"] = map[string]any{"body": map[string]any{"from": before}}
	}
	r.deliver("issue_comment", payload)
}

func (r *Repo) deliveryID() string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return fmt.Sprintf("72d3162e-cc78-11e3-81ab-%012x", r.s.id())
}

func (r *Repo) deliver(event string, payload map[string]any) Delivery {
	delete(payload, "installation")
	body, err := json.Marshal(payload)
	if err != nil {
		r.s.t.Errorf("marshal %s: %v", event, err)
	}
	action, _ := payload["action"].(string)
	return r.send(Delivery{ID: r.deliveryID(), Event: event, Action: action, Body: body})
}

// send posts the delivery, if there is a webhook, and records it.
func (r *Repo) send(d Delivery) Delivery {
	r.s.mu.Lock()
	url, secret := r.hookURL, r.hookSecret
	if r.hidden {
		url = ""
	}
	d.Dropped = r.drop > 0
	if d.Dropped {
		r.drop--
	}
	r.s.mu.Unlock()
	if url == "" {
		return d
	}
	if !d.Dropped {
		start := time.Now()
		d.Status, d.Err = post(url, d, secret)
		d.Duration = time.Since(start)
	}
	r.s.mu.Lock()
	r.deliveries = append(r.deliveries, d)
	r.s.mu.Unlock()
	return d
}

func post(url string, d Delivery, secret string) (int, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return 0, err
	}
	req.Header = Headers(d, secret)
	client := &http.Client{Transport: ownclient.Client.Transport, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// Headers returns the headers that GitHub sends with a delivery, signed with
// secret.
func Headers(d Delivery, secret string) http.Header {
	h := http.Header{}
	h.Set("User-Agent", "GitHub-Hookshot/044aadd")
	h.Set("Content-Type", "application/json")
	h.Set("X-GitHub-Event", d.Event)
	h.Set("X-GitHub-Delivery", d.ID)
	h.Set("X-GitHub-Hook-ID", "292430182")
	h.Set("X-GitHub-Hook-Installation-Target-Type", "repository")
	old, mac := hmac.New(sha1.New, []byte(secret)), hmac.New(sha256.New, []byte(secret))
	old.Write(d.Body)
	mac.Write(d.Body)
	h.Set("X-Hub-Signature", "sha1="+hex.EncodeToString(old.Sum(nil)))
	h.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return h
}
