package datastore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// Claimable returns the runs that an agent may claim, in order: those that write
// first, then plans, then samples, then drift checks, each the oldest first; at most one for
// each state location, none for a location where a run is running, and only runs
// of kind RunState where a state stands that could not be saved.
func (s *RunStore) Claimable(ctx context.Context, filter holdfast.ClaimFilter) ([]holdfast.Run, error) {
	var runs []holdfast.Run
	err := s.db.read(ctx, func(ctx context.Context, q querier) error {
		ids, err := claimable(ctx, q, filter)
		if err != nil {
			return err
		}
		for _, id := range ids {
			run, err := s.readRun(ctx, q, id, "")
			if err != nil {
				return err
			}
			runs = append(runs, run)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list claimable runs: %w", err)
	}
	return runs, nil
}

// takenLocations are the locations of which an agent is offered nothing: where a
// run is running, and where one that writes waits for its turn. That goes first,
// also if the agent executes none that write. Few are running, and few that write
// wait; asking of each claimable run would be asked often.
func takenLocations(ctx context.Context, q querier, filter holdfast.ClaimFilter) (map[string]bool, error) {
	taken := map[string]bool{}
	take := func(row scanner) error {
		var location string
		err := row.Scan(&location)
		taken[location] = true
		return err
	}
	if err := q.each(ctx, take, `SELECT state_location FROM runs WHERE status = 'running'`); err != nil {
		return nil, err
	}
	if len(filter.Kinds) == 0 || slices.ContainsFunc(filter.Kinds, holdfast.RunKind.Writes) {
		return taken, nil
	}
	return taken, q.each(ctx, take, `SELECT state_location FROM runs
		WHERE claim_at IS NOT NULL AND (claim_at <= ? OR claim_at > ?) AND priority = ?`, nanos(filter.Now), nanos(filter.Now.Add(longestPause)), writing)
}

func claimable(ctx context.Context, q querier, filter holdfast.ClaimFilter) ([]string, error) {
	if filter.Limit <= 0 {
		return nil, nil
	}
	taken, err := takenLocations(ctx, q, filter)
	if err != nil {
		return nil, err
	}
	var c conditions
	c.add(`claim_at IS NOT NULL AND (claim_at <= ? OR claim_at > ?)`, nanos(filter.Now), nanos(filter.Now.Add(longestPause)))
	in(&c, "kind", filter.Kinds)
	in(&c, "project", filter.Projects)
	for _, provider := range filter.Providers {
		c.add(`provider <> ?`, provider)
	}
	unsaved := map[string]bool{}
	err = q.each(ctx, func(row scanner) error {
		var location string
		err := row.Scan(&location)
		unsaved[location] = true
		return err
	}, `SELECT location FROM unsaved_states`)
	if err != nil {
		return nil, err
	}
	var ids []string
	err = q.each(ctx, func(row scanner) error {
		var id, location string
		var kind holdfast.RunKind
		if err := row.Scan(&id, &location, &kind); err != nil {
			return err
		}
		if taken[location] || unsaved[location] && kind != holdfast.RunState {
			return nil
		}
		taken[location] = true
		if ids = append(ids, id); len(ids) == filter.Limit {
			return errStop
		}
		return nil
	}, `SELECT id, state_location, kind FROM runs`+c.where()+` ORDER BY priority, created_at, id`, c.args...)
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	return ids, nil
}

// RunningBy counts the running runs by the provider of their clusters; the
// second result counts those that are drift checks, of any provider.
func (s *RunStore) RunningBy(ctx context.Context) (map[string]int, int, error) {
	providers, drift := map[string]int{}, 0
	err := s.db.reader().each(ctx, func(row scanner) error {
		var provider string
		var kind holdfast.RunKind
		if err := row.Scan(&provider, &kind); err != nil {
			return err
		}
		providers[provider]++
		if kind == holdfast.RunDrift {
			drift++
		}
		return nil
	}, `SELECT provider, kind FROM runs WHERE status = 'running'`)
	if err != nil {
		return nil, 0, fmt.Errorf("count running runs: %w", err)
	}
	return providers, drift, nil
}
