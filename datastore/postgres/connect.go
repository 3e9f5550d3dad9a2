package postgres

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-dev/holdfast"
)

// Address is where a database is, and how it is connected to.
type Address struct {
	// URL is postgres://USER@HOST:PORT/DATABASE, with the parameters of libpq and
	// default_query_exec_mode, which is "exec" behind PgBouncer in transaction mode.
	URL string
	// Password is asked for with each new session; nil: the server wants none, or the
	// certificate of the URL is enough.
	Password func() (string, error)
	// Memory knows the newest timeline of the database: a primary on an older one was replaced, and is
	// refused. Nil: only what is seen from now on counts.
	Memory Memory
}

const (
	// Connections is how many sessions read, and how many write. One more gives signs of life.
	Connections = 16
	// oldest is the first version that has what is used.
	oldest = 14

	// connectTimeout is for one host.
	connectTimeout = 5 * time.Second
	// Idle sessions are closed after some time, and all of them after an hour: after a
	// failover the load spreads again.
	connectionIdle, connectionAge = 5 * time.Minute, time.Hour
	// keepAlive is between signs of life on a connection on which nothing happens: one that
	// died silently is found within four of them.
	keepAlive = 15 * time.Second
	// unheard is how long what was sent may wait to be acknowledged, by the system of the other machine.
	unheard = 20 * time.Second
)

// timeouts of a session, in milliseconds. PgBouncer in transaction mode does not support
// them: there the role has them (ALTER ROLE ... SET).
var timeouts = map[string]string{
	"statement_timeout": "120000", "lock_timeout": "60000", "idle_in_transaction_session_timeout": "120000",
}

// Pools are the sessions of one database.
type Pools struct {
	Readers, Writers *sql.DB
	lease            *sql.DB // waiting for a writer's session must not lose the database
	member           *Member // nil: the database is not ours yet
	time             *Clock
	epoch            *atomic.Int64 // of sessions; those of an earlier one are not used again
	lives            *timelines
}

// epochKey is where a session keeps its epoch.
const epochKey = "holdfast epoch"

// Open returns pools of sessions and waits until the database has answered.
func Open(ctx context.Context, address Address) (*Pools, error) {
	config, err := parse(address.URL)
	if err != nil {
		return nil, err
	}
	lives, err := newTimelines(address.Memory)
	if err != nil {
		return nil, err
	}
	p := &Pools{epoch: new(atomic.Int64), lives: lives, time: new(Clock)}
	takesWrites := config.ValidateConnect
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := takesWrites(ctx, conn); err != nil {
			return err
		}
		newer, err := p.lives.admit(ctx, conn)
		if newer {
			p.Renew()
		}
		return err
	}
	p.Readers = p.pool(config, address.Password, Connections)
	p.Writers = p.pool(config, address.Password, Connections)
	p.lease = p.pool(config, address.Password, 1)
	if err := p.check(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// check is an error if the database does not answer, or is not what we need.
func (p *Pools) check(ctx context.Context) error {
	var version int
	var encoding string
	err := p.Readers.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding')`).
		Scan(&version, &encoding)
	switch {
	case err != nil:
		return Refused(err)
	case version/10000 < oldest:
		return fmt.Errorf("its version is %d, and %d or later is needed", version/10000, oldest)
	case encoding != "UTF8":
		return fmt.Errorf("its encoding is %s: create it with ENCODING 'UTF8'", encoding)
	}
	return p.time.ask(ctx, p.lease)
}

// Now is the time of the database.
func (p *Pools) Now() time.Time { return p.time.Now() }

// parse reads a URL. What is said of it has no password: none is taken from there.
func parse(address string) (*pgx.ConnConfig, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("the URL of a PostgreSQL database is postgres://USER@HOST:PORT/DATABASE")
	}
	if _, has := u.User.Password(); has || u.Query().Has("password") {
		return nil, errors.New("the URL contains the password, which belongs elsewhere")
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("read the URL: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	dialer := &net.Dialer{
		Timeout:         config.ConnectTimeout,
		Control:         giveUpUnheard,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 3},
	}
	config.DialFunc = dialer.DialContext
	if config.ValidateConnect == nil { // of several hosts it is the one that accepts writes
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if config.DefaultQueryExecMode != pgx.QueryExecModeExec && config.DefaultQueryExecMode != pgx.QueryExecModeSimpleProtocol {
		for name, value := range timeouts {
			if _, set := config.RuntimeParams[name]; !set {
				config.RuntimeParams[name] = value
			}
		}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "holdfast"
	}
	return config, nil
}

func (p *Pools) pool(config *pgx.ConnConfig, password func() (string, error), connections int) *sql.DB {
	pool := stdlib.OpenDB(*config,
		stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) (err error) {
			if password != nil {
				c.Password, err = password()
			}
			return err
		}),
		stdlib.OptionAfterConnect(func(_ context.Context, c *pgx.Conn) error {
			c.PgConn().CustomData()[epochKey] = p.epoch.Load()
			return nil
		}),
		stdlib.OptionResetSession(func(_ context.Context, c *pgx.Conn) error {
			if c.PgConn().CustomData()[epochKey] != p.epoch.Load() {
				return driver.ErrBadConn
			}
			return nil
		}))
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.SetConnMaxIdleTime(connectionIdle)
	pool.SetConnMaxLifetime(connectionAge)
	return pool
}

