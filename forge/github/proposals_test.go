package github_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/proposals"
)

const ours = "holdfast/kubernetes"

// hub is a repository on GitHub that has Git.
type hub struct {
	*testing.T
	c    *github.Client
	s    *githubserver.Server
	repo *githubserver.Repo
	git  *gitserver.Repo
}

func newHub(t *testing.T) *hub {
	t.Helper()
	s := githubserver.New(t)
	h := &hub{T: t, s: s, repo: s.Repo("acme/app"), git: gitserver.NewRepo(t, filepath.Join(t.TempDir(), "app.git"))}
	h.c = newClient(t, s, github.Options{Identity: github.Identity{Token: token}})
	h.repo.ServeGit(h.git.Path)
	h.git.Commit("main", "first", map[string]string{
		"clusters/eu/prod.yaml": "version: 1.4.2\n", "clusters/dev.yaml": gitserver.Executable + "version: 1.4.2\n",
		"README.md": "hello\n", "link": gitserver.Symlink + "README.md",
	})
	return h
}

// asApp makes the client an App's.
func (h *hub) asApp() *hub {
	h.Helper()
	h.c = newClient(h, h.s, github.Options{Identity: github.Identity{App: &github.App{ID: githubserver.AppID, PrivateKey: h.s.AppKey()}}})
	return h
}

// upgrade proposes a version on top of the tracked branch.
func (h *hub) upgrade(version string) proposals.PullRequest {
	h.Helper()
	return proposals.PullRequest{
		Branch: ours, Base: holdfast.Revision(h.git.Rev("main")), BaseBranch: "main",
		Files: map[string][]byte{
			"clusters/eu/prod.yaml": []byte("version: " + version + "\n"), "clusters/dev.yaml": []byte("version: " + version + "\n"),
		},
		Message: "Upgrade kubernetes to " + version, Title: "Upgrade to " + version, Body: "Notes of " + version,
		Labels: []string{"holdfast"},
	}
}

func (h *hub) propose(p proposals.PullRequest) holdfast.PullRequest {
	h.Helper()
	pr, err := h.c.Propose(h.Context(), "app", p)
	if err != nil {
		h.Fatal(err)
	}
	return pr
}

// pulls shows the pull requests of the repository.
func (h *hub) pulls() (out []string) {
	for _, p := range h.repo.PullRequests() {
		body, _, _ := strings.Cut(p.Body, "\n")
		out = append(out, fmt.Sprintf("%d %s %s %v: %s", p.Number, p.State, p.Title, p.Labels, body))
	}
	return out
}

func (h *hub) wantPulls(want ...string) {
	h.Helper()
	if diff := cmp.Diff(want, h.pulls()); diff != "" {
		h.Errorf("pull requests (-want +got):\n%s", diff)
	}
}

// wantBranch checks that the branch is one commit on the proposal's base, with its
// files and all else as it was.
func (h *hub) wantBranch(pr holdfast.PullRequest, p proposals.PullRequest) {
	h.Helper()
	if got := h.git.Rev(ours); got != string(pr.Head) || h.git.Rev(ours+"^") != string(p.Base) {
		h.Errorf("the branch is at %s, on %s; want %s, on %s", got, h.git.Rev(ours+"^"), pr.Head, p.Base)
	}
	want := slices.Sorted(maps.Keys(p.Files))
	got := strings.Fields(h.git.Git("diff", "--name-only", string(p.Base), ours))
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("files of the commit (-want +got):\n%s", diff)
	}
	for name, data := range p.Files {
		if text := h.git.Git("show", ours+":"+name); text != strings.TrimSpace(string(data)) {
			h.Errorf("%s has %d bytes, want %d", name, len(text), len(data))
		}
		mode := func(rev string) string { return strings.Fields(h.git.Git("ls-tree", rev, name))[0] }
		if mode(ours) != mode(string(p.Base)) {
			h.Errorf("%s has mode %s, want %s", name, mode(ours), mode(string(p.Base)))
		}
	}
}

