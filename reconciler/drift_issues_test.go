package reconciler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/report"
)

// issue is the newest version of a cluster's issue, and how many there were.
func (f *fleet) issue(cluster string) (holdfast.Issue, int) {
	f.t.Helper()
	f.post()
	versions := f.forge.issue(report.DriftMarker(cluster))
	if len(versions) == 0 {
		return holdfast.Issue{}, 0
	}
	return versions[len(versions)-1], len(versions)
}

func (f *fleet) summary() (holdfast.Issue, int) {
	f.t.Helper()
	f.post()
	versions := f.forge.issue(report.DriftSummaryMarker(infra))
	if len(versions) == 0 {
		return holdfast.Issue{}, 0
	}
	return versions[len(versions)-1], len(versions)
}

// expectIssue holds a cluster's issue to being there in its nth version, open or
// closed, with words in its body.
func (f *fleet) expectIssue(cluster string, n int, closed bool, words ...string) holdfast.Issue {
	f.t.Helper()
	issue, versions := f.issue(cluster)
	if versions != n || n > 0 && issue.Closed != closed {
		f.t.Fatalf("the issue of %s has %d versions, closed %t; want %d, %t:\n%s", cluster, versions, issue.Closed, n, closed, issue.Body)
	}
	for _, word := range words {
		if !strings.Contains(issue.Title+"\n"+issue.Body, word) {
			f.t.Fatalf("the issue of %s does not say %q:\n%s\n%s", cluster, word, issue.Title, issue.Body)
		}
	}
	return issue
}

// TestDriftIsReportedOnce: one issue per cluster, that says what is new, closes with
// the evidence, and opens again.
func TestDriftIsReportedOnce(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.drift(holdfast.Plan{})
	f.expectIssue("prod", 0, false)
	f.drift(scaled("5"))
	first := f.expectIssue("prod", 1, false, group, "size")
	for range 3 {
		f.drift(scaled("5"))
	}
	f.restart()
	f.r.Resume(t.Context())
	f.settle()
	f.look()
	f.expectIssue("prod", 1, false)
	f.drift(scaled("7"))
	f.expectIssue("prod", 2, false, "7")
	evidence := f.drift(holdfast.Plan{})
	f.expectIssue("prod", 3, true, evidence.ID)
	f.drift(holdfast.Plan{})
	f.drift(holdfast.Plan{})
	f.expectIssue("prod", 3, true, evidence.ID)
	f.drift(scaled("7"))
	again := f.expectIssue("prod", 4, false, "7")
	if again.ID != first.ID {
		t.Errorf("it is issue %s, and was %s", again.ID, first.ID)
	}
	if n := f.forge.count("PutIssue"); n != 4 {
		t.Errorf("the code host was called %d times, want 4", n)
	}
}

// TestIssuesAreTakenUpAfterACrash: what was recorded is told by whoever comes
// next, once, however far the last one came.
func TestIssuesAreTakenUpAfterACrash(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	// It ends after the result was stored, before anybody has looked at it.
	end := func(plan string, status holdfast.RunStatus) {
		f.later()
		a := f.claim()
		f.must(f.store.PutArtefact(t.Context(), a.AttemptRef, protocol.ArtefactPlan, strings.NewReader(plan)))
		f.must(f.r.Dispatcher().Finish(t.Context(), a.AttemptRef, f.left(a, protocol.Result{Status: status, Fence: a.Fence})))
		f.restart()
	}
	const plan = `{"drift": [{"address": "aws_vpc.a", "type": "aws_vpc", "action": "delete"}], "changes": [{"address": "aws_vpc.a", "type": "aws_vpc", "action": "create"}]}`
	end(plan, holdfast.RunPlanned)
	f.look()
	f.r.Resume(t.Context())
	f.settle()
	f.expectIssue("prod", 1, false, "aws_vpc.a")

	// It ends after the record was saved, before the issue was wanted.
	end("{}", holdfast.RunNoChanges)
	f.look()
	_, err := f.r.Reconciled(t.Context(), holdfast.Request{Cluster: "prod"})
	f.must(err)
	if got := f.cluster("prod").Drift.Status; got != holdfast.DriftNone {
		t.Fatalf("the record says %q", got)
	}
	f.restart()
	f.look()
	f.r.Resume(t.Context())
	f.settle()
	f.expectIssue("prod", 2, true)

	// The code host's answer gets lost.
	f.forge.failWith("PutIssue", holdfast.ErrUnavailable)
	f.drift(scaled("5"))
	f.forge.failWith("PutIssue", nil)
	f.clock.Advance(time.Hour)
	f.expectIssue("prod", 3, false)
}

