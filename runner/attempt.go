package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/redact"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// Steps of an attempt.
const (
	stepPrepare  = "prepare"
	stepInit     = "init"
	stepValidate = "validate"
	stepPlan     = "plan"
	stepShow     = "show"
	stepWait     = "wait"
	stepApply    = "apply"
	stepOutputs  = "outputs"
	stepPush     = "push"
	stepUnlock   = "unlock"
)

// attempt is the execution of one attempt, used once and by one goroutine.
type attempt struct {
	exec    *Executor
	a       holdfast.Assignment
	session Session
	logger  *slog.Logger
	result  holdfast.Result

	step    string
	stepped time.Time

	redact   *redact.Redactor
	limiter  *journal.LogLimiter
	redacted io.WriteCloser    // writes to limiter
	log      *journal.Holdback // what engines write to; writes to redacted

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
	backend  backendFile      // empty: the root module has a backend of its own
	module   modulecode.Root
	engine   engine.Binary
	prepared initcache.Folder
	expected []holdfast.Digest // of fetched modules, that prepared shall have; none: any
	lockFile []byte            // the one in effect after init
	settings []byte            // of the backend, as init has kept them; nil: those of prepared
	input    plan.Input
	secrets  foundSecrets
	counts   holdfast.Counts
	document holdfast.PlanDocument // what the plan would do
	progress *journal.Progress
	keep     bool        // something in the workspace must not be lost
	watched  bool        // the session shows us the states of its own backend
	sealed   atomic.Bool // one of them could not be read: the engine encrypts its states
	newest   newestState
	pulled   []byte              // the state before the plan, where we do not see it on its way
	compared plan.Compared       // what the plan file and the state differ in
	left     []holdfast.Resource // what the state held after a failed apply

	planDigest holdfast.Digest // of document
}

func newAttempt(e *Executor, a holdfast.Assignment, s Session) *attempt {
	t := &attempt{
		exec: e, a: a, session: s,
		logger: e.opts.Logger.With("cluster", a.Cluster, "run", a.Run, "attempt", a.Attempt),
		result: holdfast.Result{Fence: a.Fence},
	}
	_, _, password := s.StateAddress()
	secrets := []string{a.Token, password}
	if w, ok := s.(StateWriter); ok {
		_, _, password := w.WriteAddress()
		secrets = append(secrets, password)
	}
	for _, name := range a.Secrets {
		secrets = append(secrets, a.Env[name])
	}
	t.redact = redact.New(secrets)
	t.limiter = journal.NewLogLimiter(s.Log(), e.opts.MaxLog)
	t.redacted = t.redact.Writer(t.limiter)
	t.log = journal.NewHoldback(t.redacted)
	if w, ok := s.(StateWatcher); ok && a.OwnState {
		t.watched = true
		w.WatchState(t.learn)
	}
	return t
}

// run does the attempt's steps in order. An error is why it ended early.
func (t *attempt) run(ctx context.Context) error {
	t.begin(stepPrepare)
	if err := t.unpackBundle(ctx); err != nil {
		return err
	}
	if err := t.takeSecrets(ctx); err != nil {
		return err
	}
	if err := t.useLockFile(); err != nil {
		return err
	}
	if err := t.chooseEngine(ctx); err != nil {
		return err
	}
	t.begin(stepInit)
	if err := t.init(ctx); err != nil {
		return err
	}
	if t.a.State != nil {
		return t.putRight(ctx, *t.a.State)
	}
	if err := t.noteState(ctx); err != nil {
		return err
	}
	if err := t.checkWriter(); err != nil {
		return err
	}
	if err := t.makePlan(ctx); err != nil {
		return err
	}
	if t.counts.Zero() {
		t.result.Status = holdfast.RunNoChanges
		if t.a.Kind.Writes() {
			t.outputs(ctx)
		}
		return nil
	}
	if !t.a.Kind.Writes() {
		t.result.Status = holdfast.RunPlanned
		return nil
	}
	return t.applyReviewed(ctx)
}

// begin ends the current step and begins the next.
func (t *attempt) begin(step string) {
	now := t.exec.opts.Now()
	t.endStep(now)
	t.step, t.stepped = step, now
	t.session.Step(step)
}

