// The state endpoint, and what engines ask of it.

package uplink

import (
	"bytes"
	"context" //nolint:gosec // what the engines' http backend sends
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

const (
	maxLockInfo  = 1 << 20          // bytes of a LOCK or UNLOCK body
	maxLockID    = 256              // bytes of the id in it; engines' have 36
	stateWait    = time.Minute      // how long GET and LOCK wait for the server
	stateHoldFor = 10 * time.Second // how long a POST waits for an answer before it is held

	statePath    = "/state"
	parcelState  = "state"
	parcelUnlock = "unlock"
)

// StateEndpoint is the agent's state endpoint, on loopback: the engine's http backend
// speaks to it, and it to the server. Each attempt has its own credential that reaches
// its own state only. It is safe for concurrent use.
type StateEndpoint struct {
	listener net.Listener
	server   *http.Server
	served   sync.WaitGroup
	logger   *slog.Logger

	mu     sync.Mutex
	relays map[string]admitted
}

// admitted is an attempt with a credential.
type admitted struct {
	*stateRelay
	turns *turns
}

// NewStateEndpoint listens on a free port of the loopback interface.
func NewStateEndpoint(logger *slog.Logger) (*StateEndpoint, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for engines: %w", err)
	}
	p := &StateEndpoint{listener: listener, logger: logger, relays: map[string]admitted{}}
	p.server = &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		ConnContext:       withCaller,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	p.server.SetKeepAlivesEnabled(false) // a connection that is known is one request
	p.served.Go(func() { _ = p.server.Serve(&door{Listener: listener}) })
	return p, nil
}

// Close ends the endpoint. Engines must have ended before.
func (p *StateEndpoint) Close() {
	_ = p.server.Close()
	p.served.Wait()
}

// Admit gives s an address and a credential, until dismiss.
func (p *StateEndpoint) Admit(session *Session) {
	s := session.state
	s.endpoint = "http://" + p.listener.Addr().String() + statePath
	s.password = rand.Text()
	if s.Kind.Writes() {
		s.writing = rand.Text()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relays[s.key] = admitted{s, newTurns()}
}

// Dismiss ends what Admit has given.
func (p *StateEndpoint) Dismiss(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.relays, s.key)
}

