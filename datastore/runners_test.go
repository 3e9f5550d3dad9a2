package datastore_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

func runnerRecord(repo, name string) runnerspec.Record {
	return runnerspec.Record{
		Document: runnerspec.Runner{Name: name, Type: runnerspec.Remote},
		Place:    runnerspec.DocumentPlace{Repo: repo, Path: "runners.yaml", Line: 1, Revision: "abc"},
	}
}

func ruleRecord(repo string, rule runnerspec.Rule) runnerspec.RuleRecord {
	return runnerspec.RuleRecord{Document: rule, Place: runnerspec.DocumentPlace{Repo: repo, Path: "runners.yaml", Line: 9, Revision: "abc"}}
}

func saveRunners(t testing.TB, store *datastore.Store, change runnerspec.Change) {
	t.Helper()
	if err := store.SaveRunners(t.Context(), change); err != nil {
		t.Fatal(err)
	}
}

// runIn is a run of a cluster in an environment of project shop.
func runIn(n int, environment string) holdfast.Run {
	run := newRun(n)
	run.Document.Project, run.Document.Environment = "shop", environment
	return run
}

// testRemovedRunners: a runner that has launched something is out of force once it is removed,
// and known for as long as something may be left; its name is free.
func testRemovedRunners(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	east, standing := runnerRecord("platform", "east"), runnerRecord("platform", "standing")
	east.Document.Type, east.Document.Job = runnerspec.Kubernetes, &runnerspec.Job{Namespace: "runs"}
	saveRunners(t, store, runnerspec.Change{Runners: []runnerspec.Record{east, standing}})
	saveRunners(t, store, runnerspec.Change{Gone: []string{"east", "standing"}})
	if got := must[[]runnerspec.Record](t)(store.Runners(ctx)); len(got) > 0 {
		t.Errorf("in force: %+v", got)
	}
	if _, err := store.Runner(ctx, "east"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Runner() of a removed one = %v", err)
	}
	removed := must[[]runnerspec.Record](t)(store.RemovedRunners(ctx))
	if len(removed) != 1 || removed[0].Document.Name != "east" || removed[0].RemovedAt.IsZero() {
		t.Fatalf("removed: %+v", removed)
	}
	again := runnerRecord("apps", "east")
	again.Document.Type, again.Document.Job = runnerspec.Kubernetes, &runnerspec.Job{Namespace: "elsewhere"}
	saveRunners(t, store, runnerspec.Change{Runners: []runnerspec.Record{again}})
	got := must[runnerspec.Record](t)(store.Runner(ctx, "east"))
	if got.Place.Repo != "apps" || len(got.Former) != 1 || got.Former[0].Document.Job.Namespace != "runs" {
		t.Errorf("the new one is %+v", got)
	}
	if left := must[[]runnerspec.Record](t)(store.RemovedRunners(ctx)); len(left) > 0 {
		t.Errorf("removed: %+v", left)
	}
}

func testRunners(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	if _, err := store.Runner(ctx, "eu"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Runner() of none = %v", err)
	}
	eu, us := runnerRecord("platform", "eu"), runnerRecord("platform", "us")
	rule := ruleRecord("platform", runnerspec.Rule{Name: "shop", Runner: "eu", Project: "shop"})
	saveRunners(t, store, runnerspec.Change{Runners: []runnerspec.Record{eu, us}, Rules: []runnerspec.RuleRecord{rule}})
	if diff := differ([]runnerspec.Record{eu, us}, must[[]runnerspec.Record](t)(store.Runners(ctx))); diff != "" {
		t.Errorf("Runners() (-want +got):\n%s", diff)
	}
	if diff := differ([]runnerspec.RuleRecord{rule}, must[[]runnerspec.RuleRecord](t)(store.RunnerRules(ctx))); diff != "" {
		t.Errorf("RunnerRules() (-want +got):\n%s", diff)
	}
	create(t, store, runIn(1, "prod"))

	other := runnerRecord("apps", "us")
	for name, change := range map[string]runnerspec.Change{
		"of another repository": {Runners: []runnerspec.Record{runnerRecord("platform", "asia"), other}},
		"a rule of another":     {Rules: []runnerspec.RuleRecord{ruleRecord("apps", rule.Document)}},
		"has an environment":    {Gone: []string{"us", "eu"}, GoneRules: []string{"shop"}},
		"has a rule":            {Gone: []string{"eu"}},
	} {
		if err := store.SaveRunners(ctx, change); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("SaveRunners(%s) = %v", name, err)
		}
	}
	if got := must[[]runnerspec.Record](t)(store.Runners(ctx)); len(got) != 2 {
		t.Errorf("after refusals the runners are %+v", got)
	}
	us.Document.MaxRuns = 3
	saveRunners(t, store, runnerspec.Change{Runners: []runnerspec.Record{us}, GoneRules: []string{"shop"}})
	if got := must[runnerspec.Record](t)(store.Runner(ctx, "us")); got.Document.MaxRuns != 3 {
		t.Errorf("the changed runner is %+v", got)
	}
	saveRunners(t, store, runnerspec.Change{Gone: []string{"us"}})
	if got := must[[]runnerspec.Record](t)(store.Runners(ctx)); len(got) != 1 || got[0].Document.Name != "eu" {
		t.Errorf("the runners are %+v", got)
	}
}

