package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// givenAway is a fleet in whose pull request 1 prod was reviewed, which was then given to
// another repository: that applies it.
func givenAway(t *testing.T, before func(*fleet)) (*fleet, protocol.Assignment) {
	t.Helper()
	f := reviewed(t)
	before(f)
	second, look := withOther(t, f)
	second.Commit(master, "prod", map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	look()
	f.must(f.r.Transfer(t.Context(), "prod", other, "root"))
	f.settle()
	f.lookAt(1)
	f.post()
	second.Commit(master, "three", map[string]string{"infra/prod/main.tf": module("three")})
	look()
	f.executeAll(good)
	if c := f.api("root", holdfast.VerbApply, "prod"); c.Status != holdfast.CommandDone {
		t.Fatalf("the apply was refused: %s", c.Reply)
	}
	a := f.claim()
	if a.Cluster != "prod" || !a.Kind.Writes() {
		t.Fatalf("claimed the %s of %s", a.Kind, a.Cluster)
	}
	return f, a
}

// Whoever may write in one repository need not be allowed anything in another one: a pull
// request commands no cluster that belongs to another repository, or was given to one.
func TestAPullRequestCommandsClustersOfItsRepositoryOnly(t *testing.T) {
	t.Parallel()
	const belongs = `the name "prod" belongs to repository "other"`
	states := map[string]func(*fleet){
		"open":  func(*fleet) {},
		"draft": func(f *fleet) { f.change(1, func(pr *holdfast.PullRequest) { pr.Draft = true }) },
		"fork":  func(f *fleet) { f.change(1, func(pr *holdfast.PullRequest) { pr.Fork = true }) },
		"closed": func(f *fleet) {
			f.change(1, func(pr *holdfast.PullRequest) { pr.State = holdfast.PullRequestClosed })
		},
		"merged": func(f *fleet) { f.merge(1, byMerge); f.executeAll(good) },
	}
	for state, before := range states {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			f, a := givenAway(t, before)
			f.forge.permission["alice"] = holdfast.PermissionAdmin
			says := map[string]string{"unlock": belongs, "unlock --force": belongs, "plan": belongs, "apply": "", "approve": "", "cancel": belongs}
			if state != "merged" {
				says["cancel"] = "nothing is queued or running" // of its own
			}
			for command, want := range says {
				if c := f.command(1, "alice", "/holdfast "+command); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, want) {
					t.Errorf("%s: %s %q", command, c.Status, c.Reply)
				}
			}
			run, err := f.store.Run(t.Context(), a.Run)
			f.must(err)
			if run.Status != holdfast.RunRunning || run.Cancel != "" || len(f.pullRequest(1).Approvals) > 0 {
				t.Errorf("the apply is %s, canceled %q", run.Status, run.Cancel)
			}
			f.finish(a, good(a))
			if rec := f.cluster("prod"); rec.Applied.Run != a.Run || rec.Waiting != "" {
				t.Errorf("applied was %q, and it waits for %q", rec.Applied.Run, rec.Waiting)
			}
		})
	}
}

// A document with the name of another repository's cluster is a fault, and no way to it.
func TestAClaimedNameCommandsNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	_, err := f.store.SaveCluster(t.Context(), holdfast.ClusterRecord{
		Name: "prod", Owner: other, Phase: holdfast.PhaseActive, Applied: holdfast.Applied{Run: "run-1"},
		Desired: holdfast.Desired{SourceDigest: oldDigest},
	})
	f.must(err)
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("two")})
	f.executeAll(good)
	c := f.command(1, "alice", "/holdfast plan")
	if c.Status != holdfast.CommandDone || !strings.Contains(c.Reply, "`preprod`: plan queued") ||
		!strings.Contains(c.Reply, "`prod`: the name \"prod\" belongs to repository \"other\"") {
		t.Errorf("it is %s: %q", c.Status, c.Reply)
	}
	f.executeAll(good)
	f.command(1, "alice", "/holdfast approve")
	if all := f.pullRequest(1).Approvals; len(all) != 1 || len(all[0].Clusters) != 1 || all[0].Clusters[0] != "preprod" {
		t.Errorf("the approvals are %+v", all)
	}
}

// A plan that a merge has left waiting is not applied from there once the cluster belongs to
// another repository, although that plan still stands for the merge.
func TestAHeldPlanIsNotTheFormerRepositorys(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	held := f.execute(func(a protocol.Assignment) protocol.Result {
		result := planned(a)
		result.Reason = holdfast.ReasonPlanChanged
		return result
	})
	f.post()
	second, look := withOther(t, f)
	second.Commit(master, "prod", map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("two")})
	look()
	said := f.forge.says(1, "alice", "/holdfast apply")
	c := commandsOf(said)[0]
	_, err := f.store.StoreCommand(t.Context(), c)
	f.must(err)
	f.must(f.r.Transfer(t.Context(), "prod", other, "root"))
	f.settle()
	f.r.Obey(t.Context())
	f.settle()
	c, err = f.store.Command(t.Context(), c.ID)
	f.must(err)
	if c.Status != holdfast.CommandRefused || f.newest("prod").ID != held.ID {
		t.Errorf("it is %s, %q: %v", c.Status, c.Reply, f.runs("prod"))
	}
}

// What a pull request has queued of its own can be canceled, whoever has the cluster by now.
func TestOwnPlansCanBeCanceledAfterATransfer(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.push(1, map[string]string{"infra/prod/main.tf": module("three")})
	a := f.claim()
	rec := f.cluster("prod")
	rec.Owner = other
	_, err := f.store.SaveCluster(t.Context(), rec)
	f.must(err)
	if c := f.command(1, "alice", "/holdfast cancel"); c.Status != holdfast.CommandDone {
		t.Errorf("it is %s: %s", c.Status, c.Reply)
	}
	run, err := f.store.Run(t.Context(), a.Run)
	f.must(err)
	if run.Cancel != holdfast.ReasonCanceled {
		t.Errorf("the plan is %s, canceled %q", run.Status, run.Cancel)
	}
}

// The merge of a template's pull request does nothing to its samples.
func TestSamplesOfAMergeAreNotCommanded(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	f.open(1, shop("1.1.0", "two"))
	f.executeAll(planned)
	f.merge(1, byMerge)
	f.api("root", holdfast.VerbPlan, "shop-c")
	a := f.claim()
	for _, verb := range []string{"plan", "cancel", "cancel shop-c"} {
		if c := f.command(1, "alice", "/holdfast "+verb); c.Status != holdfast.CommandRefused {
			t.Errorf("%s: it is %s: %s", verb, c.Status, c.Reply)
		}
	}
	run, err := f.store.Run(t.Context(), a.Run)
	f.must(err)
	if run.Status != holdfast.RunRunning || run.Cancel != "" || f.newest("shop-c").ID != a.Run {
		t.Errorf("the plan is %s, canceled %q", run.Status, run.Cancel)
	}
}
