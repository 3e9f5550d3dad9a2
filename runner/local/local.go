package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/holdfast-dev/holdfast/internal/flock"
)

const (
	lockFile = "agent.lock" // an agent holds a flock on it; its content is the process id
	logFile  = "agent.log"

	maxLogSize   = 10 << 20 // bytes; two files are kept
	pollEvery    = time.Second
	settledAfter = time.Minute // an agent that ran for so long starts again without delay
)

// Options say how the agent is started.
type Options struct {
	Command Command
	// Dir is the agent's folder, made if it does not exist. Required. It belongs
	// to User; its parent folder must not.
	Dir string
	// User is who the agent runs as: a name, a uid, or uid:gid. Empty means the
	// same as this process. Only root can start an agent as somebody else.
	User string
	// Range are users, besides User, that the agent can start engines as: it is in
	// a user namespace, root there and User outside. Empty means none. Needs User.
	Range Range
	// Group is the folder of the control group of version 2 that the agent is started in,
	// on Linux. Empty means this process's.
	Group string
	// Signs counts what the server has heard of the agent. One of which nothing new is
	// heard for Silence, and that does not show in its folder that it lives either, is
	// replaced. Nil: only stopped agents are.
	Signs   func() uint64
	Silence time.Duration // zero means a minute
	Logger  *slog.Logger  // nil discards
}

// Command is what is started.
type Command struct {
	// Binary and Args are the command, for example holdfast with agent and its
	// flags. They must name Dir as the agent's folder. Required: Binary.
	Binary string
	Args   []string
	// Env is added to the agent's environment, which is else only PATH, HOME
	// and TMPDIR: nothing of this process's is inherited.
	Env map[string]string
	// Input is what the agent finds on its standard input at each start: a
	// secret that the code in a plan, which runs as the same user, must find
	// neither in a file nor in an environment. Empty means nothing.
	Input string
}

// Range are uids, and gids of the same numbers.
type Range struct{ First, Count int }

// Process is an agent that is kept running. It is safe for concurrent use.
type Process struct {
	opts   Options
	root   *os.Root // Dir: nothing in it can lead root elsewhere
	who    *account // nil: same user
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	pid    int           // of the living agent; 0: none
	exited chan struct{} // closed when that agent is dead; nil if it was adopted
}