// testEnvironments: an environment is pinned by the most specific rule when it first runs, and
// stays where it is until it is refreshed, with the runs that wait.
func testEnvironments(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	rule := func(name, runner, project, environment string) runnerspec.RuleRecord {
		return ruleRecord("platform", runnerspec.Rule{Name: name, Runner: runner, Project: project, Environment: environment})
	}
	create(t, store, runIn(1, "prod")) // before there is a rule
	saveRunners(t, store, runnerspec.Change{
		Runners: []runnerspec.Record{runnerRecord("platform", "eu"), runnerRecord("platform", "us"), runnerRecord("platform", "any")},
		Rules: []runnerspec.RuleRecord{
			rule("all", "any", "", ""), rule("dev", "us", "", "dev"), rule("shop", "eu", "shop", ""), rule("shop-dev", "any", "shop", "dev"),
		},
	})
	for n, environment := range map[int]string{2: "prod", 3: "test", 4: "dev"} {
		create(t, store, runIn(n, environment))
	}
	elsewhere := newRun(5)
	elsewhere.Document.Project, elsewhere.Document.Environment = "blog", "dev"
	create(t, store, elsewhere)
	pins := func() (list []string) {
		for _, env := range must[[]holdfast.Environment](t)(store.Environments(ctx, holdfast.EnvironmentFilter{})) {
			if env.PinnedAt.IsZero() {
				t.Errorf("%+v was pinned at no time", env)
			}
			list = append(list, fmt.Sprintf("%s %s by %q", env.EnvironmentKey, env.Runner, env.Rule))
		}
		return list
	}
	want := []string{`blog/dev us by "dev"`, `shop/dev any by "shop-dev"`, `shop/prod local by ""`, `shop/test eu by "shop"`}
	if diff := differ(want, pins()); diff != "" {
		t.Errorf("environments (-want +got):\n%s", diff)
	}
	for id, want := range map[string]string{"run-0001": "local", "run-0002": "local", "run-0003": "eu", "run-0004": "any", "run-0005": "us"} {
		if run := must[holdfast.Run](t)(store.Run(ctx, id)); run.Runner != want {
			t.Errorf("%s is of runner %q, want %q", id, run.Runner, want)
		}
	}
	of := func(runner string) []string {
		t.Helper()
		claimable := must[[]string](t)(store.Claimable(ctx, holdfast.ClaimFilter{Now: noon.Add(time.Hour), Runner: runner, Limit: 10}))
		if some := must[bool](t)(store.AnyQueued(ctx, holdfast.ClaimFilter{Runner: runner})); some != (len(claimable) > 0) {
			t.Errorf("AnyQueued(%q) = %t, claimable are %v", runner, some, claimable)
		}
		var queued []string
		for _, entry := range must[[]holdfast.QueuedRun](t)(store.Queue(ctx, holdfast.QueueFilter{Now: noon, Runner: runner, Limit: 10})) {
			queued = append(queued, entry.Run.ID)
		}
		if diff := differ(queued, claimable); diff != "" {
			t.Errorf("of %q queued are (-), claimable are (+):\n%s", runner, diff)
		}
		slices.Sort(claimable)
		return claimable
	}
	for runner, want := range map[string][]string{
		"local": {"run-0001", "run-0002"}, "eu": {"run-0003"}, "us": {"run-0005"}, "asia": nil,
		"": {"run-0001", "run-0002", "run-0003", "run-0004", "run-0005"},
	} {
		if got := of(runner); !slices.Equal(got, want) {
			t.Errorf("of runner %q there wait %v, want %v", runner, got, want)
		}
	}
	if _, err := store.ClaimRun(ctx, "run-0003", protocol.AgentRef{ID: "agent", Runner: "us"}, noon, 0); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("ClaimRun() of another runner = %v", err)
	}

	// Rules move nobody; a refresh does, with what waits, unless something runs.
	prod := holdfast.EnvironmentKey{Project: "shop", Name: "prod"}
	refresh := func(dry bool) (before, after holdfast.Environment, err error) {
		return store.RefreshEnvironment(ctx, prod, dry)
	}
	before, after, err := refresh(true)
	if err != nil || before.Runner != "local" || after.Runner != "eu" || after.Rule != "shop" {
		t.Errorf("RefreshEnvironment(dry) = %+v, %+v, %v", before, after, err)
	}
	if got := pins()[2]; got != want[2] {
		t.Errorf("after a dry one it is %s", got)
	}
	running := must[holdfast.Run](t)(store.ClaimRun(ctx, "run-0001", protocol.AgentRef{ID: "agent", Runner: "local"}, noon, 0))
	var busy *holdfast.EnvironmentBusyError
	for _, dry := range []bool{true, false} {
		if _, _, err := refresh(dry); !errors.As(err, &busy) || busy.Run != "run-0001" {
			t.Errorf("RefreshEnvironment(%t) while one runs = %v", dry, err)
		}
	}
	end(t, store, running, holdfast.RunPlanned)
	if _, after, err = refresh(false); err != nil || after.Runner != "eu" {
		t.Errorf("RefreshEnvironment() = %+v, %v", after, err)
	}
	if got := of("eu"); !slices.Equal(got, []string{"run-0002", "run-0003"}) {
		t.Errorf("after the refresh there wait %v", got)
	}
	if again, _, err := refresh(false); err != nil || again != after {
		t.Errorf("RefreshEnvironment() again = %+v, %v", again, err)
	}
	saveRunners(t, store, runnerspec.Change{GoneRules: []string{"all", "shop"}})
	if _, _, err := refresh(false); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("RefreshEnvironment() without a rule = %v", err)
	}
	if _, _, err := store.RefreshEnvironment(ctx, holdfast.EnvironmentKey{Project: "shop", Name: "none"}, false); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("RefreshEnvironment() of none = %v", err)
	}
	if got := must[[]holdfast.Environment](t)(store.Environments(ctx, holdfast.EnvironmentFilter{Projects: []string{"shop"}, Runner: "eu"})); len(got) != 2 {
		t.Errorf("environments of shop at eu are %+v", got)
	}
}

