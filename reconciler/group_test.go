package reconciler_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// partlyReadableGit has all trees but those of some commits, and all commits but some.
type partlyReadableGit struct {
	reconciler.Git
	without []string
	cause   error // nil: there are too many files in them
	lost    []holdfast.Revision
}

func (g *partlyReadableGit) Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error) {
	if slices.Contains(g.without, revision) {
		return nil, cmp.Or(g.cause, errors.New("too many files"))
	}
	return g.Git.Tree(ctx, repo, revision)
}

func (g *partlyReadableGit) IsAncestor(ctx context.Context, repo string, a, b holdfast.Revision) (bool, error) {
	if slices.Contains(g.lost, a) {
		return false, fmt.Errorf("look for %s in %s: %w", a.Short(), repo, holdfast.ErrNotFound)
	}
	return g.Git.IsAncestor(ctx, repo, a, b)
}

// mergeQueue is a fleet whose pull requests are planned and queued.
type mergeQueue struct {
	*fleet
	git *partlyReadableGit
}

// newMergeQueue has two pull requests with green plans.
func newMergeQueue(t *testing.T) mergeQueue {
	f := newFleet(t, twoClusters())
	q := mergeQueue{f, &partlyReadableGit{Git: f.opts.Sources.Git}}
	f.restart(func(o *reconciler.Options) { o.Sources.Git = q.git })
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.open(2, map[string]string{"infra/preprod/main.tf": module("two")})
	f.executeAll(good)
	f.post()
	return q
}

// queue makes the group of a pull request on top of base, as GitHub does.
func (q mergeQueue) queue(base string, number int) string {
	group := q.repo.MergeCommit(base, string(q.forge.get(number).Head))
	q.repo.SetRef(fmt.Sprintf("refs/heads/gh-readonly-queue/%s/pr-%d-%s", master, number, base), group)
	return group
}

// judge has the branch looked at, and returns why that failed.
func (q mergeQueue) judge() error {
	err := q.r.TakeIn(q.t.Context(), infra, 0)
	q.post()
	return err
}

func (q mergeQueue) wants(group string, statuses ...string) {
	q.t.Helper()
	if got := q.forge.told(holdfast.Revision(group), holdfast.ContextPlan); !slices.Equal(got, statuses) {
		q.t.Errorf("the statuses of the group are %q, want %q", got, statuses)
	}
}

// A group that cannot be read does not keep those after it waiting, and says why itself
// once that lasts.
func TestMergeGroupThatCannotBeRead(t *testing.T) {
	t.Parallel()
	q := newMergeQueue(t)
	head := q.repo.Rev(master)
	first, second := q.queue(head, 1), q.queue(head, 2)
	q.git.without = []string{first}
	if q.judge() == nil {
		t.Error("nobody is told of a group that cannot be read")
	}
	q.wants(first)
	q.wants(second, "success 1 cluster as planned: #2")
	q.clock.Advance(time.Minute)
	if q.judge() == nil {
		t.Error("nobody is told of a group that is given up")
	}
	says := fmt.Sprintf("error the merge result cannot be read: open infra at %s: too many files", holdfast.Revision(first).Short())
	q.wants(first, says)
	if err := q.judge(); err != nil {
		t.Errorf("once its status is final: %v", err)
	}
	q.wants(first, says)
}

// So does a group whose commit is gone from the mirror.
func TestMergeGroupThatIsLost(t *testing.T) {
	t.Parallel()
	q := newMergeQueue(t)
	group := holdfast.Revision(q.queue(q.repo.Rev(master), 1))
	q.git.lost = []holdfast.Revision{group}
	if q.judge() == nil {
		t.Error("nobody is told of a group that is lost")
	}
	q.wants(string(group))
	q.clock.Advance(time.Minute)
	if q.judge() == nil {
		t.Error("nobody is told of a group that is given up")
	}
	q.wants(string(group), fmt.Sprintf("error the merge result cannot be read: look for %s in infra: not found", group.Short()))
}

