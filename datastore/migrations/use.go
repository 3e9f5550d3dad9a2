package migrations

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
)

// A schema of PostgreSQL says which servers can use it: those of a minor version before it
// run next to newer ones while these replace them. The table schema_use has a row with the
// schema's version and the oldest one whose servers can use it. A migration that forgets to
// write it keeps older servers out.

// OldestUser is the oldest schema whose servers can use the one that PostgreSQL's migrations
// result in. The last one of them writes it. One that knows no runners (before 3) would hand
// runs to the agents of any.
const OldestUser = 3

// usable is an error if the tables have become what a program that knows an older schema
// cannot use.
func usable(ctx context.Context, pool *sql.DB, current, known int64) error {
	var version, oldest int64
	err := pool.QueryRowContext(ctx, `SELECT version, oldest FROM schema_use WHERE one = 1`).Scan(&version, &oldest)
	if err != nil {
		return fmt.Errorf("read who can use the schema: %w", err)
	}
	if version != current {
		oldest = current // it says nothing of this one
	}
	if known < oldest {
		return fmt.Errorf("its schema is version %d, which needs a holdfast that knows version %d at least, and this one knows %d: "+
			"run the version that wrote it, or a newer one", current, oldest, known)
	}
	return nil
}

// next is set by the linker for tests alone: a program that was built so knows one migration
// more, which older servers can use ("compatible") or not ("incompatible").
var next = ""

// nextMigration is that migration.
func nextMigration(after int64) *goose.Migration {
	version, oldest := after+1, after
	if next != "compatible" {
		oldest = version
	}
	return goose.NewGoMigration(version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `ALTER TABLE replicas ADD COLUMN later BIGINT`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE schema_use SET version = $1, oldest = $2`, version, oldest)
		return err
	}}, nil)
}
