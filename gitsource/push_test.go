package gitsource_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/proposals"
)

const ours = "holdfast/kubernetes"

// upgrade is a proposal of other contents for files.
func upgrade(base string, files map[string]string) proposals.PullRequest {
	p := proposals.PullRequest{Branch: ours, Base: rev(base), BaseBranch: "main", Message: "Upgrade kubernetes to 1.5.0", Files: map[string][]byte{}}
	for name, text := range files {
		p.Files[name] = []byte(text)
	}
	return p
}

func commit(t testing.TB, s *gitsource.Source, p proposals.PullRequest) holdfast.Revision {
	t.Helper()
	made, err := s.Commit(t.Context(), repoName, p)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func push(t testing.TB, s *gitsource.Source, from, to holdfast.Revision) {
	t.Helper()
	if err := s.Push(t.Context(), repoName, ours, from, to); err != nil {
		t.Fatal(err)
	}
}

func TestCommitAndPush(t *testing.T) {
	t.Parallel()
	server := gitserver.New(t)
	repo := server.CreateRepo(repoName)
	base := repo.Commit("main", "first", map[string]string{
		"clusters/eu/prod.yaml": "version: 1.4.2\n", "clusters/dev.yaml": gitserver.Executable + "version: 1.4.2\n",
		"README.md": "hello\n", "clusters/link": gitserver.Symlink + "dev.yaml", "clusters/eu/other.yaml": "x\n", "run": gitserver.Executable + "x",
	})
	repo.Branch("feature", base)
	server.RequireAuth("ada", "secret")
	s := open(t, t.TempDir(), gitsource.Repository{URL: repo.URL, Auth: gitsource.Auth{
		Basic: func(context.Context) (string, string, error) { return "ada", "secret", nil },
	}})
	fetch(t, s)

	p := upgrade(base, map[string]string{"clusters/eu/prod.yaml": "version: 1.5.0\n", "clusters/dev.yaml": "version: 1.5.0\n"})
	made := commit(t, s, p)
	if again := commit(t, s, p); again != made {
		t.Errorf("the same proposal made %s, then %s", made, again)
	}
	push(t, s, "", made)
	if got := repo.Rev(ours); got != string(made) {
		t.Fatalf("the branch is at %s, want %s", got, made)
	}
	repo.Git("fsck", "--strict", "--no-dangling")
	want := map[string]string{}
	for line := range strings.SplitSeq(repo.Git("ls-tree", "-r", base), "\n") {
		meta, name, _ := strings.Cut(line, "\t")
		want[name] = meta
	}
	got := map[string]string{}
	for line := range strings.SplitSeq(repo.Git("ls-tree", "-r", string(made)), "\n") {
		meta, name, _ := strings.Cut(line, "\t")
		got[name] = meta
	}
	for _, name := range []string{"clusters/eu/prod.yaml", "clusters/dev.yaml"} {
		if text := repo.Git("show", string(made)+":"+name); text != "version: 1.5.0" {
			t.Errorf("%s is %q", name, text)
		}
		if mode := got[name][:6]; mode != want[name][:6] {
			t.Errorf("%s has mode %s, want %s", name, mode, want[name][:6])
		}
		delete(got, name)
		delete(want, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other files (-base +commit):\n%s", diff)
	}
	if got, want := repo.Git("log", "-1", "--format=%an <%ae>|%cn|%ct|%s", string(made)),
		"Holdfast <holdfast@localhost>|Holdfast|"+repo.Git("log", "-1", "--format=%ct", base)+"|Upgrade kubernetes to 1.5.0"; got != want {
		t.Errorf("the commit is by %s, want %s", got, want)
	}
	message, tree, err := s.Message(t.Context(), repoName, made)
	if err != nil || proposals.IdentityOf(message, tree) != p.Identity() {
		t.Errorf("Message() = %q, %s, %v", message, tree, err)
	}
	if refs := fetch(t, s); refs["refs/heads/"+ours] != made || refs["refs/heads/main"] != rev(base) || refs["refs/heads/feature"] != rev(base) {
		t.Errorf("refs after the push: %v", refs)
	}

	// It moves on, and goes.
	p.Files["clusters/dev.yaml"] = []byte("version: 1.6.0\n")
	next := commit(t, s, p)
	push(t, s, made, next)
	push(t, s, made, next) // the answer got lost
	if got := repo.Rev(ours); got != string(next) {
		t.Errorf("the branch is at %s, want %s", got, next)
	}
	push(t, s, next, "")
	push(t, s, next, "")
	if refs := fetch(t, s); refs["refs/heads/"+ours] != "" || len(refs) != 2 {
		t.Errorf("refs after the deletion: %v", refs)
	}
}

// A proposal can remove files, with the folders that are left without any.
func TestCommitRemoves(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	base := repo.Commit("main", "first", map[string]string{"a": "1", "dir/b": "2", "dir/deep/c": "3", "kept/d": "4", "kept/e": "5"})
	fetch(t, s)
	p := upgrade(base, map[string]string{"a": "2"})
	p.Files["dir/b"], p.Files["dir/deep/c"], p.Files["kept/e"] = nil, nil, nil
	push(t, s, "", commit(t, s, p))
	repo.Git("fsck", "--strict", "--no-dangling")
	if got := strings.Fields(repo.Git("ls-tree", "-r", "--name-only", ours)); !slices.Equal(got, []string{"a", "kept/d"}) {
		t.Errorf("what is left is %q", got)
	}
	if got := repo.Git("ls-tree", "--name-only", ours); strings.Contains(got, "dir") {
		t.Errorf("an empty folder is left: %q", got)
	}
}

func TestCommitRefuses(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	base := repo.Commit("main", "first", map[string]string{
		"a": "1", "dir/b": "2", "link": gitserver.Symlink + "a", "sub": gitserver.Submodule + strings.Repeat("a", 40),
	})
	fetch(t, s)
	for name, test := range map[string]struct {
		p    proposals.PullRequest
		want error
		word string
	}{
		"what changes nothing":      {upgrade(base, map[string]string{"a": "1"}), nil, "nothing"},
		"nothing":                   {upgrade(base, nil), nil, "nothing"},
		"a file that is not":        {upgrade(base, map[string]string{"c": "1"}), os.ErrNotExist, "c"},
		"a folder that is not":      {upgrade(base, map[string]string{"no/c": "1"}), os.ErrNotExist, "no/c"},
		"a folder":                  {upgrade(base, map[string]string{"dir": "1"}), nil, "dir: is a folder"},
		"below a file":              {upgrade(base, map[string]string{"a/b": "1"}), nil, "not a folder"},
		"a link":                    {upgrade(base, map[string]string{"link": "b"}), nil, "symbolic link"},
		"below a link":              {upgrade(base, map[string]string{"link/b": "b"}), nil, "not a folder"},
		"a submodule":               {upgrade(base, map[string]string{"sub": "b"}), nil, "submodule"},
		"outside":                   {upgrade(base, map[string]string{"../a": "b"}), os.ErrInvalid, "../a"},
		"the root":                  {upgrade(base, map[string]string{".": "b"}), os.ErrInvalid, "."},
		"too large a file":          {upgrade(base, map[string]string{"a": strings.Repeat("x", gitsource.MaxFileSize+1)}), nil, "larger"},
		"a base that is not":        {upgrade(strings.Repeat("a", 40), map[string]string{"a": "2"}), holdfast.ErrNotFound, ""},
		"a base that is not a SHA":  {upgrade("main", map[string]string{"a": "2"}), holdfast.ErrNotFound, ""},
		"a base that is not a tree": {upgrade(repo.Git("rev-parse", base+"^{tree}"), map[string]string{"a": "2"}), holdfast.ErrNotFound, ""},
	} {
		_, err := s.Commit(t.Context(), repoName, test.p)
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.word) {
			t.Errorf("Commit() of %s = %v, want %v with %q", name, err, test.want, test.word)
		}
	}
	if _, err := s.Commit(t.Context(), "none", upgrade(base, nil)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Commit() in an unknown repository = %v", err)
	}
	if _, _, err := s.Message(t.Context(), repoName, rev(strings.Repeat("a", 40))); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Message() of nothing = %v", err)
	}
}

