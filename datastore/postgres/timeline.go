package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// Timeline is one life of a database: each standby that is promoted, and each recovery to a point
// in time, begins another one, with a higher number. A primary that was replaced and comes back
// takes writes as well, on the number that it had.
type Timeline struct {
	System string // of initdb; standbys have that of their primary
	Number int64
}

func (t Timeline) String() string { return t.System + " " + strconv.FormatInt(t.Number, 10) }

// ParseTimeline reads what String returns.
func ParseTimeline(text string) (Timeline, error) {
	system, number, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || system == "" {
		return Timeline{}, fmt.Errorf("%q is not a timeline of PostgreSQL", text)
	}
	return Timeline{system, n}, nil
}

// ErrReplaced says that a server takes writes, and another one has taken its place since: what it has
// is old, and what would be written there is lost, or contradicts what was written elsewhere.
var ErrReplaced = errors.New("it is a primary that was replaced")

// Memory keeps the newest timeline that was seen of a database, for the next start: text, empty if none was.
type Memory interface {
	Timeline() (string, error)
	RememberTimeline(timeline string) error
}

// timelines has all sessions be of one database, on the newest timeline that was seen.
type timelines struct {
	memory Memory // nil: what was seen before is not known

	mu     sync.Mutex
	newest Timeline // guarded
	begun  bool     // a session was admitted; guarded
	kept   Timeline // in memory, if the database is known to be the right one; guarded
	right  bool     // guarded
}

func newTimelines(memory Memory) (*timelines, error) {
	t := &timelines{memory: memory}
	if memory == nil {
		return t, nil
	}
	text, err := memory.Timeline()
	if err == nil && text != "" {
		t.newest, err = ParseTimeline(text)
		t.kept = t.newest
	}
	return t, err
}

// ofSession returns where a session writes, as the first digits of the name of a file of its log
// say; zero if it cannot tell, as in databases that only speak the protocol.
func ofSession(ctx context.Context, conn *pgconn.PgConn) (Timeline, error) {
	results, err := conn.Exec(ctx, `SELECT (pg_control_system()).system_identifier, pg_walfile_name(pg_current_wal_insert_lsn())`).ReadAll()
	var failure *pgconn.PgError
	switch {
	case errors.As(err, &failure):
		return Timeline{}, nil
	case err != nil:
		return Timeline{}, err
	case len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0][1]) < 8:
		return Timeline{}, nil
	}
	row := results[0].Rows[0]
	number, err := strconv.ParseInt(string(row[1][:8]), 16, 64)
	if err != nil {
		return Timeline{}, nil //nolint:nilerr // it is not PostgreSQL's name of a file
	}
	return Timeline{string(row[0]), number}, nil
}

// admit is an ErrReplaced for a session of a primary that was replaced, and reports whether it is on
// a newer timeline than all before. Of another database than the sessions of now it is an error as well.
func (t *timelines) admit(ctx context.Context, conn *pgconn.PgConn) (newer bool, err error) {
	at, err := ofSession(ctx, conn)
	if err != nil || at == (Timeline{}) {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch before := t.newest; {
	case before == (Timeline{}):
	case at.System != before.System && t.begun:
		return false, fmt.Errorf("it is of another installation of PostgreSQL (system %s) than the sessions until now (%s): "+
			"if that is wanted, start the server again", at.System, before.System)
	case at.System == before.System && at.Number < before.Number:
		return false, fmt.Errorf("its timeline is %d, and %d was seen: %w", at.Number, before.Number, ErrReplaced)
	}
	newer = t.begun && at != t.newest
	t.newest, t.begun = at, true
	_ = t.keep() // otherwise the next session does
	return newer, nil
}

// keep has the memory know the newest timeline. t.mu is held.
func (t *timelines) keep() error {
	if t.memory == nil || !t.right || t.newest == t.kept {
		return nil
	}
	if err := t.memory.RememberTimeline(t.newest.String()); err != nil {
		return err
	}
	t.kept = t.newest
	return nil
}

// Recognized says that the database is the right one: its timelines are remembered from now on.
func (p *Pools) Recognized() error {
	p.lives.mu.Lock()
	defer p.lives.mu.Unlock()
	p.lives.right = true
	if p.lives.newest == (Timeline{}) {
		return nil
	}
	return p.lives.keep()
}
