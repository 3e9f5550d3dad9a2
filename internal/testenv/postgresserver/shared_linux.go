package postgresserver

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// Shared is the server that all tests of a process have databases on: to start one takes
// longer than most of them do.
var shared struct {
	sync.Mutex
	server *Server
}

// Role is who owns the databases of New: not a superuser.
const Role = "holdfast"

// Main runs tests and ends the server that they have shared. It is what TestMain exits with.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if s := shared.server; s != nil {
		s.Stop()
		if err := s.clear(); err != nil {
			fmt.Fprintln(os.Stderr, "clean up after PostgreSQL:", err)
		}
	}
	return code
}

// sharedServer starts the server, if nobody has.
func sharedServer(t testing.TB) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a server")
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		shared.server = StartGuarded(t, false)
	}
	return shared.server
}

// StartGuarded is Start of a server that asks for a password, on which New makes databases;
// bound: it ends with its test.
func StartGuarded(t testing.TB, bound bool) *Server {
	t.Helper()
	programs := installed()
	if programs == "" && os.Getenv("CI") == "true" {
		t.Fatal("PostgreSQL is not installed")
	} else if programs == "" {
		t.Skip("PostgreSQL is not installed")
	}
	s := &Server{t: t, programs: programs, password: rand.Text(), settings: []string{
		"-c", "max_connections=400", "-c", "autovacuum=off", "-c", "full_page_writes=off",
	}}
	if bound {
		t.Cleanup(s.end)
	}
	s.start("--auth=scram-sha-256")
	if _, err := s.Query("CREATE ROLE " + Role + " LOGIN PASSWORD '" + s.password + "'"); err != nil {
		t.Fatal(err)
	}
	return s
}

// Open starts a server that asks for no password, and returns how to connect to it.
func Open(t testing.TB) string {
	t.Helper()
	return Start(t).URL()
}

// Password is that of Role and of the superuser.
func (s *Server) Password() (string, error) { return s.password, nil }

// Database is one on a server.
type Database struct {
	*Server
	Name string
}

// New makes a database on the server that tests share, which goes with its test: an empty
// one, or a copy of a template, which nobody may be connected to.
func New(t testing.TB, template string) Database {
	t.Helper()
	d := sharedServer(t).New(t, template)
	t.Cleanup(func() {
		if _, err := d.Server.Query("DROP DATABASE " + d.Name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return d
}

// NewKept makes an empty database on the server that tests share, for as long as that runs.
func NewKept(t testing.TB) Database {
	t.Helper()
	return sharedServer(t).New(t, "")
}

// New makes a database on a server.
func (s *Server) New(t testing.TB, template string) Database {
	t.Helper()
	if template == "" {
		template = "template0"
	}
	d := Database{s, "test_" + strings.ToLower(rand.Text())}
	if _, err := s.Query(fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s OWNER %s", d.Name, template, Role)); err != nil {
		t.Fatal(err)
	}
	return d
}

// URL is how Role connects, without the password.
func (d Database) URL() string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", Role, d.port, d.Name)
}

// Query returns what a query of the superuser prints, without the end of the line.
func (d Database) Query(query string) (string, error) {
	return d.query(fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", d.port, d.Name), query)
}
