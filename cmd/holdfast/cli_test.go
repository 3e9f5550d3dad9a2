package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/internal/testenv/apicheck"
	"github.com/holdfast-dev/holdfast/outgoing"
)

var update = flag.Bool("update", false, "write golden files again")

var testNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	applyID = "run-01jnv5c3hw1234567890"
	planID  = "run-01jnv5c3hw0987654321"
)

// fakeAPI answers with what a test gives it, and notes what it is asked. Requests and
// answers are held to the description of the API: others would prove nothing.
type fakeAPI struct {
	t       *testing.T // the test that it is served for
	mu      sync.Mutex
	answers map[string]any // "GET /clusters" → value, refusal, answering, or an http.HandlerFunc for what is not JSON
	asked   []string
}

// refusal is a problem, of which a test gives what is particular to it.
type refusal struct {
	status int
	answer v1.Problem
}

// answering returns a value or a refusal; nil if there is only a proxy, as its server
// restarts.
type answering func(r *http.Request) any

// serve returns the API behind real HTTP, for the caller to close.
func (f *fakeAPI) serve(t *testing.T) *httptest.Server {
	t.Helper()
	f.t = t
	return httptest.NewServer(f)
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	_, _ = body.ReadFrom(r.Body)
	if err := apicheck.CheckRequest(r.Method, r.URL.RequestURI(), body.Bytes()); err != nil {
		f.t.Errorf("%s %s is not as it is described: %v\n%s", r.Method, r.URL, err, body.Bytes())
	}
	f.mu.Lock()
	f.asked = append(f.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+body.String()))
	value, ok := f.answers[r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api/v1")]
	f.mu.Unlock()
	if !ok {
		value = refusal{http.StatusNotFound, v1.Problem{Detail: r.URL.Path + ": not found"}}
	}
	switch made := value.(type) {
	case http.HandlerFunc:
		made(w, r)
	case answering:
		if value = made(r); value == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		f.answer(w, r, value)
	default:
		f.answer(w, r, value)
	}
}

