package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/server"
)

// fleet is a world with something of everything to look at.
func fleet() *world {
	w := newWorld()
	doc := holdfast.Cluster{
		Name: "prod-eu", Project: "payments", Environment: "production",
		Variables: map[string]any{
			"node_count": 3, "db_password": "hunter22hunter", "enable_token_rotation": true,
			"db_secret": map[string]any{"secret": map[string]any{"env": "DB_PASSWORD"}},
			"nested":    map[string]any{"api_key": 12345678, "list": []any{map[string]any{"client_secret": "s3cret-in-list"}}},
		},
		State: &holdfast.StateBackend{Type: "s3", Config: map[string]any{"bucket": "b", "secret_key": "s3cret-of-backend"}},
	}
	w.clusters["prod-eu"] = holdfast.ClusterRecord{
		Name: "prod-eu", Owner: "shop", Phase: holdfast.PhaseActive,
		Desired: holdfast.Desired{Revision: "abc", Document: doc}, Applied: holdfast.Applied{Run: "run-1", Document: doc},
	}
	run := applyRun("run-1")
	run.Document, run.PullRequest, run.Revision = doc, holdfast.PullRequestRef{Repo: "shop", Number: 7}, "abc"
	w.start(run)
	w.plans["run-1"] = holdfast.Plan{
		Counts:        holdfast.Counts{Update: 1},
		OutputChanges: []holdfast.OutputChange{{Name: "o", Sensitive: true, After: json.RawMessage(`"s3cret-o"`), AfterMark: "hmac-value"}},
		Changes: []holdfast.ResourceChange{{Address: "a", Attributes: []holdfast.AttributeChange{
			{Path: "pw", Sensitive: true, Before: json.RawMessage(`"s3cret-before"`), After: json.RawMessage(`null`), BeforeMark: "hmac-value"},
			{Path: "size", Before: json.RawMessage(`1`), After: json.RawMessage(`2`)},
		}}},
	}
	w.artefacts["run-1/outputs"] = `[{"name":"endpoint","value":"https://x"},{"name":"kubeconfig","sensitive":true,"value":"s3cret-output"}]`
	w.prs["shop#7"] = holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{PullRequestRef: run.PullRequest, Head: "abc", MergeCommit: "def"},
		Clusters:    []holdfast.PullRequestCluster{{Name: "prod-eu", Document: doc}},
	}
	w.posts["comment:shop#7"] = outgoing.Post{Body: "plan of prod-eu", ExternalID: "99", PostDelivery: outgoing.PostDelivery{PostedAt: now}}
	w.posts["status:shop:old:holdfast/plan"] = outgoing.Post{
		Kind: outgoing.PostStatus, PullRequest: holdfast.PullRequestRef{Repo: "shop", Number: 7},
		Status:       holdfast.CommitStatus{Revision: "abc", Context: holdfast.ContextPlan},
		PostDelivery: outgoing.PostDelivery{GivenUp: true, LastError: "GitHub answered 403: no"},
	}
	w.posts["reaction:shop#7:5"] = outgoing.Post{
		Kind: outgoing.PostReaction, PullRequest: holdfast.PullRequestRef{Repo: "shop", Number: 7},
		CommentID: "5", Reaction: "eyes",
		PostDelivery: outgoing.PostDelivery{Wanted: 1, Failures: 3, LastError: "no space left on device", NotBefore: now},
	}
	w.posts["reply:shop#7:5"] = outgoing.Post{
		Kind: outgoing.PostReply, PullRequest: holdfast.PullRequestRef{Repo: "shop", Number: 7},
		PostDelivery: outgoing.PostDelivery{Wanted: 1, LastError: "other writes come first", NotBefore: now},
	}
	w.posts["status:shop:def:holdfast/apply"] = outgoing.Post{Status: holdfast.CommitStatus{
		Revision: "def", Context: holdfast.ContextApply, State: holdfast.StatusSuccess,
	}}
	w.history = []holdfast.Transition{{Cluster: "prod-eu", At: now, What: "phase", From: "Updating", To: "Active"}}
	w.resources = []holdfast.Resource{{Cluster: "prod-eu", Address: "aws_vpc.main", Type: "aws_vpc", ID: "vpc-1"}}
	w.families["prod-eu"] = holdfast.Family{Parents: []holdfast.Relation{{Name: "network-eu", Settled: true}}}
	w.drift["prod-eu"] = holdfast.DriftReport{
		Cluster: "prod-eu", Document: doc, State: holdfast.DriftState{Status: holdfast.DriftFound}, Revert: &run,
		Items: []holdfast.DriftItem{{Address: "aws_db.a", Attributes: []holdfast.AttributeChange{
			{Path: "pw", Sensitive: true, Before: json.RawMessage(`"s3cret-drift"`), After: json.RawMessage(`"s3cret-after"`)},
			{Path: "size", Before: json.RawMessage(`1`), After: json.RawMessage(`2`)},
		}}},
	}
	w.audit = []holdfast.AuditEntry{{Actor: "otto", Action: "run.cancel", Object: "run-1"}}
	return w
}

