package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/rollout"
)

// farShop is the file of a cluster of template web in another repository.
func farShop(name string, variables ...string) map[string]string {
	return map[string]string{
		"clusters/" + name + ".yaml": ofShop(name, "any", `{name: web, version: 1.0.0, upgrades: "~> 1.0"}`, variables...),
	}
}

// A sample has the credentials of the project and environment that its document
// names, and reads its state: a document that its repository may not define is not
// sampled, whoever opens a pull request on the template.
func TestSamplesAreHeldToWhatTheirRepositoriesMayDefine(t *testing.T) {
	t.Parallel()
	f := newShops(t, func(o *reconciler.Options) {
		o.Grants.Allow = func(repo string, c holdfast.Cluster, _ string) error {
			if repo == other && c.Name == "thief" {
				return errors.New("not yours")
			}
			return nil
		}
	})
	second, lookAtOther := withOther(t, f)
	files := farShop("thief")
	maps.Copy(files, farShop("shop-a", "size: 8")) // this name and the next one belong to the other repository
	maps.Copy(files, farShop("prod"))
	second.Commit(master, "thieves", files)
	lookAtOther()
	f.open(1, shop("1.1.0", "two"))
	reach := reachOf(f.impact(1))
	want := map[string]string{"shop-c": "0 upgrade", "shop-a": "0 manual", "shop-b": "0 manual"}
	if !maps.Equal(reach, want) {
		t.Errorf("groups and reach: %v, want %v", reach, want)
	}
	f.planAll(1)
	for _, c := range f.pullRequest(1).Clusters {
		if c.Repo != infra || c.Name == "thief" {
			t.Errorf("sample of %s of %s", c.Name, c.Repo)
		}
	}
	f.executeAll(planned)
	if runs := f.runs("thief"); slices.ContainsFunc(runs, func(run string) bool { return strings.HasPrefix(run, "plan") }) {
		t.Errorf("thief was planned: %v", runs)
	}
}

// What a repository may define is asked again when a sample is queued: it may have
// waited for long.
func TestASampleThatIsForbiddenMeanwhileIsNotPlanned(t *testing.T) {
	t.Parallel()
	var forbidden atomic.Bool
	f := newShops(t, func(o *reconciler.Options) {
		o.Grants.Allow = func(_ string, c holdfast.Cluster, _ string) error {
			if c.Name == "shop-c" && forbidden.Load() {
				return errors.New("not yours any more")
			}
			return nil
		}
	})
	f.open(1, shop("1.1.0", "two"), func(pr *holdfast.PullRequest) { pr.Draft = true })
	if got := f.samples(1); !slices.Equal(got, []string{"shop-c"}) {
		t.Fatalf("samples %v", got)
	}
	forbidden.Store(true)
	f.change(1, func(pr *holdfast.PullRequest) { pr.Draft = false })
	f.lookAt(1)
	if a := f.claim(); a.Run != "" {
		t.Errorf("%s of %s is claimed", a.Kind, a.Cluster)
	}
	f.expectRuns("shop-c", "plan no_changes", "plan errored Invalid")
	f.lookAt(1)
	f.expectRuns("shop-c", "plan no_changes", "plan errored Invalid")
}

func (f *fleet) planAll(number int) {
	f.t.Helper()
	c, err := f.r.Command(f.t.Context(), holdfast.Command{
		PullRequest: holdfast.PullRequestRef{Repo: infra, Number: number}, Author: "alice", Trusted: true,
		Verb: holdfast.VerbPlan, All: true, Text: "/holdfast plan --all",
	})
	f.must(err)
	if c.Status != holdfast.CommandDone {
		f.t.Fatalf("refused: %s", c.Reply)
	}
	f.settle()
}

// lossy loses the next records of pull requests.
type lossy struct {
	reconciler.Store
	lose atomic.Int32
}

func (s *lossy) SavePullRequest(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error) {
	if s.lose.Add(-1) >= 0 {
		return holdfast.PullRequestRecord{}, holdfast.ErrConflict
	}
	return s.Store.SavePullRequest(ctx, pr)
}

