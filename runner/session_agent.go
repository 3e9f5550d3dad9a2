package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// Files and folders of an attempt's folder. They are all that a successor
// needs to bring an attempt of a killed agent to its end.
const (
	attemptFile  = "attempt.json"
	applyingFile = "applying" // exists once the engine's apply may have begun
	resultFile   = "result.json"
	artefactsDir = "artefacts"
	statesDir    = "states"
	logDir       = "log"
	scratchDir   = "scratch"
)

// claimed is what is written down of an assignment: enough to deliver what
// comes of it, and none of the credentials that the engine gets.
type claimed struct {
	holdfast.AttemptRef
	Token         string           `json:"token"`
	Kind          holdfast.RunKind `json:"kind"`
	Cluster       string           `json:"cluster"`
	Lease         time.Duration    `json:"lease"`
	OwnState      bool             `json:"ownState"`
	StateLocation string           `json:"stateLocation"`
}

// agentSession is the Session of an attempt that an agent executes: what it
// takes in is on disk first and with the server as soon as may be. It beats,
// too, and cancels the execution when the server or the lease wants it.
type agentSession struct {
	claimed
	key     string // names the folder, and the user at the state endpoint
	dir     string
	process string // of the agent
	client  *client
	logger  *slog.Logger
	now     func() time.Time

	log       *logSpool
	artefacts *outbox
	states    *outbox
	endpoint  string // of the agent's state endpoint
	password  string // for it, without the right to write
	writing   string // another one, with it; empty if the attempt must not write

	mu         sync.Mutex
	step       string
	answered   time.Time // when the last beat that was answered was sent
	answeredAt time.Time // the same by the wall clock
	mayApply   bool      // as that answer says
	begun      bool      // MayApply has said true

	inherited bool // the result was saved by a predecessor, which may have delivered it

	fenced  bool
	ending  bool                    // the result is on its way: to be fenced off is what comes of it
	refused bool                    // the server did not want something: it goes to quarantine
	stop    context.CancelCauseFunc // of the execution; nil if there is none
	stopped *failure.StopError
	locked  bool            // the engine holds the state's lock, as far as the server has said
	lockID  string          // of that lock; empty if it does not hold it
	lockBy  string          // the password of the phase that holds it
	freed   string          // the id of the last lock that was given back
	asked   map[string]bool // ids of locks that the engine has asked for
	known   *knownState     // the newest state seen under that lock; nil: none was
	beaten  time.Time       // when the last beat was sent
	kick    chan struct{}   // of one: beat now
	saw     func([]byte)    // nil: nobody wants to know the states
}

var safeID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// attemptKey returns the name of an attempt, which is safe as that of a file.
func attemptKey(ref holdfast.AttemptRef) (string, error) {
	if !safeID.MatchString(ref.Run) || ref.Attempt < 0 {
		return "", fmt.Errorf("attempt %d of run %q: not a valid name", ref.Attempt, ref.Run)
	}
	return fmt.Sprintf("%s-%d", ref.Run, ref.Attempt), nil
}

// open makes the attempt's folders, or takes up those that a predecessor left.
func (s *agentSession) open() error {
	if s.Lease <= 0 {
		s.Lease = time.Minute
	}
	s.kick = make(chan struct{}, 1)
	if err := os.MkdirAll(filepath.Join(s.dir, scratchDir), 0o700); err != nil {
		return err
	}
	writes := s.Kind.Writes()
	s.log = &logSpool{dir: filepath.Join(s.dir, logDir)}
	s.artefacts = &outbox{
		dir: filepath.Join(s.dir, artefactsDir), durable: writes,
		send: s.sendArtefact, refused: s.refuse, trouble: s.trouble("artefact was not delivered yet"),
	}
	s.states = &outbox{
		dir: filepath.Join(s.dir, statesDir), durable: true,
		send: s.sendState, refused: s.refuse, trouble: s.trouble("state was not delivered yet"),
	}
	if err := errors.Join(s.log.open(), s.artefacts.open(), s.states.open()); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(s.dir, attemptFile)); err == nil {
		return nil
	}
	data, err := json.Marshal(s.claimed)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(s.dir, attemptFile), data, writes); err != nil || !writes {
		return err
	}
	return syncDir(filepath.Dir(s.dir))
}

// Bundle returns the root module's tar, once it is here as a whole.
func (s *agentSession) Bundle(ctx context.Context, digest holdfast.Digest) (io.ReadCloser, error) {
	r, err := s.download(ctx, "/agent/v1/bundles/"+url.PathEscape(string(digest)))
	if err != nil {
		return nil, fmt.Errorf("fetch bundle %s: %w", digest.Short(), err)
	}
	return r, nil
}

// StoredArtefact returns an artefact of a run of the same cluster.
func (s *agentSession) StoredArtefact(ctx context.Context, run, name string) (io.ReadCloser, error) {
	r, err := s.download(ctx, "/agent/v1/runs/"+url.PathEscape(run)+"/artefacts/"+url.PathEscape(name))
	if err != nil {
		return nil, fmt.Errorf("fetch artefact %s of run %s: %w", name, run, err)
	}
	return r, nil
}

