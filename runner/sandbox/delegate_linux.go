package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Delegate makes a control group for an agent that is user uid outside of its user
// namespace, below the group that was delegated to this process, which is root. An agent
// that is started in the returned folder finds it, as Probe does, and makes groups for its
// engines next to itself. Name is the agent's, a folder's name; what an earlier one of the
// same name has left is used. The error says why there are no groups.
func Delegate(name string, uid int) (dir string, err error) {
	return delegate(kernelTree{}, markedDelegated, giveGroup, name, uid)
}

func delegate(t tree, delegated func(dir string) bool, give func(dir string, uid int) error, name string, uid int) (string, error) {
	service, err := findGroups(t, delegated)
	if err != nil {
		return "", err
	}
	agent := filepath.Join(service.dir, name)
	own := filepath.Join(agent, "self") // processes are in leaves only, once a group has controllers
	for _, dir := range []string{agent, own} {
		if err := t.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("make a control group: %w", err)
		}
	}
	if err := give(agent, uid); err != nil {
		return "", fmt.Errorf("hand over a control group: %w", err)
	}
	return own, nil
}

// giveGroup gives a control group to a user, who cannot change its limits: the files of
// "Delegation Containment" in the kernel's description of version 2.
func giveGroup(dir string, uid int) error {
	for _, file := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		if err := os.Chown(filepath.Join(dir, file), uid, -1); err != nil {
			return err
		}
	}
	if err := unix.Setxattr(dir, delegateMark, []byte("1"), 0); err != nil {
		return &fs.PathError{Op: "mark", Path: dir, Err: err}
	}
	return nil
}
