package datastore

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/datastore/migrations"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/statements"
)

var postgresDialect = &dialect{
	migrations: migrations.Postgres,
	duplicate:  postgres.Duplicate,
	explained:  postgres.Explained,

	forUpdate:    ` FOR UPDATE`,
	forShare:     ` FOR SHARE`,
	forKeyShare:  ` FOR KEY SHARE`,
	skipLocked:   ` FOR UPDATE SKIP LOCKED`,
	advisoryLock: `SELECT pg_advisory_xact_lock(hashtextextended('holdfast ' || ?, 0))`,

	sharedLock: `SELECT pg_advisory_xact_lock_shared(hashtextextended('holdfast ' || ?, 0))`,

	clock:      postgres.Clause,
	lastChange: `(SELECT value FROM counters WHERE name = 'changes')`,
	nextFence:  `SELECT nextval('fences')`,
	like:       `ILIKE`,
}

func openPostgres(ctx context.Context, address postgres.Address) (*database, error) {
	pools, err := postgres.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	reading := *postgresDialect
	reading.forUpdate, reading.forShare, reading.forKeyShare, reading.skipLocked = "", "", "", ""
	writers := statements.NewNumbered(pools.Writers)
	return &database{
		dialect: postgresDialect, reading: &reading, server: pools,
		readers: statements.NewNumbered(pools.Readers), durable: writers, relaxed: writers,
	}, nil
}

// Lost is closed when others have the database without us: nothing more is stored. SQLite is
// never closed so.
func (s *Store) Lost() <-chan struct{} {
	if s.db == nil || s.db.server == nil {
		return nil
	}
	return s.db.server.Lost()
}

// remember records in our folder which database its records are in.
func (s *Store) remember(ctx context.Context, identity string, me postgres.Server) error {
	added, err := s.home.Remember(identity)
	if err == nil {
		err = s.db.server.Recognized()
	}
	if err != nil || !added || me.Alone == "" {
		return err
	}
	var runs int
	if err := s.db.reader().row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM runs LIMIT 1) AS few`).Scan(&runs); err != nil {
		return fmt.Errorf("look for runs: %w", err)
	}
	if runs > 0 {
		s.log.WarnContext(ctx, "the database was used with another data folder: what its agents have not delivered yet, such as states, is still there, "+
			"and so are larger plans, bundles and states unless they are in an object store",
			"path", s.home.Path())
	}
	return nil
}
