//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeTree is a tree of control groups in memory.
type fakeTree struct {
	files   map[string]string // what is read
	written map[string]string
	refuse  map[string]bool // files that cannot be written
	removed []string
}

func (f *fakeTree) Mkdir(dir string) error {
	if _, ok := f.files[filepath.Join(dir, "cgroup.procs")]; ok {
		return fs.ErrExist
	}
	f.files[filepath.Join(dir, "cgroup.procs")] = ""
	return nil
}

func (f *fakeTree) Read(path string) (string, error) {
	s, ok := f.files[path]
	if !ok {
		return "", fs.ErrNotExist
	}
	return s, nil
}

func (f *fakeTree) Write(path, content string) error {
	if f.refuse[filepath.Base(path)] {
		return fs.ErrPermission
	}
	f.written[path] = strings.TrimSpace(f.written[path] + " " + content)
	return nil
}

func (f *fakeTree) Remove(dir string) error {
	f.removed = append(f.removed, dir)
	return nil
}

// delegated is a tree as systemd makes it, with memory and pids.
func delegated() *fakeTree {
	return &fakeTree{
		files: map[string]string{
			"/proc/self/cgroup": "0::/system.slice/holdfast.service/agent\n",
			"/sys/fs/cgroup/system.slice/holdfast.service/cgroup.controllers": "cpuset cpu io memory pids\n",
		},
		written: map[string]string{}, refuse: map[string]bool{},
	}
}

const service = "/sys/fs/cgroup/system.slice/holdfast.service"

func TestFindGroups(t *testing.T) {
	t.Parallel()
	tree := delegated()
	g, err := findGroups(tree, func(dir string) bool { return dir == service })
	if err != nil || g.dir != service {
		t.Fatalf("got %+v, %v", g, err)
	}
	if got := tree.written[service+"/cgroup.subtree_control"]; got != "+cpu +memory +pids" {
		t.Errorf("switched on %q", got)
	}
	for name, change := range map[string]func(*fakeTree){
		"version 1":   func(f *fakeTree) { f.files["/proc/self/cgroup"] = "4:memory:/x\n0::/\n" },
		"not mounted": func(f *fakeTree) { delete(f.files, service+"/cgroup.controllers") },
		"no memory":   func(f *fakeTree) { f.files[service+"/cgroup.controllers"] = "cpu pids\n" },
		"read-only":   func(f *fakeTree) { f.refuse["cgroup.subtree_control"] = true },
		"not delegated": func(f *fakeTree) { // root could write there
			f.files["/proc/self/cgroup"] = "0::/system.slice/other.service\n"
			f.files["/sys/fs/cgroup/system.slice/cgroup.controllers"] = "cpu memory pids\n"
		},
		"no groups in kernel": func(f *fakeTree) { delete(f.files, "/proc/self/cgroup") },
	} {
		tree := delegated()
		change(tree)
		if g, err := findGroups(tree, func(dir string) bool { return dir == service }); err == nil {
			t.Errorf("%s: got %+v", name, g)
		}
	}
}

