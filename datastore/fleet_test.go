package datastore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/protocol"
)

// save stores a record, over the one that is there.
func save(t testing.TB, store *datastore.Store, c holdfast.ClusterRecord, history ...holdfast.Transition) holdfast.ClusterRecord {
	t.Helper()
	return must[holdfast.ClusterRecord](t)(store.SaveCluster(t.Context(), c, history...))
}

// testSummaries holds the lists of clusters to one another: the same clusters
// match, whichever is asked for.
func testSummaries(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	document := func(name, environment string, parents ...string) holdfast.Cluster {
		return holdfast.Cluster{
			Name: name, Project: "payments", Environment: environment, Provider: "aws", DependsOn: parents,
			Labels: map[string]string{"team": "blue"}, Template: &holdfast.TemplateRef{Name: "kubernetes", Version: "1.4.2"},
		}
	}
	network := holdfast.ClusterRecord{
		Name: "network", Owner: "fleet", Phase: holdfast.PhaseActive, OwnSuspension: holdfast.OwnSuspension{Suspended: true}, UpdatedAt: noon.Add(1),
		Desired: holdfast.Desired{Revision: "bcd", SourceDigest: "sha256:n", Document: document("network", "production")},
		Applied: holdfast.Applied{Run: "run-1", Revision: "abc", SourceDigest: "sha256:n"},
		Drift: holdfast.DriftState{
			Status: holdfast.DriftFound, Counts: holdfast.DriftCounts{Changed: 2, Ignored: 1}, CheckedAt: noon, Due: noon.Add(time.Hour),
		},
	}
	network = save(t, store, network)
	app := holdfast.ClusterRecord{
		Name: "app", Owner: "fleet", Phase: holdfast.PhasePending, Waiting: "Unreviewed", UpdatedAt: noon,
		Desired: holdfast.Desired{Document: document("app", "production", "network"), Faults: holdfast.Faults{{Message: "bad"}}},
	}
	app = save(t, store, app)
	// Its document no longer depends on anything; what is applied still does.
	old := holdfast.ClusterRecord{
		Name: "old", Owner: "fleet", Phase: holdfast.PhaseDeleting, UpdatedAt: noon, Desired: holdfast.Desired{Removed: true},
		Applied: holdfast.Applied{Run: "run-2", Document: document("old", "development", "network", "dns")},
	}
	old = save(t, store, old)
	gone := save(t, store, holdfast.ClusterRecord{
		Name: "gone", Owner: "fleet", Phase: holdfast.PhaseDeleted, UpdatedAt: noon,
		Applied: holdfast.Applied{Document: document("gone", "production", "network")},
	})

	summaries := must[[]holdfast.ClusterSummary](t)(store.ClusterSummaries(ctx, holdfast.ClusterFilter{Deleted: true}))
	common := holdfast.ClusterSummary{
		Owner: "fleet", Project: "payments", Environment: "production", Provider: "aws", UpdatedAt: noon,
		Labels: map[string]string{"team": "blue"}, Template: "kubernetes@1.4.2",
	}
	wantApp, wantGone, wantNetwork, wantOld := common, common, common, common
	wantApp.Name, wantApp.Phase, wantApp.Waiting, wantApp.Invalid = "app", holdfast.PhasePending, "Unreviewed", true
	wantGone.Name, wantGone.Phase = "gone", holdfast.PhaseDeleted
	wantNetwork.Name, wantNetwork.Phase, wantNetwork.Suspended, wantNetwork.UpToDate = "network", holdfast.PhaseActive, true, true
	wantNetwork.Drift, wantNetwork.DriftCounts = holdfast.DriftFound, network.Drift.Counts
	wantNetwork.CheckedAt, wantNetwork.DriftDue, wantNetwork.Applied, wantNetwork.UpdatedAt = noon, noon.Add(time.Hour), holdfast.AppliedLine{Revision: "abc"}, noon.Add(1)
	wantOld.Name, wantOld.Phase, wantOld.Removed, wantOld.Environment = "old", holdfast.PhaseDeleting, true, "development"
	if diff := differ([]holdfast.ClusterSummary{wantApp, wantGone, wantNetwork, wantOld}, summaries); diff != "" {
		t.Errorf("ClusterSummaries() (-want +got):\n%s", diff)
	}

	many := []string{"old"}
	for i := range 1100 {
		many = append(many, fmt.Sprintf("no-such-cluster-%d", i))
	}
	all := []string{"app", "network", "old"}
	for name, test := range map[string]struct {
		filter holdfast.ClusterFilter
		want   []string
	}{
		"without deleted":     {holdfast.ClusterFilter{}, all},
		"deleted too":         {holdfast.ClusterFilter{Deleted: true}, []string{"app", "gone", "network", "old"}},
		"deleted by phase":    {holdfast.ClusterFilter{Phase: holdfast.PhaseDeleted}, []string{"gone"}},
		"deleted by name":     {holdfast.ClusterFilter{Names: []string{"gone"}}, []string{"gone"}},
		"many names":          {holdfast.ClusterFilter{Names: append(many, "app")}, []string{"app", "old"}},
		"drift":               {holdfast.ClusterFilter{Drift: holdfast.DriftFound}, []string{"network"}},
		"revision":            {holdfast.ClusterFilter{Revision: "bcd", Owner: "fleet"}, []string{"network"}},
		"another drift":       {holdfast.ClusterFilter{Drift: holdfast.DriftFailed}, nil},
		"template":            {holdfast.ClusterFilter{Template: "kubernetes"}, all},
		"template, all":       {holdfast.ClusterFilter{Template: "kubernetes", Deleted: true, Owner: "fleet"}, []string{"app", "gone", "network", "old"}},
		"no such template":    {holdfast.ClusterFilter{Template: "kubernetes@1.4.2"}, nil},
		"dependents":          {holdfast.ClusterFilter{DependsOn: "network"}, []string{"app", "old"}},
		"dependents, applied": {holdfast.ClusterFilter{DependsOn: "dns"}, []string{"old"}},
		"label, environment":  {holdfast.ClusterFilter{Labels: map[string]string{"team": "blue"}, Environment: "production"}, []string{"app", "network"}},
		"applied":             {holdfast.ClusterFilter{Owner: "fleet", Applied: true}, []string{"network", "old"}},
		"no such label":       {holdfast.ClusterFilter{Labels: map[string]string{"team": "red"}}, nil},
	} {
		checkLists(t, store, name, test.filter, test.want)
	}

	// What changes is found under the new and not under the old.
	app.Desired.Document.Labels, app.Desired.Document.DependsOn = map[string]string{"team": "red", "tier": "1"}, []string{"dns"}
	app.Desired.Document.Template = &holdfast.TemplateRef{Path: "../templates/kubernetes"}
	app.Phase = holdfast.PhaseDeleted
	save(t, store, app)
	old.Applied.Document.DependsOn = nil
	old.Applied.Document.Template = &holdfast.TemplateRef{Name: "vm", Version: "1.0.0"}
	save(t, store, old)
	gone.Phase = holdfast.PhasePending // another life
	save(t, store, gone)
	for name, test := range map[string]struct {
		filter holdfast.ClusterFilter
		want   []string
	}{
		"new label":    {holdfast.ClusterFilter{Labels: map[string]string{"team": "red"}, Deleted: true}, []string{"app"}},
		"old label":    {holdfast.ClusterFilter{Labels: map[string]string{"team": "blue"}}, []string{"gone", "network", "old"}},
		"old template": {holdfast.ClusterFilter{Template: "kubernetes", Deleted: true}, []string{"gone", "network"}},
		"new template": {holdfast.ClusterFilter{Template: "vm"}, []string{"old"}},
		"new parent":   {holdfast.ClusterFilter{DependsOn: "dns", Deleted: true}, []string{"app"}},
		"old parent":   {holdfast.ClusterFilter{DependsOn: "network"}, []string{"gone"}},
	} {
		checkLists(t, store, name, test.filter, test.want)
	}
}

