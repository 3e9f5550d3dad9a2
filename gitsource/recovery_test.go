package gitsource_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// glob returns the files of the only mirror below dir that match.
func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "acme%2Fclusters.git", filepath.FromSlash(pattern)))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files
}

func overwrite(path string, change func([]byte) []byte) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, change(data), 0o600)
}

// Whatever a crash or a bad disk does to a mirror, the next process works.
func TestDamagedMirrorIsMadeAnew(t *testing.T) {
	t.Parallel()
	half := func(data []byte) []byte { return data[:len(data)/2] }
	nothing := func([]byte) []byte { return nil }
	garbage := func(data []byte) []byte {
		for i := range data {
			data[i] ^= 0x5a
		}
		return data
	}
	tests := map[string]func(*testing.T, string) error{
		"a pack cut off": func(t *testing.T, dir string) error {
			return overwrite(glob(t, dir, "objects/pack/*.pack")[0], half)
		},
		"a pack of zero bytes": func(t *testing.T, dir string) error {
			return overwrite(glob(t, dir, "objects/pack/*.pack")[0], nothing)
		},
		"a pack without index": func(t *testing.T, dir string) error {
			return os.Remove(glob(t, dir, "objects/pack/*.idx")[0])
		},
		"a garbled index": func(t *testing.T, dir string) error {
			return overwrite(glob(t, dir, "objects/pack/*.idx")[0], garbage)
		},
		"an empty index": func(t *testing.T, dir string) error {
			return overwrite(glob(t, dir, "objects/pack/*.idx")[0], nothing)
		},
		"no packs": func(t *testing.T, dir string) error {
			return os.RemoveAll(filepath.Dir(glob(t, dir, "objects/pack/*.idx")[0]))
		},
		"refs cut off": func(t *testing.T, dir string) error {
			return overwrite(glob(t, dir, "packed-refs")[0], half)
		},
		"refs garbled": func(t *testing.T, dir string) error {
			return overwrite(glob(t, dir, "packed-refs")[0], garbage)
		},
		"no refs": func(t *testing.T, dir string) error {
			return os.Remove(glob(t, dir, "packed-refs")[0])
		},
		"no HEAD": func(t *testing.T, dir string) error {
			return os.Remove(glob(t, dir, "HEAD")[0])
		},
		"almost nothing": func(t *testing.T, dir string) error {
			return errors.Join(os.RemoveAll(glob(t, dir, "objects")[0]), os.Remove(glob(t, dir, "HEAD")[0]))
		},
		"half a pack being sent": func(t *testing.T, dir string) error {
			return os.WriteFile(glob(t, dir, "tmp")[0]+"/fetch_1", []byte("PACK"), 0o600)
		},
		"a replacement half done": func(t *testing.T, dir string) error {
			path := filepath.Dir(glob(t, dir, "HEAD")[0])
			return errors.Join(os.Rename(path, path+".old"), os.MkdirAll(path+".new/objects", 0o700))
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
			first := repo.Commit("main", "first", map[string]string{"a": "1"})
			dir := t.TempDir()
			fetch(t, open(t, dir, gitsource.Repository{URL: repo.Path}))
			if err := damage(t, dir); err != nil {
				t.Fatal(err)
			}

			s := open(t, dir, gitsource.Repository{URL: repo.Path})
			if refs := fetch(t, s); refs["refs/heads/main"] != rev(first) {
				t.Fatalf("refs: %v", refs)
			}
			if got := content(t, tree(t, s, first)); got["a"] != "1" {
				t.Errorf("tree: %v", got)
			}
			second := repo.Commit("main", "second", map[string]string{"a": "2"})
			fetch(t, s)
			if got := content(t, tree(t, s, second)); got["a"] != "2" {
				t.Errorf("tree: %v", got)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) != 2 { // the mirror and its lock
				t.Errorf("folder of mirrors: %v, %v", left, err)
			}
			if left, err := os.ReadDir(filepath.Join(dir, "acme%2Fclusters.git", "tmp")); err != nil || len(left) != 0 {
				t.Errorf("temporary files: %v, %v", left, err)
			}
		})
	}
}

