package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// results reads what attempts leave.
type results struct {
	store  Store
	logger *slog.Logger
}

// recordInventory records what a cluster consists of, as a run that has ended has
// found it in the state. It is not part of the run's outcome: what goes wrong
// here is logged, and put right by the next run.
func (r results) recordInventory(ctx context.Context, run holdfast.Run) {
	if !takesInventory(run) {
		return
	}
	resources, err := r.resources(ctx, run)
	if errors.Is(err, holdfast.ErrNotFound) {
		return // the state could not be read
	}
	if err == nil {
		err = r.store.SaveResources(ctx, run.Cluster, resources)
	}
	if err != nil {
		r.logger.WarnContext(ctx, "resources were not recorded", "run", run.ID, "cluster", run.Cluster, "err", err)
	}
}

// takesInventory reports whether what a run has found in the state is the
// cluster's: a plan with changes may be of a state that others change.
func takesInventory(run holdfast.Run) bool {
	switch {
	case !run.Status.Done() || run.Attempt == 0:
		return false
	case run.Kind == holdfast.RunPlan:
		return run.Status == holdfast.RunNoChanges && run.PullRequest.IsZero() && !run.Destroy
	default:
		return true
	}
}

// resources are those in the state as the run left it. Those that it has changed
// say so.
func (r results) resources(ctx context.Context, run holdfast.Run) ([]holdfast.Resource, error) {
	data, err := history.Artefact(ctx, r.store, run.ID, holdfast.ArtefactResources)
	if err != nil {
		return nil, err
	}
	var resources []holdfast.Resource
	if err := json.Unmarshal(data, &resources); err != nil {
		return nil, fmt.Errorf("decode resources of run %s: %w", run.ID, err)
	}
	var plan holdfast.Plan
	if run.Kind.Writes() && run.Begun {
		if plan, err = r.appliedPlan(ctx, run); err != nil {
			return nil, err
		}
	}
	before, err := r.movedBy(ctx, run, plan)
	if err != nil {
		return nil, err
	}
	changed := changedBy(run, plan)
	for i := range resources {
		one := &resources[i]
		one.Cluster, one.Run, one.ChangedAt = run.Cluster, before[one.Address].Run, before[one.Address].ChangedAt
		if changed[one.Address] {
			one.Run, one.ChangedAt = run.ID, run.FinishedAt
		}
	}
	return resources, nil
}

// appliedPlan is what a run has applied, or was to; the zero Plan if that was not
// kept.
func (r results) appliedPlan(ctx context.Context, run holdfast.Run) (holdfast.Plan, error) {
	plan, err := history.Plan(ctx, r.store, run.ID)
	if errors.Is(err, holdfast.ErrNotFound) {
		err = nil
	}
	return plan, err
}

// changedBy are the addresses that a run has created or changed: all that it had
// planned if it ended well, else what it got done.
func changedBy(run holdfast.Run, plan holdfast.Plan) map[string]bool {
	changed := make(map[string]bool)
	switch {
	case !run.Kind.Writes():
	case run.Status != holdfast.RunApplied:
		for _, done := range completed(run) {
			changed[done] = true
		}
	default:
		for _, change := range plan.Changes {
			if slices.Contains(changing, change.Action) {
				changed[change.Address] = true
			}
		}
	}
	return changed
}

// movedBy is what was known of the resources that a run has given another
// address, by that.
func (r results) movedBy(ctx context.Context, run holdfast.Run, plan holdfast.Plan) (map[string]holdfast.Resource, error) {
	to := make(map[string]string)
	for _, change := range plan.Changes {
		if change.PreviousAddress != "" {
			to[change.PreviousAddress] = change.Address
		}
	}
	if len(to) == 0 {
		return nil, nil
	}
	known, err := r.store.Resources(ctx, holdfast.ResourceFilter{Cluster: run.Cluster, Limit: math.MaxInt32})
	if err != nil {
		return nil, fmt.Errorf("list resources of %q: %w", run.Cluster, err)
	}
	moved := make(map[string]holdfast.Resource, len(to))
	for _, one := range known {
		if address, ok := to[one.Address]; ok {
			moved[address] = one
		}
	}
	return moved, nil
}

// changing are the actions after which a resource is another than before.
var changing = []holdfast.ChangeAction{
	holdfast.ActionCreate, holdfast.ActionUpdate, holdfast.ActionReplace, holdfast.ActionImport,
}

// completed are the addresses that a failed run has finished with.
func completed(run holdfast.Run) []string {
	if run.Failure == nil {
		return nil
	}
	var addresses []string
	for _, done := range run.Failure.Completed { // "aws_vpc.main: created"
		if i := strings.LastIndex(done, ": "); i > 0 {
			addresses = append(addresses, done[:i])
		}
	}
	return addresses
}
