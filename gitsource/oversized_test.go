package gitsource_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
)

// oversized makes a commit that no honest repository has: its message has 65 MiB.
func oversized(t *testing.T, git func(args ...string) string, parent string) string {
	t.Helper()
	message := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(message, bytes.Repeat([]byte("x"), 65<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(git("commit-tree", parent+"^{tree}", "-p", parent, "-F", message))
}

// Whoever may push a branch can lead it to what nobody can read. That costs this branch:
// it stays where it was, and all others are fetched.
func TestOversizedBranch(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes more than is fetched")
	}
	_, repo, s := served(t)
	first := repo.Commit("main", "first", map[string]string{"a.yaml": "1"})
	repo.Branch("old", first)
	if got := fetch(t, s); len(got) != 2 {
		t.Fatalf("the first fetch has %v", got)
	}
	large := oversized(t, repo.Git, first)
	repo.SetRef("refs/heads/old", large)
	repo.SetRef("refs/heads/new", large)
	second := repo.Commit("main", "second", map[string]string{"a.yaml": "2"})
	other := repo.Commit("other", "another", map[string]string{"b.yaml": "1"})
	want := holdfast.Refs{"refs/heads/main": rev(second), "refs/heads/old": rev(first), "refs/heads/other": rev(other)}
	for range 2 {
		if diff := cmp.Diff(want, fetch(t, s)); diff != "" {
			t.Fatalf("with a branch that is too large (-want +got):\n%s", diff)
		}
	}

	repo.SetRef("refs/heads/old", second)
	want["refs/heads/old"] = rev(second)
	if diff := cmp.Diff(want, fetch(t, s)); diff != "" {
		t.Errorf("after it was moved back (-want +got):\n%s", diff)
	}

	repo.SetRef("refs/heads/main", oversized(t, repo.Git, second))
	if _, err := s.Fetch(t.Context(), repoName); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("with a main branch that is too large: %v", err)
	}
}

// A large file is not held in memory: what is in the repository besides can be read.
func TestLargeFilesAreFetched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, repo, _ := served(t)
	s := open(t, dir, gitsource.Repository{URL: repo.URL})
	first := repo.Commit("main", "first", map[string]string{
		"a.yaml": "1", "image.iso": strings.Repeat("0123456789abcdef", 40<<16),
	})
	fetch(t, s)
	if got, err := tree(t, s, first).ReadFile("a.yaml"); err != nil || string(got) != "1" {
		t.Errorf("a.yaml: %q, %v", got, err)
	}
	if _, err := tree(t, s, first).ReadFile("image.iso"); err == nil {
		t.Error("image.iso was read")
	}
	kept, err := filepath.Glob(filepath.Join(dir, "*.git", "objects", "pack", "*.keep"))
	if err != nil || len(kept) != 1 {
		t.Errorf("packs that are not to be written again: %v, %v", kept, err)
	}
	second := repo.Commit("main", "second", map[string]string{"a.yaml": "2"})
	fetch(t, open(t, dir, gitsource.Repository{URL: repo.URL})) // which checks the mirror
	if got, err := tree(t, s, second).ReadFile("a.yaml"); err != nil || string(got) != "2" {
		t.Errorf("a.yaml after another commit: %q, %v", got, err)
	}
}

// A name that is not UTF-8 could neither be stored nor shown.
func TestBranchesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	first := repo.Commit("main", "first", map[string]string{"a.yaml": "1"})
	repo.SetRef("refs/heads/gr\xf6sse", first)
	repo.SetRef("refs/heads/größe", first)
	want := holdfast.Refs{"refs/heads/main": rev(first), "refs/heads/größe": rev(first)}
	if diff := cmp.Diff(want, fetch(t, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An object that cannot be read is not taken for damage of the mirror, which would be made
// again with the same in it.
func TestMalformedBranch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, repo, _ := served(t)
	s := open(t, dir, gitsource.Repository{URL: repo.URL})
	first := repo.Commit("main", "first", map[string]string{"a.yaml": "1"})
	evil := repo.Malformed(first)
	repo.SetRef("refs/heads/evil", evil)
	second := repo.Commit("main", "second", map[string]string{"a.yaml": "2"})
	want := holdfast.Refs{"refs/heads/main": rev(second), "refs/heads/evil": rev(evil)}
	if diff := cmp.Diff(want, fetch(t, s)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if _, err := s.Merge(t.Context(), repoName, rev(second), rev(evil)); !errors.Is(err, holdfast.ErrUnreadable) || errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("merge = %v, want ErrUnreadable", err)
	}
	asked := server.Requests("POST /acme/clusters.git/git-upload-pack")
	fetch(t, s)
	fetch(t, open(t, dir, gitsource.Repository{URL: repo.URL}))
	if again := server.Requests("POST /acme/clusters.git/git-upload-pack") - asked; again != 0 {
		t.Errorf("objects were fetched %d times again", again)
	}
}
