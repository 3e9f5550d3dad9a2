package gitsource_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

func TestFetchFollowsTheRemote(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	first := repo.Commit("main", "first", map[string]string{"a.yaml": "1"})
	repo.Branch("feature", first)
	repo.Tag("v1", first)
	repo.AnnotatedTag("kubernetes/v1.0.0", first, "release")
	want := holdfast.Refs{
		"refs/heads/main":             rev(first),
		"refs/heads/feature":          rev(first),
		"refs/tags/v1":                rev(first),
		"refs/tags/kubernetes/v1.0.0": rev(first),
	}
	if diff := cmp.Diff(want, fetch(t, s)); diff != "" {
		t.Fatalf("first fetch (-want +got):\n%s", diff)
	}

	// Everything that a remote can do to its refs, at once.
	forced := repo.CommitOn("main", "", "forced push", map[string]string{"b.yaml": "2"})
	repo.DeleteBranch("feature")
	nested := repo.Commit("feature/nested", "in the place of a file", map[string]string{"c.yaml": "3"})
	repo.Tag("v1", forced)
	repo.AnnotatedTag("kubernetes/v1.0.0", nested, "moved")
	want = holdfast.Refs{
		"refs/heads/main":             rev(forced),
		"refs/heads/feature/nested":   rev(nested),
		"refs/tags/v1":                rev(forced),
		"refs/tags/kubernetes/v1.0.0": rev(nested),
	}
	if diff := cmp.Diff(want, fetch(t, s)); diff != "" {
		t.Errorf("second fetch (-want +got):\n%s", diff)
	}
	if got := content(t, tree(t, s, forced)); got["b.yaml"] != "2" || len(got) != 1 {
		t.Errorf("tree after the forced push: %v", got)
	}
	// What a branch pointed at before a forced push is still there.
	if got := content(t, tree(t, s, first)); got["a.yaml"] != "1" {
		t.Errorf("tree before the forced push: %v", got)
	}
}

func TestFetchEmptyRepository(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	if refs := fetch(t, s); len(refs) != 0 {
		t.Errorf("refs of an empty repository: %v", refs)
	}
	sha := repo.Commit("main", "first", map[string]string{"a": "1"})
	if refs := fetch(t, s); refs["refs/heads/main"] != rev(sha) {
		t.Errorf("refs after the first push: %v", refs)
	}
	repo.DeleteBranch("main")
	if refs := fetch(t, s); len(refs) != 0 {
		t.Errorf("refs of an emptied repository: %v", refs)
	}
}

func TestFetchOfUnchangedRemoteIsCheap(t *testing.T) {
	t.Parallel()
	server, repo, s := served(t)
	repo.Commit("main", "first", map[string]string{"a": "1"})
	repo.Git("tag", "a-file", repo.Git("rev-parse", "main:a")) // not a commit: not published
	first := fetch(t, s)
	if _, ok := first["refs/tags/a-file"]; ok {
		t.Error("a tag of a file is published")
	}
	for range 3 {
		if diff := cmp.Diff(first, fetch(t, s)); diff != "" {
			t.Errorf("refs changed:\n%s", diff)
		}
	}
	if n := server.Requests("POST /acme/clusters.git/git-upload-pack"); n != 1 {
		t.Errorf("asked for %d packs, want 1", n)
	}
}

func TestFetchSharesAnswers(t *testing.T) {
	t.Parallel()
	server, repo, s := served(t)
	repo.Commit("main", "first", map[string]string{"a": "1"})
	fetch(t, s)
	// The first is held up until the others stand behind it.
	gate := make(chan struct{})
	server.Hold(gate)
	before := server.Requests("GET /acme/clusters.git/info/refs")
	var started, done sync.WaitGroup
	started.Add(50)
	for range 50 {
		done.Go(func() {
			started.Done()
			if _, err := s.Fetch(t.Context(), repoName); err != nil {
				t.Error(err)
			}
		})
	}
	started.Wait()
	close(gate)
	done.Wait()
	if n := server.Requests("GET /acme/clusters.git/info/refs") - before; n > 25 {
		t.Errorf("50 fetches at once asked %d times", n)
	}
}

