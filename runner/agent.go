package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/attempt"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/uplink"
)

// AttemptExecutor executes attempts; *Executor is one. It must be safe for
// concurrent use.
type AttemptExecutor interface {
	// Execute executes one attempt and returns how it ended. It returns soon
	// after ctx is done, with a *StopError as the cause.
	Execute(ctx context.Context, a protocol.Assignment, s attempt.Session) protocol.Result
	// WorkspaceDir returns the folder that an attempt is executed in. If it
	// still exists when the attempt's process is dead, a state that the engine
	// could not save is looked for in it.
	WorkspaceDir(ref holdfast.AttemptRef) string
}

// AgentOptions are what an Agent needs. All are required unless noted.
type AgentOptions struct {
	About  About
	Server Server
	Claims Claims // optional
	Stop   Stop   // optional

	// Dir keeps what is not delivered yet, and what the server refused. It must be used
	// by one agent at a time. It is made if it does not exist.
	Dir      string
	Executor AttemptExecutor

	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now; the wall clock only, durations are measured
}

// About is what an agent says of itself.
type About struct {
	ID string // unique among agents, and stable over restarts
	// Isolation is the mode of the executor, and Version that of the program, for the
	// server to show. Both are optional.
	Isolation string
	Version   string
}

// Server is where an agent's server is.
type Server struct {
	URL    string // unix:///path or https://host[:port][/path]; http to a loopback address only
	CAFile string // optional: PEM of the authorities to trust instead of the system's
	Token  string // the agent's credential; unless there is a Sign
	// Sign returns a credential that is valid for a while, from now on.
	Sign func() (string, error)
}

// Claims are which runs an agent claims.
type Claims struct {
	Slots int                // attempts at once; zero means 4
	Kinds []holdfast.RunKind // empty means all kinds of runs
}

// Stop is how an agent stops.
type Stop struct {
	// Grace is how long running attempts may continue once Run's context is done,
	// before their engines are interrupted. Zero means 10 min, less than zero
	// not at all.
	Grace time.Duration
	// DeliverWait is how long Run then continues to deliver outcomes to a server that
	// is unreachable; the rest waits on disk for the next Run. Zero means 15 s, less
	// than zero not at all.
	DeliverWait time.Duration
}

// Agent claims runs from a server, executes several at once, and delivers their
// outcomes, if need be after a restart.
type Agent struct {
	opts   AgentOptions
	client *uplink.Client
	kept   *uplink.Folder
	proxy  *uplink.StateEndpoint // while Run runs
	wakeup chan struct{}
	// process and folder are those of protocol.ClaimRequest.
	process, folder string
	presentEvery    time.Duration
	accepted        bool // by the server, once; used by the goroutine that claims
	turn            turn // of claiming

	mu          sync.Mutex
	sessions    map[string]*uplink.Session // by key: claimed and not yet delivered
	interrupted bool                       // Interrupt was called
	halting     bool                       // executions are interrupted as soon as they begin

	executing  sync.WaitGroup
	delivering sync.WaitGroup
}