func TestRepositoryWithoutIssues(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.forge.failWith("PutIssue", fmt.Errorf("issues are disabled: %w", holdfast.ErrForbidden))
	f.drift(scaled("5"))
	f.clock.Advance(24 * time.Hour)
	f.post()
	f.drift(scaled("5"))
	if n := f.forge.count("PutIssue"); n != 1 {
		t.Errorf("the code host was asked %d times, want once for one content", n)
	}
	f.forge.failWith("PutIssue", nil)
	f.drift(scaled("6"))
	f.expectIssue("prod", 1, false, "6")
}

func TestRulesCloseAnIssue(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.drift(scaled("5"))
	f.expectIssue("prod", 1, false)
	rule := `drift: {schedule: "0 * * * *", ignore: [{address: "aws_eks_node_group.*", reason: "autoscaler", expires: 2026-03-01T15:30:00Z}]}`
	f.repo.Commit(master, "ignore it", map[string]string{"clusters/prod.yaml": document("prod", rule)})
	f.look()
	f.expectIssue("prod", 2, true, "1 hidden", "autoscaler")
	f.drift(scaled("5"))
	f.expectIssue("prod", 2, true)
	f.clock.Advance(4 * time.Hour)
	f.pass()
	f.expectIssue("prod", 3, false, "size")
	f.pass()
	f.checks(scaled("5"))
	f.expectIssue("prod", 3, false)
}

func TestIgnoredDriftIsNotReported(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, `drift: {schedule: "0 * * * *", onDrift: ignore}`)
	f.drift(scaled("5"))
	f.expectIssue("prod", 0, false)
	if d := f.cluster("prod").Drift; d.Status != holdfast.DriftFound {
		t.Errorf("the record says %+v", d)
	}
	f.repo.Commit(master, "tell", map[string]string{"clusters/prod.yaml": document("prod", hourly)})
	f.look()
	f.expectIssue("prod", 1, false)
	f.repo.Commit(master, "or rather not", map[string]string{"clusters/prod.yaml": document("prod", `drift: {onDrift: ignore}`)})
	f.look()
	f.expectIssue("prod", 2, true)
}

func TestFailedChecksAreReported(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	for i := range 5 {
		f.later()
		f.fails()
		if i < 2 {
			f.expectIssue("prod", 0, false)
			continue
		}
		f.expectIssue("prod", 1, false, "no such instance type")
	}
	f.drift(scaled("5"))
	f.expectIssue("prod", 2, false, "size")
	for range 2 {
		f.later()
		f.fails()
	}
	f.expectIssue("prod", 2, false) // what is there tells more
	for range 3 {
		f.later()
		f.fails()
	}
	f.expectIssue("prod", 3, false, "no such instance type", "size")
	f.drift(holdfast.Plan{})
	f.expectIssue("prod", 4, true)
}

func TestRevertIsReported(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, reverted)
	f.drift(scaled("5"))
	apply := f.newest("prod")
	f.expectIssue("prod", 1, false)
	f.look()
	a := f.claim()
	f.settle()
	issue, versions := f.issue("prod")
	if versions > 2 || !strings.Contains(issue.Body, apply.ID) {
		t.Errorf("while it is reverted, version %d:\n%s", versions, issue.Body)
	}
	f.must(f.store.PutArtefact(t.Context(), a.AttemptRef, protocol.ArtefactPlan, strings.NewReader("{}")))
	f.finish(a, good(a))
	f.post()
	f.pass()
	check := f.checks(holdfast.Plan{})
	issue, versions = f.issue("prod")
	if !issue.Closed || versions > 4 || !strings.Contains(issue.Body, apply.ID) || !strings.Contains(issue.Body, check.ID) {
		t.Errorf("in the end, version %d, closed %t:\n%s", versions, issue.Closed, issue.Body)
	}
}

func TestHeldDriftIsReported(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, reverted, "apply: {requires: [approved]}")
	f.drift(scaled("5"))
	issue, versions := f.issue("prod")
	if !strings.Contains(issue.Body, "need an approval") || versions > 2 {
		t.Errorf("version %d:\n%s", versions, issue.Body)
	}
	f.drift(scaled("5"))
	if _, after := f.issue("prod"); after != versions {
		t.Errorf("told again: version %d after %d", after, versions)
	}
}

