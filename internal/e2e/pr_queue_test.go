package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// groupOf is where the queue has the group of a pull request on top of base.
func (p *pull) groupOf(base string) string {
	return fmt.Sprintf("refs/heads/gh-readonly-queue/main/pr-%d-%s", p.number, base)
}

// queue makes the merge groups of a queue with these pull requests, as GitHub
// does: a branch for each, on top of the one before. It returns the last one's
// commit.
func (r *repo) queue(pulls ...*pull) string {
	r.w.t.Helper()
	base := r.git.Rev("main")
	for _, p := range pulls {
		group := r.git.MergeCommit(base, p.head)
		ref := p.groupOf(base)
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

	// Somebody takes a pull request out of it, and puts it in again, on top of another
	// base: while its first group was not judged, and afterwards.
	for range 2 {
		base := fleet.git.Rev("main")
		former := fleet.queue(three)
		fleet.git.DeleteRef(three.groupOf(base))
		fleet.hub.EndMergeGroup("dequeued", three.groupOf(base), former, "main", base)
		before := base
		base = fleet.commit(files{"NOTES.md": "after " + base + "\n"})
		fleet.pushed(before)
		fleet.untilJudged(fleet.queue(three), "success", fmt.Sprintf("1 cluster as planned: #%d", three.number))
		fleet.git.DeleteRef(three.groupOf(base))
	}
	// The event of another one is lost: it is found with the next look.
	unheard := fleet.git.MergeCommit(fleet.git.Rev("main"), three.head)
	fleet.git.SetRef(three.groupOf(fleet.git.Rev("main")), unheard)
	fleet.hub.Knows(unheard)
	w.do("reconcile --repo acme/fleet")
	fleet.untilJudged(unheard, "success", fmt.Sprintf("1 cluster as planned: #%d", three.number))
	group = fleet.queue(readme, three, one)
	fleet.untilJudged(group, "success", "2 clusters as planned")

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