// TestAuthorization is the matrix: every path of the API, every role.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	w := fleet()
	w.held = true
	url := serve(t, newServer(t, w, func(o *server.Options) { o.API.Rescuer = rescuer{} }).API())
	const ok, no, forbidden = 200, 401, 403
	for _, tc := range []struct {
		method, path, body                     string
		nobody, agent, viewer, operator, admin int
	}{
		{"GET", "/healthz", "", ok, ok, ok, ok, ok},
		{"GET", "/readyz", "", ok, ok, ok, ok, ok},
		{"GET", "/api/v1/version", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/clusters", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/clusters/prod-eu", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/clusters/prod-eu/outputs", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/whoami", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/reasons", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/openapi.json", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/clusters/prod-eu/history", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/clusters/prod-eu/family", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/clusters/prod-eu/drift", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/drift", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/resources", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/suspensions", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/runs", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/runs/run-1", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/runs/run-1/plan", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/runs/run-1/attempts", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/runs/run-1/log", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/pullrequests", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/pullrequests/get?repo=shop&number=7", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/audit", "", no, no, ok, ok, ok},
		{"GET", "/runs/run-1", "", no, no, ok, ok, ok},
		{"GET", "/pullrequests/7/shop", "", no, no, ok, ok, ok},
		{"GET", "/api/v1/locks/prod-eu", "", no, no, ok, ok, ok},
		{"POST", "/api/v1/commands", `{"verb":"plan","clusters":["prod-eu"]}`, no, no, forbidden, ok, ok},
		{"POST", "/api/v1/commands", `{"verb":"approve","clusters":["prod-eu"]}`, no, no, forbidden, forbidden, ok},
		{"POST", "/api/v1/commands", `{"verb":"unlock","clusters":["prod-eu"],"force":true}`, no, no, forbidden, forbidden, ok},
		{"POST", "/api/v1/reconcile", `{"repo":"shop"}`, no, no, forbidden, 202, 202},
		{"POST", "/api/v1/clusters/prod-eu/suspend", ``, no, no, forbidden, ok, ok},
		{"POST", "/api/v1/clusters/prod-eu/resume", ``, no, no, forbidden, ok, ok},
		{"POST", "/api/v1/clusters/prod-eu/drift/check", ``, no, no, forbidden, 202, 202},
		{"POST", "/api/v1/clusters/prod-eu/transfer", `{"repo":"shop"}`, no, no, forbidden, ok, ok},
		{"POST", "/api/v1/suspend", `{"all":true,"reason":"freeze"}`, no, no, forbidden, ok, ok},
		{"POST", "/api/v1/resume", `{"project":"payments"}`, no, no, forbidden, ok, ok},
		{"DELETE", "/api/v1/locks/prod-eu", "", no, no, forbidden, ok, ok},
		{"DELETE", "/api/v1/locks/prod-eu?force=true", "", no, no, forbidden, forbidden, ok},
		{"GET", "/api/v1/states/prod-eu/lock", "", no, no, ok, ok, ok},
		{"POST", "/api/v1/states/prod-eu/migrate", `{"dryRun":true}`, no, no, forbidden, ok, ok},
		{"POST", "/api/v1/states/prod-eu/unlock", `{"lock":"left-1"}`, no, no, forbidden, 202, 202},
		{"POST", "/api/v1/states/prod-eu/unlock", `{"lock":"left-1","force":true}`, no, no, forbidden, forbidden, 202},
	} {
		for token, want := range map[string]int{
			"": tc.nobody, agentToken: tc.agent, viewerToken: tc.viewer, operatorToken: tc.operator, adminToken: tc.admin,
		} {
			got := request(t, tc.method, url+tc.path, token, tc.body)
			if got.status != want {
				t.Errorf("%s %s with %q = %d %s, want %d", tc.method, tc.path, token, got.status, got.body, want)
			}
		}
	}
}