func TestFetchShallowRemote(t *testing.T) {
	t.Parallel()
	repo, _ := local(t)
	repo.Commit("main", "one", map[string]string{"a": "1"})
	repo.Commit("main", "two", map[string]string{"a": "2"})
	shallow := filepath.Join(t.TempDir(), "shallow")
	repo.Git("clone", "--quiet", "--bare", "--depth=1", "file://"+repo.Path, shallow)
	s := open(t, t.TempDir(), gitsource.Repository{URL: shallow})
	if _, err := s.Fetch(t.Context(), repoName); err == nil || !strings.Contains(err.Error(), "shallow") {
		t.Errorf("Fetch = %v, want a word about shallow", err)
	}
}

func TestFetchPullRequest(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	base := repo.Commit("main", "base", map[string]string{"a": "1"})
	head := repo.CommitOn("work", base, "work", map[string]string{"b": "2"})
	merge := repo.MergeCommit("main", "work")
	repo.SetPullRequest(7, head, merge)
	repo.DeleteBranch("work") // a pull request of a fork has no branch here
	fetch(t, s)

	if _, err := s.Tree(t.Context(), repoName, head); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Tree before the pull request was fetched = %v, want ErrNotFound", err)
	}
	got, err := s.FetchPullRequest(t.Context(), repoName, 7)
	if err != nil {
		t.Fatal(err)
	}
	want := holdfast.PullRequestRefs{Head: rev(head), Merge: rev(merge), Refs: holdfast.Refs{"refs/heads/main": rev(base)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("FetchPullRequest (-want +got):\n%s", diff)
	}
	if files := content(t, tree(t, s, merge)); files["a"] != "1" || files["b"] != "2" {
		t.Errorf("merge result: %v", files)
	}
	parents, err := s.Parents(t.Context(), repoName, rev(merge))
	if diff := cmp.Diff([]holdfast.Revision{rev(base), rev(head)}, parents); err != nil || diff != "" {
		t.Errorf("Parents: %v\n%s", err, diff)
	}

	// The head is forced and conflicts: the forge no longer has a merge.
	forced := repo.CommitOn("work", base, "again", map[string]string{"a": "3"})
	repo.SetPullRequest(7, forced, "")
	moved := repo.Commit("main", "meanwhile", map[string]string{"c": "1"}) // and so does the base
	got, err = s.FetchPullRequest(t.Context(), repoName, 7)
	want = holdfast.PullRequestRefs{Head: rev(forced), Refs: holdfast.Refs{"refs/heads/main": rev(moved), "refs/heads/work": rev(forced)}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("FetchPullRequest: %v (-want +got):\n%s", err, diff)
	}
	if refs := fetch(t, s); len(refs) != 2 { // main and work
		t.Errorf("pull requests are among the refs: %v", refs)
	}
	if _, err := s.FetchPullRequest(t.Context(), repoName, 8); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("FetchPullRequest of none = %v, want ErrNotFound", err)
	}
}

func TestFetchLocal(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "it's a repo.git"))
	sha := repo.Commit("main", "first", map[string]string{"a": "1"})
	for name, url := range map[string]string{"path": repo.Path, "file URL": "file://" + repo.Path} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir(), gitsource.Repository{URL: url})
			if refs := fetch(t, s); refs["refs/heads/main"] != rev(sha) {
				t.Errorf("refs: %v", refs)
			}
			if refs := fetch(t, s); refs["refs/heads/main"] != rev(sha) {
				t.Errorf("refs: %v", refs)
			}
			if got := content(t, tree(t, s, sha)); got["a"] != "1" {
				t.Errorf("tree: %v", got)
			}
		})
	}
}

func TestFetchEmptyLocal(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	s := open(t, t.TempDir(), gitsource.Repository{URL: repo.Path})
	if refs := fetch(t, s); len(refs) != 0 {
		t.Errorf("refs: %v", refs)
	}
}

