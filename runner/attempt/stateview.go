// What an attempt sees of the state on its way.

package attempt

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// stateView is what an attempt knows of the state.
type stateView struct {
	redactor *redact.Redactor // learns the secrets in it
	watched  bool             // the session shows us the states of its own backend
	sealed   atomic.Bool      // one of them could not be read: the engine encrypts its states
	newest   newestState
	pulled   []byte        // the state before the plan, where we do not see it on its way
	compared plan.Compared // what the plan file and the state differ in
}

// newestState is the state of Holdfast's own backend as it was seen last. It is
// safe for concurrent use.
type newestState struct {
	mu   sync.Mutex
	data []byte // nil: none was seen
}

func (n *newestState) note(state []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.data = bytes.Clone(state)
}

func (n *newestState) get() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.data
}

// learn adds the secrets of a state that the engine is about to see, or has made.
func (t *stateView) learn(state []byte) {
	secrets, ok := redact.OfState(state)
	if !ok {
		t.sealed.Store(true)
	}
	t.redactor.Add(secrets...)
	t.newest.note(state)
}
