package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/idtoken"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/logbook"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/recorded"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
	"github.com/holdfast-dev/holdfast/runner/secrets"
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

// attempt is the execution of one attempt, used once and by one goroutine. Its steps
// (initializing, planning, applying, stateJob) work on it one after the other.
type attempt struct {
	exec    *Executor
	a       protocol.Assignment
	session Session
	logger  *slog.Logger
	result  protocol.Result
	*logbook.Book
	*space
	*stateView

	secrets  secrets.Found
	tokens   *idtoken.Keeper // nil: the run has no identities
	unit     unit            // zero: the root module is not one
	input    plan.Input
	document plandoc.Document // what the plan would do
	digest   holdfast.Digest  // of document
	counts   holdfast.Counts
	progress *journal.Progress   // of the apply; nil: none has begun
	left     []holdfast.Resource // what the state held after a failed apply
	saved    recorded.Objects    // what an apply that failed has saved, as far as that is known
	keep     bool                // something in the workspace must not be lost

	otherModules []string // how the modules differ from those of what was applied, if it should have those
}

func newAttempt(e *Executor, a protocol.Assignment, s Session) *attempt {
	_, _, password := s.StateAddress()
	secrets := slices.Concat([]string{password}, engine.ProxySecrets(e.opts.Engines.Env), engine.ProxySecrets(a.Env))
	if _, secret, ok := protocol.ParseRunToken(a.Token); ok {
		secrets = append(secrets, secret) // the run's id is a part of the token, and of names of folders
	} else {
		secrets = append(secrets, a.Token)
	}
	if w, ok := s.(StateWriter); ok {
		_, _, password := w.WriteAddress()
		secrets = append(secrets, password)
	}
	for _, name := range a.Secrets {
		secrets = append(secrets, a.Env[name])
	}
	for _, name := range e.opts.Engines.Secret {
		secrets = append(secrets, e.opts.Engines.Env[name])
	}
	t := &attempt{
		exec: e, a: a, session: s,
		logger: e.opts.Logger.With("cluster", a.Cluster, "run", a.Run, "attempt", a.Attempt),
		result: protocol.Result{Fence: a.Fence},
		Book: logbook.New(s, logbook.Options{
			Secrets: secrets, WorkDir: e.opts.WorkDir, Limit: e.opts.Limits.Log, Now: e.opts.Now,
		}),
		space: &space{exec: e, a: a, session: s},
	}
	t.stateView = &stateView{redactor: t.Redact}
	if w, ok := s.(StateWatcher); ok && a.OwnState {
		t.watched = true
		w.WatchState(t.learn)
	}
	if a.State.Migrates() {
		t.beginMigration(*a.State.Move)
	}
	return t
}

// run does the attempt's steps in order. An error is why it ended early.
func (t *attempt) run(ctx context.Context) (err error) {
	defer func() {
		if err != nil { // whatever it was: the next attempt asks init
			t.exec.settings.Forget(t.settingsName)
		}
	}()
	ctx = modulecode.Remembering(ctx)
	t.Begin(stepPrepare)
	if err := t.unpackBundle(ctx); err != nil {
		return err
	}
	if err := t.takeIdentities(ctx); err != nil {
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
	t.Begin(stepInit)
	if err := (&initializing{attempt: t}).init(ctx); err != nil {
		return err
	}
	if t.a.State != nil {
		return (&stateJob{t}).putRight(ctx, t.a.State)
	}
	p := &planning{t}
	if err := p.noteState(ctx); err != nil {
		return err
	}
	if err := p.checkWriter(t.pulled); err != nil {
		return err
	}
	if err := p.makePlan(ctx); err != nil {
		return err
	}
	if err := p.checkWriter(t.newest.get()); err != nil { // which the plan has read
		return err
	}
	if t.counts.Zero() {
		t.result.Status = holdfast.RunNoChanges
		if t.a.Kind.Writes() {
			(&applying{t}).keepUnchanged(ctx)
		}
		return nil
	}
	if err := p.checkModules(); err != nil {
		return err
	}
	if !t.a.Kind.Writes() {
		t.result.Status = holdfast.RunPlanned
		if again := recorded.CreatedAgain(t.document, t.a.AssignedResume, t.Redact.String); len(again) > 0 {
			t.result.Reason, t.result.Detail = holdfast.ReasonMayExist, t.Redact.String(recorded.MayExist(again))
		}
		return nil
	}
	return (&applying{t}).applyReviewed(ctx)
}

// env is the engine's whole environment.
func (t *attempt) env() map[string]string {
	env := maps.Clone(t.exec.opts.Engines.Env)
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
	if t.exec.cli.File != "" {
		env["TF_CLI_CONFIG_FILE"] = t.exec.cli.File
	} else if t.exec.mode() != sandbox.ModeNone {
		env["TF_CLI_CONFIG_FILE"] = os.DevNull // otherwise the one of HOME, which engines can write
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
	if w, ok := t.session.(StateWriter); ok && (t.Step() == stepApply || t.Step() == stepPush) {
		return w.WriteAddress()
	}
	return t.session.StateAddress()
}

// start runs the engine once. What it prints goes to the log, and stdout to out
// as well; machine output (quiet) does not go to the log. A failure is an
// *failure.Error.
func (t *attempt) start(ctx context.Context, out io.Writer, quiet bool, args ...string) error {
	said := journal.NewExcerpt(1 << 20)
	stdout, stderr := t.Log.Stdout(), io.MultiWriter(t.Log, said)
	switch {
	case quiet: // it prints a document for us, and not for people
		stdout = journal.NewDocument(out)
	case out != nil:
		stdout = io.MultiWriter(t.Log.Stdout(), out)
	}
	if err := t.give(ctx); err != nil {
		return err
	}
	env := t.env()
	err := t.sandboxed(ctx, t.identify(sandbox.Command{
		Path: t.engine.Path, Dir: t.seen(t.root), Env: env, Args: t.withVariables(args), Mounts: t.mounts(env),
		Stdout: stdout, Stderr: stderr,
	}))
	if err == nil {
		return nil
	}
	var exit *failure.ExitError
	if !errors.As(err, &exit) && ctx.Err() == nil {
		return &failure.Error{Cause: holdfast.CauseWorkspaceFailed, Transient: true, Err: fmt.Errorf("%s: %w", args[0], err)}
	}
	e := failure.OfEngine(args[0], said.String(), err)
	if ctx.Err() != nil && e.Killed { // we asked for its end, and it did not come in time
		e.Killed, e.Hint = false, ""
		if t.Step() == stepApply {
			e.Hint = hintForced
		}
	}
	e.Exit = exit
	if ctx.Err() == nil {
		e.LimitHit(exit)
	}
	return e
}

// hintForced is what to do after an engine that did not end when it was asked to.
const hintForced = "it was interrupted, did not end in time, and was killed: resources that it was creating may exist without being in the state; " +
	"look for that, and import it or remove it, before it is created again"

// exitCode returns the status with which the engine ended, -1 if it was
// killed.
func exitCode(err error) int {
	var e *failure.Error
	if errors.As(err, &e) && e.Exit != nil {
		return e.Exit.Code
	}
	return -1
}