// ServeHTTP answers an engine.
func (p *StateEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == tokenPath {
		p.serveToken(w, r)
		return
	}
	user, password, _ := r.BasicAuth()
	p.mu.Lock()
	s, ok := p.relays[user]
	p.mu.Unlock()
	writes := ok && same(password, s.writing)
	if !ok || !writes && !same(password, s.password) {
		turnAway(w, "unknown credential", http.StatusUnauthorized)
		return
	}
	known(r)
	if !s.turns.take(r.Context()) {
		turnAway(w, "too many requests at once", http.StatusServiceUnavailable)
		return
	}
	defer s.turns.give()
	if r.URL.Path != statePath {
		turnAway(w, "no such thing", http.StatusNotFound)
		return
	}
	switch r.Method {
	case http.MethodGet:
		s.getState(w, r)
	case http.MethodPost:
		if !writes {
			turnAway(w, "only an apply writes state, and with its own credential", http.StatusForbidden)
			return
		}
		s.postState(w, r)
	case "LOCK":
		s.lockState(w, r)
	case "UNLOCK":
		s.unlockState(w, r)
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// same compares a password with one of ours, which is not valid if it is empty.
func same(password, ours string) bool {
	return ours != "" && subtle.ConstantTimeCompare([]byte(password), []byte(ours)) == 1
}

func passwordOf(r *http.Request) string {
	_, password, _ := r.BasicAuth()
	return password
}

// lockIDIn returns the id in the body of a LOCK or UNLOCK, empty if there is none.
func lockIDIn(body []byte) string {
	var info struct{ ID string }
	_ = json.Unmarshal(body, &info)
	return info.ID
}

// knownState is a state as the engine was given it or gave it. Under the lock
// nobody else can make a newer one.
type knownState struct {
	body []byte // empty: there is none yet
}

// getState answers the newest state, wherever it is. While the server is out
// of reach that is what was seen last under the engine's lock: an engine reads
// the state once more before it writes the first one, at the end of an apply.
func (s *stateRelay) getState(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	locked, known := s.locked, s.known
	s.mu.Unlock()
	if known != nil && s.held.held(parcelState) != nil {
		known.write(w)
		return
	}
	wait := stateWait
	if known != nil {
		wait = stateHoldFor
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	fresh, err := Retry(ctx, trouble(s.logger, "state was not read yet"), func() (*knownState, error) {
		fresh, err := s.fetchState(ctx)
		if err != nil && known != nil && !Final(err) {
			err = &LocalError{err} // there is no need to wait
		}
		return fresh, err
	})
	var answer *AnswerError
	switch {
	case err == nil && locked:
		s.mu.Lock()
		if s.known == known { // otherwise the engine has written meanwhile
			s.known = fresh
		}
		s.mu.Unlock()
		fresh.write(w)
	case err == nil:
		fresh.write(w)
	case known != nil && (!errors.As(err, &answer) || !answer.Ours || answer.Status >= 500):
		known.write(w)
	default:
		s.answer(w, call{method: http.MethodGet}, err)
	}
}

func (s *stateRelay) fetchState(ctx context.Context) (*knownState, error) {
	res, err := s.client.do(ctx, s.stateCall(call{method: http.MethodGet}))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, workspace.MaxState))
	if err != nil {
		return nil, unreachable(call{method: http.MethodGet, path: "/agent/v1/state"}, err)
	}
	if sum := res.Header.Get("Content-MD5"); sum != "" && sum != md5Of(body) {
		return nil, fmt.Errorf("read state: %w: it does not match its Content-MD5", holdfast.ErrUnavailable)
	}
	s.show(body)
	return &knownState{body: body}, nil
}

func (k *knownState) write(w http.ResponseWriter) {
	if len(k.body) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-MD5", md5Of(k.body))
	_, _ = w.Write(k.body)
}

// setLocked notes that the engine has got or given back the state's lock.
func (s *stateRelay) setLocked(locked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked, s.known = locked, nil
	if !locked && s.lockID != "" {
		s.freed, s.lockID, s.lockBy = s.lockID, "", ""
	}
}

// setKnown notes what the engine has written; nil: nobody knows.
func (s *stateRelay) setKnown(k *knownState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = k
}

// lockState takes the state's lock for the engine. It waits for what is held:
// the unlock of the engine before may be among it.
func (s *stateRelay) lockState(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLockInfo))
	if err != nil {
		http.Error(w, "read body: "+err.Error(), http.StatusBadRequest)
		return
	}
	if len(lockIDIn(body)) > maxLockID {
		http.Error(w, "the id of the lock is too long", http.StatusBadRequest)
		return
	}
	if parcel := s.held.last(); parcel != nil {
		wait, cancel := context.WithTimeout(r.Context(), stateWait)
		defer cancel()
		select {
		case <-parcel.done:
		case <-wait.Done():
			http.Error(w, "the server is out of reach", http.StatusServiceUnavailable)
			return
		}
	}
	s.asks(lockIDIn(body))
	if s.forward(w, r, call{method: "LOCK", kind: "application/json", body: bytes.NewReader(body), size: int64(len(body))}) {
		s.setLocked(true)
		s.mu.Lock()
		s.lockID, s.lockBy = lockIDIn(body), passwordOf(r)
		s.mu.Unlock()
	}
}

// forward sends c to the server, for a while again if it is out of reach, and
// answers what it answers. It reports whether that is success.
func (s *stateRelay) forward(w http.ResponseWriter, r *http.Request, c call) bool {
	ctx, cancel := context.WithTimeout(r.Context(), stateWait)
	defer cancel()
	body, _ := c.body.(*bytes.Reader)
	res, err := Retry(ctx, trouble(s.logger, "state request was tried again"), func() (*http.Response, error) {
		if body != nil {
			_, _ = body.Seek(0, io.SeekStart)
		}
		return s.client.do(ctx, s.stateCall(c))
	})
	if err != nil {
		return s.answer(w, c, err)
	}
	_ = res.Body.Close()
	w.WriteHeader(http.StatusOK)
	return true
}

