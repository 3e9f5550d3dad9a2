package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/outgoing"
)

const driftID = "run-01jnv5c3hw1111111111"

// addFleet adds to an API what it answers about a fleet over time. It completes
// prod-eu, which is there.
func addFleet(f *fakeAPI, cluster *v1.Cluster) {
	ago := func(d time.Duration) time.Time { return testNow.Add(-d) }
	const hour = time.Hour
	counts := v1.DriftCounts{Changed: 2, Gone: 1, Ignored: 4}
	cluster.Desired.Document.Labels = map[string]string{"team": "payments", "tier": "gold"}
	cluster.Desired.Document.RenamedFrom = "prod-1"
	cluster.Applied.Document.Deletion.Protected = true
	cluster.Drift = v1.DriftState{
		Status: holdfast.DriftFound, Run: driftID, Counts: counts, Since: ago(50 * hour), CheckedAt: ago(2 * hour),
		Due: testNow.Add(2 * hour), Hold: "reverting it would replace something",
	}
	cluster.Conditions = []v1.Condition{
		{Type: holdfast.ConditionCommitPlanned, Status: holdfast.ConditionTrue, Reason: "Planned", Since: ago(26 * hour)},
		{Type: holdfast.ConditionApplyUpToDate, Status: holdfast.ConditionFalse, Reason: "Unreviewed", Since: ago(3 * hour), Message: "nobody has reviewed\x1b[2J a plan of it"},
		{Type: holdfast.ConditionDrifted, Status: holdfast.ConditionTrue, Reason: "Drifted", Since: ago(50 * hour), Message: "2 changed, 1 gone"},
		{Type: holdfast.ConditionHealthy, Status: holdfast.ConditionUnknown, Reason: "NotLookedAt", Since: ago(90 * 24 * hour)},
	}
	f.set("GET /clusters/prod-eu", *cluster)
	f.set("GET /clusters", list(
		v1.ClusterSummary{Name: "dev", Phase: holdfast.PhasePending, Suspended: true, UpdatedAt: ago(5 * time.Second)},
		v1.ClusterSummary{
			Name: "network-eu", Owner: "shop", Project: "payments", Environment: "production", Phase: holdfast.PhaseActive, UpToDate: true,
			Drift: holdfast.DriftNone, Applied: v1.AppliedRevision{Revision: "1111111111"}, UpdatedAt: ago(70 * hour),
		},
		v1.ClusterSummary{Name: "old-eu", Owner: "shop", Phase: holdfast.PhaseDeleted, Removed: true, Applied: v1.AppliedRevision{Revision: "1111111111"}, UpdatedAt: ago(9 * 24 * hour)},
		v1.ClusterSummary{
			Name: "prod-eu", Owner: "shop", Project: "payments", Environment: "production", Provider: "aws", Phase: holdfast.PhaseActive,
			Labels: map[string]string{"team": "payments"}, Template: "kubernetes@1.10",
			Waiting: "Unreviewed", Drift: holdfast.DriftFound, DriftCounts: counts, Applied: v1.AppliedRevision{Revision: "1111111111"}, UpdatedAt: ago(3 * hour),
		},
		v1.ClusterSummary{Name: "prod-us", Owner: "shop", Phase: holdfast.PhaseFailed, Drift: holdfast.DriftFailed, UpdatedAt: ago(hour)},
	))
	f.set("GET /drift", list(
		v1.DriftLine{Cluster: "dev"},
		v1.DriftLine{
			Cluster: "network-eu", State: v1.DriftState{Status: holdfast.DriftNone, CheckedAt: ago(3 * hour), Due: ago(time.Minute)},
			NotApplied: true,
		},
		v1.DriftLine{Cluster: "prod-eu", State: cluster.Drift, OnDrift: "apply", NotApplied: true, Waiting: "Unreviewed", Issue: "12"},
		v1.DriftLine{
			Cluster: "prod-us", OnDrift: "report", Issue: "13", State: v1.DriftState{
				Status: holdfast.DriftFailed, Failures: 3, Counts: v1.DriftCounts{Input: 1}, Detail: "credentials expired",
				Since: ago(hour), CheckedAt: ago(10 * time.Minute), Due: testNow.Add(30 * time.Minute),
			},
		},
	))
	f.set("GET /clusters/prod-eu/history", list(
		v1.Transition{Cluster: "prod-eu", At: ago(3 * hour), What: "ApplyUpToDate", From: "True", To: "False", Reason: "Unreviewed"},
		v1.Transition{Cluster: "prod-eu", At: ago(26 * hour), What: "phase", From: "Updating", To: "Active", Reason: "Applied", Run: applyID},
		v1.Transition{Cluster: "prod-eu", At: ago(27 * hour), What: "phase", To: "Updating"},
		v1.Transition{At: ago(28 * hour), What: "Blocked", From: "True", To: "False"}, v1.Transition{At: ago(29 * hour), What: "Blocked", From: "False", To: "True"},
		v1.Transition{At: ago(30 * hour), What: "Blocked", From: "True", To: "False"}, v1.Transition{At: ago(31 * hour), What: "Blocked", From: "False", To: "True"},
		v1.Transition{At: ago(32 * hour), What: "Blocked", From: "True", To: "False"}, v1.Transition{At: ago(33 * hour), What: "Blocked", From: "False", To: "True"},
		v1.Transition{At: ago(34 * hour), What: "Blocked", From: "True", To: "False"}, v1.Transition{At: ago(35 * hour), What: "Blocked", From: "False", To: "True"},
	))
	f.set("GET /clusters/prod-eu/family", v1.Family{
		Parents: []v1.Relation{
			{Name: "dns", Phase: holdfast.PhaseUpdating, Waiting: "Unreviewed", Relations: []v1.Relation{{Name: "zone"}}},
			{Name: "network-eu", Phase: holdfast.PhaseActive, Settled: true, Relations: []v1.Relation{
				{Name: "account", Phase: holdfast.PhaseActive, Settled: true}, {Name: "transit", Phase: holdfast.PhaseActive, Settled: true},
			}},
		},
		Dependents: []v1.Relation{
			{Name: "apps-eu", Phase: holdfast.PhaseFailed, Failed: true, Relations: []v1.Relation{
				{Name: "shop-eu", Phase: holdfast.PhasePending, Waiting: "DependencyFailed"},
			}},
			{Name: "logs-eu", Phase: holdfast.PhaseProvisioning},
		},
	})
	old := v1.Cluster{
		Name: "old-eu", Owner: "shop", Phase: holdfast.PhaseDeleted, Desired: v1.Desired{Revision: "4444444444", Removed: true},
		Applied:  v1.Applied{Run: planID, Revision: "1111111111", At: ago(900 * hour), Document: v1.Document{Name: "old-eu", Project: "payments", Environment: "production"}},
		Deletion: &v1.Deletion{At: ago(216 * hour), Reason: "Destroyed", Run: applyID, Revision: "4444444444"},
	}
	f.set("GET /clusters/old-eu", old)
	f.set("GET /clusters/old-eu/outputs", list[v1.Output]())
	f.set("GET /clusters/old-eu/history", list[v1.Transition]())
	f.set("GET /clusters/prod-eu/drift", v1.DriftReport{
		Cluster: "prod-eu", State: cluster.Drift, NotApplied: true, Waiting: "Unreviewed",
		Items: []v1.DriftItem{{Address: "aws_eks_node_group.main", Type: "aws_eks_node_group", Kind: holdfast.DriftChanged, Action: holdfast.ActionUpdate}},
	})
	f.set("GET /resources", list(
		v1.Resource{Cluster: "prod-eu", Address: "module.network.aws_vpc.main", Type: "aws_vpc", ID: "vpc-0a1b2c3d", Run: applyID, ChangedAt: ago(26 * hour)},
		v1.Resource{Cluster: "prod-us", Address: `aws_subnet.private["a"]`, Type: "aws_subnet"},
	))
	f.set("GET /suspensions", list(
		v1.Suspension{By: "anna", Reason: "incident\n4711", At: ago(20 * time.Minute)},
		v1.Suspension{Project: "payments", By: "otto", At: ago(30 * hour)},
		v1.Suspension{Cluster: "dev"},
	))
}

