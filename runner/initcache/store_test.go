package initcache_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/initcache"
)

// settings are what init keeps of an http backend without arguments.
const settings = `{"version":3,"backend":{"type":"http","config":{"address":null,"retry_max":null},"hash":1}}`

// left is a root module in which an init has ended.
func left(t *testing.T, provider string) initcache.Source {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		".terraform/providers/example.com/a/b/1.0.0/linux_amd64/terraform-provider-b": provider,
		".terraform/modules/modules.json":                                             `{"Modules":[]}`,
		".terraform/modules/m/main.tf":                                                "# a module",
		".terraform/terraform.tfstate":                                                settings,
		".terraform.lock.hcl":                                                         "# a lock file",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return initcache.Source{Root: root, Owner: os.Geteuid(), Backend: true}
}

func newStore(t *testing.T) (*initcache.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := initcache.New(initcache.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	removable(t, dir)
	return s, dir
}

// newAging returns a store, its folder, and its clock in seconds: of modules that move, a
// fetch is too old after a minute.
func newAging(t *testing.T) (*initcache.Store, string, *atomic.Int64) {
	t.Helper()
	now := new(atomic.Int64)
	dir := t.TempDir()
	removable(t, dir)
	s, err := initcache.New(initcache.Options{Dir: dir, MaxAge: time.Minute, Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	if err != nil {
		t.Fatal(err)
	}
	return s, dir, now
}

// removable lets the test remove dir: what is prepared is read-only.
func removable(t *testing.T, dir string) {
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(name string, _ os.DirEntry, _ error) error { return os.Chmod(name, 0o700) })
	})
}

func providerIn(t *testing.T, f initcache.Folder) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(f.Dir, initcache.Providers, "*/*/*/*/*/terraform-provider-b"))
	if len(files) != 1 {
		t.Fatalf("providers: %v", files)
	}
	return files[0]
}