func TestProposeThroughItsLife(t *testing.T) {
	t.Parallel()
	h := newHub(t).asApp()
	p := h.upgrade("1.5.0")
	pr := h.propose(p)
	want := holdfast.PullRequest{
		PullRequestRef: ref(1), Title: "Upgrade to 1.5.0", Author: githubserver.AppLogin, URL: "https://github.com/acme/app/pull/1",
		State: holdfast.PullRequestOpen, Branch: ours, Head: pr.Head, BaseBranch: "main", UpdatedAt: pr.UpdatedAt, Mergeable: true,
	}
	if diff := cmp.Diff(want, pr); diff != "" {
		t.Errorf("proposed (-want +got):\n%s", diff)
	}
	h.wantBranch(pr, p)
	h.wantPulls("1 open Upgrade to 1.5.0 [holdfast]: Notes of 1.5.0")
	if got := h.git.Git("log", "-1", "--format=%an|%cn", ours); got != "holdfast[bot]|GitHub" {
		t.Errorf("the commit is by %s", got) // else GitHub does not sign it
	}

	// A lost answer, and a look without news: nothing is written.
	for _, known := range []holdfast.Revision{"", pr.Head} {
		h.s.ResetCalls()
		p.Head = known
		if again := h.propose(p); again.Number != 1 || again.Head != pr.Head {
			t.Errorf("proposed again: %+v", again)
		}
		if writes(h.s) != 0 {
			t.Errorf("wrote what is there: %v", h.s.Calls())
		}
	}
	// The tracked branch moves on; a newer version comes; somebody renames it.
	h.git.Commit("main", "other", map[string]string{"README.md": "hi\n"})
	p.Base = holdfast.Revision(h.git.Rev("main"))
	pr = h.propose(p)
	h.wantBranch(pr, p)
	p = h.upgrade("1.6.0")
	p.Head = pr.Head
	pr = h.propose(p)
	h.wantBranch(pr, p)
	h.wantPulls("1 open Upgrade to 1.6.0 [holdfast]: Notes of 1.6.0")

	h.repo.Merge(1, h.git.Squash("main", ours, "Upgrade"))
	if merged := h.propose(p); merged.Number != 1 || merged.State != holdfast.PullRequestMerged || merged.MergeCommit == "" {
		t.Errorf("proposed after its merge: %+v", merged)
	}
	// The next one takes the same branch, which nobody has deleted.
	p = h.upgrade("1.7.0")
	pr = h.propose(p)
	h.wantBranch(pr, p)
	h.wantPulls("1 merged Upgrade to 1.6.0 [holdfast]: Notes of 1.6.0", "2 open Upgrade to 1.7.0 [holdfast]: Notes of 1.7.0")
}

// A file that is removed by a proposal is not there on its branch, and nothing is written when it
// is proposed again.
func TestProposeToRemove(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	p := h.upgrade("1.5.0")
	p.Files["clusters/eu/prod.yaml"] = nil
	pr := h.propose(p)
	if got := strings.Fields(h.git.Git("ls-tree", "-r", "--name-only", string(pr.Head))); !slices.Equal(got, []string{"README.md", "clusters/dev.yaml", "link"}) {
		t.Errorf("the branch has %q", got)
	}
	h.s.ResetCalls()
	if again := h.propose(p); again.Head != pr.Head || writes(h.s) != 0 {
		t.Errorf("proposed again: %+v, wrote %v", again, h.s.Calls())
	}
}

// Whatever answer gets lost, or whatever call fails, a second try ends with one
// branch, one commit on it and one pull request.
func TestProposeWhenAnswersGetLost(t *testing.T) {
	t.Parallel()
	const repo = " /repos/{owner}/{repo}/"
	for _, route := range []string{
		"GET" + repo + "git/ref", "GET" + repo + "pulls", "GET" + repo + "git/commits", "GET" + repo + "git/trees",
		"POST" + repo + "git/blobs", "POST" + repo + "git/trees", "POST" + repo + "git/commits", "POST" + repo + "git/refs",
		"PATCH" + repo + "git/refs", "POST" + repo + "pulls", "PATCH" + repo + "pulls", "POST" + repo + "issues",
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", strings.ReplaceAll(route, "/", " "), after), func(t *testing.T) {
				t.Parallel()
				h := newHub(t)
				p := h.upgrade("1.5.0")
				p.Files["clusters/dev.yaml"] = []byte("version: 1.5.0\x00\n") // sent alone
				var head holdfast.Revision
				if strings.HasPrefix(route, "PATCH") { // there is something to change
					head = h.propose(h.upgrade("1.4.9")).Head
				}
				lost := githubserver.BadGateway
				lost.After = after
				h.s.Fail(1, route, lost)
				p.Head = head
				_, err := h.c.Propose(t.Context(), "app", p)
				// Labels are not worth a second try.
				if !errors.Is(err, holdfast.ErrUnavailable) && !strings.HasSuffix(route, "issues") {
					t.Errorf("Propose() = %v, want ErrUnavailable", err)
				}
				pr := h.propose(p)
				h.wantBranch(pr, p)
				label := "[holdfast]"
				if strings.HasSuffix(route, "issues") && err == nil && !after && len(h.repo.PullRequests()[0].Labels) == 0 {
					label = "[]"
				}
				h.wantPulls("1 open Upgrade to 1.5.0 " + label + ": Notes of 1.5.0")
				if n := h.git.Git("rev-list", "--count", "main.."+ours); n != "1" {
					t.Errorf("%s commits, want one", n)
				}
			})
		}
	}
}

