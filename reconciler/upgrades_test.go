package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/rollout"
)

func twoBehind() map[string]string {
	return map[string]string{
		"a": webCluster("a", "1.0.0", "~> 1.0"), "b": webCluster("b", "1.0.0", "~> 1.0"),
		"stays": webCluster("stays", "1.0.0", ""), "narrow": webCluster("narrow", "1.0.0", "~> 1.0.0"),
	}
}

func TestAnUpgradeIsProposedAndMerged(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.look()
	u.expect()
	u.expectPullRequests(holdfast.PullRequestOpen)

	u.release("1.1.0")
	u.expect("web #1 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
	u.expectPullRequests(holdfast.PullRequestOpen, "#1 Upgrade web to 1.1.0 for 2 clusters")
	for _, name := range []string{"a", "b", "stays", "narrow"} {
		path := "clusters/" + name + ".yaml"
		want := strings.TrimSpace(u.files[path])
		if name == "a" || name == "b" {
			want = strings.Replace(want, "version: 1.0.0", "version: 1.1.0", 1)
		}
		if got := u.at(upgradeBranch, path); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", path, got, want)
		}
	}
	if rec := u.upgrades()[0]; string(rec.Head) != u.repo.Rev(upgradeBranch) || string(rec.Base) != u.repo.Rev(master) {
		t.Errorf("head %s, base %s", rec.Head, rec.Base)
	}
	body := u.host.body(upgradeBranch)
	for _, part := range []string{"| `a` | 1.0.0 | **1.1.0** | `clusters/a.yaml` |", "what is new in 1.1.0", "### 1.0.0 → 1.1.0 (2 clusters)"} {
		if !strings.Contains(body, part) {
			t.Errorf("body lacks %q:\n%s", part, body)
		}
	}
	if got := u.affected(1); strings.Join(got, " ") != "a b" {
		t.Errorf("the pull request affects %q", got)
	}
	u.executeAll(good)
	u.look()
	if u.host.calls != 1 {
		t.Errorf("proposed %d times, want once", u.host.calls)
	}

	u.repo.Merge(master, upgradeBranch)
	u.look()
	u.expect("web #1 merged: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
	u.expectPullRequests(holdfast.PullRequestOpen)
	if got := u.cluster("a").Desired.Document.Template.Version; got != "1.1.0" {
		t.Errorf("desired of a is %s", got)
	}

	// What comes next is another pull request.
	u.release("1.2.0")
	u.expect("web #2 open: a 1.1.0 1.2.0, b 1.1.0 1.2.0")
	u.expectPullRequests(holdfast.PullRequestOpen, "#2 Upgrade web to 1.2.0 for 2 clusters")
}

func TestAnOpenUpgradeMovesOn(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.release("1.1.0")
	first := u.repo.Rev(upgradeBranch)

	// A push that touches none of its files is not a new commit.
	u.push("Say hello", map[string]string{"README.md": "hello"})
	u.look()
	if got := u.repo.Rev(upgradeBranch); got != first || u.host.calls != 1 {
		t.Errorf("%d proposals, head %s, want %s", u.host.calls, got, first)
	}

	// One that does is.
	u.push("Explain a", map[string]string{"clusters/a.yaml": "# of the shop\n" + u.files["clusters/a.yaml"]})
	u.look()
	if got := u.at(upgradeBranch, "clusters/a.yaml"); !strings.Contains(got, "# of the shop") || !strings.Contains(got, "1.1.0") {
		t.Errorf("a is\n%s", got)
	}
	if got := u.repo.Rev(upgradeBranch + "^"); got != u.repo.Rev(master) {
		t.Errorf("the commit stands on %s, want the tracked branch", got)
	}

	// A newer version moves it on.
	u.release("1.2.0")
	u.expect("web #1 open: a 1.0.0 1.2.0, b 1.0.0 1.2.0")
	u.expectPullRequests(holdfast.PullRequestOpen, "#1 Upgrade web to 1.2.0 for 2 clusters")

	// Somebody moves one by hand, then the other.
	u.push("Upgrade a", map[string]string{"clusters/a.yaml": webCluster("a", "1.2.0", "~> 1.0")})
	u.look()
	u.expect("web #1 open: b 1.0.0 1.2.0")
	if got := u.repo.Git("diff", "--name-only", upgradeBranch+"^", upgradeBranch); got != "clusters/b.yaml" {
		t.Errorf("the branch changes %q", got)
	}
	u.push("Upgrade b further", map[string]string{"clusters/b.yaml": webCluster("b", "1.2.5", "~> 1.0")})
	u.look()
	u.expect("web #1 obsolete")
	u.expectPullRequests(holdfast.PullRequestOpen)
	if len(u.host.withdrawn) != 1 || !strings.Contains(u.host.withdrawn[0], "the documents have been changed or removed") {
		t.Errorf("withdrawn: %q", u.host.withdrawn)
	}
	u.look()
	u.release("1.3.0")
	u.expect("web #2 open: a 1.2.0 1.3.0, b 1.2.5 1.3.0")
}

func TestADeclinedUpgradeStaysDeclined(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.release("1.1.0")
	u.repo.DeleteBranch(upgradeBranch)
	u.lookAt(1)
	u.expect("web #1 declined: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
	u.push("Add c", map[string]string{"clusters/c.yaml": webCluster("c", "1.0.0", "~> 1.0")})
	u.look()
	u.again()
	u.expectPullRequests(holdfast.PullRequestOpen)

	// Somebody who asks gets it.
	got, err := u.r.Upgrade(t.Context(), rollout.UpgradeRequest{Clusters: []string{"a"}, Actor: "alice"})
	u.must(err)
	if len(got) != 1 || got[0].PullRequest != 2 || got[0].By != "alice" || got[0].Trouble != "" {
		t.Errorf("upgrades = %+v", got)
	}
	u.settle()
	u.expectPullRequests(holdfast.PullRequestOpen, "#2 Upgrade web to 1.1.0 for a")

	// A newer version is proposed automatically, to those that nobody has asked for.
	u.release("1.2.0")
	u.expect("web #3 open: b 1.0.0 1.2.0, c 1.0.0 1.2.0", "web (asked) #2 open: a 1.0.0 1.1.0")
	if branches := u.repo.Git("branch", "--list", "--format=%(refname:short)", "holdfast/*"); !strings.Contains(branches, upgradeBranch+".2") {
		t.Errorf("branches are %q, want another one for another pull request", branches)
	}
}

func TestAnEditedUpgradeIsLeftAlone(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.release("1.1.0")
	theirs := u.repo.Commit(upgradeBranch, "Fix it up", map[string]string{"clusters/a.yaml": webCluster("a", "1.0.5", "~> 1.0")})
	u.lookAt(1)
	const edited = "web #1 edited: a 1.0.0 1.1.0, b 1.0.0 1.1.0 (somebody else has pushed to branch holdfast/upgrade/web: it is left alone)"
	u.expect(edited)
	u.release("1.2.0")
	u.push("Upgrade both", map[string]string{"clusters/a.yaml": webCluster("a", "1.2.0", ""), "clusters/b.yaml": webCluster("b", "1.2.0", "")})
	u.look()
	u.expect(edited)
	if got := u.repo.Rev(upgradeBranch); got != theirs {
		t.Errorf("the branch is at %s, want theirs, %s", got, theirs)
	}
}

func TestAnEditIsSeenBeforeItIsClosed(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.release("1.1.0")
	u.repo.Commit(upgradeBranch, "Fix it up", map[string]string{"README.md": "x"})
	u.push("Upgrade both", map[string]string{"clusters/a.yaml": webCluster("a", "1.1.0", ""), "clusters/b.yaml": webCluster("b", "1.1.0", "")})
	u.look()
	if got := u.tell(); !strings.HasPrefix(got, "web #1 edited") || len(u.host.withdrawn) > 0 {
		t.Errorf("upgrades are %s, withdrawn %q", got, u.host.withdrawn)
	}
}

func TestCrashesMakeNoSecondPullRequest(t *testing.T) {
	t.Parallel()
	lost := fmt.Errorf("lost: %w", holdfast.ErrUnavailable)
	for name, tc := range map[string]struct{ before, after error }{
		"before it is there":   {before: lost},
		"after it is there":    {after: lost},
		"when nothing happens": {},
	} {
		for _, newer := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, newer version %t", name, newer), func(t *testing.T) {
				t.Parallel()
				u := newUpgradeFleet(t, twoBehind())
				u.look()
				u.host.breaks(tc.before, tc.after, nil)
				u.push("Release", webVersion("1.1.0"))
				u.repo.Tag("web/v1.1.0", master)
				if err := u.r.TakeIn(t.Context(), infra, 0); err != nil {
					t.Fatal(err)
				}
				if err := u.r.Settle(t.Context()); (err == nil) != (tc.before == nil && tc.after == nil) {
					t.Fatal(err)
				}
				u.host.breaks(nil, nil, nil)
				to := "1.1.0"
				if newer {
					to = "1.2.0"
					u.push("Release", webVersion(to))
					u.repo.Tag("web/v"+to, master)
				}
				u.again()
				u.expect(fmt.Sprintf("web #1 open: a 1.0.0 %s, b 1.0.0 %[1]s", to))
				u.expectPullRequests(holdfast.PullRequestOpen, fmt.Sprintf("#1 Upgrade web to %s for 2 clusters", to))
			})
		}
	}
}

