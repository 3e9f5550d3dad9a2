package postgres_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
)

// refusing answers every connection as PgBouncer 1.18 answers one with a wrong password.
func refusing(t *testing.T, code, message string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			backend := pgproto3.NewBackend(conn, conn)
			if _, err := backend.ReceiveStartupMessage(); err == nil {
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: message})
				_ = backend.Flush()
			}
			_ = conn.Close()
		}
	}()
	return "postgres://holdfast@" + listener.Addr().String() + "/holdfast?sslmode=disable&default_query_exec_mode=exec"
}

// TestGuardedByPgBouncer: that it refuses a stranger is not told as PostgreSQL does.
func TestGuardedByPgBouncer(t *testing.T) {
	t.Parallel()
	if err := postgres.Guarded(t.Context(), postgres.Address{URL: refusing(t, "08P01", "SASL authentication failed")}); err != nil {
		t.Errorf("Guarded() of PgBouncer that asks for the password = %v", err)
	}
	err := postgres.Guarded(t.Context(), postgres.Address{URL: refusing(t, "08P01", "unsupported startup parameter: lock_timeout")})
	if err == nil || !strings.Contains(err.Error(), "default_query_exec_mode=exec") {
		t.Errorf("Guarded() of PgBouncer that takes no parameters = %v", err)
	}
	refused := &pgconn.PgError{Code: "08P01", Message: "SASL authentication failed"}
	if err := postgres.Refused(refused); !strings.Contains(err.Error(), "refuses the user or the password") {
		t.Errorf("Refused() = %v", err)
	}
	if err := postgres.Explained(refused); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Explained() = %v, want an ErrUnavailable", err)
	}
}