func (t *attempt) endStep(now time.Time) {
	if t.step != "" {
		t.result.Steps = append(t.result.Steps, holdfast.Step{Name: t.step, Duration: now.Sub(t.stepped)})
	}
}

// lasted is how long the attempt has been executed.
func (t *attempt) lasted() time.Duration {
	sum := t.exec.opts.Now().Sub(t.stepped)
	for _, step := range t.result.Steps {
		sum += step.Duration
	}
	return sum
}

// say writes a line of ours into the attempt's log.
func (t *attempt) say(format string, args ...any) {
	_, _ = fmt.Fprintf(t.log, "holdfast: "+format+"\n", args...)
}

// finish returns the result.
func (t *attempt) finish() holdfast.Result {
	t.endStep(t.exec.opts.Now())
	t.step = ""
	if t.result.Status == "" {
		t.result.Status, t.result.Reason = holdfast.RunErrored, holdfast.CauseInternal
	}
	t.logger.Info("attempt ended", "action", string(t.result.Status), "reason", t.result.Reason)
	return t.result
}

// close flushes the log and removes the workspace, unless it holds a state that
// is nowhere else.
func (t *attempt) close() {
	t.log.Release(t.stateKnown())
	_ = t.redacted.Close()
	t.limiter.Close()
	t.prepared.Release()
	if t.scratch != "" {
		_ = folders.RemoveAll(t.scratch)
	}
	if t.dir == "" {
		return
	}
	defer t.place.Release()
	if t.keep {
		aside, err := t.exec.spaces.SetAside(t.dir)
		t.logger.Error("workspace kept: it holds an unsaved state", "err", errors.Join(errors.New("keep "+aside), err))
		return
	}
	if err := t.exec.spaces.Discard(t.dir); err != nil {
		t.logger.Warn("workspace not removed", "err", err)
	}
}

// fail makes err the attempt's result.
func (t *attempt) fail(ctx context.Context, err error) {
	var known *failure.Error
	if !errors.As(err, &known) {
		known = &failure.Error{Cause: holdfast.CauseWorkspaceFailed, Transient: true, Err: err}
	}
	if failure.DiskFull(err) {
		known.Cause, known.Transient, known.Hint = holdfast.CauseDiskFull, true, failure.HintDisk
	}
	shown := &holdfast.Failure{
		Step: t.step, Summary: known.Err.Error(), Detail: known.Detail, Hint: known.Hint,
		Cause: known.Cause, Transient: known.Transient, Diagnostics: known.Diagnostics, Address: known.Address,
	}
	t.result.Status, t.result.Reason = holdfast.RunErrored, known.Cause
	if known.Killed || known.NotBegun {
		t.result.Status = holdfast.RunInterrupted
	}
	if ctx.Err() != nil {
		reason, detail := failure.StopReason(ctx)
		t.result.Status, t.result.Reason, t.result.Detail = failure.StopStatus(reason), reason, detail
		shown.Cause, shown.Transient = reason, reason == holdfast.ReasonLeaseLost || reason == holdfast.ReasonAgentKilled
		if reason == holdfast.ReasonTimeout {
			shown.Summary = fmt.Sprintf("%s: the deadline passed, after %s", t.step, t.lasted().Round(time.Second))
			shown.Hint = "raise runs.timeout in holdfast.yaml if runs need more time"
		}
	}
	if t.result.Applying && t.progress != nil {
		begun := t.progress.Addresses()
		if known.Killed || ctx.Err() != nil {
			shown.Unrecorded = begun
		} else if shown.Address == "" && len(begun) == 1 {
			shown.Address = begun[0] // engines do not name what they could not destroy
		}
		shown.Completed = t.progress.Completed()
		shown.Remaining = t.remaining()
	}
	t.result.Failure = t.clean(shown)
	t.result.Detail = t.redact.String(t.result.Detail)
	if t.result.Detail == "" {
		t.result.Detail = t.result.Failure.Summary
	}
	t.say("%s (%s)", shown.Summary, t.result.Reason)
}

// renderedRoot is the folder of a root module that is rendered, and stands in no
// repository.
const renderedRoot = "root/"

