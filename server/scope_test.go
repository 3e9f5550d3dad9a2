package server_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/statelock"
)

// routesOf are the routes of a handler, as "METHOD path".
func routesOf(t *testing.T, s *server.Server) []string {
	t.Helper()
	engine, ok := s.API().(*gin.Engine)
	if !ok {
		t.Fatalf("the API is a %T, which does not tell its routes", s.API())
	}
	var routes []string
	for _, route := range engine.Routes() {
		routes = append(routes, route.Method+" "+route.Path)
	}
	return routes
}

const paymentsToken, webToken, globalToken = "token-of-payments", "token-of-web", "token-of-both"

// scoped is a fleet of one cluster, of project payments, and tokens that are bound to
// that project and to another one.
func scoped(t *testing.T, w *world, with ...func(*server.Options)) *server.Server {
	t.Helper()
	doc := holdfast.Cluster{Name: "web-eu", Project: "web"}
	w.prs["shop#8"] = holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: "shop", Number: 8}},
		Clusters: []holdfast.PullRequestCluster{
			{Name: "prod-eu", Document: w.clusters["prod-eu"].Desired.Document}, {Name: "web-eu", Document: doc},
		},
	}
	moved := w.clusters["prod-eu"].Desired.Document
	moved.Project = "web"
	w.prs["shop#9"] = holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: "shop", Number: 9}},
		Clusters:    []holdfast.PullRequestCluster{{Name: "prod-eu", Document: moved}},
	}
	w.prs["shop#6"] = holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: "shop", Number: 6}},
		Clusters:    []holdfast.PullRequestCluster{{Name: "web-eu", Document: doc, Sample: true}},
	}
	w.summaries = []holdfast.ClusterSummary{{Name: "prod-eu", Project: "payments", Drift: holdfast.DriftNone}}
	w.suspensions = []holdfast.Suspension{{Project: "payments", Reason: "quarter's end"}, {Reason: "all of us"}}
	return newServer(t, w, func(o *server.Options) {
		o.Audit, o.API.Rescuer = w, rescuer{}
		o.API.Tokens = append(o.API.Tokens,
			server.Token{Name: "pay", Role: access.Admin, SHA256: server.HashToken(paymentsToken), Projects: []string{"payments"}},
			server.Token{Name: "web", Role: access.Admin, SHA256: server.HashToken(webToken), Projects: []string{"web"}},
			server.Token{Name: "both", Role: access.Admin, SHA256: server.HashToken(globalToken), Projects: []string{"web", "payments"}})
		for _, change := range with {
			change(o)
		}
	})
}

// rescuer has a state of every cluster that could not be saved, and a lock of its backend.
type rescuer struct{ server.Rescuer }

func (rescuer) Unsaved(_ context.Context, cluster string) (holdfast.UnsavedState, error) {
	return holdfast.UnsavedState{Cluster: cluster}, nil
}

func (rescuer) OpenUnsaved(_ context.Context, cluster, _ string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("{}")), nil
}

// A pull request of the project payments has the run that found the lock.
func (rescuer) BackendLock(ctx context.Context, cluster string, sees statelock.SeesRun) (statelock.BackendLock, error) {
	run := holdfast.Run{ID: "run-of-" + cluster, Cluster: cluster}
	if run.Document.Project = "payments"; sees == nil {
		return statelock.BackendLock{Run: run.ID}, nil
	}
	if seen, err := sees(ctx, run); err != nil || !seen {
		return statelock.BackendLock{}, cmp.Or(err, holdfast.ErrNotFound)
	}
	return statelock.BackendLock{Run: run.ID}, nil
}

func (r rescuer) UnlockBackend(ctx context.Context, ask statelock.BackendUnlock) (holdfast.Run, error) {
	lock, err := r.BackendLock(ctx, ask.Cluster, ask.Sees)
	return holdfast.Run{ID: lock.Run}, err
}

// What a migration would do, and that it is queued unless it is a dry run.
func (rescuer) Migrate(_ context.Context, ask holdfast.StateMigration) (holdfast.StateMigration, error) {
	ask.From, ask.To = "clusters/"+ask.Cluster, "s3:bucket=b,key=k"
	if !ask.DryRun {
		ask.Run = "run-9"
	}
	return ask, nil
}

