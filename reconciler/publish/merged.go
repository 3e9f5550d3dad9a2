package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/report"
)

// viewApply shows the state of a merged pull request on the tracked branch.
func (v *viewer) viewApply(
	ctx context.Context, look planLook, rc *report.Cluster, pr holdfast.PullRequestRecord, c holdfast.PullRequestCluster,
) error {
	rec, known, err := v.present(ctx, rc)
	if err != nil {
		return err
	}
	runs, err := history.Branch(ctx, v.opts.Store, rec.Name)
	if err != nil {
		return err
	}
	mine, err := history.Merge(ctx, v.opts.Store, rec.Name, runs, pr)
	if err != nil {
		return err
	}
	if len(mine) == 0 && rec.Name != rc.Name { // its runs keep the former name
		former, err := history.Branch(ctx, v.opts.Store, rc.Name)
		if err != nil {
			return err
		}
		if mine, err = history.Merge(ctx, v.opts.Store, rc.Name, former, pr); err != nil {
			return err
		}
	}
	if len(mine) > 0 {
		rc.Apply, rc.Failed = &mine[0], failedBefore(mine)
	}
	if known {
		showEngine(rc, rec, runs)
	}
	failed := failedItself(mine)
	superseded := known && failed != nil && rec.Desired.Revision != "" && rec.Desired.Revision != failed.Revision
	if superseded {
		rc.Apply, rc.Failed = failed, nil
		if rc.Superseded, err = v.successor(ctx, rec, pr, mine, *failed); err != nil {
			return err
		}
	}
	if known && !superseded {
		if rc.Superseded, err = v.displaced(ctx, rc, rec, pr, c); err == nil && rc.Superseded == "" {
			rc.Superseded, err = v.replaced(ctx, rec, pr, runs, mine)
		}
		if err != nil {
			return err
		}
		if rc.Superseded != "" { // what becomes of it is shown there
			rc.Apply, rc.Failed = nil, nil
			return nil
		}
	}
	if rc.Apply != nil {
		if rc.Applied, err = look.plan(ctx, rc.Apply.ID); err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return err
		} else if err != nil && rc.Apply.Status == holdfast.RunPlanned {
			apply := *rc.Apply
			apply.Detail, rc.Apply = lostPlan.Summary, &apply
		}
		if err := v.viewQueue(ctx, rc, *rc.Apply); err != nil {
			return err
		}
	}
	if !known && rc.Apply == nil {
		rc.Superseded, err = v.cameAndWent(ctx, rc.Name, pr)
		return err
	}
	if !known || superseded {
		return nil
	}
	return v.viewRecord(ctx, rc, rec, pr, runs)
}

// present is the record of a cluster as it is called now: one that was renamed continues
// under the new name.
func (v *viewer) present(ctx context.Context, rc *report.Cluster) (rec holdfast.ClusterRecord, known bool, err error) {
	name, seen := rc.Name, make(map[string]bool)
	for !seen[name] {
		seen[name] = true
		rec, err = v.opts.Store.Cluster(ctx, name)
		if errors.Is(err, holdfast.ErrNotFound) {
			return holdfast.ClusterRecord{Name: name}, false, nil
		} else if err != nil {
			return rec, false, fmt.Errorf("read cluster %q: %w", name, err)
		}
		if !rc.Removed && rec.Deletion != nil && rec.Deletion.To != "" {
			name = rec.Deletion.To
		}
	}
	return rec, true, nil
}

// displaced is what took the place of a merge of which nothing was applied: the cluster was
// renamed or given to another repository, a later merge removed it or brought it back, or
// the branch was forced to a history without the merge. Empty if it is still to be applied.
func (v *viewer) displaced(
	ctx context.Context, rc *report.Cluster, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord, c holdfast.PullRequestCluster,
) (string, error) {
	wrote := rc.Apply != nil && rc.Apply.Kind.Writes()
	switch {
	case rc.Apply != nil && rc.Apply.Destroys() != rc.Removed:
		next, err := v.nextMerge(ctx, rec.Name, pr, func(holdfast.PullRequestRef) bool { return true })
		return cmp.Or(next, rc.Apply.Revision.Short()), err
	case pr.Left != "" && !wrote:
		return pr.Left.Short(), nil
	case rc.Removed:
		return "", nil
	case rec.Owner != pr.Repo && !wrote && c.SourceDigest != "": // otherwise it was never this repository's
		return "its transfer to " + rec.Owner, nil
	case rec.Name != rc.Name && !wrote:
		return "its rename to " + rec.Name, nil
	default:
		return "", nil
	}
}

