package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed sqlite postgres
var files embed.FS

// Set is the migrations of a kind of database.
type Set struct {
	folder  string
	dialect goose.Dialect
	shared  bool // several servers may begin at once
}

// The databases. When servers start at once, one of them migrates PostgreSQL, and the others
// wait for it: by a lock of a session, so that no migration can be made through PgBouncer in
// transaction mode.
var (
	SQLite   = Set{folder: "sqlite", dialect: goose.DialectSQLite3}
	Postgres = Set{folder: "postgres", dialect: goose.DialectPostgres, shared: true}
)

// The seconds, and the number of times, that a server waits for another one that
// migrates.
const pause, tries = 1, 300

// Owner says what may be done to a database that has tables.
type Owner struct {
	// Check is an error if the database is not the right one. It is asked first.
	Check func(ctx context.Context) error
	// May is an error if somebody uses the tables who knows an older schema than the oldest
	// one that can use what they become; current is what they are. It is asked before they
	// are changed. Nil: nobody does.
	May func(ctx context.Context, current, oldest int64) error
}

// Run brings the tables up to what this version knows, and refuses those of
// a newer one, unless they say that this one can use them.
func (s Set) Run(ctx context.Context, pool *sql.DB, log *slog.Logger, owner Owner) error {
	provider, err := s.provider(pool)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	switch {
	case current > target && s.shared:
		if err := usable(ctx, pool, current, target); err != nil {
			return err
		}
		return owner.Check(ctx)
	case current > target:
		return fmt.Errorf("its schema is version %d, this holdfast knows %d: run the version that wrote it, or a newer one", current, target)
	}
	if current > 0 {
		if err := owner.Check(ctx); err != nil {
			return err
		}
	}
	if current == target {
		return nil
	}
	if current > 0 && owner.May != nil {
		if err := owner.May(ctx, current, s.oldest(target)); err != nil {
			return err
		}
	}
	applied, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, m := range applied {
		log.InfoContext(ctx, "migrated database", "revision", m.Source.Version, "duration", m.Duration)
	}
	return nil
}

// oldest is the oldest schema whose servers can use the one that Run results in.
func (s Set) oldest(target int64) int64 {
	if !s.shared || next == "incompatible" {
		return target
	}
	return OldestUser
}

// Latest is the version of the schema that Run results in.
func (s Set) Latest() (int64, error) {
	names, err := fs.Glob(files, s.folder+"/*.sql")
	if err != nil || len(names) == 0 {
		return 0, errors.Join(errors.New("there are no migrations"), err)
	}
	number, _, _ := strings.Cut(path.Base(names[len(names)-1]), "_") // Glob sorts
	last, err := strconv.ParseInt(number, 10, 64)
	if s.shared && next != "" {
		last++
	}
	return last, err
}

// Version is that of a database's schema, of either kind. Nothing is written.
func Version(ctx context.Context, db *sql.DB) (int64, error) {
	var version int64
	err := db.QueryRowContext(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}

func (s Set) provider(pool *sql.DB) (*goose.Provider, error) {
	folder, err := fs.Sub(files, s.folder)
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler))}
	if s.shared {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(pause, tries))
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
		if next != "" {
			last, err := s.Latest()
			if err != nil {
				return nil, err
			}
			options = append(options, goose.WithGoMigrations(nextMigration(last-1)))
		}
	}
	return goose.NewProvider(s.dialect, pool, folder, options...)
}
