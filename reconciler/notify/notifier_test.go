package notify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/notify"
	"github.com/holdfast-dev/holdfast/outgoing"
	notifying "github.com/holdfast-dev/holdfast/reconciler/notify"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fleet is a store with its own clock, and a host that channels are at.
type fleet struct {
	t     *testing.T
	store *datastore.Store
	now   time.Time
	code  atomic.Int64 // that the host answers; 0: 200
	got   []outgoing.Notification
	tries int
	url   string
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, now: noon}
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	f.store, err = datastore.Open(t.Context(), datastore.Options{
		Path: filepath.Join(memory.Dir(t), "holdfast.db"), Keys: keys, Now: func() time.Time { return f.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.store.Close() })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.tries++
		if code := f.code.Load(); code != 0 {
			w.WriteHeader(int(code))
			return
		}
		var body struct{ Notifications []outgoing.Notification }
		data, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(data, &body); err != nil {
			t.Error(err)
		}
		f.got = append(f.got, body.Notifications...)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// notifier has a channel for everything, and one for what has failed in production.
func (f *fleet) notifier(log io.Writer) *notifying.Notifier {
	f.t.Helper()
	channel, err := notify.New(notify.Options{Type: notify.Webhook, URL: func() (string, error) { return f.url, nil }})
	if err != nil {
		f.t.Fatal(err)
	}
	return notifying.New(notifying.Options{
		Store: f.store, Now: func() time.Time { return f.now }, Logger: slog.New(slog.NewTextHandler(log, nil)),
		RunURL: func(run string) string { return "https://holdfast.example.com/runs/" + run },
		Channels: []notifying.Channel{
			{Name: "all", Sender: channel, Wants: func(string, string) bool { return true }},
			{
				Name: "alarms", Sender: channel, Events: []outgoing.NotificationEvent{outgoing.NotifyFailed},
				Wants: func(_, environment string) bool { return environment == "production" },
			},
		},
	})
}

// save stores a cluster as change makes it of what is on record.
func (f *fleet) save(name string, change func(c *holdfast.ClusterRecord)) {
	f.t.Helper()
	c, err := f.store.Cluster(f.t.Context(), name)
	if err != nil {
		c = holdfast.ClusterRecord{Name: name, Owner: "fleet", Phase: holdfast.PhaseActive}
		c.Desired.Document = holdfast.Cluster{Name: name, Project: "payments", Environment: "production"}
	}
	change(&c)
	c.UpdatedAt = f.now
	if _, err := f.store.SaveCluster(f.t.Context(), c); err != nil {
		f.t.Fatal(err)
	}
}

// run stores a run that has ended now.
func (f *fleet) run(id string, kind holdfast.RunKind, status holdfast.RunStatus, failure *holdfast.Failure) {
	f.t.Helper()
	err := f.store.CreateRun(f.t.Context(), holdfast.Run{
		ID: id, Cluster: "prod-eu", Kind: kind, Status: status, CreatedAt: f.now, StartedAt: f.now, FinishedAt: f.now,
		RunSpec: holdfast.RunSpec{
			Repo: "fleet", Revision: "abc", StateLocation: "here", Document: holdfast.Cluster{Name: "prod-eu", Project: "payments"},
			Reviews: []holdfast.Review{{PullRequest: holdfast.PullRequestRef{Repo: "fleet", Number: 7}, Run: "plan"}},
		},
		RunOutcome: holdfast.RunOutcome{Counts: holdfast.Counts{Update: 2, Create: 1}, Failure: failure},
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// told looks at the cluster and returns what is sent then, in words.
func (f *fleet) told(n *notifying.Notifier) []string {
	f.t.Helper()
	f.got = nil
	if err := n.Look(f.t.Context(), "prod-eu"); err != nil {
		f.t.Fatal(err)
	}
	f.now = f.now.Add(time.Minute)
	for channel := range 2 {
		if _, err := n.SendSome(f.t.Context(), channel, 0); err != nil {
			f.t.Fatal(err)
		}
	}
	var words []string
	for _, g := range f.got {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", g.Channel, g.Cluster, g.Title, g.Detail)))
	}
	return words
}

// TestNotifiedOnce: each thing that happens to a cluster is sent once, to those who want it.
func TestNotifiedOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	n := f.notifier(io.Discard)
	for _, step := range []struct {
		name   string
		change func(c *holdfast.ClusterRecord)
		want   []string
	}{
		{"nothing has happened", func(*holdfast.ClusterRecord) {}, nil},
		{"it is applied", func(c *holdfast.ClusterRecord) {
			f.run("apply-1", holdfast.RunApply, holdfast.RunApplied, nil)
			c.Applied = holdfast.Applied{Run: "apply-1", At: f.now}
		}, []string{"all: prod-eu applied: 2 changed, 1 created"}},
		{"its apply fails", func(c *holdfast.ClusterRecord) {
			f.run("apply-2", holdfast.RunApply, holdfast.RunErrored, &holdfast.Failure{Summary: "quota exceeded"})
			c.Waiting, c.WaitingFor = holdfast.ReasonApplyFailed, "abc"
		}, []string{"all: prod-eu ", "alarms: prod-eu "}},
		{"it fails again", func(*holdfast.ClusterRecord) {
			f.run("apply-3", holdfast.RunApply, holdfast.RunErrored, &holdfast.Failure{Summary: "quota exceeded"})
		}, []string{"all: prod-eu ", "alarms: prod-eu "}},
		{"a drift check does not matter", func(*holdfast.ClusterRecord) {
			f.run("drift-1", holdfast.RunDrift, holdfast.RunNoChanges, nil)
		}, nil},
		{"it waits for what comes without anybody", func(c *holdfast.ClusterRecord) { c.Waiting = holdfast.ReasonInProgress }, nil},
		{"it waits for an approval", func(c *holdfast.ClusterRecord) { c.Waiting = holdfast.ReasonNotApproved }, []string{"all: prod-eu waits: "}},
		{"it drifts", func(c *holdfast.ClusterRecord) {
			c.Waiting = ""
			c.Drift = holdfast.DriftState{Status: holdfast.DriftFound, Since: f.now, Fingerprint: "sha256:1", Counts: holdfast.DriftCounts{Changed: 2}}
		}, []string{"all: prod-eu has drifted: 2 changed outside"}},
		{"it drifts on", func(c *holdfast.ClusterRecord) { c.Drift.CheckedAt = f.now }, nil},
		{"it is gone", func(c *holdfast.ClusterRecord) {
			c.Deletion = &holdfast.Deletion{At: f.now, Reason: holdfast.ReasonDestroyed, Run: "destroy-1"}
		}, []string{"all: prod-eu destroyed"}},
	} {
		f.now = f.now.Add(time.Hour)
		f.save("prod-eu", step.change)
		got := f.told(n)
		if !slices.EqualFunc(got, step.want, strings.HasPrefix) {
			t.Errorf("%s: %q was sent, want %q", step.name, got, step.want)
		}
		if again := f.told(f.notifier(io.Discard)); len(again) > 0 {
			t.Errorf("%s: another process has sent %q once more", step.name, again)
		}
	}
}

// TestOldNews: a server that begins to notify says nothing of what was long before.
func TestOldNews(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.run("apply-1", holdfast.RunApply, holdfast.RunApplied, nil)
	f.save("prod-eu", func(c *holdfast.ClusterRecord) { c.Applied = holdfast.Applied{Run: "apply-1", At: f.now} })
	f.now = f.now.Add(25 * time.Hour)
	if got := f.told(f.notifier(io.Discard)); len(got) > 0 {
		t.Errorf("%q was sent a day later", got)
	}
}

// TestChannelThatRefuses: a channel that answers 404 for a week is asked less and less often,
// keeps nothing for longer than a day, says so, and works again as soon as it does.
func TestChannelThatRefuses(t *testing.T) {
	t.Parallel()
	f, log := newFleet(t), new(bytes.Buffer)
	n := f.notifier(log)
	f.code.Store(http.StatusNotFound)
	failures := 0
	for hour := range 7 * 24 {
		id := fmt.Sprint("apply-", hour)
		f.run(id, holdfast.RunApply, holdfast.RunApplied, nil)
		f.save("prod-eu", func(c *holdfast.ClusterRecord) { c.Applied = holdfast.Applied{Run: id, At: f.now} })
		if err := n.Look(t.Context(), "prod-eu"); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			f.now = f.now.Add(time.Minute)
			if _, err := n.SendSome(t.Context(), 0, failures); err != nil {
				failures++
			}
		}
	}
	if f.tries < 7*24/2 || f.tries > 7*24+10 {
		t.Errorf("it was asked %d times in a week", f.tries)
	}
	problems := n.Problems()
	if len(problems) != 1 || problems[0].Channel != "all" || problems[0].Waiting > 26 || !strings.Contains(problems[0].Detail, "404 Not Found") ||
		problems[0].Since.Sub(noon) > time.Hour {
		t.Errorf("the problems are %+v", problems)
	}
	if text := log.String(); !strings.Contains(text, "notifications were not sent") || strings.Contains(text, f.url) {
		t.Errorf("the log has %.300s", text)
	}
	f.code.Store(0)
	f.now = f.now.Add(2 * time.Hour)
	if _, err := n.SendSome(t.Context(), 0, failures); err != nil || len(f.got) < 20 || len(f.got) > 26 || len(n.Problems()) > 0 {
		t.Errorf("when it is back: %v, %d notifications, problems %+v", err, len(f.got), n.Problems())
	}
}
