package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

const (
	// leaseTime is how long a server that has died counts as living, and renewEvery how
	// often one that lives says so: two of them may get lost.
	leaseTime  = 15 * time.Second
	renewEvery = 4 * time.Second

	// deadKnown is how long it is remembered that a server has died.
	deadKnown = time.Hour

	leaseName = "server"
	// membership is the lock of those who begin to use the database: they do it one by one.
	membership = `SELECT pg_advisory_xact_lock(hashtextextended('holdfast servers', 0))`
)

// Member is a server that has a database, alone or with others. It is a row with a time, and
// no lock of a session: a session may end while its server lives, and PgBouncer shares sessions.
type Member struct {
	Server
	pool  *sql.DB
	time  *Clock
	log   *slog.Logger
	began time.Time // when it joined, by the database's clock

	stop context.CancelFunc
	done chan struct{}
	lost chan struct{}

	mu      sync.Mutex
	renewed time.Time // by the monotonic clock; guarded
	over    bool      // others have it without us; guarded
}

// rival is a server that has the database and must not, if this one has it.
type rival struct {
	who  string
	sign int64  // its last sign of life
	why  string // the two cannot share it
}

// Join makes us a server of a database. It waits for the end of one that has died and is in
// the way, and is an ErrLocked if that one lives.
func (p *Pools) Join(ctx context.Context, server Server, log *slog.Logger) error {
	m := &Member{
		Server: server, pool: p.lease, time: p.time, log: log, done: make(chan struct{}), lost: make(chan struct{}),
	}
	err := waitFor(ctx, log, m.enter)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop, p.member = stop, m
	go m.keep(ctx)
	return nil
}

// firstShared is the first schema that has the table of servers.
const firstShared = 2

// Vacant waits until no server has a database that cannot have it after its schema was changed:
// one that has it for itself, or that knows an older schema than oldest. Current is the schema
// now.
func (p *Pools) Vacant(ctx context.Context, server Server, current, oldest int64, log *slog.Logger) error {
	m := &Member{Server: server, pool: p.lease}
	return waitFor(ctx, log, func(ctx context.Context) (*rival, error) {
		other, err := m.holder(ctx, p.lease)
		if err != nil || other != nil || current < firstShared {
			return other, Explained(err)
		}
		peers, err := peersOf(ctx, p.lease)
		for _, peer := range peers {
			if peer.Living && peer.Schema < oldest && (m.Place == "" || peer.Place != m.Place) {
				return &rival{peer.Name, peer.HeartbeatAt.UnixNano(), fmt.Sprintf(
					"knows the schema to version %d, and this one would change it to what takes %d: stop it, and all replicas of its version, first",
					peer.Schema, oldest)}, nil
			}
		}
		return nil, Explained(err)
	})
}

