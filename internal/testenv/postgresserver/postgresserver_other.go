//go:build !linux

package postgresserver

import "testing"

// Main runs tests.
func Main(m *testing.M) int { return m.Run() }

// Role is who owns databases.
const Role = "holdfast"

// Database is one on a server.
type Database struct{ Name string }

// New skips its test: here the tests start no PostgreSQL.
func New(t testing.TB, _ string) Database {
	t.Helper()
	t.Skip("no PostgreSQL is started on this system")
	return Database{}
}

// NewKept is New.
func NewKept(t testing.TB, _ string) Database { return New(t, "") }

// Open skips its test, too.
func Open(t testing.TB) string {
	t.Helper()
	New(t, "")
	return ""
}

// URL is how clients connect.
func (Database) URL() string { return "" }

// Password is that of the URL's user.
func (Database) Password() (string, error) { return "", nil }

// Query returns what a query prints.
func (Database) Query(string) (string, error) { return "", nil }
