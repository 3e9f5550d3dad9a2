// One attempt, on its way to the server.

package uplink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// Files and folders of an attempt's folder. They are all that a successor needs to
// finish an attempt of a killed agent.
const (
	attemptFile  = "attempt.json"
	applyingFile = "applying" // exists once the engine's apply may have begun
	progressFile = "progress" // what that apply has begun and completed
	resultFile   = "result.json"
	artefactsDir = "artefacts"
	statesDir    = "states"
	logDir       = "log"
	scratchDir   = "scratch"
)

// Claimed is what is written down of an assignment: enough to deliver its outcome, and
// none of the credentials that the engine gets.
type Claimed struct {
	holdfast.AttemptRef
	Token         string           `json:"token"`
	Kind          holdfast.RunKind `json:"kind"`
	Cluster       string           `json:"cluster"`
	Lease         time.Duration    `json:"lease"`
	OwnState      bool             `json:"ownState"`
	StateLocation string           `json:"stateLocation"`
}

// Session is the Session of an attempt that an agent executes: what it
// takes in is on disk first and with the server as soon as may be.
type Session struct {
	Claimed
	key    string // names the folder, and the user at the state endpoint
	dir    string
	disk   Disk
	client *Client
	Logger *slog.Logger

	lease     *lease
	state     *stateRelay
	log       *logSpool
	artefacts *outbox
	progress  *progress

	unkept    error       // why the last MayApply has said false, if that was the disk
	inherited bool        // the result was saved by a predecessor, which may have delivered it
	refused   atomic.Bool // the server did not want something: it goes to quarantine
}

// KeyOf returns the name of an attempt, which is safe as that of a file.
func KeyOf(ref holdfast.AttemptRef) (string, error) {
	if !workspace.SafeName(ref.Run) || ref.Attempt < 0 {
		return "", fmt.Errorf("attempt %d of run %q: not a valid name", ref.Attempt, ref.Run)
	}
	return fmt.Sprintf("%s-%d", ref.Run, ref.Attempt), nil
}

// open makes the attempt's folders, or takes up those that a predecessor left.
func (s *Session) open(process string, now func() time.Time) error {
	if s.Lease <= 0 {
		s.Lease = time.Minute
	}
	if err := os.MkdirAll(filepath.Join(s.dir, scratchDir), 0o700); err != nil {
		return err
	}
	s.lease = &lease{
		Claimed: s.Claimed, dir: s.dir, disk: s.disk, process: process, client: s.client, logger: s.Logger, now: now,
		kick: make(chan struct{}, 1), answered: time.Now(), answeredAt: now(),
	}
	s.log = &logSpool{dir: filepath.Join(s.dir, logDir)}
	s.progress = &progress{path: filepath.Join(s.dir, progressFile), logger: s.Logger}
	s.artefacts = &outbox{
		dir: filepath.Join(s.dir, artefactsDir), disk: s.disk,
		send: s.sendArtefact, refused: s.refuse, trouble: trouble(s.Logger, "artefact was not delivered yet"),
	}
	s.state = &stateRelay{Claimed: s.Claimed, key: s.key, client: s.client, logger: s.Logger}
	s.state.held = &outbox{
		// The server lets a lock go with its attempt, whether it is given back or not.
		dir: filepath.Join(s.dir, statesDir), disk: s.disk, lasting: true, brief: parcelUnlock,
		send: s.state.sendState, refused: s.refuse, trouble: trouble(s.Logger, "state was not delivered yet"),
	}
	if err := errors.Join(s.log.open(), s.artefacts.open(), s.state.held.open()); err != nil {
		return err
	}
	return s.writeClaimed()
}

// writeClaimed writes down what was claimed, unless a predecessor has. For an apply it
// is on disk before anything is done: a server whose agent knows nothing of an apply has
// to take it for begun, and waits for a person. With it a successor can say that the
// apply has not begun, and it is tried again.
func (s *Session) writeClaimed() error {
	if _, err := os.Stat(filepath.Join(s.dir, attemptFile)); err == nil {
		return nil
	}
	data, err := json.Marshal(s.Claimed)
	if err != nil {
		return err
	}
	disk := s.lastingDisk()
	if err := WriteFile(filepath.Join(s.dir, attemptFile), data, disk); err != nil || disk == nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(s.dir))
}

// lastingDisk is where files of an attempt that can write survive a power cut; nil of
// another one, which is made again.
func (s *Session) lastingDisk() Disk {
	if s.Kind.Writes() {
		return s.disk
	}
	return nil
}

// Name returns the attempt's key, which names its folder.
func (s *Session) Name() string { return s.key }

// Halt cancels the execution, if there is one; the first cause stays.
func (s *Session) Halt(cause *failure.StopError) { s.lease.halt(cause) }

