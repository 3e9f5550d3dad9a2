package attempt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/cliconfig"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
	"github.com/holdfast-dev/holdfast/runner/secrets"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// Options say where and how attempts are executed. WorkDir is required.
type Options struct {
	// WorkDir holds workspaces/ (one folder per attempt, removed at its end),
	// shared/ (what init prepared, for all attempts), engines/ (downloads) and
	// locations/ (who works where). Only one Executor may use it at a time.
	WorkDir   string
	Engines   Engines
	Isolation Isolation // keeps engines from all else; zero means nothing does
	Secrets   secrets.Options
	Waits     Waits
	Limits    Limits

	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Engines say where engines come from, and what they are given.
type Engines struct {
	engine.Sources

	// CLIConfigFile is the engines' own configuration, for example with a
	// provider mirror. Empty means none but what HOME has.
	CLIConfigFile string
	// Env is the environment that every engine gets, before what an assignment
	// adds. Nil means PATH, HOME, TMPDIR, LANG and the engine.NetworkVariables of this process,
	// with those that Pass and Secret name.
	Env map[string]string
	// Pass names further variables of this process that engines get, and Secret those
	// whose values are removed from all that people read.
	Pass, Secret []string
}

// Waits are how long an attempt waits for others.
type Waits struct {
	// Grace is how long an interrupted engine may take to end before it is
	// killed; zero means 60 s.
	Grace time.Duration
	// Lock is how long the engine waits for the state's lock; zero means 2 min.
	Lock time.Duration
	// Apply is how long an apply waits for Session.MayApply; zero means 1 min.
	Apply time.Duration
	// Left is how long the engine may take to read the state after an apply that failed
	// or was stopped: perhaps its backend is unavailable, and somebody waits for the
	// end. Zero means 1 min.
	Left time.Duration
}

// Limits bound what attempts make.
type Limits struct {
	// Log bounds the bytes of an attempt's log; the middle of a longer one is left out.
	// Zero means 64 MiB.
	Log int64
	// Bundle bounds the unpacked bundle in bytes; zero means 1 GiB.
	Bundle int64
	// Plan bounds the engine's JSON of a plan in bytes; zero means 256 MiB.
	Plan int64
	// Prepared is how many prepared folders are kept; zero means 64.
	Prepared int
}

// Executor executes attempts at runs on this machine. It is safe for concurrent
// use; several attempts run at once.
type Executor struct {
	opts    Options
	engines *engine.Store
	inits   *initcache.Store
	slots   *sandbox.Slots
	cli     cliconfig.Config
	spaces  *workspace.Store
	tidied  sync.Once

	settings initcache.Settings
}

// NewExecutor returns an Executor. It touches nothing that another one may be
// working on: what a dead predecessor left half done is removed with the first
// Execute, when the folder is the caller's alone. Workspaces of dead attempts
// stay even then: their owner may want to look for unsaved state.
func NewExecutor(opts Options) (*Executor, error) {
	if opts.WorkDir == "" {
		return nil, errors.New("runner: no work folder")
	}
	if err := opts.Engines.Check(); err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	if file := opts.Engines.CLIConfigFile; file != "" {
		if _, err := os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("runner: engine configuration: %w", err)
		}
	}
	dir, err := filepath.Abs(opts.WorkDir)
	if err != nil {
		return nil, fmt.Errorf("runner: work folder: %w", err)
	}
	opts.WorkDir = dir
	opts.setDefaults()
	if opts.Isolation.Starter == nil {
		opts.Isolation.Starter, err = sandbox.Probe(context.Background(), sandbox.Options{Mode: sandbox.ModeNone})
		if err != nil {
			return nil, fmt.Errorf("runner: %w", err)
		}
	}
	e := &Executor{opts: opts}
	if err := e.makeFolders(); err != nil {
		return nil, fmt.Errorf("runner: make folder: %w", err)
	}
	if e.spaces, err = workspace.NewStore(dir, e.passable(), opts.Logger); err != nil {
		return nil, fmt.Errorf("runner: make folder: %w", err)
	}
	if e.slots, err = sandbox.NewSlots(opts.Isolation.mode(), opts.Isolation.FirstUser, opts.Isolation.Slots); err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	if e.cli, err = opts.cliConfig(); err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	e.engines = engine.NewStore(engine.Options{
		Sources: opts.Engines.Sources, Dir: filepath.Join(dir, enginesDir), Env: opts.Engines.Env, Logger: opts.Logger,
	})
	e.inits, err = initcache.New(initcache.Options{
		Dir: filepath.Join(dir, sharedDir), Keep: opts.Limits.Prepared, Logger: opts.Logger, Now: opts.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	return e, nil
}

// mode returns how engines are kept from all else.
func (e *Executor) mode() sandbox.Mode { return e.opts.Isolation.mode() }

// readOnly are the files and folders of the machine that engines with that environment find,
// besides what every engine needs and what belongs to an attempt.
func (e *Executor) readOnly(env map[string]string) []string {
	return slices.Concat(
		e.opts.Isolation.ReadOnly, e.cli.Mirrors, filepath.SplitList(env["SSL_CERT_DIR"]), []string{env["SSL_CERT_FILE"]},
	)
}

// Exposes returns through which file or folder code in every plan can read path, as it has
// the agent's own user; empty if it cannot.
func (e *Executor) Exposes(path string) string {
	return e.mode().Exposes(path, slices.Concat(e.opts.Isolation.Writable, e.readOnly(e.opts.Engines.Env))...)
}

// passable is the mode of folders on the way to what engines are given.
func (e *Executor) passable() fs.FileMode {
	if e.mode().OwnUser() && !e.mode().OwnRoot() {
		return 0o711
	}
	return 0o700
}

// makeFolders makes the folders of WorkDir. Engines that are other users and see the
// machine's file system pass through them to their own files.
func (e *Executor) makeFolders() error {
	mode := e.passable()
	for _, name := range []string{"", sharedDir, enginesDir} {
		path := filepath.Join(e.opts.WorkDir, name)
		if err := os.MkdirAll(path, mode); err != nil {
			return err
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	return nil
}

// Folders of WorkDir, besides those of workspaces.
const (
	sharedDir  = "shared"
	enginesDir = "engines"
)

func (o *Options) setDefaults() {
	if o.Waits.Grace == 0 {
		o.Waits.Grace = time.Minute
	}
	if o.Waits.Lock == 0 {
		o.Waits.Lock = 2 * time.Minute
	}
	if o.Waits.Apply == 0 {
		o.Waits.Apply = time.Minute
	}
	if o.Waits.Left == 0 {
		o.Waits.Left = time.Minute
	}
	if o.Secrets.Timeout == 0 {
		o.Secrets.Timeout = 30 * time.Second
	}
	if o.Limits.Log == 0 {
		o.Limits.Log = 64 << 20
	}
	if o.Limits.Bundle == 0 {
		o.Limits.Bundle = 1 << 30
	}
	if o.Limits.Plan == 0 {
		o.Limits.Plan = 256 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Engines.Env == nil {
		o.Engines.Env = baseEnv(os.LookupEnv, slices.Concat(o.Engines.Pass, o.Engines.Secret)...)
	}
	o.Engines.Env = maps.Clone(o.Engines.Env)
	if o.Engines.Env["PATH"] == "" {
		o.Engines.Env["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
}

// baseEnv is the part of a process's environment that engines may see.
func baseEnv(lookup func(string) (string, bool), more ...string) map[string]string {
	env := map[string]string{}
	for _, name := range slices.Concat([]string{"PATH", "HOME", "TMPDIR", "LANG"}, engine.NetworkVariables(), more) {
		if value, ok := lookup(name); ok {
			env[name] = value
		}
	}
	return env
}

// Execute executes one attempt completely and returns how it ended: whatever
// goes wrong is a Result with a Failure. Cancelling ctx interrupts the engine,
// and kills it after the grace; the cancel's cause (a *StopError) says why.
func (e *Executor) Execute(ctx context.Context, a protocol.Assignment, s Session) protocol.Result {
	return e.execute(ctx, a, s, (*attempt).run)
}

// Validate lets the engine check the root module of an assignment, with its providers
// and without its backend: nothing is planned, and no value of a variable is looked at.
// The result is RunNoChanges if it is valid. Otherwise it is as Execute.
func (e *Executor) Validate(ctx context.Context, a protocol.Assignment, s Session) protocol.Result {
	return e.execute(ctx, a, s, (*attempt).validate)
}

func (e *Executor) execute(ctx context.Context, a protocol.Assignment, s Session, run func(*attempt, context.Context) error) (result protocol.Result) {
	e.tidied.Do(e.tidy)
	t := newAttempt(e, a, s)
	err := e.opts.Isolation.refusal(a.Kind)
	if err == nil {
		t.slot, err = e.slots.Take(ctx)
	}
	if err != nil {
		t.fail(ctx, err)
		t.close()
		return t.finish()
	}
	defer e.slots.Release(t.slot)
	defer func() {
		if p := recover(); p != nil {
			e.opts.Logger.ErrorContext(ctx, "attempt panicked", "cluster", a.Cluster, "run", a.Run,
				"err", fmt.Sprint(p), "stack", string(debug.Stack()))
			t.fail(ctx, &failure.Error{Cause: holdfast.CauseInternal, Err: fmt.Errorf("panic: %v", p)})
			result = t.result
		}
		t.close()
	}()
	if err = run(t, ctx); err != nil {
		t.fail(ctx, err)
	}
	return t.finish()
}

// tidy makes inaccessible and removes what a dead predecessor left half done.
func (e *Executor) tidy() {
	e.spaces.Shut()
	engine.RemoveLeftovers(filepath.Join(e.opts.WorkDir, enginesDir))
	e.inits.Tidy()
	go e.spaces.RemoveDiscarded()
}

// WorkspaceDir returns the folder, below WorkDir, in which an attempt is or was
// executed. It does not exist before and once the attempt has ended.
func (e *Executor) WorkspaceDir(ref holdfast.AttemptRef) string { return e.spaces.Of(ref) }