// cameAndWent returns the head that has taken the place of a merge which brought a
// cluster that nobody knows: one push brought a later commit as well, which no longer
// has it. Empty if it has it, or was not taken in yet.
func (v *viewer) cameAndWent(ctx context.Context, cluster string, pr holdfast.PullRequestRecord) (string, error) {
	source, err := v.opts.Store.RepositoryState(ctx, pr.Repo)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && (source.Head == "" || source.Head == pr.MergeCommit) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("read source %q: %w", pr.Repo, err)
	}
	in, err := v.opts.Git.IsAncestor(ctx, pr.Repo, pr.MergeCommit, source.Head)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && !in {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("look for %s in %s: %w", pr.PullRequestRef, source.Head.Short(), err)
	}
	if defined, err := v.opts.Fleet.Defines(ctx, pr.Repo, source.Head, cluster); err != nil || defined {
		return "", err
	}
	return source.Head.Short(), nil
}

// viewRecord shows what the record of a cluster adds to the runs that represent a
// merge: what it waits for, or that nothing is left to do.
func (v *viewer) viewRecord(
	ctx context.Context, rc *report.Cluster, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord, runs []holdfast.Run,
) error {
	if rec.Deletion != nil && rc.Removed {
		rc.Left = decision.LeftText(rec.Left)
	}
	if rec.Deletion != nil && rc.Removed && rc.Apply == nil {
		rc.Waiting = rec.Deletion.Reason
		return nil
	}
	if rc.Apply != nil && v.behind(rec, runs, *rc.Apply) {
		return errBehind
	}
	// Once something is applied that includes this merge, later waits are not
	// this pull request's; and what was waited for before it is not, either.
	if rec.Waiting != "" && (rc.Apply == nil || rc.Apply.ID > rec.Applied.Run) {
		about, err := v.includes(ctx, pr, rec.WaitingFor)
		if err == nil && !about && (rec.Desired.Missing != "" || len(rec.Desired.Faults) > 0) {
			about, err = v.unread(ctx, rec, pr)
		}
		if err != nil {
			return err
		}
		if about {
			rc.Waiting, rc.WaitingDetail = rec.Waiting, rec.WaitingDetail
			if err := v.viewConditions(ctx, rc, rec, pr, runs); err != nil {
				return err
			}
		}
	}
	if rc.Apply != nil && rc.Apply.Status != holdfast.RunCanceled {
		return nil
	}
	obsolete, err := v.nothingLeft(ctx, rec, pr, runs)
	if err == nil && !obsolete && rc.Apply == nil && rc.Waiting == "" && !rc.Removed && rec.Applied.Revision != "" {
		obsolete, err = v.mergedInto(ctx, pr, rec.Applied.Revision) // with what came later
	}
	if obsolete {
		rc.Apply, rc.Failed, rc.Waiting, rc.WaitingDetail = nil, nil, holdfast.ReasonUpToDate, ""
	}
	return err
}

// viewConditions shows which conditions of its apply a merge meets, if a plan of it waits
// for a person's word: an approval of another plan does not count for this one.
func (v *viewer) viewConditions(
	ctx context.Context, rc *report.Cluster, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord, runs []holdfast.Run,
) error {
	if rc.Apply == nil || rc.Apply.Status != holdfast.RunPlanned || rec.Waiting.Info().Does != holdfast.AppliesShown {
		return nil
	}
	plans, err := history.PullRequest(ctx, v.opts.Store, pr.PullRequestRef, rc.Name)
	if err != nil {
		return err
	}
	in, _, err := v.opts.Fleet.Foresee(ctx, pr, holdfast.PullRequestCluster{Name: rc.Name})
	if err != nil {
		return err
	}
	rc.Gates = gatesOf(pr, rec.Name, rec.Desired.Document, in.Binding(), *rc.Apply, slices.Concat(plans, runs), v.opts.Settings.Now())
	return nil
}

