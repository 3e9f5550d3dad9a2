package gitsource_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/gitsource"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDirHashesAsGitDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a/b.yaml": "b", "a.yaml": "sorts before the folder", "a-b": "x", "run.sh": "#!/bin/sh\n",
		"modules/.terraform/cache": "left out", "large": repeat("0123456789", 1<<20+1),
	})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "empty", "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/b.yaml", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet")
	git("-c", "core.excludesFile=/dev/null", "add", "--", "a", "a.yaml", "a-b", "run.sh", "large", "link")
	want := git("write-tree")

	tr, err := gitsource.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, object := range map[string]string{".": want, "a": want + ":a", "a/b.yaml": want + ":a/b.yaml", "link": want + ":link"} {
		if got, err := tr.Hash(path); err != nil || got != git("rev-parse", object) {
			t.Errorf("Hash(%q) = %s, %v", path, got, err)
		}
	}
	var names []string
	entries, err := tr.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"a", "a-b", "a.yaml", "empty", "large", "link", "modules", "run.sh"}, names); diff != "" {
		t.Errorf("ReadDir (-want +got):\n%s", diff)
	}
}

func TestDirIsAFileSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"clusters/prod/eu.yaml": "eu", "clusters/prod.yaml": "x", "empty": ""})
	tr, err := gitsource.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(tr, "clusters/prod/eu.yaml", "clusters/prod.yaml", "empty"); err != nil {
		t.Error(err)
	}
	if _, err := gitsource.Dir(filepath.Join(dir, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Dir of nothing = %v, want fs.ErrNotExist", err)
	}
}

func TestDirRefuses(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret": "s3cret"})
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"real/a": "a", ".git/config": "x", "sub/.terraform/x": "x", "lfs": lfsPointer,
		"large": repeat("0123456789abcdef", gitsource.MaxFileSize/16) + "!",
	})
	for name, target := range map[string]string{
		"escape": filepath.Join(outside, "secret"), "folder": outside, "inside": "real",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	tr, err := gitsource.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, word := range map[string]string{
		"escape": "symbolic link", "folder/secret": "symbolic link", "inside/a": "symbolic link",
		"pipe": "neither", "lfs": "LFS", "large": "limit", "real": "is a folder",
		".git/config": "not exist", "sub/.terraform/x": "not exist", "real/.git": "not exist",
		"../x": "invalid", "/etc/passwd": "invalid",
	} {
		if data, err := tr.ReadFile(path); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("ReadFile(%q) = %q, %v, want a word about %q", path, data, err, word)
		}
	}
	if _, err := tr.Hash("."); err != nil {
		t.Errorf("Hash: %v", err)
	}
	if target, err := fs.ReadLink(tr, "inside"); err != nil || target != "real" {
		t.Errorf("ReadLink = %q, %v", target, err)
	}
}