// A token that is bound to projects reads of these alone, and commands these alone.
func TestTokenBoundToProjects(t *testing.T) {
	t.Parallel()
	w := fleet()
	w.held, w.upgrades = true, []rollout.Upgrade{{}}
	url := serve(t, scoped(t, w).API())
	const ok, gone, forbidden = 200, 404, 403
	for _, tc := range []struct {
		method, path, body  string
		payments, web, both int
	}{
		{"GET", "/api/v1/version", "", ok, ok, ok},
		{"GET", "/api/v1/clusters/prod-eu", "", ok, gone, ok},
		{"GET", "/api/v1/clusters/prod-eu/outputs", "", ok, gone, ok},
		{"GET", "/api/v1/clusters/prod-eu/history", "", ok, gone, ok},
		{"GET", "/api/v1/clusters/prod-eu/family", "", ok, gone, ok},
		{"GET", "/api/v1/clusters/prod-eu/drift", "", ok, gone, ok},
		{"GET", "/api/v1/locks/prod-eu", "", ok, gone, ok},
		{"GET", "/api/v1/states/prod-eu", "", ok, gone, ok},
		{"GET", "/api/v1/states/prod-eu/file", "", ok, gone, ok},
		{"GET", "/api/v1/states/prod-eu/lock", "", ok, gone, ok},
		{"GET", "/api/v1/states/proposed/lock", "", ok, gone, ok},
		{"POST", "/api/v1/states/prod-eu/unlock", `{"lock":"left-1"}`, 202, gone, 202},
		{"POST", "/api/v1/states/proposed/unlock", `{"lock":"left-1"}`, 202, gone, 202},
		{"POST", "/api/v1/states/prod-eu/migrate", `{"dryRun":true}`, ok, gone, ok},
		{"POST", "/api/v1/states/proposed/push", "", gone, gone, gone},
		{"GET", "/api/v1/runs/run-1", "", ok, gone, ok},
		{"GET", "/api/v1/runs/run-1/plan", "", ok, gone, ok},
		{"GET", "/api/v1/runs/run-1/attempts", "", ok, gone, ok},
		{"GET", "/api/v1/runs/run-1/log", "", ok, gone, ok},
		{"GET", "/runs/run-1", "", ok, gone, ok},
		{"GET", "/api/v1/pullrequests/get?repo=shop&number=7", "", ok, gone, ok},
		{"GET", "/pullrequests/7/shop", "", ok, gone, ok},
		{"GET", "/api/v1/pullrequests/get?repo=shop&number=8", "", gone, gone, ok},
		{"GET", "/api/v1/queue", "", ok, ok, ok},
		{"GET", "/api/v1/audit", "", forbidden, forbidden, forbidden},
		{"GET", "/api/v1/agents", "", forbidden, forbidden, forbidden},
		{"GET", "/api/v1/templates", "", ok, ok, ok},
		{"GET", "/api/v1/templates/kubernetes", "", gone, gone, gone},
		{"POST", "/api/v1/commands", `{"verb":"plan","clusters":["prod-eu"]}`, ok, gone, ok},
		{"POST", "/api/v1/commands", `{"verb":"plan","clusters":["prod-eu","nobody"]}`, gone, gone, gone},
		{"POST", "/api/v1/commands", `{"verb":"apply","run":"run-1"}`, ok, gone, ok},
		{"POST", "/api/v1/commands", `{"verb":"approve","pullRequest":{"repo":"shop","number":7}}`, ok, gone, ok},
		{"POST", "/api/v1/commands", `{"verb":"approve","pullRequest":{"repo":"shop","number":8}}`, forbidden, forbidden, ok},
		{"POST", "/api/v1/commands", `{"verb":"plan","pullRequest":{"repo":"shop","number":8},"clusters":["web-eu"]}`, gone, ok, ok},
		{"POST", "/api/v1/commands", `{"verb":"approve","pullRequest":{"repo":"shop","number":9}}`, forbidden, forbidden, ok},
		{"POST", "/api/v1/commands", `{"verb":"plan","pullRequest":{"repo":"shop","number":404}}`, gone, gone, gone},
		{"POST", "/api/v1/commands", `{"verb":"plan","pullRequest":{"repo":"shop","number":6}}`, gone, ok, ok},
		{"POST", "/api/v1/commands", `{"verb":"plan","all":true,"pullRequest":{"repo":"shop","number":6}}`, gone, forbidden, forbidden},
		{"POST", "/api/v1/reconcile", `{"cluster":"prod-eu"}`, 202, gone, 202},
		{"POST", "/api/v1/reconcile", `{"repo":"shop"}`, forbidden, forbidden, forbidden},
		{"POST", "/api/v1/upgrades", `{"clusters":["prod-eu"]}`, ok, gone, ok},
		{"POST", "/api/v1/upgrades", `{"all":true}`, forbidden, forbidden, forbidden},
		{"POST", "/api/v1/clusters/prod-eu/suspend", ``, ok, gone, ok},
		{"POST", "/api/v1/clusters/prod-eu/resume", ``, ok, gone, ok},
		{"POST", "/api/v1/clusters/prod-eu/drift/check", ``, 202, gone, 202},
		{"POST", "/api/v1/clusters/prod-eu/transfer", `{"repo":"shop"}`, ok, gone, ok},
		{"POST", "/api/v1/suspend", `{"all":true}`, forbidden, forbidden, forbidden},
		{"POST", "/api/v1/resume", `{"project":"payments"}`, ok, gone, ok},
		{"DELETE", "/api/v1/locks/prod-eu?force=true", "", ok, gone, ok},
	} {
		for token, want := range map[string]int{paymentsToken: tc.payments, webToken: tc.web, globalToken: tc.both} {
			if got := request(t, tc.method, url+tc.path, token, tc.body); got.status != want {
				t.Errorf("%s %s %s with %s = %d %s, want %d", tc.method, tc.path, tc.body, token, got.status, got.body, want)
			}
		}
	}
}