// Renew makes all sessions reconnect: the server that they are with no longer accepts
// writes, and a new session finds the one that does.
func (p *Pools) Renew() { p.epoch.Add(1) }

// Close records that we no longer have the database, and ends all sessions.
func (p *Pools) Close() error {
	if p.member != nil {
		p.member.leave()
	}
	return errors.Join(p.Readers.Close(), p.Writers.Close(), p.lease.Close())
}

// ErrOpen means that the database lets in clients without the password.
var ErrOpen = errors.New("the database accepts connections without the password")

// Guarded is an ErrOpen if whoever can reach the database's port can use it: code that
// engines execute can reach what the machine can. A socket is a matter of the system's
// users, and is not asked.
func Guarded(ctx context.Context, address Address) error {
	config, err := parse(address.URL)
	if err != nil {
		return err
	}
	if strings.HasPrefix(config.Host, "/") {
		return nil
	}
	config.Password = rand.Text()
	withoutCertificate(config.TLSConfig)
	for _, fallback := range config.Fallbacks {
		withoutCertificate(fallback.TLSConfig)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		_ = conn.Close(ctx)
		return ErrOpen
	}
	if failure := (*pgconn.PgError)(nil); errors.As(err, &failure) && refusesUs(failure) {
		return nil
	}
	return Refused(err)
}

func withoutCertificate(config *tls.Config) {
	if config != nil {
		config.Certificates, config.GetClientCertificate = nil, nil
	}
}

// Refused says what to do about a database that cannot be connected to, or be used.
func Refused(err error) error {
	var failure *pgconn.PgError
	switch {
	case !errors.As(err, &failure):
		if strings.Contains(err.Error(), "read only connection") {
			return fmt.Errorf("the database takes no writes: it is a standby, or read-only: name its primary in the URL, or all its hosts: %w", err)
		}
		if errors.Is(err, ErrReplaced) {
			return fmt.Errorf("another primary has replaced it: make it a standby, or take it out of the URL: %w", err)
		}
		if !lost(err) {
			return err
		}
		return fmt.Errorf("it cannot be reached: start it, and look at the URL, the network and TLS: %w: %w", holdfast.ErrUnavailable, err)
	case refusesUs(failure):
		return fmt.Errorf("it refuses the user or the password: look at the user in the URL, the password and pg_hba.conf: %w", err)
	case failure.Code == codeNoRight:
		return fmt.Errorf("its user lacks rights: the user in the URL has to own the database: %w", err)
	case failure.Code == codeNoDatabase:
		return fmt.Errorf("there is no such database: create it, owned by the user in the URL: %w", err)
	case failure.Code == codeProtocol && strings.Contains(failure.Message, "startup parameter"):
		return fmt.Errorf("it is PgBouncer: add default_query_exec_mode=exec to the URL: %w", err)
	}
	return Explained(err)
}