func TestFetchErrors(t *testing.T) {
	t.Parallel()
	server := gitserver.New(t)
	repo := server.CreateRepo(repoName)
	repo.Commit("main", "first", map[string]string{"a": "1"})
	empty := t.TempDir()
	answer := func(code int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	tests := map[string]struct {
		url    string
		answer http.HandlerFunc
		want   error
	}{
		"no such repository":          {url: server.URL() + "/nobody/nothing.git", want: holdfast.ErrNotFound},
		"no such folder":              {url: filepath.Join(empty, "nothing"), want: holdfast.ErrNotFound},
		"a folder that is not a repo": {url: empty, want: holdfast.ErrNotFound},
		"nobody listens":              {url: "http://127.0.0.1:1/a.git", want: holdfast.ErrUnavailable},
		"401":                         {answer: answer(401, "text/plain", "no"), want: holdfast.ErrUnauthorized},
		"403":                         {answer: answer(403, "text/plain", "no"), want: holdfast.ErrForbidden},
		"404":                         {answer: answer(404, "text/html", "<html>no"), want: holdfast.ErrNotFound},
		"429":                         {answer: answer(429, "text/plain", "slowly"), want: holdfast.ErrUnavailable},
		"502":                         {answer: answer(502, "text/html", "<html>"+repeat("sorry ", 1e6)), want: holdfast.ErrUnavailable},
		"a login page":                {answer: answer(200, "text/html", "<html>who are you?"), want: holdfast.ErrUnavailable},
		"an answer that breaks off":   {answer: answer(200, "application/x-git-upload-pack-advertisement", "001e# service=git-upload-pack\n0000"), want: holdfast.ErrUnavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.answer != nil {
				server := gitserver.New(t)
				server.Intercept(tt.answer)
				tt.url = server.URL() + "/a.git"
			}
			s := open(t, t.TempDir(), gitsource.Repository{URL: tt.url})
			_, err := s.Fetch(t.Context(), repoName)
			if !errors.Is(err, tt.want) {
				t.Fatalf("Fetch = %v, want %v", err, tt.want)
			}
			if len(err.Error()) > 1500 || strings.Contains(err.Error(), "<html>") {
				t.Errorf("the error repeats the page: %.300s", err)
			}
		})
	}
}

func TestFetchAfterErrors(t *testing.T) {
	t.Parallel()
	server, repo, s := served(t)
	first := repo.Commit("main", "first", map[string]string{"a": "1"})
	fetch(t, s)
	second := repo.Commit("main", "second", map[string]string{"a": "2"})

	// The refs are advertised; the pack breaks off in the middle.
	server.Intercept(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			line := fmt.Sprintf("%s refs/heads/main\x00side-band-64k\n", second)
			fmt.Fprintf(w, "001e# service=git-upload-pack\n0000%04x%s0000", len(line)+4, line)
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		fmt.Fprintf(w, "0008NAK\n%04x\x01PACK\x00\x00\x00\x02\x00\x00\x00\x03half", 4+1+12+4)
	})
	if _, err := s.Fetch(t.Context(), repoName); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Fetch of half a pack = %v, want ErrUnavailable", err)
	}
	if got := content(t, tree(t, s, first)); got["a"] != "1" {
		t.Errorf("tree after half a pack: %v", got)
	}
	server.Intercept(nil)
	if refs := fetch(t, s); refs["refs/heads/main"] != rev(second) {
		t.Errorf("refs: %v", refs)
	}
	if got := content(t, tree(t, s, second)); got["a"] != "2" {
		t.Errorf("tree: %v", got)
	}
}