func TestFleetRequests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line    string
		answers map[string]any
		code    int
		asked   string // the last request
		out     string
		err     string
	}{
		"drift with filters": {
			line: "get drift prod-eu --environment e --drift failed", asked: "GET /api/v1/drift?drift=failed&environment=e&limit=1000&name=prod-eu", out: "prod-us",
		},
		"no drift": {line: "get drift", answers: map[string]any{"GET /drift": list[v1.DriftLine]()}, out: "no drift was found: holdfast get drift --all lists what was checked, and when\n"},
		"drift of a cluster that is not there": {
			line: "get drift prod-eu pord-us", asked: "GET /api/v1/clusters?all=true&fields=name&limit=1000&name=pord-us", code: 1, err: `cluster "pord-us": not found`,
		},
		"drift of a cluster without": {line: "get drift prod-eu", answers: map[string]any{"GET /drift": list[v1.DriftLine]()}, out: "no drift was found"},
		"a cluster that is not there": {
			line: "get clusters dev pord-us", asked: "GET /api/v1/clusters?all=true&fields=name&limit=1000&name=pord-us", code: 1, err: `cluster "pord-us": not found`,
		},
		"drift misspelt":    {line: "get clusters --drift yes", code: 2, err: `drift "yes": want drifted, none or failed`},
		"clusters and gone": {line: "get clusters --all --drift drifted", asked: "GET /api/v1/clusters?all=true&drift=drifted&limit=1000"},
		"resources": {
			line:  "get resources --cluster prod-eu --type aws_vpc --id x --address main",
			asked: "GET /api/v1/resources?address=main&cluster=prod-eu&id=x&limit=1000&type=aws_vpc", out: "ADDRESS  ",
		},
		"no resources":      {line: "get resources -o json", answers: map[string]any{"GET /resources": list[v1.Resource]()}, out: "[]\n"},
		"no agents":         {line: "get agents", answers: map[string]any{"GET /agents": list[v1.Agent]()}, out: "no agents\n"},
		"nothing suspended": {line: "get suspensions", answers: map[string]any{"GET /suspensions": list[v1.Suspension]()}, out: "nothing is suspended\n"},
		"suspend everything": {
			line: "suspend --all --reason incident", answers: map[string]any{"POST /suspend": v1.Suspension{}},
			asked: `POST /api/v1/suspend {"all":true,"reason":"incident"}`, out: "all clusters are suspended\n",
		},
		"suspend a project": {
			line: "suspend --project p", answers: map[string]any{"POST /suspend": v1.Suspension{Project: "p"}},
			asked: `POST /api/v1/suspend {"project":"p"}`, out: "project p is suspended\n",
		},
		"resume a project": {
			line: "resume --project p", answers: map[string]any{"POST /resume": v1.Suspension{Project: "p"}},
			asked: `POST /api/v1/resume {"project":"p"}`, out: "project p is active\n",
		},
		"resume what was not": {
			line: "resume --all", answers: map[string]any{"POST /resume": refusal{404, v1.Problem{Detail: "there is no suspension of all clusters", Hint: "see what is"}}},
			code: 1, err: "Error: there is no suspension of all clusters\nHint:  see what is\n",
		},
		"suspend nothing":    {line: "suspend", code: 2, err: "one of a cluster's name, --project and --all"},
		"suspend two things": {line: "suspend prod-eu --all", code: 2, err: "one of a cluster's name"},
		"a reason for a cluster": {
			line: "suspend prod-eu --reason moves", answers: map[string]any{"POST /clusters/prod-eu/suspend": v1.Cluster{Name: "prod-eu", Suspended: true}},
			asked: `POST /api/v1/clusters/prod-eu/suspend {"reason":"moves"}`, out: "cluster prod-eu is suspended\n",
		},
		"transfer": {
			line: "transfer prod-eu --to other", answers: map[string]any{"POST /clusters/prod-eu/transfer": v1.Cluster{Name: "prod-eu", Owner: "other"}},
			asked: `POST /api/v1/clusters/prod-eu/transfer {"repo":"other"}`, out: "cluster prod-eu belongs to other now\n",
		},
		"transfer nowhere": {line: "transfer prod-eu", code: 2, err: "--to is missing"},
		"check without waiting": {
			line: "drift check prod-eu", answers: map[string]any{"POST /clusters/prod-eu/drift/check": v1.Run{ID: driftID, Cluster: "prod-eu"}},
			asked: "POST /api/v1/clusters/prod-eu/drift/check {}", out: driftID + " checks prod-eu for drift; then see: holdfast describe drift prod-eu\n",
		},
		"check what cannot be": {
			line: "drift check young", answers: map[string]any{"POST /clusters/young/drift/check": refusal{409, v1.Problem{Detail: `cluster "young": it was never applied`}}},
			code: 3, err: "Error: cluster \"young\": it was never applied\n",
		},
		"describe one that is suspended": {
			line: "describe cluster prod-eu", answers: map[string]any{
				"GET /clusters/prod-eu": v1.Cluster{Name: "prod-eu", Suspended: true, SuspendedBy: "otto", SuspendedAt: testNow.Add(-time.Hour)},
				"GET /suspensions":      list[v1.Suspension](),
			},
			out: "Suspended:  cluster prod-eu is suspended by otto since 2026-03-01T11:00:00Z (60m ago)\n",
		},
		"describe one that is suspended, with all": {
			line: "describe cluster prod-eu", answers: map[string]any{
				"GET /clusters/prod-eu": v1.Cluster{Name: "prod-eu", Suspended: true, SuspendedBy: "otto", SuspendReason: "moves"},
			},
			out: "cluster prod-eu is suspended by otto: moves\n            all clusters are suspended by anna since",
		},
		"describe a status that is not set": {
			line: "describe pullrequest shop#7", answers: map[string]any{"GET /pullrequests/get": v1.PullRequestDetail{
				PullRequest: v1.PullRequest{Repo: "shop", Number: 7},
				Statuses: []v1.CommitStatus{{
					Revision: "3333333333", Context: holdfast.ContextPlan, State: holdfast.StatusSuccess, Description: "1 cluster: 1 to change", NotSet: "GitHub answered 422: enough",
				}},
			}},
			out: "3333333  holdfast/plan  not set  GitHub answered 422: enough (would be success: 1 cluster: 1 to change)\n",
		},
		"describe a comment that waits": {
			line: "describe pullrequest shop#7", answers: map[string]any{"GET /pullrequests/get": v1.PullRequestDetail{
				PullRequest: v1.PullRequest{Repo: "shop", Number: 7},
				Comments:    []v1.Comment{{Author: "holdfast", Body: "1 to change", NotPosted: "not posted yet, waits since 2026-03-01T11:00:00Z"}},
				Delayed:     []v1.DelayedPost{{Kind: outgoing.PostComment, What: "of shop#7", Reason: "not posted yet, waits since 2026-03-01T11:00:00Z"}},
			}},
			out: "Comment by holdfast as it will be: not posted yet, waits since 2026-03-01T11:00:00Z\n",
		},
		"a queue of nothing":     {line: "get queue --limit 0", code: 2, err: "--limit 0: want 1 or more"},
		"requests of nothing":    {line: "get pullrequests --limit -1", code: 2, err: "--limit -1: want 1 or more"},
		"resources of nothing":   {line: "get resources --limit 0", code: 2, err: "--limit 0: want 1 or more"},
		"runs of nothing":        {line: "get runs --limit 0", code: 2, err: "--limit 0: want 1 or more"},
		"describe drift":         {line: "describe drift prod-eu", out: "prod-eu"},
		"describe drift of none": {line: "describe drift none", code: 1, err: "clusters/none/drift: not found"},
		"drift alone":            {line: "drift", code: 2, err: "holdfast drift: want check"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleet()
			for path, answer := range tc.answers {
				f.set(path, answer)
			}
			got := against(t, f, strings.Fields(tc.line)...)
			if got.code != tc.code || !strings.Contains(got.err, tc.err) || !strings.Contains(got.out, tc.out) || tc.code == 0 && got.err != "" {
				t.Errorf("holdfast %s = %d\nout %s\nerr %s\nwant %d %q %q", tc.line, got.code, got.out, got.err, tc.code, tc.out, tc.err)
			}
			if tc.asked != "" && (len(f.asked) == 0 || f.asked[len(f.asked)-1] != tc.asked) {
				t.Errorf("holdfast %s asked %q, want at last %q", tc.line, f.asked, tc.asked)
			}
		})
	}
}

