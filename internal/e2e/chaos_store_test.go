package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
)

// outage is how a store of somebody else's goes away for a while.
type outage struct {
	gate   sync.Mutex // guards the fields below
	away   bool
	hangs  chan struct{} // the store answers when that is closed; nil: at once
	missed int           // calls that came while it was unavailable or did not answer
}

// setAway makes the store answer 503, or serve again.
func (o *outage) setAway(away bool) {
	o.gate.Lock()
	defer o.gate.Unlock()
	o.away = away
}

// fail makes the store answer 503, or not at all, until end is called.
func (o *outage) fail(hangs bool) (end func()) {
	opened := make(chan struct{})
	o.gate.Lock()
	defer o.gate.Unlock()
	if o.away = !hangs; hangs {
		o.hangs = opened
	}
	return func() {
		o.gate.Lock()
		defer o.gate.Unlock()
		o.away, o.hangs = false, nil
		close(opened)
	}
}

// missedCalls is how many calls came while the store was unavailable or did not answer.
func (o *outage) missedCalls() int {
	o.gate.Lock()
	defer o.gate.Unlock()
	return o.missed
}

// admit lets a call wait for as long as the store hangs, and answers it if the store is
// unavailable. One whose client gives up meanwhile has no effect: its body has to be
// read by then, or that would not be noticed.
func (o *outage) admit(w http.ResponseWriter, r *http.Request) bool {
	o.gate.Lock()
	opened, away := o.hangs, o.away
	if opened != nil || away {
		o.missed++
	}
	o.gate.Unlock()
	if away {
		http.Error(w, "the store is away", http.StatusServiceUnavailable)
		return false
	}
	if opened == nil {
		return true
	}
	select {
	case <-opened:
		return true
	case <-r.Context().Done():
		return false
	}
}

// stateStore is somebody's HTTP state store, which serves Terraform's backend
// "http" with locks: http://store/NAME. It can go away.
type stateStore struct {
	*httptest.Server
	outage

	mu     sync.Mutex // guards the fields below
	states map[string][]byte
	locks  map[string][]byte
	wrong  []string      // writes that no engine may make
	stalls chan struct{} // what the store hangs on after the next lock that it grants; nil: nothing
}

func newStateStore(w *world) *stateStore {
	w.t.Helper()
	s := &stateStore{states: make(map[string][]byte), locks: make(map[string][]byte)}
	s.Server = httptest.NewServer(s)
	w.t.Cleanup(s.Close)
	return s
}

// backend is the line of a document's spec that puts a cluster's state here.
func (s *stateStore) backend(name string) string {
	address := s.URL + "/" + name
	return "state: {type: http, address: " + strconv.Quote(address) + ", lock_address: " + strconv.Quote(address) +
		", unlock_address: " + strconv.Quote(address) + ", retry_max: 0}"
}

// faults are the writes that lost something: a serial that did not rise, another
// lineage, a write past somebody's lock.
func (s *stateStore) faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

func (s *stateStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if !s.admit(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/")
	switch held := s.locks[name]; {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case r.Method == http.MethodGet && s.states[name] == nil:
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet:
		_, _ = w.Write(s.states[name])
	case r.Method == "LOCK" && held != nil:
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(held)
	case r.Method == "LOCK":
		s.locks[name] = body
		s.stall()
	case r.Method == "UNLOCK" && len(body) > 0 && lockID(held) != lockID(body):
		w.WriteHeader(http.StatusConflict)
	case r.Method == "UNLOCK":
		delete(s.locks, name)
	case r.Method == http.MethodPost && lockID(held) != r.URL.Query().Get("ID"):
		s.wrong = append(s.wrong, name+": written without the lock")
		w.WriteHeader(http.StatusLocked)
	case r.Method == http.MethodPost:
		s.judge(name, body)
		s.states[name] = body
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *stateStore) judge(name string, next []byte) {
	type head struct {
		Serial  int64
		Lineage string
	}
	var was, is head
	_ = json.Unmarshal(s.states[name], &was)
	if err := json.Unmarshal(next, &is); err != nil {
		s.wrong = append(s.wrong, name+": no state was written")
	} else if s.states[name] != nil && (is.Lineage != was.Lineage || is.Serial <= was.Serial) {
		s.wrong = append(s.wrong, name+": serial "+strconv.FormatInt(was.Serial, 10)+" was followed by "+strconv.FormatInt(is.Serial, 10))
	}
}

// state is what was saved last.
func (s *stateStore) state(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.states[name])
}

// heldBy is the ID of the lock on a state; empty: it is free.
func (s *stateStore) heldBy(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return lockID(s.locks[name])
}

func lockID(lock []byte) string {
	var info struct{ ID string }
	_ = json.Unmarshal(lock, &info)
	return info.ID
}

// stallWhenLocked makes the store answer no call after the next lock that it grants, until
// end is called: whoever has got that holds it meanwhile.
func (s *stateStore) stallWhenLocked() (end func()) {
	opened := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalls = opened
	return func() {
		s.gate.Lock()
		defer s.gate.Unlock()
		s.hangs = nil
		close(opened)
	}
}

// stall is called with mu held.
func (s *stateStore) stall() {
	if s.stalls == nil {
		return
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	s.hangs, s.stalls = s.stalls, nil
}

// hold has somebody else lock a state; release is their end.
func (s *stateStore) hold(name, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks[name] = []byte(`{"ID":` + strconv.Quote(id) + `,"Who":"ana@laptop","Operation":"OperationTypeApply"}`)
}

func (s *stateStore) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.locks, name)
}
