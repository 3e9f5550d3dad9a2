package datastore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/durable"
)

// noteBoot records in which life of its machine the database is open. If it is another one
// than before, what was committed without waiting for the disk may be lost: of what counts
// later, that is what attempts of then have left. Their fences are at most the one that is
// recorded. Versions before this one have waited for the disk.
func (s *records) noteBoot(ctx context.Context, q querier) error {
	sum := sha256.Sum256([]byte(cmp.Or(durable.Boot(), randomHex(16)))) // unknown: another one each time
	boot, err := strconv.ParseInt(hex.EncodeToString(sum[:7]), 16, 64)
	if err != nil {
		return fmt.Errorf("number the machine's start: %w", err)
	}
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`INSERT INTO counters (name, value) VALUES ('boot', ?), ('before_boot', 0) ON CONFLICT (name) DO NOTHING`, []any{boot}},
		{`UPDATE counters SET value = (SELECT value FROM counters WHERE name = 'fence')
			WHERE name = 'before_boot' AND (SELECT value FROM counters WHERE name = 'boot') <> ?`, []any{boot}},
		{`UPDATE counters SET value = ? WHERE name = 'boot'`, []any{boot}},
	} {
		if _, err := q.exec(ctx, step.query, step.args...); err != nil {
			return fmt.Errorf("note the machine's start: %w", err)
		}
	}
	return q.row(ctx, `SELECT value FROM counters WHERE name = 'before_boot'`).Scan(&s.beforeBoot)
}

// MayLack reports whether something that an attempt has left may be lost, as its run does not
// write and the machine has been down since it was claimed. An attempt that has ended lacks
// nothing: its end was written with all that came before it.
func (s *RunStore) MayLack(ref holdfast.AttemptRef) bool { return ref.Fence <= s.beforeBoot }

// mayRelax reports whether what belongs to a running attempt may be committed without waiting for
// the disk: if its run does not write. That survives the process, and the machine with the
// attempt's end, which is durable; what is lost before that costs another attempt (MayLack).
// Nothing of a run that writes may be lost: its engine has changed the infrastructure.
func (s *records) mayRelax(ctx context.Context, run string) bool {
	if s.db.server != nil {
		return false // nobody here learns that the database's machine has been down
	}
	var kind holdfast.RunKind
	err := s.db.reader().row(ctx, `SELECT kind FROM runs WHERE id = ?`, run).Scan(&kind)
	return err == nil && !kind.Writes()
}

// commitFor returns how what belongs to a running attempt is committed.
func (s *records) commitFor(ctx context.Context, run string) func(context.Context, func(context.Context, querier) error) error {
	if s.mayRelax(ctx, run) {
		return s.db.writeRelaxed
	}
	return s.db.write
}