func TestPushLosesNothing(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	base := repo.Commit("main", "first", map[string]string{"a": "1"})
	fetch(t, s)
	made := commit(t, s, upgrade(base, map[string]string{"a": "2"}))
	next := commit(t, s, upgrade(base, map[string]string{"a": "3"}))

	// Somebody has made the branch, moved it, deleted it, meanwhile.
	theirs := repo.CommitOn(ours, base, "mine", map[string]string{"a": "4"})
	for name, test := range map[string]struct{ from, to holdfast.Revision }{
		"create": {"", made}, "move": {made, next}, "delete": {made, ""},
	} {
		if err := s.Push(t.Context(), repoName, ours, test.from, test.to); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("%s: Push() = %v, want ErrConflict", name, err)
		}
	}
	if got := repo.Rev(ours); got != theirs {
		t.Errorf("the branch is at %s, want what somebody pushed, %s", got, theirs)
	}
	repo.DeleteBranch(ours)
	if err := s.Push(t.Context(), repoName, ours, made, next); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("Push() to a branch that was deleted = %v, want ErrConflict", err)
	}
	for _, branch := range []string{"", "a..b", "a b", "-", "a/"} {
		if err := s.Push(t.Context(), repoName, branch, "", made); err == nil && branch != "-" {
			t.Errorf("Push() to %q is not an error", branch)
		}
	}
	if err := s.Push(t.Context(), repoName, ours, "", rev(strings.Repeat("a", 40))); err == nil {
		t.Error("Push() of a commit that is not there is no error")
	}

	// Many at once: one wins, the others are told or find their own there.
	var group sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		group.Go(func() {
			p := upgrade(base, map[string]string{"a": fmt.Sprint("x", i)})
			made, err := s.Commit(t.Context(), repoName, p)
			if err == nil {
				err = s.Push(t.Context(), repoName, ours, "", made)
			}
			results[i] = err
		})
	}
	group.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("Push() = %v, want ErrConflict", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d won", won, len(results))
	}
	repo.Git("fsck", "--strict", "--no-dangling")
}