// Start starts an agent, or adopts the one that lives in Dir already, and
// starts it again with a growing delay whenever it dies. Once ctx is done the
// agent is left alone: it lives on. Stop ends it.
func Start(ctx context.Context, opts Options) (*Process, error) {
	switch {
	case opts.Command.Binary == "":
		return nil, errors.New("local: no binary")
	case opts.Dir == "":
		return nil, errors.New("local: no folder")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Silence == 0 {
		opts.Silence = time.Minute
	}
	who, err := lookUp(opts.User)
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	if opts.Dir, err = filepath.Abs(opts.Dir); err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	if err := prepareDir(opts.Dir, who); err != nil {
		return nil, fmt.Errorf("local: prepare %s: %w", opts.Dir, err)
	}
	root, err := os.OpenRoot(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &Process{opts: opts, root: root, who: who, cancel: cancel, done: make(chan struct{})}

	if p.adopt() {
		p.opts.Logger.InfoContext(ctx, "living agent was adopted", "agent", p.PID())
	} else if err = p.spawn(); err != nil {
		cancel()
		root.Close()
		return nil, fmt.Errorf("local: %w", err)
	}
	go func() {
		defer close(p.done)
		defer root.Close()
		p.supervise(ctx)
	}()
	return p, nil
}

// PID returns the living agent's process id, 0 if there is none now.
func (p *Process) PID() int {
	pid, _ := p.agent()
	return pid
}

func (p *Process) agent() (pid int, exited chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid, p.exited
}

func (p *Process) setAgent(pid int, exited chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.exited = pid, exited
}

// Stop tells the agent to end: it claims nothing more, brings running attempts
// to their end, and exits. Stop waits for that until ctx is done, then returns
// its error; the agent ends later.
func (p *Process) Stop(ctx context.Context) error {
	p.cancel()
	<-p.done
	pid, exited := p.agent()
	if pid == 0 {
		return nil
	}
	if err := p.signal(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop agent: %w", err)
	}
	for exited != nil || p.lives() {
		select {
		case <-exited:
			exited = nil
		case <-time.After(50 * time.Millisecond): // an adopted one
		case <-ctx.Done():
			return fmt.Errorf("stop agent with process id %d: it is still running: %w", pid, context.Cause(ctx))
		}
	}
	p.setAgent(0, nil)
	return nil
}

// Interrupt tells a stopping agent to wait no longer for running attempts: it
// interrupts their engines. It does not wait.
func (p *Process) Interrupt() error {
	pid := p.PID()
	if pid == 0 {
		return nil
	}
	if err := p.signal(pid, syscall.SIGINT); err != nil {
		return fmt.Errorf("interrupt agent: %w", err)
	}
	return nil
}

// supervise waits for the agent's death and starts it again, until ctx is
// done.
func (p *Process) supervise(ctx context.Context) {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval = time.Second
	delays.MaxInterval = 30 * time.Second
	for began := time.Now(); p.watch(ctx); began = time.Now() {
		p.setAgent(0, nil)
		if time.Since(began) > settledAfter {
			delays.Reset()
		}
		for p.PID() == 0 {
			delay := delays.NextBackOff()
			p.opts.Logger.WarnContext(ctx, "agent had exited and is started again", "duration", delay)
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				return
			}
			if p.adopt() { // somebody else has started it
				break
			}
			if err := p.spawn(); err != nil {
				p.opts.Logger.ErrorContext(ctx, "agent was not started", "err", err)
			}
		}
	}
}

// watch returns true when the agent is dead, false when ctx is done.
func (p *Process) watch(ctx context.Context) bool {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var held stopped
	var still hung
	for {
		_, exited := p.agent()
		select {
		case <-ctx.Done():
			return false
		case <-exited:
			if !p.adopt() {
				return true
			} // else another one had taken the lock first
		case <-tick.C:
			p.rotate()
			p.mind(ctx, &held)
			p.ping(ctx, &still)
			if exited == nil && !p.lives() {
				return true
			}
		}
	}
}

// lives reports whether an agent holds the lock of Dir.
func (p *Process) lives() bool {
	_, ok := probe(p.opts.Dir)
	return ok
}

// adopt makes the agent that holds the lock of Dir ours, if there is one.
func (p *Process) adopt() bool {
	pid, ok := probe(p.opts.Dir)
	if ok {
		p.setAgent(pid, nil)
	}
	return ok
}

// probe looks whether an agent holds the lock of dir.
func probe(dir string) (pid int, ok bool) {
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, false
	}
	defer func() { _ = flock.Release(file) }()
	if err := flock.Shared(file); !errors.Is(err, flock.ErrHeld) {
		return 0, false
	}
	var text [32]byte
	n, _ := file.ReadAt(text[:], 0)
	pid, _ = strconv.Atoi(strings.TrimSpace(string(text[:n])))
	return pid, true
}

// signal sends sig to the agent. The process id may come from a file that the
// agent's user can write, so it must be a process of that user.
func (p *Process) signal(pid int, sig syscall.Signal) error {
	if pid <= 1 {
		return fmt.Errorf("process id %d: not an agent's", pid)
	}
	uid := os.Getuid()
	if p.who != nil {
		uid = int(p.who.uid)
	}
	process, err := os.FindProcess(pid) // a handle: from here on the id cannot be reused for another process
	if err != nil {
		return err
	}
	defer func() { _ = process.Release() }()
	if owner, ok := ownerOf(pid); ok && owner != uid {
		return fmt.Errorf("process %d belongs to uid %d, not %d", pid, owner, uid)
	}
	if err := process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func infoSys(info fs.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return stat, ok
}

// ownerOf returns the user that a process runs as. The owner of its folder in
// /proc would be root for an agent that lets nobody look into it.
func ownerOf(pid int) (uid int, ok bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if ids, found := strings.CutPrefix(line, "Uid:"); found {
			if fields := strings.Fields(ids); len(fields) > 0 {
				uid, err = strconv.Atoi(fields[0])
				return uid, err == nil
			}
		}
	}
	return 0, false
}