// answer answers as a server does.
func (f *fakeAPI) answer(w http.ResponseWriter, r *http.Request, value any) {
	status, media := apicheck.Success(r.Method, r.URL.Path), "application/json"
	if refused, ok := value.(refusal); ok {
		problem := v1.ProblemOf(refused.status, refused.answer.Detail, refused.answer.Hint)
		problem.Reason, problem.Command, problem.Instance = refused.answer.Reason, refused.answer.Command, r.URL.Path
		value, status, media = problem, refused.status, v1.ProblemType
	}
	data, err := json.Marshal(value)
	if err != nil {
		f.t.Error(err)
	}
	w.Header().Set("Content-Type", media)
	if err := apicheck.Check(r.Method, r.URL.RequestURI(), apicheck.Answer{Status: status, Header: w.Header(), Body: data}); err != nil {
		f.t.Errorf("the answer to %s %s is not as it is described: %v\n%s", r.Method, r.URL, err, data)
	}
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

func (f *fakeAPI) set(path string, answer any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[path] = answer
}

type result struct {
	code     int
	out, err string
}

// holdfastCLI runs a command line with its own environment.
func holdfastCLI(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	return holdfastAt(t, func() time.Time { return testNow }, env, args...)
}

func holdfastAt(t *testing.T, now func() time.Time, env map[string]string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	a := app{&cli.App{
		Printer: table.Printer{Out: &out, Err: &errOut, Now: now},
		In:      strings.NewReader(""), Getenv: func(key string) string { return env[key] }, Poll: time.Millisecond,
	}}
	code := a.run(t.Context(), args)
	return result{code, out.String(), errOut.String()}
}

// against runs a command line against a fake API.
func against(t *testing.T, f *fakeAPI, args ...string) result {
	t.Helper()
	return againstAt(t, func() time.Time { return testNow }, f, args...)
}

func againstAt(t *testing.T, now func() time.Time, f *fakeAPI, args ...string) result {
	t.Helper()
	srv := f.serve(t)
	defer srv.Close()
	got := holdfastAt(t, now, map[string]string{"HOLDFAST_SERVER": srv.URL, "HOLDFAST_TOKEN": "t"}, args...)
	got.err = strings.ReplaceAll(got.err, srv.URL, "SERVER")
	return got
}

func list[T any](items ...T) v1.List[T] { return v1.List[T]{Items: append([]T{}, items...)} }

func fleet() *fakeAPI {
	cluster := v1.Cluster{
		Name: "prod-eu", Owner: "shop", Phase: holdfast.PhaseActive, UpdatedAt: testNow.Add(-3 * time.Hour),
		Desired: v1.Desired{Revision: "2222222222", SourceDigest: "sha256:2", Document: v1.Document{
			Name: "prod-eu", Project: "payments", Environment: "production", Provider: "aws", Region: "eu-west-1",
			Template: &v1.TemplateRef{Name: "kubernetes", Version: "1.10"}, DependsOn: []string{"network-eu"},
			Path: "clusters/prod-eu.yaml", Line: 3,
		}},
		Applied: v1.Applied{
			Run: applyID, Revision: "1111111111", SourceDigest: "sha256:1", EngineName: "tofu", EngineVersion: "1.10.1",
			At: testNow.Add(-26 * time.Hour), Endpoint: "https://10.0.0.1:6443", NodeCount: 3, Kubeconfig: "kubeconfig",
		},
		ClusterWaiting: v1.ClusterWaiting{Waiting: "Unreviewed", WaitingDetail: "nobody has reviewed\x1b[2J a plan of it"},
	}
	ref := v1.PullRequestRef{Repo: "shop", Number: 7}
	apply := v1.Run{
		ID: applyID, Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunErrored, Reason: "EngineFailed",
		Detail:    "the engine failed",
		CreatedAt: testNow.Add(-10 * time.Minute), StartedAt: testNow.Add(-9 * time.Minute), FinishedAt: testNow.Add(-8 * time.Minute),
		RunSpec:     v1.RunSpec{Repo: "shop", Revision: "2222222222"},
		RunProgress: v1.RunProgress{Attempt: 2},
		RunOutcome: v1.RunOutcome{
			EngineName: "tofu", EngineVersion: "1.10.1",
			Counts: v1.Counts{Create: 1, Replace: 2},
			Failure: &v1.Failure{
				Step: "apply", Cause: "Quota", Summary: "quota exceeded", Detail: "limit of 5\nreached", Hint: "ask for more",
				Unrecorded:  []string{"aws_instance.a"},
				Diagnostics: []v1.Diagnostic{{Severity: "error", Summary: "quota exceeded", File: "main.tf", Line: 4}},
			},
		},
	}
	plan := v1.Run{
		ID: planID, Cluster: "prod-eu", Kind: holdfast.RunPlan, Status: holdfast.RunPlanned,
		CreatedAt:   testNow.Add(-50 * time.Hour),
		RunSpec:     v1.RunSpec{PullRequest: ref},
		RunProgress: v1.RunProgress{Attempt: 1},
		RunOutcome:  v1.RunOutcome{Counts: v1.Counts{Update: 3, Outputs: 1}},
	}
	pr := v1.PullRequest{
		Repo: ref.Repo, Number: ref.Number, Title: "Grow prod\u202eeu\n", Author: "ada", State: holdfast.PullRequestOpen, UpdatedAt: testNow.Add(-time.Hour),
		PullRequestCommits: v1.PullRequestCommits{Branch: "grow", BaseBranch: "main", Head: "3333333333"},
		Clusters:           []v1.PullRequestCluster{{Name: "prod-eu"}, {Name: "dev"}},
		Faults:             []v1.Fault{{File: "clusters/dev.yaml", Line: 4, Column: 7, Message: `unknown key "regoin"`, Hint: "region?"}},
	}
	f := &fakeAPI{answers: map[string]any{
		"GET /clusters/prod-eu": cluster,
		"GET /clusters/prod-eu/outputs": list(
			v1.Output{Name: "endpoint", Value: json.RawMessage(`"https://x"`)}, v1.Output{Name: "kubeconfig", Sensitive: true}),
		"GET /runs":            list(apply, plan),
		"GET /runs/" + applyID: apply,
		"GET /runs/" + applyID + "/plan": v1.Plan{Changes: []v1.ResourceChange{
			{Action: holdfast.ActionReplace, Address: "aws_eks_cluster.this", ReplacePaths: []string{"name"}},
			{Action: holdfast.ActionCreate, Address: "aws_instance.a"},
		}},
		"GET /runs/" + applyID + "/attempts": list(
			v1.Attempt{Attempt: 1, Status: holdfast.RunInterrupted, Reason: "AgentKilled", Agent: "agent-1", ClaimedAt: testNow.Add(-9 * time.Minute)},
			v1.Attempt{Attempt: 2, Status: holdfast.RunErrored, Agent: "agent-2", ClaimedAt: testNow.Add(-8 * time.Minute)}),
		"GET /pullrequests": list(pr),
		"GET /pullrequests/get": v1.PullRequestDetail{
			PullRequest: pr,
			Comments:    []v1.Comment{{Author: "holdfast", Body: "<!-- holdfast:pull-request shop#7 -->\n## Plan\n+1\n\n<details open><summary><b>prod</b>: 1 to create</summary>\n\n```diff\n</details>\n```\n\n</details>\n\n<sub>terraform</sub>", CreatedAt: testNow.Add(-time.Hour)}},
			Statuses: []v1.CommitStatus{{
				Revision: "3333333333", Context: holdfast.ContextPlan, State: holdfast.StatusFailure, Description: "1 document has faults",
			}},
			Refused: []v1.RefusedPost{{Kind: outgoing.PostStatus, What: "holdfast/apply of 4444444", Reason: "GitHub answered 403: Resource not accessible by integration"}},
		},
		"GET /agents": list(
			v1.Agent{
				ID: "edge-1", Living: true, Kinds: []holdfast.RunKind{holdfast.RunPlan, holdfast.RunDrift}, Projects: []string{"payments"},
				Isolation: "slots", Host: "edge-host", Version: "1.2.0", SeenAt: testNow.Add(-3 * time.Second), Runs: []string{applyID},
			},
			v1.Agent{ID: "lab-1", Kinds: []holdfast.RunKind{holdfast.RunApply}, Isolation: "unavailable", Host: "lab-host", SeenAt: testNow.Add(-2 * time.Hour)},
			v1.Agent{
				ID: "lab-2", Living: true, Kinds: []holdfast.RunKind{holdfast.RunPlan}, Isolation: "none",
				Refused: "isolation none is weaker than the server demands (slots)", SeenAt: testNow.Add(-time.Second),
			},
			v1.Agent{ID: "old-1", Living: true, Kinds: []holdfast.RunKind{}, SeenAt: testNow.Add(-time.Second)}),
		"GET /replicas": list(
			v1.Replica{
				Identity: "hf-0-abcdef", Name: "hf-0 (process 1)", Address: "hf-0:8081", Version: "1.3.0", Protocol: 2, Schema: 3,
				StartedAt: testNow.Add(-time.Hour), HeartbeatAt: testNow.Add(-2 * time.Second), Living: true,
				Leads: []string{"acme/clusters", "templates"}, Schedules: true,
			},
			v1.Replica{
				Identity: "hf-1-ghijkl", Name: "hf-1 (process 1)", Address: "hf-1:8081", Version: "1.2.0", Protocol: 2, Schema: 2,
				StartedAt: testNow.Add(-48 * time.Hour), HeartbeatAt: testNow.Add(-10 * time.Minute),
			}),
		"GET /queue": list(
			v1.QueuedRun{
				Position: 1, Run: applyID, Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunRetrying, Project: "payments",
				Reason: "Network", Detail: "it is retried at 12:00:30 UTC", CreatedAt: testNow.Add(-time.Minute),
			},
			v1.QueuedRun{
				Position: 2, Run: planID, Cluster: "shop-eu", Kind: holdfast.RunPlan, Status: holdfast.RunQueued, Project: "shop",
				PullRequest: v1.PullRequestRef{Repo: "shop", Number: 7}, Ahead: v1.Ahead{Priority: 1}, CreatedAt: testNow.Add(-2 * time.Second),
			},
			v1.QueuedRun{
				Position: 9, Run: planID, Cluster: "shop-us", Kind: holdfast.RunPlan, Status: holdfast.RunQueued, Project: "shop",
				PullRequest: v1.PullRequestRef{Repo: "shop", Number: 7}, Ahead: v1.Ahead{Priority: 1, Own: 2, Others: 4, Overdue: 1},
				CreatedAt: testNow.Add(-2 * time.Second), Reason: holdfast.ReasonProjectCapped,
			}),
		"GET /audit": list(v1.AuditEntry{At: testNow.Add(-time.Hour), Actor: "otto", Action: "cluster.resume"}),
	}}
	addFleet(f, &cluster)
	return f
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"get-clusters":         "get clusters --all",
		"get-drift":            "get drift --all",
		"get-resources":        "get resources",
		"get-suspensions":      "get suspensions",
		"get-agents":           "get agents",
		"get-replicas":         "get replicas",
		"get-queue":            "get queue",
		"get-queue-yaml":       "get queue -o yaml --limit 4",
		"describe-deleted":     "describe cluster old-eu",
		"describe-history":     "describe cluster prod-eu --history",
		"drift-check-help":     "drift check --help",
		"suspend-help":         "suspend --help",
		"get-runs":             "get runs",
		"get-pullrequests":     "get pullrequests",
		"get-runs-json":        "get runs -o json",
		"get-clusters-yaml":    "get clusters -o yaml",
		"describe-cluster":     "describe cluster prod-eu",
		"describe-run":         "describe run " + applyID,
		"describe-pullrequest": "describe pullrequest shop#7",
		"unlock-help":          "unlock --help",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := against(t, fleet(), strings.Fields(line)...)
			if got.code != 0 || got.err != "" {
				t.Fatalf("holdfast %s = %d, %s", line, got.code, got.err)
			}
			golden := filepath.Join("testdata", name+".golden.txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got.out), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.out); diff != "" {
				t.Errorf("holdfast %s (-want +got):\n%s", line, diff)
			}
			if strings.ContainsAny(got.out, "\x1b\u202e") {
				t.Error("output has control characters that a terminal obeys")
			}
		})
	}
}