// Executes notes how the execution is canceled; nil: there is none.
func (s *Session) Executes(stop context.CancelCauseFunc) { s.lease.executes(stop) }

// Answers returns once every lock could be had, which is never if something in
// here waits for itself.
func (s *Session) Answers() {
	for _, mu := range []*sync.Mutex{&s.lease.mu, &s.state.mu} {
		mu.Lock()
		mu.Unlock() //nolint:staticcheck // to have had it is all that matters
	}
}

// HasBegun reports whether the engine's apply may have begun.
func (s *Session) HasBegun() bool { return s.lease.hasBegun() }

// Bundle returns the root module's tar, once it is here as a whole.
func (s *Session) Bundle(ctx context.Context, digest holdfast.Digest) (io.ReadCloser, error) {
	r, err := s.download(ctx, "/agent/v1/bundles/"+url.PathEscape(string(digest)))
	if err != nil {
		return nil, fmt.Errorf("fetch bundle %s: %w", digest.Short(), err)
	}
	return r, nil
}

// StoredArtefact returns an artefact of a run of the same cluster.
func (s *Session) StoredArtefact(ctx context.Context, run, name string) (io.ReadCloser, error) {
	r, err := s.download(ctx, "/agent/v1/runs/"+url.PathEscape(run)+"/artefacts/"+url.PathEscape(name))
	if err != nil {
		return nil, fmt.Errorf("fetch artefact %s of run %s: %w", name, run, err)
	}
	return r, nil
}

// downloadPatience is how long a download is tried again that the server cannot give,
// although it answers: what is damaged in its store stays so. With a 503 the server says that
// it, or its store, is unavailable.
const downloadPatience = 10 * time.Minute

func (s *Session) download(ctx context.Context, path string) (io.ReadCloser, error) {
	var since time.Time // when the first of the answers in a row came that were in vain
	return Retry(ctx, trouble(s.Logger, "download was tried again"), func() (io.ReadCloser, error) {
		r, err := s.client.download(ctx, path, s.Token, filepath.Join(s.dir, scratchDir))
		var answer *AnswerError
		switch inVain := errors.As(err, &answer) && answer.Ours && !Final(err) && answer.Status != http.StatusServiceUnavailable; {
		case !inVain:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > downloadPatience:
			err = &LocalError{fmt.Errorf("%w: for %s: %s", holdfast.ErrUnavailable, downloadPatience, err.Error())}
		}
		return r, err
	})
}

// PutArtefact keeps data in the attempt's folder and returns; it is delivered in the
// background, before the result. What an attempt leaves behind is wanted even
// if it was stopped, so that the context does not matter. It waits for the disk only once
// the apply has begun: what comes before is made again, and is on disk before MayApply
// says true, or a result is saved.
func (s *Session) PutArtefact(_ context.Context, name string, data io.Reader) error {
	if !workspace.SafeName(name) {
		return fmt.Errorf("put artefact %q: not a valid name", name)
	}
	limited := &limitedReader{Reader: data, left: protocol.ArtefactLimit(name)}
	if _, err := s.artefacts.put(name, limited); err != nil {
		return fmt.Errorf("put artefact: %w", err)
	}
	return nil
}

// Log returns the attempt's log.
func (s *Session) Log() io.Writer { return s.log }

// Step notes the step and lets the server know soon.
func (s *Session) Step(name string) { s.lease.noteStep(name) }

// MayApply reports whether the apply may begin: the lease is good and the
// server agrees. It is written down before it is said. What the attempt has left so far,
// such as the plan that is applied, is on disk before that: a run that has begun is not
// made again, and all of it is to be seen. What names the attempt has been there since it
// was claimed.
func (s *Session) MayApply() bool {
	s.unkept = nil
	if !s.lease.good() {
		return false
	}
	if err := s.artefacts.makeLasting(); err != nil {
		s.unkept = fmt.Errorf("what its plan has left: %w", err)
		return false
	}
	may, err := s.lease.mayBegin() // the disk may have taken long
	if err != nil {
		s.unkept = fmt.Errorf("its journal: %w", err)
	}
	if may {
		s.progress.begin()
	}
	return may
}

// Unkept is why the last MayApply has said false although the server agrees: the disk.
func (s *Session) Unkept() error { return s.unkept }

// NoteProgress keeps what the engine says its apply begins and has completed.
func (s *Session) NoteProgress(line string) { s.progress.note(line) }

// EndProgress says that all of it was noted.
func (s *Session) EndProgress() { s.progress.note(progressEnd) }

// StateAddress returns where the engine finds its state.
func (s *Session) StateAddress() (addr, user, password string) {
	return s.state.endpoint, s.key, s.state.password
}

// WriteAddress returns where the engine that applies finds its state.
func (s *Session) WriteAddress() (addr, user, password string) {
	return s.state.endpoint, s.key, s.state.writing
}

