package postgresserver

import (
	"cmp"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Shared is the server that all tests of a process have databases on: to start one takes
// longer than most of them do.
var shared struct {
	sync.Mutex
	server *Server
	idle   []*pgconn.PgConn // sessions in which the superuser makes databases and removes them
}

// Role is who owns the databases of New: not a superuser.
const Role = "holdfast"

// Main runs tests and ends the server that they have shared. It is what TestMain exits with.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if s := shared.server; s != nil {
		for _, session := range shared.idle {
			_ = disconnect(session)
		}
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
	s := &Server{t: t, programs: programs, password: guardedPassword, settings: []string{
		"-c", "max_connections=400", "-c", "autovacuum=off", "-c", "full_page_writes=off",
	}}
	if bound {
		t.Cleanup(s.end)
	}
	s.start("--auth=scram-sha-256")
	if _, err := s.Query("CREATE ROLE " + Role + " LOGIN PASSWORD '" + verifier(s.password) + "'"); err != nil {
		t.Fatal(err)
	}
	return s
}

// verifier is what PostgreSQL keeps of a password (SCRAM-SHA-256), with one round of hashing
// where it would make 4096: a test begins many sessions.
func verifier(password string) string {
	salt, rounds := []byte(rand.Text()), 1
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		panic(err) // such a key can be made
	}
	keyed := func(text string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(keyed("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, encode(salt), encode(stored[:]), encode(keyed("Server Key")))
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
	d := NewKept(t, template)
	t.Cleanup(func() {
		if err := administer(d.Server, "DROP DATABASE "+d.Name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return d
}

// NewKept is New of a database that stays for as long as the server runs.
func NewKept(t testing.TB, template string) Database {
	t.Helper()
	d, statement := sharedServer(t).named(template)
	if err := administer(d.Server, statement); err != nil {
		t.Fatal(err)
	}
	return d
}

// New makes a database on a server.
func (s *Server) New(t testing.TB, template string) Database {
	t.Helper()
	d, statement := s.named(template)
	if _, err := s.Query(statement); err != nil {
		t.Fatal(err)
	}
	return d
}

// named is a database with its own name, and the statement that makes it.
func (s *Server) named(template string) (d Database, statement string) {
	d = Database{s, "test_" + strings.ToLower(rand.Text())}
	return d, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s OWNER %s", d.Name, cmp.Or(template, "template0"), Role)
}

// administer has the superuser execute a statement on the server that tests share. To begin
// a session takes as long as to make a database: they are used again.
func administer(s *Server, statement string) error {
	session, err := administrator(s)
	if err != nil {
		return err
	}
	if _, err := execute(session, statement); err != nil {
		return errors.Join(err, disconnect(session))
	}
	shared.Lock()
	defer shared.Unlock()
	shared.idle = append(shared.idle, session)
	return nil
}

func administrator(s *Server) (*pgconn.PgConn, error) {
	shared.Lock()
	defer shared.Unlock()
	if last := len(shared.idle) - 1; last >= 0 {
		session := shared.idle[last]
		shared.idle = shared.idle[:last]
		return session, nil
	}
	return s.connect(s.URL())
}

// URL is how Role connects, without the password.
func (d Database) URL() string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", Role, d.port, d.Name)
}

// Query returns what a query of the superuser prints, without the end of the line.
func (d Database) Query(query string) (string, error) {
	return d.query(fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", d.port, d.Name), query)
}
