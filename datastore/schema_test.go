package datastore_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/datastore/migrations"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
)

// TestSchemasAreEqual: what the migrations of both databases result in has the same tables,
// columns, keys and indexes. What PostgreSQL has besides is listed here.
func TestSchemasAreEqual(t *testing.T) {
	t.Parallel()
	lite := must[*sql.DB](t)(sql.Open("sqlite", "file:"+emptyPath(t)))
	t.Cleanup(func() { _ = lite.Close() })
	d := postgresserver.New(t, emptyPostgres(t))
	w := connect(t, postgres.Address{URL: d.URL(), Password: d.Password})
	t.Cleanup(func() { _ = w.Close() })

	want, got := schemaOfSQLite(t, lite), schemaOfPostgres(t, w)
	for _, besides := range []string{
		"index changes_by_number on changes (seq) unique", "index changes_unnumbered on changes (drawn) where seq is null",
	} {
		if !got[besides] {
			t.Errorf("PostgreSQL has no %s", besides)
		}
		delete(got, besides)
	}
	// Which servers share it. SQLite is one server's.
	maps.DeleteFunc(got, func(line string, _ bool) bool {
		return slices.ContainsFunc([]string{"replicas", "schema_use", "asks", "agents", "fetches"}, func(table string) bool {
			return strings.Contains(line, " "+table+".") || strings.Contains(line, " "+table+" ")
		}) || strings.Contains(line, " asks_by_number ")
	})
	var version, oldest int64
	if err := w.QueryRow(`SELECT version, oldest FROM schema_use`).Scan(&version, &oldest); err != nil {
		t.Fatal(err)
	}
	if latest := must[int64](t)(migrations.Postgres.Latest()); version != latest || oldest != migrations.OldestUser {
		t.Errorf("schema_use has version %d for %d and newer, want %d for %d: the last migration says it", version, oldest, latest, int64(migrations.OldestUser))
	}
	want["column changes.drawn bigint not null"], want["column commands.rowid bigint not null"] = true, true
	// SQLite's number is the key, PostgreSQL's comes later.
	delete(want, "column changes.seq bigint not null")
	delete(want, "key changes (seq)")
	want["column changes.seq bigint"] = true
	list := func(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
	if diff := cmp.Diff(list(want), list(got)); diff != "" {
		t.Errorf("the schemas differ (-sqlite +postgresql):\n%s", diff)
	}
	if len(want) < 300 {
		t.Errorf("%d tables, columns and indexes were found: they are more", len(want))
	}
}

func lines(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows := must[*sql.Rows](t)(db.QueryContext(context.WithoutCancel(t.Context()), query))
	defer rows.Close()
	var list []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		list = append(list, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func set(lists ...[]string) map[string]bool {
	all := make(map[string]bool)
	for _, line := range slices.Concat(lists...) {
		all[line] = true
	}
	return all
}

func schemaOfSQLite(t *testing.T, db *sql.DB) map[string]bool {
	t.Helper()
	const tables = `(SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose%') AS t`
	const types = `CASE c.type WHEN 'INTEGER' THEN 'bigint' WHEN 'TEXT' THEN 'text' ELSE 'bytea' END`
	columns := lines(t, db, `SELECT 'column ' || t.name || '.' || c.name || ' ' || `+types+` || CASE WHEN c."notnull" OR c.pk THEN ' not null' ELSE '' END
		FROM `+tables+`, pragma_table_xinfo(t.name) AS c`)
	keys := lines(t, db, `SELECT 'key ' || t.name || ' (' || (SELECT group_concat(k.name, ', ')
		FROM (SELECT c.name FROM pragma_table_xinfo(t.name) AS c WHERE c.pk ORDER BY c.pk) AS k) || ')' FROM `+tables)
	foreign := lines(t, db, `SELECT 'reference ' || t.name || '.' || f."from" || ' ' || f."table" FROM `+tables+`, pragma_foreign_key_list(t.name) AS f`)
	triggers := lines(t, db, `SELECT 'trigger ' || name || ' on ' || tbl_name FROM sqlite_master WHERE type = 'trigger'`)
	var indexes []string
	for _, index := range lines(t, db, `SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`) {
		indexes = append(indexes, plainIndex(t, index))
	}
	return set(columns, keys, foreign, triggers, indexes)
}

func schemaOfPostgres(t *testing.T, db *sql.DB) map[string]bool {
	t.Helper()
	const ours = ` NOT LIKE 'goose%'`
	columns := lines(t, db, `SELECT 'column ' || table_name || '.' || column_name || ' ' || data_type || CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END
		FROM information_schema.columns WHERE table_schema = 'public' AND table_name`+ours)
	keys := lines(t, db, `SELECT 'key ' || conrelid::regclass || ' (' || (SELECT string_agg(a.attname, ', ' ORDER BY k.place)
		FROM unnest(conkey) WITH ORDINALITY AS k (number, place) JOIN pg_attribute AS a ON a.attrelid = conrelid AND a.attnum = k.number) || ')'
		FROM pg_constraint WHERE contype = 'p' AND connamespace = 'public'::regnamespace AND conrelid::regclass::text`+ours)
	foreign := lines(t, db, `SELECT 'reference ' || conrelid::regclass || '.' || a.attname || ' ' || confrelid::regclass
		FROM pg_constraint, unnest(conkey) AS k (number), pg_attribute AS a WHERE contype = 'f' AND a.attrelid = conrelid AND a.attnum = k.number`)
	triggers := lines(t, db, `SELECT 'trigger ' || tgname || ' on ' || tgrelid::regclass FROM pg_trigger WHERE NOT tgisinternal`)
	var indexes []string
	for _, index := range lines(t, db, `SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%_pkey' AND tablename`+ours) {
		indexes = append(indexes, plainIndex(t, index))
	}
	if other := lines(t, db, `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = 'public' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C' AND table_name`+ours); len(other) > 0 {
		t.Errorf("these do not sort as Go does: %v", other)
	}
	return set(columns, keys, foreign, triggers, indexes)
}

var indexParts = regexp.MustCompile(`(?is)^CREATE (UNIQUE )?INDEX (\w+) ON (?:public\.)?(\w+) (?:USING btree )?\((.*?)\)(?: WHERE (.*))?$`)

// plainIndex is an index in words that both databases have for it.
func plainIndex(t *testing.T, create string) string {
	t.Helper()
	create = strings.Join(strings.Fields(create), " ")
	if strings.Contains(create, "posts_turns") {
		return "index posts_turns"
	}
	found := indexParts.FindStringSubmatch(create)
	if found == nil {
		t.Fatalf("an index that is not understood: %s", create)
	}
	text := fmt.Sprintf("index %s on %s (%s)", found[2], found[3], found[4])
	if found[5] != "" {
		text += " where " + plainCondition(found[5])
	}
	if found[1] != "" {
		text += " unique"
	}
	return text
}

// plainCondition is a condition without what PostgreSQL adds to it.
func plainCondition(condition string) string {
	for _, r := range []struct{ from, to string }{
		{`::\w+(\[\])?`, ``}, {`!~~`, `NOT LIKE`}, {` = ANY \(+ARRAY\[(.*?)\]\)+`, ` IN ($1)`}, {`[()]`, ``}, {`\s+`, ` `},
	} {
		condition = regexp.MustCompile(r.from).ReplaceAllString(condition, r.to)
	}
	return strings.ToLower(strings.TrimSpace(condition))
}
