package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// How merges fulfil the conditions of an apply.

// standing returns a pull request with its reviews and the approvals that are in force.
type standing func(context.Context, holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error)

// recorded is standing by what the code host was last known to say.
func recorded(_ context.Context, pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error) {
	return pr, nil
}

// asked is standing by what the code host says now, if ctx may wait for it. What is new of
// that is put on record: an apply that is queued because of it is judged by the record when
// an agent takes it.
func (o *observer) asked(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error) {
	now, known := o.Gates.Standing(pr)
	if !known {
		if err := queue.MayWait(ctx, pr.Repo); err != nil {
			return pr, err
		}
		var err error
		if now, err = o.Gates.Fresh(ctx, pr); err != nil {
			return now, err
		}
	}
	if gate.Alike(pr, now) {
		return now, nil
	}
	saved, err := o.opts.Store.SavePullRequest(ctx, now)
	if errors.Is(err, holdfast.ErrConflict) {
		return now, nil // others have put something on record meanwhile, and it is judged again
	} else if err != nil {
		return now, fmt.Errorf("record the reviews of %s: %w", pr.PullRequestRef, err)
	}
	return saved, nil
}

// judged is reviewed with the conditions of the apply. What was reviewed is judged, and
// newest, which is applied if a person has asked for that, or where nothing was reviewed.
func (o *observer) judged(newest holdfast.Run, stands standing) mergeLook {
	return func(
		ctx context.Context, pr holdfast.PullRequestRecord, rec holdfast.ClusterRecord, branch []holdfast.Run, merged []holdfast.Applied,
	) (decision.Merge, error) {
		runs, err := history.PullRequest(ctx, o.opts.Store, pr.PullRequestRef, rec.Name)
		if err != nil {
			return decision.Merge{}, err
		}
		m, plan, found := mergeOf(pr, rec, runs, branch)
		if !found {
			plan = newest // what a person may be asked about
		}
		others := slices.Concat(merged, []holdfast.Applied{rec.Applied, decision.LastApplied(rec, branch)})
		requires, lifted := decision.Required(rec.Desired.Document, others...)
		if len(requires) == 0 {
			return m, nil
		}
		if pr, err = stands(ctx, pr); err != nil {
			return m, err
		}
		all, terms := slices.Concat(runs, branch), gate.Terms{
			Cluster: rec.Name, Requires: requires, Lifted: lifted,
			Details: decision.Terms(rec.Desired.Document, others...),
			Now:     o.opts.Now(),
		}
		m.Met, m.Missing, m.Unknown = met(gate.Of(pr, terms, plan, all))
		m.NewestMet, m.NewestMissing, m.NewestUnknown = m.Met, m.Missing, m.Unknown
		if found { // otherwise they are judged by the newest already
			m.NewestMet, m.NewestMissing, m.NewestUnknown = met(gate.Of(pr, terms, newest, all))
		}
		return m, nil
	}
}

// met is which conditions are met, what the others lack, and which of them are not known.
func met(gates []holdfast.Gate) (names []string, missing map[string]string, unknown []string) {
	missing = make(map[string]string)
	for _, g := range gates {
		if g.Met {
			names = append(names, g.Name)
			continue
		}
		if missing[g.Name] = g.Missing; g.Unknown {
			unknown = append(unknown, g.Name)
		}
		if g.Lifted {
			missing[g.Name] += "; the document no longer requires it, but the last applied version does, or a merge that is not applied yet"
		}
	}
	return names, missing, unknown
}

// barred is why an apply that is queued no longer meets its conditions; empty if it does.
// It is judged by what is on record of the code host: an agent that asks for work waits
// for nobody else.
func (o *observer) barred(ctx context.Context, in decision.Input, run holdfast.Run) (reason holdfast.Reason, err error) {
	if decision.IsRevert(run) { // it is of no merge
		return "", nil
	}
	rec := in.Cluster
	if asked, err := o.asks(ctx, in, run); err != nil || !asked || !toApply(in) {
		return "", err
	}
	plan, shown := planOf(run, in.Runs)
	if in.Merges, err = o.merges(ctx, rec, in.Runs, o.judged(plan, recorded)); err != nil {
		return "", err
	}
	return decision.Barred(in, shown), nil
}

// asks reports whether a queued run has to meet any condition: those of the cluster, or those
// that one of its merges had.
func (o *observer) asks(ctx context.Context, in decision.Input, run holdfast.Run) (bool, error) {
	if requires, _ := decision.Required(in.Cluster.Desired.Document, in.Cluster.Applied, in.Last); len(requires) > 0 {
		return true, nil
	}
	for _, review := range run.Reviews {
		if review.PullRequest.IsZero() {
			continue
		}
		pr, err := o.opts.Store.PullRequest(ctx, review.PullRequest)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return false, fmt.Errorf("read pull request %s: %w", review.PullRequest, err)
		}
		if err == nil && len(asksOf(pr, run.Cluster).Requires) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// planOf is the plan of a tracked branch that a queued run has to match, if a person has seen
// that, or else the newest before it, which stands for merges without a reviewed one.
func planOf(run holdfast.Run, branch []holdfast.Run) (plan holdfast.Run, shown bool) {
	for _, other := range branch {
		switch {
		case other.ID == run.Shown:
			return other, true
		case plan.ID == "" && other.ID < run.ID && other.Status.Good():
			plan = other
		}
	}
	return plan, false
}
