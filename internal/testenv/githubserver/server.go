// Package githubserver is a fake of GitHub for tests: its REST API in the
// official shapes, kept in memory, and its signed webhook deliveries. It knows
// nothing of Git but what ServeGit gives it: whoever uses it says which commits a
// push or a merge made.
package githubserver

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"
)

// The credentials that the fake knows from the start.
const (
	// Token is a personal access token of the user TokenLogin, valid for every
	// repository.
	Token      = "ghp_0123456789abcdefghijABCDEFGHIJ456789"
	TokenLogin = "holdfast-robot"

	AppID          = 4711
	AppSlug        = "holdfast"
	AppLogin       = AppSlug + "[bot]" // who writes with an installation's token
	InstallationID = 815
)

// Server is the fake. It is safe for concurrent use.
type Server struct {
	// URL is the base of the REST API, with a slash at its end. The same API
	// is served under URL + "api/v3/", as GitHub Enterprise Server has it.
	URL string

	t testing.TB

	mu        sync.Mutex
	now       func() time.Time
	repos     map[string]*Repo // by full name in lower case
	nextID    int64
	calls     map[string]int
	free      map[string]int // answers 304, which cost nothing
	faults    []*fault
	failed    int // calls that were given one of them
	before    []moment
	latency   time.Duration
	limit     int
	remaining int
	reset     time.Time
	key       *rsa.PrivateKey
	tokens    map[string]time.Time // installation tokens and when they expire
	tokenTTL  time.Duration
	issued    int

	permissions   map[string]string // of all tokens
	moved         map[string]int64  // names that repositories had → their ids
	writeLimit    int
	writeWindow   time.Duration
	retryAfter    time.Duration
	writes        []time.Time // that were taken within the window
	writing       int         // under way
	mostWrites    int
	refusedWrites int
}

// New starts a fake that stops when the test ends.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		t:        t,
		now:      time.Now,
		repos:    make(map[string]*Repo),
		nextID:   492700400,
		calls:    make(map[string]int),
		free:     make(map[string]int),
		limit:    5000,
		tokens:   make(map[string]time.Time),
		tokenTTL: time.Hour,

		permissions: granted(), moved: make(map[string]int64),
		writeLimit: writeLimit, writeWindow: writeWindow, retryAfter: writeWindow,
	}
	s.remaining, s.reset = s.limit, s.now().Add(time.Hour)
	api := s.routes()
	mux := http.NewServeMux()
	mux.Handle("/api/v3/", http.StripPrefix("/api/v3", api))
	mux.Handle("/api/graphql", http.StripPrefix("/api", api))
	mux.Handle("/", api)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.URL = server.URL + "/"
	return s
}

// SetNow replaces the server's clock, by which it stamps what it keeps.
func (s *Server) SetNow(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// SetLatency delays every answer of the API by d.
func (s *Server) SetLatency(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = d
}

// SetQuota sets how many calls are left until reset. At zero the API refuses.
func (s *Server) SetQuota(limit, remaining int, reset time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.remaining, s.reset = limit, remaining, reset
}

// Calls returns how often each route was called, by method and pattern, such
// as "POST /repos/{owner}/{repo}/statuses/{sha}".
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// CallCount returns how many calls reached the API. Calls that were answered
// with 304 are counted too: see FreeCount.
func (s *Server) CallCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sum(s.calls)
}

// FreeCount returns how many calls were answered with 304 Not Modified.
func (s *Server) FreeCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sum(s.free)
}

// ResetCalls starts counting anew.
func (s *Server) ResetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.calls)
	clear(s.free)
}

func sum(counts map[string]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// AppKey returns the private key of the App AppID in PEM.
func (s *Server) AppKey() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == nil {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			s.t.Fatalf("generate the App's key: %v", err)
		}
		s.key = key
	}
	return pemOf(s.key)
}

// SetTokenTTL sets how long the installation tokens live that are issued from
// now on. The default is an hour.
func (s *Server) SetTokenTTL(ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokenTTL = ttl
}

// RevokeTokens makes all installation tokens invalid at once.
func (s *Server) RevokeTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// TokensIssued returns how many installation tokens were issued.
func (s *Server) TokensIssued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issued
}

// Repos returns the full names of all repositories, sorted.
func (s *Server) Repos() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.repos))
	for _, r := range s.repos {
		names = append(names, r.fullName)
	}
	sort.Strings(names)
	return names
}

// Repo returns the repository with that full name, which is created with the
// default branch main if there is none.
func (s *Server) Repo(fullName string) *Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.ToLower(fullName)
	if r, ok := s.repos[key]; ok {
		return r
	}
	if owner, name, ok := strings.Cut(fullName, "/"); !ok || owner == "" || name == "" {
		s.t.Fatalf("%q is not owner/name", fullName)
	}
	r := &Repo{
		s: s, fullName: fullName, defaultBranch: "main", id: s.id(),
		pulls:    make(map[int]*pull),
		people:   make(map[string]string),
		known:    make(map[string]bool),
		statuses: make(map[string][]Status), templates: make(map[string]map[string]any),
	}
	s.repos[key] = r
	return r
}

// id returns a new id; s.mu is held.
func (s *Server) id() int64 {
	s.nextID++
	return s.nextID
}

// stamp returns the server's time in GitHub's resolution; s.mu is held.
func (s *Server) stamp() time.Time { return s.now().UTC().Truncate(time.Second) }

func (s *Server) stampNow() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stamp()
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone: nothing to do
}

// writeError answers as GitHub does.
func writeError(w http.ResponseWriter, status int, message string, errors ...any) {
	body := map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest", "status": http.StatusText(status)}
	if len(errors) > 0 {
		body["errors"] = errors
	}
	writeJSON(w, status, body)
}
