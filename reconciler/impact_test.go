package reconciler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/rollout"
)

// shop is a template with a variable, whose module gets another text per release.
func shop(version, text string, schema ...string) map[string]string {
	if len(schema) == 0 {
		schema = []string{"size: {type: integer, default: 1}"}
	}
	return map[string]string{
		"templates/web/template.yaml": fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: web, version: %s}
spec:
  providers:
    any:
      modules:
        - {name: site, source: ./modules/site, inputs: {size: "${var.size}"}}
    other:
      modules:
        - {name: page, source: ./modules/page}
  variables:
    type: object
    additionalProperties: false
    properties:
      %s
`, version, strings.Join(schema, "\n      ")),
		"templates/web/modules/site/main.tf": "variable \"size\" {\n  type = number\n}\n" + module(text),
		"templates/web/modules/page/main.tf": module("page"),
	}
}

// ofShop is a cluster of a released template.
func ofShop(name, provider, template string, variables ...string) string {
	return fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: %s}
spec:
  project: p
  environment: e
  template: %s
  provider: %s
  variables: {%s}
`, name, template, provider, strings.Join(variables, ", "))
}

// newShops is a fleet of five clusters on version 1.0.0, adopted.
func newShops(t *testing.T, with ...func(*reconciler.Options)) *fleet {
	t.Helper()
	files := shop("1.0.0", "one")
	for _, name := range []string{"shop-a", "shop-b"} {
		files["clusters/"+name+".yaml"] = ofShop(name, "any", "{name: web, version: 1.0.0}")
	}
	files["clusters/shop-c.yaml"] = ofShop("shop-c", "any", `{name: web, version: 1.0.0, upgrades: "~> 1.0"}`, "size: 1")
	files["clusters/shop-d.yaml"] = ofShop("shop-d", "other", "{name: web, version: 1.0.0}")
	files["clusters/prod.yaml"], files["infra/prod/main.tf"] = document("prod"), module("one")
	f := newFleet(t, files, with...)
	f.repo.Tag("v1.0.0", master)
	f.adopt()
	return f
}

func (f *fleet) impact(number int) rollout.Impact {
	f.t.Helper()
	impacts, err := f.store.Impacts(f.t.Context(), holdfast.PullRequestRef{Repo: infra, Number: number})
	f.must(err)
	if len(impacts) != 1 {
		f.t.Fatalf("%d impacts, want one", len(impacts))
	}
	return impacts[0]
}

// samples are the clusters that a pull request plans to show its change.
func (f *fleet) samples(number int) []string {
	f.t.Helper()
	var names []string
	for _, c := range f.pullRequest(number).Clusters {
		if c.Sample {
			names = append(names, c.Name)
		}
	}
	return names
}

func reachOf(impact rollout.Impact) map[string]string {
	out := make(map[string]string)
	for i, g := range impact.Groups {
		for _, c := range g.Clusters {
			out[c.Name] = fmt.Sprintf("%d %s", i, c.Reach)
		}
	}
	return out
}

func TestATemplateChangeIsAssessed(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	impact := f.impact(1)
	if impact.Released != "1.0.0" || impact.Version != "1.1.0" || impact.Same != 1 || impact.Fault != "" || len(impact.Refused) > 0 {
		t.Errorf("impact %+v", impact)
	}
	want := map[string]string{"shop-c": "0 upgrade", "shop-a": "0 manual", "shop-b": "0 manual"}
	if got := reachOf(impact); !maps.Equal(got, want) {
		t.Errorf("groups and reach %v, want %v", got, want)
	}
	if got := impact.Groups[0].Changes; !slices.Equal(got, []string{"1 file of templates/web/modules/site"}) {
		t.Errorf("changes of the root module: %q", got)
	}
	// One stands for all, and its plan is of the new template, at its own state.
	if got := f.samples(1); !slices.Equal(got, []string{"shop-c"}) {
		t.Fatalf("samples %v", got)
	}
	f.expectRuns("shop-a", "plan no_changes")
	a := f.claim()
	run, err := f.store.Run(t.Context(), a.Run)
	f.must(err)
	if a.Cluster != "shop-c" || !run.Sample || run.Kind != holdfast.RunPlan || !strings.HasPrefix(run.Template, "web@1.1.0") || run.StateLocation != "clusters/shop-c" {
		t.Errorf("the run is %+v", run)
	}
	f.finish(a, planned(a))
	f.post()
	if again := f.claim(); again.Run != "" {
		t.Errorf("more runs: %s of %s", again.Kind, again.Cluster)
	}
	if status := f.forge.status(f.pullRequest(1).Head, holdfast.ContextPlan); status != holdfast.StatusSuccess {
		t.Errorf("status %s", status)
	}
	if comment := f.comment(1); !strings.Contains(comment, "shop-c") || !strings.Contains(comment, "1.1.0") {
		t.Errorf("comment:\n%s", comment)
	}
}