// NewAgent returns an Agent, or an error that names what is missing or wrong.
func NewAgent(opts AgentOptions) (*Agent, error) {
	switch {
	case opts.About.ID == "":
		return nil, errors.New("runner: no agent id")
	case opts.Server.URL == "":
		return nil, errors.New("runner: no server")
	case opts.Server.Token == "" && opts.Server.Sign == nil:
		return nil, errors.New("runner: no token")
	case opts.Dir == "":
		return nil, errors.New("runner: no folder")
	case opts.Executor == nil:
		return nil, errors.New("runner: no executor")
	case opts.Claims.Slots < 0:
		return nil, fmt.Errorf("runner: %d slots", opts.Claims.Slots)
	}
	if err := protocol.CheckAgentID(opts.About.ID); err != nil {
		return nil, fmt.Errorf("runner: agent id %q %w", opts.About.ID, err)
	}
	if opts.Claims.Slots == 0 {
		opts.Claims.Slots = 4
	}
	if opts.Stop.Grace == 0 {
		opts.Stop.Grace = 10 * time.Minute
	}
	if opts.Stop.DeliverWait == 0 {
		opts.Stop.DeliverWait = 15 * time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	credential := uplink.Token(opts.Server.Token)
	if opts.Server.Sign != nil {
		credential = opts.Server.Sign
	}
	client, err := uplink.NewClient(opts.Server.URL, credential, opts.Server.CAFile)
	if err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	process := rand.Text()
	return &Agent{
		opts: opts, client: client,
		kept:   &uplink.Folder{Dir: opts.Dir, Process: process, Client: client, Logger: opts.Logger, Now: opts.Now},
		wakeup: make(chan struct{}), process: process, presentEvery: presentEvery,
		sessions: map[string]*uplink.Session{},
	}, nil
}

// Run claims and executes runs until ctx is done. Then it claims no more, lets running
// attempts continue for the grace, interrupts what is left, and delivers the outcomes;
// what the server does not accept in time stays in the folder for the next Run. It
// returns a holdfast.ErrLocked if another agent uses the folder, and a *RefusedError if
// the server refuses the agent. Run may be called once.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.kept.Make(); err != nil {
		return err
	}
	release, err := lockFolder(a.opts.Dir)
	if err != nil {
		return err
	}
	defer release()
	if a.folder, err = folderID(a.opts.Dir); err != nil {
		return err
	}
	defer a.showLife(ctx)()
	if a.proxy, err = uplink.NewStateEndpoint(a.opts.Logger); err != nil {
		return err
	}
	defer a.proxy.Close()

	// Deliveries outlive ctx; shutdown ends them.
	deliver, stopDelivering := context.WithCancel(context.WithoutCancel(ctx))
	defer stopDelivering()
	if err := a.recover(deliver); err != nil {
		return err
	}
	a.opts.Logger.InfoContext(ctx, "agent started", "agent", a.opts.About.ID)
	refused := a.claimAll(ctx, deliver)

	a.shutDown(stopDelivering)
	a.opts.Logger.InfoContext(ctx, "agent stopped", "agent", a.opts.About.ID)
	return refused
}

// Interrupt ends the grace: engines that still run are interrupted now. It does
// not wait.
func (a *Agent) Interrupt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.interrupted {
		a.interrupted = true
		close(a.wakeup)
	}
}

// shutDown brings running attempts to an end once nothing more is claimed.
func (a *Agent) shutDown(stopDelivering func()) {
	executed := done(&a.executing)
	select {
	case <-executed:
	case <-time.After(max(0, a.opts.Stop.Grace)):
	case <-a.wakeup:
	}
	a.mu.Lock()
	a.halting = true
	a.mu.Unlock()
	for _, s := range a.all() {
		s.Halt(agentStopped())
	}
	<-executed
	delivered := done(&a.delivering)
	select {
	case <-delivered:
	case <-time.After(max(0, a.opts.Stop.DeliverWait)):
		stopDelivering()
		<-delivered
	}
}

func agentStopped() *failure.StopError {
	return &failure.StopError{
		Reason: holdfast.ReasonAgentKilled,
		Detail: "the agent had to stop and could not wait longer",
	}
}

// done returns a channel that is closed when wg has been waited for.
func done(wg *sync.WaitGroup) <-chan struct{} {
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		wg.Wait()
	}()
	return ch
}

func (a *Agent) all() []*uplink.Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*uplink.Session, 0, len(a.sessions))
	for _, s := range a.sessions {
		all = append(all, s)
	}
	return all
}

// refs returns the attempts that the server believes to be here.
func (a *Agent) refs() []holdfast.AttemptRef {
	var refs []holdfast.AttemptRef
	for _, s := range a.all() {
		refs = append(refs, s.AttemptRef)
	}
	slices.SortFunc(refs, func(x, y holdfast.AttemptRef) int { return int(x.Fence - y.Fence) })
	return refs
}

