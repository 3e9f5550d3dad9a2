// The state of one attempt, between its engine and the server.

package uplink

import (
	"log/slog"
	"sync"
)

// stateRelay sits between an attempt's engine and the server, for the state: it
// forwards, holds on disk what the server does not take now, and knows the newest state
// and whose the lock is. It is safe for concurrent use.
type stateRelay struct {
	Claimed
	key    string // the user at the state endpoint
	client *Client
	logger *slog.Logger
	held   *outbox // POST and UNLOCK on their way

	endpoint string // of the agent's state endpoint
	password string // for it, without the right to write
	writing  string // another one, with it; empty if the attempt must not write

	mu     sync.Mutex
	locked bool            // the engine holds the state's lock, as far as the server has said
	lockID string          // of that lock; empty if it does not hold it
	lockBy string          // the password of the phase that holds it
	freed  string          // the id of the last lock that was given back
	asked  map[string]bool // ids of locks that the engine has asked for
	known  *knownState     // the newest state seen under that lock; nil: none was
	saw    func([]byte)    // nil: nobody wants to know the states
	tokens *tokenDoor      // for the engine; nil: it gets none
}

// watch makes saw see the states on their way, in both directions.
func (s *stateRelay) watch(saw func(state []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saw = saw
}

// show lets who watches see a state.
func (s *stateRelay) show(state []byte) {
	s.mu.Lock()
	saw := s.saw
	s.mu.Unlock()
	if saw != nil && len(state) > 0 {
		saw(state)
	}
}
