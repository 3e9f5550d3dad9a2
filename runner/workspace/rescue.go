// What a dead attempt has left: a state, and processes.

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/folders"
)

// KillLeftovers kills what still works in a dead attempt's workspace, and
// returns how many processes that were: the kernel has killed the engine with
// its agent, but not the providers and provisioners that it had started. Where
// there is no /proc it finds none.
func KillLeftovers(workspace string) int {
	workspace, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return 0
	}
	entries, _ := os.ReadDir("/proc")
	killed := 0
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		if err != nil || dir != workspace && !strings.HasPrefix(dir, workspace+string(filepath.Separator)) {
			continue
		}
		if process, err := os.FindProcess(pid); err == nil && process.Kill() == nil {
			killed++
		}
	}
	return killed
}

// MaxState bounds the bytes of a state that is read.
const MaxState = 512 << 20

// ErrUnusable says that there is a state, and that it is not as an engine writes one, or
// too large.
var ErrUnusable = errors.New("a state that cannot be read")

// Rescue returns the newest errored.tfstate below a workspace, nil if there is
// none. If it is an ErrUnusable the workspace must not be lost.
func Rescue(workspace string) ([]byte, error) {
	var newest string
	var at time.Time
	// Engines write it into the folder of the root module, which a bundle has.
	bounds := folders.Bounds{Depth: folders.MaxDepth, Entries: math.MaxInt, Skip: func(e folders.Entry) bool {
		return e.Name == ".terraform" || e.Depth > folders.MaxDepth
	}}
	err := folders.Walk(context.Background(), workspace, bounds, func(e folders.Entry) error {
		modified := time.Unix(e.Stat.Mtim.Unix())
		if e.Name == protocol.ArtefactErrored && e.Kind() == syscall.S_IFREG && modified.After(at) {
			newest, at = filepath.Join(workspace, e.Path), modified
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil || newest == "" {
		return nil, err
	}
	file, err := os.OpenFile(newest, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || !ok || stat.Nlink != 1 || info.Size() > MaxState {
		return nil, fmt.Errorf("%s: %w", newest, ErrUnusable)
	}
	return io.ReadAll(io.LimitReader(file, MaxState))
}

// RemoveDead removes the workspace of a dead attempt; no name: nothing.
func RemoveDead(dir string) error {
	if dir == "" {
		return nil
	}
	if err := folders.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove workspace: %w", err)
	}
	return nil
}