func TestAMergedTemplateMovesNoCluster(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	f.executeAll(planned)
	f.merge(1, byMerge)
	f.executeAll(good)
	for _, name := range []string{"shop-a", "shop-b", "shop-c", "shop-d", "prod"} {
		rec := f.cluster(name)
		if rec.Applied.SourceDigest != rec.Desired.SourceDigest || rec.Waiting != "" {
			t.Errorf("%s: desired %s, applied %s, waits for %q", name, rec.Desired.SourceDigest.Short(), rec.Applied.SourceDigest.Short(), rec.Waiting)
		}
		for _, run := range f.runs(name) {
			if strings.HasPrefix(run, "apply") {
				t.Errorf("%s: %s", name, run)
			}
		}
	}
	if status := f.forge.status(f.pullRequest(1).MergeCommit, holdfast.ContextApply); status == holdfast.StatusFailure || status == holdfast.StatusPending {
		t.Errorf("apply status %s", status)
	}
}

// A sample's plan is nobody's review, even if the cluster's own pull request then
// comes to the very same.
func TestASampleReviewsNothing(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	f.executeAll(planned)
	f.merge(1, byMerge)
	f.repo.Tag("v1.1.0", master)
	f.repo.Commit(master, "directly", map[string]string{
		"clusters/shop-c.yaml": ofShop("shop-c", "any", `{name: web, version: 1.1.0, upgrades: "~> 1.0"}`, "size: 3"),
	})
	f.look()
	f.executeAll(good)
	if rec := f.cluster("shop-c"); rec.Waiting != holdfast.ReasonUnreviewed || rec.Applied.SourceDigest == rec.Desired.SourceDigest {
		t.Errorf("shop-c waits for %q", rec.Waiting)
	}
}

func TestBreakingChangesAreAFaultUnlessTheVersionSaysSo(t *testing.T) {
	t.Parallel()
	for version, fault := range map[string]bool{"1.1.0": true, "1.0.1": true, "2.0.0": false} {
		f := newShops(t)
		f.open(1, shop(version, "one", "size: {type: integer, default: 2, minimum: 2}"))
		impact := f.impact(1)
		if len(impact.Refused) != 1 || impact.Refused[0].Name != "shop-c" {
			t.Fatalf("%s: refused %+v", version, impact.Refused)
		}
		at := impact.Refused[0].Faults[0]
		if at.File != "clusters/shop-c.yaml" || at.Line != 9 || !strings.Contains(at.Message, "at least 2") {
			t.Errorf("%s: fault %s", version, at.Error())
		}
		if (impact.Fault != "") != fault {
			t.Errorf("%s: fault %q", version, impact.Fault)
		}
		f.executeAll(planned)
		status := f.forge.status(f.pullRequest(1).Head, holdfast.ContextPlan)
		if want := map[bool]holdfast.StatusState{true: holdfast.StatusFailure, false: holdfast.StatusSuccess}[fault]; status != want {
			t.Errorf("%s: status %s", version, status)
		}
	}
}

func TestABrokenTemplateIsAFaultOfItsPullRequest(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	files := shop("1.1.0", "two")
	files["templates/web/template.yaml"] = strings.Replace(files["templates/web/template.yaml"], "./modules/site", "./modules/sight", 1)
	f.open(1, files)
	f.executeAll(planned)
	if got := f.pullRequest(1).Faults; len(got) != 1 || got[0].File != "templates/web/template.yaml" || got[0].Line == 0 {
		t.Errorf("faults %v", got)
	}
	if status := f.forge.status(f.pullRequest(1).Head, holdfast.ContextPlan); status != holdfast.StatusFailure {
		t.Errorf("status %s", status)
	}
	f.push(1, shop("1.1.0", "two"))
	if got := f.pullRequest(1).Faults; len(got) > 0 || f.impact(1).Template != "web" {
		t.Errorf("faults after the repair: %v", got)
	}
}

func TestPlanAllPlansAllThatWouldChange(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	f.executeAll(planned)
	f.r.CommandStored()
	c, err := f.r.Command(t.Context(), holdfast.Command{
		PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 1}, Author: "alice", Trusted: true,
		Verb: holdfast.VerbPlan, All: true, Text: "/holdfast plan --all",
	})
	f.must(err)
	if c.Status != holdfast.CommandDone {
		t.Fatalf("refused: %s", c.Reply)
	}
	f.settle()
	f.executeAll(planned)
	if got := f.samples(1); !slices.Equal(got, []string{"shop-c", "shop-a", "shop-b"}) {
		t.Errorf("samples %v", got)
	}
	f.expectRuns("shop-b", "plan no_changes", "plan planned")
	f.expectRuns("shop-d", "plan no_changes")
}