// planWaits answers with a plan that prod-eu waits with, made so long ago: of a pull
// request, if one is given.
func planWaits(answers map[string]any, pr int, ago time.Duration, counts v1.Counts) map[string]any {
	run := v1.Run{
		ID: planID, Cluster: "prod-eu", Kind: holdfast.RunPlan, Status: holdfast.RunPlanned, FinishedAt: testNow.Add(-ago),
		RunOutcome: v1.RunOutcome{Counts: counts},
	}
	if pr != 0 {
		run.PullRequest = v1.PullRequestRef{Repo: "shop", Number: pr}
	}
	answers["GET /clusters/prod-eu"] = v1.Cluster{Name: "prod-eu", ClusterWaiting: v1.ClusterWaiting{PlannedRun: planID}}
	answers["GET /runs/"+planID] = run
	return answers
}

func TestRequests(t *testing.T) {
	t.Parallel()
	lock := v1.Lock{Cluster: "prod-eu", Holder: v1.LockHolder{Owner: applyID + "/2", Since: testNow.Add(-time.Hour)}, Run: v1.Run{ID: applyID, Kind: holdfast.RunApply, RunSpec: v1.RunSpec{Revision: "2222222222"}}}
	living := lock
	living.Alive = true
	done := v1.Command{Verb: holdfast.VerbApply, Status: holdfast.CommandDone, Reply: "`prod-eu`: apply queued"}
	refused := v1.Command{Verb: holdfast.VerbApply, Status: holdfast.CommandRefused, Reply: "it is suspended"}
	for name, tc := range map[string]struct {
		line    string
		answers map[string]any
		code    int
		asked   string // the last request
		out     string
		err     string
	}{
		"get with filters": {
			line: "get clusters dev prod-eu --project p --waiting * -l team=x", asked: "GET /api/v1/clusters?label=team%3Dx&limit=1000&name=dev&name=prod-eu&project=p&waiting=%2A", out: "prod-eu",
		},
		"get runs with filters": {
			line:  "get runs --pull-request shop#7 --kind apply,destroy --status errored --cluster c --limit 3",
			asked: "GET /api/v1/runs?cluster=c&kind=apply&kind=destroy&limit=3&number=7&repo=shop&status=errored",
		},
		"get releases of locks":  {line: "get runs --kind unlock", asked: "GET /api/v1/runs?kind=unlock&limit=50"},
		"get some of the queue":  {line: "get queue --limit 3", out: "prod-eu", err: "only the first 3 are shown, there may be more: see --limit\n"},
		"get open pull requests": {line: "get prs", asked: "GET /api/v1/pullrequests?limit=50&state=open"},
		"get all pull requests":  {line: "get prs --all --repo shop", asked: "GET /api/v1/pullrequests?limit=50&repo=shop"},
		"nothing there": {
			line: "get clusters", answers: map[string]any{"GET /clusters": list[v1.ClusterSummary]()}, out: "no clusters\n",
		},
		"nothing there in JSON": {
			line: "get clusters -o json", answers: map[string]any{"GET /clusters": list[v1.ClusterSummary]()}, out: "[]\n",
		},
		"not there": {line: "describe cluster none", code: 1, err: "Error: /api/v1/clusters/none: not found"},
		"apply clusters that wait with no plan": {
			line: "apply prod-eu dev", answers: map[string]any{"POST /commands": done},
			asked: `POST /api/v1/commands {"verb":"apply","clusters":["prod-eu","dev"],"shown":[]}`, out: "prod-eu: apply queued\n",
		},
		"apply a plan that waits": {
			line: "apply prod-eu", answers: planWaits(map[string]any{"POST /commands": done}, 0, time.Minute, v1.Counts{Create: 1, Update: 2}),
			asked: `POST /api/v1/commands {"verb":"apply","clusters":["prod-eu"],"shown":["` + planID + `"]}`,
			out:   "prod-eu: the plan of " + planID + " (+1 ~2), made 60s ago\nprod-eu: apply queued\n",
		},
		"apply a merge that waits": {
			line: "apply prod-eu", answers: planWaits(map[string]any{"POST /commands": done}, 8, time.Hour, v1.Counts{Create: 1}),
			asked: `POST /api/v1/commands {"verb":"apply","clusters":["prod-eu"],"shown":["` + planID + `"]}`,
			out:   "prod-eu: the plan of " + planID + " of shop#8 (+1), made 60m ago\nprod-eu: apply queued\n",
		},
		"apply a plan that waits, in JSON": {
			line: "apply prod-eu -o json", answers: planWaits(map[string]any{"POST /commands": done}, 0, 0, v1.Counts{}),
			asked: `POST /api/v1/commands {"verb":"apply","clusters":["prod-eu"],"shown":["` + planID + `"]}`, out: "{\n",
		},
		"apply a pull request": {
			line: "apply shop#7 -c prod-eu", answers: map[string]any{"POST /commands": done},
			asked: `POST /api/v1/commands {"verb":"apply","pullRequest":{"repo":"shop","number":7},"clusters":["prod-eu"],"shown":[]}`,
		},
		"apply a merged pull request": {
			line: "apply shop#7", answers: planWaits(map[string]any{
				"POST /commands":        done,
				"GET /pullrequests/get": merged(v1.PullRequestRef{Repo: "shop", Number: 7}, v1.PullRequestCluster{Name: "prod-eu"}, v1.PullRequestCluster{Name: "dev", Sample: true}),
			}, 7, time.Hour, v1.Counts{Create: 1}),
			asked: `POST /api/v1/commands {"verb":"apply","pullRequest":{"repo":"shop","number":7},"shown":["` + planID + `"]}`,
			out:   "prod-eu: the plan of " + planID + " of shop#7 (+1), made 60m ago\n",
		},
		"apply a pull request of a cluster that has drifted since": {
			line: "apply shop#7 -c prod-eu", answers: map[string]any{
				"POST /commands": done, "GET /clusters/prod-eu": v1.Cluster{Name: "prod-eu", ClusterWaiting: v1.ClusterWaiting{PlannedRun: planID}},
				"GET /runs/" + planID: v1.Run{ID: planID, Cluster: "prod-eu", Kind: holdfast.RunDrift, Status: holdfast.RunPlanned, FinishedAt: testNow},
			},
			asked: `POST /api/v1/commands {"verb":"apply","pullRequest":{"repo":"shop","number":7},"clusters":["prod-eu"],"shown":[]}`,
		},
		"approve a plan that waits": {
			line: "approve prod-eu", answers: planWaits(map[string]any{"POST /commands": done}, 8, time.Hour, v1.Counts{Create: 1}),
			asked: `POST /api/v1/commands {"verb":"approve","clusters":["prod-eu"],"shown":["` + planID + `"]}`,
			out:   "prod-eu: the plan of " + planID + " of shop#8 (+1), made 60m ago\nprod-eu: apply queued\n",
		},
		"apply what is up to date": {
			line: "apply prod-eu --wait", answers: map[string]any{"GET /runs": list[v1.Run](), "POST /commands": v1.Command{
				Verb: holdfast.VerbApply, Clusters: []string{"prod-eu"}, UpToDate: []string{"prod-eu"}, Status: holdfast.CommandDone,
				Reply: "`prod-eu`: it is up to date: nothing to apply",
			}},
			out: "prod-eu: it is up to date: nothing to apply\n",
		},
		"an unknown phase": {line: "get clusters --phase actve", code: 2, err: `phase "actve": want Pending, Provisioning`},
		"the version":      {line: "--version", out: "holdfast "},
		"approve a run": {
			line: "approve " + planID, answers: map[string]any{"POST /commands": done},
			asked: `POST /api/v1/commands {"verb":"approve","run":"` + planID + `"}`,
		},
		"refused": {line: "apply prod-eu", answers: map[string]any{"POST /commands": refused}, code: 3, out: "apply refused: it is suspended\n"},
		"refused for one": {
			line: "apply prod-eu dev", code: 3, out: "prod-eu: apply queued\ndev: it is suspended\n",
			answers: map[string]any{"POST /commands": v1.Command{
				Verb: holdfast.VerbApply, Clusters: []string{"prod-eu", "dev"}, Refused: []string{"dev"}, Status: holdfast.CommandDone,
				Reply: "`prod-eu`: apply queued\n`dev`: it is suspended",
			}},
		},
		"forbidden": {
			line: "cancel prod-eu", code: 1, err: "Error: token \"vera\" has role viewer\nHint:  ask an administrator\n",
			answers: map[string]any{"POST /commands": refusal{403, v1.Problem{Detail: `token "vera" has role viewer`, Hint: "ask an administrator"}}},
		},
		"suspend": {
			line: "suspend prod-eu", answers: map[string]any{"POST /clusters/prod-eu/suspend": v1.Cluster{Name: "prod-eu", Suspended: true}},
			asked: "POST /api/v1/clusters/prod-eu/suspend {}", out: "cluster prod-eu is suspended\n",
		},
		"suspend, as JSON": {
			line: "suspend prod-eu -o json", answers: map[string]any{"POST /clusters/prod-eu/suspend": v1.Cluster{Name: "prod-eu", Suspended: true}},
			out: "\"suspended\": true",
		},
		"suspend a project, as YAML": {
			line: "suspend --project p -o yaml", answers: map[string]any{"POST /suspend": v1.Suspension{Project: "p", By: "anna"}},
			out: "project: p\nby: anna\n",
		},
		"transfer, as YAML": {
			line: "transfer prod-eu --to b -o yaml", answers: map[string]any{"POST /clusters/prod-eu/transfer": v1.Cluster{Name: "prod-eu", Owner: "b"}},
			out: "owner: b\n",
		},
		"resume": {
			line: "resume prod-eu", answers: map[string]any{"POST /clusters/prod-eu/resume": v1.Cluster{Name: "prod-eu"}},
			out: "cluster prod-eu is still suspended: all clusters are suspended by anna since 2026-03-01T11:40:00Z (20m ago): incident 4711\n",
		},
		"resume the last": {
			line: "resume prod-eu", out: "cluster prod-eu is active\n", answers: map[string]any{
				"POST /clusters/prod-eu/resume": v1.Cluster{Name: "prod-eu"},
				"GET /suspensions":              list(v1.Suspension{Project: "another"}, v1.Suspension{Cluster: "dev"}),
			},
		},
		"reconcile": {
			line: "reconcile --repo shop", answers: map[string]any{"POST /reconcile": struct{}{}},
			asked: `POST /api/v1/reconcile {"repo":"shop"}`, out: "asked to reconcile shop\n",
		},
		"reconcile, as JSON": {
			line: "reconcile --all -o json", answers: map[string]any{"POST /reconcile": struct{}{}},
			asked: `POST /api/v1/reconcile {"all":true}`, out: "{}\n",
		},
		"unlock what is free":            {line: "unlock prod-eu", out: "nobody holds the lock of prod-eu\n"},
		"unlock what is not there":       {line: "unlock none", code: 1, err: "clusters/none: not found", answers: map[string]any{"GET /runs": list[v1.Run]()}},
		"unlock what a pull request has": {line: "unlock fresh", out: "nobody holds the lock of fresh\n"},
		"unlock a backend of a pull request": {
			line: "unlock fresh", answers: map[string]any{"GET /states/fresh/lock": v1.BackendLock{ID: "left-1", Who: "holdfast@vm", Run: applyID, Dead: planID}},
			out: "release it: holdfast unlock fresh --lock left-1\n",
		},
		"unlock by its ID": {
			line: "unlock fresh --lock left-1", answers: map[string]any{
				"POST /states/fresh/unlock": v1.Run{ID: planID, RunSpec: v1.RunSpec{PullRequest: v1.PullRequestRef{Repo: "shop", Number: 7}}},
			},
			asked: `POST /api/v1/states/fresh/unlock {"lock":"left-1"}`,
			out:   planID + " releases the lock with the code of shop#7 and the credentials for plans; follow it with: holdfast logs " + planID + " --follow\n",
		},
		"unlock by another ID": {
			line: "unlock fresh --lock left-2", answers: map[string]any{
				"POST /states/fresh/unlock": refusal{409, v1.Problem{Detail: "run x found lock left-1", Command: "holdfast unlock fresh --lock left-1"}},
			},
			code: 3, err: "Error: run x found lock left-1\nHint:  try `holdfast unlock fresh --lock left-1`\n",
		},
		"unlock by force, and may not": {
			line: "unlock fresh --lock left-1 --force", answers: map[string]any{
				"POST /states/fresh/unlock": refusal{403, v1.Problem{Detail: `token "otto" has role operator; force requires admin`}},
			},
			asked: `POST /api/v1/states/fresh/unlock {"lock":"left-1","force":true}`, code: 1, err: "force requires admin",
		},
		"describe a release": {
			line: "describe run " + applyID, answers: map[string]any{"GET /runs/" + applyID: v1.Run{
				ID: applyID, Cluster: "fresh", Kind: holdfast.RunUnlock, Status: holdfast.RunApplied,
				RunSpec: v1.RunSpec{State: &v1.StateJob{Action: holdfast.StateUnlock, LockID: "left-1"}},
			}},
			out: "Releases lock:  left-1\n",
		},
		"describe a release that failed": {
			line: "describe run " + applyID, answers: map[string]any{"GET /runs/" + applyID: v1.Run{
				ID: applyID, Cluster: "fresh", Kind: holdfast.RunUnlock, Status: holdfast.RunErrored,
				RunSpec:    v1.RunSpec{State: &v1.StateJob{Action: holdfast.StateUnlock, LockID: "left-1"}},
				RunOutcome: v1.RunOutcome{Failure: &v1.Failure{Step: "unlock", Summary: "no such lock", Cause: holdfast.CauseStateBackend}},
			}},
			out: "What you can do:\n    holdfast unlock fresh --lock left-1  retries, once the cause is fixed\n",
		},
		"unlock by an ID that is empty": {line: "unlock prod-eu --lock= --force", code: 2, err: "--lock is empty"},
		"unlock the dead": {
			line: "unlock prod-eu", answers: map[string]any{"GET /locks/prod-eu": lock, "DELETE /locks/prod-eu": lock},
			asked: "DELETE /api/v1/locks/prod-eu?force=false", out: "released the lock of prod-eu\n",
		},
		"unlock the living": {
			line: "unlock prod-eu", answers: map[string]any{"GET /locks/prod-eu": living},
			code: 3, asked: "GET /api/v1/locks/prod-eu", err: "Alive:    yes\nError: the lock of prod-eu is held by a run that is alive\nHint:  holdfast cancel " + applyID,
		},
		"unlock the living by force": {
			line: "unlock prod-eu --force", answers: map[string]any{"GET /locks/prod-eu": living, "DELETE /locks/prod-eu": living},
			asked: "DELETE /api/v1/locks/prod-eu?force=true", out: "released the lock of prod-eu\n",
		},
		"not the API": {
			line: "get runs", code: 1, err: "answered 502 Bad Gateway, which is not a Holdfast response\nHint:  is this the address",
			answers: map[string]any{"GET /runs": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadGateway)
				fmt.Fprint(w, "<html>")
			})},
		},
		"a redirect": {
			line: "get runs", code: 1, err: "answered 302 Found",
			answers: map[string]any{"GET /runs": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
			})},
		},
		"no such command":        {line: "frob", code: 2, err: `unknown command "frob"`},
		"no such flag":           {line: "get runs --frob", code: 2, err: "unknown flag: --frob\nHint:  see holdfast get runs --help"},
		"no such phase":          {line: "get clusters --phase actve", code: 2, err: "Hint:  did you mean Active?"},
		"no such status":         {line: "get runs --status errord", code: 2, err: "Hint:  did you mean errored?"},
		"no such kind":           {line: "get runs --kind aply", code: 2, err: "Hint:  did you mean apply?"},
		"no such state":          {line: "get pullrequests --state opne", code: 2, err: "Hint:  did you mean open?"},
		"no such format":         {line: "get runs -o xml", code: 2, err: `--output "xml": want table, wide, json or yaml`},
		"nothing to get":         {line: "get", code: 2, err: "clusters, runs, queue, pullrequests, drift, templates, resources, suspensions, agents, runners, environments, replicas or tokens"},
		"no argument":            {line: "logs", code: 2, err: "holdfast logs takes a run's ID, got 0 arguments"},
		"no target":              {line: "apply", code: 2, err: "holdfast apply takes clusters, a run's ID"},
		"a bad target":           {line: "apply Prod_EU", code: 2, err: `"Prod_EU" is neither`},
		"a bad pull request":     {line: "apply shop#x", code: 2, err: "want repository#number"},
		"mixed targets":          {line: "apply prod-eu shop#7", code: 2, err: "give one run, or one pull request, or clusters"},
		"-c with a cluster":      {line: "apply prod-eu -c dev", code: 2, err: "--cluster picks clusters of a pull request"},
		"reconcile two things":   {line: "reconcile prod-eu --all", code: 2, err: "takes one of"},
		"wait where there is no": {line: "cancel prod-eu --wait", code: 2, err: "unknown flag: --wait"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleet()
			for path, answer := range tc.answers {
				f.set(path, answer)
			}
			got := against(t, f, strings.Fields(tc.line)...)
			if got.code != tc.code || !strings.Contains(got.err, tc.err) || !strings.Contains(got.out, tc.out) || tc.code == 0 && got.err != tc.err {
				t.Errorf("holdfast %s = %d\nout %s\nerr %s\nwant %d %q %q", tc.line, got.code, got.out, got.err, tc.code, tc.out, tc.err)
			}
			if tc.asked != "" && (len(f.asked) == 0 || f.asked[len(f.asked)-1] != tc.asked) {
				t.Errorf("holdfast %s asked %q, want at last %q", tc.line, f.asked, tc.asked)
			}
		})
	}
}

