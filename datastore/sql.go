package datastore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/migrations"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/statements"
	"github.com/holdfast-dev/holdfast/datastore/trouble"
)

// dialect is what differs between databases. Parameters of queries are "?", which
// the pools of PostgreSQL number; INSERT ... ON CONFLICT and RETURNING are the same there.
// A limit is written "LIMIT ? + 0": SQLite compiles a query again each time that a
// bare parameter of LIMIT or OFFSET is bound.
type dialect struct {
	migrations migrations.Set
	// duplicate reports whether err is a violated unique constraint.
	duplicate func(err error) bool
	// explained says in words what is wrong with the database.
	explained func(err error) error

	// The rest is for a database with several writers. SQLite needs nothing: its writers
	// come one by one.

	// forUpdate ends a SELECT of rows that the transaction then writes.
	forUpdate string
	// forShare ends one of rows that must stay as they are until the transaction has ended.
	forShare string
	// forKeyShare ends one of rows that must not go before the transaction has ended.
	forKeyShare string
	// skipLocked ends one of rows that another transaction may have instead.
	skipLocked string
	// advisoryLock has two transactions that take the same one come one by one.
	advisoryLock string
	// sharedLock has it wait for the former only.
	sharedLock string

	clock      string // the time by which servers exclude one another, with the parameter of records.by
	lastChange string // the number of the newest change that there ever was
	nextFence  string // draws a fence
	like       string // LIKE, whatever the case of ASCII letters
}

