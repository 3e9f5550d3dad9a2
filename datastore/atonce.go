package datastore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
)

// With SQLite one transaction writes at a time, and what it has read stays true until it
// ends. With PostgreSQL others commit between any two of its statements (READ COMMITTED).
// What a transaction decides by is therefore one of these:
//
//   - in the statement that writes: versions of clusters, runs, pull requests, upgrades; pins
//     of tags; leases; numbers of states and changes; what an upsert replaces.
//   - in rows that it has locked (forUpdate, or by writing them first): a run that is
//     claimed, beats, logs, ends; a lock of a state; a post; a command; a comment.
//   - under a lock that all who write it take (alone): what is not in one row, or in none yet.
//
// The locks, and who takes them:
//
//	state LOCATION        claims, ends of attempts, uploads and states that could not be saved,
//	                      pruned versions, renames: of what runs, the newest version, the
//	                      engine's lock and the unsaved state one follows from another.
//	cluster NAME          claims and renames: no run of a cluster starts while it moves. Runs
//	                      that are queued by what was decided before others were.
//	claims                claims, if the most that may run is near; otherwise they share it.
//	breaker PROVIDER      what is on record of a provider, whether there is any or not.
//	pull request REF      what its comment shows, what that means for the runs in it, its
//	                      record, and the commands that are given and barred by it.
//	post KEY              the first time that something is wanted of a post.
//	repository NAME       numbers of pull requests without a code host.
//	resources of NAME     a list that is compared and replaced.
//	runners               which runners and rules there are, and which environments are pinned
//	                      to what: a first run goes by the rules that are there.
//
// Runs that something refers to are locked against their removal (holdRuns), which locks them
// first (holdRun). Sweeps look again, in the statement that deletes, for whether something is
// needed by now; what is needed from that moment on is put on record again when it is looked
// at (pull requests), or was asked for lately (bundles).
//
// A transaction takes locks in the order of its statements. Two that wait for one another are
// found by PostgreSQL, and one of them is made again.

func ofState(location string) string { return "state " + holdfast.StateKey(location) }

func ofCluster(name string) string { return "cluster " + name }

// ofRunners is what all name that write runners, rules or the pins of environments.
const ofRunners = "runners"

func ofBreaker(provider string) string { return "breaker " + provider }

func ofRepository(name string) string { return "repository " + name }

// ofPullRequest is empty, which locks nothing, for none.
func ofPullRequest(ref holdfast.PullRequestRef) string {
	if ref.IsZero() {
		return ""
	}
	return "pull request " + ref.String()
}

// holdRun locks a run, if it exists, as a write of it does.
func holdRun(ctx context.Context, q querier, id string) error {
	if q.forUpdate == "" {
		return nil
	}
	_, err := texts(ctx, q, `SELECT id FROM runs WHERE id = ?`+q.forUpdate, id)
	return err
}

// holdState locks a run and its state.
func holdState(ctx context.Context, q querier, run string) error {
	if q.forUpdate == "" {
		return nil
	}
	locations, err := texts(ctx, q, `SELECT state_location FROM runs WHERE id = ?`+q.forUpdate, run)
	if err != nil || len(locations) == 0 {
		return err
	}
	return q.alone(ctx, ofState(locations[0]))
}

// holdRuns keeps runs from being removed, as something is about to refer to them. One that
// is gone already stays so.
func holdRuns(ctx context.Context, q querier, runs []string) error {
	if q.forKeyShare == "" || len(runs) == 0 {
		return nil
	}
	var c conditions
	in(&c, "id", runs)
	_, err := texts(ctx, q, `SELECT id FROM runs`+c.Where()+` ORDER BY id`+q.forKeyShare, c.Args...)
	return err
}

// claimLimit is how many runs may be running after a claim; most is zero without a limit.
type claimLimit struct {
	most  int
	alone bool // no other claim is under way
}

// claimMargin is more than the claims that can be under way at once, one for each session of
// the server that writes. Claims that are further from the limit than that cannot reach it
// together, and do not wait for one another.
const claimMargin = 2 * postgres.Connections

// errCrowded is of a claim that shares the lock of claims, and may not as the limit is near.
var errCrowded = errors.New("the limit of runs is near")

// hold keeps other claims from reaching the limit together with this one.
func (l *claimLimit) hold(ctx context.Context, q querier) error {
	if q.advisoryLock == "" {
		l.alone = true
		return nil
	}
	if l.most <= 0 {
		return nil
	}
	if l.alone = l.alone || l.most <= claimMargin; l.alone {
		return q.alone(ctx, "claims")
	}
	_, err := q.exec(ctx, q.sharedLock, "claims")
	return err
}

// admit decides by how many are running, now that hold has kept others away.
func (l *claimLimit) admit(running int) error {
	switch {
	case l.most <= 0:
		return nil
	case running >= l.most:
		return fmt.Errorf("%d runs are running: %w", running, holdfast.ErrConflict)
	case !l.alone && running+claimMargin > l.most:
		return errCrowded
	}
	return nil
}
