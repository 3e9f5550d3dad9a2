package datastore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// A lane is stored as a JSON array: priority, repository and number of the pull
// request, project, provider, kind; and the runner, if it is another one than the local one.

// laneOf is the lane of a run as it is stored.
func laneOf(run holdfast.Run) string {
	pr := servedPullRequest(run)
	parts := []string{
		strconv.Itoa(priority(run)), pr.Repo, strconv.Itoa(pr.Number), run.Document.Project, run.Document.Provider, string(run.Kind),
	}
	if runner := run.RunnerName(); runner != holdfast.LocalRunner {
		parts = append(parts, runner)
	}
	return encodeList(parts)
}

// servedPullRequest is the pull request that a run was made for, or of an apply the one
// whose review it applies; zero if there is none.
func servedPullRequest(run holdfast.Run) holdfast.PullRequestRef {
	if !run.PullRequest.IsZero() {
		return run.PullRequest
	}
	for _, review := range run.Reviews {
		if run.Shown == "" || review.Run == run.Shown {
			return review.PullRequest
		}
	}
	return holdfast.PullRequestRef{}
}

func parseLane(text string, since int64) (holdfast.Lane, error) {
	parts, err := decodeList(text)
	if err != nil {
		return holdfast.Lane{}, err
	}
	if len(parts) != 6 && len(parts) != 7 {
		return holdfast.Lane{}, fmt.Errorf("lane %q has %d parts", text, len(parts))
	}
	runner := holdfast.LocalRunner
	if len(parts) == 7 {
		runner = parts[6]
	}
	priority, err := strconv.Atoi(parts[0])
	number, numberErr := strconv.Atoi(parts[2])
	if err := errors.Join(err, numberErr); err != nil {
		return holdfast.Lane{}, fmt.Errorf("lane %q: %w", text, err)
	}
	return holdfast.Lane{
		Priority: priority, PullRequest: holdfast.PullRequestRef{Repo: parts[1], Number: number},
		Project: parts[3], Provider: parts[4], Kind: holdfast.RunKind(parts[5]), Runner: runner, Since: fromNanos(since),
	}, nil
}

// turnsKept is how long it is remembered that a lane was served.
const turnsKept = time.Hour

// takeTurn notes that a lane is served. If another claim is about to note the same, that will
// do: all claims of a lane would otherwise wait for one another until they are committed.
func takeTurn(ctx context.Context, q querier, lane string, now time.Time) error {
	n, err := q.exec(ctx, `UPDATE lane_turns SET served_at = ? WHERE lane IN (SELECT lane FROM lane_turns WHERE lane = ?`+q.skipLocked+`)`,
		nanos(now), lane)
	if err == nil && n == 0 {
		n, err = q.exec(ctx, `INSERT INTO lane_turns (lane, served_at) VALUES (?, ?) ON CONFLICT (lane) DO NOTHING`, lane, nanos(now))
		if err == nil && n > 0 {
			return forgetTurns(ctx, q, now)
		}
	}
	if err != nil {
		return fmt.Errorf("write turn: %w", err)
	}
	return nil
}

// forgetTurns removes the turns that are old. What another claim is about to serve again is not.
func forgetTurns(ctx context.Context, q querier, now time.Time) error {
	_, err := q.exec(ctx, `DELETE FROM lane_turns WHERE lane IN (SELECT lane FROM lane_turns WHERE served_at < ?`+q.skipLocked+`)`,
		nanos(now.Add(-turnsKept)))
	if err != nil {
		return fmt.Errorf("forget turns: %w", err)
	}
	return nil
}