// renamed adds clusters of project web that continue others under a new name: "new" is
// proposed by a pull request, "merged" waits on the branch, "twice" continues that one, and
// "long-ago" has taken over, all of them from prod-eu of project payments, and "carried"
// from one that was never applied. "moved" is the same cluster in another project, merged
// and not applied; "own" continues one of web.
func renamed(w *world) {
	from := func(name, former string) holdfast.Cluster {
		return holdfast.Cluster{Name: name, Project: "web", RenamedFrom: former}
	}
	propose := func(number int, state holdfast.PullRequestState, docs ...holdfast.Cluster) {
		ref := holdfast.PullRequestRef{Repo: "shop", Number: number}
		record := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: ref, State: state}}
		for _, doc := range docs {
			record.Clusters = append(record.Clusters, holdfast.PullRequestCluster{Name: doc.Name, Document: doc})
			run := applyRun(fmt.Sprintf("run-of-%d", number))
			run.Cluster, run.PullRequest, run.Document = doc.Name, ref, doc
			w.start(run)
		}
		w.prs[ref.String()] = record
	}
	desire := func(doc, applied holdfast.Cluster) {
		record := holdfast.ClusterRecord{Name: doc.Name, Desired: holdfast.Desired{Document: doc}}
		if applied.Name != "" {
			record.Applied = holdfast.Applied{Run: "run-1", Document: applied}
		}
		w.clusters[doc.Name] = record
	}
	payments := w.clusters["prod-eu"].Applied.Document
	desire(from("merged", "prod-eu"), holdfast.Cluster{})
	desire(from("long-ago", "prod-eu"), from("long-ago", "prod-eu"))
	desire(from("moved", ""), payments)
	desire(from("old", ""), from("old", ""))
	desire(from("carried", "tried"), holdfast.Cluster{})
	w.clusters["tried"] = holdfast.ClusterRecord{
		Name: "tried", Desired: holdfast.Desired{Document: holdfast.Cluster{Name: "tried", Project: "payments"}, Removed: true},
		Deletion: &holdfast.Deletion{Reason: holdfast.ReasonRenamed, To: "carried"},
	}
	propose(10, holdfast.PullRequestOpen, from("new", "prod-eu"))
	propose(11, holdfast.PullRequestOpen, from("twice", "merged"))
	propose(12, holdfast.PullRequestMerged, from("merged", "prod-eu"))
	propose(13, holdfast.PullRequestOpen, from("long-ago", "prod-eu"))
	propose(14, holdfast.PullRequestOpen, from("own", "old"))
	propose(15, holdfast.PullRequestOpen, from("moved", ""))
}

