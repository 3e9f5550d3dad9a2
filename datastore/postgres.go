package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/pressly/goose/v3"
	gooselock "github.com/pressly/goose/v3/lock"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/statements"
	"github.com/holdfast-dev/holdfast/internal/durable"
)

var postgresDialect = &dialect{
	goose:      goose.DialectPostgres,
	migrations: "postgres",
	duplicate:  postgres.Duplicate,
	explained:  postgres.Explained,

	forUpdate:    ` FOR UPDATE`,
	forKeyShare:  ` FOR KEY SHARE`,
	skipLocked:   ` FOR UPDATE SKIP LOCKED`,
	advisoryLock: `SELECT pg_advisory_xact_lock(hashtextextended('holdfast ' || ?, 0))`,

	sharedLock: `SELECT pg_advisory_xact_lock_shared(hashtextextended('holdfast ' || ?, 0))`,

	lastChange: `(SELECT value FROM counters WHERE name = 'changes')`,
	nextFence:  `SELECT nextval('fences')`,
	like:       `ILIKE`,
}

// postgresServer is a PostgreSQL that we have a database of.
type postgresServer struct {
	pools  *postgres.Pools
	holder *postgres.Holder // nil: not ours yet
}

func openPostgres(ctx context.Context, address postgres.Address) (*database, error) {
	pools, err := postgres.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	reading := *postgresDialect
	reading.forUpdate, reading.forKeyShare, reading.skipLocked = "", "", ""
	writers := statements.NewNumbered(pools.Writers)
	return &database{
		dialect: postgresDialect, reading: &reading, server: &postgresServer{pools: pools},
		readers: statements.NewNumbered(pools.Readers), durable: writers, relaxed: writers,
	}, nil
}

// hold keeps other servers away from the database. Place is a file that we have locked.
func (p *postgresServer) hold(ctx context.Context, place string, log *slog.Logger) (err error) {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	p.holder, err = p.pools.Hold(ctx, postgres.Server{
		Place: placeOf(place), Nonce: randomHex(8), Name: fmt.Sprintf("%s (process %d)", host, os.Getpid()),
	}, log)
	return err
}

// placeOf names a file on this machine, as long as the machine is up. Who locks it knows
// that nobody else does: a copy of the file has another name.
func placeOf(path string) string {
	boot := durable.Boot()
	info, err := os.Stat(path)
	if err != nil || boot == "" {
		return ""
	}
	number := fileNumber(info)
	if number == "" {
		return ""
	}
	return holdfast.DigestOf([]byte(boot + " " + number)).Short()
}

func (p *postgresServer) write(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	if p.holder != nil {
		if err := p.holder.Check(ctx); err != nil {
			return err
		}
	}
	return p.pools.Write(ctx, do)
}

func (p *postgresServer) close() error {
	var errs []error
	if p.holder != nil {
		errs = append(errs, p.holder.Release())
	}
	return errors.Join(append(errs, p.pools.Close())...)
}

// Lost is closed when another server has the database: nothing more is stored. Of SQLite
// it never is.
func (s *Store) Lost() <-chan struct{} {
	if s.db == nil || s.db.server == nil || s.db.server.holder == nil {
		return nil
	}
	return s.db.server.holder.Lost()
}

// migrationPatience is between two tries to be the one that migrates, and how many there are.
const (
	migrationPause = time.Second
	migrationTries = 300
)

// gooseOptions has one server alone migrate a database of PostgreSQL. Its lock is one of the
// session, so that a migration cannot be made through PgBouncer in transaction mode.
func (db *database) gooseOptions() ([]goose.ProviderOption, error) {
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler))}
	if db.server == nil {
		return options, nil
	}
	locker, err := gooselock.NewPostgresSessionLocker(
		gooselock.WithLockTimeout(uint64(migrationPause.Seconds()), migrationTries))
	if err != nil {
		return nil, err
	}
	return append(options, goose.WithSessionLocker(locker)), nil
}