// amnesiac loses what is recorded after the forge has answered.
type amnesiac struct {
	reconciler.Store
	mu    sync.Mutex
	fails int // the how manieth call to SaveUpgrade fails
	calls int
}

func (s *amnesiac) SaveUpgrade(ctx context.Context, u rollout.Upgrade) (rollout.Upgrade, error) {
	s.mu.Lock()
	s.calls++
	fails := s.calls == s.fails
	s.mu.Unlock()
	if fails {
		return u, errors.New("killed")
	}
	return s.Store.SaveUpgrade(ctx, u)
}

func TestCrashesBetweenRecords(t *testing.T) {
	t.Parallel()
	for fails := 1; fails <= 4; fails++ {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			t.Parallel()
			u := newUpgradeFleet(t, twoBehind())
			u.look()
			store := &amnesiac{Store: u.store, fails: fails}
			u.restart(func(o *reconciler.Options) { o.Store = store })
			u.r.HurryUpgrades()
			for _, version := range []string{"1.1.0", "1.2.0"} {
				u.push("Release", webVersion(version))
				u.repo.Tag("web/v"+version, master)
				u.must(u.r.TakeIn(t.Context(), infra, 0))
				if err := u.r.Settle(t.Context()); err != nil {
					u.again()
				}
			}
			u.expect("web #1 open: a 1.0.0 1.2.0, b 1.0.0 1.2.0")
			u.expectPullRequests(holdfast.PullRequestOpen, "#1 Upgrade web to 1.2.0 for 2 clusters")

			// The same when it is closed.
			store.fails = store.calls + fails
			both := map[string]string{"clusters/a.yaml": webCluster("a", "1.0.0", ""), "clusters/b.yaml": webCluster("b", "1.0.0", "~> 1.0.0")}
			u.push("Allow no upgrades", both)
			u.must(u.r.TakeIn(t.Context(), infra, 0))
			if err := u.r.Settle(t.Context()); err != nil {
				u.again()
			}
			u.expect("web #1 obsolete")
			u.expectPullRequests(holdfast.PullRequestOpen)
		})
	}
}

