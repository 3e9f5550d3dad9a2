package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-dev/holdfast"
)

// Codes and classes of https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	classAuthorization = "28"
	classRollback      = "40"
	classResources     = "53"
	classSystem        = "58"

	codeUnknownEnd = "40003"
	codeDuplicate  = "23505"
	codeReadOnly   = "25006"
	codeLockWait   = "55P03"
	codeCanceled   = "57014"
	codeDiskFull   = "53100"
	codeNoDatabase = "3D000"
	codeNoRight    = "42501"
	codeProtocol   = "08P01"
)

func class(failure *pgconn.PgError) string { return failure.Code[:min(len(failure.Code), 2)] }

// refusesUs reports whether a server does not accept the user or the password. PgBouncer says so with the
// code of a violated protocol.
func refusesUs(failure *pgconn.PgError) bool {
	return class(failure) == classAuthorization ||
		failure.Code == codeProtocol && strings.Contains(failure.Message, "authentication failed")
}

// Fault is what is wrong with a database that accepts no queries.
type Fault struct {
	problem string
	err     error
}

func (f *Fault) Error() string { return f.problem + ": " + f.err.Error() }

func (f *Fault) Unwrap() error { return f.err }

// DiskProblem is what is wrong, in words: nothing can be stored.
func (f *Fault) DiskProblem() string { return f.problem }

// SomeWritten reports whether other writes may succeed all the same: what fits into existing pages
// of a table needs no room on a full disk.
func (f *Fault) SomeWritten() bool {
	var failure *pgconn.PgError
	return errors.As(f.err, &failure) && (failure.Code == codeDiskFull || class(failure) == classSystem)
}

// Explained returns err as a Fault if the database cannot be reached, or accepts nothing,
// and as an ErrUnavailable if it kept us waiting for too long. A Fault stays as it is.
func Explained(err error) error {
	if err == nil || errors.As(err, new(*Fault)) {
		return err
	}
	var failure *pgconn.PgError
	switch {
	case !errors.As(err, &failure):
		if lost(err) {
			return &Fault{"the server's database cannot be reached", fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)}
		}
		return err
	case away(failure):
		return &Fault{"the server's database is not available", fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)}
	case refusesUs(failure):
		return &Fault{"the server's database refuses the server's user or password", fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)}
	case failure.Code == codeNoDatabase:
		return &Fault{"the server's database does not exist", fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)}
	case failure.Code == codeNoRight:
		return &Fault{"the server's database denies rights to the server's user", fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)}
	case failure.Code == codeDiskFull:
		return &Fault{"the disk of the server's database is full", err}
	case failure.Code == codeReadOnly:
		return &Fault{"the server's database is read-only", err}
	case class(failure) == classResources:
		return &Fault{"the server's database lacks memory or connections", fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)}
	case class(failure) == classSystem:
		return &Fault{"the disk of the server's database cannot be read or written", err}
	case failure.Code == codeLockWait, failure.Code == codeCanceled, class(failure) == classRollback:
		if errors.Is(err, holdfast.ErrUnavailable) {
			return err
		}
		return fmt.Errorf("the server's database is busy: %w: %w", holdfast.ErrUnavailable, err)
	default:
		return err
	}
}

// Duplicate reports whether err is a violated unique constraint.
func Duplicate(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == codeDuplicate
}

// away reports whether a server says that it ends, or has yet to start.
func away(failure *pgconn.PgError) bool {
	switch failure.Code {
	case "57P01", "57P02", "57P03", "57P05", "08000", "08001", "08003", "08004", "08006":
		return true
	}
	return false
}

// lost reports whether a connection could not be made, or has ended.
func lost(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.As(err, &connect):
		return true
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false // ours, and a network's error by its methods
	}
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || strings.HasSuffix(err.Error(), "conn closed")
}

// conflict reports whether a transaction was ended so that another one could continue.
func conflict(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && class(failure) == classRollback && failure.Code != codeUnknownEnd
}

// gone reports whether the session's server does not answer, or no longer accepts writes:
// a new session may be with another server.
func gone(err error) bool {
	if err == nil {
		return false
	}
	var failure *pgconn.PgError
	if errors.As(err, &failure) {
		return away(failure) || failure.Code == codeReadOnly || refusesUs(failure) // a new password may be known soon
	}
	return lost(err)
}

// Row is a row whose error is [Explained].
type Row struct{ *sql.Row }

// Scan is that of the row.
func (r Row) Scan(dest ...any) error { return Explained(r.Row.Scan(dest...)) }