// TestWait follows an apply through a cut connection and two attempts.
func TestWait(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status holdfast.RunStatus
		code   int
	}{
		"applied":          {holdfast.RunApplied, 0},
		"held":             {holdfast.RunPlanned, 3},
		"failed":           {holdfast.RunErrored, 3},
		"nothing to apply": {holdfast.RunNoChanges, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleet()
			run := v1.Run{ID: applyID, Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunQueued, CreatedAt: testNow}
			f.set("POST /commands", v1.Command{
				Verb: "apply", Clusters: []string{"prod-eu"}, Status: holdfast.CommandDone, CreatedAt: testNow,
			})
			f.set("GET /runs", list(run))
			looks, logs := 0, 0
			f.set("GET /runs/"+applyID, answering(func(*http.Request) any {
				f.mu.Lock()
				defer f.mu.Unlock()
				looks++
				switch {
				case looks == 2:
					return nil // a restart
				case looks > 4:
					run.Status, run.Attempt = tc.status, 2
				case looks > 2:
					run.Status, run.Attempt = holdfast.RunRunning, 1
				}
				return run
			}))
			f.set("GET /runs/"+applyID+"/log", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				f.mu.Lock()
				defer f.mu.Unlock()
				logs++
				q := r.URL.Query()
				switch {
				case q.Get("attempt") == "1" && q.Get("offset") == "0":
					fmt.Fprint(w, "first ")
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				case q.Get("attempt") == "1" && q.Get("offset") == "6":
					fmt.Fprint(w, "half\n")
				case q.Get("attempt") == "2" && q.Get("offset") == "0":
					fmt.Fprint(w, "second\n")
				default:
					t.Errorf("asked for %s", r.URL)
				}
			}))
			got := against(t, f, "apply", "prod-eu", "--wait")
			if !strings.Contains(got.err, "503 Service Unavailable, which is not a Holdfast response; retrying for about a minute\n") {
				t.Errorf("apply --wait says nothing of the restart: %q", got.err)
			}
			if got.code != tc.code || !strings.HasSuffix(got.out, "\nfirst half\nsecond\n") || !strings.Contains(got.err, string(tc.status)) {
				t.Errorf("apply --wait = %d\nout %q\nerr %q\nwant %d and the log without a gap", got.code, got.out, got.err, tc.code)
			}
		})
	}
}

