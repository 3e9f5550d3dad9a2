package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// Isolation is how engines are kept from the agent, from one another and from
// the machine. The zero value is: not at all.
type Isolation struct {
	Starter *sandbox.Starter // starts engines; nil means without isolation
	// FirstUser is the uid and gid of the first slot, and Slots how many follow:
	// each attempt that is executed has one for itself, in modes that have a user
	// for each.
	FirstUser, Slots int
	// Unavailable is why nothing that may be used works here: no attempt is
	// executed. Nil: something does.
	Unavailable error
	// OneUser: plans and applies are one user's, so that a weak mode is too weak
	// for applies.
	OneUser bool
	// ReadOnly and Writable are absolute paths that engines find besides what every
	// engine needs.
	ReadOnly, Writable []string
}

// refusal returns why no engine is started for a run of that kind, nil if it is.
func (o Isolation) refusal(kind holdfast.RunKind) error {
	switch {
	case o.Unavailable != nil:
		return &failure.Error{
			Cause: holdfast.CauseNoIsolation, Err: errors.New("nothing keeps the engine from the agent and from other runs here"),
			Detail: o.Unavailable.Error(), Hint: hintIsolation,
		}
	case o.OneUser && o.mode() == sandbox.ModeLandlock && kind.Writes():
		return &failure.Error{
			Cause: holdfast.CauseNoIsolation, Err: errors.New("plans and applies are the same user's, and only Landlock keeps them apart"),
			Hint: hintTwoAgents,
		}
	}
	return nil
}

// Hints of what to do where isolation is missing or weak.
const (
	hintIsolation = "docs/security.md says what each mode needs; isolation: none in holdfast.yaml starts engines without any, which lets code in a pull request do what the agent can"
	hintTwoAgents = "let agents of two users execute plans and applies, use a stronger mode (docs/security.md), or set isolation: none"
)

// Where a sandbox with a root of its own has what belongs to an attempt. The
// paths are the same for every attempt, so that code which reads its own path
// means the same in the plan and in the apply.
const (
	seenWork     = "/workspace"
	seenPrepared = "/prepared"
	seenPlan     = "/plan/plan.bin"
	seenConfig   = "/engine/engine.rc"
)

// mode returns how engines are started.
func (o Isolation) mode() sandbox.Mode {
	if o.Starter == nil {
		return sandbox.ModeNone
	}
	return o.Starter.Mode()
}

// slots hands users out to attempts, the first that is free. The zero Slot is
// the agent's own user.
type slots struct {
	first int           // 0: attempts have no users of their own
	free  chan struct{} // as many as are free

	mu   sync.Mutex
	used []bool
}

// newSlots returns the slots of an agent, an error if they are not enough.
func newSlots(o Isolation) (*slots, error) {
	if !o.mode().OwnUser() {
		return &slots{}, nil
	}
	if o.Slots < 1 || o.FirstUser < 1 {
		return nil, fmt.Errorf("isolation %s needs a user for each slot", o.mode())
	}
	s := &slots{first: o.FirstUser, free: make(chan struct{}, o.Slots), used: make([]bool, o.Slots)}
	for range o.Slots {
		s.free <- struct{}{}
	}
	return s, nil
}

