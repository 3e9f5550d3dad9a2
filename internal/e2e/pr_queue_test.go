package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// queue makes the merge groups of a queue with these pull requests, as GitHub
// does: a branch for each, on top of the one before. It returns the last one's
// commit.
func (r *repo) queue(pulls ...*pull) string {
	r.w.t.Helper()
	base := r.git.Rev("main")
	for _, p := range pulls {
		group := r.git.MergeCommit(base, p.head)
		ref := fmt.Sprintf("refs/heads/gh-readonly-queue/main/pr-%d-%s", p.number, base)
		r.git.SetRef(ref, group)
		r.hub.MergeGroup(ref, group, "main", base)
		base = group
	}
	return base
}

// untilJudged waits until the plan status of a group's commit is in that state and
// says that.
func (r *repo) untilJudged(commit, state, says string) {
	r.w.t.Helper()
	r.w.until("the merge group is "+state, func() (bool, string) {
		status, _ := r.hub.LatestStatus(commit, holdfast.ContextPlan)
		return status.State == state && strings.Contains(status.Description, says), fmt.Sprintf("%+v", status)
	})
}

// A merge queue asks for holdfast/plan on the commit that it would make the head:
// it is green if that comes to what the pull requests have planned.
func TestMergeQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	fleet := w.fleet()
	fleet.commit(cluster("alpha", "nodes: 1"))
	w.start()
	one := fleet.open(document("alpha", "variables: {nodes: 2}"))
	two := fleet.open(files{"infra/alpha/more.tf": "resource \"terraform_data\" \"more\" {}\n"})
	three := fleet.open(cluster("beta", "nodes: 3"))
	readme := fleet.open(files{"README.md": "Read more.\n"})
	one.untilPlanned("1 cluster")
	two.untilPlanned("1 cluster")
	three.untilPlanned("3 to create")
	w.until("the pull request without clusters is green", func() (bool, string) {
		status, _ := fleet.hub.LatestStatus(readme.head, holdfast.ContextPlan)
		return status.State == "success", status.Description
	})

	group := fleet.queue(readme, three, one)
	fleet.untilJudged(group, "success", fmt.Sprintf("2 clusters as planned: #%d, #%d, #%d", one.number, three.number, readme.number))
	both := fleet.queue(one, two)
	fleet.untilJudged(both, "failure", fmt.Sprintf("#%d and #%d change it", one.number, two.number))

	// The queue merges what is green.
	before := fleet.git.Rev("main")
	fleet.git.SetRef("refs/heads/main", group)
	for _, p := range []*pull{readme, three, one} {
		p.merged, p.closed = group, true
		fleet.hub.Merge(p.number, group)
	}
	fleet.pushed(before)
	three.untilComment("and applied", "3 created")
	// What is left is planned again on top of it.
	two.untilPlanned("1 cluster")
	fleet.untilJudged(fleet.queue(two), "success", fmt.Sprintf("1 cluster as planned: #%d", two.number))
}
