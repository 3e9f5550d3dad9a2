package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/outgoing"
)

// listener is where a channel sends notifications.
type listener struct {
	mu    sync.Mutex
	heard []string // event, cluster and title
	wrong []string
	down  bool
}

const channelKey = "a key of the channel alone"

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		http.Error(w, "no such hook", http.StatusNotFound)
		return
	}
	body, _ := io.ReadAll(r.Body)
	mac := hmac.New(sha256.New, []byte(channelKey))
	mac.Write(body)
	var message struct{ Notifications []outgoing.Notification }
	if err := json.Unmarshal(body, &message); err != nil || r.Header.Get("Holdfast-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		l.wrong = append(l.wrong, string(body))
	}
	for _, n := range message.Notifications {
		l.heard = append(l.heard, string(n.Event)+" "+n.Cluster+" "+n.Title)
	}
}

func (l *listener) has(prefix string) (bool, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.heard, func(s string) bool { return strings.HasPrefix(s, prefix) }), strings.Join(l.heard, "\n")
}

// A channel is notified of what follows from a merge, once, and by a server that is started
// again of what it did not get before; labels follow the plans.
func TestNotifications(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.max": 4})
	l := &listener{down: true}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	w.write("channel-url", server.URL+"/hooks/secret", 0o600)
	w.write("channel-key", channelKey, 0o600)
	w.set(settings{"notifications": []any{map[string]any{
		"name": "ops", "type": "webhook", "url": map[string]any{"file": "channel-url"}, "signingKey": map[string]any{"file": "channel-key"},
	}}})
	w.fleet().config["labels"] = true
	w.start()

	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("2 to create")
	w.until("the pull request has a label", func() (bool, string) {
		labels := w.fleet().hub.Labels(pr.number)
		return slices.Equal(labels, []string{"holdfast/changes"}), strings.Join(labels, ", ")
	})
	pr.merge()
	pr.untilApplied("2 created")
	w.until("the log names the channel, and not its address", func() (bool, string) {
		log := w.log.current()
		return strings.Contains(log, "notifications were not sent") && strings.Contains(log, "404 Not Found") && !strings.Contains(log, "hooks/secret"), log
	})
	w.stop()
	l.mu.Lock()
	l.down = false
	l.mu.Unlock()
	w.start()
	w.until("the channel hears of the apply", func() (bool, string) { return l.has("applied alpha applied: 2 created") })

	waits := w.fleet().open(cluster("beta", "nodes: 1", "apply: {onMerge: false}"))
	waits.untilPlanned("1 to create")
	waits.merge()
	w.untilWaiting("beta", "Manual")
	w.until("the channel hears of what waits", func() (bool, string) { return l.has("waiting beta waits: ") })
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.heard) != 2 || len(l.wrong) > 0 {
		t.Errorf("the channel got %q, and of a wrong signature %q", l.heard, l.wrong)
	}
}
