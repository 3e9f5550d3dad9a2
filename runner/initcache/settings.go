// What init has made of backends, in memory.

package initcache

import (
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// Bounds of what is remembered of backends.
const (
	maxBackends = 64       // backends; those that were not used for longest are forgotten
	MaxSettings = 64 << 10 // bytes of one
)

// Settings remembers settings of backends, none of which has a secret in it. The zero
// value is empty. It is safe for concurrent use.
type Settings struct {
	mu   sync.Mutex
	kept map[holdfast.Digest][]byte
	used []holdfast.Digest // the names, the one that was used last at the end
}

// Get returns what is remembered by that name, nil if nothing is.
func (s *Settings) Get(name holdfast.Digest) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	settings := s.kept[name]
	if settings != nil {
		s.touch(name)
	}
	return settings
}

// Keep remembers settings, which are not to be changed.
func (s *Settings) Keep(name holdfast.Digest, settings []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[holdfast.Digest][]byte{}
	}
	s.kept[name] = settings
	s.touch(name)
	if len(s.used) > maxBackends {
		delete(s.kept, s.used[0])
		s.used = slices.Delete(s.used, 0, 1)
	}
}

// Forget forgets what is remembered by that name, if anything is.
func (s *Settings) Forget(name holdfast.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, name)
	s.used = slices.DeleteFunc(s.used, func(used holdfast.Digest) bool { return used == name })
}

// touch makes a name the one that was used last. Callers hold mu.
func (s *Settings) touch(name holdfast.Digest) {
	s.used = append(slices.DeleteFunc(s.used, func(used holdfast.Digest) bool { return used == name }), name)
}
