package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/rollout"
)

// becomes has the record of a pull request say something else.
func (u *upgradeFleet) becomes(number int, how func(*holdfast.PullRequestRecord)) {
	u.t.Helper()
	rec := u.pullRequest(number)
	how(&rec)
	_, err := u.store.SavePullRequest(u.t.Context(), rec)
	u.must(err)
}

// Who opens a declined pull request again wants it.
func TestReopenedUpgradeContinues(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.release("1.1.0")
	u.becomes(1, func(pr *holdfast.PullRequestRecord) { pr.State = holdfast.PullRequestClosed })
	u.must(u.r.UpgradesNow(t.Context(), infra))
	u.expect("web #1 declined: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
	u.becomes(1, func(pr *holdfast.PullRequestRecord) { pr.State = holdfast.PullRequestOpen })
	u.must(u.r.UpgradesNow(t.Context(), infra))
	u.expect("web #1 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
	u.release("1.2.0")
	u.expect("web #1 open: a 1.0.0 1.2.0, b 1.0.0 1.2.0")
	u.expectPullRequests(holdfast.PullRequestOpen, "#1 Upgrade web to 1.2.0 for 2 clusters")
}

// The forge tells of a merge before we have fetched it: what it brought is not
// proposed once more.
func TestAMergeThatIsNotFetchedYetIsNotProposedAgain(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.release("1.1.0")
	u.becomes(1, func(pr *holdfast.PullRequestRecord) {
		pr.State, pr.MergeCommit, pr.MergedAt = holdfast.PullRequestMerged, pr.Head, u.clock.Now()
	})
	u.must(u.r.UpgradesNow(t.Context(), infra))
	u.expect("web #1 merged: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
	if u.host.calls != 1 {
		t.Errorf("proposed %d times", u.host.calls)
	}
	// One that was taken away again by force is not waited for.
	u.clock.Advance(11 * time.Minute)
	u.must(u.r.UpgradesNow(t.Context(), infra))
	if u.host.calls != 2 {
		t.Errorf("proposed %d times", u.host.calls)
	}
}

// Somebody's branch of our name is left alone, and holds nothing up.
func TestABranchOfOurNameIsSomebodyElses(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	theirs := u.repo.CommitOn(upgradeBranch, master, "mine", map[string]string{"README.md": "mine"})
	u.repo.CommitOn(upgradeBranch+".2", master, "mine, too", map[string]string{"README.md": "mine, too"})
	u.release("1.1.0")
	for range 3 { // each finds out about one
		u.must(u.r.UpgradesNow(t.Context(), infra))
		u.settle()
	}
	// On this forge a branch is a pull request: it is theirs, and ends one day.
	if got := u.tell(); !strings.HasPrefix(got, "web #1 edited: ") {
		t.Errorf("upgrades are %s", got)
	}
	if got := u.repo.Rev(upgradeBranch); got != theirs {
		t.Errorf("the branch is at %s, want theirs, %s", got, theirs)
	}
	u.repo.DeleteBranch(upgradeBranch)
	u.repo.DeleteBranch(upgradeBranch + ".2")
	u.lookAt(1)
	u.release("1.2.0")
	u.must(u.r.UpgradesNow(t.Context(), infra))
	u.settle()
	if got := u.tell(); !strings.Contains(got, "open: a 1.0.0 1.2.0, b 1.0.0 1.2.0") {
		t.Errorf("upgrades are %s", got)
	}
}

// bare is a forge on which a branch is not a pull request yet.
type bare struct {
	reconciler.Forge
	taken    map[string]bool
	branches []string
}

func (h *bare) Propose(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error) {
	h.branches = append(h.branches, p.Branch)
	if h.taken[p.Branch] {
		return holdfast.PullRequest{}, fmt.Errorf("not ours: %w", holdfast.ErrConflict)
	}
	return h.Forge.Propose(ctx, repo, p)
}

func TestBranchWithoutAPullRequestIsIgnored(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	host := &bare{Forge: u.host, taken: map[string]bool{upgradeBranch: true, upgradeBranch + ".2": true}}
	u.again(func(o *reconciler.Options) { o.Sources.Forges = map[string]reconciler.Forge{infra: host} })
	u.release("1.1.0")
	u.expect("web #1 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
	if got := u.upgrades()[0].Branch; got != upgradeBranch+".3" || len(host.branches) != 3 {
		t.Errorf("branch %s, after %v", got, host.branches)
	}
}

// What a forge does not take at all is not sent to it every few minutes.
func TestAProposalThatIsRefusedForGoodIsNotRepeated(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.host.breaks(fmt.Errorf("422 Reference cannot be created: %w", holdfast.ErrRejected), nil, nil)
	u.release("1.1.0")
	for i := range 3 {
		u.push("Push", map[string]string{"README.md": fmt.Sprint(i)})
		u.look()
	}
	if u.host.calls != 1 {
		t.Errorf("sent %d times", u.host.calls)
	}
	u.expect("web #0 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0 (422 Reference cannot be created: rejected)")
	u.release("1.2.0") // another one is
	if u.host.calls != 2 {
		t.Errorf("sent %d times", u.host.calls)
	}
	u.host.breaks(nil, nil, nil)
	u.clock.Advance(61 * time.Minute)
	u.must(u.r.LookAtUpgrades(t.Context(), infra))
	u.settle()
	u.expect("web #1 open: a 1.0.0 1.2.0, b 1.0.0 1.2.0")
}

// closed is a forge that does not let us close.
type closed struct {
	reconciler.Forge
	calls int
	with  error
}

func (h *closed) Withdraw(context.Context, holdfast.PullRequestRef, string, holdfast.Revision, string) error {
	h.calls++
	return h.with
}

func TestAWithdrawalThatIsRefusedIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"forbidden": holdfast.ErrForbidden, "for good": holdfast.ErrRejected} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUpgradeFleet(t, twoBehind())
			u.release("1.1.0")
			host := &closed{Forge: u.host, with: fmt.Errorf("close: %w", err)}
			u.again(func(o *reconciler.Options) { o.Sources.Forges = map[string]reconciler.Forge{infra: host} })
			u.push("Upgrade both", map[string]string{"clusters/a.yaml": webCluster("a", "1.1.0", ""), "clusters/b.yaml": webCluster("b", "1.1.0", "")})
			for i := range 3 {
				u.push("Push", map[string]string{"README.md": fmt.Sprint(i)})
				u.look()
			}
			if host.calls != 1 || u.upgrades()[0].Trouble == "" {
				t.Errorf("asked %d times, trouble %q", host.calls, u.upgrades()[0].Trouble)
			}
			host.with = nil
			u.clock.Advance(61 * time.Minute)
			u.must(u.r.LookAtUpgrades(t.Context(), infra))
			u.settle()
			u.expect("web #1 obsolete")
		})
	}
}

