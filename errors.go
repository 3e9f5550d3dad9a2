package holdfast

import (
	"errors"
	"fmt"
	"time"
)

// Errors that callers branch on.
var (
	// ErrNotFound: the thing that was asked for does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the record has changed since it was read; read it again.
	ErrConflict = errors.New("changed in the meantime")
	// ErrLocked: somebody else holds the lock. See LockedError for who.
	ErrLocked = errors.New("locked")
	// ErrLockLost: the lock is no longer the caller's.
	ErrLockLost = errors.New("lock lost")
	// ErrFenced: the attempt that writes is not the run's current one.
	ErrFenced = errors.New("fenced off")
	// ErrHeard: the attempt that was believed to be silent has given a sign of life.
	ErrHeard = errors.New("a sign of life came in the meantime")
	// ErrUnauthorized: the credential is missing, wrong or expired.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: the credential is valid but may not do this.
	ErrForbidden = errors.New("forbidden")
	// ErrUnsaved: there is a state that its backend does not have; see UnsavedState.
	ErrUnsaved = errors.New("the state could not be saved")
	// ErrMergeConflict: two revisions change the same lines.
	ErrMergeConflict = errors.New("merge conflict")
	// ErrUnavailable: a server is unreachable or overloaded; worth a retry.
	ErrUnavailable = errors.New("unavailable")
	// ErrRejected: a server has understood what it was asked for, and refuses it each
	// time.
	ErrRejected = errors.New("rejected")
	// ErrUnreadable: what is asked for is there, and malformed or too large, for everybody.
	ErrUnreadable = errors.New("cannot be read")
	// ErrDamaged: a record is there, and what is stored of it is not what was written.
	ErrDamaged = errors.New("damaged")
	// ErrExpired: what is asked for is no longer kept; start again from the beginning.
	ErrExpired = errors.New("no longer kept")
)

// ErrorOf returns an error of one of these kinds whose text alone says what is wrong:
// after "project x has no cluster" the kind's own words would say it twice.
func ErrorOf(kind error, format string, args ...any) error {
	return &errorOf{kind, fmt.Sprintf(format, args...)}
}

type errorOf struct {
	kind error
	text string
}

func (e *errorOf) Error() string { return e.text }

func (e *errorOf) Unwrap() error { return e.kind }

// LockedError says who holds a lock. It is an ErrLocked.
type LockedError struct{ Holder LockHolder }

func (e *LockedError) Error() string {
	return fmt.Sprintf("locked by %s since %s", e.Holder.Owner, e.Holder.Since.UTC().Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// RefusedError says why something cannot be done now, and what helps. It is an
// ErrConflict.
type RefusedError struct {
	Reason  Reason
	Command string // of holdfast; empty: that of the reason, see Reason.Command
	Text    string // why, in a sentence
}

func (e *RefusedError) Error() string { return e.Text }

// Is makes errors.Is(err, ErrConflict) true.
func (e *RefusedError) Is(target error) bool { return target == ErrConflict }

// LockHolder is who holds a lock.
type LockHolder struct {
	Owner   string    `json:"owner"` // "run/attempt"
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires"` // when the lease ends unless it is renewed
}

// RateLimitError says that a code host refuses calls for a while. It is an
// ErrUnavailable.
type RateLimitError struct {
	RetryAt time.Time
	Wait    time.Duration // until RetryAt, from when the error was made: whoever waits needs no clock
	Err     error
}

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("rate limited until %s: %v", e.RetryAt.UTC().Format(time.RFC3339), e.Err)
}

// Is makes errors.Is(err, ErrUnavailable) true.
func (e *RateLimitError) Is(target error) bool { return target == ErrUnavailable }

func (e *RateLimitError) Unwrap() error { return e.Err }
