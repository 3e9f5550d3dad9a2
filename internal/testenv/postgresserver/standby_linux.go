package postgresserver

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeport"
)

// Standby starts a second server that replicates this one, asynchronously. It ends with the test.
func (s *Server) Standby() *Server {
	t := s.t
	t.Helper()
	other := &Server{t: t, programs: s.programs, password: s.password, settings: s.settings, primary: s}
	t.Cleanup(other.end)
	other.makeFolder()
	backup := other.command("pg_basebackup", "--pgdata="+other.data(), "--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--dbname="+s.URL())
	backup.Env = append(backup.Env, "PGPASSWORD="+s.password)
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	for range 5 {
		other.port = freeport.Of(t)
		if other.run() {
			return other
		}
	}
	t.Fatalf("start the standby:\n%s", other.logged())
	return nil
}

// CatchUp waits until a standby has all that its primary has written.
func (s *Server) CatchUp() {
	s.t.Helper()
	written := s.must(s.primary.Query("SELECT pg_current_wal_flush_lsn()"))
	s.await("the standby does not catch up", func() bool {
		return s.must(s.Query("SELECT pg_last_wal_replay_lsn() >= '"+written+"'")) == "t"
	})
}

// Promote has a standby take writes.
func (s *Server) Promote() {
	s.t.Helper()
	s.must(s.Query("SELECT pg_promote(false)"))
	s.await("the standby is not promoted", func() bool { return s.must(s.Query("SELECT pg_is_in_recovery()")) == "f" })
}

func (s *Server) await(otherwise string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal(otherwise)
		}
	}
}

func (s *Server) must(text string, err error) string {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// URLOf is how Role connects to whichever of some servers takes writes.
func (d Database) URLOf(servers ...*Server) string {
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", s.port))
	}
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", Role, strings.Join(hosts, ","), d.Name)
}

// QueryOn is Query on another server that has the database, too.
func (d Database) QueryOn(s *Server, query string) (string, error) {
	return Database{s, d.Name}.Query(query)
}