// testDesertedEnvironments: an environment without clusters is freed by a refresh, and goes by the
// rules again; one with a cluster that is not deleted yet, or with a run that waits, is not.
func testDesertedEnvironments(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	key := holdfast.EnvironmentKey{Project: "shop", Name: "prod"}
	saveRunners(t, store, runnerspec.Change{
		Runners: []runnerspec.Record{runnerRecord("platform", "eu")},
		Rules:   []runnerspec.RuleRecord{ruleRecord("platform", runnerspec.Rule{Name: "all", Runner: "eu"})},
	})
	cluster := holdfast.ClusterRecord{
		Name: "c001", Owner: "fleet", Desired: holdfast.Desired{Document: holdfast.Cluster{Name: "c001", Project: key.Project, Environment: key.Name}},
	}
	cluster = save(t, store, cluster)
	run := runIn(1, key.Name)
	end(t, store, claimedRun(t, store, run), holdfast.RunPlanned)
	saveRunners(t, store, runnerspec.Change{GoneRules: []string{"all"}})

	if _, _, err := store.RefreshEnvironment(ctx, key, false); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("RefreshEnvironment() of one with a cluster and no rule = %v", err)
	}
	cluster.Deletion, cluster.Phase = &holdfast.Deletion{}, holdfast.PhaseDeleted
	save(t, store, cluster)
	waiting := runIn(2, key.Name)
	create(t, store, waiting)
	if _, _, err := store.RefreshEnvironment(ctx, key, false); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("RefreshEnvironment() of one with a run that waits = %v", err)
	}
	end(t, store, must[holdfast.Run](t)(store.ClaimRun(ctx, waiting.ID, protocol.AgentRef{ID: "agent", Runner: "eu"}, noon, 0)), holdfast.RunPlanned)
	for _, dry := range []bool{true, false} {
		before, after, err := store.RefreshEnvironment(ctx, key, dry)
		if err != nil || before.Runner != "eu" || after != (holdfast.Environment{EnvironmentKey: key}) {
			t.Errorf("RefreshEnvironment(%t) = %+v, %+v, %v", dry, before, after, err)
		}
	}
	if got := must[[]holdfast.Environment](t)(store.Environments(ctx, holdfast.EnvironmentFilter{})); len(got) > 0 {
		t.Errorf("environments are %+v", got)
	}
	saveRunners(t, store, runnerspec.Change{Gone: []string{"eu"}})
}

