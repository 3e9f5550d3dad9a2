package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// observer reads what decisions depend on.
type observer struct{ shared }

// observe gathers what a decision about req depends on; stands is the way in which the
// conditions of merges are checked.
func (o *observer) observe(ctx context.Context, req holdfast.Request, stands standing) (decision.Input, error) {
	in, err := o.recorded(ctx, req)
	if err != nil || !req.PullRequest.IsZero() {
		return in, err
	}
	if toApply(in) {
		in.Merges, err = o.merges(ctx, in.Cluster, in.Runs, o.judged(decision.Newest(in.Runs), stands))
	}
	return in, err
}

// observePlans is observe for whoever asks which plan waits: a merge has its review and
// no conditions, so that no forge is asked.
func (o *observer) observePlans(ctx context.Context, cluster string) (decision.Input, error) {
	in, err := o.recorded(ctx, holdfast.Request{Cluster: cluster})
	if err == nil && toApply(in) {
		in.Merges, err = o.merges(ctx, in.Cluster, in.Runs, o.reviewed)
	}
	return in, err
}

// toApply reports whether there is something to apply on a tracked branch, or something
// half done that was taken back.
func toApply(in decision.Input) bool {
	same := decision.Desired(in).Equal(in.Cluster.Applied.SourceDigest) && decision.Begun(in) == nil
	return !same && in.Cluster.Deletion == nil
}

// recorded is observe without the merges of a tracked branch, for which a forge may be
// asked.
func (o *observer) recorded(ctx context.Context, req holdfast.Request) (decision.Input, error) {
	in := decision.Input{Now: o.opts.Now(), Request: req, Resumes: o.opts.Settings.Resumes}
	rec, err := o.opts.Store.Cluster(ctx, req.Cluster)
	switch {
	case err == nil:
		in.Cluster = rec
	case errors.Is(err, holdfast.ErrNotFound) && !req.PullRequest.IsZero():
		// A pull request may define a cluster that no tracked branch has yet.
	default:
		return in, fmt.Errorf("read cluster %q: %w", req.Cluster, err)
	}
	if in.Unsaved, err = o.Rescue.Standing(ctx, req.Cluster); err != nil {
		return in, err
	}
	branch, err := history.Branch(ctx, o.opts.Store, req.Cluster)
	if err != nil {
		return in, err
	}
	in.LastApply = decision.LastBegun(branch)
	in.Last = decision.LastApplied(in.Cluster, branch)
	if req.PullRequest.IsZero() {
		in.Runs = branch
		if in.Drift, err = history.LastCheck(ctx, o.opts.Store, rec); err != nil {
			return in, err
		}
		if err := o.observeRelated(ctx, &in); err != nil {
			return in, err
		}
		in.Window = decision.LookAtWindows(in)
		in.Released, err = history.Released(ctx, o.opts.Store, decision.Newest(in.Runs))
		return in, err
	}
	pr, err := o.opts.Store.PullRequest(ctx, req.PullRequest)
	if err != nil {
		return in, fmt.Errorf("read pull request %s: %w", req.PullRequest, err)
	}
	in.PullRequest = &pr
	if err := o.observeProposal(ctx, &in); err != nil {
		return in, err
	}
	o.observePolicies(ctx, &in)
	if in.Runs, err = history.PullRequest(ctx, o.opts.Store, req.PullRequest, req.Cluster); err != nil {
		return in, err
	}
	in.Released, err = history.Released(ctx, o.opts.Store, decision.Newest(in.Runs))
	return in, err
}

