package local_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
)

const ours = "holdfast/kubernetes"

// upgrade proposes a version in a.yaml, on top of the tracked branch.
func (h *host) upgrade(version string) proposals.PullRequest {
	h.Helper()
	return proposals.PullRequest{
		Branch: ours, Base: holdfast.Revision(h.repo.Rev("main")), BaseBranch: "main",
		Files:   map[string][]byte{"a.yaml": []byte("version: " + version + "\n")},
		Message: "Upgrade to " + version, Title: "Upgrade prod to " + version, Body: "Notes.", Labels: []string{"holdfast"},
	}
}

func (h *host) propose(p proposals.PullRequest) holdfast.PullRequest {
	h.Helper()
	pr, err := h.forge.Propose(h.Context(), infra, p)
	h.must(err)
	return pr
}

func (h *host) isOpen(pr holdfast.PullRequest, number int, p proposals.PullRequest) {
	h.Helper()
	want := holdfast.PullRequest{
		PullRequestRef: holdfast.PullRequestRef{Repo: infra, Number: number}, Title: p.Title, Author: "holdfast",
		State: holdfast.PullRequestOpen, Branch: ours, Head: holdfast.Revision(h.repo.Rev(ours)), BaseBranch: "main", Mergeable: true,
	}
	got := pr
	got.UpdatedAt = time.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("pull request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(pr, h.pullRequest(number)); diff != "" {
		h.Errorf("pull request as it was returned, and as it is read (-returned +read):\n%s", diff)
	}
	if text := h.repo.Git("show", ours+":a.yaml") + "\n"; text != string(p.Files["a.yaml"]) {
		h.Errorf("the branch says %q, want %q", text, p.Files["a.yaml"])
	}
	if parent := h.repo.Rev(ours + "^"); parent != string(p.Base) {
		h.Errorf("the branch stands on %s, want %s", parent, p.Base)
	}
}

func TestProposeThroughItsLife(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a.yaml", "version: 1.4.2\n")
	p := h.upgrade("1.5.0")
	pr := h.propose(p)
	h.isOpen(pr, 1, p)

	// A lost answer, and a look without news.
	for _, head := range []holdfast.Revision{"", pr.Head} {
		p.Head = head
		if diff := cmp.Diff(pr, h.propose(p)); diff != "" {
			t.Errorf("proposed again (-first +second):\n%s", diff)
		}
	}
	// The tracked branch moves on; a newer version comes.
	h.commit("main", "other", "x")
	p.Base = holdfast.Revision(h.repo.Rev("main"))
	pr = h.propose(p)
	h.isOpen(pr, 1, p)
	p = h.upgrade("1.6.0")
	p.Head = pr.Head
	pr = h.propose(p)
	h.isOpen(pr, 1, p)
	// So does one whose answer got lost: the head that is known is the one before.
	p.Base = h.commit("main", "other", "y")
	h.propose(p)
	p.Base = h.commit("main", "other", "z")
	h.isOpen(h.propose(p), 1, p)

	h.repo.Merge("main", ours)
	merged := h.propose(p)
	if merged.Number != 1 || merged.State != holdfast.PullRequestMerged {
		t.Errorf("proposed after its merge: %+v", merged)
	}
	// The next one takes the same branch.
	p = h.upgrade("1.7.0")
	h.isOpen(h.propose(p), 2, p)
}

func TestProposeWhatWasDeclined(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a.yaml", "version: 1.4.2\n")
	p := h.upgrade("1.5.0")
	first := h.propose(p)
	h.repo.DeleteBranch(ours)
	for _, head := range []holdfast.Revision{"", first.Head} {
		p.Head, p.Base = head, holdfast.Revision(h.repo.Rev("main"))
		if pr := h.propose(p); pr.Number != 1 || pr.State != holdfast.PullRequestClosed {
			t.Errorf("proposed after it was declined: %+v", pr)
		}
		h.commit("main", "other", string(head)+"x") // also on another base
	}
	if out := h.repo.Git("for-each-ref", "--format=%(refname)"); strings.Contains(out, ours) {
		t.Errorf("refs are %s", out)
	}
	// A newer version is another matter.
	p = h.upgrade("1.6.0")
	p.Head = first.Head
	h.isOpen(h.propose(p), 2, p)
}

