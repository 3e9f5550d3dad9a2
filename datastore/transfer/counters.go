package transfer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/durable"
)

// sourceCounters are what SQLite counts in its own rows.
type sourceCounters struct {
	rows   map[string]int64 // of the table counters
	drawn  map[string]int64 // the last number that was drawn, by table
	fences int64            // the highest fence that was ever given
}

func (c *copier) readCounters(ctx context.Context) (sourceCounters, error) {
	s := sourceCounters{rows: make(map[string]int64), drawn: make(map[string]int64)}
	into := func(to map[string]int64) func(*sql.Rows) error {
		return func(row *sql.Rows) error {
			var name string
			var value int64
			err := row.Scan(&name, &value)
			to[name] = value
			return err
		}
	}
	if err := each(ctx, c.source, `SELECT name, value FROM counters`, into(s.rows)); err != nil {
		return s, err
	}
	if err := each(ctx, c.source, `SELECT name, seq FROM sqlite_sequence`, into(s.drawn)); err != nil {
		return s, err
	}
	err := c.source.QueryRowContext(ctx, `SELECT MAX((SELECT COALESCE(MAX(fence), 0) FROM attempts), (SELECT COALESCE(MAX(fence), 0) FROM state_locks))`).
		Scan(&s.fences)
	s.fences = max(s.fences, s.rows["fence"])
	return s, err
}

// forTarget are the rows of the table counters in PostgreSQL. Fences are of a sequence there,
// and what SQLite notes of the machine's starts has no meaning; the number of the last
// change has a row.
func (s sourceCounters) forTarget() map[string]int64 {
	rows := maps.Clone(s.rows)
	for _, name := range []string{"fence", "boot", "before_boot"} {
		delete(rows, name)
	}
	rows["changes"] = s.drawn["changes"]
	return rows
}

// setCounters has everything that is numbered continue where it was.
func (c *copier) setCounters(ctx context.Context, tx *sql.Tx) error {
	s, err := c.readCounters(ctx)
	if err != nil {
		return err
	}
	for name, value := range s.forTarget() {
		_, err := tx.ExecContext(ctx, `INSERT INTO counters (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
		if err != nil {
			return err
		}
	}
	if s.fences > 0 {
		if _, err := tx.ExecContext(ctx, `SELECT setval('fences', $1::bigint)`, s.fences); err != nil {
			return err
		}
	}
	for _, t := range c.plan {
		if t.counter == "" {
			continue
		}
		var last int64
		if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(`+t.counter+`), 0) FROM `+t.name).Scan(&last); err != nil {
			return err
		}
		if last = max(last, s.drawn[t.name]); last == 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, `SELECT setval(pg_get_serial_sequence('`+t.name+`', '`+t.counter+`'), $1::bigint)`, last); err != nil {
			return err
		}
	}
	return nil
}

// compareCounters is an error if the target would count from elsewhere.
func (c *copier) compareCounters(ctx context.Context, target asker) error {
	s, err := c.readCounters(ctx)
	if err != nil {
		return err
	}
	for name, want := range s.forTarget() {
		var got int64
		if err := target.QueryRowContext(ctx, `SELECT value FROM counters WHERE name = $1`, name).Scan(&got); err != nil {
			return fmt.Errorf("counter %s: %w", name, err)
		}
		if got != want {
			return fmt.Errorf("counter %s is %d in the target, and %d in the source", name, got, want)
		}
	}
	var fences int64
	if err := target.QueryRowContext(ctx, `SELECT last_value FROM fences`).Scan(&fences); err != nil {
		return err
	}
	if fences < s.fences {
		return fmt.Errorf("fences are at %d in the target, and at %d in the source", fences, s.fences)
	}
	return nil
}

// settled refuses what is left to do at the next start on SQLite: records that are to be
// written again, and runs that may lack something that was committed without waiting for
// the disk, which SQLite's counters alone say.
func (c *copier) settled(ctx context.Context) error {
	var rebuilds, lacking int
	if err := c.source.QueryRowContext(ctx, `SELECT COUNT(*) FROM rebuilds`).Scan(&rebuilds); err != nil {
		return err
	}
	if rebuilds > 0 {
		return fmt.Errorf("some records are to be written again: %w", ErrOldSource)
	}
	err := c.source.QueryRowContext(ctx, `SELECT COUNT(*) FROM runs WHERE status = ? AND kind NOT IN (?, ?, ?) AND
		(fence <= (SELECT value FROM counters WHERE name = 'before_boot') OR ? <> (SELECT value FROM counters WHERE name = 'boot'))`,
		holdfast.RunRunning, holdfast.RunApply, holdfast.RunDestroy, holdfast.RunState, bootNumber()).Scan(&lacking)
	if errors.Is(err, sql.ErrNoRows) || err == nil && lacking == 0 {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("the machine was started again while runs were running, such as %d that may have to be repeated: %w", lacking, ErrOldSource)
	}
	return err
}

// bootNumber is what the datastore notes of the machine's start.
func bootNumber() int64 {
	sum := sha256.Sum256([]byte(durable.Boot()))
	number, _ := strconv.ParseInt(hex.EncodeToString(sum[:7]), 16, 64) // 56 bits
	return number
}