func checkLists(t *testing.T, store *datastore.Store, name string, filter holdfast.ClusterFilter, want []string) {
	t.Helper()
	var records, summaries []string
	for _, c := range must[[]holdfast.ClusterRecord](t)(store.Clusters(t.Context(), filter)) {
		records = append(records, c.Name)
	}
	for _, l := range must[[]holdfast.ClusterSummary](t)(store.ClusterSummaries(t.Context(), filter)) {
		summaries = append(summaries, l.Name)
	}
	if diff := differ(want, records); diff != "" {
		t.Errorf("Clusters(%s) (-want +got):\n%s", name, diff)
	}
	if diff := differ(want, summaries); diff != "" {
		t.Errorf("ClusterSummaries(%s) (-want +got):\n%s", name, diff)
	}
	if diff := differ(want, must[[]string](t)(store.ClusterNames(t.Context(), filter))); diff != "" {
		t.Errorf("ClusterNames(%s) (-want +got):\n%s", name, diff)
	}
	if n := must[int](t)(store.CountClusters(t.Context(), filter)); n != len(want) {
		t.Errorf("CountClusters(%s) = %d, want %d", name, n, len(want))
	}
}

func testDriftDue(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	if next := must[time.Time](t)(store.NextDriftDue(ctx, noon)); !next.IsZero() {
		t.Errorf("NextDriftDue() of an empty fleet = %s", next)
	}
	for i, test := range []struct{ checked, due time.Duration }{
		{-time.Hour, 0},
		{-3 * time.Hour, -time.Minute},
		{-2 * time.Hour, -2 * time.Hour},
		{-9 * time.Hour, time.Hour}, // later
		{-9 * time.Hour, 2 * time.Hour},
		{-8 * time.Hour, -time.Hour}, // busy
		{-8 * time.Hour, -time.Hour}, // was busy
	} {
		c := holdfast.ClusterRecord{Name: fmt.Sprintf("c%03d", i)}
		c.Drift.CheckedAt, c.Drift.Due = noon.Add(test.checked), noon.Add(test.due)
		save(t, store, c)
	}
	save(t, store, holdfast.ClusterRecord{Name: "never-checked", Drift: holdfast.DriftState{Due: noon.Add(-1)}})
	save(t, store, holdfast.ClusterRecord{Name: "no-schedule"})
	busy, ended := newRun(5), newRun(6)
	ended.Status = holdfast.RunApplied
	create(t, store, busy, ended)

	due := func(at time.Time, limit int) []string {
		t.Helper()
		var names []string
		for _, c := range must[[]holdfast.ClusterRecord](t)(store.DriftDue(ctx, at, limit)) {
			names = append(names, c.Name)
		}
		return names
	}
	for _, status := range []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRetrying} {
		busy = must[holdfast.Run](t)(store.Run(ctx, busy.ID))
		busy.Status = status
		must[holdfast.Run](t)(store.UpdateRun(ctx, busy))
		if diff := differ([]string{"never-checked", "c006", "c001", "c002", "c000"}, due(noon, 10)); diff != "" {
			t.Errorf("DriftDue() with a run that is %s (-want +got):\n%s", status, diff)
		}
	}
	busy = must[holdfast.Run](t)(store.ClaimRun(ctx, busy.ID, protocol.AgentRef{ID: "agent"}, noon.Add(time.Hour), 0))
	if diff := differ([]string{"never-checked", "c006"}, due(noon, 2)); diff != "" {
		t.Errorf("DriftDue() with a running run (-want +got):\n%s", diff)
	}
	end(t, store, busy, holdfast.RunNoChanges)
	if diff := differ([]string{"never-checked", "c003", "c005"}, due(noon.Add(time.Hour), 3)); diff != "" {
		t.Errorf("DriftDue() an hour later (-want +got):\n%s", diff)
	}
	if got := due(noon, 0); got != nil {
		t.Errorf("DriftDue() with no limit to take = %v", got)
	}
	for at, want := range map[time.Duration]time.Duration{0: time.Hour, -2*time.Hour - 1: -2 * time.Hour, time.Hour: 2 * time.Hour} {
		if next := must[time.Time](t)(store.NextDriftDue(ctx, noon.Add(at))); !next.Equal(noon.Add(want)) {
			t.Errorf("NextDriftDue(%s) = %s, want %s", at, next.Sub(noon), want)
		}
	}
	if next := must[time.Time](t)(store.NextDriftDue(ctx, noon.Add(2*time.Hour))); !next.IsZero() {
		t.Errorf("NextDriftDue() after the last = %s", next)
	}
}

