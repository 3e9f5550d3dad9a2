package objectserver

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
)

// Shared starts stores that several tests use, each in its own buckets. The zero value is
// ready. It is safe for concurrent use.
type Shared struct {
	mu      sync.Mutex
	servers map[string]*Server // by kind; guarded
	lives   []*life            // guarded
}

// Start returns the store of a kind, one of Starts. The test must not stop it.
func (s *Shared) Start(t testing.TB, kind string) *Server {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers[kind] == nil {
		if s.servers == nil {
			s.servers = make(map[string]*Server)
		}
		l := &life{TB: t}
		s.lives = append(s.lives, l)
		s.servers[kind] = Starts[kind](l)
	}
	one := *s.servers[kind]
	one.t = t
	return &one
}

// Stop ends all stores and removes what they hold. TestMain calls it.
func (s *Shared) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all error
	for _, l := range s.lives {
		all = errors.Join(all, l.end())
	}
	return all
}

// life is longer than that of the test which starts a store.
type life struct {
	testing.TB
	folders []string
	ends    []func()
}

func (l *life) Cleanup(end func()) { l.ends = append(l.ends, end) }

func (l *life) TempDir() string {
	dir, err := os.MkdirTemp("", strings.ReplaceAll(l.Name(), "/", "-"))
	if err != nil {
		l.Fatal(err)
	}
	l.folders = append(l.folders, dir)
	return dir
}

func (l *life) end() error {
	for i := len(l.ends) - 1; i >= 0; i-- {
		l.ends[i]()
	}
	var all error
	for _, dir := range l.folders {
		all = errors.Join(all, os.RemoveAll(dir))
	}
	return all
}