func TestLostAnswerToAWithdrawalIsNotARefusal(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.release("1.1.0")
	u.host.breaks(nil, nil, holdfast.ErrUnavailable)
	u.push("Upgrade both further", map[string]string{"clusters/a.yaml": webCluster("a", "1.1.5", "~> 1.0"), "clusters/b.yaml": webCluster("b", "1.1.5", "~> 1.0")})
	u.must(u.r.TakeIn(t.Context(), infra, 0))
	if err := u.r.Settle(t.Context()); err == nil {
		t.Fatal("the answer was lost, and nobody has noticed")
	}
	u.host.breaks(nil, nil, nil)
	u.again()
	u.lookAt(1)
	u.expect("web #1 obsolete")
	u.release("1.2.0")
	u.expect("web #2 open: a 1.1.5 1.2.0, b 1.1.5 1.2.0")
}

func TestTwoReplicasMakeOnePullRequest(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.push("Release", webVersion("1.1.0"))
	u.repo.Tag("web/v1.1.0", master)
	opts := u.opts
	opts.Replica.Identity = "other"
	other, err := reconciler.New(opts)
	u.must(err)
	for _, r := range []*reconciler.Reconciler{u.r, other} {
		u.must(r.TakeIn(t.Context(), infra, 0))
	}
	var wg sync.WaitGroup
	for range 3 {
		for _, r := range []*reconciler.Reconciler{u.r, other} {
			wg.Go(func() {
				if err := r.UpgradesNow(t.Context(), infra); err != nil && !errors.Is(err, holdfast.ErrConflict) {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	u.must(u.r.UpgradesNow(t.Context(), infra))
	u.expect("web #1 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0")
	u.expectPullRequests(holdfast.PullRequestOpen, "#1 Upgrade web to 1.1.0 for 2 clusters")
}