// TestUnlockTakesTheIDOfALock: an engine gets the ID as an argument, which is neither an option
// nor more than one.
func TestUnlockTakesTheIDOfALock(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, fleet(), func(o *server.Options) { o.API.Rescuer = rescuer{} }).API())
	for id, want := range map[string]int{
		"left-1": 202, "1709294400123456": 202, "acme/prod": 202, "b/k-md5": 202, "3F2A=": 202, strings.Repeat("a", 200): 202,
		"": 400, "-force": 400, "--help": 400, "left 1": 400, "left-1\n": 400, "left\x001": 400, "../left": 400, "$(id)": 400, "ü": 400,
		strings.Repeat("a", 201): 400,
	} {
		body, err := json.Marshal(map[string]string{"lock": id})
		if err != nil {
			t.Fatal(err)
		}
		if got := request(t, "POST", url+"/api/v1/states/prod-eu/unlock", operatorToken, string(body)); got.status != want {
			t.Errorf("the release of %.20q = %d %s, want %d", id, got.status, got.body, want)
		}
	}
	if got := request(t, "POST", url+"/api/v1/states/prod-eu/unlock", operatorToken, `{"lock":"left-1","as":"apply"}`); got.status != 400 {
		t.Errorf("a release with more than the ID of a lock = %d %s", got.status, got.body)
	}
}