// TestWaitAnswersPrograms: what is printed in a format is that alone, and the log is shown
// to people.
func TestWaitAnswersPrograms(t *testing.T) {
	t.Parallel()
	f := fleet()
	f.set("POST /commands", v1.Command{Verb: "apply", Clusters: []string{"prod-eu"}, Status: holdfast.CommandDone, CreatedAt: testNow})
	run := v1.Run{
		ID: applyID, Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunApplied, CreatedAt: testNow,
		RunProgress: v1.RunProgress{Attempt: 1},
	}
	f.set("GET /runs", list(run))
	f.set("GET /runs/"+applyID, run)
	f.set("GET /runs/"+applyID+"/log", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "creating\x1b[2J\n") }))
	got := against(t, f, "apply", "prod-eu", "--wait", "-o", "json")
	var command v1.Command
	if err := json.Unmarshal([]byte(got.out), &command); err != nil || command.Verb != holdfast.VerbApply {
		t.Errorf("apply --wait -o json prints %q, want the command alone: %v", got.out, err)
	}
	if got.code != 0 || !strings.Contains(got.err, "creating") || strings.Contains(got.err, "\x1b") {
		t.Errorf("apply --wait -o json = %d, %q, want the log, which a terminal does not obey", got.code, got.err)
	}
}