// inRepository is a file that an engine has named from its root module, as the
// repository calls it.
func (t *attempt) inRepository(file string) string {
	if file == "" || path.IsAbs(file) || strings.HasPrefix(file, ".terraform/") || strings.ContainsAny(file, "<>") {
		return file
	}
	whole := path.Join(t.a.Dir, file)
	if !strings.HasPrefix(whole, "../") && !strings.HasPrefix(whole, renderedRoot) {
		return whole
	}
	return file
}

// clean takes secrets and folders of this machine out of what people will read.
func (t *attempt) clean(f *holdfast.Failure) *holdfast.Failure {
	text := func(s string) string {
		for _, dir := range []string{t.root, t.bundle, t.work, t.dir} {
			if dir != "" {
				s = strings.ReplaceAll(s, t.seen(dir)+"/", "")
				s = strings.ReplaceAll(s, dir+"/", "")
			}
		}
		return t.redact.String(s)
	}
	f.Summary, f.Detail, f.Hint, f.Address = text(f.Summary), text(f.Detail), text(f.Hint), text(f.Address)
	for i := range f.Diagnostics {
		d := &f.Diagnostics[i]
		d.Summary, d.Detail, d.File, d.Address = text(d.Summary), text(d.Detail), text(d.File), text(d.Address)
		d.Snippet, d.File = text(d.Snippet), t.inRepository(d.File)
	}
	for _, list := range [][]string{f.Unrecorded, f.Completed, f.Remaining} {
		for i := range list {
			list[i] = text(list[i])
		}
	}
	return f
}

// unpackBundle makes the workspace and reads the root module in it.
func (t *attempt) unpackBundle(ctx context.Context) error {
	var err error
	if t.place, err = t.exec.spaces.Take(t.a); err != nil {
		return err
	}
	t.dir = t.place.Dir
	t.work, t.planFile = filepath.Join(t.dir, "work"), filepath.Join(t.dir, workspace.PlanName)
	t.bundle = filepath.Join(t.work, "bundle")
	if t.root, err = workspace.Inside(t.bundle, t.a.Dir); err != nil {
		return &failure.Error{Cause: holdfast.CauseBundleUnusable, Err: fmt.Errorf("root module: %w", err)}
	}
	if err := t.layOut(ctx); err != nil {
		return err
	}
	tool := cmp.Or(t.a.Engine.Name, t.a.PinName)
	if t.a.Exact {
		tool = t.a.PinName
	}
	t.readModule(tool)
	return t.chooseBackend()
}

// readModule reads the root module as code for an engine; empty: for the one that
// would be chosen for it.
func (t *attempt) readModule(tool string) {
	t.module = modulecode.Read(t.root, t.bundle, tool)
	t.redact.Add(t.module.Secrets...)
	for _, name := range t.module.Sensitive {
		t.redact.Add(modulecode.VariableSecrets(cmp.Or(t.a.Env[modulecode.VariablePrefix+name], t.exec.opts.Env[modulecode.VariablePrefix+name]))...)
	}
}

// config is the attempt's copy of the engines' configuration, empty if it has
// none of its own.
func (t *attempt) config() string {
	if t.exec.cli.data == nil {
		return ""
	}
	return filepath.Join(t.dir, "engine.rc")
}

// takeSecrets looks up the values of the root module's secret variables.
func (t *attempt) takeSecrets(ctx context.Context) (err error) {
	resolver := secretResolver{
		a: t.a, opts: secretOptions{Open: t.exec.opts.OpenSecrets, Timeout: t.exec.opts.SecretTimeout},
		env: t.exec.opts.Env, dir: t.dir, redact: t.redact, say: t.say,
	}
	t.secrets, err = resolver.take(ctx, t.root)
	return err
}

// chooseBackend makes the root module use Holdfast's own backend where it has
// none of its own, and an empty local state where there is no server to ask.
func (t *attempt) chooseBackend() error {
	if !t.a.OwnState {
		return nil
	}
	name, kind := "", "http"
	if addr, _, _ := t.session.StateAddress(); addr == "" {
		name, kind = "holdfast_backend_override.tf", "local"
	} else if t.module.Backend == "" {
		name = "holdfast_backend.tf"
	}
	if name == "" {
		return nil
	}
	t.module.Backend, t.module.BareBackend = kind, true
	t.backend = backendFile{name: name, code: fmt.Sprintf("terraform {\n  backend %q {}\n}\n", kind)}
	return t.writeBackend()
}