// A cluster that continues one of another project under a new name is that one: its state
// and its conditions are taken over.
func TestRenameOutOfAnotherProject(t *testing.T) {
	t.Parallel()
	w := fleet()
	renamed(w)
	url := serve(t, scoped(t, w).API())
	const ok, gone, forbidden = 200, 404, 403
	for number, want := range map[int]struct{ see, act int }{
		10: {gone, forbidden}, 11: {gone, forbidden}, 12: {gone, forbidden}, 13: {ok, ok}, 14: {ok, ok}, 15: {gone, forbidden},
	} {
		for _, path := range []string{fmt.Sprintf("pullrequests/get?repo=shop&number=%d", number), fmt.Sprintf("runs/run-of-%d", number)} {
			for token, status := range map[string]int{webToken: want.see, globalToken: ok} {
				if got := request(t, "GET", url+"/api/v1/"+path, token, ""); got.status != status {
					t.Errorf("GET %s with %s = %d %s, want %d", path, token, got.status, got.body, status)
				}
			}
		}
		run := fmt.Sprintf(`"run-of-%d"`, number)
		for _, path := range []string{"runs", "queue"} {
			if list := request(t, "GET", url+"/api/v1/"+path, webToken, "").body; strings.Contains(list, run) != (want.see == ok) {
				t.Errorf("%s of project web are %s, want that of #%d there: %t", path, list, number, want.see == ok)
			}
		}
		list := request(t, "GET", url+"/api/v1/pullrequests", webToken, "").body
		if strings.Contains(list, fmt.Sprintf(`"number":%d,`, number)) != (want.see == ok) {
			t.Errorf("pull requests of project web are %s, want #%d there: %t", list, number, want.see == ok)
		}
		target := fmt.Sprintf(`"pullRequest":{"repo":"shop","number":%d}`, number)
		for _, verb := range []string{"plan", "apply", "approve", "cancel", "unlock"} {
			body := fmt.Sprintf(`{"verb":%q,%s}`, verb, target)
			for token, status := range map[string]int{webToken: want.act, globalToken: ok} {
				if got := request(t, "POST", url+"/api/v1/commands", token, body); got.status != status {
					t.Errorf("%s with %s = %d %s, want %d", body, token, got.status, got.body, status)
				}
			}
		}
	}
	for name, status := range map[string]int{"merged": forbidden, "carried": forbidden, "moved": forbidden, "long-ago": ok} {
		body := fmt.Sprintf(`{"verb":"approve","clusters":[%q]}`, name)
		if got := request(t, "POST", url+"/api/v1/commands", webToken, body); got.status != status {
			t.Errorf("%s = %d %s, want %d", body, got.status, got.body, status)
		}
		if got := request(t, "POST", url+"/api/v1/clusters/"+name+"/transfer", webToken, `{"repo":"shop"}`); got.status != status {
			t.Errorf("transfer of %s = %d %s, want %d", name, got.status, got.body, status)
		}
	}
}

// moving adds clusters whose document is of project web by now, and whose state is of
// payments: "moved" was applied there, and an apply of "begun" failed partway through.
func moving(w *world) {
	desired := holdfast.Cluster{Project: "web", Variables: map[string]any{"of_web": 1}}
	applied := holdfast.Applied{Run: "run-1", Document: w.clusters["prod-eu"].Applied.Document, Endpoint: "https://of-payments"}
	for number, of := range map[int]holdfast.Applied{20: applied, 21: {OutputsRun: "run-2", Endpoint: "https://of-payments"}} {
		name := map[int]string{20: "moved", 21: "begun"}[number]
		desired.Name = name
		w.clusters[name] = holdfast.ClusterRecord{
			Name: name, Owner: "shop", Desired: holdfast.Desired{Document: desired}, Applied: of, WaitingDetail: "of-payments",
			Drift: holdfast.DriftState{Status: holdfast.DriftFound, Causes: []string{"of-payments"}},
		}
		w.summaries = append(w.summaries, holdfast.ClusterSummary{Name: name, Project: "web", Drift: holdfast.DriftFound})
		w.drift[name] = holdfast.DriftReport{Cluster: name}
		w.resources = append(w.resources, holdfast.Resource{Cluster: name, Address: "of-payments"})
		ref := holdfast.PullRequestRef{Repo: "shop", Number: number}
		for project, doc := range map[string]holdfast.Cluster{"web": desired, "payments": {Name: name, Project: "payments"}} {
			run := applyRun(project + "-of-" + name)
			run.Cluster, run.Document, run.Kind = name, doc, holdfast.RunPlan
			w.start(run)
		}
		w.prs[ref.String()] = holdfast.PullRequestRecord{
			PullRequest: holdfast.PullRequest{PullRequestRef: ref, State: holdfast.PullRequestMerged},
			Clusters:    []holdfast.PullRequestCluster{{Name: name, Document: desired}},
		}
	}
	failed := applyRun("run-2")
	failed.Cluster, failed.Document.Project, failed.Begun = "begun", "payments", true
	w.start(failed)
}

