package transfer_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/migrations"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/datastore/transfer"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

func TestMain(m *testing.M) { os.Exit(postgresserver.Main(m)) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func must[T any](t testing.TB) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func keys(t testing.TB, b byte) *seal.Keyring {
	t.Helper()
	return must[*seal.Keyring](t)(seal.NewKeyring(bytes.Repeat([]byte{b}, seal.KeySize)))
}

// installation is a data folder with its SQLite file.
func installation(t testing.TB) datastore.Options {
	t.Helper()
	return datastore.Options{Path: filepath.Join(memory.Dir(t), "db", "holdfast.db"), Keys: keys(t, 'k'), Now: func() time.Time { return noon }}
}

func openStore(t testing.TB, opts datastore.Options) *datastore.Store {
	t.Helper()
	store := must[*datastore.Store](t)(datastore.Open(t.Context(), opts))
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func closeStore(t testing.TB, store *datastore.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// to are the options of a copy to an empty database.
func to(t testing.TB, opts datastore.Options) transfer.Options {
	t.Helper()
	d := postgresserver.New(t, "")
	return transfer.Options{
		Path: opts.Path, To: postgres.Address{URL: d.URL(), Password: d.Password}, Keys: opts.Keys, Now: opts.Now,
	}
}

func connect(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db := must[*sql.DB](t)(sql.Open(driver, dsn))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func connectTo(t testing.TB, address postgres.Address) *sql.DB {
	t.Helper()
	password := must[string](t)(address.Password())
	return connect(t, "pgx", strings.Replace(address.URL, "@", ":"+password+"@", 1))
}

// execute runs queries on a SQLite file that is not open.
func execute(t testing.TB, path string, queries ...string) {
	t.Helper()
	db := must[*sql.DB](t)(sql.Open("sqlite", "file:"+path))
	db.SetMaxOpenConns(1)
	for _, query := range queries {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func texts(t testing.TB, db *sql.DB, query string) []string {
	t.Helper()
	rows := must[*sql.Rows](t)(db.QueryContext(t.Context(), query))
	defer rows.Close()
	var found []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		found = append(found, text)
	}
	return found
}

func count(t testing.TB, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// rowsEach is how many rows each table gets: more than one statement writes.
const rowsEach = 450

// fillEveryTable writes rows to every table that the schema has, whatever tables that are.
// Values of one row are alike, so that references fit.
func fillEveryTable(t testing.TB, path string) []string {
	t.Helper()
	db := connect(t, "sqlite", "file:"+path)
	tables := texts(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'goose%'
		AND name NOT IN ('identity', 'counters', 'rebuilds')`)
	if len(tables) < 30 {
		t.Fatalf("the schema has %d tables: %v", len(tables), tables)
	}
	var queries []string
	for _, table := range tables {
		var names, values []string
		for _, column := range texts(t, db, `SELECT name || ' ' || type FROM pragma_table_xinfo('`+table+`') WHERE hidden = 0`) {
			name, kind, _ := strings.Cut(column, " ")
			names = append(names, name)
			values = append(values, map[string]string{"INTEGER": `n`, "TEXT": `'ä' || n`, "BLOB": `CAST('blob' || n AS BLOB)`}[kind])
		}
		queries = append(queries, fmt.Sprintf(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
			INSERT OR REPLACE INTO %s (%s) SELECT %s FROM numbers`, rowsEach, table, strings.Join(names, ", "), strings.Join(values, ", ")))
	}
	if err := db.Close(); err != nil { // with it the journal goes
		t.Fatal(err)
	}
	execute(t, path, append([]string{`PRAGMA foreign_keys = 0`}, queries...)...)
	return tables
}

// TestEveryTableIsCopied: what the schema has is copied, so that a table that is added is never
// forgotten; also what SQLite keeps and PostgreSQL does not, and what is empty or NULL.
func TestEveryTableIsCopied(t *testing.T) {
	t.Parallel()
	opts := installation(t)
	closeStore(t, openStore(t, opts))
	tables := fillEveryTable(t, opts.Path)
	execute(t, opts.Path,
		`INSERT INTO audit (recorded_at, actor, action, object, detail) VALUES (-9223372036854775808, '', 'x', CAST(x'ff' AS TEXT), 'a' || char(0) || 'b')`,
		`UPDATE bundles SET inline = NULL WHERE digest = 'ä7'`, `UPDATE bundles SET inline = x'' WHERE digest = 'ä8'`,
		`UPDATE counters SET value = 9000 WHERE name = 'fence'`, `UPDATE sqlite_sequence SET seq = 7000 WHERE name = 'audit'`,
		`DELETE FROM changes WHERE seq = (SELECT MAX(seq) FROM changes)`)

	copying := to(t, opts)
	result := must[transfer.Result](t)(transfer.Copy(t.Context(), copying))
	db := connectTo(t, copying.To)
	kept := connect(t, "sqlite", "file:"+result.Kept)
	for _, table := range tables {
		if n, want := count(t, db, table), count(t, kept, table); n != want || n < rowsEach-1 {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	if len(result.Tables) != len(tables)+2 { // identity and rebuilds
		t.Errorf("%d tables were compared, want %d", len(result.Tables), len(tables)+2)
	}
	for query, want := range map[string]string{
		`SELECT object || ' ' || detail || ' ' || recorded_at FROM audit WHERE action = 'x'`:                                             "\uFFFD a\uFFFDb -9223372036854775808",
		`SELECT string_agg(COALESCE(length(inline)::text, 'NULL'), ' ' ORDER BY digest) FROM bundles WHERE digest IN ('ä6', 'ä7', 'ä8')`: "5 NULL 0",
		`SELECT nextval('fences')::text`:                                                         "9001",
		`SELECT nextval(pg_get_serial_sequence('audit', 'id'))::text`:                            "7001",
		`SELECT nextval(pg_get_serial_sequence('transitions', 'id'))::text`:                      fmt.Sprint(rowsEach + 1),
		`SELECT value::text FROM counters WHERE name = 'changes'`:                                texts(t, kept, `SELECT seq FROM sqlite_sequence WHERE name = 'changes'`)[0],
		`SELECT (COUNT(*) FILTER (WHERE drawn IS NULL OR seq IS NULL))::text FROM changes`:       "0",
		`SELECT COUNT(*)::text FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'O'`:      "0",
		`SELECT COUNT(*)::text FROM counters WHERE name NOT IN ('changes', 'changes_forgotten')`: "0",
	} {
		if got := texts(t, db, query); len(got) != 1 || got[0] != want {
			t.Errorf("%s = %q, want %q", query, got, want)
		}
	}
	if _, err := os.Stat(opts.Path); err == nil {
		t.Error("the SQLite file has its name still")
	}
}

// TestCopiedInstallation: a server continues on PostgreSQL with what it had, numbers continue,
// and nothing starts on SQLite.
func TestCopiedInstallation(t *testing.T) {
	t.Parallel()
	opts := installation(t)
	store := openStore(t, opts)
	large := bytes.Repeat([]byte("a plan "), 100<<10/7)
	run := holdfast.Run{
		ID: "run-1", Cluster: "alpha", Kind: holdfast.RunApply, Status: holdfast.RunQueued, CreatedAt: noon,
		RunSpec: holdfast.RunSpec{StateLocation: "clusters/alpha", Document: holdfast.Cluster{Name: "alpha"}},
	}
	if err := store.CreateRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	run = must[holdfast.Run](t)(store.ClaimRun(t.Context(), run.ID, protocol.AgentRef{ID: "agent"}, noon, 0))
	if err := store.PutArtefact(t.Context(), run.Ref(), "document", bytes.NewReader(large)); err != nil {
		t.Fatal(err)
	}
	must[holdfast.ClusterRecord](t)(store.SaveCluster(t.Context(), holdfast.ClusterRecord{Name: "alpha"}))
	changes := must[int64](t)(store.LastChange(t.Context()))

	copying := to(t, opts)
	if _, err := transfer.Copy(t.Context(), copying); !errors.Is(err, holdfast.ErrLocked) {
		t.Fatalf("Copy() while a server runs = %v", err)
	}
	closeStore(t, store)
	must[transfer.Result](t)(transfer.Copy(t.Context(), copying))
	if _, err := datastore.Open(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "set datastore.url") {
		t.Errorf("Open() without PostgreSQL = %v", err)
	}

	opts.Postgres = copying.To
	store = openStore(t, opts)
	r := must[io.ReadCloser](t)(store.Artefact(t.Context(), run.ID, "document"))
	defer r.Close()
	if got := must[[]byte](t)(io.ReadAll(r)); !bytes.Equal(got, large) {
		t.Error("the artefact is another one")
	}
	run.Status = holdfast.RunApplied
	if _, err := store.EndAttempt(t.Context(), run.Ref(), run, nil); err != nil {
		t.Errorf("the attempt that was running cannot end: %v", err)
	}
	next := run
	next.ID, next.Status, next.Attempt, next.Fence, next.Version = "run-2", holdfast.RunQueued, 0, 0, 0
	if err := store.CreateRun(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if next = must[holdfast.Run](t)(store.ClaimRun(t.Context(), next.ID, protocol.AgentRef{ID: "agent"}, noon, 0)); next.Fence <= run.Fence {
		t.Errorf("fence %d follows %d", next.Fence, run.Fence)
	}
	list, err := store.Changes(t.Context(), changes, 10)
	if err != nil || len(list) != 2 || list[0].Seq <= changes {
		t.Errorf("Changes() after %d = %v, %v", changes, list, err)
	}
}

// TestCopyIsRefused: what is not empty, not ours, or not up to date.
func TestCopyIsRefused(t *testing.T) {
	t.Parallel()
	opts := installation(t)
	missing := to(t, opts)
	if _, err := transfer.Copy(t.Context(), missing); err == nil || !strings.Contains(err.Error(), "no records in SQLite") {
		t.Errorf("of nothing: %v", err)
	}
	closeStore(t, openStore(t, opts))

	foreign := to(t, opts)
	must[sql.Result](t)(connectTo(t, foreign.To).ExecContext(t.Context(), `CREATE TABLE invoices (id BIGINT)`))
	if _, err := transfer.Copy(t.Context(), foreign); !errors.Is(err, transfer.ErrNotEmpty) {
		t.Errorf("to somebody else's database: %v", err)
	}

	used := to(t, opts)
	other := installation(t)
	other.Postgres = used.To
	closeStore(t, openStore(t, other))
	if _, err := transfer.Copy(t.Context(), used); !errors.Is(err, transfer.ErrNotEmpty) {
		t.Errorf("to another installation's database: %v", err)
	}

	wrong := to(t, opts)
	wrong.Keys = keys(t, 'x')
	if _, err := transfer.Copy(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("with another key: %v", err)
	}

	fine := to(t, opts)
	latest := must[int64](t)(migrations.SQLite.Latest())
	for _, c := range []struct{ do, undo string }{
		{`INSERT INTO rebuilds (name) VALUES ('pages')`, `DELETE FROM rebuilds`},
		{
			fmt.Sprintf(`DELETE FROM goose_db_version WHERE version_id = %d`, latest),
			fmt.Sprintf(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, 1)`, latest),
		},
		{
			`UPDATE counters SET value = 1 WHERE name = 'boot'; INSERT INTO runs SELECT 'r', '', 'plan', 'running', '', 0, 'l', 1, 1, 1, NULL, 0, '', 0, 0, 1, x'', '', '', '', ''`,
			`DELETE FROM runs`,
		},
	} {
		execute(t, opts.Path, c.do)
		if _, err := transfer.Copy(t.Context(), fine); !errors.Is(err, transfer.ErrOldSource) {
			t.Errorf("after %s: %v", c.do, err)
		}
		execute(t, opts.Path, c.undo)
	}
	execute(t, opts.Path, `ALTER TABLE tags ADD COLUMN more TEXT`)
	if _, err := transfer.Copy(t.Context(), fine); err == nil || !strings.Contains(err.Error(), "only SQLite has a column tags.more") {
		t.Errorf("with a column that is not known: %v", err)
	}
	execute(t, opts.Path, `ALTER TABLE tags DROP COLUMN more`)
	must[transfer.Result](t)(transfer.Copy(t.Context(), fine))
}

// TestInterruptedCopy: one that was interrupted has left the source as it was and nothing in
// the target, and is begun again; one that was interrupted behind its end is finished.
func TestInterruptedCopy(t *testing.T) {
	t.Parallel()
	opts := installation(t)
	closeStore(t, openStore(t, opts))
	fillEveryTable(t, opts.Path)
	execute(t, opts.Path, `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000)
		INSERT INTO tags (repo, tag, revision) SELECT 'more', 'v' || n, '' FROM numbers`)
	before := must[[]byte](t)(os.ReadFile(opts.Path))

	copying := to(t, opts)
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := copying
	interrupted.Progress = func(doing string, _, _ int64) {
		if doing == "compare tags" {
			cancel()
		}
	}
	if _, err := transfer.Copy(ctx, interrupted); !errors.Is(err, context.Canceled) {
		t.Fatalf("Copy() = %v", err)
	}
	if after := must[[]byte](t)(os.ReadFile(opts.Path)); !bytes.Equal(before, after) {
		t.Error("the source was changed")
	}
	if n := count(t, connectTo(t, copying.To), "tags"); n != 0 {
		t.Errorf("%d tags are in the target", n)
	}
	result := must[transfer.Result](t)(transfer.Copy(t.Context(), copying))
	if result.Resumed {
		t.Error("a copy with an empty target was resumed")
	}

	// As if it had been killed before the folder knew.
	for _, err := range []error{os.Rename(result.Kept, opts.Path), os.Remove(filepath.Join(filepath.Dir(opts.Path), "postgres"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := datastore.Open(t.Context(), datastore.Options{Path: opts.Path, Keys: opts.Keys, Postgres: copying.To}); err == nil {
		t.Error("a server has started on a copy that was not finished")
	}
	again := must[transfer.Result](t)(transfer.Copy(t.Context(), copying))
	if !again.Resumed || len(again.Tables) != len(result.Tables) || again.Tables[3] != result.Tables[3] {
		t.Errorf("the second copy = %+v", again)
	}

	for _, err := range []error{os.Rename(again.Kept, opts.Path), os.Remove(filepath.Join(filepath.Dir(opts.Path), "postgres"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	must[sql.Result](t)(connectTo(t, copying.To).ExecContext(t.Context(), `UPDATE tags SET revision = 'x' WHERE tag = 'v7'`))
	if _, err := transfer.Copy(t.Context(), copying); !errors.Is(err, transfer.ErrNotEmpty) || !strings.Contains(err.Error(), "table tags") {
		t.Errorf("onto what was changed since: %v", err)
	}
}
