package datastore

import "context"

// The newest version of the state of a cluster that no longer exists stays for good: its
// name may be used again. The older ones go as its runs do.

// outlived is of states AS t, in our own backend, of clusters that no longer exist: the
// newest version and the last run are from before a time, and nothing is about to write
// another one.
const outlived = `t.current > 0 AND t.location LIKE 'clusters/%'
	AND EXISTS (SELECT 1 FROM state_versions AS c WHERE c.location = t.location AND c.version = t.current AND c.created_at < ?)
	AND NOT EXISTS (SELECT 1 FROM summaries AS l WHERE l.name = substr(t.location, 10) AND l.phase <> 'Deleted')
	AND NOT EXISTS (SELECT 1 FROM unsaved_states AS u WHERE u.location = t.location)
	AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.cluster = substr(t.location, 10) AND (r.created_at >= ? OR r.` + unfinished + `))`

// olderVersion is of state_versions AS v that were newest before the one that is. What is in
// quarantine is for a person to judge.
const olderVersion = `v.location = t.location AND v.quarantined = 0 AND v.version < t.current`

// pruneStates removes the older versions of states of clusters that no longer exist.
func (s *sweeper) pruneStates(ctx context.Context, gone removals) error {
	before := s.endedBefore()
	if before == 0 {
		return nil
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		locations, err := texts(ctx, s.db.reader(), `SELECT t.location FROM states AS t WHERE `+outlived+`
			AND EXISTS (SELECT 1 FROM state_versions AS v WHERE `+olderVersion+`) ORDER BY t.location LIMIT ? + 0`, before, before, pruneRuns)
		if err != nil || len(locations) == 0 {
			return err
		}
		var unused []content
		err = s.db.write(ctx, func(ctx context.Context, q querier) error {
			unused = nil
			for _, location := range locations {
				if err := q.alone(ctx, ofState(location)); err != nil {
					return err
				}
				err := q.each(ctx, func(row scanner) error {
					var c content
					err := row.Scan(&c.key, &c.inline)
					unused = append(unused, c)
					return err
				}, `DELETE FROM state_versions AS v WHERE v.location = ?
					AND EXISTS (SELECT 1 FROM states AS t WHERE `+olderVersion+` AND `+outlived+`) RETURNING blob, inline`, location, before, before)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(unused) == 0 {
			return err
		}
		gone.add("versions of states of clusters that are gone", keyEnded, len(unused))
		s.drop(ctx, unused...)
	}
}
