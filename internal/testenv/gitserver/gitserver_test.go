package gitserver_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// Git's own client clones and pushes, with the password and not without.
func TestCloneAndPush(t *testing.T) {
	t.Parallel()
	server := gitserver.New(t)
	repo := server.CreateRepo("acme/clusters")
	first := repo.Commit("main", "first", map[string]string{"dir/a": "1", "b": "2"})
	server.RequireAuth("ada", "pass word")

	dir := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.Command("git", "-c", "credential.helper=", "-c", "core.askPass=true", "clone", "--quiet", repo.URL, dir).CombinedOutput(); err == nil {
		t.Fatalf("clone without a password succeeded: %s", out)
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	url := strings.Replace(repo.URL, "http://", "http://ada:pass%20word@", 1)
	run("clone", "--quiet", url, dir)
	if got := run("-C", dir, "rev-parse", "HEAD"); got != first {
		t.Errorf("cloned %s, want %s", got, first)
	}
	run("-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--allow-empty", "-m", "pushed")
	run("-C", dir, "push", "--quiet", "origin", "HEAD:main")
	if got, want := repo.Rev("main"), run("-C", dir, "rev-parse", "HEAD"); got != want {
		t.Errorf("main is %s after the push of %s", got, want)
	}
	if n := server.Requests("POST /acme/clusters.git/git-receive-pack"); n == 0 {
		t.Error("no push was counted")
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	base := repo.Commit("main", "base", map[string]string{"a": "1", "gone": "x"})
	head := repo.CommitOn("work", base, "work", map[string]string{"b": "2", "gone": gitserver.Delete})
	repo.Commit("main", "meanwhile", map[string]string{"c": "3"})
	merged := repo.MergeCommit("main", "work")
	repo.SetPullRequest(3, "work", merged)
	if got := repo.Git("ls-tree", "--name-only", "refs/pull/3/merge"); got != "a\nb\nc" {
		t.Errorf("merge ref has %q", got)
	}
	squashed := repo.Squash("main", "work", "Work (#3)")
	if got := repo.Git("rev-list", "--count", squashed); got != "3" {
		t.Errorf("%s commits after the squash, want 3", got)
	}
	repo.Branch("again", base)
	if got := repo.Merge("again", "work"); repo.Rev(got+"^2") != head || repo.Rev("again") != got {
		t.Errorf("merge commit %s is not on the branch, or without its second parent", got)
	}
	repo.SetPullRequest(3, "work", "")
	repo.DeleteBranch("work")
	if refs := repo.Git("for-each-ref", "--format=%(refname)"); strings.Contains(refs, "merge") || strings.Contains(refs, "heads/work") {
		t.Errorf("refs left: %s", refs)
	}
}