func (s *agentSession) download(ctx context.Context, path string) (io.ReadCloser, error) {
	return retry(ctx, s.trouble("download was tried again"), func() (io.ReadCloser, error) {
		return s.client.download(ctx, path, s.Token, filepath.Join(s.dir, scratchDir))
	})
}

// PutArtefact keeps data on disk and returns; it is delivered in the
// background, before the result. What an attempt leaves behind is wanted even
// if it was stopped, so that the context does not matter.
func (s *agentSession) PutArtefact(_ context.Context, name string, data io.Reader) error {
	if !safeID.MatchString(name) {
		return fmt.Errorf("put artefact %q: not a valid name", name)
	}
	limited := &limitedReader{Reader: data, left: holdfast.ArtefactLimit(name)}
	if _, err := s.artefacts.put(name, limited); err != nil {
		return fmt.Errorf("put artefact: %w", err)
	}
	return nil
}

// Log returns the attempt's log.
func (s *agentSession) Log() io.Writer { return s.log }

// Step notes the step and lets the server know soon.
func (s *agentSession) Step(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.step != name {
		s.step = name
		s.beatSoon()
	}
}

// StateAddress returns where the engine finds its state.
func (s *agentSession) StateAddress() (addr, user, password string) {
	return s.endpoint, s.key, s.password
}

// WriteAddress returns where the engine that applies finds its state.
func (s *agentSession) WriteAddress() (addr, user, password string) {
	return s.endpoint, s.key, s.writing
}

// WatchState makes saw see the states on their way, in both directions.
func (s *agentSession) WatchState(saw func(state []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saw = saw
}

// show lets who watches see a state.
func (s *agentSession) show(state []byte) {
	s.mu.Lock()
	saw := s.saw
	s.mu.Unlock()
	if saw != nil && len(state) > 0 {
		saw(state)
	}
}

// MayApply reports whether the apply may begin: the lease is good and the
// server agrees. It is written down before it is said.
func (s *agentSession) MayApply() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		return s.stopped == nil
	}
	if !s.Kind.Writes() || s.fenced || s.stopped != nil {
		return false
	}
	if !s.mayApply || s.lostLease() || s.timeJumped() {
		s.beatSoon()
		return false
	}
	if err := writeFile(filepath.Join(s.dir, applyingFile), nil, true); err != nil {
		s.logger.Error("apply was not begun: its journal cannot be written", "err", err)
		return false
	}
	s.begun = true
	return true
}

// lostLease reports whether another may hold the lease. Callers hold mu.
func (s *agentSession) lostLease() bool { return time.Since(s.answered) >= s.Lease*3/4 }

// timeJumped reports whether wall clock and monotonic clock disagree about the
// time since the last answered beat: the machine may have been suspended, which
// the latter does not see. It is not a reason to stop, but to ask the server before
// an apply begins. Callers hold mu.
func (s *agentSession) timeJumped() bool {
	wall := s.now().Round(0).Sub(s.answeredAt.Round(0))
	return (wall - time.Since(s.answered)).Abs() >= s.Lease/4
}

// beatSoon asks for a beat now unless one has just been sent. Callers hold mu.
func (s *agentSession) beatSoon() {
	if time.Since(s.beaten) < s.Lease/60 {
		return
	}
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// halt cancels the execution, if there is one; the first cause stays.
func (s *agentSession) halt(cause *failure.StopError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop == nil || s.stopped != nil {
		return
	}
	s.stopped = cause
	s.stop(cause)
	s.logger.Warn("attempt was told to stop", "reason", cause.Reason)
}

// beat sends heartbeats until ctx is done or the server fences the attempt
// off.
func (s *agentSession) beat(ctx context.Context) {
	every := s.Lease / 6
	for {
		s.mu.Lock()
		sent, sentAt := time.Now(), s.now()
		s.beaten = sent
		limit := 2 * every
		if left := s.Lease*3/4 - time.Since(s.answered); left > 0 {
			limit = min(limit, left)
		}
		step := s.step
		s.mu.Unlock()

		try, cancel := context.WithTimeout(ctx, limit)
		reply, err := s.client.heartbeat(try, s.AttemptRef, s.Token, holdfast.Heartbeat{Step: step, Process: s.process})
		cancel()
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, holdfast.ErrFenced) {
			s.fence()
			return
		}
		wait := s.takeIn(sent, sentAt, reply, err)
		select {
		case <-time.After(wait):
		case <-s.kick:
		case <-ctx.Done():
			return
		}
	}
}