// Somebody else writes the record between the impact and it, or nobody does as
// the server dies there.
func TestSamplesSurviveALostRecord(t *testing.T) {
	t.Parallel()
	store := &lossy{}
	f := newShops(t, func(o *reconciler.Options) {
		store.Store = o.Store
		o.Store = store
	})
	head := f.repo.CommitOn("branch-1", master, "change", shop("1.1.0", "two"))
	f.repo.SetPullRequest(1, head, "")
	f.forge.set(holdfast.PullRequest{
		PullRequestRef: holdfast.PullRequestRef{Repo: infra, Number: 1}, Author: "bob", State: holdfast.PullRequestOpen,
		Branch: "branch-1", Head: holdfast.Revision(head), BaseBranch: master, Mergeable: true,
	})
	store.lose.Store(1)
	if err := f.r.TakeIn(t.Context(), infra, 1); !errors.Is(err, holdfast.ErrConflict) {
		t.Fatalf("the record was not lost: %v", err)
	}
	f.lookAt(1)
	if got := f.samples(1); !slices.Equal(got, []string{"shop-c"}) {
		t.Errorf("samples %v", got)
	}
	f.executeAll(planned)

	// The same with a push that goes back to what was.
	f.push(1, shop("1.1.0", "three"))
	f.executeAll(planned)
	store.lose.Store(1)
	back := f.repo.Commit("branch-1", "back", shop("1.0.0", "one"))
	f.repo.SetPullRequest(1, back, "")
	pr := f.forge.get(1)
	pr.Head = holdfast.Revision(back)
	f.forge.set(pr)
	_ = f.r.TakeIn(t.Context(), infra, 1)
	f.lookAt(1)
	impacts, err := f.store.Impacts(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: 1})
	f.must(err)
	if len(impacts) > 0 || len(f.samples(1)) > 0 {
		t.Errorf("%d impacts, samples %v of what changes nothing", len(impacts), f.samples(1))
	}
}

// What is left of an impact by a process that is gone goes as well.
func TestAnImpactOfAFormerProcessGoes(t *testing.T) {
	t.Parallel()
	f := newShops(t, func(o *reconciler.Options) { o.Sources.Repositories[0].Samples = -1 })
	f.open(1, shop("1.1.0", "two"))
	f.restart()
	f.look()
	f.push(1, shop("1.0.0", "one"))
	impacts, err := f.store.Impacts(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: 1})
	f.must(err)
	if len(impacts) > 0 {
		t.Errorf("impacts %+v", impacts)
	}
}

// A pull request may change a template and clusters that are made from it: those
// are planned for what the merge makes of them, and stand for nobody.
func TestClusterIsNotASampleOfItsOwnPullRequest(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	files := shop("1.1.0", "two")
	files["clusters/shop-c.yaml"] = ofShop("shop-c", "any", `{name: web, version: 1.0.0, upgrades: "~> 1.0"}`, "size: 4")
	f.open(1, files)
	names := make(map[string]int)
	for _, c := range f.pullRequest(1).Clusters {
		names[c.Name]++
		if c.Sample == (c.Name == "shop-c") {
			t.Errorf("%s: sample %t", c.Name, c.Sample)
		}
	}
	if !maps.Equal(names, map[string]int{"shop-c": 1, "shop-a": 1}) {
		t.Errorf("clusters %v", names)
	}
	f.planAll(1)
	f.executeAll(planned)
	f.post()
	for _, run := range f.must2(f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "shop-c"})) {
		if run.Sample {
			t.Errorf("%s is a sample", run.ID)
		}
	}
}

func (f *fleet) must2(runs []holdfast.Run, err error) []holdfast.Run {
	f.t.Helper()
	f.must(err)
	return runs
}

// unreadableOther is a Git source that cannot read one repository.
type unreadableOther struct {
	reconciler.Git
	broken atomic.Bool
}

func (g *unreadableOther) Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error) {
	if repo == other && g.broken.Load() {
		return nil, errors.New("the disk is gone")
	}
	return g.Git.Tree(ctx, repo, revision)
}

// One repository that cannot be read says nothing of the clusters of the others.
func TestAnImpactSaysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	second, lookAtOther := withOther(t, f)
	git := &unreadableOther{}
	f.restart(func(o *reconciler.Options) {
		git.Git = o.Sources.Git
		o.Sources.Git = git
	})
	f.look()
	second.Commit(master, "a cluster", farShop("far"))
	lookAtOther()
	git.broken.Store(true)
	f.open(1, shop("1.1.0", "two"))
	if got := f.impact(1); !slices.Equal(got.Unseen, []string{other}) || len(got.Groups) != 1 || len(got.Groups[0].Clusters) != 3 {
		t.Errorf("impact %+v", got)
	}
	f.executeAll(planned)
	f.post()
	if comment := f.comment(1); !strings.Contains(comment, "Clusters of `other` are not counted") {
		t.Errorf("comment:\n%s", comment)
	}
	if status := f.forge.status(f.pullRequest(1).Head, holdfast.ContextPlan); status != holdfast.StatusError {
		t.Errorf("status %s", status)
	}
	git.broken.Store(false)
	f.lookAt(1)
	if got := f.impact(1); len(got.Unseen) > 0 || len(got.Groups[0].Clusters) != 4 {
		t.Errorf("impact %+v", got)
	}
	f.executeAll(planned)
	f.post()
	if status := f.forge.status(f.pullRequest(1).Head, holdfast.ContextPlan); status != holdfast.StatusSuccess {
		t.Errorf("after it was read, status %s", status)
	}
}

