// What was refused of states, and how much of it is kept.

package datastore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-dev/holdfast"
)

// What an attempt keeps in quarantine: so many states, of so many bytes. An engine
// uploads all that it knows each time, so its newest one is worth the others.
const (
	maxQuarantined      = 20
	maxQuarantinedBytes = 64 << 20
)

// pruneQuarantine removes the oldest states that an attempt, or a person, has in
// quarantine at a location beyond those that are kept, and returns their contents. The
// newest stays whatever its size, and so does the one that is to be pushed.
func (s *StateStore) pruneQuarantine(ctx context.Context, q querier, location string, by holdfast.AttemptRef) ([]content, error) {
	var pushed int64
	err := q.row(ctx, `SELECT version FROM unsaved_states WHERE location = ?`, location).Scan(&pushed)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	var pruned []content
	var versions []int64
	var n, size int64 // of those that are newer, and of the one that is looked at
	err = q.each(ctx, func(row scanner) error {
		v, c, err := scanVersion(row)
		n, size = n+1, size+v.Size
		if n > 1 && v.Version != pushed && (n > maxQuarantined || size > s.quarantine) {
			versions, pruned = append(versions, v.Version), append(pruned, c)
		}
		return err
	}, `SELECT `+versionColumns+` FROM state_versions
		WHERE location = ? AND run = ? AND attempt = ? AND quarantined = 1 ORDER BY version DESC`, location, by.Run, by.Attempt)
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		if _, err := q.exec(ctx, `DELETE FROM state_versions WHERE location = ? AND version = ?`, location, version); err != nil {
			return nil, err
		}
	}
	return pruned, nil
}