// failedItself returns the run with which a merge failed before others came to stand
// for it as well; nil if it did not, or if a later plan of it found nothing left to do:
// the state that the run could not save was pushed. Mine are the runs that represent
// it, newest first.
func failedItself(mine []holdfast.Run) *holdfast.Run {
	var last *holdfast.Run // of those that wrote, or else of all
	for i, run := range mine {
		held := run.Kind.Writes() && run.Status == holdfast.RunPlanned
		own := run.Revision == mine[len(mine)-1].Revision && !held && (run.Status != holdfast.RunCanceled || run.Begun)
		if own && last == nil && run.Status == holdfast.RunNoChanges {
			return nil
		}
		if own && (last == nil || run.Kind.Writes() && !last.Kind.Writes()) {
			last = &mine[i]
		}
	}
	if last == nil || !last.Status.Done() || last.Status.Good() {
		return nil
	}
	return last
}

// successor is what took the place of a merge that had failed: the first pull
// request that was merged after it, or a commit.
func (v *viewer) successor(
	ctx context.Context, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord, mine []holdfast.Run, failed holdfast.Run,
) (string, error) {
	next, err := v.nextMerge(ctx, rec.Name, pr, func(other holdfast.PullRequestRef) bool { return !failed.StandsFor(other) })
	if next != "" || err != nil {
		return next, err
	}
	by := rec.Desired.Revision
	for _, run := range mine { // the oldest one is the last
		if run.Revision != failed.Revision {
			by = run.Revision
		}
	}
	return by.Short(), nil
}

// nextMerge is the first pull request of a cluster that was merged after another one, of
// those that count; empty if there is none.
func (v *viewer) nextMerge(
	ctx context.Context, cluster string, pr holdfast.PullRequestRecord, counts func(holdfast.PullRequestRef) bool,
) (string, error) {
	next := ""
	err := history.Merges(ctx, v.opts.Store, pr.Repo, cluster, func(other holdfast.PullRequestRecord) (bool, error) {
		later := other.MergedAt.After(pr.MergedAt)
		if later && counts(other.PullRequestRef) {
			next = fmt.Sprintf("#%d", other.Number) // the last one that is found was merged first
		}
		return !later, nil
	})
	return next, err
}

// replaced is the pull request that took the place of a merge which was to be applied by
// a person's word: that applies the newest reviewed plan alone, or has done so. Empty if
// none has. Runs are those of the branch, and mine those that represent the merge.
func (v *viewer) replaced(
	ctx context.Context, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord, runs, mine []holdfast.Run,
) (string, error) {
	for _, run := range mine {
		if by := decision.AppliedInsteadOf(run, pr.PullRequestRef); by != 0 {
			return fmt.Sprintf("#%d", by), nil
		}
	}
	if len(mine) > 0 || rec.Waiting != holdfast.ReasonManual && rec.Waiting != holdfast.ReasonStateWouldMove {
		return "", nil
	}
	if waits, err := v.unapplied(ctx, rec, pr); err != nil || !waits {
		return "", err
	}
	by := ""
	err := history.Merges(ctx, v.opts.Store, pr.Repo, rec.Name, func(other holdfast.PullRequestRecord) (bool, error) {
		if by != "" || !other.MergedAt.After(pr.MergedAt) {
			return true, nil
		}
		seen, err := v.seenBefore(ctx, rec, other, runs)
		if seen && err == nil {
			by = fmt.Sprintf("#%d", other.Number)
		}
		return false, err
	})
	return by, err
}

// seenBefore reports whether people have seen a plan of a pull request before they
// merged it, and it is among what a cluster waits with.
func (v *viewer) seenBefore(
	ctx context.Context, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord, runs []holdfast.Run,
) (bool, error) {
	plans, err := history.PullRequest(ctx, v.opts.Store, pr.PullRequestRef, rec.Name)
	if err != nil {
		return false, err
	}
	desired := decision.Desired(decision.Input{Cluster: rec, Last: decision.LastApplied(rec, runs)})
	if _, seen := decision.ReviewedPlan(plans, pr, desired, rec.Desired.Removed); !seen {
		return false, nil
	}
	return v.includes(ctx, pr, rec.WaitingFor)
}

// unread reports whether a merge waits for a document that says nothing which could be
// planned: that wait may have begun with a revision which the merge is not in.
func (v *viewer) unread(ctx context.Context, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord) (bool, error) {
	if waits, err := v.notApplied(ctx, rec, pr); err != nil || !waits {
		return false, err
	}
	return v.inHead(ctx, pr)
}

// unapplied reports whether a merge is among what a cluster waits with, and not in what
// is applied.
func (v *viewer) unapplied(ctx context.Context, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord) (bool, error) {
	waits, err := v.includes(ctx, pr, rec.WaitingFor)
	if err != nil || !waits {
		return waits, err
	}
	return v.notApplied(ctx, rec, pr)
}