func testHistory(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Second) }
	c := save(t, store, holdfast.ClusterRecord{Name: "c"}, holdfast.Transition{What: "phase", To: "Pending"})
	want := []holdfast.Transition{{Cluster: "c", At: noon, What: "phase", To: "Pending"}}
	if diff := differ(want, must[[]holdfast.Transition](t)(store.Transitions(ctx, "c", 0))); diff != "" {
		t.Errorf("Transitions() (-want +got):\n%s", diff)
	}

	// Nothing is added by a write that is refused.
	stale := c
	stale.Version = 7
	if _, err := store.SaveCluster(ctx, stale, holdfast.Transition{What: "phase", To: "Failed"}); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("SaveCluster with a wrong version = %v, want ErrConflict", err)
	}
	two := []holdfast.Transition{
		{Cluster: "c", At: at(1), What: "phase", From: "Pending", To: "Provisioning", Reason: "Merged", Run: "run-1"},
		{Cluster: "c", At: at(1), What: "ApplyUpToDate", From: "False", To: "True", Reason: "Applied", Run: "run-1"},
	}
	c = save(t, store, c, two...)
	want = []holdfast.Transition{two[1], two[0], want[0]}
	if diff := differ(want, must[[]holdfast.Transition](t)(store.Transitions(ctx, "c", 0))); diff != "" {
		t.Errorf("Transitions() (-want +got):\n%s", diff)
	}
	if diff := differ(want[:1], must[[]holdfast.Transition](t)(store.Transitions(ctx, "c", 1))); diff != "" {
		t.Errorf("Transitions(1) (-want +got):\n%s", diff)
	}
	save(t, store, holdfast.ClusterRecord{Name: "other"}, holdfast.Transition{What: "phase", To: "Active", At: noon.Add(-time.Hour)})
	for i := range 130 {
		c = save(t, store, c, holdfast.Transition{What: "phase", To: fmt.Sprint(i), At: at(10 + i)})
	}
	got := must[[]holdfast.Transition](t)(store.Transitions(ctx, "c", 1000))
	if len(got) != 100 || got[0].To != "129" || got[99].To != "30" {
		t.Errorf("Transitions() = %d, %q to %q; want the newest hundred", len(got), got[0].To, got[len(got)-1].To)
	}
	if got := must[[]holdfast.Transition](t)(store.Transitions(ctx, "other", 0)); len(got) != 1 {
		t.Errorf("Transitions() of another cluster = %+v", got)
	}
}