// TestIssuesAreCapped: those that have drifted longest have their own issue, all others
// are in one that sums up.
func TestIssuesAreCapped(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	var names []string
	for i := range 5 {
		name := fmt.Sprintf("c%d", i)
		files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
		names = append(names, name)
	}
	f := newFleet(t, files, func(o *reconciler.Options) { o.Reports.Issues = 2 })
	f.adopt()
	check := func(name string, plan holdfast.Plan) {
		t.Helper()
		_, err := f.r.CheckDrift(t.Context(), name, "alice")
		f.must(err)
		f.checks(plan)
		f.clock.Advance(time.Minute)
	}
	for _, name := range names[:2] {
		check(name, scaled("5"))
	}
	if _, versions := f.summary(); versions != 0 {
		t.Fatal("two are summed up, and each has its issue")
	}
	for _, name := range names[2:] {
		check(name, scaled("5"))
	}
	for i, name := range names {
		if _, versions := f.issue(name); (versions > 0) != (i < 2) {
			t.Errorf("%s has %d versions of an issue", name, versions)
		}
	}
	summary, versions := f.summary()
	if summary.Closed || !strings.Contains(summary.Body, "c4") || !strings.Contains(summary.Body, "aws_eks_node_group") {
		t.Fatalf("version %d of the summary:\n%s", versions, summary.Body)
	}
	for _, name := range names {
		check(name, scaled("5"))
	}
	if _, again := f.summary(); again != versions {
		t.Errorf("the same is summed up again: version %d after %d", again, versions)
	}

	check("c0", holdfast.Plan{}) // the next one moves up
	f.expectIssue("c0", 2, true)
	f.expectIssue("c2", 1, false)
	check("c1", holdfast.Plan{})
	check("c2", holdfast.Plan{})
	if summary, _ := f.summary(); !summary.Closed {
		t.Errorf("two are left, and the summary is open:\n%s", summary.Body)
	}
	f.expectIssue("c3", 1, false)
	f.expectIssue("c4", 1, false)
	check("c0", scaled("5"))
	if summary, _ := f.summary(); summary.Closed {
		t.Error("with a third one, the summary is still closed")
	}
}

func TestOnlyASummary(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", hourly)
	f := newFleet(t, files, func(o *reconciler.Options) { o.Reports.Issues = -1 })
	f.adopt()
	f.drift(scaled("5"))
	f.expectIssue("prod", 0, false)
	if summary, versions := f.summary(); versions != 1 || !strings.Contains(summary.Body, "prod") {
		t.Errorf("version %d of the summary:\n%s", versions, summary.Body)
	}
	f.drift(holdfast.Plan{})
	if summary, versions := f.summary(); versions != 2 || !summary.Closed {
		t.Errorf("version %d of the summary, closed %t", versions, summary.Closed)
	}
}

// TestIssueOfADestroyedClusterIsClosed: nothing is left that could drift.
func TestIssueOfADestroyedClusterIsClosed(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.drift(scaled("5"))
	f.expectIssue("prod", 1, false)
	rec := f.cluster("prod")
	rec.Desired.Removed, rec.Deletion, rec.Phase = true, &holdfast.Deletion{At: noon, Reason: holdfast.ReasonDestroyed}, holdfast.PhaseDeleted
	rec.Applied, rec.Drift = holdfast.Applied{}, holdfast.DriftState{}
	_, err := f.store.SaveCluster(t.Context(), rec)
	f.must(err)
	_, err = f.r.Reconciled(t.Context(), holdfast.Request{Cluster: "prod"})
	f.must(err)
	f.settle()
	f.expectIssue("prod", 2, true)
}

// TestIssueStaysInItsRepository: a number means another thing elsewhere. What a
// cluster leaves behind is closed, and it has a new issue where it goes.
func TestIssueStaysInItsRepository(t *testing.T) {
	t.Parallel()
	f := driftFleet(t, hourly)
	f.drift(scaled("5"))
	old := f.expectIssue("prod", 1, false)
	f.restart(func(o *reconciler.Options) {
		o.Sources.Forges["other"] = f.forge
		o.Sources.Repositories = append(o.Sources.Repositories, reconciler.Repository{Name: "other", Branch: master})
	})
	rec := f.cluster("prod")
	rec.Owner = "other"
	_, err := f.store.SaveCluster(t.Context(), rec)
	f.must(err)
	_, err = f.r.Reconciled(t.Context(), holdfast.Request{Cluster: "prod"})
	f.must(err)
	f.settle()
	f.post()
	left, err := f.store.Post(t.Context(), "issue:drift:prod")
	f.must(err)
	came, err := f.store.Post(t.Context(), "issue:drift:prod:other")
	f.must(err)
	if left.Repo != infra || !left.Closed || left.ExternalID != old.ID {
		t.Errorf("what it left: %+v", left)
	}
	if came.Repo != "other" || came.Closed || came.Wanted != 1 {
		t.Errorf("where it came: %+v", came)
	}
}