func TestProposeWhereSomebodyWorks(t *testing.T) {
	t.Parallel()
	tests := map[string]func(h *host, p proposals.PullRequest){
		"a commit on top": func(h *host, _ proposals.PullRequest) { h.commit(ours, "b", "mine") },
		"another branch of that name": func(h *host, _ proposals.PullRequest) {
			h.repo.CommitOn(ours, "main", "mine", map[string]string{"a.yaml": "mine"})
		},
		"amended": func(h *host, _ proposals.PullRequest) {
			message := h.repo.Git("log", "-1", "--format=%B", ours)
			h.repo.CommitOn(ours, "main", message, map[string]string{"a.yaml": "version: 1.4.9\n"})
		},
	}
	for name, work := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.commit("main", "a.yaml", "version: 1.4.2\n")
			p := h.upgrade("1.5.0")
			head := h.propose(p).Head
			work(h, p)
			theirs := h.repo.Rev(ours)
			for _, known := range []holdfast.Revision{"", head} {
				for _, version := range []string{"1.5.0", "1.6.0"} {
					p := h.upgrade(version)
					p.Head = known
					if _, err := h.forge.Propose(t.Context(), infra, p); !errors.Is(err, holdfast.ErrConflict) {
						t.Errorf("Propose() = %v, want ErrConflict", err)
					}
				}
			}
			h.must(h.forge.Withdraw(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: 1}, ours, head, "Nothing is left."))
			if got := h.repo.Rev(ours); got != theirs {
				t.Errorf("the branch is at %s, want %s", got, theirs)
			}
		})
	}
}

func TestProposeRefuses(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a.yaml", "version: 1.4.2\n")
	for name, change := range map[string]func(p *proposals.PullRequest){
		"the tracked branch":  func(p *proposals.PullRequest) { p.Branch = "main" },
		"another base branch": func(p *proposals.PullRequest) { p.BaseBranch = "next" },
		"a file that is not":  func(p *proposals.PullRequest) { p.Files = map[string][]byte{"b.yaml": nil} },
		"what changes nothing": func(p *proposals.PullRequest) {
			p.Files = map[string][]byte{"a.yaml": []byte("version: 1.4.2\n")}
		},
	} {
		p := h.upgrade("1.5.0")
		change(&p)
		if pr, err := h.forge.Propose(t.Context(), infra, p); err == nil {
			t.Errorf("Propose() of %s = %+v", name, pr)
		}
	}
	// The change came by another way: there is nothing to merge, and no branch.
	p := h.upgrade("1.5.0")
	h.commit("main", "a.yaml", "version: 1.5.0\n")
	if _, err := h.forge.Propose(t.Context(), infra, p); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Propose() of what is there = %v, want ErrUnavailable", err)
	}
	if refs := h.repo.Git("for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("refs are %s", refs)
	}
	if err := h.forge.Withdraw(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: 1}, "main", p.Base, "No."); err == nil {
		t.Error("Withdraw() of the tracked branch is not an error")
	}
	if err := h.forge.Withdraw(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: 1}, ours, p.Base, "No."); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Withdraw() of nothing = %v, want ErrNotFound", err)
	}
}