// observeRelated looks at the clusters that the tracked branch's decision about
// this one depends on.
func (o *observer) observeRelated(ctx context.Context, in *decision.Input) error {
	rec := in.Cluster
	in.Unseen = !o.Intake.Seen(rec.Owner)
	var err error
	if in.Suspended, err = o.suspension(ctx, rec); err != nil {
		return err
	}
	if last := decision.Newest(in.Runs); last.Status.Pending() {
		in.Throttled = o.Dispatcher.HeldUntil(last.Document.Provider)
	}
	if !rec.Desired.Removed {
		in.Parents, err = o.Lineage.Parents(ctx, rec.Desired.Document)
		return err
	}
	if rec.Deletion != nil {
		return nil
	}
	if in.Dependents, err = o.Lineage.DestroyedFirst(ctx, rec); err != nil {
		return err
	}
	going := holdfast.ClusterFilter{Owner: rec.Owner, Phase: holdfast.PhaseDeleting}
	if in.Removals, err = o.opts.Store.CountClusters(ctx, going); err != nil {
		return fmt.Errorf("count removed clusters of %q: %w", rec.Owner, err)
	}
	if in.Fleet, err = o.opts.Store.CountClusters(ctx, holdfast.ClusterFilter{Owner: rec.Owner, Applied: true}); err != nil {
		return fmt.Errorf("count clusters of %q: %w", rec.Owner, err)
	}
	return nil
}

// observeProposal looks at what a pull request's plan of this cluster is made
// ahead of: clusters that it depends on and that the same merge, or another one
// before it, is still to apply. A cluster that is renamed continues from what its
// former name has.
func (o *observer) observeProposal(ctx context.Context, in *decision.Input) error {
	want, ok := decision.Affected(*in)
	if !ok {
		return nil
	}
	repo := in.PullRequest.Repo
	if want.Sample {
		repo = want.Repo
	}
	former, err := o.Lineage.Former(ctx, repo, in.Cluster, want.Document)
	if err != nil {
		return err
	}
	if former.Name != "" {
		in.Cluster.StateSerial, in.LastApply = former.StateSerial, former.Applied.Run
	}
	if want.Removed || want.Sample {
		return nil
	}
	if former.Name != "" {
		in.Last = former.Applied
	}
	if in.Parents, err = o.Lineage.Parents(ctx, want.Document); err != nil {
		return err
	}
	for i, p := range in.Parents {
		same := func(c holdfast.PullRequestCluster) bool { return c.Name == p.Name }
		at := slices.IndexFunc(in.PullRequest.Clusters, same)
		if at < 0 {
			continue
		}
		in.Parents[i].Settled = false
		switch gone := p.Phase == "" || p.Phase == holdfast.PhaseDeleted; {
		case in.PullRequest.Clusters[at].Removed:
			in.Parents[i].Phase = holdfast.PhaseDeleted
		case gone: // it comes with the same merge
			in.Parents[i].Phase = holdfast.PhasePending
		}
	}
	return nil
}