func TestFetchFromHangingRemote(t *testing.T) {
	t.Parallel()
	server := gitserver.New(t)
	repo := server.CreateRepo(repoName)
	hang := make(chan struct{})
	server.Intercept(func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	s, err := gitsource.New(gitsource.Options{
		Dir:          t.TempDir(),
		Repositories: []gitsource.Repository{{Name: repoName, URL: repo.URL}},
		IdleTimeout:  20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fetch(t.Context(), repoName); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Fetch = %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Fetch(ctx, repoName); !errors.Is(err, context.Canceled) {
		t.Errorf("Fetch of a canceled caller = %v, want context.Canceled", err)
	}
}

func TestFetchAsksForCredentialsEachTime(t *testing.T) {
	t.Parallel()
	server := gitserver.New(t)
	repo := server.CreateRepo(repoName)
	repo.Commit("main", "first", map[string]string{"a": "1"})
	token := "ghs_first"
	server.RequireAuth("x-access-token", token)
	s := open(t, t.TempDir(), gitsource.Repository{
		URL: repo.URL,
		Auth: gitsource.Auth{Basic: func(context.Context) (string, string, error) {
			return "x-access-token", token, nil
		}},
	})
	fetch(t, s)

	server.RequireAuth("x-access-token", "ghs_second")
	_, err := s.Fetch(t.Context(), repoName)
	if !errors.Is(err, holdfast.ErrUnauthorized) || strings.Contains(err.Error(), token) {
		t.Errorf("Fetch with an expired token = %v, want ErrUnauthorized without the token", err)
	}
	token = "ghs_second"
	fetch(t, s)

	token = ""
	want := errors.New("no installation")
	s = open(t, t.TempDir(), gitsource.Repository{
		URL:  repo.URL,
		Auth: gitsource.Auth{Basic: func(context.Context) (string, string, error) { return "", "", want }},
	})
	if _, err := s.Fetch(t.Context(), repoName); !errors.Is(err, want) {
		t.Errorf("Fetch without a token = %v, want %v", err, want)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	basic := func(context.Context) (string, string, error) { return "", "", nil }
	for name, repo := range map[string]gitsource.Repository{
		"no name":                {URL: "https://example.com/a.git"},
		"no URL":                 {Name: "a"},
		"password in the URL":    {Name: "a", URL: "https://me:s3cret-word@example.com/a.git"},
		"token in the URL":       {Name: "a", URL: "https://s3cret-word@example.com/a.git"},
		"token in the query":     {Name: "a", URL: "https://example.com/a.git?token=s3cret-word"},
		"broken URL":             {Name: "a", URL: "https://me:s3cret-word@[example.com/a.git"},
		"unknown scheme":         {Name: "a", URL: "ftp://example.com/a.git"},
		"ssh without a key":      {Name: "a", URL: "git@example.com:a.git"},
		"ssh without knownhosts": {Name: "a", URL: "ssh://example.com/a.git", Auth: gitsource.Auth{SSH: gitsource.SSH{KeyFile: "k"}}},
		"a token for a path":     {Name: "a", URL: "/srv/a.git", Auth: gitsource.Auth{Basic: basic}},
		"a key for https":        {Name: "a", URL: "https://example.com/a.git", Auth: gitsource.Auth{SSH: gitsource.SSH{KeyFile: "k"}}},
	} {
		_, err := gitsource.New(gitsource.Options{Dir: t.TempDir(), Repositories: []gitsource.Repository{repo}})
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the secret is in %q", name, err)
		}
	}
	two := []gitsource.Repository{{Name: "a", URL: "/srv/a"}, {Name: "a", URL: "/srv/b"}}
	if _, err := gitsource.New(gitsource.Options{Dir: t.TempDir(), Repositories: two}); err == nil {
		t.Error("a name twice: no error")
	}
	if _, err := gitsource.New(gitsource.Options{}); err == nil {
		t.Error("no folder: no error")
	}
}

func TestUnknownRepository(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), gitsource.Repository{URL: "/srv/a"})
	ctx := t.Context()
	_, fetchErr := s.Fetch(ctx, "b")
	_, pullErr := s.FetchPullRequest(ctx, "b", 1)
	_, treeErr := s.Tree(ctx, "b", repeat("a", 40))
	_, mergeErr := s.Merge(ctx, "b", "", "")
	_, diffErr := s.Diff(ctx, "b", "", "")
	_, parentsErr := s.Parents(ctx, "b", "")
	_, ancestorErr := s.IsAncestor(ctx, "b", "", "")
	for _, err := range []error{fetchErr, pullErr, treeErr, mergeErr, diffErr, parentsErr, ancestorErr} {
		if !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("%v, want ErrNotFound", err)
		}
	}
	// Before the first fetch there is nothing to read, and that is not damage.
	if _, err := s.Tree(ctx, repoName, repeat("a", 40)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Tree before a fetch = %v, want ErrNotFound", err)
	}
}

func TestFoldersAreForTheirOwner(t *testing.T) {
	t.Parallel()
	server := gitserver.New(t)
	repo := server.CreateRepo(repoName)
	repo.Commit("main", "first", map[string]string{"a": "1"})
	dir := filepath.Join(t.TempDir(), "deep", "mirrors")
	fetch(t, open(t, dir, gitsource.Repository{URL: repo.URL}))
	for _, path := range []string{dir, filepath.Join(dir, "acme%2Fclusters.git")} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v, want 0700", path, info.Mode(), err)
		}
	}
}