// A cluster that moves to another project shows what its state has to whoever has both
// projects, and to each of them no more than what is its own.
func TestStateOfAClusterThatMoves(t *testing.T) {
	t.Parallel()
	w := fleet()
	s := scoped(t, w)
	moving(w)
	w.held = true
	url := serve(t, s.API())
	const ok, gone, forbidden = 200, 404, 403
	for _, tc := range []struct {
		path            string
		web             int
		payments, begun int // with a token of payments, of each
	}{
		{"clusters/NAME", ok, ok, gone},
		{"clusters/NAME/history", ok, ok, gone},
		{"clusters/NAME/outputs", forbidden, forbidden, gone},
		{"clusters/NAME/drift", forbidden, forbidden, gone},
		{"locks/NAME", forbidden, forbidden, gone},
		{"states/NAME", forbidden, forbidden, gone},
		{"states/NAME/file", forbidden, forbidden, gone},
		{"states/NAME/lock", forbidden, forbidden, gone},
		{"runs/web-of-NAME", gone, gone, gone},
		{"runs/web-of-NAME/log", gone, gone, gone},
		{"runs/payments-of-NAME", gone, ok, ok},
	} {
		for name, payments := range map[string]int{"moved": tc.payments, "begun": tc.begun} {
			path := strings.ReplaceAll(tc.path, "NAME", name)
			for token, want := range map[string]int{webToken: tc.web, paymentsToken: payments, globalToken: ok} {
				got := request(t, "GET", url+"/api/v1/"+path, token, "")
				if got.status != want {
					t.Errorf("GET %s with %s = %d %s, want %d", path, token, got.status, got.body, want)
				}
				if token == webToken && (strings.Contains(got.body, "of-payments") || strings.Contains(got.body, "node_count")) {
					t.Errorf("GET %s of project web has what is of payments: %s", path, got.body)
				}
				if token == paymentsToken && strings.Contains(got.body, "of_web") {
					t.Errorf("GET %s of project payments has what is of web: %s", path, got.body)
				}
			}
		}
	}
	for _, path := range []string{"resources", "drift", "runs", "pullrequests?state=merged"} {
		for token, shown := range map[string]bool{webToken: false, globalToken: true} {
			list := request(t, "GET", url+"/api/v1/"+path, token, "").body
			for _, part := range []string{"of-payments", "web-of-moved", "web-of-begun", "of_web"} {
				if strings.Contains(list, part) && !shown {
					t.Errorf("%s with %s have %s: %s", path, token, part, list)
				}
			}
			if listed := strings.Contains(list, "moved") && strings.Contains(list, "begun"); listed != (shown || path == "drift") {
				t.Errorf("%s with %s are %s, want the clusters there: %t", path, token, list, shown)
			}
		}
	}
	if got := request(t, "POST", url+"/api/v1/commands", webToken, `{"verb":"plan","clusters":["begun"]}`); got.status != forbidden {
		t.Errorf("a plan of what payments has begun is %d %s", got.status, got.body)
	}
}

// A token that is bound to projects is told which plan its cluster waits with, though the
// pull request that the plan is of touches other projects, too.
func TestPlannedRunOfATokensProjects(t *testing.T) {
	t.Parallel()
	w := fleet()
	url := serve(t, scoped(t, w).API())
	if got := request(t, "GET", url+"/api/v1/pullrequests/get?repo=shop&number=8", paymentsToken, ""); got.status != 404 {
		t.Fatalf("the pull request is seen: %d %s", got.status, got.body)
	}
	got := request(t, "GET", url+"/api/v1/clusters/prod-eu", paymentsToken, "")
	if got.status != 200 || !strings.Contains(got.body, `"plannedRun":"run-of-prod-eu"`) {
		t.Errorf("GET /clusters/prod-eu = %d %s", got.status, got.body)
	}
}