// counting is a forge that counts what it is asked for.
type counting struct {
	reconciler.Forge
	calls atomic.Int64
}

func (h *counting) PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequest, error) {
	h.calls.Add(1)
	return h.Forge.PullRequest(ctx, ref)
}

func (h *counting) PullRequests(ctx context.Context, repo string, since time.Time) ([]holdfast.PullRequest, error) {
	h.calls.Add(1)
	return h.Forge.PullRequests(ctx, repo, since)
}

func (h *counting) PullRequestsOf(ctx context.Context, repo string, commit holdfast.Revision) ([]holdfast.PullRequest, error) {
	h.calls.Add(1)
	return h.Forge.PullRequestsOf(ctx, repo, commit)
}

func (h *counting) Propose(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error) {
	h.calls.Add(1)
	return h.Forge.Propose(ctx, repo, p)
}

func (h *counting) Withdraw(ctx context.Context, ref holdfast.PullRequestRef, branch string, head holdfast.Revision, why string) error {
	h.calls.Add(1)
	return h.Forge.Withdraw(ctx, ref, branch, head, why)
}

// Where nothing changes nobody is asked anything, whatever the upgrades' state.
func TestUpgradesThatStandCostNoCalls(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, map[string]string{
		"a": webCluster("a", "1.0.0", "~> 1.0", "team: one"), "b": webCluster("b", "1.0.0", "~> 1.0", "team: two"),
		"c": webCluster("c", "1.0.0", "~> 1.0", "team: three"), "d": webCluster("d", "1.0.0", "~> 1.0", "team: four"),
	}, groupedBy("team"))
	u.release("1.1.0")
	u.executeAll(good)
	u.repo.DeleteBranch(upgradeBranchOf(u, "web team=two"))
	u.repo.Commit(upgradeBranchOf(u, "web team=three"), "Fix it up", map[string]string{"README.md": "x"})
	u.push("Upgrade d", map[string]string{"clusters/d.yaml": webCluster("d", "1.1.0", "~> 1.0", "team: four")})
	u.look()
	for n := range 4 {
		u.lookAt(n + 1)
	}
	u.executeAll(good)
	states := make(map[rollout.UpgradeState]bool)
	for _, rec := range u.upgrades() {
		states[rec.State] = true
	}
	if len(states) != 4 {
		t.Fatalf("upgrades are %s", u.tell())
	}
	host := &counting{Forge: u.host}
	before := u.tell()
	for again := range 2 {
		if again == 1 {
			u.again(func(o *reconciler.Options) { o.Sources.Forges = map[string]reconciler.Forge{infra: host} })
			host.calls.Store(0) // start-up asks for everything
		}
		for range 5 {
			u.clock.Advance(time.Hour)
			u.must(u.r.LookAtUpgrades(t.Context(), infra))
			u.must(u.r.TakeIn(t.Context(), infra, 0))
			u.settle()
		}
		if calls := host.calls.Load(); calls != 0 || u.tell() != before {
			t.Errorf("%d calls in five hours; upgrades are %s", calls, u.tell())
		}
	}
}