// env is the engine's whole environment.
func (t *attempt) env() map[string]string {
	env := maps.Clone(t.exec.opts.Env)
	maps.Copy(env, t.a.Env)
	for name, value := range t.secrets.Values {
		env[modulecode.VariablePrefix+name] = value
	}
	for _, name := range []string{"TF_DATA_DIR", "TF_CLI_ARGS", "TF_REATTACH_PROVIDERS", "TF_LOG_PATH"} {
		delete(env, name) // they would lead the engine away from what we prepared
	}
	env["TF_IN_AUTOMATION"], env["TF_INPUT"], env["CHECKPOINT_DISABLE"] = "1", "0", "1"
	if env["GOGC"] == "" && env["GOMEMLIMIT"] == "" {
		// An engine lives for moments, and a third of a small plan is the
		// collection of garbage that its end would have collected. This halves
		// that; its heap grows to three times what it uses instead of two.
		env["GOGC"] = "200"
	}
	if t.exec.cli.file != "" {
		env["TF_CLI_CONFIG_FILE"] = t.exec.cli.file
	} else if t.exec.mode() != sandbox.ModeNone {
		env["TF_CLI_CONFIG_FILE"] = os.DevNull // else the one of HOME, which engines can write
	}
	if config := t.config(); config != "" {
		env["TF_CLI_CONFIG_FILE"] = t.seen(config)
	}
	if t.a.OwnState {
		for _, name := range holdfast.HTTPBackendCredentials() {
			delete(env, name) // they are another backend's
		}
		if addr, user, password := t.stateAddress(); addr != "" {
			env["TF_HTTP_ADDRESS"], env["TF_HTTP_LOCK_ADDRESS"], env["TF_HTTP_UNLOCK_ADDRESS"] = addr, addr, addr
			env["TF_HTTP_USERNAME"], env["TF_HTTP_PASSWORD"] = user, password
		}
	}
	t.isolate(env)
	return env
}

// stateAddress is where the engine that is started now finds its state: only the
// one that applies, or pushes a state, can write it.
func (t *attempt) stateAddress() (addr, user, password string) {
	if w, ok := t.session.(StateWriter); ok && (t.step == stepApply || t.step == stepPush) {
		return w.WriteAddress()
	}
	return t.session.StateAddress()
}

// start runs the engine once. What it prints goes to the log, and stdout to out
// as well; machine output (quiet) does not go to the log. A failure is an
// *failure.Error.
func (t *attempt) start(ctx context.Context, out io.Writer, quiet bool, args ...string) error {
	said := journal.NewExcerpt(1 << 20)
	stdout, stderr := t.log.Stdout(), io.MultiWriter(t.log, said)
	switch {
	case quiet:
		stdout = out
	case out != nil:
		stdout = io.MultiWriter(t.log.Stdout(), out)
	}
	if err := t.give(ctx); err != nil {
		return err
	}
	env := t.env()
	err := t.sandboxed(ctx, sandbox.Command{
		Path: t.engine.Path, Dir: t.seen(t.root), Env: env, Args: t.withVariables(args), Mounts: t.mounts(env),
		Stdout: stdout, Stderr: stderr,
	})
	if err == nil {
		return nil
	}
	var exit *failure.ExitError
	if !errors.As(err, &exit) && ctx.Err() == nil {
		return &failure.Error{Cause: holdfast.CauseWorkspaceFailed, Transient: true, Err: fmt.Errorf("%s: %w", args[0], err)}
	}
	e := failure.OfEngine(args[0], said.String(), err)
	if ctx.Err() != nil {
		e.Killed = false // we asked for its end
	}
	e.Exit = exit
	if ctx.Err() == nil {
		e.LimitHit(exit)
	}
	return e
}

// exitCode returns the status with which the engine ended, -1 if it was
// killed.
func exitCode(err error) int {
	var e *failure.Error
	if errors.As(err, &e) && e.Exit != nil {
		return e.Exit.Code
	}
	return -1
}