// TestApplyWaitsForThePlan: there is nothing to apply before the plan that is queued, of
// whatever the command names. A merge leaves the samples of its pull request as they are.
func TestApplyWaitsForThePlan(t *testing.T) {
	t.Parallel()
	ref := v1.PullRequestRef{Repo: "shop", Number: 7}
	for target, command := range map[string]v1.Command{
		"prod-eu": {Clusters: []string{"prod-eu"}},
		"shop#7":  {PullRequest: ref},
		planID:    {Clusters: []string{"prod-eu"}},
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			f, looks, planned := fleet(), 0, false
			queued := v1.Run{ID: planID, Cluster: "prod-eu", Kind: holdfast.RunPlan, Status: holdfast.RunQueued, CreatedAt: testNow}
			applied := v1.Run{ID: applyID, Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunApplied, CreatedAt: testNow}
			f.set("GET /pullrequests/get", merged(ref, v1.PullRequestCluster{Name: "prod-eu"}, v1.PullRequestCluster{Name: "dev", Sample: true}))
			f.set("GET /runs", answering(func(r *http.Request) any {
				items := list(applied)
				if cluster := r.URL.Query().Get("cluster"); cluster != "prod-eu" {
					t.Errorf("it waits for runs of %s", cluster)
				}
				if slices.Contains(r.URL.Query()["kind"], string(holdfast.RunPlan)) {
					if items = list[v1.Run](); looks < 3 {
						items = list(queued)
					}
					looks++
				}
				return items
			}))
			f.set("GET /runs/"+planID, queued)
			f.set("GET /runs/"+applyID, applied)
			f.set("POST /commands", answering(func(*http.Request) any {
				planned = looks > 3
				command.Verb, command.Status, command.CreatedAt = holdfast.VerbApply, holdfast.CommandDone, testNow.Add(-time.Hour)
				command.Reply = "`prod-eu`: apply queued"
				return command
			}))
			got := against(t, f, "apply", target, "--wait")
			if got.code != 0 || !planned || !strings.Contains(got.err, "prod-eu: waiting for its plan "+planID) {
				t.Errorf("apply --wait = %+v, asked after %d looks, want it to wait for the plan", got, looks)
			}
		})
	}
}

