package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupMount is where version 2 of control groups is mounted. Version 1, or
// both at once, is not used: it cannot be delegated safely.
const cgroupMount = "/sys/fs/cgroup"

// tree is the file system of control groups. Tests have one of their own: a
// file of the kernel's does not keep what is written to it.
type tree interface {
	Mkdir(dir string) error
	Read(path string) (string, error)
	Write(path, content string) error
	Remove(dir string) error
}

// kernelTree is the tree of the kernel.
type kernelTree struct{}

func (kernelTree) Mkdir(dir string) error { return os.Mkdir(dir, 0o755) }

func (kernelTree) Read(path string) (string, error) {
	b, err := os.ReadFile(path)
	return string(b), err
}

func (kernelTree) Write(path, content string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	return errors.Join(err, file.Close())
}

// Remove waits for the kernel: what was killed leaves its group a little later.
func (kernelTree) Remove(dir string) error {
	for end := time.Now().Add(lastWords); ; time.Sleep(time.Millisecond) {
		err := os.Remove(dir)
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(end) {
			return err
		}
	}
}

// delegateMark is the extended attribute with which systemd marks a control group as
// somebody's: https://systemd.io/CGROUP_DELEGATION. A user cannot read trusted ones.
const delegateMark = "user.delegate"

// markedDelegated says whether a control group is marked as somebody's.
func markedDelegated(dir string) bool {
	for _, name := range []string{delegateMark, "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// groups makes a control group for each start, below a folder that was
// delegated to this process. A group that was killed once kills whatever comes
// into it, so none is used twice.
type groups struct {
	tree        tree
	dir         string // the folder of the groups
	controllers map[string]bool
}

// findGroups returns the groups below the delegated folder that this process
// lies in a group of, as systemd makes it with Delegate=yes and
// DelegateSubgroup=. The error says why there are none: what root can write is
// not delegated yet, but somebody else's.
func findGroups(t tree, delegated func(dir string) bool) (*groups, error) {
	own, err := t.Read("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	path := ""
	for line := range strings.Lines(own) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path = rest
		}
	}
	if path == "" || path == "/" {
		return nil, errors.New("this process has no control group of version 2 of its own")
	}
	dir := filepath.Dir(filepath.Join(cgroupMount, path))
	if !delegated(dir) {
		return nil, fmt.Errorf("%s is not delegated to this service: systemd does so with Delegate=yes and DelegateSubgroup=", dir)
	}
	said, err := t.Read(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	g := &groups{tree: t, dir: dir, controllers: map[string]bool{}}
	var errs []error
	for _, name := range strings.Fields(said) {
		if name != "memory" && name != "pids" && name != "cpu" {
			continue
		}
		if err := t.Write(filepath.Join(dir, "cgroup.subtree_control"), "+"+name); err != nil {
			errs = append(errs, err)
			continue
		}
		g.controllers[name] = true
	}
	if !g.controllers["memory"] || !g.controllers["pids"] {
		return nil, errors.Join(append(errs, fmt.Errorf("%s does not delegate memory and pids", dir))...)
	}
	return g, nil
}

// group is the control group of one start.
type group struct {
	tree tree
	dir  string
}

// new makes the group name with limits.
func (g *groups) new(name string, limits Limits) (*group, error) {
	c := &group{tree: g.tree, dir: filepath.Join(g.dir, name)}
	if err := g.tree.Mkdir(c.dir); err != nil {
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	type setting struct{ file, value string }
	var settings []setting
	if limits.Memory > 0 {
		settings = append(settings,
			setting{"memory.max", strconv.FormatInt(limits.Memory, 10)},
			setting{"memory.oom.group", "1"}, // all of it or nothing: a half-dead engine says nonsense
		)
	}
	if limits.Processes > 0 {
		settings = append(settings, setting{"pids.max", strconv.Itoa(limits.Processes)})
	}
	if limits.CPU > 0 && g.controllers["cpu"] {
		const period = 100_000 // µs
		settings = append(settings, setting{"cpu.max", fmt.Sprintf("%d %d", int64(limits.CPU*period), period)})
	}
	for _, s := range settings {
		if err := c.tree.Write(filepath.Join(c.dir, s.file), s.value); err != nil {
			_ = c.tree.Remove(c.dir)
			return nil, fmt.Errorf("limit a control group: %w", err)
		}
	}
	if limits.Memory > 0 { // a kernel without swap has no such file
		if err := c.tree.Write(filepath.Join(c.dir, "memory.swap.max"), "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			_ = c.tree.Remove(c.dir)
			return nil, fmt.Errorf("limit a control group: %w", err)
		}
	}
	return c, nil
}

// add moves a process into the group.
func (c *group) add(pid int) error {
	if err := c.tree.Write(filepath.Join(c.dir, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("enter a control group: %w", err)
	}
	return nil
}

// conclude adds to exit what the kernel counted, and removes the group. It is
// called when everything in it is dead, however it ended: the death of a child
// can leave an engine alive that fails of something else.
func (c *group) conclude(exit *Exit) {
	if c.count("memory.events", "oom_kill") > 0 {
		exit.OutOfMemory = Yes
	}
	if c.count("pids.events", "max") > 0 {
		exit.OutOfProcesses = Yes
	}
	if said, err := c.tree.Read(filepath.Join(c.dir, "memory.peak")); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(said), 10, 64); err == nil {
			exit.PeakMemory = n
		}
	}
	_ = c.tree.Remove(c.dir)
}

// count returns a number of a file of numbers, 0 if it is not there.
func (c *group) count(file, name string) int64 {
	said, err := c.tree.Read(filepath.Join(c.dir, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(said) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			return n
		}
	}
	return 0
}