// TestNothingSecretIsShown reads everything that can be read.
func TestNothingSecretIsShown(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, fleet()).API())
	for _, path := range []string{
		"clusters", "clusters/prod-eu", "clusters/prod-eu/outputs", "clusters/prod-eu/drift", "drift", "runs", "runs/run-1", "runs/run-1/plan",
		"pullrequests/get?repo=shop&number=7",
	} {
		got := request(t, "GET", url+"/api/v1/"+path, viewerToken, "")
		if got.status != 200 {
			t.Errorf("%s = %d %s", path, got.status, got.body)
		}
		for _, secret := range []string{"hunter22hunter", "s3cret", "12345678", "hmac-value"} {
			if strings.Contains(got.body, secret) {
				t.Errorf("%s shows %s: %s", path, secret, got.body)
			}
		}
	}
	got := request(t, "GET", url+"/api/v1/clusters/prod-eu", viewerToken, "").body
	if !strings.Contains(got, `"node_count":3`) || !strings.Contains(got, `"enable_token_rotation":true`) ||
		!strings.Contains(got, `"db_secret":{"secret":{"env":"DB_PASSWORD"}}`) {
		t.Errorf("cluster = %s, want what is not secret", got)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"clusters?project=p&environment=e&phase=Active&waiting=*&owner=o&label=a%3Db&name=x&name=y": `summaries {"Names":["x","y"],"Owner":"o","Revision":"","Project":"p","Environment":"e","Phase":"Active","Waiting":"*","Drift":"","Template":"","DependsOn":"","Labels":{"a":"b"},"Applied":false,"Deleted":false,"Limit":100}`,
		"clusters?all=true&drift=drifted":           `summaries {"Names":null,"Owner":"","Revision":"","Project":"","Environment":"","Phase":"","Waiting":"","Drift":"drifted","Template":"","DependsOn":"","Labels":null,"Applied":false,"Deleted":true,"Limit":100}`,
		"clusters?view=short":                       `400 unknown parameter "view"`,
		"clusters?phase=Active;drift=none":          `400 query is not valid: invalid semicolon separator in query`,
		"runs?cluster=%zz":                          `400 query is not valid: invalid URL escape "%zz"`,
		"clusters?fields=name,nameS":                `400 field "nameS": want some of name, owner,`,
		"drift?fields=name":                         `400 field "name": want some of cluster, owner,`,
		"pullrequests?fields=repo,id":               `400 field "id": want some of repo, number,`,
		"resources?fields=name":                     `400 field "name": want some of cluster, address,`,
		"clusters?cursor=x":                         `400 cursor "x" was not issued by this list`,
		"runs?cursor=WyJhIiwiYiJd":                  `400 cursor was not issued by this list`,
		"clusters?cursor=W251bGxd":                  `400 cursor "W251bGxd" was not issued by this list`, // [null]
		"audit?cursor=WyItMSJd":                     `400 cursor was not issued by this list`,            // ["-1"]
		"clusters?drift=yes":                        `400 drift "yes": want none, drifted or failed`,
		"clusters?waiting=PlanChangd":               `400 waiting "PlanChangd": want a reason, or * for any`,
		"clusters?all=yes":                          `400 all "yes": want true or false`,
		"drift?projects=p":                          `400 unknown parameter "projects"`,
		"resources?cluster=c&type=t&id=i&address=a": `resources {"Cluster":"c","Type":"t","ID":"i","Address":"a","Limit":1000}`,
		"resources?limit=20000":                     `400 limit "20000": want 1 to 10000`,
		"resources?name=c":                          `400 unknown parameter "name"`,
		"clusters/prod-eu/history?limit=5":          `history prod-eu 5`,
		"clusters/prod-us/history":                  `404 cluster "prod-us"`,
		"clusters/prod-us/family":                   `404 cluster "prod-us"`,
		"clusters/prod-us/drift":                    `404 cluster "prod-us"`,
		"clusters?label=a":                          `400 label "a": want key=value`,
		"clusters?projects=p":                       `400 unknown parameter "projects"`,
		"runs":                                      `runs {"Cluster":"","PullRequest":null,"Kinds":null,"Statuses":null,"Limit":100}`,
		"runs?kind=unlock":                          `runs {"Cluster":"","PullRequest":null,"Kinds":["unlock"],"Statuses":null,"Limit":100}`,
		"runs?cluster=c&kind=apply&kind=destroy&status=errored&limit=5": `runs {"Cluster":"c","PullRequest":null,"Kinds":["apply","destroy"],"Statuses":["errored"],"Limit":5}`,
		"runs?repo=shop&number=7": `runs {"Cluster":"","PullRequest":{"repo":"shop","number":7},"Kinds":null,"Statuses":null,"Limit":100}`,
		"runs?number=7":           `400 repo of the pull request is missing`,
		"runs?limit=0":            `400 limit "0": want 1 to 1000`,
		"runs?limit=5000":         `400 limit "5000": want 1 to 1000`,
		"pullrequests?repo=shop&state=open&cluster=c": `pullrequests {"Repo":"shop","States":["open"],"Cluster":"c","Limit":100,"ByMerge":false}`,
		"pullrequests/get?repo=shop":                  `400 number of the pull request is missing`,
		"pullrequests/get?repo=shop&number=x":         `400 number "x": want that of a pull request`,
		"pullrequests/get?repo=shop&number=8":         `404 pull request shop#8`,
		"audit?object=prod-eu&limit=3":                `audit prod-eu 3`,
		"clusters/prod-us":                            `404 cluster "prod-us"`,
		"runs/run-9":                                  `404 run "run-9"`,
		"runs/run-9/plan":                             `404 plan of run "run-9"`,
		"runs/run-9/attempts":                         `404 run "run-9"`,
		"runs/run-9/log":                              `404 log of run "run-9"`,
		"runs/run-1/log?attempt=9":                    `404 run "run-1" has no attempt 9`,
		"runs/run-1/log?offset=x":                     `400 want attempt and offset as numbers`,
		"locks/prod-eu":                               `404 lock of cluster "prod-eu"`,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := fleet()
			got := request(t, "GET", serve(t, newServer(t, w).API())+"/api/v1/"+path, viewerToken, "")
			said := strings.Join(w.noted(), "\n")
			if got.status != 200 {
				var e v1.Problem
				if err := json.Unmarshal([]byte(got.body), &e); err != nil {
					t.Fatalf("body %q is not an error: %v", got.body, err)
				}
				said = fmt.Sprintf("%d %s", got.status, e.Detail)
			}
			if !strings.HasPrefix(said, want) {
				t.Errorf("%s\n got %s\nwant %s", path, said, want)
			}
		})
	}
}