// waitFor calls enter until nobody is in the way. A process that gave two signs of life
// is alive.
func waitFor(ctx context.Context, log *slog.Logger, enter func(ctx context.Context) (*rival, error)) error {
	var first *rival
	for {
		other, err := enter(ctx)
		switch {
		case err != nil || other == nil:
			return err
		case first == nil || first.who != other.who:
			first = other
			log.InfoContext(ctx, "another server has the database, or has died without giving it back: waiting for its next sign of life", "owner", other.who)
		case other.sign != first.sign:
			return fmt.Errorf("the server on %s has it, and %s: %w", other.who, other.why, holdfast.ErrLocked)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// enter makes us a server of the database, unless one that lives is in the way.
func (m *Member) enter(ctx context.Context) (*rival, error) {
	began := time.Now()
	tx, err := m.pool.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("join the database's servers: %w", Explained(err))
	}
	defer func() { _ = tx.Rollback() }()
	other, err := m.enterIn(ctx, tx)
	if err == nil && other == nil {
		err = tx.Commit()
	}
	if err != nil {
		return nil, fmt.Errorf("join the database's servers: %w", Explained(err))
	}
	m.renewed = began
	return other, nil
}

func (m *Member) enterIn(ctx context.Context, tx *sql.Tx) (*rival, error) {
	if _, err := tx.ExecContext(ctx, membership); err != nil {
		return nil, err
	}
	peers, err := peersOf(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, peer := range peers {
		if why := m.excludes(peer); why != "" {
			return &rival{peer.Name, peer.HeartbeatAt.UnixNano(), why}, nil
		}
	}
	if other, err := m.holder(ctx, tx); err != nil || other != nil { // one of an older version
		return other, err
	}
	return nil, m.note(ctx, tx)
}

// note writes that we have the database.
func (m *Member) note(ctx context.Context, tx *sql.Tx) error {
	// The process that was in our place is dead, whatever it was called. Others are known
	// for some time.
	if _, err := tx.ExecContext(ctx, `DELETE FROM replicas WHERE place = $1 AND place <> '' OR heartbeat_at < `+clock+` - $2::bigint`,
		m.Place, int64(deadKnown)); err != nil {
		return err
	}
	var at int64
	err := tx.QueryRowContext(ctx, `INSERT INTO replicas (identity, nonce, place, name, alone, version, protocol, schema_version, address, blobs, locks,
			started_at, heartbeat_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, `+clock+`, `+clock+`)
		ON CONFLICT (identity) DO UPDATE SET nonce = excluded.nonce, place = excluded.place, name = excluded.name, alone = excluded.alone,
			version = excluded.version, protocol = excluded.protocol, schema_version = excluded.schema_version, address = excluded.address,
			blobs = excluded.blobs, locks = excluded.locks, started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at
		RETURNING started_at`,
		m.Identity, m.Nonce, m.Place, m.Name, m.Alone, m.Version, m.Protocol, m.Schema, m.Address, m.Blobs, m.Locks).Scan(&at)
	if err != nil {
		return err
	}
	m.began = time.Unix(0, at).UTC()
	if m.Alone == "" {
		_, err = tx.ExecContext(ctx, `DELETE FROM leases WHERE name = '`+leaseName+`'`)
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO leases (name, owner, expires_at) VALUES ('`+leaseName+`', $1, `+clock+` + $2::bigint)
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at`, m.owner(), int64(leaseTime))
	return err
}

// holder is the server that has the database for itself, unless that is, or was, we.
func (m *Member) holder(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (*rival, error) {
	var owner string
	var expires int64
	err := q.QueryRowContext(ctx, `SELECT owner, expires_at FROM leases WHERE name = '`+leaseName+`' AND expires_at > `+clock).Scan(&owner, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	parts := strings.SplitN(owner, " ", 3)
	if owner == m.owner() || m.Place != "" && parts[0] == m.Place {
		return nil, nil
	}
	why := "cannot share it, as its configuration lacks what that takes (docs/install.md#replicas): stop it, or give this one another database"
	if m.Alone != "" {
		why = m.onlyAlone()
	}
	return &rival{parts[len(parts)-1], expires, why}, nil
}

func (m *Member) onlyAlone() string {
	return "only one server may use a database, as " + m.Alone + " here: stop it, give this one another database, or configure both as replicas (docs/install.md#replicas)"
}

// excludes says why we and another server that lives cannot both have the database; empty
// if they can.
func (m *Member) excludes(other Peer) string {
	switch {
	case !other.Living, m.Place != "" && other.Place == m.Place:
		return ""
	case other.Identity == m.Identity:
		return "its identity is " + m.Identity + ", as ours: give each replica a data folder of its own, and copy none"
	case m.Alone != "":
		return m.onlyAlone()
	case other.Alone != "":
		return "cannot share it, as " + other.Alone + " there: stop it, and configure it as a replica (docs/install.md#replicas)"
	case other.Blobs != m.Blobs:
		return fmt.Sprintf("keeps blobs in %s, and this one would in %s: replicas have the same datastore.blobs.url", other.Blobs, m.Blobs)
	}
	return ""
}

// keep gives signs of life until that is over, or others have the database without us.
func (m *Member) keep(ctx context.Context) {
	defer close(m.done)
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.renew(ctx); errors.Is(err, holdfast.ErrLocked) {
			return
		} else if err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "this server's sign of life is not stored in the database", "err", err)
		}
	}
}

// renew gives a sign of life, and learns what time it is. A process that was silent for
// longer than others wait is excluded by those that replaced it.
func (m *Member) renew(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, leaseTime)
	defer stop()
	began := time.Now()
	var at int64
	var err error
	if m.Alone != "" {
		err = m.pool.QueryRowContext(ctx, `WITH beat AS (UPDATE replicas SET heartbeat_at = `+clock+` WHERE identity = $1 AND nonce = $2)
			UPDATE leases SET expires_at = `+clock+` + $4::bigint WHERE name = '`+leaseName+`' AND owner = $3 RETURNING expires_at - $4::bigint`,
			m.Identity, m.Nonce, m.owner(), int64(leaseTime)).Scan(&at)
	} else {
		err = m.pool.QueryRowContext(ctx, `UPDATE replicas SET heartbeat_at = `+clock+` WHERE identity = $1 AND nonce = $2
			AND NOT EXISTS (SELECT 1 FROM leases WHERE name = '`+leaseName+`' AND expires_at > `+clock+`) RETURNING heartbeat_at`,
			m.Identity, m.Nonce).Scan(&at)
	}
	after := time.Now()
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Explained(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.renewed = began
		m.time.set(time.Unix(0, at), began, after)
		return nil
	}
	if !m.over {
		m.over = true
		close(m.lost)
		m.log.ErrorContext(ctx, "another server has taken the database: this one stores nothing more, and ends")
	}
	return holdfast.ErrLocked
}

// check is an ErrLocked if others have the database without us. A process that could not
// give a sign of life in time asks before anything is written.
func (m *Member) check(ctx context.Context) error {
	m.mu.Lock()
	over, late := m.over, time.Since(m.renewed) > leaseTime-renewEvery
	m.mu.Unlock()
	switch {
	case over:
		return fmt.Errorf("another server has taken the database: %w", holdfast.ErrLocked)
	case late:
		return m.renew(context.WithoutCancel(ctx))
	}
	return nil
}

// Silent reports whether no sign of life could be stored for as long as one lasts: the database does
// not answer, though no query may have failed yet.
func (p *Pools) Silent() bool {
	m := p.member
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.over && time.Since(m.renewed) > leaseTime
}

// Lost is closed when others have the database without us.
func (p *Pools) Lost() <-chan struct{} {
	if p.member == nil {
		return nil
	}
	return p.member.lost
}

// Member is this server as a user of the database; nil: none yet.
func (p *Pools) Member() *Member { return p.member }

// Began is when it joined, by the database's clock.
func (m *Member) Began() time.Time { return m.began }

// leave says that we are no longer there.
func (m *Member) leave() {
	m.stop()
	<-m.done
	ctx, stop := context.WithTimeout(context.Background(), connectTimeout)
	defer stop()
	_, err := m.pool.ExecContext(ctx, `WITH gone AS (DELETE FROM replicas WHERE identity = $1 AND nonce = $2)
		DELETE FROM leases WHERE name = '`+leaseName+`' AND owner = $3`, m.Identity, m.Nonce, m.owner())
	if err != nil {
		m.log.WarnContext(ctx, "the end of this server is not stored in the database: others wait until it counts as dead", "err", err)
	}
}