func upgradeBranchOf(u *upgradeFleet, key string) string {
	u.t.Helper()
	for _, rec := range u.upgrades() {
		if rec.Key == key {
			return rec.Branch
		}
	}
	u.t.Fatalf("there is no upgrade %q", key)
	return ""
}

// A file that cannot be read for a while, or a name that is claimed twice, closes
// nothing.
func TestAFaultyFileClosesNoUpgrade(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"unparsable": {"clusters/a.yaml": "apiVersion: holdfast.dev/v1\nkind: [", "clusters/b.yaml": webCluster("b", "1.1.0", "")},
		"twice":      {"clusters/again.yaml": webCluster("a", "1.0.0", "~> 1.0"), "clusters/b.yaml": webCluster("b", "1.1.0", "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUpgradeFleet(t, twoBehind())
			u.release("1.1.0")
			u.push("Break it", files)
			u.look()
			u.expect("web #1 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
			u.push("Mend it", map[string]string{
				"clusters/a.yaml": "# mended\n" + webCluster("a", "1.0.0", "~> 1.0"), "clusters/again.yaml": "# nothing\n",
			})
			u.look()
			u.expect("web #1 open: a 1.0.0 1.1.0")
			u.expectPullRequests(holdfast.PullRequestOpen, "#1 Upgrade web to 1.1.0 for a")
		})
	}
}

// A cluster whose label changes goes over to the pull request of its new group.
func TestAClusterChangesItsGroup(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, map[string]string{
		"a": webCluster("a", "1.0.0", "~> 1.0", "team: one"), "b": webCluster("b", "1.0.0", "~> 1.0", "team: two"),
	}, groupedBy("team"))
	u.release("1.1.0")
	u.expect("web team=one #1 open: a 1.0.0 1.1.0", "web team=two #2 open: b 1.0.0 1.1.0")
	u.push("Give a to two", map[string]string{"clusters/a.yaml": webCluster("a", "1.0.0", "~> 1.0", "team: two")})
	u.look()
	u.expect("web team=one #1 obsolete", "web team=two #2 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
	u.push("And back", map[string]string{"clusters/a.yaml": webCluster("a", "1.0.0", "~> 1.0", "team: one")})
	u.look()
	u.expect("web team=one #3 open: a 1.0.0 1.1.0", "web team=two #2 open: b 1.0.0 1.1.0")
}

// Of a pull request that somebody has made half of and merged, the rest is
// proposed again.
func TestHalfOfAnUpgradeIsMerged(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.release("1.1.0")
	u.repo.Commit(upgradeBranch, "Not b", map[string]string{"clusters/b.yaml": u.files["clusters/b.yaml"]})
	u.lookAt(1)
	u.repo.Merge(master, upgradeBranch)
	u.look()
	u.lookAt(1)
	u.must(u.r.UpgradesNow(t.Context(), infra))
	u.settle()
	u.expect("web #2 open: b 1.0.0 1.1.0")
}

// Files that are moved or removed while a pull request is open are followed.
func TestFilesMoveUnderAnUpgrade(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.release("1.1.0")
	u.push("Move a, remove b", map[string]string{
		"clusters/a.yaml": gitserver.Delete, "clusters/b.yaml": gitserver.Delete,
		"clusters/deep/er/a.yaml": strings.ReplaceAll(u.files["clusters/a.yaml"], "\n", "\r\n"),
	})
	u.look()
	u.expect("web #1 open: a 1.0.0 1.1.0")
	got := u.repo.Git("show", upgradeBranch+":clusters/deep/er/a.yaml")
	if !strings.Contains(got, "version: 1.1.0") || strings.Count(got, "\r\n")+1 < strings.Count(u.files["clusters/a.yaml"], "\n") {
		t.Errorf("a is %q", got)
	}
	if diff := u.repo.Git("diff", "--name-only", upgradeBranch+"^", upgradeBranch); diff != "clusters/deep/er/a.yaml" {
		t.Errorf("the branch changes %q", diff)
	}
}