// TestFields: of the items of long lists a client can have only what it needs.
func TestFields(t *testing.T) {
	t.Parallel()
	w := fleet()
	w.summaries = []holdfast.ClusterSummary{{Name: "prod-eu", Owner: "shop", Drift: holdfast.DriftFound}}
	url := serve(t, newServer(t, w).API()) + "/api/v1/"
	for path, want := range map[string]string{
		"clusters?fields=name,owner":                  `{"name":"prod-eu","owner":"shop"}`,
		"drift?fields=cluster&fields=onDrift":         `{"cluster":"prod-eu","onDrift":"report"}`,
		"pullrequests?fields=repo,number,mergeCommit": `{"mergeCommit":"def","number":7,"repo":"shop"}`,
		"resources?type=aws_vpc&fields=cluster,id":    `{"cluster":"prod-eu","id":"vpc-1"}`,
		"runs?kind=apply&cluster=prod-eu&fields=id":   `{"id":"run-1"}`,
	} {
		got := request(t, "GET", url+path, viewerToken, "")
		if body := strings.ReplaceAll(got.body, "\n", ""); body != `{"items":[`+want+`]}` {
			t.Errorf("%s = %d %s, want one item: %s", path, got.status, got.body, want)
		}
	}
}

func TestPullRequestShowsWhatWasPosted(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, fleet()).API())
	var got v1.PullRequestDetail
	body := request(t, "GET", url+"/api/v1/pullrequests/get?repo=shop&number=7", viewerToken, "").body
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Comments) != 1 || got.Comments[0].Body != "plan of prod-eu" || len(got.Statuses) != 1 || got.Statuses[0].Revision != "def" {
		t.Errorf("pull request = %s, want its comment and status", body)
	}
	if len(got.Gates) != 1 || got.Gates[0].Cluster != "prod-eu" || got.Gates[0].Missing != "one more approval of prod-eu" || got.Gates[0].Met {
		t.Errorf("pull request = %s, want what its apply requires", body)
	}
	want := v1.RefusedPost{Kind: outgoing.PostStatus, What: "holdfast/plan of abc", Reason: "GitHub answered 403: no"}
	if len(got.Refused) != 1 || got.Refused[0] != want {
		t.Errorf("refused = %+v, want %+v", got.Refused, want)
	}
	delayed := []v1.DelayedPost{
		{Kind: outgoing.PostReaction, What: "eyes at comment 5", Reason: "no space left on device", RetryAt: now},
		{Kind: outgoing.PostReply, What: "of shop#7", Reason: "other writes come first", RetryAt: now},
	}
	slices.SortFunc(got.Delayed, func(a, b v1.DelayedPost) int { return strings.Compare(a.What, b.What) })
	if !slices.Equal(got.Delayed, delayed) {
		t.Errorf("delayed = %+v, want %+v", got.Delayed, delayed)
	}
}