// notApplied reports whether a merge is not in what is applied.
func (v *viewer) notApplied(ctx context.Context, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord) (bool, error) {
	if rec.Applied.Revision == "" {
		return true, nil
	}
	done, err := v.mergedInto(ctx, pr, rec.Applied.Revision)
	return !done && err == nil, err
}

// includes reports whether the merge of a pull request is part of a revision; so
// it is taken for if that is not known.
func (v *viewer) includes(ctx context.Context, pr holdfast.PullRequestRecord, revision holdfast.Revision) (bool, error) {
	if revision == "" || pr.MergeCommit == "" || revision == pr.MergeCommit {
		return true, nil
	}
	in, err := v.opts.Git.IsAncestor(ctx, pr.Repo, pr.MergeCommit, revision)
	if errors.Is(err, holdfast.ErrNotFound) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("look for %s in %s: %w", pr.PullRequestRef, revision.Short(), err)
	}
	return in, nil
}

// errBehind: an outcome is not on the cluster's record yet.
var errBehind = errors.New("an outcome is not on record yet")

// recordWait is how long after the end of a run its outcome is kept from being
// shown because the record does not say it, and recordLook how often it is looked
// again, for which the decision that records it asks as well.
const (
	recordWait = time.Minute
	recordLook = time.Second
)

// behind reports whether a run has ended and the cluster's record does not say so yet.
// A final status on a forge is on record first: whoever follows it to the API finds the
// same there.
func (v *viewer) behind(rec holdfast.ClusterRecord, runs []holdfast.Run, run holdfast.Run) bool {
	since := run.FinishedAt
	if v.began.After(since) { // a server that was unavailable records what has ended before
		since = v.began
	}
	return run.Status.Done() && v.opts.Settings.Now().Sub(since) < recordWait && !decision.Recorded(rec, runs)
}

// failedBefore returns the run that failed in the middle, if the newest one is the plan
// of what it has left; nil if there is none. Runs are those that represent one merge.
func failedBefore(runs []holdfast.Run) *holdfast.Run {
	if runs[0].Kind != holdfast.RunPlan {
		return nil
	}
	i := slices.IndexFunc(runs, func(run holdfast.Run) bool { return run.Kind.Writes() })
	if i < 0 || !runs[i].Begun || runs[i].Failure == nil {
		return nil
	}
	return &runs[i]
}

// nothingLeft reports whether a merge is in what the branch desires of a
// cluster, and that is what is applied: it was reverted before its apply began,
// somebody else had brought the same, or the cluster was destroyed since.
func (v *viewer) nothingLeft(
	ctx context.Context, rec holdfast.ClusterRecord, pr holdfast.PullRequestRecord, runs []holdfast.Run,
) (bool, error) {
	settled := func() bool {
		destroyed := rec.Deletion != nil && rec.Desired.Removed && rec.Waiting == ""
		return destroyed || decision.Settled(rec, runs)
	}
	if !settled() {
		return false, nil
	}
	if in, err := v.inHead(ctx, pr); err != nil || !in {
		return false, err
	}
	// The head may have been taken in since rec was read: what it desires is on record now.
	var err error
	if rec, err = v.opts.Store.Cluster(ctx, rec.Name); err != nil {
		return false, fmt.Errorf("read cluster %q: %w", rec.Name, err)
	}
	if runs, err = history.Branch(ctx, v.opts.Store, rec.Name); err != nil {
		return false, err
	}
	return settled(), nil
}

// inHead reports whether a merge is in the head of its branch that was taken in.
func (v *viewer) inHead(ctx context.Context, pr holdfast.PullRequestRecord) (bool, error) {
	source, err := v.opts.Store.RepositoryState(ctx, pr.Repo)
	if err != nil {
		return false, fmt.Errorf("read source %q: %w", pr.Repo, err)
	}
	return v.mergedInto(ctx, pr, source.Head)
}

// mergedInto reports whether the merge of a pull request is known to be part of a revision.
func (v *viewer) mergedInto(ctx context.Context, pr holdfast.PullRequestRecord, revision holdfast.Revision) (bool, error) {
	in, err := v.opts.Git.IsAncestor(ctx, pr.Repo, pr.MergeCommit, revision)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("look for %s in %s: %w", pr.PullRequestRef, revision.Short(), err)
	}
	return in, nil
}