// Tags go, come for an older series, and move: what is open follows, to what can be
// used.
func TestTagsMoveUnderAnUpgrade(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.release("1.1.0")
	u.release("1.2.0")
	u.expect("web #1 open: a 1.0.0 1.2.0, b 1.0.0 1.2.0")
	u.repo.DeleteRef("refs/tags/web/v1.2.0")
	u.look()
	u.expect("web #1 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
	u.release("1.0.5")
	u.expect("web #1 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0, narrow 1.0.0 1.0.5")
	u.repo.Tag("web/v1.2.0", master) // another commit: only our own pull request had the former one
	u.look()
	u.expect("web #1 open: a 1.0.0 1.2.0, b 1.0.0 1.2.0, narrow 1.0.0 1.0.5")
	u.expectPullRequests(holdfast.PullRequestOpen, "#1 "+u.pullRequest(1).Title)
	for _, version := range []string{"1.2.0", "1.1.0", "1.0.5"} {
		u.repo.DeleteRef("refs/tags/web/v" + version)
	}
	u.look()
	u.expect("web #1 obsolete")
}

// A repository that cannot be read stops nobody from upgrading the clusters of
// another one, nor from seeing who is behind.
func TestUpgradesWithARepositoryGone(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	_, lookAtOther := withOther(t, u.fleet)
	lookAtOther()
	u.release("1.1.0")
	git := &unreadableOther{Git: u.opts.Sources.Git}
	git.broken.Store(true)
	u.restart(func(o *reconciler.Options) { o.Sources.Git = git })
	list, err := u.r.Templates(t.Context(), "")
	u.must(err)
	if len(list) != 1 || len(list[0].Users) != 4 || list[0].Trouble != "clusters could not be read from other" {
		t.Errorf("templates %+v", list)
	}
	for name, tc := range map[string]struct {
		req     rollout.UpgradeRequest
		trouble string
	}{
		"named":            {rollout.UpgradeRequest{Clusters: []string{"a"}}, ""},
		"all":              {rollout.UpgradeRequest{All: true}, "upgrade clusters of other: "},
		"one is not there": {rollout.UpgradeRequest{Clusters: []string{"a", "nobody"}}, "upgrade clusters of other: "},
	} {
		got, err := u.r.Upgrade(t.Context(), tc.req)
		if err != nil || len(got) == 0 || !strings.HasPrefix(got[len(got)-1].Trouble, tc.trouble) || tc.trouble == "" && got[0].Trouble != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := u.r.Upgrade(t.Context(), rollout.UpgradeRequest{Clusters: []string{"nobody"}}); err == nil || errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("a cluster that may be in what cannot be read: %v", err)
	}
	git.broken.Store(false)
	got, err := u.r.Upgrade(t.Context(), rollout.UpgradeRequest{Clusters: []string{"a", "nobody"}})
	if err != nil || len(got) != 1 || !strings.Contains(got[0].Trouble, "no tracked branch defines cluster nobody") {
		t.Errorf("a name that is nobody's: %+v, %v", got, err)
	}
}

// What is closed after a proposal whose answer was lost is closed wholly, unless
// somebody has come in between.
func TestAWithdrawalAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for _, edited := range []bool{false, true} {
		t.Run(fmt.Sprintf("edited %t", edited), func(t *testing.T) {
			t.Parallel()
			u := newUpgradeFleet(t, twoBehind())
			u.release("1.1.0")
			u.host.breaks(nil, fmt.Errorf("lost: %w", holdfast.ErrUnavailable), nil)
			u.push("Release", webVersion("1.2.0"))
			u.repo.Tag("web/v1.2.0", master)
			u.must(u.r.TakeIn(t.Context(), infra, 0))
			if err := u.r.Settle(t.Context()); err == nil {
				t.Fatal("the answer was not lost")
			}
			u.host.breaks(nil, nil, nil)
			if edited {
				u.repo.Commit(upgradeBranch, "Fix it up", map[string]string{"README.md": "x"})
			}
			u.push("Upgrade both", map[string]string{"clusters/a.yaml": webCluster("a", "1.2.0", ""), "clusters/b.yaml": webCluster("b", "1.2.0", "")})
			u.again()
			if edited {
				if got := u.tell(); !strings.HasPrefix(got, "web #1 edited") {
					t.Errorf("upgrades are %s", got)
				}
				return
			}
			u.expect("web #1 obsolete")
			u.expectPullRequests(holdfast.PullRequestOpen)
		})
	}
}
