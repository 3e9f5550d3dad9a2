package gitsource_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

const lfsPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

func TestTreeIsAFileSystem(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	sha := repo.Commit("main", "files", map[string]string{
		"clusters/prod/eu.yaml": "eu",
		"clusters/prod.yaml":    "sorts between in Git",
		"clusters/prod-us.yaml": "us",
		"empty":                 "",
		"run.sh":                gitserver.Executable + "#!/bin/sh\n",
		"größe/ümlaut.yaml":     "ü",
	})
	fetch(t, s)
	tr := tree(t, s, sha)
	if err := fstest.TestFS(tr, "clusters/prod/eu.yaml", "clusters/prod.yaml", "empty", "run.sh", "größe/ümlaut.yaml"); err != nil {
		t.Error(err)
	}
	for path, object := range map[string]string{
		".": sha + "^{tree}", "clusters": sha + ":clusters", "clusters/prod/eu.yaml": sha + ":clusters/prod/eu.yaml",
	} {
		if got, err := tr.Hash(path); err != nil || got != repo.Git("rev-parse", object) {
			t.Errorf("Hash(%q) = %s, %v", path, got, err)
		}
	}
	info, err := fs.Stat(tr, "run.sh")
	if err != nil || info.Mode() != 0o555 || info.Size() != 10 {
		t.Errorf("run.sh: %v, %v", info, err)
	}
	for _, path := range []string{"nothing", "empty/below", "clusters/nothing"} {
		if _, err := tr.Hash(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Hash(%q) = %v, want fs.ErrNotExist", path, err)
		}
	}
	for _, path := range []string{"../etc/passwd", "/etc/passwd", "clusters/../empty", "a//b", ""} {
		if _, err := tr.ReadFile(path); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("ReadFile(%q) = %v, want fs.ErrInvalid", path, err)
		}
	}
	if _, err := tr.ReadFile("clusters"); err == nil {
		t.Error("ReadFile of a folder: no error")
	}
	if _, err := tr.ReadDir("empty"); err == nil {
		t.Error("ReadDir of a file: no error")
	}
}

func TestTreeRefuses(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	first := repo.Commit("main", "first", map[string]string{"real/a.yaml": "a"})
	sha := repo.Commit("main", "oddities", map[string]string{
		"link":    gitserver.Symlink + "real",
		"escape":  gitserver.Symlink + "../../etc/passwd",
		"vendor":  gitserver.Submodule + first,
		"big.bin": lfsPointer,
		"large":   repeat("0123456789abcdef", gitsource.MaxFileSize/16) + "!",
		"limit":   repeat("0123456789abcdef", gitsource.MaxFileSize/16),
	})
	fetch(t, s)
	tr := tree(t, s, sha)

	types := map[string]fs.FileMode{}
	entries, err := tr.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		types[e.Name()] = e.Type()
	}
	want := map[string]fs.FileMode{
		"link": fs.ModeSymlink, "escape": fs.ModeSymlink, "vendor": fs.ModeIrregular,
		"big.bin": 0, "large": 0, "limit": 0, "real": fs.ModeDir,
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	for path, word := range map[string]string{
		"link": "symbolic link", "escape": "symbolic link", "link/a.yaml": "symbolic link",
		"vendor": "submodule", "vendor/x": "submodule", "big.bin": "LFS", "large": "limit of 10485760",
	} {
		if _, err := tr.ReadFile(path); err == nil || !strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), path) {
			t.Errorf("ReadFile(%q) = %v, want a word about %q", path, err, word)
		}
		if _, err := tr.Open(path); err == nil {
			t.Errorf("Open(%q): no error", path)
		}
	}
	if data, err := tr.ReadFile("limit"); err != nil || len(data) != gitsource.MaxFileSize {
		t.Errorf("ReadFile at the limit: %d bytes, %v", len(data), err)
	}
	if target, err := fs.ReadLink(tr, "escape"); err != nil || target != "../../etc/passwd" {
		t.Errorf("ReadLink = %q, %v", target, err)
	}
}

