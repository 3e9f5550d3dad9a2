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
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// results reads what attempts leave.
type results struct {
	store     Store
	artefacts *history.Patient // what a cluster's inventory is made from
	logger    *slog.Logger
	unread    *unread
	owed      *owed
	pricer    Pricer // nil: costs are not estimated
}

func newResults(store Store, logger *slog.Logger, now func() time.Time) results {
	return results{
		store: store, artefacts: history.NewPatient(store, logger, now), logger: logger,
		unread: &unread{now: now, since: make(map[holdfast.AttemptRef]time.Time)},
		owed:   &owed{now: now, runs: make(map[string]owedInventory)},
	}
}

// inventory is what a cluster consists of, as a run has found it in the state.
type inventory struct {
	takes     bool                // the run reports it
	resources []holdfast.Resource // nil: it could not be read
	err       error               // why
}

// inventory reads what a run that ends has found. That is recorded with the end: a server
// that is killed loses neither. What cannot be read is not part of the run's outcome.
func (r results) inventory(ctx context.Context, run holdfast.Run) inventory {
	if !takesInventory(run) || run.Kind == holdfast.RunPlan && r.elsewhere(ctx, run) {
		return inventory{}
	}
	resources, err := r.resources(ctx, run)
	return inventory{takes: true, resources: resources, err: err}
}

// noteInventory has the sweep try again what could not be read when a run ended.
func (r results) noteInventory(ctx context.Context, run holdfast.Run, found inventory) {
	switch bad := (*badPlanError)(nil); {
	case !found.takes:
	case found.err == nil, errors.Is(found.err, holdfast.ErrNotFound): // the engine could not read the state
		r.owed.paid(run)
	default:
		if !errors.As(found.err, &bad) { // which another try would not mend
			r.owed.add(run)
		}
		r.logger.WarnContext(ctx, "resources were not recorded", "run", run.ID, "cluster", run.Cluster, "err", found.err)
	}
}

func (r results) saveInventory(ctx context.Context, run holdfast.Run) error {
	resources, err := r.resources(ctx, run)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil // the state could not be read
	} else if err != nil {
		return err
	}
	return r.store.SaveResources(ctx, run.Cluster, resources)
}

// recordOwed tries again what could not be recorded when its run ended, unless a later
// run has found what the cluster consists of.
func (r results) recordOwed(ctx context.Context) {
	for _, run := range r.owed.due() {
		later, err := r.foundSince(ctx, run)
		if err == nil && !later {
			err = r.saveInventory(ctx, run)
		}
		if err != nil {
			r.owed.add(run)
			r.logger.WarnContext(ctx, "resources were not recorded again", "run", run.ID, "cluster", run.Cluster, "err", err)
			continue
		}
		r.owed.paid(run)
	}
}

// foundSince reports whether a run that ended later has found what its cluster
// consists of: another replica may have recorded that.
func (r results) foundSince(ctx context.Context, run holdfast.Run) (bool, error) {
	runs, err := r.store.Runs(ctx, holdfast.RunFilter{Cluster: run.Cluster, Limit: 20})
	if err != nil {
		return false, fmt.Errorf("list runs of %q: %w", run.Cluster, err)
	}
	return slices.ContainsFunc(runs, func(other holdfast.Run) bool {
		return other.ID != run.ID && takesInventory(other) && other.FinishedAt.After(run.FinishedAt)
	}), nil
}

// owed are runs whose inventory could not be recorded, the last one of each cluster.
// It is safe for concurrent use.
type owed struct {
	now func() time.Time

	mu   sync.Mutex
	runs map[string]owedInventory // by cluster
}

type owedInventory struct {
	run   holdfast.Run
	again time.Time
	tries int
}

func (o *owed) add(run holdfast.Run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.runs[run.Cluster]
	if known.run.ID != run.ID {
		if known.run.FinishedAt.After(run.FinishedAt) {
			return
		}
		known = owedInventory{run: run}
	}
	known.again = o.now().Add(queue.Backoff(owedBase, known.tries, owedMost))
	known.tries++
	o.runs[run.Cluster] = known
}

// paid forgets a run, and those of its cluster before it.
func (o *owed) paid(run holdfast.Run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.runs[run.Cluster]; ok && !known.run.FinishedAt.After(run.FinishedAt) {
		delete(o.runs, run.Cluster)
	}
}

func (o *owed) due() []holdfast.Run {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due []holdfast.Run
	for _, one := range o.runs {
		if !one.again.After(o.now()) {
			due = append(due, one.run)
		}
	}
	return due
}

// How long the next try is put off.
const (
	owedBase = 2 * time.Second
	owedMost = 5 * time.Minute
)

// takesInventory reports whether what a run has found in the state is the
// cluster's: a plan with changes may be of a state that others change.
func takesInventory(run holdfast.Run) bool {
	switch {
	case !run.Status.Done() || run.Attempt == 0 || !run.Kind.Plans():
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
	data, err := history.Artefact(ctx, r.artefacts, run.ID, protocol.ArtefactResources)
	if err != nil {
		return nil, err
	}
	var resources []holdfast.Resource
	if err := json.Unmarshal(data, &resources); err != nil {
		return nil, &badPlanError{fmt.Errorf("decode resources of run %s: %w", run.ID, err)}
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
	if resources == nil {
		resources = []holdfast.Resource{} // an empty state
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
	plan, err := history.Plan(ctx, r.artefacts, run.ID)
	if errors.Is(err, holdfast.ErrNotFound) {
		err = nil
	}
	return plan, err
}

// changedBy are the addresses that a run has created or changed: all that it had
// planned if it ended well, otherwise what it got done.
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

// elsewhere reports whether a run was made with another state than the one that its
// cluster has.
func (r results) elsewhere(ctx context.Context, run holdfast.Run) bool {
	rec, err := r.store.Cluster(ctx, run.Cluster)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		r.logger.WarnContext(ctx, "cluster of a run was not read", "run", run.ID, "cluster", run.Cluster, "err", err)
	}
	return err == nil && decision.OtherState(rec.Applied, run.StateLocation, run.Document)
}
