package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table is how one is copied. Its name is that in both databases.
type table struct {
	name    string
	columns []column
	counter string   // the column that PostgreSQL numbers; empty: none
	after   []string // tables that it refers to
}

// column is one that is copied.
type column struct {
	name string
	kind kind
}

type kind string

const (
	kindNumber kind = "bigint"
	kindText   kind = "text"
	kindBytes  kind = "bytea"
)

// counters is the one table whose rows differ between the databases: see counters.go.
const counters = "counters"

// madeByTarget are columns that PostgreSQL alone has and fills.
var madeByTarget = map[string]bool{"changes.drawn": true}

// ofServers are tables that PostgreSQL alone has: of the servers that share the database now.
const ofServers = `('replicas', 'schema_use', 'asks', 'agents', 'fetches')`

// rowid is a column in PostgreSQL, and of every row in SQLite.
const rowid = "rowid"

func (t *table) names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// read selects what is copied. SQLite returns it in the order of its keys, in which changes
// were made.
func (t *table) read() string {
	return `SELECT ` + strings.Join(t.names(), ", ") + ` FROM ` + t.name + t.ours()
}

// ours leaves out what the server that has a database, here the copy, has in it itself.
func (t *table) ours() string {
	switch t.name {
	case "leases":
		return ` WHERE name <> 'server'`
	case counters:
		return ` WHERE value <> 0`
	}
	return ""
}

// planTables compares the schemas, and returns the tables in an order in which those that others
// refer to come first. A table or column that only one of the databases has is an error.
func planTables(ctx context.Context, source, target *sql.DB) ([]table, error) {
	from, err := columnsOfSource(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("read the schema of SQLite: %w", err)
	}
	to, err := tablesOfTarget(ctx, target)
	if err != nil {
		return nil, fmt.Errorf("read the schema of PostgreSQL: %w", err)
	}
	for name := range from {
		if to[name] == nil {
			return nil, fmt.Errorf("only SQLite has a table %s", name)
		}
	}
	for name, t := range to {
		if from[name] == nil {
			return nil, fmt.Errorf("only PostgreSQL has a table %s", name)
		}
		if err := t.match(from[name]); err != nil {
			return nil, err
		}
	}
	return inOrder(to)
}

// match checks that all columns of a table have a counterpart.
func (t *table) match(source map[string]bool) error {
	left := maps.Clone(source)
	for _, c := range t.columns {
		if !source[c.name] && c.name != rowid {
			return fmt.Errorf("only PostgreSQL has a column %s.%s", t.name, c.name)
		}
		delete(left, c.name)
	}
	for name := range left {
		return fmt.Errorf("only SQLite has a column %s.%s", t.name, name)
	}
	return nil
}

// columnsOfSource are the columns that are stored, by table.
func columnsOfSource(ctx context.Context, db *sql.DB) (map[string]map[string]bool, error) {
	found := make(map[string]map[string]bool)
	err := each(ctx, db, `SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite!_%' ESCAPE '!' AND t.name NOT LIKE 'goose!_%' ESCAPE '!' AND c.hidden = 0`,
		func(row *sql.Rows) error {
			var table, column string
			err := row.Scan(&table, &column)
			if found[table] == nil {
				found[table] = make(map[string]bool)
			}
			found[table][column] = true
			return err
		})
	return found, err
}

// tablesOfTarget are all tables, with the columns that can be written.
func tablesOfTarget(ctx context.Context, db *sql.DB) (map[string]*table, error) {
	found := make(map[string]*table)
	err := each(ctx, db, `SELECT table_name, column_name, data_type, is_generated = 'ALWAYS', is_identity = 'YES' FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name NOT LIKE 'goose%' AND table_name NOT IN `+ofServers+` ORDER BY table_name, ordinal_position`,
		func(row *sql.Rows) error {
			var in, name, dataType string
			var generated, numbered bool
			if err := row.Scan(&in, &name, &dataType, &generated, &numbered); err != nil {
				return err
			}
			t := found[in]
			if t == nil {
				t = &table{name: in}
				found[in] = t
			}
			if numbered {
				t.counter = name
			}
			if !generated && !madeByTarget[in+"."+name] {
				t.columns = append(t.columns, column{name, kind(dataType)})
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	return found, each(ctx, db, `SELECT f.relname, t.relname FROM pg_constraint AS c
		JOIN pg_class AS f ON f.oid = c.conrelid JOIN pg_class AS t ON t.oid = c.confrelid
		WHERE c.contype = 'f' AND c.connamespace = current_schema()::regnamespace`, func(row *sql.Rows) error {
		var from, to string
		err := row.Scan(&from, &to)
		if t := found[from]; t != nil && from != to {
			t.after = append(t.after, to)
		}
		return err
	})
}

// inOrder sorts tables by name, each after those that it refers to.
func inOrder(tables map[string]*table) ([]table, error) {
	var sorted []table
	placed := make(map[string]bool)
	for len(sorted) < len(tables) {
		before := len(sorted)
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			t := tables[name]
			if !placed[name] && !slices.ContainsFunc(t.after, func(other string) bool { return !placed[other] }) {
				sorted, placed[name] = append(sorted, *t), true
			}
		}
		if len(sorted) == before {
			return nil, errors.New("tables refer to each other in a circle")
		}
	}
	return sorted, nil
}

// onlyOurs refuses a database with tables of something else.
func onlyOurs(ctx context.Context, db *sql.DB) error {
	var ours bool
	var others int
	err := db.QueryRowContext(ctx, `SELECT COALESCE(bool_or(table_name = 'goose_db_version'), false), COUNT(*) FROM information_schema.tables
		WHERE table_schema = current_schema()`).Scan(&ours, &others)
	if err != nil {
		return fmt.Errorf("look for tables: %w", err)
	}
	if !ours && others > 0 {
		return fmt.Errorf("it has tables that are not Holdfast's: %w", ErrNotEmpty)
	}
	return nil
}

// each calls scan for each row that a query returns.
func each(ctx context.Context, db *sql.DB, query string, scan func(row *sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