// TestPublish: what init left is there under both names, as a copy.
func TestPublish(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	from := left(t, "a provider")
	if _, err := s.Publish(t.Context(), from, initcache.Names{Key: "asked", Final: "final"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from.Root, ".terraform/modules/m/main.tf"), []byte("# changed later"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"asked", "final"} {
		f, ok := s.Open(key)
		if !ok {
			t.Fatalf("no folder %s", key)
		}
		defer f.Release()
		module, _ := os.ReadFile(filepath.Join(f.Dir, initcache.Modules, "m", "main.tf"))
		if string(f.Lock) != "# a lock file" || string(f.Backend) != settings || f.Fetched == "" || string(module) != "# a module" {
			t.Errorf("%s: %+v with module %q", key, f, module)
		}
	}
	if _, ok := s.Open("other"); ok {
		t.Error("there is a folder that nobody has published")
	}
}

// TestPoison: a provider of the same size, modification time and inode, put into
// a prepared folder with what a run in the same user could do, is never used.
func TestPoison(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	if _, err := s.Publish(t.Context(), left(t, "a provider"), initcache.Names{Key: "key", Final: "key"}); err != nil {
		t.Fatal(err)
	}
	f, ok := s.Open("key")
	if !ok {
		t.Fatal("no folder")
	}
	f.Release()
	poison := func() {
		name := providerIn(t, f)
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			os.Chmod(name, 0o755), os.WriteFile(name, []byte("A PROVIDER"), 0o755), os.Chmod(name, info.Mode()),
			os.Chtimes(name, info.ModTime(), info.ModTime()),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("in the agent that has seen it", func(t *testing.T) {
		poison()
		if _, ok := s.Open("key"); ok {
			t.Error("the poisoned folder is used")
		}
	})
	t.Run("in an agent that starts", func(t *testing.T) {
		if _, err := s.Publish(t.Context(), left(t, "a provider"), initcache.Names{Key: "key", Final: "key"}); err != nil {
			t.Fatal(err)
		}
		poison()
		next, err := initcache.New(initcache.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := next.Open("key"); ok {
			t.Error("the poisoned folder is used")
		}
	})
}

// TestTouchedIsHashed: a file that was only touched is hashed again, and used.
func TestTouchedIsHashed(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if _, err := s.Publish(t.Context(), left(t, "a provider"), initcache.Names{Key: "key", Final: "key"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f, ok := s.Open("key")
		if !ok {
			t.Fatal("no folder")
		}
		if err := os.Chtimes(providerIn(t, f), time.Now(), time.Now()); err != nil {
			t.Fatal(err)
		}
		f.Release()
	}
}

// TestPublishProvidersOfTheRepository: what init links to in the repository is copied, as
// the workspace is not there for the next one, and by whatever name the engine saw it.
func TestPublishProvidersOfTheRepository(t *testing.T) {
	t.Parallel()
	const plugin = "terraform.d/plugins/example.com/acme/thing/1.0.0/linux_amd64"
	for name, c := range map[string]struct {
		seen, link string
		want       bool
	}{
		"seen elsewhere":  {"/workspace/root", "/workspace/root/" + plugin, true},
		"by its own name": {"", "ROOT/" + plugin, true},
		"relative":        {"", "../../../../../../" + plugin, true},
		"another folder":  {"/workspace/root", "/workspace/root/terraform.d/other", false},
		"above":           {"/workspace/root", "/workspace/root/terraform.d/plugins/../../../x", false},
		"far above":       {"", "../../../../../../../../" + plugin, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t)
			from := left(t, "a provider")
			from.Seen = c.seen
			dir := filepath.Join(from.Root, plugin)
			to := filepath.Join(from.Root, ".terraform/providers/example.com/acme/thing/1.0.0/linux_amd64")
			err := errors.Join(os.MkdirAll(dir, 0o755), os.MkdirAll(filepath.Dir(to), 0o755),
				os.WriteFile(filepath.Join(dir, "terraform-provider-thing_v1.0.0"), []byte("own"), 0o755),
				os.Symlink(strings.Replace(c.link, "ROOT", from.Root, 1), to))
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Publish(t.Context(), from, initcache.Names{Key: "key", Final: "key"})
			if !c.want {
				if err == nil {
					t.Error("it was published")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f, ok := s.Open("key")
			if !ok {
				t.Fatal("there is no folder")
			}
			defer f.Release()
			copied := filepath.Join(f.Dir, "providers/example.com/acme/thing/1.0.0/linux_amd64")
			info, err := os.Lstat(copied)
			data, readErr := os.ReadFile(filepath.Join(copied, "terraform-provider-thing_v1.0.0"))
			if err != nil || !info.IsDir() || readErr != nil || string(data) != "own" {
				t.Errorf("%v, %v, %q", err, readErr, data)
			}
		})
	}
}

// TestPublishTrustsNobody: an engine cannot make the agent copy what is not its
// own, nor make it wait.
func TestPublishTrustsNobody(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	mirror := filepath.Dir(secret)
	for name, c := range map[string]struct {
		change  func(data string) error
		mirrors []string
		want    string
	}{
		"a pipe": {change: func(data string) error { return syscall.Mkfifo(filepath.Join(data, "modules", "pipe"), 0o600) }, want: "not a regular file"},
		"a provider elsewhere": {
			change: func(data string) error { return os.Symlink(mirror, filepath.Join(data, "providers", "link")) }, want: "in no mirror",
		},
		"a provider in a mirror": {
			change:  func(data string) error { return os.Symlink(mirror, filepath.Join(data, "providers", "link")) },
			mirrors: []string{mirror},
		},
		"folders as a link": {
			change: func(data string) error {
				if err := os.RemoveAll(filepath.Join(data, "modules")); err != nil {
					return err
				}
				return os.Symlink(mirror, filepath.Join(data, "modules"))
			},
			want: "not a folder",
		},
		"the address of a backend": {
			change: func(data string) error {
				return os.WriteFile(filepath.Join(data, "terraform.tfstate"), []byte(strings.Replace(settings, "null", `"https://example.com"`, 1)), 0o600)
			},
			want: `the argument "address"`,
		},
		"another backend": {
			change: func(data string) error {
				return os.WriteFile(filepath.Join(data, "terraform.tfstate"), []byte(strings.Replace(settings, "http", "local", 1)), 0o600)
			},
			want: `type "local"`,
		},
		"a list of modules as a link": {
			change: func(data string) error {
				list := filepath.Join(data, "modules", "modules.json")
				if err := os.Remove(list); err != nil {
					return err
				}
				return os.Symlink(secret, list)
			},
			want: "not a regular file",
		},
		"folders nested without end": {
			change: func(data string) error {
				return os.MkdirAll(filepath.Join(data, "modules", strings.Repeat("d/", 201)), 0o700)
			},
			want: "nested deeper than 200",
		},
		"a lock file as a link": {
			change: func(data string) error {
				lock := filepath.Join(filepath.Dir(data), ".terraform.lock.hcl")
				if err := os.Remove(lock); err != nil {
					return err
				}
				return os.Symlink(secret, lock)
			},
			want: "not a regular file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t)
			from := left(t, "a provider")
			from.Mirrors = c.mirrors
			if err := c.change(filepath.Join(from.Root, ".terraform")); err != nil {
				t.Fatal(err)
			}
			_, err := s.Publish(t.Context(), from, initcache.Names{Key: "key", Final: "key"})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			if f, ok := s.Open("key"); ok != (c.want == "") {
				t.Errorf("there is a folder: %v", ok)
			} else {
				f.Release()
			}
		})
	}
	from := left(t, "a provider")
	from.Owner++
	s, _ := newStore(t)
	if _, err := s.Publish(t.Context(), from, initcache.Names{Key: "key", Final: "key"}); err == nil {
		t.Error("files of another user were copied")
	}
}

// TestMirrorChanges: a mirror's provider that is another one than was prepared is
// not used.
func TestMirrorChanges(t *testing.T) {
	t.Parallel()
	mirror := t.TempDir()
	binary := filepath.Join(mirror, "terraform-provider-x")
	if err := os.WriteFile(binary, []byte("one"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, _ := newStore(t)
	from := left(t, "a provider")
	from.Mirrors = []string{mirror}
	if err := os.Symlink(mirror, filepath.Join(from.Root, ".terraform/providers/link")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Publish(t.Context(), from, initcache.Names{Key: "key", Final: "key"}); err != nil {
		t.Fatal(err)
	}
	if f, ok := s.Open("key"); !ok {
		t.Error("no folder")
	} else {
		f.Release()
	}
	if err := os.WriteFile(binary, []byte("two"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Open("key"); ok {
		t.Error("a folder whose mirror has changed is used")
	}
}

// TestModulesThatMove: each content that was fetched has its own folder, the newest is
// found without asking for one, for a while, and a former fetch only by its digest.
func TestModulesThatMove(t *testing.T) {
	t.Parallel()
	s, _, now := newAging(t)
	names := initcache.Names{Key: "k", Final: "f", KeyOf: "ko", FinalOf: "fo"}
	publish := func(code string, names initcache.Names) holdfast.Digest {
		from := left(t, "a provider")
		from.Unpinned = func(string) bool { return true }
		if err := os.WriteFile(filepath.Join(from.Root, ".terraform/modules/m/main.tf"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		fetched, err := s.Publish(t.Context(), from, names)
		if err != nil {
			t.Fatal(err)
		}
		return fetched
	}
	code := func(f initcache.Folder, ok bool) string {
		if !ok {
			return "nothing"
		}
		defer f.Release()
		data, _ := os.ReadFile(filepath.Join(f.Dir, initcache.Modules, "m", "main.tf"))
		return string(data)
	}
	first := publish("first", names)
	held, _ := s.OpenOf("fo", first)
	defer held.Release()
	second := publish("second", names)
	former := names
	former.Former = true
	third := publish("third", former)
	for name, want := range map[string]string{"k": "second", "f": "second", "ko": "nothing"} {
		if got := code(s.Open(name)); got != want {
			t.Errorf("Open(%s) finds %s, want %s", name, got, want)
		}
	}
	for digest, want := range map[holdfast.Digest]string{
		first: "first", second: "second", third: "third", "": "nothing", "sha256:../k": "nothing",
		"sha256:" + holdfast.Digest(strings.Repeat("0", 64)): "nothing",
	} {
		for _, name := range []string{"ko", "fo"} {
			if got := code(s.OpenOf(name, digest)); got != want {
				t.Errorf("OpenOf(%s, %s) finds %s, want %s", name, digest, got, want)
			}
		}
	}
	now.Add(120)
	if got := code(s.Open("k")); got != "nothing" {
		t.Errorf("after a while Open finds %s", got)
	}
	if got := code(s.OpenOf("fo", second)); got != "second" {
		t.Errorf("after a while OpenOf finds %s", got)
	}
	publish("first", names) // it is back, and somebody still uses the folder
	if got := code(s.Open("k")); got != "first" {
		t.Errorf("what came back is not found, but %s", got)
	}
	now.Add(-1) // it was fetched by a clock that was ahead, at nobody knows what time
	if got := code(s.Open("k")); got != "nothing" {
		t.Errorf("after the clock was put back Open finds %s", got)
	}
}

// TestModulesOfATagThatWasMoved: modules that count as pinned have a folder for each content,
// too, also while another one is in use, and neither takes the place of the other.
func TestModulesOfATagThatWasMoved(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	names := initcache.Names{Key: "k", Final: "f", KeyOf: "ko", FinalOf: "fo"}
	var fetched []holdfast.Digest
	for _, code := range []string{"before", "after"} {
		from := left(t, "a provider")
		if err := os.WriteFile(filepath.Join(from.Root, ".terraform/modules/m/main.tf"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		digest, err := s.Publish(t.Context(), from, names)
		if err != nil {
			t.Fatal(err)
		}
		used, ok := s.Open("f")
		if !ok || used.Fetched != digest || used.Unpinned {
			t.Errorf("what was published last is not found, but %+v", used)
		}
		defer used.Release()
		fetched = append(fetched, digest)
	}
	for i, want := range []string{"before", "after"} {
		for _, name := range []string{"ko", "fo"} {
			f, _ := s.OpenOf(name, fetched[i])
			got, _ := os.ReadFile(filepath.Join(f.Dir, initcache.Modules, "m", "main.tf"))
			if f.Release(); string(got) != want {
				t.Errorf("OpenOf(%s) finds %q, want %q", name, got, want)
			}
		}
	}
}

// TestFoldersOfAnEarlierVersion: a folder that does not say whether its modules are pinned
// is fetched anew after a while, and found for as long as there is one by what it has. It
// is not taken away from whoever uses it.
func TestFoldersOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	s, dir, now := newAging(t)
	names := initcache.Names{Key: "k", Final: "f", KeyOf: "ko", FinalOf: "fo"}
	fetched, err := s.Publish(t.Context(), left(t, "a provider"), names)
	if err != nil {
		t.Fatal(err)
	}
	now.Add(120)
	pinned, ok := s.Open("k")
	if !ok || pinned.Unpinned {
		t.Errorf("modules that are pinned are fetched again: %+v", pinned)
	}
	pinned.Release()

	folder, err := filepath.EvalSymlinks(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.Remove(filepath.Join(dir, "f")), os.Remove(filepath.Join(dir, "k")),
		os.Rename(folder, filepath.Join(dir, "f")), os.Symlink("f", filepath.Join(dir, "k")))
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "f", "manifest.json")
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Replace(data, []byte(`"pinned":true,`), nil, 1)
	if bytes.Equal(old, data) {
		t.Fatalf("the manifest is %s", data)
	}
	if err := errors.Join(os.Chmod(manifest, 0o600), os.WriteFile(manifest, old, 0o600)); err != nil {
		t.Fatal(err)
	}
	if f, ok := s.Open("k"); ok {
		f.Release()
		t.Error("modules that may have moved are not fetched again")
	}
	if f, ok := s.OpenWith("k", "sha256:other"); ok {
		f.Release()
		t.Error("a folder is found by modules that it does not have")
	}
	used, ok := s.OpenWith("k", fetched)
	if !ok {
		t.Fatal("what was reviewed is not found")
	}
	defer used.Release()
	next := left(t, "a provider")
	next.Unpinned = func(string) bool { return true }
	if _, err := s.Publish(t.Context(), next, names); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(used.Dir, initcache.Modules, "m", "main.tf")); err != nil {
		t.Errorf("a folder in use is gone: %v", err)
	}
	f, ok := s.OpenOf("fo", fetched)
	if !ok || !f.Unpinned {
		t.Errorf("what was fetched is not found: %+v", f)
	}
	f.Release()
}

// TestPackModules: what is packed is all that makes the digest, and the engine's
// list; the bytes depend on nothing else.
func TestPackModules(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	from := left(t, "a provider")
	for name, content := range map[string]string{".git/HEAD": "ref: refs/heads/main", "sub/.terraform/x.tf": "# x", "run.sh": "#!/bin/sh"} {
		file := filepath.Join(from.Root, ".terraform/modules/m", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("main.tf", filepath.Join(from.Root, ".terraform/modules/m/link.tf")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Publish(t.Context(), from, initcache.Names{Key: "key", Final: "key"}); err != nil {
		t.Fatal(err)
	}
	f, _ := s.Open("key")
	defer f.Release()
	var packed, again bytes.Buffer
	if err := errors.Join(f.PackModules(&packed), f.PackModules(&again)); err != nil || !bytes.Equal(packed.Bytes(), again.Bytes()) {
		t.Errorf("packed twice it differs, or %v", err)
	}
	zr, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %s", h.Name, h.Mode, h.Linkname))
	}
	want := []string{"m/link.tf 777 main.tf", "m/main.tf 755 ", "m/run.sh 755 ", "m/sub/.terraform/x.tf 755 ", "modules.json 755 "}
	if !slices.Equal(got, want) {
		t.Errorf("packed are %q, want %q", got, want)
	}
	if len(f.Each) != 1 || f.Each[0].Name != "m" || f.Each[0].Content == "" {
		t.Errorf("the modules are %+v", f.Each)
	}
}