func testResources(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	put := func(cluster string, resources ...holdfast.Resource) {
		t.Helper()
		if err := store.SaveResources(ctx, cluster, resources); err != nil {
			t.Fatal(err)
		}
	}
	list := func(filter holdfast.ResourceFilter) []holdfast.Resource {
		t.Helper()
		return must[[]holdfast.Resource](t)(store.Resources(ctx, filter))
	}
	vpc := holdfast.Resource{Address: "aws_vpc.main", Type: "aws_vpc", Provider: "registry.terraform.io/hashicorp/aws", ID: "vpc-1", Run: "run-1", ChangedAt: noon}
	pool := holdfast.Resource{Address: `module.k8s.aws_eks_node_group.pool["a%b_c"]`, Type: "aws_eks_node_group", ID: "ng-1"}
	for name, project := range map[string]string{"prod": "payments", "dev": "shop"} {
		save(t, store, holdfast.ClusterRecord{Name: name, Desired: holdfast.Desired{Document: holdfast.Cluster{Name: name, Project: project}}})
	}
	put("prod", vpc, pool, vpc)
	put("dev", holdfast.Resource{Address: "aws_vpc.main", Type: "aws_vpc", ID: "vpc-2"})

	// A check that changed nothing says nothing of who changed what.
	seen := vpc
	seen.Run, seen.ChangedAt = "", time.Time{}
	pool.Run, pool.ChangedAt = "run-2", noon.Add(time.Hour)
	put("prod", seen, pool)
	vpc.Cluster, pool.Cluster = "prod", "prod"
	if diff := differ([]holdfast.Resource{vpc, pool}, list(holdfast.ResourceFilter{Cluster: "prod"})); diff != "" {
		t.Errorf("Resources(prod) (-want +got):\n%s", diff)
	}
	for name, test := range map[string]struct {
		filter holdfast.ResourceFilter
		want   []string
	}{
		"all":            {holdfast.ResourceFilter{}, []string{"dev/aws_vpc.main", "prod/aws_vpc.main", "prod/" + pool.Address}},
		"limit":          {holdfast.ResourceFilter{Limit: 1}, []string{"dev/aws_vpc.main"}},
		"type":           {holdfast.ResourceFilter{Type: "aws_vpc"}, []string{"dev/aws_vpc.main", "prod/aws_vpc.main"}},
		"part of a type": {holdfast.ResourceFilter{Type: "aws_"}, nil},
		"id":             {holdfast.ResourceFilter{ID: "vpc-2"}, []string{"dev/aws_vpc.main"}},
		"address":        {holdfast.ResourceFilter{Address: "k8s.aws"}, []string{"prod/" + pool.Address}},
		"address as is":  {holdfast.ResourceFilter{Address: "%b_"}, []string{"prod/" + pool.Address}},
		"projects":       {holdfast.ResourceFilter{Projects: []string{"shop", "none"}}, []string{"dev/aws_vpc.main"}},
		"no wildcards":   {holdfast.ResourceFilter{Address: "aws%main"}, nil},
		"all together":   {holdfast.ResourceFilter{Cluster: "prod", Type: "aws_vpc", ID: "vpc-1", Address: "main"}, []string{"prod/aws_vpc.main"}},
	} {
		var got []string
		for _, r := range list(test.filter) {
			got = append(got, r.Cluster+"/"+r.Address)
		}
		if diff := differ(test.want, got); diff != "" {
			t.Errorf("Resources(%s) (-want +got):\n%s", name, diff)
		}
	}
	put("prod", seen)
	if diff := differ([]holdfast.Resource{vpc}, list(holdfast.ResourceFilter{Cluster: "prod"})); diff != "" {
		t.Errorf("Resources() after one is gone (-want +got):\n%s", diff)
	}
	put("prod")
	if got := list(holdfast.ResourceFilter{}); len(got) != 1 || got[0].Cluster != "dev" {
		t.Errorf("Resources() after all of a cluster are gone = %+v", got)
	}
}