// TestEnvironmentsOfBefore: an environment that has run before there were runners is the local
// one's, whatever the rules say.
func TestEnvironmentsOfBefore(t *testing.T) {
	t.Parallel()
	path, ctx := filepath.Join(t.TempDir(), "holdfast.db"), t.Context()
	store := openAt(t, datastore.Options{Path: path})
	save(t, store, holdfast.ClusterRecord{
		Name: "applied", Owner: "fleet",
		Desired: holdfast.Desired{Document: holdfast.Cluster{Name: "applied", Project: "shop", Environment: "prod"}}, Applied: holdfast.Applied{Run: "gone"},
	})
	save(t, store, holdfast.ClusterRecord{
		Name: "c001", Owner: "fleet",
		Desired: holdfast.Desired{Document: holdfast.Cluster{Name: "c001", Project: "shop", Environment: "test"}},
	})
	save(t, store, holdfast.ClusterRecord{
		Name: "new", Owner: "fleet",
		Desired: holdfast.Desired{Document: holdfast.Cluster{Name: "new", Project: "shop", Environment: "new"}},
	})
	create(t, store, runIn(1, "test"))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, `DELETE FROM environments; INSERT INTO rebuilds (name) VALUES ('environments')`)
	store = openAt(t, datastore.Options{Path: path})
	var got []string
	for _, env := range must[[]holdfast.Environment](t)(store.Environments(ctx, holdfast.EnvironmentFilter{})) {
		got = append(got, env.String()+" "+env.Runner)
	}
	if want := []string{"shop/prod local", "shop/test local"}; !slices.Equal(got, want) {
		t.Errorf("environments are %v, want %v", got, want)
	}
}

// TestWritersPinAtOnce: of runs that are the first of an environment at the same time, all
// have the runner that it is pinned to, whatever becomes of the rules meanwhile.
func TestWritersPinAtOnce(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	saveRunners(t, w.Store, runnerspec.Change{Runners: []runnerspec.Record{runnerRecord("platform", "eu"), runnerRecord("platform", "us")}})
	var tasks []*task
	for n := range 20 {
		tasks = append(tasks, begin(func() error { return w.CreateRun(ctx, runIn(n, "prod")) }))
		rule := ruleRecord("platform", runnerspec.Rule{Name: "shop", Runner: []string{"eu", "us"}[n%2], Project: "shop"})
		tasks = append(tasks, begin(func() error {
			return w.SaveRunners(ctx, runnerspec.Change{Rules: []runnerspec.RuleRecord{rule}})
		}))
	}
	for _, k := range tasks {
		if err := k.wait(t); err != nil {
			t.Error(err)
		}
	}
	env := must[holdfast.Environment](t)(w.Environment(ctx, holdfast.EnvironmentKey{Project: "shop", Name: "prod"}))
	for n := range 20 {
		if run := must[holdfast.Run](t)(w.Run(ctx, runIn(n, "").ID)); run.Runner != env.Runner {
			t.Errorf("run %d is of runner %q, its environment of %q", n, run.Runner, env.Runner)
		}
	}
}

// TestWritersQueueWhileRefreshed: a run that is queued while its environment moves goes where
// that goes, and one that is claimed meanwhile is in its way.
func TestWritersQueueWhileRefreshed(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	key := holdfast.EnvironmentKey{Project: "shop", Name: "prod"}
	create(t, w.Store, runIn(1, "prod"))
	saveRunners(t, w.Store, runnerspec.Change{
		Runners: []runnerspec.Record{runnerRecord("platform", "eu")},
		Rules:   []runnerspec.RuleRecord{ruleRecord("platform", runnerspec.Rule{Name: "shop", Runner: "eu", Project: "shop"})},
	})
	// The refresh has its environment and waits for a run that it has to move.
	let := w.hold(`SELECT id FROM runs WHERE id = 'run-0001' FOR UPDATE`)
	refresh := begin(func() error { _, _, err := w.RefreshEnvironment(ctx, key, false); return err })
	if !w.blocked(refresh, 1) {
		t.Fatal("the refresh does not wait for the run")
	}
	queued := begin(func() error { return w.CreateRun(ctx, runIn(2, "prod")) })
	w.blocked(queued, 2)
	let()
	if err := errors.Join(refresh.wait(t), queued.wait(t)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"run-0001", "run-0002"} {
		if run := must[holdfast.Run](t)(w.Run(ctx, id)); run.Runner != "eu" {
			t.Errorf("%s is of runner %q", id, run.Runner)
		}
	}
}