// A damage that shows while the process runs is an ErrUnavailable, and the next fetch
// repairs it; trees that were open continue.
func TestDamageFoundWhileReading(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	head := repo.Commit("main", "first", map[string]string{"a": repeat("some text that takes room\n", 100), "b": "1"})
	repo.SetPullRequest(1, head, head)
	dir := t.TempDir()
	s := open(t, dir, gitsource.Repository{URL: repo.Path})
	fetch(t, s)
	tr := tree(t, s, head)
	if err := overwrite(glob(t, dir, "objects/pack/*.pack")[0], func(data []byte) []byte {
		for i := 12; i < len(data)-20; i++ {
			data[i] ^= 0x5a
		}
		return data
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.ReadFile("a"); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("ReadFile = %v, want ErrUnavailable", err)
	}
	refs, err := s.FetchPullRequest(t.Context(), repoName, 1)
	if err != nil || refs.Head != rev(head) {
		t.Errorf("FetchPullRequest = %+v, %v", refs, err)
	}
	if data, err := tr.ReadFile("b"); err != nil || string(data) != "1" {
		t.Errorf("ReadFile after the repair = %q, %v", data, err)
	}
}

func TestMirrorRemovedWhileRunning(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	head := repo.Commit("main", "first", map[string]string{"a": "1"})
	dir := t.TempDir()
	s := open(t, dir, gitsource.Repository{URL: repo.Path})
	fetch(t, s)
	if err := os.RemoveAll(filepath.Dir(glob(t, dir, "HEAD")[0])); err != nil {
		t.Fatal(err)
	}
	fetch(t, s)
	if got := content(t, tree(t, s, head)); got["a"] != "1" {
		t.Errorf("tree: %v", got)
	}
}

// A mirror that cannot be repaired now continues answering what it can.
func TestDamageWhileRemoteIsAway(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	head := repo.Commit("main", "first", map[string]string{"a": "1"})
	dir := t.TempDir()
	s := open(t, dir, gitsource.Repository{URL: repo.Path})
	fetch(t, s)
	if err := os.WriteFile(glob(t, dir, "packed-refs")[0], []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	away := repo.Path + ".away"
	if err := os.Rename(repo.Path, away); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, gitsource.Repository{URL: repo.Path})
	if _, err := s.Fetch(t.Context(), repoName); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Fetch = %v, want ErrNotFound", err)
	}
	if got := content(t, tree(t, s, head)); got["a"] != "1" {
		t.Errorf("tree: %v", got)
	}
	if err := os.Rename(away, repo.Path); err != nil {
		t.Fatal(err)
	}
	if refs := fetch(t, s); refs["refs/heads/main"] != rev(head) {
		t.Errorf("refs: %v", refs)
	}
}

func TestTwoSourcesShareAFolder(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	repo.Commit("main", "first", map[string]string{"a": "1"})
	dir := t.TempDir()
	one, two := open(t, dir, gitsource.Repository{URL: repo.Path}), open(t, dir, gitsource.Repository{URL: repo.Path})
	for i := range 5 {
		sha := repo.Commit("main", "next", map[string]string{"a": time.Unix(int64(i), 0).String()})
		for _, s := range []*gitsource.Source{one, two} {
			if refs := fetch(t, s); refs["refs/heads/main"] != rev(sha) {
				t.Errorf("refs: %v", refs)
			}
			content(t, tree(t, s, sha))
		}
	}
}

func TestFetchWithoutRoom(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	repo.Commit("main", "first", map[string]string{"a": "1"})
	dir := t.TempDir()
	s := open(t, dir, gitsource.Repository{URL: repo.Path})
	fetch(t, s)
	// Where no file can be made there might as well be no room.
	tmp := glob(t, dir, "tmp")[0]
	if err := os.Remove(tmp); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tmp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second := repo.Commit("main", "second", map[string]string{"a": "2"})
	if _, err := s.Fetch(t.Context(), repoName); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Fetch = %v, want ErrUnavailable", err)
	}
	if err := os.Remove(tmp); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if refs := fetch(t, s); refs["refs/heads/main"] != rev(second) {
		t.Errorf("refs: %v", refs)
	}
}
