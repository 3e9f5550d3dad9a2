package transfer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/statements"
)

const (
	// batchRows and batchBytes bound what one statement writes, and what is in memory.
	batchRows, batchBytes = 200, 4 << 20
	// progressRows is how many rows pass between two reports of progress.
	progressRows = 1000
)

// asker reads from a database, or in a transaction of one.
type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// transfer writes all tables in one transaction, and reads them back before it ends.
func (c *copier) transfer(ctx context.Context) ([]Table, error) {
	tx, err := c.target.Writers.BeginTx(ctx, nil)
	if err != nil {
		return nil, postgres.Explained(err)
	}
	defer func() { _ = tx.Rollback() }() // nothing, after a commit
	// It takes as long as it takes.
	const patient = `SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0`
	for _, query := range strings.Split(patient, "; ") {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return nil, postgres.Explained(err)
		}
	}
	write := statements.NewNumbered(c.target.Writers).Within(tx)
	want := make(map[string]*digest, len(c.plan))
	for _, t := range c.plan {
		if t.name == counters {
			continue
		}
		if want[t.name], err = c.transferTable(ctx, write, t); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.name, postgres.Explained(err))
		}
	}
	if err := c.setCounters(ctx, tx); err != nil {
		return nil, fmt.Errorf("counters: %w", postgres.Explained(err))
	}
	tables, err := c.compare(ctx, tx, want)
	if err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, fmt.Errorf("commit: %w: copy again, which finds out whether it took effect", postgres.Explained(err))
	}
	return tables, nil
}

// transferTable copies the rows of a table. Its triggers would note each as a change.
func (c *copier) transferTable(ctx context.Context, write *statements.Tx, t table) (*digest, error) {
	if _, err := write.ExecContext(ctx, `ALTER TABLE `+t.name+` DISABLE TRIGGER USER`); err != nil {
		return nil, err
	}
	var batch []any
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, err := write.ExecContext(ctx, t.insert(len(batch)/len(t.columns)), batch...)
		batch, size = batch[:0], 0
		return err
	}
	sum, err := c.readRows(ctx, c.source, t, "copy", func(row []any, bytes int) error {
		batch, size = append(batch, row...), size+bytes
		if len(batch) < batchRows*len(t.columns) && size < batchBytes {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		_, err = write.ExecContext(ctx, `ALTER TABLE `+t.name+` ENABLE TRIGGER USER`)
	}
	return sum, err
}

func (t *table) insert(rows int) string {
	row := `(?` + strings.Repeat(`, ?`, len(t.columns)-1) + `)`
	return `INSERT INTO ` + t.name + ` (` + strings.Join(t.names(), ", ") + `) VALUES ` + row + strings.Repeat(`, `+row, rows-1)
}

// readRows calls visit with each row of a table, as PostgreSQL takes it, and returns the digest of all.
func (c *copier) readRows(ctx context.Context, from asker, t table, doing string, visit func(row []any, bytes int) error) (*digest, error) {
	var total int64
	if err := from.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+t.name+t.ours()).Scan(&total); err != nil {
		return nil, err
	}
	rows, err := from.QueryContext(ctx, t.read())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sum := &digest{}
	row, targets := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i := range row {
		targets[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		size, err := t.plain(row)
		if err != nil {
			return nil, err
		}
		sum.add(row)
		if err := visit(row, size); err != nil {
			return nil, err
		}
		if sum.rows%progressRows == 0 {
			c.opts.Progress(doing+" "+t.name, sum.rows, total)
		}
	}
	return sum, rows.Err()
}

// plain makes the values of a row those of its columns' kinds, as both databases return them.
// PostgreSQL stores no text with a zero byte, or that is not UTF-8: the datastore replaces
// such bytes there.
func (t *table) plain(row []any) (size int, err error) {
	for i, c := range t.columns {
		switch value := row[i].(type) {
		case nil:
			continue
		case int64:
			if c.kind == kindNumber {
				size += 8
				continue
			}
		case string:
			if c.kind == kindText {
				row[i] = strings.ReplaceAll(strings.ToValidUTF8(value, "\uFFFD"), "\x00", "\uFFFD")
				size += len(value)
				continue
			}
			if c.kind == kindBytes {
				row[i] = []byte(value)
				size += len(value)
				continue
			}
		case []byte:
			if c.kind == kindBytes {
				if value == nil { // an empty one of SQLite, which would become NULL
					row[i] = []byte{}
				}
				size += len(value)
				continue
			}
		}
		return 0, fmt.Errorf("column %s has a %T, which is not a %s", c.name, row[i], c.kind)
	}
	return size, nil
}

// compare reads all tables of the target, and returns what it read if that is what was copied.
func (c *copier) compare(ctx context.Context, target asker, want map[string]*digest) ([]Table, error) {
	var tables []Table
	for _, t := range c.plan {
		if t.name == counters {
			continue
		}
		got, err := c.readRows(ctx, target, t, "compare", func([]any, int) error { return nil })
		if err != nil {
			return nil, fmt.Errorf("read %s back: %w", t.name, postgres.Explained(err))
		}
		if *got != *want[t.name] {
			return nil, fmt.Errorf("table %s has %d rows with the digest %s in the target, and %d with %s in the source",
				t.name, got.rows, got, want[t.name].rows, want[t.name])
		}
		tables = append(tables, Table{Name: t.name, Rows: got.rows, Digest: got.String()})
	}
	return tables, c.compareCounters(ctx, target)
}

// compareAgain compares what an earlier copy has written, as nobody knows how far it got.
func (c *copier) compareAgain(ctx context.Context) ([]Table, error) {
	want := make(map[string]*digest, len(c.plan))
	for _, t := range c.plan {
		var err error
		if want[t.name], err = c.readRows(ctx, c.source, t, "read", func([]any, int) error { return nil }); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	tables, err := c.compare(ctx, c.target.Writers, want)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("it was copied before, and was changed since: %w", ErrNotEmpty), err)
	}
	return tables, nil
}

// digest is of rows in any order: the sum of theirs.
type digest struct {
	rows int64
	sum  [4]uint64
}

func (d *digest) add(row []any) {
	var encoded []byte
	for _, value := range row {
		switch value := value.(type) {
		case nil:
			encoded = append(encoded, 'n')
		case int64:
			encoded = binary.BigEndian.AppendUint64(append(encoded, 'i'), uint64(value)) //nolint:gosec // its bits
		case string:
			encoded = append(binary.AppendUvarint(append(encoded, 't'), uint64(len(value))), value...)
		case []byte:
			encoded = append(binary.AppendUvarint(append(encoded, 'b'), uint64(len(value))), value...)
		}
	}
	one := sha256.Sum256(encoded)
	for i := range d.sum {
		d.sum[i] += binary.BigEndian.Uint64(one[8*i:])
	}
	d.rows++
}

func (d *digest) String() string {
	var raw []byte
	for _, part := range d.sum {
		raw = binary.BigEndian.AppendUint64(raw, part)
	}
	return hex.EncodeToString(raw)[:32]
}
