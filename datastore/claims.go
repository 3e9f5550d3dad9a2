package datastore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// Claimable returns the ids of the runs that an agent may claim, in the order of
// filter.Turns, and reads no more of them than that; at most one for each state location,
// none for a location where a run is running or, unless it is that one or releases a lock,
// where one that writes waits, and only runs that resolve an unsaved state where there is
// one.
func (s *RunStore) Claimable(ctx context.Context, filter holdfast.ClaimFilter) (ids []string, err error) {
	err = s.db.read(ctx, func(ctx context.Context, q querier) (err error) {
		ids, err = claimable(ctx, q, filter)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list claimable runs: %w", err)
	}
	return ids, nil
}

// Queue returns runs that wait to be handed out, in the order of filter.Turns: those
// that may not be claimed yet, too.
func (s *RunStore) Queue(ctx context.Context, filter holdfast.QueueFilter) ([]holdfast.QueuedRun, error) {
	var queue []holdfast.QueuedRun
	err := s.db.read(ctx, func(ctx context.Context, q querier) error {
		w := walk{q: q, now: filter.Now, turns: filter.Turns, pass: func(holdfast.Lane, waiting) bool { return false }}
		if err := w.open(ctx, func(holdfast.Lane) bool { return true }); err != nil {
			return err
		}
		passed := make(map[holdfast.Lane]int) // by what takes the turns of a priority
		for position := 1; len(queue) < filter.Limit; position++ {
			lane, entry, ok, err := w.next(ctx)
			if err != nil || !ok {
				return err
			}
			ahead := aheadOf(passed, lane)
			passed[turnOf(lane)]++
			if position <= filter.After || len(filter.Projects) > 0 && !slices.Contains(filter.Projects, lane.Project) ||
				filter.Runner != "" && filter.Runner != lane.Runner {
				continue
			}
			run, err := s.readRun(ctx, q, entry.id, "")
			if errors.Is(err, holdfast.ErrDamaged) {
				continue // nobody can claim it
			} else if err != nil {
				return err
			}
			queue = append(queue, holdfast.QueuedRun{Position: position, Run: run, Ahead: ahead})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list queue: %w", err)
	}
	return queue, nil
}

// turnOf is what takes the turns of a lane's priority: its pull request, or without one
// its project.
func turnOf(lane holdfast.Lane) holdfast.Lane {
	turn := holdfast.Lane{Priority: lane.Priority, PullRequest: lane.PullRequest}
	if lane.PullRequest.IsZero() {
		turn.Project = lane.Project
	}
	return turn
}

func aheadOf(passed map[holdfast.Lane]int, lane holdfast.Lane) holdfast.Ahead {
	var ahead holdfast.Ahead
	own := turnOf(lane)
	for turn, n := range passed {
		switch {
		case turn == own:
			ahead.Own += n
		case turn.Priority == lane.Priority:
			ahead.Others += n
		case turn.Priority < lane.Priority:
			ahead.Priority += n
		default:
			ahead.Overdue += n
		}
	}
	return ahead
}

// takenLocations are the locations where a run is running, of which an agent is offered
// nothing, and those where one that writes waits for its turn. That goes first, also if the
// agent executes none that write: it is offered only what goes before that. Few are running,
// and few that write wait; asking of each claimable run would be asked often.
func takenLocations(ctx context.Context, q querier, filter holdfast.ClaimFilter) (running, awaited map[string]bool, err error) {
	into := func(locations map[string]bool) func(scanner) error {
		return func(row scanner) error {
			var location string
			err := row.Scan(&location)
			locations[holdfast.StateKey(location)] = true
			return err
		}
	}
	running, awaited = map[string]bool{}, map[string]bool{}
	err = q.each(ctx, into(running), `SELECT state_location FROM runs WHERE status = 'running'`)
	if err != nil || len(filter.Kinds) == 0 || slices.ContainsFunc(filter.Kinds, holdfast.RunKind.Writes) {
		return running, awaited, err
	}
	return running, awaited, q.each(ctx, into(awaited), `SELECT state_location FROM runs
		WHERE claim_at IS NOT NULL AND (claim_at <= ? OR claim_at > ?) AND priority = ?`, nanos(filter.Now), nanos(filter.Now.Add(longestPause)), writing)
}

func claimable(ctx context.Context, q querier, filter holdfast.ClaimFilter) ([]string, error) {
	if filter.Limit <= 0 {
		return nil, nil
	}
	taken, awaited, err := takenLocations(ctx, q, filter)
	if err != nil {
		return nil, err
	}
	unsaved := map[string]bool{}
	err = q.each(ctx, func(row scanner) error {
		var location string
		err := row.Scan(&location)
		unsaved[holdfast.StateKey(location)] = true
		return err
	}, `SELECT location FROM unsaved_states`)
	if err != nil {
		return nil, err
	}
	w := walk{q: q, now: filter.Now, turns: filter.Turns, due: true, pass: func(lane holdfast.Lane, run waiting) bool {
		return taken[run.location] || awaited[run.location] && lane.Priority >= writing || unsaved[run.location] && lane.Kind.Plans()
	}}
	unplanned := make(map[holdfast.PullRequestRef]bool, len(filter.Unplanned)) // there may be many
	for _, ref := range filter.Unplanned {
		unplanned[ref] = true
	}
	if err := w.open(ctx, func(lane holdfast.Lane) bool {
		return offered(filter, lane) && (lane.Kind.AgentKind() != holdfast.RunPlan || !unplanned[lane.PullRequest])
	}); err != nil {
		return nil, err
	}
	var ids []string
	for len(ids) < filter.Limit {
		_, run, ok, err := w.next(ctx)
		if err != nil || !ok {
			return ids, err
		}
		taken[run.location] = true
		ids = append(ids, run.id)
	}
	return ids, nil
}

// offered reports whether runs of a lane are among those that a filter asks for, except
// for Unplanned.
func offered(filter holdfast.ClaimFilter, lane holdfast.Lane) bool {
	paced := filter.NoFirst && lane.Priority == holdfast.PriorityFirst
	unread := lane.Kind.Applies() && slices.Contains(filter.Unread, lane.PullRequest.Repo)
	return !paced && !unread && (filter.Runner == "" || filter.Runner == lane.Runner) && (len(filter.Kinds) == 0 || slices.Contains(filter.Kinds, lane.Kind)) &&
		(len(filter.Projects) == 0 || slices.Contains(filter.Projects, lane.Project)) &&
		!slices.Contains(filter.Capped, lane.Project) && !slices.Contains(filter.CappedRepos, lane.PullRequest.Repo) &&
		!slices.Contains(filter.Providers, lane.Provider)
}