// TestDelegate: an agent in a user namespace gets its own group, in which it finds what
// a service finds in its own, for itself alone.
func TestDelegate(t *testing.T) {
	t.Parallel()
	const agent = service + "/local-agent"
	marked := map[string]bool{service: true}
	tree := delegated()
	given := ""
	give := func(dir string, uid int) error {
		given, marked[dir] = fmt.Sprintf("%s to %d", dir, uid), true
		return nil
	}
	for range 2 { // at the server's next start, too
		dir, err := delegate(tree, func(dir string) bool { return marked[dir] }, give, "local-agent", 65534)
		if err != nil || dir != agent+"/self" || given != agent+" to 65534" {
			t.Fatalf("got %q, given %q: %v", dir, given, err)
		}
	}
	if got := tree.written[service+"/cgroup.subtree_control"]; !strings.HasPrefix(got, "+cpu +memory +pids") {
		t.Errorf("switched on %q", got)
	}
	tree.files["/proc/self/cgroup"] = "0::" + strings.TrimPrefix(agent, cgroupMount) + "/self\n"
	tree.files[agent+"/cgroup.controllers"] = "cpu memory pids\n"
	g, err := findGroups(tree, func(dir string) bool { return marked[dir] })
	if err != nil || g.dir != agent {
		t.Fatalf("the agent finds %+v, %v", g, err)
	}

	for name, change := range map[string]func(*fakeTree) func(string, int) error{
		"nothing delegated": func(f *fakeTree) func(string, int) error {
			delete(f.files, service+"/cgroup.controllers")
			return give
		},
		"cannot be given": func(*fakeTree) func(string, int) error {
			return func(string, int) error { return fs.ErrPermission }
		},
	} {
		tree := delegated()
		give := change(tree)
		if dir, err := delegate(tree, func(dir string) bool { return dir == service }, give, "local-agent", 65534); err == nil {
			t.Errorf("%s: got %s", name, dir)
		}
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	tree := delegated()
	g, err := findGroups(tree, func(dir string) bool { return dir == service })
	if err != nil {
		t.Fatal(err)
	}
	clear(tree.written)
	c, err := g.new("run-1", Limits{Memory: 4 << 30, Processes: 1024, CPU: 1.5})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.add(42); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"memory.max": "4294967296", "memory.oom.group": "1", "memory.swap.max": "0",
		"pids.max": "1024", "cpu.max": "150000 100000", "cgroup.procs": "42",
	}
	got := map[string]string{}
	for path, content := range tree.written {
		got[strings.TrimPrefix(path, service+"/run-1/")] = content
	}
	if !maps.Equal(got, want) {
		t.Errorf("wrote %v, want %v", got, want)
	}

	tree.files[service+"/run-1/memory.events"] = "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n"
	tree.files[service+"/run-1/pids.events"] = "max 0\n"
	tree.files[service+"/run-1/memory.peak"] = "1234\n"
	exit := Exit{Code: 1} // a child was killed, and the engine said something else
	c.conclude(&exit)
	if exit.OutOfMemory != Yes || exit.OutOfProcesses != No || exit.PeakMemory != 1234 {
		t.Errorf("got %+v", exit)
	}
	if !slices.Equal(tree.removed, []string{service + "/run-1"}) {
		t.Errorf("removed %v", tree.removed)
	}
	tree.files[service+"/run-1/memory.events"] = "oom 1\noom_kill 0\n"
	tree.files[service+"/run-1/pids.events"] = "max 3\n"
	exit = Exit{}
	c.conclude(&exit)
	if exit.OutOfMemory != No || exit.OutOfProcesses != Yes {
		t.Errorf("got %+v", exit)
	}
}

// TestGroupRefused has a limit that cannot be set: nothing is started without.
func TestGroupRefused(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"memory.max", "memory.oom.group", "memory.swap.max", "pids.max", "cpu.max"} {
		tree := delegated()
		g, err := findGroups(tree, func(dir string) bool { return dir == service })
		if err != nil {
			t.Fatal(err)
		}
		tree.refuse[file] = true
		if _, err := g.new("run-1", Limits{Memory: 1, Processes: 1, CPU: 1}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: got %v", file, err)
		}
		if len(tree.removed) != 1 {
			t.Errorf("%s: the group is left", file)
		}
	}
}

// TestRunInGroup starts a program in a folder that looks like a delegated one:
// it is moved there before it does anything.
func TestRunInGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree := folderTree{dir: dir}
	s, err := Probe(t.Context(), Options{Mode: ModeNone})
	if err != nil {
		t.Fatal(err)
	}
	s.groups, s.grouped = &groups{tree: tree, dir: dir, controllers: map[string]bool{"memory": true, "pids": true}}, nil
	c := Command{Path: "/bin/sh", Args: []string{"-c", "ulimit -d"}, Dir: "/", Limits: Limits{Memory: 1 << 30}}
	var out strings.Builder
	c.Stdout = &out
	exit, err := s.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if exit.Code != 0 || exit.OutOfMemory != Yes || strings.TrimSpace(out.String()) != "unlimited" {
		t.Errorf("got %+v; it said %q", exit, out.String())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

// folderTree is a tree in a folder of a usual file system. Every group of it
// says that it ran out of memory, once a process is in it.
type folderTree struct{ dir string }

func (f folderTree) Mkdir(dir string) error { return os.Mkdir(dir, 0o700) }

func (f folderTree) Read(path string) (string, error) {
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "cgroup.procs")); err != nil {
		return "", err
	}
	return map[string]string{"memory.events": "oom_kill 1\n"}[filepath.Base(path)], nil
}

func (f folderTree) Write(path, content string) error {
	return os.WriteFile(path, []byte(content), 0o600)
}

func (f folderTree) Remove(dir string) error { return os.RemoveAll(dir) }