// A branch that is left after its merge is not a pull request again, also when what
// it says has come to be out of date.
func TestMergedBranchesStayMerged(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a.yaml", "version: 1.4.2\n")
	p := h.upgrade("1.5.0")
	pr := h.propose(p)
	h.repo.Squash("main", ours, "Upgrade")
	if pr := h.pullRequest(1); pr.State != holdfast.PullRequestMerged {
		t.Errorf("it is %s", pr.State)
	}
	h.commit("main", "a.yaml", "version: 1.6.0\n")
	prs, err := h.forge.PullRequests(t.Context(), infra, time.Time{})
	if err != nil || len(prs) != 1 {
		t.Errorf("pull requests %+v, %v; want the merged one", prs, err)
	}
	// Who tidies up finds it.
	h.must(h.forge.Withdraw(t.Context(), pr.PullRequestRef, ours, pr.Head, "Merged."))
	if refs := h.repo.Git("for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("refs are %s", refs)
	}
	if comments, err := h.store.LocalComments(t.Context(), pr.PullRequestRef); err != nil || len(comments) != 0 {
		t.Errorf("comments %+v, %v", comments, err)
	}
}

// What a process that died had pushed and not told is ours when somebody looks.
func TestProposalsAreKnownByTheirCommit(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	base := h.commit("main", "a.yaml", "version: 1.4.2\n")
	p := h.upgrade("1.5.0")
	tree := h.repo.Git("rev-parse", h.repo.CommitOn("elsewhere", string(base), "x", map[string]string{"a.yaml": "version: 1.5.0\n"})+"^{tree}")
	h.repo.DeleteBranch("elsewhere")
	h.repo.CommitOn(ours, string(base), p.CommitMessage(tree), map[string]string{"a.yaml": "version: 1.5.0\n"})
	if pr := h.pullRequest(1); pr.Title != "Upgrade to 1.5.0" || pr.Author != "holdfast" {
		t.Errorf("it is %q by %s", pr.Title, pr.Author)
	}
	h.isOpen(h.propose(p), 1, p)
}

func TestProposeByManyAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a.yaml", "version: 1.4.2\n")
	p := h.upgrade("1.5.0")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if pr, err := h.forge.Propose(t.Context(), infra, p); err != nil || pr.Number != 1 {
				t.Errorf("Propose() = %+v, %v", pr, err)
			}
		})
	}
	group.Wait()
	if n := h.repo.Git("rev-list", "--count", "main.."+ours); n != "1" {
		t.Errorf("%s commits, want one", n)
	}
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a.yaml", "version: 1.4.2\n")
	h.branch("feature")
	h.pullRequest(1)
	pr := h.propose(h.upgrade("1.5.0"))
	for range 2 { // the answer to the first got lost
		h.must(h.forge.Withdraw(t.Context(), pr.PullRequestRef, ours, pr.Head, "Nothing is left."))
		if pr := h.pullRequest(2); pr.State != holdfast.PullRequestClosed {
			t.Errorf("it is %s", pr.State)
		}
	}
	comments, err := h.store.LocalComments(t.Context(), pr.PullRequestRef)
	if err != nil || len(comments) != 1 || !strings.HasSuffix(comments[0].Body, "Nothing is left.") || !comments[0].Bot {
		t.Errorf("comments %+v, %v", comments, err)
	}
	if refs := h.repo.Git("for-each-ref", "--format=%(refname)"); refs != "refs/heads/feature\nrefs/heads/main" {
		t.Errorf("refs are %s", refs)
	}
	if pr := h.pullRequest(1); pr.State != holdfast.PullRequestOpen {
		t.Errorf("another one is %s", pr.State)
	}
}

// A head that nobody has recorded is known by its commit.
func TestWithdrawWithoutAHead(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.commit("main", "a.yaml", "version: 1.4.2\n")
	pr := h.propose(h.upgrade("1.5.0"))
	h.commit(ours, "README.md", "mine")
	if err := h.forge.Withdraw(t.Context(), pr.PullRequestRef, ours, "", "No."); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("Withdraw() of somebody's work = %v, want ErrConflict", err)
	}
	if pr := h.pullRequest(1); pr.State != holdfast.PullRequestOpen {
		t.Errorf("it is %s", pr.State)
	}
	h.repo.Branch(ours, string(pr.Head))
	h.must(h.forge.Withdraw(t.Context(), pr.PullRequestRef, ours, "", "No."))
	if pr := h.pullRequest(1); pr.State != holdfast.PullRequestClosed {
		t.Errorf("it is %s", pr.State)
	}
}