// What is made from the template's folder is planned on its own, and represents nobody
// who names a version.
func TestFolderIsNotAVersion(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.repo.Commit(master, "a lab", map[string]string{"clusters/lab.yaml": ofShop("lab", "any", "{path: ../templates/web}")})
	f.look()
	f.open(2, shop("1.1.0", "two"))
	if got := reachOf(f.impact(2)); got["lab"] != "0 merge" || got["shop-c"] != "0 upgrade" {
		t.Errorf("groups and reach %v", got)
	}
	if got := f.samples(2); !slices.Equal(got, []string{"shop-c"}) {
		t.Errorf("samples %v, want one of those that name a version", got)
	}
}

// Whoever commands something of a cluster that only the new template would change
// is told why nothing comes of it, and what does.
func TestCommandsAboutSamplesAreExplained(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	f.executeAll(planned)
	for _, tc := range []struct {
		verb    holdfast.Verb
		cluster string
		want    string
	}{
		{holdfast.VerbApply, "", "the merge applies nothing: clusters move when their documents name the new version"},
		{holdfast.VerbApply, "shop-c", `the merge does not change cluster "shop-c"; its plan only shows`},
		{holdfast.VerbPlan, "shop-a", "`/holdfast plan --all` plans all"},
		{holdfast.VerbPlan, "shop-d", `this pull request does not change cluster "shop-d"`},
		{holdfast.VerbPlan, "nobody", `this pull request does not change cluster "nobody"`},
	} {
		c := holdfast.Command{PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 1}, Author: "alice", Trusted: true, Verb: tc.verb}
		if tc.cluster != "" {
			c.Clusters = []string{tc.cluster}
		}
		c, err := f.r.Command(t.Context(), c)
		f.must(err)
		if c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, tc.want) {
			t.Errorf("%s %s: %s %q, want %q", tc.verb, tc.cluster, c.Status, c.Reply, tc.want)
		}
	}
}

func TestTheBudgetOfSamplesIsKept(t *testing.T) {
	t.Parallel()
	none := func(o *reconciler.Options) { o.Sources.Repositories[0].Samples = -1 }
	f := newShops(t, none)
	f.open(1, shop("1.1.0", "two"))
	if got := f.samples(1); len(got) > 0 {
		t.Errorf("samples %v, want none", got)
	}
	if got := len(f.impact(1).Groups); got != 1 {
		t.Errorf("%d groups", got)
	}
}

// Two templates that one pull request changes share its budget.
func TestTheBudgetOfSamplesIsOneForAllTemplates(t *testing.T) {
	t.Parallel()
	f := newShops(t, func(o *reconciler.Options) {
		o.Sources.Repositories[0].Samples = 1
		o.Sources.Repositories[0].Templates = map[string]string{"web": "templates/web", "second": "templates/second"}
	})
	second := func(files map[string]string) map[string]string {
		out := maps.Clone(files)
		for name, text := range files {
			if rest, is := strings.CutPrefix(name, "templates/web/"); is {
				out["templates/second/"+rest] = strings.Replace(text, "name: web", "name: second", 1)
			}
		}
		return out
	}
	files := second(shop("1.0.0", "one"))
	files["clusters/other.yaml"] = ofShop("other", "any", "{name: second, version: 1.0.0}")
	f.repo.Commit(master, "second", files)
	f.repo.Tag("second/v1.0.0", master)
	f.look()
	f.executeAll(good)
	f.open(1, second(shop("1.1.0", "two")))
	if got := f.samples(1); len(got) != 1 {
		t.Errorf("samples %v, want one", got)
	}
	f.restart(func(o *reconciler.Options) { o.Sources.Repositories[0].Samples = 2 })
	f.look()
	f.open(2, second(shop("1.1.0", "two")))
	if got := f.samples(2); !slices.Equal(got, []string{"other", "shop-c"}) {
		t.Errorf("samples %v, want one of each template", got)
	}
}

