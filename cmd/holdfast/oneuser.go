package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/flock"
)

// sharedTmp is where the agents of one user find one another, whatever their folders and
// TMPDIR are. Engines do not see it under Landlock.
const sharedTmp = "/tmp"

// errOneUser: plans execute code of pull requests, and Landlock alone does not keep them
// from files of their user's applies.
var errOneUser = errors.New("only Landlock keeps plans from applies here: run the two agents as different users, use a stronger mode (docs/security.md), or start both with --isolation none")

// markUser marks user uid as one whose agents apply, or else plan, until unmark is called
// or this process ends; to be used where nothing but the user keeps the two apart. It
// returns an errOneUser while an agent of the same user does the other. The mark is a
// locked folder: systemd-tmpfiles leaves those alone. Agents in other modes have none.
func markUser(tmp string, uid int, applies bool) (unmark func() error, err error) {
	own, other := "plans", "applies"
	if applies {
		own, other = other, own
	}
	mark, err := newMark(tmp, own)
	if err != nil {
		return nil, fmt.Errorf("mark the user of this agent, which needs a %s that it can write and list: %w", tmp, err)
	}
	unmark = func() error { return errors.Join(os.Remove(mark.Name()), flock.Release(mark)) }
	// Each of two agents that start at once has its mark by now: at least one sees the other's.
	marked, err := isMarked(tmp, other, uid)
	if err == nil && !marked {
		return unmark, nil
	}
	_ = unmark()
	if err != nil {
		return nil, fmt.Errorf("read the marks of other agents, which needs a %s that it can write and list: %w", tmp, err)
	}
	return nil, fmt.Errorf("an agent of user %d on this machine executes %s, and %w", uid, other, errOneUser)
}

// newMark makes a folder for agents of this kind, and locks it.
func newMark(tmp, kind string) (*os.File, error) {
	for {
		dir, err := os.MkdirTemp(tmp, markName(kind))
		if err != nil {
			return nil, err
		}
		mark, err := os.Open(dir) //nolint:gosec // we made it
		if errors.Is(err, os.ErrNotExist) {
			continue // taken for a dead agent's, and removed
		}
		if err != nil {
			return nil, err
		}
		err = flock.Exclusive(mark)
		if _, gone := os.Lstat(dir); err == nil && gone == nil {
			return mark, nil
		}
		_ = flock.Release(mark)
		if err != nil && !errors.Is(err, flock.ErrHeld) {
			return nil, err
		}
	}
}

// isMarked reports whether an agent of this kind and user is alive, and removes the marks
// that dead ones have left. What is other users', or has only the name, counts for nothing.
func isMarked(tmp, kind string, uid int) (bool, error) {
	there, err := os.ReadDir(tmp) // not Glob, for which a folder that cannot be read is empty
	if err != nil {
		return false, err
	}
	for _, entry := range there {
		if ok, err := filepath.Match(markName(kind), entry.Name()); err != nil || !ok {
			continue
		}
		dir := filepath.Join(tmp, entry.Name())
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || int(info.Sys().(*syscall.Stat_t).Uid) != uid {
			continue
		}
		mark, err := openMark(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		err = flock.Shared(mark) // as do other agents that look at the same moment
		if errors.Is(err, flock.ErrHeld) {
			return true, mark.Close()
		}
		if err == nil {
			_ = os.Remove(dir)
		}
		if err = errors.Join(err, flock.Release(mark)); err != nil {
			return false, err
		}
	}
	return false, nil
}

// openMark opens a folder of this user, whatever its permissions are: code in a plan can
// change those under Landlock.
func openMark(dir string) (*os.File, error) {
	mark, err := os.Open(dir) //nolint:gosec // a folder of this user
	if !errors.Is(err, os.ErrPermission) {
		return mark, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder
		return nil, err
	}
	return os.Open(dir) //nolint:gosec // as above
}

func markName(kind string) string { return "holdfast-agent-" + kind + "-*" }