// A tree can be made by hand to hold names that mean something else on disk. Git checks
// none of them out: they are not there, and cost nothing else. Neither do names that are
// odd and no more.
func TestTreeWithOddNames(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	first := repo.Commit("main", "first", map[string]string{"a": "1", "sub/b": "1"})
	odd := map[string]string{
		"..": "x", ".": "x", ".git": "x", "sub/.GIT/config": "x",
		`opt-my\x2ddata.mount`: "unit", "line\nbreak": "1", "caf\xe9.yaml": "latin1", "caf\xe9/menu": "latin1",
	}
	head := repo.CommitOn("head", first, "odd", odd)
	both := repo.CommitOn("both", head, "on top", map[string]string{"a": "2", "sub/b": "2"})
	base := repo.CommitOn("main", first, "main", map[string]string{"a": "2", "sub/b": "2"})
	fetch(t, s)
	want := map[string]string{
		"a": "1", "sub/b": "1", `opt-my\x2ddata.mount`: "unit", "line\nbreak": "1",
		"caf\xe9.yaml": "[read caf\xe9.yaml: has a name that is not UTF-8]",
	}
	got := map[string]string{}
	tr := tree(t, s, head)
	err := fs.WalkDir(tr, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if name == "caf\xe9" && err != nil {
				return fs.SkipDir
			}
			return err
		}
		data, err := tr.ReadFile(name)
		got[name] = string(data)
		if err != nil {
			got[name] = "[" + err.Error() + "]"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	changes, err := s.Diff(t.Context(), repoName, first, head)
	var changed []string
	for _, c := range changes {
		changed = append(changed, c.Kind+" "+c.Path)
	}
	wantChanged := []string{"added caf\xe9.yaml", "added caf\xe9/menu", "added line\nbreak", `added opt-my\x2ddata.mount`}
	if diff := cmp.Diff(wantChanged, changed); diff != "" || err != nil {
		t.Errorf("Diff: %v (-want +got):\n%s", err, diff)
	}
	// What Git does not check out is in a repository all the same, and stays there.
	merged, err := s.Merge(t.Context(), repoName, rev(base), rev(head))
	if err != nil || merged != repo.Git("rev-parse", both+"^{tree}") {
		t.Errorf("Merge = %s, %v", merged, err)
	}
}

func TestTreeOfNothing(t *testing.T) {
	t.Parallel()
	_, repo, s := served(t)
	sha := repo.Commit("main", "first", map[string]string{"a": "1"})
	fetch(t, s)
	for _, revision := range []string{
		repeat("0", 39) + "1", repeat("a", 40), "main", "HEAD", "", sha[:7], strings.ToUpper(sha),
		repo.Git("rev-parse", sha+":a"), // a file
	} {
		if _, err := s.Tree(t.Context(), repoName, revision); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("Tree(%q) = %v, want ErrNotFound", revision, err)
		}
	}
	tag := repo.Git("rev-parse", sha+"^{tree}")
	if got := content(t, tree(t, s, tag)); got["a"] != "1" {
		t.Errorf("tree by its own id: %v", got)
	}
}

// Trees are read while fetches continue and packs are put together.
func TestTreeDuringFetches(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("clusters/%02d.yaml", i)] = fmt.Sprint("cluster ", i)
	}
	first := repo.Commit("main", "first", files)
	dir := t.TempDir()
	s := open(t, dir, gitsource.Repository{URL: repo.Path})
	fetch(t, s)
	shared := tree(t, s, first)

	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				tr, err := shared, error(nil)
				if i%2 == 0 {
					tr, err = s.Tree(t.Context(), repoName, first)
				}
				for path, want := range files {
					if err != nil {
						break
					}
					var data []byte
					if data, err = tr.ReadFile(path); err == nil && string(data) != want {
						err = fmt.Errorf("%s is %q, want %q", path, data, want)
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	last := first
	for i := range 25 { // more than the packs that are left as they are
		last = repo.Commit("main", "change", map[string]string{"counter": fmt.Sprint(i)})
		fetch(t, s)
	}
	close(done)
	wg.Wait()
	if got := content(t, tree(t, s, last)); got["counter"] != "24" || len(got) != 31 {
		t.Errorf("tree at the end: %v", got)
	}
	packs, err := filepath.Glob(filepath.Join(dir, "*", "objects", "pack", "*.pack"))
	if err != nil || len(packs) > 21 {
		t.Errorf("%d packs, %v", len(packs), err)
	}
}