// What a token that is bound to projects commands are the clusters that were looked at: a
// pull request may affect those of other projects by the time it is carried out.
func TestCommandOfATokensProjectsNamesItsClusters(t *testing.T) {
	t.Parallel()
	w := fleet()
	url := serve(t, scoped(t, w).API())
	pr := w.prs["shop#7"]
	pr.Clusters = append(pr.Clusters, holdfast.PullRequestCluster{Name: "sample", Document: pr.Clusters[0].Document, Sample: true})
	w.prs["shop#7"] = pr
	const one, both, samples, unnamed = `["prod-eu"]`, `["prod-eu","sample"]`, `["web-eu"]`, "null"
	for _, tc := range []struct {
		token, verb string
		number      int
		want        string
	}{
		{paymentsToken, "approve", 7, one},
		{paymentsToken, "apply", 7, one},
		{paymentsToken, "unlock", 7, one},
		{paymentsToken, "plan", 7, both},
		{paymentsToken, "cancel", 7, both},
		{webToken, "apply", 6, samples},
		{webToken, "plan", 6, samples},
		{adminToken, "approve", 7, unnamed},
		{operatorToken, "plan", 7, unnamed},
	} {
		body := fmt.Sprintf(`{"verb":%q,"pullRequest":{"repo":"shop","number":%d}}`, tc.verb, tc.number)
		got := request(t, "POST", url+"/api/v1/commands", tc.token, body)
		calls := w.noted()
		if last := calls[len(calls)-1]; got.status != 200 || !strings.Contains(last, fmt.Sprintf(`"number":%d},%s,`, tc.number, tc.want)) {
			t.Errorf("%s with %s is %d: %s, want clusters %s", body, tc.token, got.status, last, tc.want)
		}
	}
}

// Lists leave out what is of other projects.
func TestListsOfATokenBoundToProjects(t *testing.T) {
	t.Parallel()
	w := fleet()
	url := serve(t, scoped(t, w).API()) + "/api/v1/"
	for _, path := range []string{"clusters", "drift?all=true", "suspensions?many=true"} {
		mine, others := request(t, "GET", url+path, paymentsToken, "").body, request(t, "GET", url+path, webToken, "").body
		if !strings.Contains(mine, "prod-eu") && !strings.Contains(mine, "quarter's end") {
			t.Errorf("%s of its own project = %s", path, mine)
		}
		if strings.Contains(others, "prod-eu") || strings.Contains(others, "quarter's end") || !strings.Contains(others, `"items":[`) {
			t.Errorf("%s of another project = %s", path, others)
		}
	}
	if got := request(t, "GET", url+"suspensions", webToken, "").body; !strings.Contains(got, "all of us") {
		t.Errorf("suspensions of another project = %s, want that of all clusters", got)
	}
	for _, path := range []string{"runs", "resources"} {
		request(t, "GET", url+path, webToken, "")
		if calls := w.noted(); !strings.Contains(calls[len(calls)-1], `"Projects":["web"]`) {
			t.Errorf("%s asks the store for %s, want those of its project", path, calls[len(calls)-1])
		}
	}
}

// A change that is refused to who sees the cluster is told with the reason, and is on record.
// To who does not see it, it is as if it had never been.
func TestChangeOutsideOfATokensProjectsIsOnRecord(t *testing.T) {
	t.Parallel()
	w := fleet()
	w.clusters["moved"] = holdfast.ClusterRecord{
		Name: "moved", Desired: holdfast.Desired{Document: holdfast.Cluster{Name: "moved", Project: "web"}},
		Applied: holdfast.Applied{Run: "run-1", Document: holdfast.Cluster{Name: "moved", Project: "payments"}},
	}
	url := serve(t, scoped(t, w).API())
	got := request(t, "POST", url+"/api/v1/clusters/moved/suspend", webToken, "")
	const words = `token \"web\" is for project web: the state of cluster \"moved\" is of another`
	if got.status != 403 || !strings.Contains(got.body, words) {
		t.Errorf("answer = %d %s, want 403 and %s", got.status, got.body, words)
	}
	last := w.audit[len(w.audit)-1]
	if last.Action != "api.refuse" || last.Actor != "web" || last.Object != "moved" || !strings.Contains(last.Detail, "POST /api/v1/clusters/moved/suspend") ||
		!strings.HasSuffix(last.Origin, ", token web") {
		t.Errorf("on record is %+v", last)
	}
	there := strings.ReplaceAll(request(t, "POST", url+"/api/v1/clusters/prod-eu/suspend", webToken, "").body, "prod-eu", "NAME")
	never := strings.ReplaceAll(request(t, "POST", url+"/api/v1/clusters/nowhere/suspend", webToken, "").body, "nowhere", "NAME")
	if there != never {
		t.Errorf("a cluster of another project is %s, one that does not exist %s", there, never)
	}
	if calls := w.noted(); len(calls) > 0 {
		t.Errorf("it was carried out: %v", calls)
	}
}