// merges returns the pull requests that brought the cluster from what was last
// applied to what is desired now, newest first, with what people had seen.
// Whether a merge is in the one and not in the other is asked of Git, by
// identity; look says the rest of each.
func (o *observer) merges(ctx context.Context, rec holdfast.ClusterRecord, branch []holdfast.Run, look mergeLook) ([]decision.Merge, error) {
	repo, head := rec.Owner, rec.Desired.Revision
	if head == "" {
		return nil, nil
	}
	used := usedReviews(branch)
	var pending []holdfast.PullRequestRecord
	err := history.Merges(ctx, o.opts.Store, repo, rec.Name, func(pr holdfast.PullRequestRecord) (bool, error) {
		if used[pr.PullRequestRef] {
			return true, nil
		}
		in, err := o.merged(ctx, pr, head)
		if err != nil || !in { // a forced push may have removed it, and what was merged before it not
			return false, err
		}
		if done, err := o.merged(ctx, pr, rec.Applied.Revision); err != nil || done {
			return done, err
		}
		pending = append(pending, pr)
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	asks := make([]decision.Merge, len(pending))
	for i, pr := range pending {
		asks[i] = decision.Merge{Review: holdfast.Review{PullRequest: pr.PullRequestRef}, Asks: asksOf(pr, rec.Name)}
	}
	out := make([]decision.Merge, len(pending))
	for i, pr := range pending {
		if out[i], err = look(ctx, pr, rec, branch, decision.Merged(asks)); err != nil {
			return nil, err
		}
		out[i].Asks = asks[i].Asks
	}
	return out, nil
}

// asksOf are the conditions that the document of a cluster had when a pull request was merged.
func asksOf(pr holdfast.PullRequestRecord, cluster string) holdfast.ApplySettings {
	for _, c := range pr.Clusters {
		if c.Name == cluster && !c.Sample {
			return c.Document.Apply
		}
	}
	return holdfast.ApplySettings{}
}

// merged reports whether the merge of a pull request is part of a revision.
func (o *observer) merged(ctx context.Context, pr holdfast.PullRequestRecord, revision holdfast.Revision) (bool, error) {
	if pr.MergeCommit == "" || revision == "" {
		return false, nil
	}
	in, err := o.opts.Git.IsAncestor(ctx, pr.Repo, pr.MergeCommit, revision)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("look for %s in %s: %w", pr.PullRequestRef, revision.Short(), err)
	}
	return in && err == nil, nil
}

// usedReviews are the pull requests that an apply stood for which has ended
// well. A branch that is forced back and forth brings them into the history
// again, and not what people have seen of them.
func usedReviews(branch []holdfast.Run) map[holdfast.PullRequestRef]bool {
	used := make(map[holdfast.PullRequestRef]bool)
	for _, run := range branch {
		if !run.Kind.Writes() || run.Status != holdfast.RunApplied && run.Status != holdfast.RunNoChanges {
			continue
		}
		for _, review := range run.Reviews {
			used[review.PullRequest] = true
		}
	}
	return used
}

// mergeLook says of a merged pull request what it means for a cluster, whose newest runs
// of the tracked branch it is given, and the documents of all merges that are not applied yet.
type mergeLook func(
	ctx context.Context, pr holdfast.PullRequestRecord, rec holdfast.ClusterRecord, branch []holdfast.Run, merged []holdfast.Applied,
) (decision.Merge, error)

// reviewed finds the plan of a merged pull request that was reviewed.
func (o *observer) reviewed(
	ctx context.Context, pr holdfast.PullRequestRecord, rec holdfast.ClusterRecord, branch []holdfast.Run, _ []holdfast.Applied,
) (decision.Merge, error) {
	runs, err := history.PullRequest(ctx, o.opts.Store, pr.PullRequestRef, rec.Name)
	m, _, _ := mergeOf(pr, rec, runs, branch)
	return m, err
}

// mergeOf is a merged pull request with the plan that was reviewed in it, if one was: the
// last plan of the merged head that was posted before the merge. A person who has seen a
// change has not seen a destruction, nor the other way round.
func mergeOf(
	pr holdfast.PullRequestRecord, rec holdfast.ClusterRecord, runs, branch []holdfast.Run,
) (m decision.Merge, plan holdfast.Run, found bool) {
	desired := decision.Desired(decision.Input{Cluster: rec, Last: decision.LastApplied(rec, branch)})
	if plan, found = decision.ReviewedPlan(runs, pr, desired, rec.Desired.Removed); found {
		m.Review = decision.ReviewOf(plan)
	}
	m.Review.PullRequest, m.At = pr.PullRequestRef, pr.MergedAt
	return m, plan, found
}

// suspension is what a cluster is suspended with: itself, one of its projects, or the
// fleet; empty if it is not.
func (o *observer) suspension(ctx context.Context, rec holdfast.ClusterRecord) (string, error) {
	if rec.Suspended {
		return decision.SuspendedCluster, nil
	}
	all, err := o.opts.Store.Suspensions(ctx)
	if err != nil {
		return "", fmt.Errorf("list suspensions: %w", err)
	}
	if len(all) == 0 {
		return "", nil
	}
	if slices.ContainsFunc(all, func(s holdfast.Suspension) bool { return s.Project == "" }) {
		return decision.SuspendedFleet, nil
	}
	branch, err := history.Branch(ctx, o.opts.Store, rec.Name)
	if err != nil {
		return "", err
	}
	projects := decision.Projects(rec, branch)
	if slices.ContainsFunc(all, func(s holdfast.Suspension) bool { return slices.Contains(projects, s.Project) }) {
		return decision.SuspendedProject, nil
	}
	return "", nil
}
