package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

const other = "other"

// withOther adds a second repository to a fleet, and how it is looked at.
func withOther(t *testing.T, f *fleet) (second *gitserver.Repo, look func()) {
	t.Helper()
	dir := memory.Dir(t)
	second = gitserver.NewRepo(t, dir+"/other.git")
	second.Commit(master, "first", map[string]string{"README.md": "hello"})
	git, err := gitsource.New(gitsource.Options{
		Dir: dir + "/mirrors", Repositories: []gitsource.Repository{{Name: other, URL: second.Path, Branch: master}},
	})
	f.must(err)
	f.restart(func(o *reconciler.Options) {
		o.Sources.Git, o.Sources.Forges[other] = &twoGits{Git: o.Sources.Git, second: git}, o.Sources.Forges[infra]
		o.Sources.Repositories = append(slices.Clone(o.Sources.Repositories), reconciler.Repository{
			Name: other, Branch: master, Clusters: []string{"clusters/**/*.yaml"}, Local: true,
		})
	})
	f.look()
	return second, func() {
		f.must(f.r.TakeIn(t.Context(), other, 0))
		f.settle()
	}
}

// A pull request of another repository that says its cluster was ours is planned
// without our state: it would read what is in it.
func TestAForeignRenameSeesNoState(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	second, look := withOther(t, f)
	look()
	head := second.CommitOn("thief", master, "thief", map[string]string{
		"clusters/thief.yaml": renamedDocument("thief", "prod"), "infra/thief/main.tf": module("one"),
	})
	f.forge.set(holdfast.PullRequest{
		PullRequestRef: holdfast.PullRequestRef{Repo: other, Number: 1}, Author: "eve", State: holdfast.PullRequestOpen,
		Branch: "thief", Head: holdfast.Revision(head), BaseBranch: master, Mergeable: true,
	})
	f.must(f.r.TakeIn(t.Context(), other, 1))
	f.settle()
	if a := f.claim(); a.Run != "" && a.StateLocation != "clusters/thief" {
		t.Errorf("%s is planned with the state at %q", a.Cluster, a.StateLocation)
	}
	rec, err := f.store.PullRequest(t.Context(), holdfast.PullRequestRef{Repo: other, Number: 1})
	f.must(err)
	if !strings.Contains(rec.Faults.Error(), `belongs to repository "infra"`) {
		t.Errorf("the faults are %v", rec.Faults)
	}
}

// A cluster that comes to depend on one whose destroy is queued keeps it.
func TestADependentThatComesLate(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	second, look := withOther(t, f)
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	second.Commit(master, "late", map[string]string{"clusters/late.yaml": document("late", "dependsOn: [prod]"), "infra/late/main.tf": module("one")})
	look()
	for a := f.claim(); a.Run != ""; a = f.claim() {
		if a.Kind.Writes() {
			t.Errorf("the %s of %s begins", a.Kind, a.Cluster)
		}
		f.finish(a, withEngine(a))
	}
	f.settle()
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonHasDependents {
		t.Errorf("prod waits for %q", rec.Waiting)
	}
	// It goes again, and so does what it depended on.
	second.Commit(master, "gone", map[string]string{"clusters/late.yaml": gitserver.Delete})
	look()
	if order := f.writes(withEngine); !slices.Equal(order, []string{"prod"}) {
		t.Errorf("destroyed were %v, and prod waits for %q", order, f.cluster("prod").Waiting)
	}
}

// A cluster that is given away is not what its former repository has said last.
func TestATransferTakesBackWhatWasQueued(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	second, look := withOther(t, f)
	second.Commit(master, "prod", map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	look()
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	f.must(f.r.Transfer(t.Context(), "prod", other, "alice"))
	if a := f.claim(); a.Run != "" {
		t.Errorf("the %s of %s begins", a.Kind, a.Cluster)
	}
	f.settle()
	if rec := f.cluster("prod"); rec.Owner != other || rec.Phase != holdfast.PhaseActive || rec.Waiting != "" {
		t.Errorf("prod is %s's, %s, and waits for %q", rec.Owner, rec.Phase, rec.Waiting)
	}
}

// Who asks for another look gets one, also where what was wrong has been mended
// in another repository.
func TestAFaultThatIsMendedElsewhere(t *testing.T) {
	t.Parallel()
	f := built(t, chain())
	second, look := withOther(t, f)
	second.Commit(master, "far", map[string]string{"clusters/far.yaml": document("far", "dependsOn: [app]"), "infra/far/main.tf": module("one")})
	look()
	f.repo.Commit(master, "circle", map[string]string{"clusters/network.yaml": document("network", "dependsOn: [far]")})
	f.look()
	if rec := f.cluster("network"); rec.Waiting != holdfast.ReasonInvalid || !strings.Contains(rec.Desired.Faults.Error(), "far → app → cluster → network") {
		t.Fatalf("network waits for %q: %v", rec.Waiting, rec.Desired.Faults)
	}
	second.Commit(master, "mend", map[string]string{"clusters/far.yaml": document("far")})
	look()
	f.must(f.r.Reconcile(t.Context(), "", "network"))
	f.settle()
	if rec := f.cluster("network"); len(rec.Desired.Faults) > 0 {
		t.Errorf("network waits for %q: %v", rec.Waiting, rec.Desired.Faults)
	}
}

// A pull request that brings a cluster and what it depends on does not say that
// there is none such.
func TestParentAddedWithItsChild(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{
		"clusters/net.yaml": document("net"), "infra/net/main.tf": module("one"),
		"clusters/app.yaml": document("app", "dependsOn: [net]"), "infra/app/main.tf": module("one"),
	})
	f.executeAll(withEngine)
	if body := f.comment(1); strings.Contains(body, "no cluster") || !strings.Contains(body, "net") {
		t.Errorf("the comment says:\n%s", body)
	}
	f.merge(1, byMerge)
	if order := f.writes(withEngine); !slices.Equal(order, []string{"net", "app"}) {
		t.Errorf("applied were %v", order)
	}
}

// A repository that is no longer configured has its clusters left alone, also
// what was queued, and who asks is told why.
func TestARepositoryThatIsNotWatchedAnyMore(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	second, look := withOther(t, f)
	second.Commit(master, "far", map[string]string{
		"clusters/far.yaml": document("far"), "infra/far/main.tf": module("one"),
		"clusters/near.yaml": document("near"), "infra/near/main.tf": module("one"),
	})
	look()
	f.executeAll(func(protocol.Assignment) protocol.Result { return protocol.Result{Status: holdfast.RunNoChanges} })
	second.Commit(master, "remove", map[string]string{"clusters/far.yaml": gitserver.Delete})
	look()
	f.executeAll(withEngine)
	if c := f.apply("far"); c.Status != holdfast.CommandDone {
		t.Fatalf("%s: %s", c.Status, c.Reply)
	}
	repositories := f.opts.Sources.Repositories
	f.restart(func(o *reconciler.Options) { o.Sources.Repositories = repositories[:1] })
	f.look()
	f.r.Resume(t.Context())
	f.settle()
	if a := f.claim(); a.Run != "" {
		t.Errorf("the %s of %s begins", a.Kind, a.Cluster)
	}
	if c := f.apply("near"); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, "no longer watched") {
		t.Errorf("%s: %s", c.Status, c.Reply)
	}
	f.restart(func(o *reconciler.Options) { o.Sources.Repositories = repositories })
	f.look()
	look()
	if order := f.writes(withEngine); !slices.Equal(order, []string{"far"}) {
		t.Errorf("watched again, %v are destroyed; far waits for %q", order, f.cluster("far").Waiting)
	}
}
