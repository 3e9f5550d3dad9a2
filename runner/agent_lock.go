// One agent for each folder.

package runner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/flock"
	"github.com/holdfast-dev/holdfast/runner/uplink"
)

// AgentLockFile is the file in an agent's folder that it holds an exclusive
// flock on while it lives. Its content is the agent's process id.
const AgentLockFile = "agent.lock"

// lockFolder makes this process the only agent of dir until release. It is a
// holdfast.ErrLocked if there is another. The kernel gives the lock back when
// the process dies, however that happens.
func lockFolder(dir string) (release func(), err error) {
	path := filepath.Join(dir, AgentLockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock agent folder: %w", err)
	}
	// A process that checks whether an agent is alive holds the lock for an instant.
	for try := 0; ; try++ {
		err = flock.Exclusive(file)
		if !errors.Is(err, flock.ErrHeld) || try == 10 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if errors.Is(err, flock.ErrHeld) {
		defer file.Close()
		pid, _ := io.ReadAll(io.LimitReader(file, 32))
		return nil, fmt.Errorf("lock agent folder %s: the agent with process id %s uses it: %w",
			dir, strings.TrimSpace(string(pid)), holdfast.ErrLocked)
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintf(file, "%d\n", os.Getpid())
	}
	if err != nil {
		_ = flock.Release(file)
		return nil, fmt.Errorf("lock agent folder %s: %w", dir, err)
	}
	return func() {
		_ = file.Truncate(0)
		_ = flock.Release(file)
	}, nil
}

// agentFolderFile holds what distinguishes an agent's folder from any other.
const agentFolderFile = "agent.folder"

// folderID returns what distinguishes this folder from any other: random, and made at
// its first use. The caller has locked the folder.
func folderID(dir string) (string, error) {
	path := filepath.Join(dir, agentFolderFile)
	data, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(data)); err == nil && id != "" {
		return id, nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read name of agent folder: %w", err)
	}
	id := rand.Text()
	if err := uplink.WriteFile(path, []byte(id+"\n"), uplink.MachineDisk{}); err != nil {
		return "", fmt.Errorf("write name of agent folder: %w", err)
	}
	return id, nil
}