var sqliteDialect = &dialect{
	migrations: migrations.SQLite,
	duplicate: func(err error) bool {
		var failure *sqlite.Error
		return errors.As(err, &failure) &&
			(failure.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || failure.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
	},
	explained:  statements.Explained,
	clock:      `?`,
	lastChange: `(SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'changes')`,
	nextFence:  `UPDATE counters SET value = value + 1 WHERE name = 'fence' RETURNING value`,
	like:       `LIKE`,
}

// database is one database with a writer and several readers; of PostgreSQL, with several
// of both.
type database struct {
	*dialect
	reading *dialect // locks nothing
	readers *statements.Pool
	durable *statements.Pool // a commit is on disk when it returns
	relaxed *statements.Pool // a commit survives the process, and the machine from the next durable one on

	// writing is held by the one writer; unlike a mutex it can be waited for
	// with a context, and unlike SQLite's own lock it is fair.
	writing chan struct{}

	server *postgres.Pools // nil: SQLite
	// rehearsed has tests run each transaction twice, and roll back the first time.
	rehearsed bool

	disk  trouble.Last // what was wrong with the database, or its disk, in the last write
	index *os.File     // of the write-ahead log, with its blocks reserved
}

const readerConns = 4

// openSQLite opens the file in WAL mode. What the three pools differ in is how
// a commit is synced, and that readers cannot write.
func openSQLite(ctx context.Context, path string) (*database, error) {
	db := &database{dialect: sqliteDialect, reading: sqliteDialect, writing: make(chan struct{}, 1)}
	pools := []struct {
		pool   **statements.Pool
		conns  int
		pragma []string
		lock   string
	}{
		{&db.durable, 1, []string{"synchronous(FULL)"}, "immediate"},
		{&db.relaxed, 1, []string{"synchronous(NORMAL)"}, "immediate"},
		{&db.readers, readerConns, []string{"query_only(1)"}, "deferred"},
	}
	for _, p := range pools {
		query := url.Values{
			"_pragma": append(p.pragma, "busy_timeout(10000)", "foreign_keys(1)", "journal_mode(WAL)", "journal_size_limit(67108864)"),
			"_txlock": {p.lock},
		}
		dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
		pool, err := sql.Open("sqlite", dsn.String())
		if err != nil {
			return db, err
		}
		pool.SetMaxOpenConns(p.conns)
		pool.SetMaxIdleConns(p.conns)
		*p.pool = statements.New(pool)
		if err := pool.PingContext(ctx); err != nil {
			return db, err
		}
	}
	return db, nil
}

func (db *database) close() error {
	if db.server != nil {
		return db.server.Close()
	}
	// A write in progress ends first; none begins after.
	db.writing <- struct{}{}
	defer func() { <-db.writing }()
	var errs []error
	for _, s := range []*statements.Pool{db.readers, db.relaxed, db.durable} {
		if s != nil {
			errs = append(errs, s.DB.Close()) // and with it the statements
		}
	}
	if db.index != nil {
		errs = append(errs, db.index.Close()) // only now: it takes SQLite's locks with it
	}
	return errors.Join(errs...)
}

// querier runs queries in a transaction, or each for itself.
type querier struct {
	*dialect
	conn interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
}

// exec returns how many rows were affected.
func (q querier) exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := q.conn.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (q querier) row(ctx context.Context, query string, args ...any) scanner {
	if q.dialect != sqliteDialect {
		return postgres.Row{Row: q.conn.QueryRowContext(ctx, query, args...)}
	}
	return statements.Row{Row: q.conn.QueryRowContext(ctx, query, args...)}
}

// each calls scan for every row.
func (q querier) each(ctx context.Context, scan func(row scanner) error, query string, args ...any) (err error) {
	defer func() { err = q.explained(err) }()
	rows, err := q.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

func (db *database) reader() querier { return querier{db.reading, db.readers} }

// read runs several queries on one snapshot.
func (db *database) read(ctx context.Context, do func(ctx context.Context, q querier) error) (err error) {
	defer func() { err = db.explained(err) }()
	if db.server != nil {
		return db.server.Read(ctx, func(ctx context.Context, tx *sql.Tx) error {
			return do(ctx, querier{db.reading, db.readers.Within(tx)})
		})
	}
	tx, err := db.readers.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	conn := db.readers.Within(tx)
	defer conn.Settle(ctx)
	defer func() { _ = tx.Rollback() }()
	return do(ctx, querier{db.reading, conn})
}

// write runs do in a transaction and commits it durably if do returns nil; of SQLite alone,
// of PostgreSQL next to others, and again from its beginning if it had no effect: do must be
// able to run more than once. Once begun it is not canceled: SQLite would roll back, and the
// caller could not tell what was written.
func (db *database) write(ctx context.Context, do func(ctx context.Context, q querier) error) error {
	return db.commit(ctx, db.durable, do)
}

// writeRelaxed is write without waiting for the disk: for what is many and
// small and may be lost with the machine's power, but not with the process. PostgreSQL waits
// for its disk all the same: nobody here learns that its machine has lost something.
func (db *database) writeRelaxed(ctx context.Context, do func(ctx context.Context, q querier) error) error {
	return db.commit(ctx, db.relaxed, do)
}

func (db *database) commit(ctx context.Context, pool *statements.Pool, do func(ctx context.Context, q querier) error) error {
	if db.rehearsed {
		do = db.rehearsal(do)
	}
	var err error
	if db.server != nil {
		err = db.server.Write(ctx, func(ctx context.Context, tx *sql.Tx) error { return do(ctx, querier{db.dialect, pool.Within(tx)}) })
	} else {
		err = db.transact(ctx, pool, do)
	}
	err = db.explained(err)
	db.disk.Note(err)
	return err
}

func (db *database) transact(ctx context.Context, pool *statements.Pool, do func(ctx context.Context, q querier) error) error {
	select {
	case db.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-db.writing }()
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	tx, err := pool.DB.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	conn := pool.Within(tx)
	defer conn.Settle(ctx)
	defer func() { _ = tx.Rollback() }()
	if err := do(ctx, querier{db.dialect, conn}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		// database/sql forgets the transaction; the connection may still be in it.
		_, _ = pool.DB.ExecContext(ctx, `ROLLBACK`)
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// rehearsal is do after a first time that was rolled back, as PostgreSQL may have it.
func (db *database) rehearsal(do func(ctx context.Context, q querier) error) func(context.Context, querier) error {
	return func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, `SAVEPOINT rehearsal`); err != nil {
			return err
		}
		_ = do(ctx, q)
		for _, end := range []string{`ROLLBACK TO SAVEPOINT rehearsal`, `RELEASE SAVEPOINT rehearsal`} {
			if _, err := q.exec(ctx, end); err != nil {
				return err
			}
		}
		return do(ctx, q)
	}
}

// alone has no other transaction do anything at the same time that names one of the same
// things. It comes before the transaction reads what it decides by.
func (q querier) alone(ctx context.Context, names ...string) error {
	if q.advisoryLock == "" {
		return nil
	}
	for _, name := range distinct(slices.Clone(names)) { // sorted: nobody waits in a circle
		if _, err := q.exec(ctx, q.advisoryLock, name); err != nil {
			return fmt.Errorf("wait for others at %s: %w", name, err)
		}
	}
	return nil
}

// rewrite writes the file again, with nothing but what is in the database.
func (db *database) rewrite(ctx context.Context) (err error) {
	defer func() { err = statements.Explained(err) }()
	select {
	case db.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-db.writing }()
	if _, err := db.durable.DB.ExecContext(ctx, `VACUUM`); err != nil {
		return err
	}
	// Only now it is in the file, and no longer in the log.
	var busy, logged, copied int
	if err := db.durable.DB.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &logged, &copied); err != nil {
		return err
	}
	if busy != 0 {
		return errors.New("somebody else reads the database")
	}
	return nil
}

// errStop ends an each early; it is not an error.
var errStop = errors.New("stop")

// notFound turns "no rows" into an ErrNotFound that names the thing.
func notFound(err error, thing, name string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s %q: %w", thing, name, holdfast.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("read %s %q: %w", thing, name, err)
	}
	return nil
}

// nanos is t as it is stored; zero for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

type conditions = statements.Conditions

// in adds column IN (values) if there are any.
func in[T ~string](c *conditions, column string, values []T) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = string(v)
	}
	c.Add(column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")", args...)
}

// encodeList and decodeList keep a list of names in a column, in plain text.
func encodeList(list []string) string {
	if len(list) == 0 {
		return "[]"
	}
	data, err := json.Marshal(list)
	if err != nil {
		panic(err) // strings always encode
	}
	return string(data)
}

func decodeList(text string) ([]string, error) {
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("decode list: %w", err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, nil
}
