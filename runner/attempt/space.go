// What engines are given, and how they see it.

package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// space is what an attempt's engines are given, and how they see it: the workspace
// with the root module in it, what init has prepared, and the plan file.
type space struct {
	exec    *Executor
	a       protocol.Assignment
	session Session

	place    workspace.Folder // of the attempt
	slot     sandbox.Slot     // whom engines run as
	dir      string           // the attempt's folder, which is ours
	work     string           // the workspace in it, which is the engine's
	given    bool             // the engine has it: from then on nothing is written there
	scratch  string           // for temporary files, where the engine's /tmp is the machine's
	bundle   string           // the unpacked bundle, in the workspace
	root     string           // the root module in it
	planFile string           // of ours
	taken    bool             // there is one
	backend  backendFile      // empty: the root module has its own backend
	module   modulecode.Root
	engine   engine.Binary
	prepared initcache.Folder
	lockFile []byte // the one in effect after init
	settings []byte // of the backend, as init has kept them; nil: those of prepared

	settingsName holdfast.Digest // by which settings are remembered; empty: they are not
}

// seen returns how the engine sees a path of the attempt's workspace.
func (t *space) seen(path string) string {
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
func (t *space) mounts(env map[string]string) []sandbox.Mount {
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
	add(false, true, t.exec.readOnly(env)...)
	add(false, true, t.a.Env["SSH_AUTH_SOCK"]) // only one that the run's credentials name
	return list
}

// isolate completes the engine's environment.
func (t *space) isolate(env map[string]string) {
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
func (t *space) makeScratch(ctx context.Context) error {
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
func (t *space) sandboxed(ctx context.Context, c sandbox.Command) error {
	c.Slot, c.Grace = t.slot, t.exec.opts.Waits.Grace
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
func (t *space) takeFile(path, to string, limit int64) error {
	return t.exec.opts.Isolation.Starter.Take(t.work, folders.Below(t.work, path), t.slot, limit, to)
}

// openLeft opens a file that an engine left in its workspace.
func (t *space) openLeft(path string, limit int64) (io.ReadCloser, error) {
	return t.exec.opts.Isolation.Starter.Open(t.work, folders.Below(t.work, path), t.slot, limit)
}

// readLeft reads a small file that an engine left in its workspace, nil if there
// is none.
func (t *space) readLeft(path string, limit int64) ([]byte, error) {
	file, err := t.openLeft(path, limit)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit))
}

// config is the attempt's copy of the engines' configuration, empty if it has
// none of its own.
func (t *space) config() string {
	if t.exec.cli.Data == nil {
		return ""
	}
	return filepath.Join(t.dir, "engine.rc")
}

// inRepository is a file that an engine has named from its root module, as the
// repository calls it.
func (t *space) inRepository(file string) string {
	if file == "" || path.IsAbs(file) || strings.HasPrefix(file, ".terraform/") || strings.ContainsAny(file, "<>") {
		return file
	}
	whole := path.Join(t.a.Dir, file)
	if !strings.HasPrefix(whole, "../") && !strings.HasPrefix(whole, renderedRoot) {
		return whole
	}
	return file
}

// renderedRoot is the folder of a root module that is rendered, and is in no
// repository.
const renderedRoot = "root/"