// take waits for a slot that nobody has.
func (s *slots) take(ctx context.Context) (sandbox.Slot, error) {
	if s.first == 0 {
		return sandbox.Slot{}, nil
	}
	select {
	case <-s.free:
	case <-ctx.Done():
		return sandbox.Slot{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.used, false)
	s.used[i] = true
	return sandbox.Slot{UID: s.first + i, GID: s.first + i}, nil
}

// release gives a slot back. All that ran in it is dead.
func (s *slots) release(slot sandbox.Slot) {
	if s.first == 0 {
		return
	}
	s.mu.Lock()
	s.used[slot.UID-s.first] = false
	s.mu.Unlock()
	s.free <- struct{}{}
}

// seen returns how the engine sees a path of the attempt's workspace.
func (t *attempt) seen(path string) string {
	if !t.exec.mode().OwnRoot() {
		return path
	}
	switch rest := folders.Below(t.work, path); {
	case path == t.work:
		return seenWork
	case rest != "":
		return filepath.Join(seenWork, rest)
	case path == t.planFile:
		return seenPlan
	case path == t.prepared.Dir:
		return seenPrepared
	case path == t.config():
		return seenConfig
	default:
		return path
	}
}

// mounts are what an engine of the attempt sees besides the system's programs
// and libraries.
func (t *attempt) mounts(env map[string]string) []sandbox.Mount {
	list := []sandbox.Mount{{Source: t.work, Target: t.seen(t.work), Writable: true}}
	if t.scratch != "" {
		list = append(list, sandbox.Mount{Source: t.scratch, Writable: true})
	}
	if t.prepared.Dir != "" {
		list = append(list, sandbox.Mount{Source: t.prepared.Dir, Target: t.seen(t.prepared.Dir)})
	}
	if t.taken {
		list = append(list, sandbox.Mount{Source: t.planFile, Target: t.seen(t.planFile)})
	}
	if config := t.config(); config != "" {
		list = append(list, sandbox.Mount{Source: config, Target: t.seen(config)})
	}
	add := func(writable, optional bool, paths ...string) {
		for _, path := range paths {
			if filepath.IsAbs(path) && !slices.ContainsFunc(list, func(m sandbox.Mount) bool { return m.Source == path }) {
				list = append(list, sandbox.Mount{Source: path, Writable: writable, Optional: optional})
			}
		}
	}
	add(true, true, t.exec.opts.Isolation.Writable...)
	add(false, true, t.exec.opts.Isolation.ReadOnly...)
	add(false, true, t.exec.cli.mirrors...)
	add(false, true, filepath.SplitList(env["SSL_CERT_DIR"])...)
	add(false, true, env["SSL_CERT_FILE"])
	add(false, true, t.a.Env["SSH_AUTH_SOCK"]) // only one that the run's credentials name
	return list
}

// isolate completes the engine's environment.
func (t *attempt) isolate(env map[string]string) {
	if t.exec.mode() == sandbox.ModeNone {
		return
	}
	env["HOME"] = t.seen(filepath.Join(t.work, workspace.HomeDir))
	env["TMPDIR"] = t.seen(filepath.Join(t.work, workspace.TmpDir))
	if t.scratch != "" {
		env["TMPDIR"] = t.scratch
	}
	if t.exec.mode().OwnRoot() {
		// Engine and providers talk over Unix sockets that no other run can reach:
		// a key pair for each start of a provider, which takes as long as a small
		// plan, buys nothing.
		env["TF_DISABLE_PLUGIN_TLS"] = "1"
	}
	if t.a.Env["SSH_AUTH_SOCK"] == "" {
		delete(env, "SSH_AUTH_SOCK")
	}
	if limit := t.a.Limits.Memory; limit > 0 && env["GOMEMLIMIT"] == "" {
		env["GOMEMLIMIT"] = fmt.Sprint(limit / 4 * 3) // collect garbage before it is too late
	}
}

// makeScratch makes a folder for temporary files with a short name, where the
// engine's /tmp is the machine's: the sockets of providers lie in it, and their
// names are bounded.
func (t *attempt) makeScratch(ctx context.Context) error {
	mode := t.exec.mode()
	if mode == sandbox.ModeNone || mode.OwnRoot() || t.scratch != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "holdfast-")
	if err != nil {
		return fmt.Errorf("make folder for temporary files: %w", err)
	}
	t.scratch = dir
	return t.exec.opts.Isolation.Starter.Give(ctx, dir, t.slot)
}

// sandboxed starts a program of the attempt and waits until all that it has started is
// dead. The error is a *failure.ExitError if it ran and did not end well; whether ctx
// ended is for the caller to see.
func (t *attempt) sandboxed(ctx context.Context, c sandbox.Command) error {
	c.Slot, c.Grace = t.slot, t.exec.opts.Grace
	c.Limits = sandbox.Limits{Memory: t.a.Limits.Memory, Processes: t.a.Limits.Processes, CPU: t.a.Limits.CPU}
	exit, err := t.exec.opts.Isolation.Starter.Run(ctx, c)
	if err != nil {
		return err
	}
	if exit.Code == 0 && exit.Signal == 0 {
		return nil
	}
	return &failure.ExitError{Code: exit.Code, Signal: exit.Signal, Memory: exit.OutOfMemory, Processes: exit.OutOfProcesses}
}

// takeFile copies a file that an engine left in its workspace to a file of ours.
func (t *attempt) takeFile(path, to string, limit int64) error {
	return t.exec.opts.Isolation.Starter.Take(t.work, folders.Below(t.work, path), t.slot, limit, to)
}

// openLeft opens a file that an engine left in its workspace.
func (t *attempt) openLeft(path string, limit int64) (io.ReadCloser, error) {
	return t.exec.opts.Isolation.Starter.Open(t.work, folders.Below(t.work, path), t.slot, limit)
}

// readLeft reads a small file that an engine left in its workspace, nil if there
// is none.
func (t *attempt) readLeft(path string, limit int64) ([]byte, error) {
	file, err := t.openLeft(path, limit)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit))
}
