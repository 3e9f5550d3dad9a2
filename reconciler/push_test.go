package reconciler_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestUnrelatedPushLeavesPullRequestsAlone: a push that changes nothing of what an open
// pull request would do is taken into its record, and neither decided about nor shown; one
// that changes it is.
func TestUnrelatedPushLeavesPullRequestsAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(planned)
	plan := f.newest("prod")
	before, err := f.store.PullRequest(t.Context(), plan.PullRequest)
	f.must(err)

	f.repo.Commit(master, "elsewhere", map[string]string{"infra/preprod/main.tf": module("three")})
	f.look()
	after, err := f.store.PullRequest(t.Context(), plan.PullRequest)
	f.must(err)
	if after.Base == before.Base || after.Result == before.Result {
		t.Errorf("the record has base %s and result %s as before the push", after.Base, after.Result)
	}
	if now := f.newest("prod"); now.ID != plan.ID || now.Version != plan.Version {
		t.Errorf("its plan was %s, version %d, and is %s, version %d", plan.ID, plan.Version, now.ID, now.Version)
	}

	f.repo.Commit(master, "here too", map[string]string{"infra/prod/more.tf": module("four")})
	f.look()
	if now := f.newest("prod"); now.ID == plan.ID && now.Status != holdfast.RunQueued {
		t.Error("a push that changes what the pull request would do makes no new plan")
	}
}
