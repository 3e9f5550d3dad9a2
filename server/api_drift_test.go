package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/outgoing"
)

func decoded[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("decode %d %s: %v", a.status, a.body, err)
	}
	return v
}

func TestDriftList(t *testing.T) {
	t.Parallel()
	w := newWorld()
	record := func(name string, status holdfast.DriftStatus, onDrift string) {
		w.clusters[name] = holdfast.ClusterRecord{
			Name: name, Owner: "shop", Drift: holdfast.DriftState{Status: status, Failures: 2},
			Desired: holdfast.Desired{SourceDigest: "sha256:2", Document: holdfast.Cluster{Name: name, Project: "p", Drift: holdfast.DriftSettings{OnDrift: onDrift}}},
			Applied: holdfast.Applied{SourceDigest: "sha256:1"}, Waiting: "Unreviewed",
		}
		w.summaries = append(w.summaries, holdfast.ClusterSummary{Name: name, Drift: status})
		slices.SortFunc(w.summaries, func(a, b holdfast.ClusterSummary) int { return strings.Compare(a.Name, b.Name) })
	}
	record("own", holdfast.DriftFound, "")
	record("among-others", holdfast.DriftFound, "apply")
	record("quiet", holdfast.DriftFound, "ignore")
	record("broken", holdfast.DriftFailed, "")
	record("clean", holdfast.DriftNone, "")
	record("new", holdfast.DriftUnchecked, "")
	record("came", holdfast.DriftFound, "")
	w.posts["issue:drift:own"] = outgoing.Post{Repo: "shop", ExternalID: "12"}
	w.posts["issue:drift:among-others"] = outgoing.Post{Repo: "shop", ExternalID: "13", Closed: true}
	w.posts["issue:drift:broken"] = outgoing.Post{Repo: "shop", ExternalID: "local:0a1b"}
	w.posts["issue:drift-summary:shop"] = outgoing.Post{Repo: "shop", ExternalID: "14"}
	// A cluster that came from another repository: there its issue is still open.
	w.posts["issue:drift:came"] = outgoing.Post{Repo: "attic", ExternalID: "1"}
	w.posts["issue:drift:came:shop"] = outgoing.Post{Repo: "shop", ExternalID: "15"}
	url := serve(t, newServer(t, w).API()) + "/api/v1/drift"
	brief := func(query string) []string {
		var got []string
		for _, l := range decoded[v1.List[v1.DriftLine]](t, request(t, "GET", url+query, viewerToken, "")).Items {
			got = append(got, strings.Join([]string{l.Cluster, string(l.State.Status), l.OnDrift, l.Issue}, "|"))
		}
		return got
	}
	drifted := []string{"among-others|drifted|apply|14", "broken|failed|report|", "came|drifted|report|15", "own|drifted|report|12", "quiet|drifted|ignore|"}
	if diff := cmp.Diff(drifted, brief("")); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
	all := []string{drifted[0], drifted[1], drifted[2], "clean|none||", "new|||", drifted[3], drifted[4]}
	if diff := cmp.Diff(all, brief("?all=true")); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(drifted[1:2], brief("?drift=failed&all=true")); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"clean|none||"}, brief("?drift=none")); diff != "" {
		t.Errorf("none (-want +got):\n%s", diff)
	}
	var parts []string
	for query, more := "?limit=2", ""; ; query = "?limit=2&cursor=" + more {
		parts = append(parts, brief(query)...)
		if more = decoded[v1.List[v1.DriftLine]](t, request(t, "GET", url+query, viewerToken, "")).Next; more == "" {
			break
		}
	}
	if diff := cmp.Diff(drifted, parts); diff != "" {
		t.Errorf("in parts (-want +got):\n%s", diff)
	}
	// Of a large fleet, no more is read than is answered.
	for _, call := range w.noted() {
		if strings.Contains(call, "summaries") && !strings.Contains(call, `"Limit":`) {
			t.Errorf("the whole list was read: %s", call)
		}
	}
	line := decoded[v1.List[v1.DriftLine]](t, request(t, "GET", url, viewerToken, "")).Items[0]
	if !line.NotApplied || line.Waiting != "Unreviewed" || line.Project != "p" || line.State.Failures != 2 {
		t.Errorf("line = %+v, want all that the record says", line)
	}
}