func TestProposeWhatWasDeclined(t *testing.T) {
	t.Parallel()
	for name, decline := range map[string]func(h *hub){
		"closed": func(*hub) {},
		"and its branch is deleted": func(h *hub) {
			h.git.DeleteBranch(ours)
		},
		"after somebody has edited it": func(h *hub) {
			h.repo.PushHead(1, h.git.Commit(ours, "mine", map[string]string{"README.md": "mine"}))
			h.git.DeleteBranch(ours)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			p := h.upgrade("1.5.0")
			first := h.propose(p)
			decline(h)
			h.repo.Close(1)
			for _, known := range []holdfast.Revision{"", first.Head} {
				p.Head, p.Base = known, holdfast.Revision(h.git.Commit("main", "other", map[string]string{"README.md": string(known) + "x"}))
				if pr := h.propose(p); pr.Number != 1 || pr.State != holdfast.PullRequestClosed {
					t.Errorf("proposed after it was declined: %+v", pr)
				}
			}
			// A newer version is another matter.
			p = h.upgrade("1.6.0")
			h.wantBranch(h.propose(p), p)
			h.wantPulls("1 closed Upgrade to 1.5.0 [holdfast]: Notes of 1.5.0", "2 open Upgrade to 1.6.0 [holdfast]: Notes of 1.6.0")
		})
	}
}

func TestProposeWhereSomebodyWorks(t *testing.T) {
	t.Parallel()
	tests := map[string]func(h *hub){
		"a commit on top": func(h *hub) { h.git.Commit(ours, "mine", map[string]string{"README.md": "mine"}) },
		"another branch of that name": func(h *hub) {
			h.git.CommitOn(ours, "main", "mine", map[string]string{"README.md": "mine"})
		},
		"amended": func(h *hub) {
			h.git.CommitOn(ours, "main", h.git.Git("log", "-1", "--format=%B", ours), map[string]string{"README.md": "mine"})
		},
	}
	for name, work := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			head := h.propose(h.upgrade("1.5.0")).Head
			work(h)
			theirs := h.git.Rev(ours)
			for _, known := range []holdfast.Revision{"", head} {
				for _, version := range []string{"1.5.0", "1.6.0"} {
					p := h.upgrade(version)
					p.Head = known
					if _, err := h.c.Propose(t.Context(), "app", p); !errors.Is(err, holdfast.ErrConflict) {
						t.Errorf("Propose() = %v, want ErrConflict", err)
					}
				}
			}
			if err := h.c.Withdraw(t.Context(), ref(1), ours, head, "Nothing is left."); err != nil {
				t.Error(err)
			}
			if got := h.git.Rev(ours); got != theirs {
				t.Errorf("the branch is at %s, want %s", got, theirs)
			}
		})
	}
}

