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

// chain are network, cluster on it and app on that; and beside, on its own.
func chain() map[string]string {
	files := map[string]string{
		"clusters/network.yaml": document("network"),
		"clusters/cluster.yaml": document("cluster", "dependsOn: [network]"),
		"clusters/app.yaml":     document("app", "dependsOn: [cluster]"),
		"clusters/beside.yaml":  document("beside"),
	}
	for _, name := range []string{"network", "cluster", "app", "beside"} {
		files["infra/"+name+"/main.tf"] = module("one")
	}
	return files
}

func changeAll(text string) map[string]string {
	files := map[string]string{}
	for _, name := range []string{"network", "cluster", "app", "beside"} {
		files["infra/"+name+"/main.tf"] = module(text)
	}
	return files
}

// writes executes all runs and returns the clusters in the order in which they
// were written to.
func (f *fleet) writes(result func(protocol.Assignment) protocol.Result) []string {
	f.t.Helper()
	var order []string
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		if a.Kind.Writes() {
			order = append(order, a.Cluster)
		}
		return result(a)
	})
	return order
}

func TestAFailedParentHoldsItsDependents(t *testing.T) {
	t.Parallel()
	f := built(t, chain())
	f.open(1, changeAll("two"))
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	order := f.writes(func(a protocol.Assignment) protocol.Result {
		result := withEngine(a)
		if a.Kind == holdfast.RunApply && a.Cluster == "cluster" {
			result.Status, result.Failure = holdfast.RunErrored, &holdfast.Failure{Summary: "quota", Cause: "Quota"}
		}
		return result
	})
	if slices.Contains(order, "app") || !slices.Contains(order, "beside") {
		t.Errorf("applied in the order %v, want beside to go on and app not", order)
	}
	rec := f.cluster("app")
	if rec.Waiting != holdfast.ReasonDependencyFailed || !strings.Contains(rec.WaitingDetail, "cluster") {
		t.Errorf("app waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
	// Once the parent is mended its dependents follow by themselves.
	f.command(1, "alice", "/holdfast apply cluster")
	order = f.writes(withEngine)
	if !slices.Equal(order, []string{"cluster", "app"}) {
		t.Errorf("after the mending applied in the order %v", order)
	}
}

func TestAChainOfManyIsConfirmedOnce(t *testing.T) {
	t.Parallel()
	f := built(t, chain())
	f.repo.Commit(master, "more", many(2)) // so that three are many
	f.look()
	f.executeAll(withEngine)
	f.open(1, map[string]string{
		"clusters/network.yaml": gitserver.Delete, "clusters/cluster.yaml": gitserver.Delete, "clusters/app.yaml": gitserver.Delete,
	})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	if order := f.writes(withEngine); len(order) != 0 {
		t.Fatalf("%v are destroyed without a word", order)
	}
	f.post()
	f.command(1, "alice", "/holdfast apply")
	f.restart() // what was said is on record
	f.r.Resume(t.Context())
	f.settle()
	f.look()
	if order := f.writes(withEngine); !slices.Equal(order, []string{"app", "cluster", "network"}) {
		t.Errorf("destroyed in the order %v", order)
	}
	if rec := f.cluster("network"); rec.Phase != holdfast.PhaseDeleted {
		t.Errorf("network is %s and waits for %q: %s", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	if run := f.newest("network"); run.Actor != "alice" {
		t.Errorf("the destroy of network was asked for by %q", run.Actor)
	}
}

func TestAParentDoesNotGoBeforeItsDependents(t *testing.T) {
	t.Parallel()
	f := built(t, chain())
	f.open(1, map[string]string{"clusters/network.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	f.executeAll(withEngine)
	if rec := f.cluster("network"); rec.Waiting != holdfast.ReasonHasDependents || !strings.Contains(rec.WaitingDetail, "cluster") {
		t.Errorf("network waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
}

func TestACircleIsAFault(t *testing.T) {
	t.Parallel()
	f := built(t, chain())
	f.open(1, map[string]string{"clusters/network.yaml": document("network", "dependsOn: [app]")})
	faults := f.pullRequest(1).Faults
	if len(faults) == 0 || !strings.Contains(faults.Error(), "network → app → cluster → network") {
		t.Fatalf("the faults are %v", faults)
	}
	f.merge(1, byMerge)
	if rec := f.cluster("network"); rec.Waiting != holdfast.ReasonInvalid {
		t.Errorf("network waits for %q", rec.Waiting)
	}
	f.repo.Commit(master, "mend", map[string]string{"clusters/network.yaml": document("network")})
	f.look()
	for _, name := range []string{"network", "cluster", "app"} {
		if rec := f.cluster(name); rec.Waiting != "" || len(rec.Desired.Faults) > 0 {
			t.Errorf("mended, %s waits for %q: %v", name, rec.Waiting, rec.Desired.Faults)
		}
	}
}

func TestFamily(t *testing.T) {
	t.Parallel()
	f := built(t, chain())
	family, err := f.r.Family(t.Context(), "cluster")
	f.must(err)
	if len(family.Parents) != 1 || family.Parents[0].Name != "network" || len(family.Dependents) != 1 || family.Dependents[0].Name != "app" {
		t.Errorf("the family is %+v", family)
	}
	family, err = f.r.Family(t.Context(), "network")
	f.must(err)
	if len(family.Dependents) != 1 || len(family.Dependents[0].Relations) != 1 || family.Dependents[0].Relations[0].Name != "app" {
		t.Errorf("the family is %+v", family)
	}
}

func TestTransferBetweenRepositories(t *testing.T) {
	t.Parallel()
	const other = "other"
	var second *gitserver.Repo
	f := newFleet(t, twoClusters(), func(o *reconciler.Options) {
		dir := memory.Dir(t)
		second = gitserver.NewRepo(t, dir+"/other.git")
		second.Commit(master, "first", map[string]string{"README.md": "hello"})
		first := o.Sources.Git
		git, err := gitsource.New(gitsource.Options{
			Dir: dir + "/mirrors", Repositories: []gitsource.Repository{{Name: other, URL: second.Path, Branch: master}},
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Sources.Git = &twoGits{Git: first, second: git}
		o.Sources.Forges[other] = o.Sources.Forges[infra]
		o.Sources.Repositories = append(o.Sources.Repositories, reconciler.Repository{Name: other, Branch: master, Clusters: []string{"clusters/**/*.yaml"}})
	})
	f.adopt()
	lookAtOther := func() {
		f.must(f.r.TakeIn(t.Context(), other, 0))
		f.settle()
	}
	lookAtOther()

	if err := f.r.Transfer(t.Context(), "prod", other, "alice"); refusedWith(err) != "Missing " {
		t.Fatalf("given to a repository that does not define it: %v", err)
	}
	second.Commit(master, "prod", map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	lookAtOther()
	if rec := f.cluster("prod"); rec.Owner != infra {
		t.Fatalf("it was taken by %s without a word", rec.Owner)
	}
	f.must(f.r.Transfer(t.Context(), "prod", other, "alice"))
	f.settle()
	rec := f.cluster("prod")
	if rec.Owner != other || rec.Waiting != "" || rec.Phase != holdfast.PhaseActive {
		t.Fatalf("transferred, it belongs to %s, is %s and waits for %q (%s)", rec.Owner, rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	// Its document leaves the first repository: nothing is destroyed, nothing is planned.
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	if got := f.affected(1); len(got) > 0 {
		t.Errorf("the pull request that takes it away affects %v", got)
	}
	f.merge(1, byMerge)
	if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != "" {
		t.Errorf("it waits for %q", rec.Waiting)
	}
	f.expectRuns("prod", "plan no_changes")
	// It leaves the second one: that is a removal.
	second.Commit(master, "remove", map[string]string{"clusters/prod.yaml": gitserver.Delete})
	lookAtOther()
	if rec := f.cluster("prod"); !rec.Desired.Removed {
		t.Errorf("removed there, it waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
}
