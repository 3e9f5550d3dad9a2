package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/flock"
)

// sharedTmp is where the agents of one user find one another, whatever their folders and
// TMPDIR are. Engines do not see it under Landlock.
const sharedTmp = "/tmp"

// errOneUser: plans execute code of pull requests, and Landlock alone does not keep them
// from files of their user's applies.
var errOneUser = errors.New("only Landlock keeps plans from applies here: run the two agents as different users, use a stronger mode (docs/security.md), or start both with --isolation none")

// markUser marks user uid as one whose agents apply, or else plan, as long as the file that
// it returns is locked; to be used where nothing but the user keeps the two apart. It
// returns an errOneUser while an agent of the same user does the other.
func markUser(tmp string, uid int, applies bool) (*os.File, error) {
	dir := markFolder(tmp, uid)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("mark the user of this agent: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("mark the user of this agent: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(stat.Uid) != uid || info.Mode().Perm() != 0o700 {
		return nil, fmt.Errorf("mark the user of this agent: %s must be a folder of user %d that nobody else can open: remove it", dir, uid)
	}
	own, other, does := "plans", "applies", "applies"
	if applies {
		own, other, does = "applies", "plans", "plans"
	}
	mark, err := lockMark(dir, own, flock.Shared)
	if err == nil {
		var probe *os.File
		if probe, err = lockMark(dir, other, flock.Exclusive); err == nil {
			return mark, flock.Release(probe)
		}
		_ = flock.Release(mark)
	}
	if errors.Is(err, flock.ErrHeld) {
		return nil, fmt.Errorf("an agent of user %d on this machine executes %s, and %w", uid, does, errOneUser)
	}
	return nil, fmt.Errorf("mark the user of this agent: %w", err)
}

// markFolder is where the marks of a user are. A user of the same number in another
// namespace may be somebody else.
func markFolder(tmp string, uid int) string {
	name := "holdfast-" + strconv.Itoa(uid)
	if namespace, err := os.Readlink("/proc/self/ns/user"); err == nil { // user:[4026531837]
		name += "-" + strings.Trim(namespace, "user:[]")
	}
	return filepath.Join(tmp, name)
}

func lockMark(dir, name string, lock func(*os.File) error) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