// What others do between our look and our write is seen.
func TestProposeRaces(t *testing.T) {
	t.Parallel()
	const repo = " /repos/{owner}/{repo}/"
	t.Run("somebody makes the branch", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		h.s.Before("POST"+repo+"git/refs", func() {
			h.git.CommitOn(ours, "main", "mine", map[string]string{"README.md": "mine"})
		})
		if _, err := h.c.Propose(t.Context(), "app", h.upgrade("1.5.0")); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("Propose() = %v, want ErrConflict", err)
		}
		if got := h.git.Git("log", "-1", "--format=%s", ours); got != "mine" {
			t.Errorf("the branch says %q", got)
		}
	})
	t.Run("somebody pushes", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		head := h.propose(h.upgrade("1.5.0")).Head
		h.s.Before("POST"+repo+"git/commits", func() { h.git.Commit(ours, "mine", map[string]string{"README.md": "mine"}) })
		p := h.upgrade("1.6.0")
		p.Head = head
		if _, err := h.c.Propose(t.Context(), "app", p); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("Propose() = %v, want ErrConflict", err)
		}
		if got := h.git.Git("log", "-1", "--format=%s", ours); got != "mine" {
			t.Errorf("the branch says %q", got)
		}
	})
	t.Run("another replica is faster", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		p := h.upgrade("1.5.0")
		for _, route := range []string{"POST" + repo + "git/refs", "POST" + repo + "pulls"} {
			h.s.Before(route, func() {
				other := newClient(t, h.s, github.Options{Identity: github.Identity{Token: token}})
				if _, err := other.Propose(t.Context(), "app", p); err != nil {
					t.Errorf("the other: %v", err)
				}
			})
		}
		h.wantBranch(h.propose(p), p)
		h.wantPulls("1 open Upgrade to 1.5.0 [holdfast]: Notes of 1.5.0")
	})
	t.Run("somebody deletes the branch", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		head := h.propose(h.upgrade("1.5.0")).Head
		p := h.upgrade("1.6.0")
		p.Head = head
		h.s.Before("PATCH"+repo+"git/refs", func() { h.git.DeleteBranch(ours); h.repo.Close(1) })
		h.wantBranch(h.propose(p), p)
		h.wantPulls("1 closed Upgrade to 1.5.0 [holdfast]: Notes of 1.5.0", "2 open Upgrade to 1.6.0 [holdfast]: Notes of 1.6.0")
	})
	t.Run("many at once", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		p := h.upgrade("1.5.0")
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				pr, err := h.c.Propose(t.Context(), "app", p)
				if err != nil && !errors.Is(err, holdfast.ErrUnavailable) || err == nil && pr.Number != 1 {
					t.Errorf("Propose() = %+v, %v", pr, err)
				}
			})
		}
		group.Wait()
		h.wantBranch(h.propose(p), p)
		h.wantPulls("1 open Upgrade to 1.5.0 [holdfast]: Notes of 1.5.0")
	})
}

// A repository whose owner was renamed answers to both names, and finds pull
// requests by one.
func TestProposeToARenamedOwner(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.repo = h.s.Repo("acme-corp/app")
	h.repo.ServeGit(h.git.Path)
	h.repo.AlsoKnownAs("acme/app")
	p := h.upgrade("1.5.0")
	pr := h.propose(p)
	if again := h.propose(p); again.Number != 1 || again.Head != pr.Head {
		t.Errorf("proposed again: %+v", again)
	}
	h.wantPulls("1 open Upgrade to 1.5.0 [holdfast]: Notes of 1.5.0")
}