// A status that the code host has refused is not shown as if it were set, from the first
// refusal on.
func TestAStatusThatIsNotSet(t *testing.T) {
	t.Parallel()
	const refused = "GitHub answered 422: This SHA and context has reached the maximum number of statuses."
	for name, tt := range map[string]struct {
		delivery outgoing.PostDelivery
		want     string
	}{
		"refused once":        {outgoing.PostDelivery{Wanted: 1000, Posted: 999, Failures: 1, LastError: refused}, refused},
		"refused for good":    {outgoing.PostDelivery{Wanted: 1000, Posted: 999, Failures: 10, LastError: refused, GivenUp: true}, refused},
		"about to be set":     {outgoing.PostDelivery{Wanted: 2, Posted: 1, WantedAt: now}, "not posted yet, waits since " + now.UTC().Format(time.RFC3339)},
		"set":                 {outgoing.PostDelivery{Wanted: 2, Posted: 2, WantedAt: now}, ""},
		"set after a refusal": {outgoing.PostDelivery{Wanted: 2, Posted: 2, LastError: refused}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fleet()
			w.posts["status:shop:abc:holdfast/plan"] = outgoing.Post{
				Status:       holdfast.CommitStatus{Revision: "abc", Context: holdfast.ContextPlan, State: holdfast.StatusSuccess},
				PostDelivery: tt.delivery,
			}
			var got v1.PullRequestDetail
			body := request(t, "GET", serve(t, newServer(t, w).API())+"/api/v1/pullrequests/get?repo=shop&number=7", viewerToken, "").body
			if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Statuses) != 2 {
				t.Fatalf("pull request = %s, %v", body, err)
			}
			if status := got.Statuses[0]; status.NotSet != tt.want || status.State != holdfast.StatusSuccess {
				t.Errorf("the status is %+v, want that it is not set: %q", status, tt.want)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body string
		obey func(context.Context) string
		want int
		said string
	}{
		"clusters":       {body: `{"verb":"apply","clusters":["a","b"]}`, want: 200, said: `command apply by anna trusted=true force=false [{},["a","b"],null,""]`},
		"pull request":   {body: `{"verb":"approve","pullRequest":{"repo":"shop","number":7}}`, want: 200, said: `[{"repo":"shop","number":7},null,null,""]`},
		"a run":          {body: `{"verb":"apply","run":"run-1"}`, want: 200, said: `[{"repo":"shop","number":7},["prod-eu"],["run-1"],"abc"]`},
		"no such run":    {body: `{"verb":"cancel","run":"run-9"}`, want: 404, said: `run \"run-9\"`},
		"looked at":      {body: `{"verb":"apply","clusters":["prod-eu"],"shown":["run-1"]}`, want: 200, said: `[{},["prod-eu"],["run-1"],""]`},
		"looked at, all": {body: `{"verb":"apply","pullRequest":{"repo":"shop","number":7},"shown":["run-1"]}`, want: 200, said: `[{"repo":"shop","number":7},null,["run-1"],""]`},
		"none was there": {body: `{"verb":"approve","clusters":["prod-eu"],"shown":[]}`, want: 200, said: `[{},["prod-eu"],[],""]`},
		"looked at, run": {body: `{"verb":"apply","run":"run-1","shown":["run-1"]}`, want: 400, said: "shown is only for apply and approve"},
		"looked at, not": {body: `{"verb":"plan","clusters":["prod-eu"],"shown":[]}`, want: 400, said: "shown is only for apply and approve"},
		"run and more":   {body: `{"verb":"cancel","run":"run-1","clusters":["a"]}`, want: 400, said: "give it alone"},
		"nothing":        {body: `{"verb":"apply"}`, want: 400, said: "has no target"},
		"no repo":        {body: `{"verb":"apply","pullRequest":{"number":7}}`, want: 400, said: "has no repo"},
		"unknown verb":   {body: `{"verb":"destroy","clusters":["a"]}`, want: 400, said: `verb \"destroy\"`},
		"no body":        {body: ``, want: 400, said: "body is empty: want JSON"},
		"half a body":    {body: `{"verb":`, want: 400, said: "body is not valid: it ends within a JSON value"},
		"another type":   {body: `{"verb":"apply","clusters":"a"}`, want: 400, said: "body is not valid: clusters must not be of type string"},
		"a list":         {body: `[]`, want: 400, said: "body is not valid: it must not be of type array"},
		"unknown field":  {body: `{"verb":"apply","cluster":"a"}`, want: 400, said: "unknown field"},
		"still going on": {body: `{"verb":"apply","clusters":["a"]}`, obey: func(ctx context.Context) string { <-ctx.Done(); return "" }, want: 202, said: `"status":"received"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fleet()
			w.obey = tc.obey
			url := serve(t, newServer(t, w, func(o *server.Options) { o.Limits.CommandWait = 20 * time.Millisecond }).API())
			got := request(t, "POST", url+"/api/v1/commands", adminToken, tc.body)
			said := got.body + strings.Join(w.noted(), "\n")
			if got.status != tc.want || !strings.Contains(said, tc.said) {
				t.Errorf("command = %d %s, want %d %s", got.status, said, tc.want, tc.said)
			}
		})
	}
}

func TestReconcileWantsOneThing(t *testing.T) {
	t.Parallel()
	w := fleet()
	url := serve(t, newServer(t, w).API()) + "/api/v1/reconcile"
	for body, want := range map[string]int{
		`{"repo":"shop"}`: 202, `{"cluster":"prod-eu"}`: 202, `{"all":true}`: 202,
		`{}`: 400, `{"repo":"shop","cluster":"prod-eu"}`: 400, `{"rep":"shop"}`: 400,
	} {
		if got := request(t, "POST", url, operatorToken, body); got.status != want {
			t.Errorf("reconcile %s = %d %s, want %d", body, got.status, got.body, want)
		}
	}
}

func TestUnlock(t *testing.T) {
	t.Parallel()
	w := fleet()
	url := serve(t, newServer(t, w).API()) + "/api/v1/locks/prod-eu"
	if got := request(t, "DELETE", url, operatorToken, ""); got.status != 404 {
		t.Errorf("nobody's lock = %d %s, want 404", got.status, got.body)
	}
	w.held, w.alive = true, true
	got := request(t, "DELETE", url, operatorToken, "")
	if got.status != http.StatusLocked || !strings.Contains(got.body, "run-1/2") || !strings.Contains(got.body, "hint") ||
		!strings.Contains(got.body, `"reason":"Locked","command":"holdfast cancel run-1"`) {
		t.Errorf("living holder = %d %s, want 423 with the holder, a hint and what helps", got.status, got.body)
	}
	if got := request(t, "DELETE", url+"?force=yes", adminToken, ""); got.status != 400 {
		t.Errorf("force=yes = %d, want 400", got.status)
	}
	if got := request(t, "DELETE", url+"?force=true", adminToken, ""); got.status != 200 {
		t.Errorf("force = %d %s, want 200", got.status, got.body)
	}
	want := []string{"unlock prod-eu by otto force=false", "unlock prod-eu by anna force=true"}
	if diff := cmp.Diff(want, w.noted()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestLogStream(t *testing.T) {
	t.Parallel()
	w := newWorld()
	run := applyRun("run-1")
	run.Status = holdfast.RunQueued
	w.runs["run-1"] = run
	url := serve(t, newServer(t, w).API()) + "/api/v1/runs/run-1/log"

	if got := request(t, "GET", url, viewerToken, ""); got.status != 200 || got.body != "" {
		t.Errorf("log of a queued run = %d %q, want it empty", got.status, got.body)
	}
	w.start(run)
	ref := holdfast.AttemptRef{Run: "run-1", Attempt: 1}
	_, _ = w.AppendLog(t.Context(), ref, 0, []byte("one\n"))
	if got := request(t, "GET", url+"?offset=2", viewerToken, ""); got.body != "e\n" {
		t.Errorf("log from 2 = %q, want its rest", got.body)
	}

	req, _ := http.NewRequestWithContext(t.Context(), "GET", url+"?follow=true", nil)
	req.Header.Set("Authorization", "Bearer "+viewerToken)
	res, err := ownclient.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
			t.Fatalf("read %q, %v, want %q", got, err, want)
		}
	}
	read("one\n") // arrives while the attempt continues
	_, _ = w.AppendLog(t.Context(), ref, 4, []byte("two\n"))
	read("two\n")
	w.end("run-1", holdfast.RunApplied)
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
		t.Errorf("after the end: %q, %v, want nothing", rest, err)
	}
}

// TestOutputsAreOfTheRunThatTheRecordNames: an apply that failed may have changed them.
func TestOutputsAreOfTheRunThatTheRecordNames(t *testing.T) {
	t.Parallel()
	w := fleet()
	w.artefacts["run-2/outputs"] = `[{"name":"endpoint","value":"https://y"}]`
	record := w.clusters["prod-eu"]
	record.Applied.OutputsRun = "run-2"
	w.clusters["prod-eu"] = record
	url := serve(t, newServer(t, w).API()) + "/api/v1/clusters/prod-eu"
	if got := request(t, "GET", url+"/outputs", viewerToken, ""); !strings.Contains(got.body, "https://y") {
		t.Errorf("outputs: %s", got.body)
	}
	if got := request(t, "GET", url, viewerToken, ""); !strings.Contains(got.body, `"outputsRun":"run-2"`) {
		t.Errorf("cluster: %s", got.body)
	}
}

// TestUnwatchedClusters: where the configuration no longer has a repository, its clusters
// say so.
func TestUnwatchedClusters(t *testing.T) {
	t.Parallel()
	w := fleet()
	record := w.clusters["prod-eu"]
	record.Owner = "gone"
	w.clusters["prod-eu"], w.summaries = record, []holdfast.ClusterSummary{{Name: "prod-eu", Owner: "gone"}}
	url := serve(t, newServer(t, w).API()) + "/api/v1/clusters"
	for _, path := range []string{"/prod-eu", "?name=prod-eu"} {
		if got := request(t, "GET", url+path, viewerToken, ""); strings.Count(got.body, `"unwatched":true`) != 1 {
			t.Errorf("%s: %s", path, got.body)
		}
	}
}

// TestRefusalsSayWhatIsMissingOnce: the records name what they do not have, and so does the
// path: people read it once.
func TestRefusalsSayWhatIsMissingOnce(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, fleet()).API()) + "/api/v1/"
	for call, want := range map[string]string{
		"GET clusters/nope":                        `cluster \"nope\": not found`,
		"GET clusters/nope/outputs":                `cluster \"nope\": not found`,
		"GET runs/run-nope":                        `run \"run-nope\": not found`,
		"GET runs/run-nope/plan":                   `plan of run \"run-nope\": not found`,
		"GET runs/run-nope/log":                    `log of run \"run-nope\": not found`,
		"GET runs/run-nope/attempts":               `run \"run-nope\": not found`,
		"GET pullrequests/get?repo=shop&number=99": `pull request shop#99: not found`,
		"GET locks/prod-eu":                        `lock of cluster \"prod-eu\": not found`,
		"DELETE locks/prod-eu":                     `lock of cluster \"prod-eu\": not found`,
		"GET runs?status=going":                    `status \"going\": want one of queued, retrying, running`,
		"GET runs?kind=aply":                       `kind \"aply\": want one of plan, apply, drift`,
		"GET pullrequests?state=opened":            `state \"opened\": want one of open, closed, merged`,
		"GET clusters?phase=actve":                 `phase \"actve\": want one of Pending, Provisioning`,
	} {
		method, path, _ := strings.Cut(call, " ")
		if got := request(t, method, url+path, operatorToken, ""); !strings.Contains(got.body, `"detail":"`+want) {
			t.Errorf("%s: %s, want %s", call, got.body, want)
		}
	}
}

// An answer says what the command has done, whatever somebody else has done since.
func TestSuspendAnswersForItself(t *testing.T) {
	t.Parallel()
	w := fleet() // in which another one resumes at once what is suspended
	url := serve(t, newServer(t, w).API())
	for path, want := range map[string]bool{"suspend": true, "resume": false} {
		got := request(t, "POST", url+"/api/v1/clusters/prod-eu/"+path, adminToken, `{}`)
		var rec v1.Cluster
		if err := json.Unmarshal([]byte(got.body), &rec); err != nil || rec.Name != "prod-eu" || rec.Suspended != want {
			t.Errorf("%s answers %+v, %v", path, rec, err)
		}
	}
}