// TestApplyEndsWhereAPlanWaitsForDays: a first plan that everything else goes before is
// waited for only for a while. The server says how to have it made now.
func TestApplyEndsWhereAPlanWaitsForDays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*v1.Run)
		looks  int32 // at the plan, of which each takes six minutes; after the fifth it has ended
	}{
		"queued":      {func(*v1.Run) {}, 2},
		"tried again": {func(r *v1.Run) { r.Status = holdfast.RunRetrying }, 2},
		"made now":    {func(r *v1.Run) { r.Status = holdfast.RunRunning }, 6},
		"asked for":   {func(r *v1.Run) { r.Background = false }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleet()
			var looks atomic.Int32
			first := v1.Run{ID: planID, Cluster: "prod-eu", Kind: holdfast.RunPlan, Status: holdfast.RunQueued, CreatedAt: testNow.Add(-time.Hour)}
			first.Background = true
			tt.change(&first)
			f.set("GET /runs", answering(func(*http.Request) any {
				if looks.Add(1) > 5 {
					return list[v1.Run]()
				}
				return list(first)
			}))
			f.set("POST /commands", v1.Command{
				Verb: holdfast.VerbApply, Clusters: []string{"prod-eu"}, Refused: []string{"prod-eu"}, Status: holdfast.CommandRefused,
				Reply: "`prod-eu`: its first plan is queued behind everything else: `holdfast replan prod-eu` has it made now",
			})
			now := func() time.Time { return testNow.Add(time.Duration(looks.Load()) * 6 * time.Minute) }
			got := againstAt(t, now, f, "apply", "prod-eu", "--wait")
			if got.code != cli.ExitRun || !strings.Contains(got.out, "holdfast replan prod-eu") {
				t.Errorf("apply --wait = %+v, want it to end with what to do", got)
			}
			if looks.Load() != tt.looks || !strings.Contains(got.err, "waiting for its plan") {
				t.Errorf("%d looks at the plan, want %d; it says %q", looks.Load(), tt.looks, got.err)
			}
		})
	}
}

// merged is a pull request that was merged and changes clusters.
func merged(ref v1.PullRequestRef, clusters ...v1.PullRequestCluster) v1.PullRequestDetail {
	return v1.PullRequestDetail{PullRequest: v1.PullRequest{
		Repo: ref.Repo, Number: ref.Number, State: holdfast.PullRequestMerged, Clusters: clusters,
	}}
}

// TestApplyWaitsForTheRecord: a command that follows sees what was applied.
func TestApplyWaitsForTheRecord(t *testing.T) {
	t.Parallel()
	f, looks := fleet(), 0
	applied := v1.Run{ID: applyID, Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunApplied, CreatedAt: testNow}
	f.set("GET /runs", list(applied))
	f.set("GET /runs/"+applyID, applied)
	f.set("GET /clusters/prod-eu", answering(func(*http.Request) any {
		rec := v1.Cluster{Name: "prod-eu", Applied: v1.Applied{Run: planID}}
		if looks++; looks > 2 {
			rec.Applied.Run = applyID
		}
		return rec
	}))
	f.set("POST /commands", v1.Command{
		Verb: holdfast.VerbApply, Clusters: []string{"prod-eu"}, Status: holdfast.CommandDone, CreatedAt: testNow.Add(-time.Hour),
	})
	if got := against(t, f, "apply", "prod-eu", "--wait"); got.code != 0 || looks != 3 {
		t.Errorf("apply --wait = %+v after %d looks at the record, want 3", got, looks)
	}
}

// TestWaitSkipsWhatWasRefused: no run of a cluster comes that was refused.
func TestWaitSkipsWhatWasRefused(t *testing.T) {
	t.Parallel()
	f := fleet()
	f.set("POST /commands", v1.Command{
		Verb: "apply", Clusters: []string{"dev", "prod-eu"}, Refused: []string{"dev"}, Status: holdfast.CommandDone, CreatedAt: testNow.Add(-time.Hour),
		Reply: "`prod-eu`: apply queued\n`dev`: it is suspended",
	})
	applied := v1.Run{ID: applyID, Cluster: "prod-eu", Kind: holdfast.RunApply, Status: holdfast.RunApplied, CreatedAt: testNow}
	f.set("GET /runs", list(applied))
	f.set("GET /runs/"+applyID, applied)
	got := against(t, f, "apply", "dev", "prod-eu", "--wait")
	if got.code != cli.ExitRun || !strings.Contains(got.out, "dev: it is suspended") || !strings.Contains(got.err, applyID+" apply of prod-eu: applied") {
		t.Errorf("apply --wait = %+v, want the one run, and 3 as the other was refused", got)
	}
}