// A pull request that does not name a new version refuses nobody for the name of
// the one that it has.
func TestAChangeWithoutANewVersionRefusesNobody(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.repo.Commit(master, "1.1.0", shop("1.1.0", "one"))
	f.repo.Tag("v1.1.0", master)
	f.look()
	f.executeAll(planned)
	f.open(1, shop("1.1.0", "two"))
	if got := f.impact(1); len(got.Refused) > 0 || len(got.Groups) != 1 || len(got.Groups[0].Clusters) != 3 {
		t.Errorf("impact %+v", got)
	}
}

func TestATemplateWithAnotherNameIsAFault(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	files := shop("1.1.0", "two")
	files["templates/web/template.yaml"] = strings.Replace(files["templates/web/template.yaml"], "{name: web,", "{name: shop,", 1)
	f.open(1, files)
	f.executeAll(planned)
	if got := f.pullRequest(1).Faults; len(got) != 1 || got[0].File != "templates/web/template.yaml" || !strings.Contains(got[0].Message, `its metadata.name is "shop"`) {
		t.Errorf("faults %v", got)
	}
	if status := f.forge.status(f.pullRequest(1).Head, holdfast.ContextPlan); status != holdfast.StatusFailure {
		t.Errorf("status %s", status)
	}
}

// Looking at a pull request records no tag: a release that nobody uses yet may be
// mended. One whose tag has moved is not a reason not to say what comes next.
func TestAnImpactRecordsNoTag(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.repo.Commit(master, "1.1.0", shop("1.1.0", "two"))
	f.repo.Tag("v1.1.0", master)
	f.look()
	f.executeAll(planned)
	f.open(1, shop("1.2.0", "three"))
	pins, err := f.store.TagPins(t.Context(), infra)
	f.must(err)
	if _, ok := pins["v1.1.0"]; ok {
		t.Error("v1.1.0 is recorded, and nobody uses it")
	}
	if _, err := f.store.PinTag(t.Context(), infra, "v1.1.0", "0123456789012345678901234567890123456789"); err != nil {
		t.Fatal(err)
	}
	f.push(1, shop("1.2.0", "four"))
	if got := f.impact(1); got.Released != "1.1.0" || got.Version != "1.2.0" || len(got.Groups) != 1 {
		t.Errorf("impact %+v", got)
	}
}

// Who has asked for all plans has asked for those of that head.
func TestPlanAllIsForOneHead(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	f.planAll(1)
	f.executeAll(planned)
	f.repo.Commit(master, "the base moves", map[string]string{"README.md": "hello"})
	f.look()
	if got := f.samples(1); len(got) != 3 {
		t.Errorf("samples %v after the base has moved", got)
	}
	f.push(1, shop("1.1.0", "three"))
	if got := f.samples(1); !slices.Equal(got, []string{"shop-c"}) {
		t.Errorf("samples %v after another push", got)
	}
}

// A sample of a cluster that is being renamed is made with the state that the
// former name has, and once.
func TestASampleOfARenamedClusterIsMadeOnce(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(9, farShop("shop-c", "size: 4"))
	f.executeAll(withEngine)
	f.merge(9, byMerge)
	apply := f.claim()
	_, err := f.store.PutState(t.Context(), holdfast.StateWrite{
		Location: "clusters/shop-c", By: apply.AttemptRef, Data: []byte(`{"version":4,"serial":7,"lineage":"x"}`),
	})
	f.must(err)
	f.finish(apply, withEngine(apply))

	f.open(8, farShop("shop-c", "size: 5"))
	running := f.claim() // the name cannot be given up while this runs
	f.repo.Commit(master, "rename", map[string]string{
		"clusters/shop-c.yaml": gitserver.Delete,
		"clusters/shop-z.yaml": strings.Replace(farShop("shop-z", "size: 4")["clusters/shop-z.yaml"], "{name: shop-z}", "{name: shop-z, renamedFrom: shop-c}", 1),
	})
	f.look()
	f.open(1, shop("1.1.0", "two"))
	f.planAll(1)
	for range 3 { // the rename is tried again every two seconds, and cancels nothing while it waits
		f.look()
		f.lookAt(1)
	}
	made := 0
	for {
		a := f.claim(running.AttemptRef)
		if a.Run == "" {
			break
		}
		if a.Cluster == "shop-z" && a.StateLocation != "clusters/shop-c" {
			t.Errorf("it is planned at %s", a.StateLocation)
		}
		if a.Cluster == "shop-z" {
			made++
		}
		if made > 3 {
			break
		}
		f.finish(a, withEngine(a))
	}
	f.finish(running, withEngine(running))
	for f.execAny() {
		made++
		if made > 9 {
			break
		}
	}
	f.lookAt(1)
	var samples []string
	for _, run := range f.must2(f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "shop-z"})) {
		if run.Sample {
			samples = append(samples, fmt.Sprintf("%s is %s (%s %s), asked for at %s, of %.8s on %.8s, at %s",
				run.ID, run.Status, run.Reason, run.Detail, run.CreatedAt, run.Revision, run.Base, run.StateLocation))
		}
	}
	if len(samples) == 0 || len(samples) > 2 { // again when the state has come with the name
		t.Errorf("%d samples of it:\n%s", len(samples), strings.Join(samples, "\n"))
	}
}