func testSuspensions(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	if err := store.Resume(ctx, ""); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Resume() of what is not suspended = %v, want ErrNotFound", err)
	}
	list := []holdfast.Suspension{
		{By: "ana", Reason: "an incident", At: noon.Add(1)},
		{Project: "payments", By: "bo", At: noon},
	}
	replaced := holdfast.Suspension{Project: "payments", By: "ana", Reason: "old", At: noon.Add(-1)}
	for _, suspension := range []holdfast.Suspension{replaced, list[1], list[0]} {
		if err := store.Suspend(ctx, suspension); err != nil {
			t.Fatal(err)
		}
	}
	if diff := differ(list, must[[]holdfast.Suspension](t)(store.Suspensions(ctx))); diff != "" {
		t.Errorf("Suspensions() (-want +got):\n%s", diff)
	}
	if err := store.Resume(ctx, "other"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Resume() of another project = %v, want ErrNotFound", err)
	}
	if err := store.Resume(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if diff := differ(list[1:], must[[]holdfast.Suspension](t)(store.Suspensions(ctx))); diff != "" {
		t.Errorf("Suspensions() after Resume() (-want +got):\n%s", diff)
	}
}

func testClaimFilters(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	of := func(n int, kind holdfast.RunKind, provider string) holdfast.Run {
		run := newRun(n)
		run.Kind, run.Document.Provider = kind, provider
		run.Document.Project = map[bool]string{true: "payments", false: "billing"}[n%2 == 0]
		return run
	}
	create(t, store,
		of(1, holdfast.RunDrift, "aws"), of(2, holdfast.RunPlan, "gcp"), of(3, holdfast.RunDrift, "gcp"),
		of(4, holdfast.RunPlan, "aws"), of(5, holdfast.RunApply, "aws"), of(6, holdfast.RunPlan, ""))
	for name, test := range map[string]struct {
		filter holdfast.ClaimFilter
		want   []string
	}{
		"all":         {holdfast.ClaimFilter{}, []string{"run-0005", "run-0002", "run-0004", "run-0006", "run-0001", "run-0003"}},
		"kinds":       {holdfast.ClaimFilter{Kinds: []holdfast.RunKind{holdfast.RunDrift, holdfast.RunApply}}, []string{"run-0005", "run-0001", "run-0003"}},
		"providers":   {holdfast.ClaimFilter{Providers: []string{"aws"}}, []string{"run-0002", "run-0006", "run-0003"}},
		"projects":    {holdfast.ClaimFilter{Projects: []string{"payments", "shop"}}, []string{"run-0002", "run-0004", "run-0006"}},
		"no provider": {holdfast.ClaimFilter{Providers: []string{"", "gcp"}}, []string{"run-0005", "run-0004", "run-0001"}},
		"both":        {holdfast.ClaimFilter{Kinds: []holdfast.RunKind{holdfast.RunPlan}, Providers: []string{"aws"}, Limit: 1}, []string{"run-0002"}},
	} {
		test.filter.Now = noon
		if test.filter.Limit == 0 {
			test.filter.Limit = 10
		}
		if diff := differ(test.want, must[[]string](t)(store.Claimable(ctx, test.filter))); diff != "" {
			t.Errorf("Claimable(%s) (-want +got):\n%s", name, diff)
		}
	}
	check := func(want map[string]int, wantDrift int) {
		t.Helper()
		running, _, err := store.Served(ctx, noon)
		providers, drift := map[string]int{}, 0
		for _, lane := range running {
			providers[lane.Provider]++
			if lane.Kind == holdfast.RunDrift {
				drift++
			}
		}
		if diff := differ(want, providers); diff != "" || drift != wantDrift || err != nil {
			t.Errorf("Served() = %d drift checks, want %d, %v (-want +got):\n%s", drift, wantDrift, err, diff)
		}
	}
	check(map[string]int{}, 0)
	var running []holdfast.Run
	for _, id := range []string{"run-0001", "run-0003", "run-0005", "run-0006"} {
		running = append(running, must[holdfast.Run](t)(store.ClaimRun(ctx, id, protocol.AgentRef{ID: "agent"}, noon, 0)))
	}
	check(map[string]int{"aws": 2, "gcp": 1, "": 1}, 2)
	for _, run := range slices.Backward(running) {
		end(t, store, run, holdfast.RunNoChanges)
	}
	check(map[string]int{}, 0)
}