func TestProposeMayNot(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.repo.DenyContents(true)
	_, err := h.c.Propose(t.Context(), "app", h.upgrade("1.5.0"))
	if !errors.Is(err, holdfast.ErrForbidden) || !strings.Contains(err.Error(), "Contents: write") {
		t.Errorf("Propose() without the permission = %v", err)
	}
	h.repo.DenyContents(false)
	const repo = " /repos/{owner}/{repo}/"
	protected := githubserver.Fault{Status: 422, Body: `{"message":"Repository rule violations found\n\nCannot create ref due to creations being restricted."}`}
	notYet := githubserver.Fault{Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"head","code":"invalid"}]}`}
	blank := githubserver.Fault{Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"Head sha can't be blank"}]}`}
	wrong := githubserver.Fault{Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"base","code":"invalid"}]}`}
	busy := githubserver.Fault{Status: 422, Body: `{"message":"Reference update failed"}`}
	for name, test := range map[string]struct {
		route string
		fault githubserver.Fault
		want  error
	}{
		"hidden":       {"POST" + repo + "git/trees", githubserver.NotFound, holdfast.ErrForbidden},
		"protected":    {"POST" + repo + "git/refs", protected, holdfast.ErrForbidden},
		"not yet":      {"POST" + repo + "pulls", notYet, holdfast.ErrUnavailable},
		"blank":        {"POST" + repo + "pulls", blank, holdfast.ErrUnavailable},
		"busy":         {"POST" + repo + "git/refs", busy, holdfast.ErrUnavailable},
		"final":        {"POST" + repo + "pulls", wrong, nil},
		"final ref":    {"POST" + repo + "git/refs", wrong, nil},
		"final tree":   {"POST" + repo + "git/trees", wrong, nil},
		"no pulls":     {"POST" + repo + "pulls", githubserver.Forbidden, holdfast.ErrForbidden},
		"unauthorized": {"POST" + repo + "git/commits", githubserver.Unauthorized, nil}, // another token is
		"limited":      {"POST" + repo + "git/commits", githubserver.SecondaryLimit(time.Minute), holdfast.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			if name == "unauthorized" {
				h.asApp()
			}
			h.s.Fail(1, test.route, test.fault)
			_, err := h.c.Propose(t.Context(), "app", h.upgrade("1.5.0"))
			var limit *holdfast.RateLimitError
			final := strings.HasPrefix(name, "final")
			if !final && !errors.Is(err, test.want) || errors.As(err, &limit) != (name == "limited") {
				t.Errorf("Propose() = %v, want %v", err, test.want)
			}
			for _, passes := range []error{holdfast.ErrUnavailable, holdfast.ErrForbidden, holdfast.ErrNotFound, holdfast.ErrConflict} {
				if final && (err == nil || errors.Is(err, passes)) {
					t.Errorf("Propose() = %v, want an error that is final", err)
				}
			}
		})
	}
	t.Run("labels", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		h.repo.SetPermission(githubserver.TokenLogin, "read")
		h.propose(h.upgrade("1.5.0"))
		h.wantPulls("1 open Upgrade to 1.5.0 []: Notes of 1.5.0")
	})
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	const repo = " /repos/{owner}/{repo}/"
	for _, route := range []string{
		"none", "GET" + repo + "pulls", "POST" + repo + "issues", "PATCH" + repo + "pulls", "GET" + repo + "git/ref", "DELETE" + repo + "git/refs",
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", strings.ReplaceAll(route, "/", " "), after), func(t *testing.T) {
				t.Parallel()
				h := newHub(t)
				pr := h.propose(h.upgrade("1.5.0"))
				lost := githubserver.BadGateway
				lost.After = after
				h.s.Fail(1, route, lost)
				for try := 0; ; try++ {
					err := h.c.Withdraw(t.Context(), pr.PullRequestRef, ours, pr.Head, "Nothing is left.")
					if err == nil {
						break
					}
					if !errors.Is(err, holdfast.ErrUnavailable) || try > 0 {
						t.Fatal(err)
					}
				}
				h.wantPulls("1 closed Upgrade to 1.5.0 [holdfast]: Notes of 1.5.0")
				if comments := h.repo.Comments(1); len(comments) != 1 || !strings.HasSuffix(comments[0].Body, "Nothing is left.") {
					t.Errorf("comments %+v", comments)
				}
				if refs := h.git.Git("for-each-ref", "--format=%(refname)", "refs/heads"); refs != "refs/heads/main" {
					t.Errorf("branches are %s", refs)
				}
			})
		}
	}
	t.Run("a head that is not known", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		pr := h.propose(h.upgrade("1.5.0"))
		theirs := h.git.Commit(ours, "mine", map[string]string{"README.md": "mine"})
		if err := h.c.Withdraw(t.Context(), pr.PullRequestRef, ours, "", "No."); !errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("Withdraw() of somebody's work = %v, want ErrConflict", err)
		}
		if len(h.repo.Comments(1)) > 0 || h.git.Rev(ours) != theirs {
			t.Error("something was done")
		}
		h.git.Branch(ours, string(pr.Head))
		if err := h.c.Withdraw(t.Context(), pr.PullRequestRef, ours, "", "No."); err != nil {
			t.Error(err)
		}
		if refs := h.git.Git("for-each-ref", "--format=%(refname)", "refs/heads"); refs != "refs/heads/main" {
			t.Errorf("branches are %s", refs)
		}
	})
	t.Run("what is not there", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		if err := h.c.Withdraw(t.Context(), ref(1), ours, head, "No."); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("Withdraw() = %v, want ErrNotFound", err)
		}
		pr := h.propose(h.upgrade("1.5.0"))
		if err := h.c.Withdraw(t.Context(), ref(1), "main", holdfast.Revision(h.git.Rev("main")), "No."); err != nil {
			t.Error(err)
		}
		if h.git.Rev("main") == "" || h.git.Rev(ours) != string(pr.Head) {
			t.Error("a branch was deleted that is not the pull request's")
		}
	})
}