// takeIn acts on what came of a beat and returns when to send the next one.
func (s *agentSession) takeIn(sent, sentAt time.Time, reply holdfast.HeartbeatReply, err error) time.Duration {
	every := s.Lease / 6
	s.mu.Lock()
	if err == nil {
		s.answered, s.answeredAt, s.mayApply = sent, sentAt, reply.MayApply
		s.mu.Unlock()
		if reply.Cancel != "" {
			s.halt(&failure.StopError{Reason: holdfast.ReasonCanceled, Detail: string(reply.Cancel)})
		}
		return every
	}
	lost := s.lostLease()
	left := s.Lease*3/4 - time.Since(s.answered)
	s.mu.Unlock()

	if !lost {
		s.logger.Debug("heartbeat was not answered", "err", err)
	}
	if lost && !s.Kind.Writes() {
		s.halt(&failure.StopError{Reason: holdfast.ReasonLeaseLost, Detail: "the server was out of reach for too long"})
	}
	if !lost {
		every = min(every, left)
	}
	return max(min(every, 2*time.Second), 10*time.Millisecond)
}

func (s *agentSession) fence() {
	s.mu.Lock()
	ending := s.ending
	if !ending {
		s.fenced, s.refused = true, true
	}
	s.mu.Unlock()
	if ending {
		return
	}
	s.logger.Warn("attempt was fenced off")
	s.halt(&failure.StopError{Reason: holdfast.ReasonLeaseLost, Detail: "the server has given the attempt up"})
}

// refuse notes that the server did not want something of this attempt.
func (s *agentSession) refuse(name string, err error) {
	if name == parcelUnlock { // it was no longer locked, or not by this engine
		s.logger.Warn("unlock was refused", "err", err)
		return
	}
	s.mu.Lock()
	s.refused = true
	s.mu.Unlock()
	if errors.Is(err, holdfast.ErrFenced) && name != parcelState {
		s.logger.Warn("delivery came too late", "object", name, "err", err)
		return
	}
	s.logger.Error("delivery was refused", "object", name, "err", err)
}

// trouble returns a function that logs the first of several errors.
func (s *agentSession) trouble(message string) func(error) {
	var mu sync.Mutex
	var last time.Time
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if !last.IsZero() && time.Since(last) < time.Minute {
			return
		}
		last = time.Now()
		s.logger.Warn(message, "err", err) //nolint:sloglint // every caller gives a constant
	}
}

func (s *agentSession) sendArtefact(ctx context.Context, name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return &localError{err}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return &localError{err}
	}
	return s.client.putArtefact(ctx, s.AttemptRef, s.Token, name, file, info.Size())
}

// deliver brings all that the attempt leaves behind to the server: states in
// their order, artefacts, the log, and the result last, since the attempt's
// credential ends with it. It returns false if ctx ended first: the rest stays
// on disk.
func (s *agentSession) deliver(ctx context.Context, result func() (holdfast.Result, bool)) bool {
	var workers sync.WaitGroup
	workers.Go(func() { s.states.run(ctx) })
	workers.Go(func() { s.artefacts.run(ctx) })
	workers.Go(func() {
		err := s.log.run(ctx, s.trouble("log was not delivered yet"), func(ctx context.Context, offset int64, data []byte) (int64, error) {
			return s.client.log(ctx, s.AttemptRef, s.Token, offset, data)
		})
		if err != nil {
			s.refuse("log", err)
		}
	})
	outcome, ok := result()
	s.states.close()
	s.artefacts.close()
	s.log.close()
	workers.Wait()
	if !ok || ctx.Err() != nil {
		return false
	}
	return s.finish(ctx, outcome)
}

// finish delivers the result. It returns false if ctx ended first.
func (s *agentSession) finish(ctx context.Context, outcome holdfast.Result) bool {
	s.mu.Lock()
	s.ending = true
	fenced, taken := s.fenced, s.inherited
	s.mu.Unlock()
	_, err := retry(ctx, s.trouble("result was not delivered yet"), func() (struct{}, error) {
		err := s.client.result(ctx, s.AttemptRef, s.Token, outcome)
		// Without an answer it may have been taken: the next try is fenced off then.
		taken = taken || err != nil && !final(err)
		return struct{}{}, err
	})
	switch {
	case err == nil:
	case !final(err):
		return false
	case errors.Is(err, holdfast.ErrFenced) && taken && !fenced:
		s.logger.Info("result was taken before, or is no longer wanted", "err", err)
	default:
		s.refuse("result", err)
	}
	return true
}

// saveResult makes the outcome outlive this process.
func (s *agentSession) saveResult(result holdfast.Result) {
	data, err := json.Marshal(result)
	if err == nil {
		err = writeFile(filepath.Join(s.dir, resultFile), data, s.Kind.Writes())
	}
	if err != nil {
		s.logger.Error("result was kept in memory only", "err", err)
	}
}

// loadResult returns the outcome that a predecessor saved, false if it died
// before.
func (s *agentSession) loadResult() (holdfast.Result, bool) {
	var result holdfast.Result
	data, err := os.ReadFile(filepath.Join(s.dir, resultFile))
	if err != nil || json.NewDecoder(bytes.NewReader(data)).Decode(&result) != nil {
		return holdfast.Result{}, false
	}
	return result, true
}

// limitedReader fails with a failure.ErrTooLarge where its source has more than is left.
type limitedReader struct {
	io.Reader
	left int64
}

func (r *limitedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, fmt.Errorf("more bytes than are taken of it: %w", failure.ErrTooLarge)
	}
	return n, err
}
