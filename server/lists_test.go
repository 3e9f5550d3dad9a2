package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/server"
)

// stored are records in a database. Attempts are given, as each of them would take a claim, and so are
// servers that share it.
type stored struct {
	*datastore.Store
	attempts []holdfast.Attempt
	replicas []replica.Replica
}

func (s stored) Attempts(context.Context, string) ([]holdfast.Attempt, error) { return s.attempts, nil }

func (s stored) Replicas(context.Context) ([]replica.Replica, error) { return s.replicas, nil }

// listed is how many there are of everything: one more than a page has.
const listed = 101

func crowded(t *testing.T) (*world, stored) {
	t.Helper()
	keys, err := seal.NewKeyring(bytes.Repeat([]byte("k"), seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(memory.Dir(t), "holdfast.db")
	store, err := datastore.Open(t.Context(), datastore.Options{Path: path, Keys: keys, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	w, all, ctx := newWorld(), stored{Store: store}, t.Context()
	w.queued = listed
	var (
		clusters  []holdfast.ClusterRecord
		history   []holdfast.Transition
		resources []holdfast.Resource
		outputs   []string
	)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range listed {
		name, at := fmt.Sprintf("c%03d", i), now.Add(time.Duration(i)*time.Second)
		clusters = append(clusters, holdfast.ClusterRecord{
			Name: name, Owner: "shop", Applied: holdfast.Applied{Run: "run-c000"}, Drift: holdfast.DriftState{Status: holdfast.DriftFound},
		})
		history = append(history, holdfast.Transition{Cluster: "c000", At: at, What: "phase", To: string(holdfast.PhaseActive)})
		resources = append(resources, holdfast.Resource{Cluster: "c000", Address: "null_resource." + name, Type: "null_resource"})
		outputs = append(outputs, fmt.Sprintf(`{"name":%q,"value":1}`, name))
		run := planRun("run-" + name)
		run.Cluster, run.StateLocation, run.Status, run.CreatedAt = name, "clusters/"+name, holdfast.RunQueued, at
		run.Document.Project, run.Document.Environment = name, "production"
		must(store.CreateRun(ctx, run, holdfast.AuditEntry{At: at, Actor: "otto", Action: "run.queue", Object: run.ID}))
		_, err := store.SavePullRequest(ctx, holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: "shop", Number: i + 1}, State: holdfast.PullRequestOpen,
		}})
		must(err)
		must(store.Suspend(ctx, holdfast.Suspension{Project: name, By: "otto", At: at}))
		w.agents = append(w.agents, protocol.AgentStatus{ID: name, Kinds: everyKind, Since: now, SeenAt: now})
		w.templates = append(w.templates, rollout.TemplateStatus{Name: name, Repo: "shop", Dir: name})
		all.replicas = append(all.replicas, replica.Replica{Identity: name})
		all.attempts = append(all.attempts, holdfast.Attempt{Run: "run-c000", Attempt: i + 1, Status: holdfast.RunErrored, ClaimedAt: at})
	}
	for i := range listed - 1 { // the local one is listed, too, before and after others by its name
		rec := runnerspec.Record{Document: runnerspec.Runner{Name: fmt.Sprintf("%c%03d", 'a'+i%26, i), Type: runnerspec.Remote}}
		must(store.SaveRunners(ctx, runnerspec.Change{Runners: []runnerspec.Record{rec}}))
	}
	for i := range listed {
		must(store.AddDeliveries(ctx, []holdfast.Delivery{{At: now, Event: fmt.Sprint("event-", i)}}))
	}
	_, err = store.CreateClusters(ctx, clusters, history...)
	must(err)
	must(store.SaveResources(ctx, "c000", resources))
	w.artefacts["run-c000/outputs"] = "[" + strings.Join(outputs, ",") + "]"
	return w, all
}

// manyLogins are tokens and sessions of whoever asks.
type manyLogins struct {
	server.PersonalTokens
	server.SessionLists
}

func (manyLogins) Tokens(context.Context, access.Principal, bool) (tokens []access.PersonalToken, err error) {
	for i := range listed {
		tokens = append(tokens, access.PersonalToken{ID: fmt.Sprintf("tok-%03d", i), CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
	}
	return tokens, nil
}

func (manyLogins) Sessions(context.Context, access.PersonID) (sessions []access.Session, err error) {
	for i := range listed {
		sessions = append(sessions, access.Session{ID: fmt.Sprintf("ses-%03d", i), Token: "vera", CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(time.Hour)})
	}
	return sessions, nil
}

// TestListsReachTheirEnd: cursors lead through every list of the API, in pages of the usual
// length and in short ones, to the same things in the same order as one long page.
func TestListsReachTheirEnd(t *testing.T) {
	t.Parallel()
	w, records := crowded(t)
	api := serve(t, newServer(t, w, func(o *server.Options) {
		o.API.Records, o.API.Runners.Records, o.API.Deliveries = records, records, records
		o.API.Login.Tokens, o.API.Login.Lists = manyLogins{}, manyLogins{}
	}).API()) + "/api/v1"
	paths := strings.NewReplacer("{name}", "c000", "{run}", "run-c000")
	lists := 0
	for _, op := range v1.Operations() {
		if !op.List || op.Method != "GET" {
			continue
		}
		lists++
		t.Run(op.ID, func(t *testing.T) {
			t.Parallel()
			want := listed
			switch op.ID {
			case "listReasons":
				want = len(holdfast.Reasons())
			case "listTransitions":
				want = 100 // as many as are kept
			}
			address := api + paths.Replace(op.Path)
			whole, _ := pagesOf(t, address, "limit=1000")
			if len(whole) != want {
				t.Fatalf("%d items, want %d", len(whole), want)
			}
			for query, pages := range map[string]int{"": 1, "limit=1": want, "limit=40": (want-1)/40 + 1} {
				got, n := pagesOf(t, address, query)
				if !slices.Equal(got, whole) {
					t.Errorf("?%s leads to %d items in %d pages, which are not those of one page", query, len(got), n)
				}
				if n < pages {
					t.Errorf("?%s: %d pages, want %d at least", query, n, pages)
				}
			}
			if got := request(t, "GET", address+"?limit=0", readerOf(address), ""); got.status != 400 {
				t.Errorf("limit=0: %d %s", got.status, got.body)
			}
		})
	}
	if lists < 12 {
		t.Errorf("only %d lists", lists)
	}
}

// pagesOf reads a list to its end, and says in how many pages it came.
// readerOf is who may read a list.
func readerOf(address string) string {
	if strings.HasSuffix(address, "/deliveries") {
		return adminToken
	}
	return viewerToken
}

func pagesOf(t *testing.T, address, query string) (items []string, pages int) {
	t.Helper()
	for cursor := ""; ; {
		got := request(t, "GET", address+"?"+query+"&cursor="+cursor, readerOf(address), "")
		list := decoded[v1.List[json.RawMessage]](t, got)
		if got.status != 200 || pages > 10*listed {
			t.Fatalf("page %d of ?%s: %d %s", pages, query, got.status, got.body)
		}
		pages++
		for _, item := range list.Items {
			items = append(items, string(item))
		}
		if cursor = list.Next; cursor == "" {
			return items, pages
		}
	}
}
