package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// definesRunners lets the repository define runners whose names do not begin with "no-", below
// runners/.
func definesRunners(o *reconciler.Options) {
	o.Sources.Repositories[0].Runners = []string{"runners/**"}
	o.Grants.Runners = reconciler.RunnerGrants{
		Allow: func(repo string, doc runnerdoc.Document) error {
			if strings.HasPrefix(doc.Name(), "no-") {
				return fmt.Errorf("%s may not define %s", repo, doc.Name())
			}
			return nil
		},
		Documents: runnerdoc.Options{Secrets: []string{"eu-kubeconfig"}},
	}
}

func remote(name string, more ...string) string {
	return fmt.Sprintf("apiVersion: holdfast.dev/v1\nkind: Runner\nmetadata: {name: %s}\nspec:\n  type: remote\n%s", name, indent(more))
}

func rule(name, spec string) string {
	return fmt.Sprintf("apiVersion: holdfast.dev/v1\nkind: RunnerRule\nmetadata: {name: %s}\nspec: %s\n", name, spec)
}

// claimAt hands the next run of a runner to an agent of it.
func (f *fleet) claimAt(runner string) protocol.Assignment {
	f.t.Helper()
	a, err := f.r.Dispatcher().Claim(f.t.Context(), protocol.ClaimRequest{Agent: "agent-" + runner, Runner: runner})
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		f.t.Fatal(err)
	}
	return a
}

// pins tells which environment has which runner, by which rule.
func (f *fleet) pins() (out []string) {
	f.t.Helper()
	environments, err := f.store.Environments(f.t.Context(), holdfast.EnvironmentFilter{})
	f.must(err)
	for _, env := range environments {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", env.EnvironmentKey, env.Runner, env.Rule)))
	}
	return out
}

// inForce tells the runners and rules on record, with what is wrong with each.
func (f *fleet) inForce() (out []string) {
	f.t.Helper()
	runners, err := f.store.Runners(f.t.Context())
	f.must(err)
	rules, err := f.store.RunnerRules(f.t.Context())
	f.must(err)
	for _, rec := range runners {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s max %d %s", rec.Document.Name, rec.Document.MaxRuns, rec.Faults.Error())))
	}
	for _, rec := range rules {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s: %s/%s to %s %s",
			rec.Document.Name, rec.Document.Project, rec.Document.Environment, rec.Document.Runner, rec.Faults.Error())))
	}
	return out
}