// TestDriftCheck waits for a check through a restart of the server, and for
// what it found to be taken.
func TestDriftCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status holdfast.RunStatus
		code   int
		out    string
	}{
		"drift":    {holdfast.RunPlanned, 0, "prod-eu"},
		"no drift": {holdfast.RunNoChanges, 0, "prod-eu"},
		"failed":   {holdfast.RunErrored, 3, ""},
		"canceled": {holdfast.RunCanceled, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleet()
			run := v1.Run{ID: driftID, Cluster: "prod-eu", Kind: holdfast.RunDrift, Status: holdfast.RunQueued}
			f.set("POST /clusters/prod-eu/drift/check", run)
			looks, reports := 0, 0
			f.set("GET /runs/"+driftID, answering(func(*http.Request) any {
				f.mu.Lock()
				defer f.mu.Unlock()
				looks++
				switch {
				case looks == 1:
					return nil // a restart
				case looks > 3:
					run.Status = tc.status
				default:
					run.Status, run.Step = holdfast.RunRunning, "plan"
				}
				return run
			}))
			f.set("GET /clusters/prod-eu/drift", answering(func(*http.Request) any {
				f.mu.Lock()
				defer f.mu.Unlock()
				reports++
				report := v1.DriftReport{Cluster: "prod-eu", State: v1.DriftState{Run: "run-00000000000000000000"}}
				if reports > 2 {
					report.State = v1.DriftState{Run: driftID, Status: holdfast.DriftFound, Counts: v1.DriftCounts{Changed: 1}}
				}
				return report
			}))
			got := against(t, f, "drift", "check", "prod-eu", "--wait")
			progress := driftID + ": queued\nserver SERVER answered 503 Service Unavailable, which is not a Holdfast response; retrying for about a minute\n" +
				driftID + ": running: plan\n"
			if got.code != tc.code || !strings.Contains(got.out, tc.out) || !strings.HasPrefix(got.err, progress) {
				t.Errorf("drift check = %d\nout %q\nerr %q\nwant %d and the progress once", got.code, got.out, got.err, tc.code)
			}
			if good := tc.status.Good(); good && reports != 3 || !good && reports != 0 {
				t.Errorf("the report was asked for %d times", reports)
			}
		})
	}
}

func TestValidateLooksAtOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, dependsOn string) {
		text := "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec:\n  project: p\n  environment: e\n" +
			"  module: {path: mod}\n  dependsOn: [" + dependsOn + "]\n"
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "mod"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mod", "main.tf"), []byte("resource \"terraform_data\" \"x\" {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("network", "")
	write("apps", "networks")
	got := holdfastCLI(t, nil, "validate", dir)
	want := result{0, "2 clusters are valid\n", "Warning: apps.yaml:1: cluster apps depends on networks, which is not defined here (did you mean \"network\"?)\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("validate (-want +got):\n%s", diff)
	}
	code := filepath.Join(dir, "mod", "main.tf")
	if err := os.WriteFile(code, []byte("variable \"size\" {}\nvariable \"zone\" { default = 1 }\nvariable \"name\" {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mod", "a.auto.tfvars"), []byte("name = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	holdfastCLI(t, nil, "validate", dir).want(t, 1,
		`apps.yaml:7:3: variable "size" of module mod has no value, and no default (mod/main.tf:1) (set it below spec.variables)`, "2 faults in 2 files")
	if err := os.Remove(code); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(code, []byte("resource \"terraform_data\" \"x\" {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got = holdfastCLI(t, nil, "validate", dir, "-o", "json")
	report := `{
  "clusters": 2,
  "faults": [],
  "warnings": [
    "apps.yaml:1: cluster apps depends on networks, which is not defined here (did you mean \"network\"?)"
  ]
}
`
	if diff := cmp.Diff(result{0, report, ""}, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("validate -o json (-want +got):\n%s", diff)
	}
	for _, command := range []string{"plan", "render"} {
		if got := holdfastCLI(t, nil, "__complete", command, "-d", dir, ""); !strings.Contains(got.out, "apps\nnetwork\n") {
			t.Errorf("holdfast %s<TAB> = %+v, want the clusters of the folder", command, got)
		}
	}
	write("network", "apps")
	write("apps", "network")
	got = holdfastCLI(t, nil, "validate", dir)
	if got.code != 1 || !strings.Contains(got.out, "in a circle: apps → network → apps") || strings.Contains(got.err, "Warning") {
		t.Errorf("validate of a circle = %+v, want a fault", got)
	}
}

// TestValidateReportsAllAtOnce: a mistake in a document's text does not hide those in what
// it says to its template; -o json has the same faults.
func TestValidateReportsAllAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\nspec:\n  project: p\n  environment: e\n" +
			"  template: {name: web, version: 1.0.0}\n  provider: asw\n  variables: {nodes: many}\n  dependson: [b]\n",
		"web/template.yaml": "apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: web}\nspec:\n" +
			"  providers: {aws: {modules: [{name: a, source: ./a}]}}\n" +
			"  variables: {type: object, properties: {nodes: {type: integer}}}\n",
		"web/a/main.tf": "",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	template := "web=" + filepath.Join(dir, "web")
	holdfastCLI(t, nil, "validate", dir, "--template", template).want(t, 1,
		`a.yaml:8:13: template web@1.0.0 has no provider "asw"`, "a.yaml:9:22: variable nodes must be an integer", `a.yaml:10:3: unknown key "dependson"`,
		"3 faults in 1 file")
	got := holdfastCLI(t, nil, "validate", dir, "--template", template, "-o", "json")
	var report struct{ Faults []holdfast.Fault }
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || len(report.Faults) != 3 || report.Faults[2].Hint != `did you mean "dependsOn"?` {
		t.Errorf("validate -o json: %v\n%s", err, got.out)
	}
	if !strings.Contains(got.err, "3 faults in 1 file") || got.code != 1 {
		t.Errorf("validate -o json: code %d, %q", got.code, got.err)
	}
}

// TestValidateIsBounded: a folder has the bounds that the server has for a tree.
func TestValidateIsBounded(t *testing.T) {
	t.Parallel()
	const claim = "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\n"
	for name, c := range map[string]struct {
		text  string
		size  int64 // of each file, filled up with what is not text
		files int
		want  string
	}{
		"names": {text: claim, size: int64(len(claim)), files: 101, want: "f100.yaml:1: more than 100 documents have the name a (remove this one)"},
		"bytes": {text: "# holdfast.dev \xff", size: 1 << 20, files: 129, want: "f128.yaml: files that define clusters have more than 134217728 bytes, with this file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i := range c.files {
				file := filepath.Join(dir, fmt.Sprintf("f%03d.yaml", i))
				if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(file, c.size); err != nil {
					t.Fatal(err)
				}
			}
			got := holdfastCLI(t, nil, "validate", dir)
			if got.code != 1 || strings.Count(got.out, c.want) != 1 || strings.Count(got.out, "more than") != 1 {
				t.Errorf("validate: code %d, %q, want it to say %q", got.code, got.err, c.want)
			}
		})
	}
}