func TestDriftReportIsMasked(t *testing.T) {
	t.Parallel()
	report := decoded[holdfast.DriftReport](t, request(t, "GET", serve(t, newServer(t, fleet()).API())+"/api/v1/clusters/prod-eu/drift", viewerToken, ""))
	want := []holdfast.AttributeChange{
		{Path: "pw", Sensitive: true, Before: json.RawMessage(`"(sensitive value)"`), After: json.RawMessage(`"(sensitive value)"`)},
		{Path: "size", Before: json.RawMessage(`1`), After: json.RawMessage(`2`)},
	}
	same := cmp.Comparer(func(a, b holdfast.Digest) bool { return a == b }) // by its Equal, an unknown one is equal to none
	if diff := cmp.Diff(want, report.Items[0].Attributes, same); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestFleetActions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path, body string
		want       int
		said       string // in the answer and the calls
	}{
		"check":                {"clusters/prod-eu/drift/check", "", 202, "check drift of prod-eu by otto"},
		"check what never was": {"clusters/young/drift/check", "", 409, `cluster \"young\": it was never applied","reason":"NeverApplied"`},
		"check what is held":   {"clusters/held/drift/check", "", 409, `cluster \"held\": it is suspended","reason":"Suspended","command":"holdfast resume held"`},
		"check what is not":    {"clusters/none/drift/check", "", 404, `cluster \"none\"`},
		"transfer":             {"clusters/prod-eu/transfer", `{"repo":"other"}`, 200, "transfer prod-eu to other by otto"},
		"transfer while busy":  {"clusters/prod-eu/transfer", `{"repo":"busy"}`, 409, `cluster \"prod-eu\": run run-1 is running","reason":"InProgress","command":"holdfast cancel run-1"`},
		"transfer to nobody":   {"clusters/prod-eu/transfer", `{"repo":"unwatched"}`, 404, `"detail":"no repository \"unwatched\" is watched","hint"`},
		"transfer nowhere":     {"clusters/prod-eu/transfer", `{}`, 400, "repo is missing"},
		"transfer what is not": {"clusters/none/transfer", `{"repo":"other"}`, 404, `cluster \"none\": not found"`},
		"suspend a project":    {"suspend", `{"project":"p","reason":"freeze"}`, 200, `suspend project="p" true by otto at 2026-03-01T12:00:00Z: freeze`},
		"suspend all":          {"suspend", `{"all":true}`, 200, `suspend project="" true`},
		"suspend what":         {"suspend", `{}`, 400, "give one of project and all"},
		"suspend both":         {"suspend", `{"project":"p","all":true}`, 400, "give one of"},
		"suspend with a typo":  {"suspend", `{"projct":"p"}`, 400, "unknown field"},
		"suspend nobody's":     {"suspend", `{"project":"nobody"}`, 404, `project \"nobody\" has no clusters","hint"`},
		"resume all":           {"resume", `{"all":true}`, 200, `suspend project="" false by otto`},
		"resume what runs":     {"resume", `{"project":"nobody"}`, 404, `project \"nobody\" is not suspended","hint"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fleet()
			w.clusters["young"] = holdfast.ClusterRecord{Name: "young"}
			w.clusters["held"] = holdfast.ClusterRecord{Name: "held", OwnSuspension: holdfast.OwnSuspension{Suspended: true}, Applied: holdfast.Applied{Run: "run-1"}}
			got := request(t, "POST", serve(t, newServer(t, w).API())+"/api/v1/"+tc.path, operatorToken, tc.body)
			if said := got.body + strings.Join(w.noted(), "\n"); got.status != tc.want || !strings.Contains(said, tc.said) {
				t.Errorf("%s = %d %s, want %d %s", tc.path, got.status, said, tc.want, tc.said)
			}
		})
	}
}

func TestSuspensions(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.suspensions = []holdfast.Suspension{{Project: "p", By: "otto", Reason: "freeze", At: now}}
	w.summaries = []holdfast.ClusterSummary{{Name: "a"}, {Name: "b", Suspended: true}, {Name: "c", Project: "p"}}
	w.clusters["b"] = holdfast.ClusterRecord{Name: "b", OwnSuspension: holdfast.OwnSuspension{Suspended: true, SuspendedWhy: "it moves", SuspendedBy: "olga", SuspendedAt: now.Add(-time.Hour)}}
	got := decoded[v1.List[v1.Suspension]](t, request(t, "GET", serve(t, newServer(t, w).API())+"/api/v1/suspensions", viewerToken, "")).Items
	lines := decoded[v1.List[holdfast.ClusterSummary]](t, request(t, "GET", serve(t, newServer(t, w).API())+"/api/v1/clusters", viewerToken, "")).Items
	if lines[0].Suspended || !lines[1].Suspended || !lines[2].Suspended {
		t.Errorf("lines = %+v, want the one of the project suspended, too", lines)
	}
	many := decoded[v1.List[v1.Suspension]](t, request(t, "GET", serve(t, newServer(t, w).API())+"/api/v1/suspensions?many=true", viewerToken, "")).Items
	if len(many) != 1 || many[0].Project != "p" {
		t.Errorf("those of many clusters = %+v", many)
	}
	want := []v1.Suspension{{Project: "p", By: "otto", Reason: "freeze", At: now}, {Cluster: "b", By: "olga", Reason: "it moves", At: now.Add(-time.Hour)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("suspensions (-want +got):\n%s", diff)
	}
}

// A page of suspensions is read for itself: of a large fleet neither all lines are in
// memory at once, nor are records read that it does not show.
func TestSuspensionsInPages(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.suspensions = []holdfast.Suspension{{Project: "p", By: "otto", At: now}}
	for i := range 2_500 {
		name := fmt.Sprintf("c%05d", i)
		w.summaries = append(w.summaries, holdfast.ClusterSummary{Name: name, Suspended: i%2 == 0})
		w.clusters[name] = holdfast.ClusterRecord{Name: name, OwnSuspension: holdfast.OwnSuspension{SuspendedBy: "olga"}}
	}
	api := serve(t, newServer(t, w).API())
	var got []string
	for cursor := ""; ; {
		before, read := len(w.noted()), w.reads.Load()
		list := decoded[v1.List[v1.Suspension]](t, request(t, "GET", api+"/api/v1/suspensions?limit=100&cursor="+cursor, viewerToken, ""))
		for _, s := range list.Items {
			got = append(got, s.Project+s.Cluster)
		}
		for _, note := range w.noted()[before:] {
			if strings.HasPrefix(note, "summaries ") && !strings.Contains(note, `"Limit":1000`) {
				t.Errorf("lines are read without a bound: %s", note)
			}
		}
		if reads := w.reads.Load() - read; reads > 101 {
			t.Fatalf("%d records are read for a page of 100", reads)
		}
		if cursor = list.Next; cursor == "" {
			break
		}
	}
	if len(got) != 1_251 || got[0] != "p" || got[1] != "c00000" || got[1_250] != "c02498" || !slices.IsSorted(got[1:]) {
		t.Errorf("%d suspensions, from %q to %q", len(got), got[0], got[len(got)-1])
	}
}

// BenchmarkSummaries is the answer with a line for each cluster of a large
// fleet, without the store.
func BenchmarkSummaries(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld()
			for i := range n {
				w.summaries = append(w.summaries, summary(i))
			}
			api := newServer(b, w).API()
			req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/api/v1/clusters?limit=10000", nil)
			req.Header.Set("Authorization", "Bearer "+viewerToken)
			for b.Loop() {
				answer := httptest.NewRecorder()
				api.ServeHTTP(answer, req)
				if answer.Code != http.StatusOK {
					b.Fatal(answer.Body.String())
				}
				b.SetBytes(int64(answer.Body.Len()))
			}
		})
	}
}

func summary(i int) holdfast.ClusterSummary {
	return holdfast.ClusterSummary{
		Name: fmt.Sprintf("cluster-%05d", i), Owner: "acme/clusters", Project: "payments", Environment: "production", Provider: "aws",
		Labels: map[string]string{"team": "payments", "tier": "gold", "region": "eu-west-1"}, Template: "kubernetes@1.4.2",
		Phase: holdfast.PhaseActive, UpToDate: true, Drift: holdfast.DriftFound, DriftCounts: holdfast.DriftCounts{Changed: i % 7},
		CheckedAt: now, DriftDue: now.Add(time.Hour), Applied: holdfast.AppliedLine{Revision: "0123456789abcdef0123456789abcdef01234567"}, UpdatedAt: now,
	}
}
