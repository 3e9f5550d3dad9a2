package container

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Spec is what a container is made of.
type Spec struct {
	Programs string // the folder that is its image
	Args     []string
	Env      []string
	Dir      string
	Mounts   []Mount
	User     int
	Log      string `json:"-"`
	Root     string // an empty folder
}

// Mount is a folder or file of the machine that a container sees.
type Mount struct {
	From, To string
	ReadOnly bool
}

// Container is a container that runs.
type Container struct {
	cmd  *exec.Cmd
	root string
	log  *os.File
	done chan struct{}
	once sync.Once
}

// StageCommand is the argument of this program as the first one in a container: it then calls
// Stage and nothing else.
const StageCommand = "stage"

const (
	capSysAdmin  = 21
	capSetPcap   = 8
	capSysChroot = 18
)

// Start starts a container. It ends with this process.
func Start(spec Spec) (*Container, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	if spec.Root, err = os.MkdirTemp("", "standin-root"); err != nil {
		return nil, err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, StageCommand)
	cmd.Env = []string{"STAGE=" + string(text)}
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: spec.User, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: spec.User, HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{capSysAdmin, capSetPcap, capSysChroot}, // the stage gives them up
		Setsid:      true, Pdeathsig: syscall.SIGKILL,
	}
	c := &Container{cmd: cmd, root: spec.Root, log: log, done: make(chan struct{})}
	started := make(chan error)
	go func() { // Pdeathsig is about the thread
		runtime.LockOSThread()
		started <- cmd.Start()
		<-c.done
		runtime.UnlockOSThread()
	}()
	if err := <-started; err != nil {
		close(c.done)
		return nil, errors.Join(err, log.Close())
	}
	return c, nil
}

// Signal sends a signal to process 1.
func (c *Container) Signal(sig syscall.Signal) { _ = c.cmd.Process.Signal(sig) }

// Wait returns how the container ended, as its exit code.
func (c *Container) Wait() int {
	_ = c.cmd.Wait()
	c.once.Do(func() { close(c.done) })
	_ = c.log.Close()
	_ = os.Remove(c.root) // what was mounted there was seen by the container alone
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// WatchMemory calls tooMuch once all processes of the container together have more memory
// than the limit.
func (c *Container) WatchMemory(limit int64, tooMuch func()) {
	for {
		select {
		case <-c.done:
			return
		case <-time.After(50 * time.Millisecond):
		}
		if residentOf(c.cmd.Process.Pid) > limit {
			tooMuch()
			return
		}
	}
}

// residentOf is the resident memory of a process and its descendants, in bytes.
func residentOf(root int) int64 {
	children := map[int][]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		text, _ := os.ReadFile(filepath.Join(dir, "stat"))
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], pid)
		}
	}
	var sum int64
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(todo[0]), "statm"))
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			sum += pages * int64(os.Getpagesize())
		}
		todo = append(todo, children[todo[0]]...)
	}
	return sum
}
