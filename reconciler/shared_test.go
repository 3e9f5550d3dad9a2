package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// A document that was copied with its state would have each cluster destroy what
// is the other's. The newcomer is told so; the cluster that is there continues.
func TestStateOfAnotherCluster(t *testing.T) {
	t.Parallel()
	const state = "state: {type: s3, bucket: states, key: prod, region: r}"
	copied := map[string]string{"clusters/copy.yaml": document("copy", state), "infra/copy/main.tf": module("two")}
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", state)
	f := newFleet(t, files)
	f.adopt()

	f.open(1, copied)
	f.executeAll(good)
	f.expectRuns("copy")
	faults := f.pullRequest(1).Faults
	if len(faults) != 1 || !strings.Contains(faults.Error(), `clusters/copy.yaml:1`) ||
		!strings.Contains(faults.Error(), `also that of "prod" (clusters/prod.yaml:1)`) {
		t.Errorf("the pull request's faults are %v", faults)
	}

	// Merged nevertheless, it waits, and what it was copied from is as it was.
	f.merge(1, byMerge)
	f.executeAll(good)
	f.expectRuns("copy")
	if got := f.cluster("copy").Waiting; got != holdfast.ReasonInvalid {
		t.Errorf("the copy waits for %q", got)
	}
	if rec := f.cluster("prod"); rec.Waiting != "" || len(rec.Desired.Faults) > 0 {
		t.Errorf("prod waits for %q with faults %v", rec.Waiting, rec.Desired.Faults)
	}

	// That the other document goes hands nothing over: its infrastructure is there,
	// and would be destroyed under the copy. Each is told what to do.
	f.repo.Commit(master, "take away", map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.look()
	if rec := f.cluster("copy"); !strings.Contains(rec.Desired.Faults.Error(), "renamedFrom: prod") {
		t.Errorf("the faults of the copy are %v", rec.Desired.Faults)
	}
	if rec := f.cluster("prod"); rec.Desired.Removed || !strings.Contains(rec.Desired.Missing, `is also that of "copy"`) {
		t.Errorf("prod is removed %t, missing %q", rec.Desired.Removed, rec.Desired.Missing)
	}
	f.repo.Commit(master, "a state of its own", map[string]string{
		"clusters/copy.yaml": document("copy", "state: {type: s3, bucket: states, key: copy, region: r}"),
	})
	f.look()
	if rec := f.cluster("copy"); len(rec.Desired.Faults) > 0 || rec.Desired.SourceDigest == "" {
		t.Errorf("the copy is still at fault: %v", rec.Desired.Faults)
	}
	f.look()
	if rec := f.cluster("prod"); !rec.Desired.Removed {
		t.Errorf("prod is not removed: %q", rec.Desired.Missing)
	}
}

// A pull request that moves a cluster's state onto another's is told so, too.
func TestStateMovedOntoAnotherCluster(t *testing.T) {
	t.Parallel()
	at := func(key string) string { return "state: {type: s3, bucket: states, key: " + key + ", region: r}" }
	files := twoClusters()
	files["clusters/prod.yaml"], files["clusters/preprod.yaml"] = document("prod", at("prod")), document("preprod", at("preprod"))
	f := newFleet(t, files)
	f.adopt()
	f.open(1, map[string]string{"clusters/preprod.yaml": document("preprod", at("prod"))}, func(pr *holdfast.PullRequest) { pr.Title = "oops" })
	f.executeAll(good)
	f.expectRuns("preprod", "plan no_changes")
	if faults := f.pullRequest(1).Faults; !strings.Contains(faults.Error(), `also that of "prod"`) {
		t.Errorf("the pull request's faults are %v", faults)
	}
}