func TestPushToDisk(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "with space.git"))
	large := strings.Repeat("0123456789abcdef", 500<<10/16)
	base := repo.Commit("main", "first", map[string]string{"a": "1", "large": large})
	s := open(t, t.TempDir(), gitsource.Repository{URL: repo.Path})
	fetch(t, s)
	made := commit(t, s, upgrade(base, map[string]string{"a": "2", "large": large + "!"}))
	push(t, s, "", made)
	if got := repo.Git("show", ours+":large"); got != large+"!" {
		t.Errorf("the large file has %d bytes", len(got))
	}

	// A hook says no; a repository may keep its history.
	hook := filepath.Join(repo.Path, "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'only on Mondays' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	next := commit(t, s, upgrade(base, map[string]string{"a": "3"}))
	if err := s.Push(t.Context(), repoName, ours, made, next); !errors.Is(err, holdfast.ErrForbidden) {
		t.Errorf("Push() that a hook declines = %v, want ErrForbidden", err)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	repo.Git("config", "receive.denyNonFastForwards", "true")
	if err := s.Push(t.Context(), repoName, ours, made, next); !errors.Is(err, holdfast.ErrForbidden) {
		t.Errorf("Push() where no history is rewritten = %v, want ErrForbidden", err)
	}
	repo.Git("config", "receive.denyDeletes", "true")
	if err := s.Push(t.Context(), repoName, ours, made, ""); !errors.Is(err, holdfast.ErrForbidden) {
		t.Errorf("Push() where nothing is deleted = %v, want ErrForbidden", err)
	}
	if got := repo.Rev(ours); got != string(made) {
		t.Errorf("the branch is at %s, want %s", got, made)
	}
}

func TestPushFails(t *testing.T) {
	t.Parallel()
	server, repo, s := served(t)
	base := repo.Commit("main", "first", map[string]string{"a": "1"})
	fetch(t, s)
	made := commit(t, s, upgrade(base, map[string]string{"a": "2"}))
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    error
	}{
		"nobody may":     {answer(http.StatusForbidden), holdfast.ErrForbidden},
		"who are you":    {answer(http.StatusUnauthorized), holdfast.ErrUnauthorized},
		"not there":      {answer(http.StatusNotFound), holdfast.ErrNotFound},
		"a broken proxy": {answer(http.StatusBadGateway), holdfast.ErrUnavailable},
		"a login page":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, holdfast.ErrUnavailable},
	} {
		server.Intercept(test.handler)
		if err := s.Push(t.Context(), repoName, ours, "", made); !errors.Is(err, test.want) {
			t.Errorf("%s: Push() = %v, want %v", name, err, test.want)
		}
	}
	server.Intercept(nil)
	repo.Git("config", "http.receivepack", "false")
	if err := s.Push(t.Context(), repoName, ours, "", made); !errors.Is(err, holdfast.ErrForbidden) {
		t.Errorf("Push() to who takes nothing = %v, want ErrForbidden", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Push(gone, repoName, ours, "", made); !errors.Is(err, context.Canceled) {
		t.Errorf("Push() after the end = %v", err)
	}
	if refs := repo.Git("for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("refs are %s", refs)
	}
}

// A push that was cut off in the middle has done nothing, and is done again.
func TestPushIsCutOff(t *testing.T) {
	t.Parallel()
	server, repo, s := served(t)
	base := repo.Commit("main", "first", map[string]string{"a": "1"})
	fetch(t, s)
	made := commit(t, s, upgrade(base, map[string]string{"a": "2"}))
	server.Intercept(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/x-git-receive-pack-advertisement")
		var b bytes.Buffer
		line := func(text string) { fmt.Fprintf(&b, "%04x%s", len(text)+4, text) }
		line("# service=git-receive-pack\n")
		b.WriteString("0000")
		line(base + " refs/heads/main\x00report-status delete-refs\n")
		b.WriteString("0000")
		_, _ = w.Write(b.Bytes())
	})
	if err := s.Push(t.Context(), repoName, ours, "", made); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Push() that was cut off = %v, want ErrUnavailable", err)
	}
	server.Intercept(nil)
	push(t, s, "", made)
}
