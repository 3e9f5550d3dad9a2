package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/runner/sandbox/internal/stage"
)

const (
	// itself is this program, whatever became of its file.
	itself = "/proc/self/exe"

	defaultTmpSize = 1 << 30

	// leftOver is how long the output is still read after everything is dead:
	// the end of it can be on its way through a slow writer, and a descriptor
	// can have been sent to somebody outside.
	leftOver = time.Minute

	// lastWords is how long the first process of a sandbox without a process
	// namespace may take to end the rest.
	lastWords = 5 * time.Second
)

// Starter starts engines in one mode. It is safe for concurrent use.
type Starter struct {
	mode    Mode
	refused []Refusal
	groups  *groups // nil: limits are those of processes
	grouped error   // why groups is nil
	started atomic.Int64
}

// Counted says whether the kernel counts what a start uses, so that limits are exact,
// by control groups; otherwise the error says why limits are those of single processes,
// and a verdict is Probably at most.
func (s *Starter) Counted() error { return s.grouped }

// Mode returns the mode of every start.
func (s *Starter) Mode() Mode { return s.mode }

// Refused returns why stronger modes do not work here.
func (s *Starter) Refused() []Refusal { return slices.Clone(s.refused) }

// Run starts c and returns how it ended, when everything that it started is
// dead. When ctx ends, c gets SIGINT, and SIGKILL after c.Grace. The error is
// about the start: an engine that fails is an Exit.
func (s *Starter) Run(ctx context.Context, c Command) (Exit, error) {
	if err := ctx.Err(); err != nil {
		return Exit{}, err
	}
	spec, err := s.spec(c)
	if err != nil {
		return Exit{}, err
	}
	if s.mode != ModeLandlock {
		// The kernel's parent of the sandbox is this thread: it outlives it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return s.run(ctx, c, spec)
	}
	type result struct {
		exit Exit
		err  error
	}
	done := make(chan result)
	go func() {
		// What is started is in a domain inside the one of this thread, so this
		// thread can end it, and not the other way round. Without an unlock the
		// thread ends with this function.
		runtime.LockOSThread()
		if errno := stage.ScopeSignals(); errno != 0 {
			done <- result{err: fmt.Errorf("start the sandbox of %s: scope signals: %w", c.Path, errno)}
			return
		}
		exit, err := s.run(ctx, c, spec)
		done <- result{exit, err}
	}()
	r := <-done
	return r.exit, r.err
}

// spec is what the first stage is given about c.
func (s *Starter) spec(c Command) (*stage.Spec, error) {
	if !filepath.IsAbs(c.Path) || !filepath.IsAbs(c.Dir) {
		return nil, fmt.Errorf("start %s in %s: paths are absolute in a sandbox", c.Path, c.Dir)
	}
	slot := c.Slot
	if s.mode.OwnUser() && (slot.UID <= 0 || slot.GID <= 0) {
		return nil, fmt.Errorf("start %s: mode %s needs a user of the slot", c.Path, s.mode)
	}
	if !s.mode.OwnUser() {
		slot = Slot{UID: os.Geteuid(), GID: os.Getegid()}
	}
	spec := &stage.Spec{
		Root: s.mode.OwnRoot(), Namespace: s.mode.OwnRoot(),
		UserMap:    s.mode == ModeUserNamespace,
		Privileges: s.mode.OwnUser() || s.mode == ModeUserNamespace,
		Confine:    s.mode != ModeNone,
		Landlock:   s.mode == ModeLandlock,
		UID:        slot.UID, GID: slot.GID, SetUser: s.mode.OwnUser(),
		Path: c.Path, Dir: c.Dir, Args: append([]string{c.Path}, c.Args...), Env: environ(c, s.mode),
		TmpSize: c.TmpSize,
	}
	s.limit(spec, c.Limits)
	if spec.TmpSize == 0 {
		spec.TmpSize = defaultTmpSize
	}
	if spec.Root || spec.Landlock {
		base(spec)
	}
	for _, m := range c.Mounts {
		mount := stage.Mount{Source: m.Source, Target: m.Target, Optional: m.Optional}
		if m.Writable {
			mount.Kind = stage.ReadWrite
		}
		if mount.Target == "" || !s.mode.OwnRoot() {
			mount.Target = mount.Source
		}
		if !filepath.IsAbs(mount.Source) || !filepath.IsAbs(mount.Target) {
			return nil, fmt.Errorf("mount %s at %s: paths are absolute in a sandbox", mount.Source, mount.Target)
		}
		mount.Target = filepath.Clean(mount.Target)
		spec.Mount = append(spec.Mount, mount)
	}
	if !slices.ContainsFunc(spec.Mount, func(m stage.Mount) bool { return below(c.Path, m.Target) }) && !linked(spec.Link, c.Path) {
		spec.Mount = append(spec.Mount, stage.Mount{Source: c.Path, Target: c.Path})
	}
	// What lies in another mount comes after it.
	slices.SortStableFunc(spec.Mount, func(a, b stage.Mount) int {
		return strings.Count(a.Target, "/") - strings.Count(b.Target, "/")
	})
	return spec, nil
}

func linked(links []stage.Link, path string) bool {
	return slices.ContainsFunc(links, func(l stage.Link) bool { return below(path, l.Path) })
}