// WatchState makes saw see the states on their way, in both directions.
func (s *Session) WatchState(saw func(state []byte)) { s.state.watch(saw) }

// refuse notes that the server did not want something of this attempt.
func (s *Session) refuse(name string, err error) {
	if name == parcelUnlock { // it was no longer locked, or not by this engine
		s.Logger.Warn("unlock was refused", "err", err)
		return
	}
	s.refused.Store(true)
	if errors.Is(err, holdfast.ErrFenced) && name != parcelState {
		s.Logger.Warn("delivery came too late", "object", name, "err", err)
		return
	}
	s.Logger.Error("delivery was refused", "object", name, "err", err)
}

// trouble returns a function that logs the first of several errors.
func trouble(logger *slog.Logger, message string) func(error) {
	var mu sync.Mutex
	var last time.Time
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if !last.IsZero() && time.Since(last) < time.Minute {
			return
		}
		last = time.Now()
		logger.Warn(message, "err", err) //nolint:sloglint // every caller gives a constant
	}
}

func (s *Session) sendArtefact(ctx context.Context, name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return &LocalError{err}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return &LocalError{err}
	}
	return s.client.putArtefact(ctx, s.AttemptRef, s.Token, name, file, info.Size())
}

// Bring sees the attempt through: it beats, waits for the result and delivers all. It
// returns false if ctx ended first: the rest stays on disk.
func (s *Session) Bring(ctx context.Context, result func() (protocol.Result, bool)) bool {
	beating, stopBeating := context.WithCancel(ctx)
	var beats sync.WaitGroup
	beats.Go(func() { s.lease.beat(beating) })
	delivered := s.deliver(ctx, result)
	stopBeating()
	beats.Wait()
	return delivered
}

// deliver brings all that the attempt leaves behind to the server: states in
// their order, artefacts, the log, and the result last, since the attempt's
// credential ends with it. It returns false if ctx ended first: the rest stays
// on disk.
func (s *Session) deliver(ctx context.Context, result func() (protocol.Result, bool)) bool {
	var workers sync.WaitGroup
	workers.Go(func() { s.state.held.run(ctx) })
	workers.Go(func() { s.artefacts.run(ctx) })
	workers.Go(func() {
		err := s.log.run(ctx, trouble(s.Logger, "log was not delivered yet"), func(ctx context.Context, offset int64, data []byte) (int64, error) {
			return s.client.log(ctx, s.AttemptRef, s.Token, offset, data)
		})
		if err != nil {
			s.refuse("log", err)
		}
	})
	outcome, ok := result()
	s.state.held.close()
	s.artefacts.close()
	s.log.close()
	s.progress.close()
	workers.Wait()
	if !ok || ctx.Err() != nil || !s.sendMask(ctx) {
		return false
	}
	return s.finish(ctx, outcome)
}

// finish delivers the result. It returns false if ctx ended first.
func (s *Session) finish(ctx context.Context, outcome protocol.Result) bool {
	fenced, taken := s.lease.end(), s.inherited
	_, err := Retry(ctx, trouble(s.Logger, "result was not delivered yet"), func() (struct{}, error) {
		err := s.client.Result(ctx, s.AttemptRef, s.Token, outcome)
		// Without an answer it may have been taken: the next try is fenced off then.
		taken = taken || err != nil && !Final(err)
		return struct{}{}, err
	})
	switch {
	case err == nil:
	case !Final(err):
		return false
	case errors.Is(err, holdfast.ErrFenced) && taken && !fenced:
		s.Logger.Info("result was taken before, or is no longer wanted", "err", err)
	default:
		s.refuse("result", err)
	}
	return true
}

// SaveResult makes the outcome outlive this process, and a power cut if the attempt could
// write. What it refers to is on disk before: a result without its plan is an error, and
// without a result the run is tried again.
func (s *Session) SaveResult(result protocol.Result) {
	data, err := json.Marshal(result)
	disk := s.lastingDisk()
	if err == nil && disk != nil {
		err = s.artefacts.makeLasting()
	}
	if err == nil {
		err = WriteFile(filepath.Join(s.dir, resultFile), data, disk)
	}
	if err != nil {
		s.Logger.Error("result was kept in memory only", "err", err)
	}
}

// loadResult returns the outcome that a predecessor saved, false if it died
// before.
func (s *Session) loadResult() (protocol.Result, bool) {
	var result protocol.Result
	data, err := os.ReadFile(filepath.Join(s.dir, resultFile))
	if err != nil || json.NewDecoder(bytes.NewReader(data)).Decode(&result) != nil {
		return protocol.Result{}, false
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
		return 0, fmt.Errorf("more bytes than are accepted: %w", failure.ErrTooLarge)
	}
	return n, err
}
