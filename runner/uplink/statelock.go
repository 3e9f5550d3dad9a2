// Ids of locks, which an engine's programs must not learn.

package uplink

import (
	"encoding/json"
	"strings"
)

// ownLockID stands for the id of a lock in what a run is shown of its own lock.
const ownLockID = "held-by-this-run"

// asks notes the id that a LOCK asks for, before the server can grant it.
func (s *stateRelay) asks(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = map[string]bool{}
	}
	if len(s.asked) < maxAsked {
		s.asked[id] = true
	}
}

// maxAsked bounds the ids of one attempt: an engine asks for some, again and
// again while it waits. Beyond it every lock's id is hidden.
const maxAsked = 10_000

// hideOwn returns what the server says of a lock, without the id if it is one
// that this attempt has asked for: whoever knows it can release the lock, and
// what an engine executes has the engine's credential. Ids of others' locks are
// for people, who need them.
func (s *stateRelay) hideOwn(info string) string {
	id := lockIDIn([]byte(info))
	s.mu.Lock()
	own := id != "" && (s.asked[id] || len(s.asked) >= maxAsked)
	s.mu.Unlock()
	if !own {
		return info
	}
	var fields map[string]any
	if json.Unmarshal([]byte(info), &fields) != nil {
		return "{}"
	}
	for name := range fields {
		if strings.EqualFold(name, "id") {
			fields[name] = ownLockID
		}
	}
	hidden, err := json.Marshal(fields)
	if err != nil {
		return "{}"
	}
	return string(hidden)
}