// An error before an outage and one after it are not a group that cannot be read for as long
// as the outage took.
func TestMergeGroupDuringAnOutage(t *testing.T) {
	t.Parallel()
	q := newMergeQueue(t)
	group := q.queue(q.repo.Rev(master), 1)
	q.git.without = []string{group}
	for _, cause := range []error{nil, holdfast.ErrUnavailable, nil} {
		q.git.cause = cause
		if q.judge() == nil {
			t.Fatalf("nobody is told of %v", cause)
		}
		q.wants(group)
		q.clock.Advance(10 * time.Minute)
	}
	if q.judge() == nil {
		t.Error("nobody is told of a group that is given up")
	}
	q.wants(group, fmt.Sprintf("error the merge result cannot be read: open infra at %s: too many files", holdfast.Revision(group).Short()))
}

// A group that cannot be read has its status, although the host is unavailable with each
// second look.
func TestMergeGroupOfAHostThatIsAwayNowAndThen(t *testing.T) {
	t.Parallel()
	q := newMergeQueue(t)
	group := q.queue(q.repo.Rev(master), 1)
	q.git.without = []string{group}
	for range 10 {
		for _, cause := range []error{nil, holdfast.ErrUnavailable} {
			q.git.cause = cause
			_ = q.judge()
			q.clock.Advance(10 * time.Second)
		}
	}
	q.wants(group, fmt.Sprintf("error the merge result cannot be read: open infra at %s: too many files", holdfast.Revision(group).Short()))
}

// A group with a red pull request is red, whether or not it can be read.
func TestMergeGroupWithARedMember(t *testing.T) {
	t.Parallel()
	q := newMergeQueue(t)
	q.push(2, map[string]string{"clusters/preprod.yaml": "kind: ["})
	q.post()
	group := q.queue(q.repo.Rev(master), 2)
	q.git.without = []string{group}
	q.must(q.judge())
	if got := q.forge.status(holdfast.Revision(group), holdfast.ContextPlan); got != holdfast.StatusFailure {
		t.Errorf("the status of the group is %q", got)
	}
}

// Nor does a queue wait for a tracked branch that cannot be taken in.
func TestMergeGroupOfAnUnreadableBranch(t *testing.T) {
	t.Parallel()
	q := newMergeQueue(t)
	head := q.repo.Commit(master, "more", map[string]string{"README.md": "more"})
	group := q.queue(head, 1)
	q.git.without = []string{head}
	if q.judge() == nil {
		t.Fatal("the branch was taken in")
	}
	q.wants(group)
	q.clock.Advance(time.Minute)
	if q.judge() == nil {
		t.Fatal("the branch was taken in")
	}
	q.wants(group, fmt.Sprintf("error the merge result cannot be read: open infra at %s: too many files", head))
}

// A group is green in which one pull request removes a cluster and another one adds one in
// its place: each of them was planned alone. Merged at once, both are done.
func TestMergeGroupThatReplacesACluster(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	q := mergeQueue{f, &partlyReadableGit{Git: f.opts.Sources.Git}}
	q.openTwoInOnePlace()
	first := q.queue(q.repo.Rev(master), 1)
	second := q.queue(first, 2)
	q.must(q.judge())
	q.wants(first, "success 1 cluster as planned: #1")
	q.wants(second, "success 2 clusters as planned: #1, #2")
	q.mergeUnnoticed(1, byMerge)
	q.merge(2, byMerge)
	q.executeAll(withEngine)
	if rec := q.cluster("prod"); rec.Phase != holdfast.PhaseDeleted {
		t.Errorf("prod is %s, and waits for %q: %s", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
	if rec := q.cluster("live"); rec.Applied.Run == "" {
		t.Errorf("live is %s, and waits for %q: %s", rec.Phase, rec.Waiting, rec.WaitingDetail)
	}
}