// execAny executes the next run, if there is one.
func (f *fleet) execAny() bool {
	f.t.Helper()
	a := f.claim()
	if a.Run == "" {
		return false
	}
	f.finish(a, withEngine(a))
	return true
}

// A plan that was a sample has not been reviewed by people, even if the merge applies
// the same.
func TestASampleDoesNotStandForAPlan(t *testing.T) {
	t.Parallel()
	for _, sample := range []bool{true, false} {
		in := decision.Input{
			Request: holdfast.Request{Cluster: "prod", PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 1}},
			PullRequest: &holdfast.PullRequestRecord{
				PullRequest: holdfast.PullRequest{State: holdfast.PullRequestOpen, Head: "b"}, Result: "tree",
				Clusters: []holdfast.PullRequestCluster{{Name: "prod", SourceDigest: "sha256:1", Sample: !sample}},
			},
			Runs: []holdfast.Run{{ID: "run-1", Kind: holdfast.RunPlan, Status: holdfast.RunPlanned, RunSpec: holdfast.RunSpec{Revision: "b", SourceDigest: "sha256:1", RunMode: holdfast.RunMode{Sample: sample}}, RunProgress: holdfast.RunProgress{Attempt: 1}}},
		}
		if d := decision.Decide(in); d.Action != decision.ActionPlan {
			t.Errorf("sample %t: %s %s", sample, d.Action, d.Reason)
		}
	}
}

// A sample that does not come to what was assessed is assessed again, and not
// planned over and over.
func TestASampleThatWasAssessedOtherwiseIsAssessedAgain(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	f.executeAll(planned)
	rec := f.pullRequest(1)
	right := rec.Clusters[0].SourceDigest
	rec.Clusters[0].SourceDigest = "sha256:other"
	_, err := f.store.SavePullRequest(t.Context(), rec)
	f.must(err)
	f.must(f.r.TakeIn(t.Context(), infra, 1))
	for range 3 {
		_ = f.r.Settle(t.Context()) // it is tried again later
	}
	f.executeAll(planned)
	if got := f.pullRequest(1).Clusters[0].SourceDigest; got != right {
		t.Errorf("the digest is %s, want %s", got, right)
	}
	f.expectRuns("shop-c", "plan no_changes", "plan planned")
}

// What is queued of a pull request goes with it, and none of its commands leads to
// more than a plan.
func TestSamplesEndWithTheirPullRequest(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	f.planAll(1)
	for _, verb := range []holdfast.Verb{holdfast.VerbApply, holdfast.VerbApprove, holdfast.VerbUnlock} {
		c, err := f.r.Command(t.Context(), holdfast.Command{
			PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 1}, Author: "alice", Trusted: true,
			Verb: verb, Clusters: []string{"shop-c"}, Text: "/holdfast " + string(verb) + " shop-c",
		})
		f.must(err)
		if c.Status != holdfast.CommandRefused {
			t.Errorf("%s: %s %s", verb, c.Status, c.Reply)
		}
	}
	f.change(1, func(pr *holdfast.PullRequest) { pr.State = holdfast.PullRequestClosed })
	f.lookAt(1)
	if a := f.claim(); a.Run != "" {
		t.Errorf("%s of %s is claimed", a.Kind, a.Cluster)
	}
	for _, name := range []string{"shop-a", "shop-b", "shop-c"} {
		f.expectRuns(name, "plan no_changes", "plan canceled Closed")
	}
	// Nor by the run of a sample.
	for _, run := range f.must2(f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "shop-c"})) {
		if !run.Sample {
			continue
		}
		if c := f.ofRun("alice", holdfast.VerbApply, run); c.Status != holdfast.CommandRefused {
			t.Errorf("apply %s: %s %s", run.ID, c.Status, c.Reply)
		}
	}
}

// assessing dies at one of its writes, those of impacts among them.
type assessing struct{ *mortal }

func (s assessing) SaveImpacts(ctx context.Context, ref holdfast.PullRequestRef, impacts []rollout.Impact) error {
	return s.write("SaveImpacts", func() error { return s.Store.SaveImpacts(ctx, ref, impacts) })
}
