package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// storeKey is the placeholder in a store's command for the key that is asked for.
const storeKey = "{key}"

// storeGrace is how long a store's command may take to end after SIGINT.
const storeGrace = time.Second

// secretFromStore asks a store's command, as the run's credentials name it, for
// the value. No shell runs it, in a folder without the repository's
// files, with the environment of the run.
func (r *Resolver) secretFromStore(ctx context.Context, ref rootmodule.SecretRef) (string, *secretError) {
	argv := r.Assignment.SecretStores[ref.Store]
	if len(argv) == 0 {
		return "", r.noStore(ref.Store)
	}
	args := make([]string, len(argv))
	for i, arg := range argv {
		args[i] = arg
		if i > 0 { // what is executed is nobody's choice
			args[i] = strings.ReplaceAll(arg, storeKey, ref.Key)
		}
	}
	env := maps.Clone(r.Env)
	maps.Copy(env, r.Assignment.Env)
	path, err := lookPath(args[0], env["PATH"])
	if err != nil {
		return "", &secretError{err: fmt.Errorf("store %s: %w", ref.Store, err), hint: hintStore}
	}
	if err := nobodyElses(path); err != nil {
		return "", &secretError{
			err:  fmt.Errorf("store %s: program %s: %w", ref.Store, args[0], err),
			hint: "it gets the run's credentials: take the permission to write away from others, such as with chmod o-w",
		}
	}
	dir, err := os.MkdirTemp(r.Dir, "store-")
	if err != nil {
		return "", &secretError{err: fmt.Errorf("store %s: make folder: %w", ref.Store, err), transient: true, hint: failure.HintDisk}
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, r.Opts.Timeout)
	defer cancel()
	out := &flood{limit: maxSecretValue + 2, over: cancel}
	said := journal.NewExcerpt(4 << 10)
	err = command{path: path, dir: dir, env: env, args: args[1:], stdout: out, stderr: said, grace: storeGrace}.run(ctx)
	value, flooded := out.get()
	if !flooded {
		r.Redactor.Add(modulecode.VariableSecrets(value)...) // what failed may repeat it in its message
	}
	switch {
	case flooded:
		return "", &secretError{
			err: fmt.Errorf("store %s: it printed more than %d bytes", ref.Store, maxSecretValue), hint: hintStore,
		}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", &secretError{
			err:    fmt.Errorf("store %s: no answer for %s within %v", ref.Store, ref.Key, r.Opts.Timeout),
			detail: r.heard(said), hint: hintStore, transient: true,
		}
	case err != nil || ctx.Err() != nil:
		return "", r.storeFailed(ref, said.String(), err)
	}
	return strings.TrimRight(value, "\r\n"), nil
}

// nobodyElses refuses a program that everybody can replace by another one.
func nobodyElses(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	const others = 0o002
	if info, err := os.Stat(real); err != nil {
		return err
	} else if info.Mode().Perm()&others != 0 {
		return errors.New("everybody can write to it")
	}
	if info, err := os.Stat(filepath.Dir(real)); err != nil {
		return err
	} else if info.Mode().Perm()&others != 0 && info.Mode()&os.ModeSticky == 0 {
		return errors.New("everybody can write to its folder")
	}
	return nil
}

const hintStore = "the command is that of credentials[].stores in holdfast.yaml; the agent executes it with the run's credentials, and it must print the value and nothing else"

func (r *Resolver) noStore(name string) *secretError {
	e := &secretError{
		err:  fmt.Errorf("the run's credentials have no store %s", name),
		hint: "put its command under credentials[].stores in holdfast.yaml, " + r.entry(),
	}
	if r.Opts.Open {
		e.err = fmt.Errorf("store %s is the server's, and not here", name)
	}
	return e
}

// storeFailed reads out of what a store's command said on its error stream
// whether it makes sense to ask again.
func (r *Resolver) storeFailed(ref rootmodule.SecretRef, said string, err error) *secretError {
	found := failure.Diagnose(failure.Tail(said, 8<<10))
	e := &secretError{
		err:    fmt.Errorf("store %s has no answer for %s: %w", ref.Store, ref.Key, err),
		detail: clipSaid(r.Redactor.String(said)), transient: found.Transient, hint: hintStore,
	}
	var exit *failure.ExitError
	if errors.As(err, &exit) && exit.Signal != 0 {
		e.transient, e.hint = true, "the system killed it, most often because memory ran out: "+failure.HintMemory
		return e
	}
	switch found.Cause {
	case holdfast.CauseCredentials, holdfast.CausePermission, holdfast.CauseNetwork, holdfast.CauseThrottled, holdfast.CauseServiceUnavailable:
		e.hint = found.Hint
	default: // of no use to whoever keeps the store
	}
	return e
}

func (r *Resolver) heard(said *journal.Excerpt) string {
	return clipSaid(r.Redactor.String(said.String()))
}

// clipSaid is what is shown of an error stream.
func clipSaid(said string) string {
	return failure.Tail(strings.ToValidUTF8(strings.TrimSpace(said), "?"), 2<<10)
}

// lookPath finds a program as the run's own PATH has it; a name with a slash is
// a path. Relative folders count for nothing.
func lookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			return "", fmt.Errorf("the program %s must be a name or an absolute path", name)
		}
		return name, isProgram(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); filepath.IsAbs(dir) && isProgram(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no program %s on the agent's PATH", name)
}

func isProgram(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no program %s", file)
	case err != nil:
		return err
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not a program", file)
	}
	return nil
}

// flood keeps what is written to it and calls over when it is more than limit.
// It takes all of it either way. It is safe for concurrent use.
type flood struct {
	limit int
	over  func()

	mu      sync.Mutex
	buf     bytes.Buffer
	flooded bool
}

func (f *flood) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if free := f.limit - f.buf.Len(); len(p) > free {
		if !f.flooded {
			f.flooded = true
			f.over()
		}
		f.buf.Write(p[:free])
		return len(p), nil
	}
	return f.buf.Write(p)
}

func (f *flood) get() (text string, flooded bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.buf.String(), f.flooded
}