// run starts the first stage on the calling thread and waits for its end.
func (s *Starter) run(ctx context.Context, c Command, spec *stage.Spec) (Exit, error) {
	controlRead, control, err := os.Pipe()
	if err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", c.Path, err)
	}
	defer controlRead.Close()
	defer control.Close()
	status, statusWrite, err := os.Pipe()
	if err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", c.Path, err)
	}
	defer status.Close()
	defer statusWrite.Close()

	if s.mode == ModeUsers {
		removeLeft(spec) // of a run whose agent has died
	}
	var heard listener
	group, err := s.group(c.Limits)
	if err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", c.Path, err)
	}
	cmd, err := start(group, func() *exec.Cmd {
		return &exec.Cmd{
			Path: itself, Args: []string{"holdfast-sandbox"}, Env: []string{stage.Mark + "=1"}, Dir: "/",
			ExtraFiles: []*os.File{controlRead, statusWrite},
			Stdout:     heard.hear(hidden(c.Stdout)), Stderr: heard.hear(hidden(c.Stderr)),
			SysProcAttr: s.attributes(),
			WaitDelay:   leftOver,
		}
	})
	if err != nil {
		return Exit{}, fmt.Errorf("start the sandbox of %s: %w", c.Path, err)
	}
	controlRead.Close()
	statusWrite.Close()
	_, _ = control.Write(spec.Encode()) // if it died, the status says nothing

	over, canceled := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(canceled)
		s.cancel(c.Grace, control, cmd.Process, over)
	})
	waited := cmd.Wait()
	close(over)
	if !stop() {
		<-canceled
	}
	// Nobody who could write records is alive.
	records, _ := io.ReadAll(io.LimitReader(status, 1<<16))
	said := stage.Records(records)
	exit, err := conclude(c, waited, said)
	if left := s.sweep(spec, said); left != nil {
		err = fmt.Errorf("end the sandbox of %s: %w", c.Path, left)
	}
	if s.mode == ModeUsers {
		removeShared(spec.UID)
		removeLeft(spec)
	}
	if group != nil {
		group.conclude(&exit)
	} else if err == nil {
		heard.conclude(&exit, c.Limits)
	}
	return exit, err
}

// cancel ends a sandbox, unless it is over before.
func (s *Starter) cancel(grace time.Duration, control io.WriteCloser, process *os.Process, over <-chan struct{}) {
	if grace > 0 {
		_, _ = control.Write([]byte{stage.Interrupt})
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-over:
			return
		case <-timer.C:
		}
	}
	if !s.mode.OwnRoot() {
		// Its first process ends the rest, and says so.
		control.Close()
		timer := time.NewTimer(lastWords)
		defer timer.Stop()
		select {
		case <-over:
			return
		case <-timer.C:
		}
	}
	_ = process.Kill() // by descriptor of the process: never another one's
}

// conclude reads how a sandbox ended from its records. Its exit code is not
// believed: who is inside can have caused it.
func conclude(c Command, waited error, said []stage.Record) (Exit, error) {
	exit := Exit{Code: -1, Signal: syscall.SIGKILL} // the starter killed it
	ended := false
	for _, r := range said {
		switch r.Kind {
		case stage.RecordFailed:
			return Exit{}, fmt.Errorf("start the sandbox of %s: %s: %w", c.Path, r.Step, syscall.Errno(r.A))
		case stage.RecordExit:
			ended = true
			exit = Exit{Code: r.Status().ExitStatus(), PeakMemory: r.B << 10}
			if r.Status().Signaled() {
				exit.Signal = r.Status().Signal()
			}
		}
	}
	var failed *exec.ExitError
	killed := errors.As(waited, &failed) && failed.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if !ended && !killed {
		return Exit{}, fmt.Errorf("run the sandbox of %s: its first process ended without a result: %w", c.Path, waited)
	}
	if waited != nil && failed == nil {
		return exit, fmt.Errorf("read the output of %s: %w", c.Path, waited)
	}
	return exit, nil
}

// attributes are those of the first stage.
func (s *Starter) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if s.mode.OwnRoot() {
		// Its death is everybody's. In the other modes it has to live, to end
		// the rest when it sees the end of this process.
		attr.Pdeathsig = syscall.SIGKILL
		attr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	}
	if s.mode == ModeUserNamespace {
		// The first stage writes the map: this process may hide its memory, and
		// with it the file of the map.
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
	}
	return attr
}

// hidden keeps os/exec from handing a file to the engine: it gets pipes only.
func hidden(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return struct{ io.Writer }{w}
}

// environ returns the environment of c in the form of os/exec. Git takes the
// folders of c for safe, whoever owns what lies there.
func environ(c Command, mode Mode) []string {
	env := maps.Clone(c.Env)
	if env == nil {
		env = map[string]string{}
	}
	safe := []string{c.Dir}
	for _, m := range c.Mounts {
		switch {
		case m.Writable && mode.OwnRoot():
			safe = append(safe, cmp.Or(m.Target, m.Source))
		case m.Writable:
			safe = append(safe, m.Source)
		}
	}
	n, _ := strconv.Atoi(env["GIT_CONFIG_COUNT"])
	for _, dir := range slices.Compact(slices.Sorted(slices.Values(safe))) {
		env[fmt.Sprintf("GIT_CONFIG_KEY_%d", n)] = "safe.directory"
		env[fmt.Sprintf("GIT_CONFIG_VALUE_%d", n)] = dir
		n++
	}
	env["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