// testWritesGoFirst: an agent that executes plans alone is offered none for a
// state that an apply waits for, which another agent executes.
func testWritesGoFirst(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	plan, apply := newRun(1), newRun(2)
	plan.Kind, apply.Kind = holdfast.RunPlan, holdfast.RunApply
	plan.StateLocation, apply.StateLocation = "clusters/same", "clusters/same"
	create(t, store, plan, apply)
	offered := func(kinds ...holdfast.RunKind) []string {
		return must[[]string](t)(store.Claimable(ctx, holdfast.ClaimFilter{Now: noon, Kinds: kinds, Limit: 10}))
	}
	if got := offered(holdfast.RunPlan, holdfast.RunDrift); len(got) > 0 {
		t.Errorf("an agent for plans is offered %v before the apply", got)
	}
	for _, kinds := range [][]holdfast.RunKind{nil, {holdfast.RunApply, holdfast.RunDestroy}} {
		if diff := differ([]string{"run-0002"}, offered(kinds...)); diff != "" {
			t.Errorf("offered for %v (-want +got):\n%s", kinds, diff)
		}
	}
}

// testUnlocksGoFirst: what releases a lock goes before all else with that state, also before
// what writes, and is offered to agents for plans.
func testUnlocksGoFirst(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	plan, unlock, apply := newRun(1), newRun(2), newRun(3)
	unlock.Kind, apply.Kind = holdfast.RunUnlock, holdfast.RunApply
	unlock.State = &holdfast.StateJob{Action: holdfast.StateUnlock, LockID: "left"}
	unlock.PullRequest, plan.PullRequest = holdfast.PullRequestRef{Repo: "fleet", Number: 7}, holdfast.PullRequestRef{Repo: "fleet", Number: 7}
	plan.StateLocation, unlock.StateLocation = "s3:b/k", "s3:b/k"
	create(t, store, plan, unlock, apply)
	offered := func(filter holdfast.ClaimFilter) []string {
		filter.Now, filter.Limit = noon, 10
		return must[[]string](t)(store.Claimable(ctx, filter))
	}
	plans := []holdfast.RunKind{holdfast.RunPlan, holdfast.RunUnlock}
	for name, test := range map[string]struct {
		filter holdfast.ClaimFilter
		want   []string
	}{
		"all":                 {holdfast.ClaimFilter{}, []string{"run-0002", "run-0003"}},
		"plans":               {holdfast.ClaimFilter{Kinds: plans}, []string{"run-0002"}},
		"applies":             {holdfast.ClaimFilter{Kinds: []holdfast.RunKind{holdfast.RunApply, holdfast.RunState}}, []string{"run-0003"}},
		"plans, not of forks": {holdfast.ClaimFilter{Kinds: plans, Unplanned: []holdfast.PullRequestRef{plan.PullRequest}}, nil},
	} {
		if diff := differ(test.want, offered(test.filter)); diff != "" {
			t.Errorf("Claimable(%s) (-want +got):\n%s", name, diff)
		}
	}

	waits := newRun(4) // for that lock, as its pull request was merged
	waits.Kind, waits.StateLocation = holdfast.RunApply, "s3:b/k"
	create(t, store, waits)
	for name, kinds := range map[string][]holdfast.RunKind{"plans": plans, "all": nil} {
		got := offered(holdfast.ClaimFilter{Kinds: kinds})
		if !slices.Contains(got, unlock.ID) || slices.Contains(got, waits.ID) || slices.Contains(got, plan.ID) {
			t.Errorf("where an apply waits for the lock, %s are offered %v, want %s alone of its state", name, got, unlock.ID)
		}
	}
}