// TestReplanWaitsForItsPlan: not for an apply, nor for a plan of something else. After its
// merge a pull request is planned as the tracked branch has it.
func TestReplanWaitsForItsPlan(t *testing.T) {
	t.Parallel()
	ref := v1.PullRequestRef{Repo: "shop", Number: 7}
	for target, command := range map[string]v1.Command{
		"prod-eu": {Clusters: []string{"prod-eu"}},
		"shop#7":  {PullRequest: ref},
		applyID:   {Clusters: []string{"prod-eu"}, PullRequest: ref}, // a run of the pull request
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			f := fleet()
			command.Verb, command.Status, command.CreatedAt = holdfast.VerbPlan, holdfast.CommandDone, testNow
			f.set("POST /commands", command)
			f.set("GET /pullrequests/get", merged(ref, v1.PullRequestCluster{Name: "prod-eu"}))
			other := v1.Run{ID: applyID, Cluster: "prod-eu", Kind: holdfast.RunPlan, CreatedAt: testNow, RunSpec: v1.RunSpec{PullRequest: ref}}
			planned := v1.Run{ID: planID, Cluster: "prod-eu", Kind: holdfast.RunPlan, Status: holdfast.RunPlanned, CreatedAt: testNow}
			f.set("GET /runs", list(other, planned))
			f.set("GET /runs/"+planID, planned)
			got := against(t, f, "replan", target, "--wait")
			if got.code != 0 || !strings.Contains(got.err, planID+" plan of prod-eu: planned") || !strings.Contains(strings.Join(f.asked, "\n"), "kind=plan&") {
				t.Errorf("replan --wait = %+v, asked %q", got, f.asked)
			}
		})
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	f := fleet()
	f.set("GET /runs/"+applyID+"/log", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.RawQuery) }))
	if got := against(t, f, "logs", applyID); got.code != 0 || got.out != "attempt=0&follow=false&offset=0" {
		t.Errorf("logs = %+v", got)
	}
	got := against(t, f, "logs", applyID, "--follow")
	if got.code != 3 || got.out != "attempt=2&follow=true&offset=0" || !strings.Contains(got.err, "Cause:  quota exceeded\nHint:   ask for more") {
		t.Errorf("logs --follow = %+v, want the last attempt, and 3 for its failure", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	srv := f.serve(t)
	defer srv.Close()
	var errOut bytes.Buffer
	a := app{&cli.App{Printer: table.Printer{Out: &errOut, Err: &errOut, Now: time.Now}, Getenv: func(key string) string {
		return map[string]string{"HOLDFAST_SERVER": srv.URL, "HOLDFAST_TOKEN": "t"}[key]
	}}}
	if code := a.run(ctx, []string{"logs", applyID, "--follow"}); code != 1 {
		t.Errorf("interrupted = %d %s, want 1", code, errOut.String())
	}
}

func TestErrorsSayEachThingOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`run "x": run "x": not found`:                                `run "x": not found`,
		`log of run "x": run "x": not found`:                         `run "x": not found`,
		`reconcile x: read cluster "x": cluster "x": not found`:      `reconcile x: cluster "x": not found`,
		`read holdfast.yaml: open holdfast.yaml: no such file or: x`: `read holdfast.yaml: open holdfast.yaml: no such file or: x`,
		`x`: `x`,
	} {
		if got := saidOnce(text); got != want {
			t.Errorf("saidOnce(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestWatch prints a list again when it has changed, and not otherwise, until it is
// interrupted. A server that cannot be reached for a moment does not end it.
func TestWatch(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var looks atomic.Int64 // each a second after the one before: ages grow
	f := &fakeAPI{answers: map[string]any{"GET /runs": answering(func(*http.Request) any {
		look := looks.Add(1)
		status := holdfast.RunRunning
		switch {
		case look == 2:
			return nil
		case look > 4:
			status = holdfast.RunApplied
		}
		if look == 8 {
			cancel()
		}
		return list(v1.Run{ID: applyID, Cluster: "prod-eu", Kind: holdfast.RunApply, Status: status, CreatedAt: testNow})
	})}}
	srv := f.serve(t)
	defer srv.Close()
	var out bytes.Buffer
	a := app{&cli.App{
		Printer: table.Printer{Out: &out, Err: &out, Now: func() time.Time {
			return testNow.Add(time.Duration(looks.Load()) * time.Second)
		}}, Poll: time.Millisecond,
		Getenv: func(key string) string {
			return map[string]string{"HOLDFAST_SERVER": srv.URL, "HOLDFAST_TOKEN": "t"}[key]
		},
	}}
	if code := a.run(ctx, []string{"get", "runs", "--watch"}); code != 0 {
		t.Errorf("code %d, %s", code, out.String())
	}
	if got := out.String(); strings.Count(got, "running") != 1 || strings.Count(got, "applied") != 1 {
		t.Errorf("get runs --watch printed\n%s\nwant each state once", got)
	} else if strings.Count(got, "; retrying for about a minute\n") != 1 {
		t.Errorf("get runs --watch printed\n%s\nwant to read once that the server is out of reach", got)
	}
}

// TestAnswersHaveFormats: -o is there for whatever a server answers, except for logs and
// states, which are printed as they are, agents, which print nothing, and logins and tokens
// that end.
func TestAnswersHaveFormats(t *testing.T) {
	t.Parallel()
	var walk func(*cobra.Command)
	asking := 0
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			walk(below)
		}
		others := []string{"holdfast logs", "holdfast state get", "holdfast agent", "holdfast agent launch", "holdfast login", "holdfast logout", "holdfast delete token"}
		if c.Flag("server") == nil || slices.Contains(others, c.CommandPath()) {
			return
		}
		if asking++; c.Flag("output") == nil {
			t.Errorf("%s has no -o", c.CommandPath())
		}
	}
	walk(newRootCommand(&app{&cli.App{}}))
	if asking < 20 {
		t.Errorf("only %d commands ask a server", asking)
	}
}

// TestCompletion asks as shells do: one name of a cluster is enough for suspend.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"apply p":                   "prod-eu\n",
		"describe cluster p":        "prod-eu\n",
		"suspend p":                 "prod-eu\n",
		"suspend prod-eu d":         "",
		"get clusters --phase ":     "Active\n",
		"logs run-":                 applyID + "\tapply of prod-eu: errored\n",
		"describe run ":             planID,
		"apply ":                    planID,
		"approve --cluster ":        "prod-eu\n",
		"describe pullrequest ":     "shop#7\t",
		"get runs --pull-request ":  "shop#7\t",
		"get runs --cluster ":       "prod-eu\n",
		"get runs --status ":        "errored\n",
		"get q":                     "queue\t",
		"describe drift ":           "prod-eu\n",
		"drift check ":              "prod-eu\n",
		"state get ":                "prod-eu\n",
		"transfer ":                 "prod-eu\n",
		"get pullrequests --state ": "merged\n",
		"get clusters --output ":    "wide\n",
		"get clusters --project ":   "payments\n",
		"get drift --environment ":  "production\n",
		"get clusters --owner ":     "shop\n",
		"get clusters --waiting ":   "Unreviewed\n",
		"get pullrequests --repo ":  "shop\n",
		"suspend --project ":        "payments\n",
		"reconcile --repo ":         "shop\n",
		"transfer prod-eu --to ":    "shop\n",
	} {
		got := against(t, fleet(), append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if got.code != 0 || want == "" && strings.Contains(got.out, "dev\n") || !strings.Contains(got.out, want) {
			t.Errorf("holdfast %s<TAB> = %+v, want %q", line, got, want)
		}
	}
}