// answer passes an error of the server on to the engine, and reports whether
// it is one in name only.
func (s *stateRelay) answer(w http.ResponseWriter, c call, err error) (ok bool) {
	var answer *AnswerError
	if !Final(err) || !errors.As(err, &answer) {
		http.Error(w, "the server is out of reach", http.StatusServiceUnavailable)
		return false
	}
	if c.method == "LOCK" && sameLock(c.body, answer.text) {
		w.WriteHeader(http.StatusOK) // granted before; that answer was lost
		return true
	}
	if c.method == http.MethodGet && answer.Status == http.StatusNotFound {
		// To an engine this means that there is no state yet: it would build
		// everything again. The server says that in another way.
		http.Error(w, answer.text, http.StatusBadGateway)
		return false
	}
	if strings.HasPrefix(answer.text, "{") { // a LockInfo
		answer.text = s.hideOwn(answer.text)
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(answer.Status)
	_, _ = io.WriteString(w, answer.text)
	return false
}

// sameLock reports whether the lock that is held is the one asked for.
func sameLock(asked io.Reader, held string) bool {
	var a, b struct{ ID string }
	reader, ok := asked.(*bytes.Reader)
	if !ok {
		return false
	}
	_, _ = reader.Seek(0, io.SeekStart)
	return json.NewDecoder(reader).Decode(&a) == nil &&
		json.Unmarshal([]byte(held), &b) == nil && a.ID != "" && a.ID == b.ID
}

// stateCall addresses c to the attempt's state.
func (s *stateRelay) stateCall(c call) call {
	parts := strings.Split(s.StateLocation, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	c.path = "/agent/v1/state/" + strings.Join(parts, "/")
	c.token = s.Token
	return c
}

// postState takes a new state. It is on disk before anything else happens;
// then the server gets it, now or, if it is out of reach, later. A refusal of
// the server reaches the engine, and the state stays on disk.
func (s *stateRelay) postState(w http.ResponseWriter, r *http.Request) {
	if !s.Kind.Writes() {
		http.Error(w, "a "+string(s.Kind)+" must not write state", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, workspace.MaxState))
	if err != nil {
		http.Error(w, "read body: "+err.Error(), http.StatusBadRequest)
		return
	}
	if sum := r.Header.Get("Content-MD5"); sum != "" && sum != md5Of(body) {
		http.Error(w, "body does not match its Content-MD5", http.StatusBadRequest)
		return
	}
	s.show(body)
	op := stateOp{Query: r.URL.RawQuery, body: body}
	parcel, err := s.held.put(parcelState, op.reader())
	if err != nil {
		s.logger.Error("state could not be kept on disk", "err", err)
		s.postAtOnce(w, r, op)
		return
	}
	s.setKnown(&knownState{body: body})
	s.settle(w, call{method: http.MethodPost}, parcel)
}

// postAtOnce is for a disk that takes nothing more: the server gets the state
// now, or the engine learns that it did not.
func (s *stateRelay) postAtOnce(w http.ResponseWriter, r *http.Request, op stateOp) {
	if s.held.last() != nil { // never before an older one
		http.Error(w, "state could not be kept on disk", http.StatusInternalServerError)
		return
	}
	if s.forward(w, r, op.call(http.MethodPost)) {
		s.setKnown(&knownState{body: op.body})
	}
}

// unlockState releases the lock, after all states that were written under it. It
// is for the phase that holds it: what a plan has left knows no other credential.
func (s *stateRelay) unlockState(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLockInfo))
	if err != nil {
		http.Error(w, "read body: "+err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	held, own, freed := s.lockID, same(passwordOf(r), s.lockBy), s.freed
	s.mu.Unlock()
	switch id := lockIDIn(body); {
	case id != "" && held == "" && id == freed: // again: the answer was lost
		w.WriteHeader(http.StatusOK)
		return
	case id == "" || id != held || !own:
		http.Error(w, "that is not the lock of this phase", http.StatusConflict)
		return
	}
	op := stateOp{Query: r.URL.RawQuery, body: body}
	parcel, err := s.held.put(parcelUnlock, op.reader())
	if err != nil {
		s.logger.Error("unlock could not be kept on disk", "err", err)
		s.forward(w, r, op.call("UNLOCK"))
		return
	}
	s.settle(w, call{method: "UNLOCK"}, parcel)
}

// settle answers once it is known what becomes of a parcel for now.
func (s *stateRelay) settle(w http.ResponseWriter, c call, p *parcel) {
	timer := time.NewTimer(stateHoldFor)
	defer timer.Stop()
	select {
	case <-p.settled:
	case <-timer.C:
	}
	select {
	case <-p.done:
		if p.err != nil {
			s.answer(w, c, p.err)
			return
		}
	default:
		s.logger.Warn("state is kept on disk until the server is back", "action", c.method)
	}
	w.WriteHeader(http.StatusOK)
}