func testIssues(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	issue := outgoing.Post{Key: "issue:drift:prod-eu", Kind: outgoing.PostIssue, Repo: "fleet", Title: "Drift in prod-eu", Body: "2 changed"}
	want(t, store, issue)
	post := func() outgoing.Post {
		t.Helper()
		claimed := claimPosts(t, store, noon)
		if len(claimed) != 1 {
			t.Fatalf("ClaimPosts() = %+v, want the issue", claimed)
		}
		claimed[0].ExternalID = "12"
		posted(t, store, claimed[0], noon)
		return claimed[0]
	}
	if got := post(); got.Title != issue.Title || got.Closed || got.Body != issue.Body || got.Repo != "fleet" {
		t.Errorf("ClaimPosts() = %+v", got)
	}
	want(t, store, issue)
	if got := claimPosts(t, store, noon); len(got) != 0 {
		t.Errorf("ClaimPosts() of an issue that is as it was = %+v", got)
	}
	issue.Closed = true
	want(t, store, issue)
	if got := post(); !got.Closed || got.ExternalID != "12" || got.Wanted != 2 {
		t.Errorf("ClaimPosts() of an issue that is to be closed = %+v", got)
	}
	issue.Title = "Drift in prod"
	want(t, store, issue)
	post()
	if got := must[outgoing.Post](t)(store.Post(ctx, issue.Key)); got.Title != issue.Title || !got.Closed || got.Posted != 3 {
		t.Errorf("Post() = %+v", got)
	}
}