func (f *fleet) expect(what string, got []string, want ...string) {
	f.t.Helper()
	if !slices.Equal(got, want) {
		f.t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRunnersStory: a rule sends an environment to a runner, whose agents alone get its runs. A
// pull request that changes the rule says whom a refresh would move, moves nobody, and the
// refresh does.
func TestRunnersStory(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/preprod.yaml"] = strings.Replace(document("preprod"), "environment: e", "environment: test", 1)
	files["runners/eu.yaml"] = remote("eu", "maxRuns: 5") + "---\n" + remote("us")
	files["runners/rules.yaml"] = rule("test", "{project: p, environment: test, runner: eu}")
	f := newFleet(t, files, definesRunners)
	f.look()
	f.expect("in force", f.inForce(), "eu max 5", "us max 0", "test: p/test to eu")
	f.expect("pins", f.pins(), "p/e local", "p/test eu test")

	if a := f.claimAt("us"); a.Run != "" {
		t.Errorf("an agent of another runner got %s", a.Run)
	}
	if a := f.claimAt("eu"); a.Cluster != "preprod" {
		t.Errorf("the agent of eu got %+v", a)
	} else {
		f.finish(a, protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"})
	}
	if a := f.claimAt("local"); a.Cluster != "prod" {
		t.Errorf("the local agent got %+v", a)
	} else {
		f.finish(a, protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"})
	}

	f.open(1, map[string]string{"runners/rules.yaml": rule("test", "{project: p, environment: test, runner: us}")})
	f.post()
	for _, want := range []string{
		"it changes 1 runner rule", "Rule `test` is changed. No environment moves now. `holdfast refresh runner` would have another result for:",
		"`p/test` from `eu` to `us`: 1 cluster, `preprod`",
	} {
		if !strings.Contains(f.forge.comment(1), want) {
			t.Errorf("the comment does not say %q:\n%s", want, f.forge.comment(1))
		}
	}
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
		t.Errorf("the status is %s", got)
	}
	f.merge(1, byMerge)
	f.expect("pins after the merge", f.pins(), "p/e local", "p/test eu test")

	key := holdfast.EnvironmentKey{Project: "p", Name: "test"}
	before, after, err := f.r.RefreshRunner(t.Context(), key, true, "alice")
	f.must(err)
	if before.Runner != "eu" || after.Runner != "us" {
		t.Errorf("a dry refresh says %+v, %+v", before, after)
	}
	f.expect("pins after a dry refresh", f.pins(), "p/e local", "p/test eu test")
	_, err = f.r.CheckDrift(t.Context(), "preprod", "alice")
	f.must(err)
	running := f.claimAt("eu")
	if running.Cluster != "preprod" {
		t.Fatalf("the check was not handed out: %+v", running)
	}
	var busy *holdfast.EnvironmentBusyError
	if _, _, err := f.r.RefreshRunner(t.Context(), key, false, "alice"); !errors.As(err, &busy) || busy.Run != running.Run {
		t.Errorf("a refresh while a run is running is %v", err)
	}
	f.finish(running, protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"})
	_, _, err = f.r.RefreshRunner(t.Context(), key, false, "alice")
	f.must(err)
	f.expect("pins after the refresh", f.pins(), "p/e local", "p/test us test")
	_, err = f.r.CheckDrift(t.Context(), "preprod", "alice")
	f.must(err)
	if a := f.claimAt("eu"); a.Run != "" {
		t.Errorf("the former runner got %s", a.Run)
	}
	if a := f.claimAt("us"); a.Cluster != "preprod" {
		t.Errorf("the new runner got %+v", a)
	}
	if _, _, err := f.r.RefreshRunner(t.Context(), holdfast.EnvironmentKey{Project: "p", Name: "e"}, true, "alice"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("a refresh without a rule is %v", err)
	}
}

// movingStore has something happen between the look at the queue and the claim.
type movingStore struct {
	reconciler.Store
	meanwhile func()
}

func (s *movingStore) Claimable(ctx context.Context, filter holdfast.ClaimFilter) ([]string, error) {
	ids, err := s.Store.Claimable(ctx, filter)
	if len(ids) > 0 {
		call(&s.meanwhile)
	}
	return ids, err
}

// TestRefreshBesideALaunch: an environment moves while its former runner is about to launch one of
// its runs. That is the new one's: it has the credentials and the network.
func TestRefreshBesideALaunch(t *testing.T) {
	t.Parallel()
	store := &movingStore{}
	files := twoClusters()
	files["runners/eu.yaml"] = remote("eu") + "---\n" + remote("us")
	files["runners/rules.yaml"] = rule("all", "{project: p, environment: e, runner: eu}")
	f := newFleet(t, files, definesRunners, func(o *reconciler.Options) { store.Store, o.Store = o.Store, store })
	f.look()
	f.expect("pins", f.pins(), "p/e eu all")
	f.repo.Commit(master, "move", map[string]string{"runners/rules.yaml": rule("all", "{project: p, environment: e, runner: us}")})
	f.look()
	store.meanwhile = func() {
		_, _, err := f.r.RefreshRunner(t.Context(), holdfast.EnvironmentKey{Project: "p", Name: "e"}, false, "alice")
		f.must(err)
	}
	launches := dispatch.Launches{Dispatcher: f.r.Dispatcher()}
	if run, _, err := launches.ClaimLaunch(t.Context(), "eu", ""); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("the former runner gets run %s of runner %s: %v", run.ID, run.Runner, err)
	}
	if run, _, err := launches.ClaimLaunch(t.Context(), "us", ""); err != nil || run.Runner != "us" {
		t.Errorf("the new runner gets %+v, %v", run, err)
	}
}

// TestRunnersLastGood: what becomes wrong or goes while it is needed leaves the last good
// document in force, and is told at the pull request, on the record and in the audit trail.
func TestRunnersLastGood(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["runners/all.yaml"] = remote("eu", "maxRuns: 5") + "---\n" + remote("us") + "---\n" + rule("all", "{runner: eu}")
	f := newFleet(t, files, definesRunners)
	f.look()
	f.expect("pins", f.pins(), "p/e eu all")

	bad := remote("eu", "maxRuns: 0") + "---\n" + strings.Replace(remote("us"), "remote", "kubernetes-agent", 1) +
		"  job: {namespace: a, planServiceAccount: b, applyServiceAccount: c}\n---\n" +
		rule("all", "{runner: eu}") + "---\n" + rule("again", "{runner: us}") + "---\n" + rule("lost", "{project: x, runner: ue}") + "---\n" + remote("no-where")
	f.open(1, map[string]string{"runners/all.yaml": bad})
	f.post()
	want := []string{
		"runners/all.yaml:6:12: spec.maxRuns must be a whole number of at least 1, not the number 0 (leave it out for no limit)",
		`runners/all.yaml:12:9: the type of runner "us" is remote and cannot become kubernetes-agent (define a runner with another name, and move environments there: holdfast refresh runner)`,
		"runners/all.yaml:22:18: two rules are about all environments: also the one at runners/all.yaml:17:18 (keep one)",
		`runners/all.yaml:28:28: there is no runner "ue" (did you mean "eu"?)`,
		"runners/all.yaml:32:18: infra may not define no-where (allow it under repositories[].allow in holdfast.yaml, or move the document)",
	}
	f.expect("faults of the pull request", strings.Split(f.pullRequest(1).Faults.Error(), "\n"), want...)
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusFailure {
		t.Errorf("the status is %s", got)
	}

	f.merge(1, byMerge)
	f.expect("in force after the bad merge", f.inForce(),
		"eu max 5 "+want[0], "us max 0 "+want[1], "all: / to eu")
	if faults := f.r.RunnerFaults(); len(faults) != 1 || !strings.Contains(faults[0], infra) {
		t.Errorf("faults of the server are %q", faults)
	}

	// Mended; and then the runner that is needed goes, with one that is not.
	f.repo.Commit(master, "mended", map[string]string{"runners/all.yaml": files["runners/all.yaml"]})
	f.look()
	f.expect("in force after the mend", f.inForce(), "eu max 5", "us max 0", "all: / to eu")
	if faults := f.r.RunnerFaults(); len(faults) > 0 {
		t.Errorf("faults after the mend are %q", faults)
	}
	f.open(2, map[string]string{"runners/all.yaml": "# nothing\n"})
	f.merge(2, byMerge)
	const gone = `runners/all.yaml: runner "eu" cannot be removed and stays in force: it has 1 environment, p/e ` +
		`(for each: have a rule give it another runner, or delete its clusters; then holdfast refresh runner p/e)`
	f.expect("in force after the removal", f.inForce(), "eu max 5 "+gone)
	if got := f.pullRequest(2).Faults.Error(); got != gone {
		t.Errorf("faults of the removal are %q", got)
	}
	var trail []string
	entries, err := f.store.AuditTrail(t.Context(), "", 50)
	f.must(err)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Action, "runner") {
			trail = append(trail, entry.Action+" "+entry.Object)
		}
	}
	slices.Sort(trail)
	f.expect("audit trail", slices.Compact(trail), "runner.create eu", "runner.create us", "runner.refuse eu", "runner.refuse us",
		"runner.remove us", "runnerrule.create all", "runnerrule.remove all")
}

// TestRunnersAreProposed: a document is written and proposed by a pull request, and what
// would be wrong with it is said instead.
func TestRunnersAreProposed(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["runners/alone.yaml"] = "---\n" + remote("alone")
	files["runners/all.yaml"] = "# Ours.\n" + remote("eu", "# how many", "maxRuns: 5") + "---\n" + remote("us")
	f := newFleet(t, files, definesRunners)
	f.look()
	propose := func(p proposals.RunnerChange) (proposals.RunnerOutcome, error) {
		p.By = "alice"
		return f.r.ProposeRunner(context.WithoutCancel(t.Context()), p)
	}
	for name, tc := range map[string]struct {
		p    proposals.RunnerChange
		path string
		want string
	}{
		"create": {
			proposals.RunnerChange{Name: "new", Change: "create", Type: runnerspec.Remote, Set: []string{"maxRuns=3"}},
			"runners/new.yaml",
			"apiVersion: holdfast.dev/v1\nkind: Runner\nmetadata:\n  name: new\nspec:\n  type: remote\n  maxRuns: 3\n",
		},
		"create in a file that is there": {
			proposals.RunnerChange{Name: "new", Change: "create", Document: remote("new"), Path: "runners/all.yaml"},
			"runners/all.yaml",
			files["runners/all.yaml"] + "---\n" + remote("new"),
		},
		"update": {
			proposals.RunnerChange{Name: "us", Change: "update", Set: []string{"maxRuns=7"}},
			"runners/all.yaml",
			strings.TrimSuffix(files["runners/all.yaml"], remote("us")) + "apiVersion: holdfast.dev/v1\nkind: Runner\nmetadata: {name: us}\nspec:\n  type: remote\n  maxRuns: 7\n",
		},
		"update of a commented one": {
			proposals.RunnerChange{Name: "eu", Change: "update", Set: []string{"maxRuns="}},
			"runners/all.yaml",
			"# Ours.\napiVersion: holdfast.dev/v1\nkind: Runner\nmetadata: {name: eu}\nspec:\n  type: remote\n---\n" + remote("us"),
		},
		"delete the only one of a file": {
			proposals.RunnerChange{Name: "alone", Change: "delete"}, "runners/alone.yaml", "",
		},
		"delete": {
			proposals.RunnerChange{Name: "us", Change: "delete"},
			"runners/all.yaml",
			strings.TrimSuffix(files["runners/all.yaml"], "---\n"+remote("us")),
		},
	} {
		made, err := propose(tc.p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		proposal := f.forge.proposals[made.PullRequest.Branch]
		if data, named := proposal.Files[tc.path]; !named || data == nil != (tc.want == "") {
			t.Errorf("%s: %q is %q", name, tc.path, data)
		}
		if got := string(proposal.Files[tc.path]); got != tc.want || made.Path != tc.path || !strings.Contains(proposal.Message, "alice") {
			t.Errorf("%s: %s is\n%s\nwant\n%s", name, made.Path, got, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		p    proposals.RunnerChange
		want string
	}{
		"there already": {proposals.RunnerChange{Name: "eu", Change: "create", Type: runnerspec.Remote}, "already exists"},
		"not there":     {proposals.RunnerChange{Name: "asia", Change: "update", Set: []string{"maxRuns=1"}}, "not found"},
		"wrong value":   {proposals.RunnerChange{Name: "eu", Change: "update", Set: []string{"maxRuns=-1"}}, "spec.maxRuns must be a whole number"},
		"wrong key":     {proposals.RunnerChange{Name: "eu", Change: "update", Set: []string{"maxruns=1"}}, `did you mean "maxRuns"?`},
		"another type":  {proposals.RunnerChange{Name: "eu", Change: "update", Set: []string{"type=serverless-ecs"}}, "cannot become"},
		"elsewhere":     {proposals.RunnerChange{Name: "new", Change: "create", Type: runnerspec.Remote, Path: "clusters/new.yaml"}, "name a path"},
		"another name":  {proposals.RunnerChange{Name: "new", Change: "create", Document: remote("other")}, "with the name new"},
		"no name":       {proposals.RunnerChange{Name: "No", Change: "create", Type: runnerspec.Remote}, "cannot be the name"},
		"not allowed":   {proposals.RunnerChange{Name: "no-where", Change: "create", Type: runnerspec.Remote}, "may not define"},
	} {
		if _, err := propose(tc.p); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// TestRulesComeFirst: after a start, clusters do not run before the rules of another repository
// are known, which say where: a first run pins its environment.
func TestRulesComeFirst(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"README.md": "hello"}, definesRunners)
	second, look := withOther(t, f)
	f.repo.Commit(master, "clusters", twoClusters())
	second.Commit(master, "runners", map[string]string{"runners/all.yaml": remote("eu") + "---\n" + rule("all", "{runner: eu}")})
	f.restart(func(o *reconciler.Options) {
		o.Sources.Repositories[0].Runners, o.Sources.Repositories[1].Runners = nil, []string{"runners/**"}
	})
	f.look()
	f.expect("pins before the rules are known", f.pins())
	look()
	f.look()
	f.expect("pins", f.pins(), "p/e eu all")
}

// TestFormerPlacesOfARunner: a document that gives a runner another namespace leaves on record
// where its Jobs were, and a fault or a mend of it keeps that.
func TestFormerPlacesOfARunner(t *testing.T) {
	t.Parallel()
	in := func(namespace, more string) string {
		return strings.Replace(remote("eu", "keys: []"), "remote\n  keys: []", "kubernetes-agent\n  job: {namespace: "+namespace+", planServiceAccount: b, applyServiceAccount: c"+more+"}", 1)
	}
	files := twoClusters()
	files["runners/eu.yaml"] = in("one", "")
	f := newFleet(t, files, definesRunners)
	f.look()
	edit := func(text string, want ...string) {
		t.Helper()
		f.repo.Commit(master, "edit", map[string]string{"runners/eu.yaml": text})
		f.look()
		rec, err := f.store.Runner(t.Context(), "eu")
		f.must(err)
		var got []string
		for _, former := range rec.Former {
			got = append(got, former.Document.Job.Namespace)
		}
		f.expect("former places", got, want...)
	}
	edit(in("one", ", image: other"))
	edit(in("two", ""), "one")
	edit(in("two", ", imaginary: 1"), "one")
	edit(in("two", ", image: other"), "one")
	edit(in("one", ""), "two")
}