// Served returns the lane of each running run, and each lane from which a run was
// handed out within the last hour, at Since.
func (s *RunStore) Served(ctx context.Context, now time.Time) (running, lately []holdfast.Lane, err error) {
	into := func(list *[]holdfast.Lane) func(scanner) error {
		return func(row scanner) error {
			var text string
			var at int64
			if err := row.Scan(&text, &at); err != nil {
				return err
			}
			lane, err := parseLane(text, at)
			*list = append(*list, lane)
			return err
		}
	}
	err = s.db.read(ctx, func(ctx context.Context, q querier) error {
		if err := q.each(ctx, into(&running), `SELECT lane, 0 FROM runs WHERE status = 'running'`); err != nil {
			return err
		}
		return q.each(ctx, into(&lately), `SELECT lane, served_at FROM lane_turns WHERE served_at >= ?`, nanos(now.Add(-turnsKept)))
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list served lanes: %w", err)
	}
	return running, lately, nil
}

// lineBatch is how many runs of a lane are read at once.
const lineBatch = 8

// line is a lane while its runs are gone through.
type line struct {
	lane   string
	ahead  []waiting // its next runs that were read
	last   waiting   // the last one that was read
	all    bool      // all were read
	headOf bool      // ahead[0] is its first one that may go
}

// waiting is a run in a line.
type waiting struct {
	id, location string // see holdfast.StateKey
	createdAt    int64
}

// walk goes through waiting runs in the order in which they are handed out. It reads
// the lanes, and of each only as far as it gets.
type walk struct {
	q     querier
	now   time.Time
	turns holdfast.Turns
	// due leaves out runs whose time has not come.
	due  bool
	pass func(lane holdfast.Lane, run waiting) bool // whether a run is passed over

	lanes []holdfast.Lane
	lines []*line
}

// dueOnly is the condition that a run may be claimed now, and its arguments.
func (w *walk) dueOnly() (condition string, args []any) {
	if !w.due {
		return "", nil
	}
	return ` AND (claim_at <= ? OR claim_at > ?)`, []any{nanos(w.now), nanos(w.now.Add(longestPause))}
}

// waitingLanes begins a query of the lanes that have a run, from one to the next: the runs
// between them are not read.
const waitingLanes = `WITH RECURSIVE lanes (lane) AS (
			SELECT MIN(lane) FROM runs WHERE claim_at IS NOT NULL
			UNION ALL
			SELECT (SELECT MIN(lane) FROM runs WHERE claim_at IS NOT NULL AND lane > lanes.lane) FROM lanes WHERE lane IS NOT NULL
		)`

// AnyQueued reports whether a run of the kinds, projects and runner of a filter waits to be
// handed out, one that may not be claimed yet included.
func (s *RunStore) AnyQueued(ctx context.Context, of holdfast.ClaimFilter) (some bool, err error) {
	wanted := holdfast.ClaimFilter{Kinds: of.Kinds, Projects: of.Projects, Runner: of.Runner}
	err = s.db.reader().each(ctx, func(row scanner) error {
		var text string
		if err := row.Scan(&text); err != nil {
			return err
		}
		lane, err := parseLane(text, 0)
		if err == nil && offered(wanted, lane) {
			some, err = true, errStop
		}
		return err
	}, waitingLanes+` SELECT lane FROM lanes WHERE lane IS NOT NULL`)
	if err != nil && !errors.Is(err, errStop) {
		return false, fmt.Errorf("look for queued runs: %w", err)
	}
	return some, nil
}

// open reads the lanes that have a run.
func (w *walk) open(ctx context.Context, keep func(holdfast.Lane) bool) error {
	due, args := w.dueOnly()
	return w.q.each(ctx, func(row scanner) error {
		var text string
		var since, number int64
		if err := row.Scan(&text, &since, &number); err != nil {
			return err
		}
		lane, err := parseLane(text, since)
		lane.More = number > 1
		if err == nil && keep(lane) {
			w.lanes, w.lines = append(w.lanes, lane), append(w.lines, &line{lane: text})
		}
		return err
	}, waitingLanes+`, heads (lane, since) AS (
			SELECT lane, (SELECT created_at FROM runs WHERE claim_at IS NOT NULL AND runs.lane = lanes.lane`+due+`
				ORDER BY created_at, id LIMIT 1) FROM lanes WHERE lane IS NOT NULL
		)
		SELECT lane, since, (SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE claim_at IS NOT NULL AND runs.lane = heads.lane LIMIT 2) AS few)
			FROM heads WHERE since IS NOT NULL`, args...)
}

// next returns the next run and its lane; it is false if there is none.
func (w *walk) next(ctx context.Context) (holdfast.Lane, waiting, bool, error) {
	for len(w.lanes) > 0 {
		i := w.pick()
		l := w.lines[i]
		if !l.headOf || w.pass(w.lanes[i], l.ahead[0]) {
			some, err := w.advance(ctx, i)
			if err != nil {
				return holdfast.Lane{}, waiting{}, false, err
			}
			if !some {
				w.lanes, w.lines = slices.Delete(w.lanes, i, i+1), slices.Delete(w.lines, i, i+1)
			}
			continue // its first run may be a later one than was thought
		}
		run, lane := l.ahead[0], w.lanes[i]
		l.ahead, l.headOf = l.ahead[1:], false
		if w.turns != nil {
			w.turns.Took(lane)
		}
		return lane, run, true, nil
	}
	return holdfast.Lane{}, waiting{}, false, nil
}

func (w *walk) pick() int {
	if w.turns != nil {
		return w.turns.Next(w.lanes)
	}
	first := 0
	for i, lane := range w.lanes {
		if best := w.lanes[first]; lane.Priority < best.Priority || lane.Priority == best.Priority && lane.Since.Before(best.Since) {
			first = i
		}
	}
	return first
}

// advance finds the first run of a lane that is not passed over; it is false if there is none.
func (w *walk) advance(ctx context.Context, i int) (bool, error) {
	l := w.lines[i]
	for l.headOf = false; ; l.ahead = l.ahead[1:] {
		if len(l.ahead) == 0 {
			if err := w.read(ctx, l); err != nil {
				return false, err
			}
			if len(l.ahead) == 0 {
				return false, nil
			}
		}
		if !w.pass(w.lanes[i], l.ahead[0]) {
			l.headOf, w.lanes[i].Since = true, fromNanos(l.ahead[0].createdAt)
			w.lanes[i].More = len(l.ahead) > 1 || !l.all
			return true, nil
		}
	}
}

func (w *walk) read(ctx context.Context, l *line) error {
	if l.all {
		return nil
	}
	due, args := w.dueOnly()
	args = append([]any{l.lane, l.last.createdAt, l.last.id}, args...)
	l.ahead = nil
	err := w.q.each(ctx, func(row scanner) error {
		var run waiting
		err := row.Scan(&run.id, &run.location, &run.createdAt)
		run.location = holdfast.StateKey(run.location)
		l.ahead = append(l.ahead, run)
		return err
	}, `SELECT id, state_location, created_at FROM runs WHERE claim_at IS NOT NULL AND lane = ? AND (created_at, id) > (?, ?)`+due+`
		ORDER BY created_at, id LIMIT ? + 0`, append(args, lineBatch)...)
	if l.all = len(l.ahead) < lineBatch; !l.all {
		l.last = l.ahead[lineBatch-1]
	}
	return err
}