// start executes an assignment in the background. free gives its slot back.
func (a *Agent) start(deliver context.Context, assignment protocol.Assignment, serverTime time.Time, free func()) {
	logger := a.opts.Logger.With("cluster", assignment.Cluster, "run", assignment.Run, "attempt", assignment.Attempt)
	s, err := a.newSession(uplink.Claimed{
		AttemptRef: assignment.AttemptRef, Token: assignment.Token, Kind: assignment.Kind,
		Cluster: assignment.Cluster, Lease: assignment.Lease,
		OwnState: assignment.OwnState, StateLocation: assignment.StateLocation,
	}, logger)
	if err != nil {
		logger.Error("attempt could not be begun", "err", err)
		a.delivering.Go(func() {
			defer free()
			a.decline(deliver, assignment, err)
		})
		return
	}
	// A deadline is turned into a duration at once, by the server's own clock:
	// from here on only time that passes counts.
	if serverTime.IsZero() {
		serverTime = a.opts.Now()
	}
	var left time.Duration
	if !assignment.Deadline.IsZero() {
		left = max(time.Millisecond, assignment.Deadline.Sub(serverTime))
	}
	logger.Info("run was claimed", "action", string(assignment.Kind))
	a.executing.Add(1)
	a.delivering.Go(func() {
		a.bring(deliver, s, func() (protocol.Result, bool) {
			defer a.executing.Done()
			defer free()
			return a.execute(deliver, assignment, s, left), true
		})
	})
}

// newSession registers an attempt.
func (a *Agent) newSession(c uplink.Claimed, logger *slog.Logger) (*uplink.Session, error) {
	key, err := uplink.KeyOf(c.AttemptRef)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[key] != nil {
		return nil, fmt.Errorf("attempt %s is already being executed", key)
	}
	s, err := a.kept.Open(c, logger)
	if err != nil {
		return nil, err
	}
	a.sessions[key] = s
	return s, nil
}

// execute runs the executor over an attempt and saves its outcome.
func (a *Agent) execute(ctx context.Context, assignment protocol.Assignment, s *uplink.Session, left time.Duration) protocol.Result {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.Executes(stop)
	a.mu.Lock()
	halting := a.halting
	a.mu.Unlock()
	if halting {
		s.Halt(agentStopped())
	}
	if left > 0 {
		timer := time.AfterFunc(left, func() {
			s.Halt(&failure.StopError{Reason: holdfast.ReasonTimeout, Detail: "the run's deadline passed"})
		})
		defer timer.Stop()
	}
	a.proxy.Admit(s)
	defer a.proxy.Dismiss(s)

	began := time.Now()
	result := a.guard(work, assignment, s)
	s.Executes(nil)
	result.Fence = s.Fence
	s.SaveResult(result)
	s.Logger.Info("attempt ended", "action", string(s.Kind), "reason", result.Reason,
		"status", string(result.Status), "duration", time.Since(began))
	return result
}

// guard turns a panic of the executor into a result.
func (a *Agent) guard(ctx context.Context, assignment protocol.Assignment, s *uplink.Session) (result protocol.Result) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		s.Logger.Error("attempt panicked", "err", fmt.Sprint(cause), "stack", string(debug.Stack()))
		result = protocol.Result{
			Status: holdfast.RunErrored, Reason: holdfast.CauseInternal, Applying: s.HasBegun(),
			Failure: &holdfast.Failure{
				Step: "prepare", Cause: holdfast.CauseInternal,
				Summary: "the agent failed with an internal error; its log has the details",
			},
		}
	}()
	return a.opts.Executor.Execute(ctx, assignment, s)
}

// bring delivers an attempt, and forgets it once the server has everything.
func (a *Agent) bring(ctx context.Context, s *uplink.Session, result func() (protocol.Result, bool)) {
	if s.Bring(ctx, result) {
		a.kept.Forget(s)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions, s.Name())
}

// decline reports an attempt that could not be begun, for example because the
// disk is full.
func (a *Agent) decline(ctx context.Context, assignment protocol.Assignment, cause error) {
	ref := assignment.AttemptRef
	if _, err := uplink.KeyOf(ref); err != nil {
		return // nothing that could be reported to the server
	}
	reason, hint := holdfast.CauseWorkspace, "look at the agent's folder and its log"
	if failure.DiskFull(cause) {
		reason, hint = holdfast.CauseDiskFull, failure.HintDisk
	}
	_, _ = uplink.Retry(ctx, nil, func() (struct{}, error) {
		return struct{}{}, a.client.Result(ctx, ref, assignment.Token, protocol.Result{
			Fence: ref.Fence, Status: holdfast.RunErrored, Reason: reason,
			Failure: &holdfast.Failure{
				Step: "prepare", Cause: reason, Transient: true,
				Summary: "the agent could not start the attempt", Detail: cause.Error(), Hint: hint,
			},
		})
	})
}