// Events tell of nothing in other projects, and a family has no members there.
func TestWhatIsAroundATokensProjects(t *testing.T) {
	t.Parallel()
	w := fleet()
	w.clusters["web-eu"] = holdfast.ClusterRecord{Name: "web-eu", Desired: holdfast.Desired{Document: holdfast.Cluster{Name: "web-eu", Project: "web"}}}
	w.families["prod-eu"] = holdfast.Family{Dependents: []holdfast.Relation{{Name: "web-eu"}}}
	w.change(holdfast.ChangeCluster, "web-eu")
	w.change(holdfast.ChangePullRequest, "shop#8")
	w.change(holdfast.ChangeRun, "run-1")
	w.change(holdfast.ChangePullRequest, "shop#7")
	url := serve(t, scoped(t, w).API())
	if got := request(t, "GET", url+"/api/v1/clusters/prod-eu/family", paymentsToken, "").body; strings.Contains(got, "web-eu") {
		t.Errorf("family = %s, want nobody of another project", got)
	}
	if got := request(t, "GET", url+"/api/v1/clusters/prod-eu/family", globalToken, "").body; !strings.Contains(got, "web-eu") {
		t.Errorf("family for who has both projects = %s", got)
	}
	next, _ := followAs(t, paymentsToken, url+"/api/v1/events?after=0", "")
	for _, want := range []string{"0 ready {}", `3 Run {"kind":"Run","name":"run-1"}`, `4 PullRequest {"kind":"PullRequest","name":"shop#7"}`} {
		if got := next(); got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}
}

// A new route is refused to tokens that are bound to projects until somebody has thought
// of how they are held to them.
func TestEveryRouteKnowsProjects(t *testing.T) {
	t.Parallel()
	w := fleet()
	s := scoped(t, w)
	url := serve(t, s.API())
	open := map[string]bool{"GET /healthz": true, "GET /readyz": true, "GET /metrics": true}
	path := strings.NewReplacer(":name", "prod-eu", ":cluster", "prod-eu", ":run", "run-1", ":number", "7", "*repo", "shop")
	within := map[string]bool{
		"GET /api/v1/whoami": true, "GET /api/v1/reasons": true, "GET /api/v1/openapi.json": true, // of no project
		"GET /api/v1/version": true, "GET /api/v1/clusters": true, "GET /api/v1/drift": true, "GET /api/v1/resources": true,
		"GET /api/v1/suspensions": true, "GET /api/v1/runs": true, "GET /api/v1/queue": true, "GET /api/v1/pullrequests": true, "GET /api/v1/events": true,
		"GET /api/v1/environments": true, "GET /api/v1/overview": true,
		// Pages ask the API in the token's name: see TestConsoleOfOneProject.
		"GET /": true, "GET /pullrequests": true, "GET /queue": true, "GET /drift": true, "GET /templates": true, "GET /audit": true, "GET /settings": true, "GET /deliveries": true,
		"GET /api/v1/templates": true,                    // with the users that the token sees: see TestTemplatesOfOneProject
		"POST /theme":           true, "POST /act": true, // lead to /, or to the login
	}
	for _, route := range routesOf(t, s) {
		method, at, _ := strings.Cut(route, " ")
		if open[route] || within[route] {
			continue
		}
		got := request(t, method, url+path.Replace(at), webToken, "{}")
		if got.status != 403 && got.status != 404 && got.status != 400 {
			t.Errorf("%s with a token of another project = %d %s", route, got.status, got.body)
		}
	}
}