// Clusters of other environments than those that are named are not planned for a
// template's pull request, whatever it reaches.
func TestSamplesStayInTheirEnvironments(t *testing.T) {
	t.Parallel()
	f := newShops(t, func(o *reconciler.Options) { o.Sources.Repositories[0].SampleEnvironments = []string{"dev*"} })
	f.open(1, shop("1.1.0", "two"))
	if got := f.samples(1); len(got) > 0 {
		t.Errorf("samples %v of environment e", got)
	}
	if got := len(f.impact(1).Groups); got != 1 {
		t.Errorf("%d groups", got)
	}
	f.repo.Commit(master, "dev", map[string]string{
		"clusters/dev.yaml": strings.Replace(ofShop("shop-z", "any", "{name: web, version: 1.0.0}"), "environment: e", "environment: dev-1", 1),
	})
	f.look()
	f.executeAll(good)
	f.lookAt(1)
	if got := f.samples(1); !slices.Equal(got, []string{"shop-z"}) {
		t.Errorf("samples %v", got)
	}
}

// What does not change a template costs nothing, and a push that reverts the
// change leaves nothing behind.
func TestAnImpactGoesWithTheChange(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	f.push(1, shop("1.0.0", "one"))
	impacts, err := f.store.Impacts(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: 1})
	f.must(err)
	if len(impacts) > 0 || len(f.pullRequest(1).Clusters) > 0 {
		t.Errorf("impacts %+v, clusters %v", impacts, f.affected(1))
	}
}

// The sample stays the same while the pull request continues, as long as it is in
// the group: its reader compares.
func TestTheSampleStays(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	f.executeAll(planned)
	before := f.samples(1)
	f.repo.Commit(master, "another", map[string]string{"clusters/aa.yaml": ofShop("aa", "any", `{name: web, version: 1.0.0, upgrades: "~> 1.0"}`)})
	f.look()
	f.executeAll(planned)
	if got := f.samples(1); !slices.Equal(got, before) {
		t.Errorf("samples %v, before %v", got, before)
	}
	if got := reachOf(f.impact(1)); got["aa"] != "0 upgrade" {
		t.Errorf("the new cluster is not in the group: %v", got)
	}
}

// The clusters of other repositories are in it, at what their branches say now.
func TestTheImpactReachesOtherRepositories(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	second, lookAtOther := withOther(t, f)
	second.Commit(master, "a cluster", map[string]string{
		"clusters/far.yaml": ofShop("far", "any", `{name: web, version: 1.0.0, upgrades: "~> 1.0"}`),
	})
	lookAtOther()
	f.adopt()
	f.open(1, shop("1.1.0", "two"))
	if got := reachOf(f.impact(1)); got["far"] != "0 upgrade" {
		t.Fatalf("the cluster of the other repository is not in it: %v", got)
	}
	if got := f.samples(1); !slices.Equal(got, []string{"far"}) {
		t.Fatalf("samples %v", got)
	}
	a := f.claim()
	run, err := f.store.Run(t.Context(), a.Run)
	f.must(err)
	if run.Cluster != "far" || run.Repo != other || run.PullRequest.Repo != infra || !run.Sample {
		t.Errorf("the run is %+v", run)
	}
	f.finish(a, planned(a))

	// Its repository continues: the plan is made again, of what is there now.
	second.Commit(master, "bigger", map[string]string{
		"clusters/far.yaml": ofShop("far", "any", `{name: web, version: 1.0.0, upgrades: "~> 1.0"}`, "size: 9"),
	})
	lookAtOther()
	f.lookAt(1)
	again := f.claim()
	for again.Run != "" && again.Cluster == "far" && again.Kind == holdfast.RunPlan {
		next, err := f.store.Run(t.Context(), again.Run)
		f.must(err)
		f.finish(again, planned(again))
		if next.Sample {
			if next.SourceDigest == run.SourceDigest {
				t.Error("the second plan is of the same document")
			}
			return
		}
		again = f.claim()
	}
	t.Error("the sample was not planned again")
}

// What a change of code comes to hangs on the values that reach it: clusters that
// differ in one of these do not stand for one another.
func TestSamplesDifferInWhatReachesTheChange(t *testing.T) {
	t.Parallel()
	switches := []string{"size: {type: integer, default: 1}", "lit: {type: boolean, default: true}"}
	files := shop("1.0.0", "one", switches...)
	for name, variables := range map[string]string{
		"plain": "", "also-plain": "lit: false", "said-so": "size: 1, lit: true", "large": "size: 7", "larger": "size: 9",
	} {
		files["clusters/"+name+".yaml"] = ofShop(name, "any", "{name: web, version: 1.0.0}", variables)
	}
	f := newFleet(t, files)
	f.repo.Tag("v1.0.0", master)
	f.adopt()
	f.open(1, shop("1.1.0", "two", switches...))
	got := f.samples(1)
	slices.Sort(got)
	if want := []string{"also-plain", "large", "larger"}; !slices.Equal(got, want) {
		t.Errorf("samples %v, want %v; groups %v", got, want, reachOf(f.impact(1)))
	}
}