// spawn starts the agent in its own session, with its output in a file.
func (p *Process) spawn() error {
	p.rotate()
	out, err := p.openLog(logFile)
	if err != nil {
		return fmt.Errorf("open agent's log: %w", err)
	}
	defer out.Close()
	// Not CommandContext: the agent should outlive this process.
	cmd := exec.Command(p.opts.Command.Binary, p.opts.Command.Args...) //nolint:gosec,noctx // the operator's own binary
	cmd.Dir = p.opts.Dir
	cmd.Stdout, cmd.Stderr = out, out
	if p.opts.Command.Input != "" {
		cmd.Stdin = strings.NewReader(p.opts.Command.Input)
	}
	cmd.Env = p.environment()
	cmd.SysProcAttr = attributes(p.who, p.opts.Range)
	leave, err := enter(cmd.SysProcAttr, p.opts.Group)
	if err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	defer leave()
	if err := cmd.Start(); err != nil {
		if p.who != nil && errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w (can user %q read and execute it, and enter the folders above it?)", err, p.opts.User)
		}
		return fmt.Errorf("start agent: %w", err)
	}
	exited := make(chan struct{})
	p.setAgent(cmd.Process.Pid, exited)
	p.opts.Logger.Info("agent was started", "agent", cmd.Process.Pid, "log", out.Name())
	// The only goroutine that nobody waits for: it ends with the agent, which
	// may well outlive this process.
	go func() {
		defer close(exited)
		if err := cmd.Wait(); err != nil {
			p.opts.Logger.Warn("agent exited", "agent", cmd.Process.Pid, "err", err)
		}
	}()
	return nil
}

// Try executes a command as an agent would be started, waits for its end, and
// returns what it printed.
func Try(ctx context.Context, opts Options) (string, error) {
	who, err := lookUp(opts.User)
	if err != nil {
		return "", fmt.Errorf("local: %w", err)
	}
	cmd := exec.CommandContext(ctx, opts.Command.Binary, opts.Command.Args...) //nolint:gosec // the operator's own binary
	cmd.Dir = "/"
	cmd.Env = (&Process{opts: opts, who: who}).environment()
	cmd.SysProcAttr = attributes(who, opts.Range)
	leave, err := enter(cmd.SysProcAttr, opts.Group)
	if err != nil {
		return "", fmt.Errorf("local: %w", err)
	}
	defer leave()
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// environment is the whole environment of the agent.
func (p *Process) environment() []string {
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}
	if dir := os.Getenv("TMPDIR"); dir != "" && p.who == nil {
		env["TMPDIR"] = dir
	}
	if p.who != nil {
		env["HOME"] = p.who.home
	}
	if p.who != nil && !isDir(p.who.home) {
		env["HOME"] = p.opts.Dir
	}
	for name, value := range p.opts.Command.Env {
		env[name] = value
	}
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// account is another user.
type account struct {
	uid, gid uint32
	home     string
}

// lookUp returns the account that name (a name, uid or uid:gid) stands for,
// nil for this process's own.
func lookUp(name string) (*account, error) {
	if name == "" {
		return nil, nil
	}
	uidText, gidText, both := strings.Cut(name, ":")
	who := &account{}
	known, err := user.Lookup(uidText)
	if err != nil {
		known, err = user.LookupId(uidText)
	}
	switch {
	case err == nil:
		uidText, who.home = known.Uid, known.HomeDir
		if !both {
			gidText = known.Gid
		}
	case !both:
		gidText = uidText // an id without an entry: a group of the same number
	}
	uid, errUID := strconv.ParseUint(uidText, 10, 32)
	gid, errGID := strconv.ParseUint(gidText, 10, 32)
	if errUID != nil || errGID != nil {
		return nil, fmt.Errorf("user %q: no such user, and not uid:gid", name)
	}
	who.uid, who.gid = uint32(uid), uint32(gid)
	if int(who.uid) == os.Getuid() {
		return nil, nil
	}
	if os.Getuid() != 0 {
		return nil, fmt.Errorf("user %q: only root can start an agent as another user", name)
	}
	return who, nil
}
