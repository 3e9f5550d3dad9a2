package reconciler

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/impact"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
)

// planAll has every cluster planned that a pull request's change of a template
// would change, not only samples.
func (r *Reconciler) planAll(ctx context.Context, c holdfast.Command) (string, error) {
	if c.PullRequest.IsZero() {
		return "", refusal("--all is about a pull request that changes a template")
	}
	repo := r.repos[c.PullRequest.Repo]
	unlock := r.looking.Lock(holdfast.Request{PullRequest: c.PullRequest})
	defer unlock()
	rec, err := r.opts.Store.PullRequest(ctx, c.PullRequest)
	if errors.Is(err, holdfast.ErrNotFound) {
		return "", refusal(fmt.Sprintf("pull request %s is not known (yet): does it change a watched branch?", c.PullRequest))
	} else if err != nil {
		return "", fmt.Errorf("read pull request %s: %w", c.PullRequest, err)
	}
	impacts, err := r.opts.Store.Impacts(ctx, c.PullRequest)
	switch {
	case err != nil:
		return "", fmt.Errorf("read impact of %s: %w", c.PullRequest, err)
	case rec.State != holdfast.PullRequestOpen:
		return "", refusal("the pull request is no longer open")
	case rec.Reason != "":
		return "", refusal("nothing is planned of this pull request: " + rec.Reason.Refusal(""))
	case len(impacts) == 0:
		return "", refusal("this pull request changes no template: plan plans all that it changes")
	case repo.Trials < 0:
		return "", refusal("holdfast.yaml has no clusters planned for this repository's templates: repositories[].trials")
	}
	rec.AllTrials = true
	if _, err := r.opts.Store.SavePullRequest(ctx, rec); err != nil {
		return "", fmt.Errorf("record pull request %s: %w", rec.PullRequestRef, err)
	}
	r.agenda.Look(agenda.Look{Repo: rec.Repo, Number: rec.Number, Known: true})
	return "", nil
}

// fillTrial gives a run the root module that a cluster would have with a pull
// request's template, at the state that the cluster has. It may not be a plan of
// what its repository may not define: its credentials and its state are somebody
// else's then.
func (r *Reconciler) fillTrial(ctx context.Context, in decision.Input, want holdfast.PullRequestCluster, run *holdfast.Run) error {
	pr := in.PullRequest
	run.Repo, run.Trial = want.Repo, true
	treeish := string(want.Revision)
	if want.Repo == pr.Repo {
		treeish = pr.Result // the same documents, and the tree that is surely there
	}
	cat, err := r.catalogs.Read(ctx, want.Repo, treeish)
	if err != nil {
		return err
	}
	entries := cat.Named(run.Cluster)
	if len(entries) != 1 || want.Document.Template == nil {
		return fmt.Errorf("find cluster in %s at %s: %w", want.Repo, want.Revision, holdfast.ErrNotFound)
	}
	tree, err := r.opts.Git.Tree(ctx, pr.Repo, pr.Result)
	if err != nil {
		return fmt.Errorf("open %s at %s: %w", pr.Repo, pr.Result, err)
	}
	name := want.Document.Template.Name
	proposed := impact.Proposed{
		Released: r.releases, Name: name, Repo: pr.Repo, Tree: tree, Dir: path.Clean(r.repos[pr.Repo].Templates[name]),
	}
	doc := entries[0].Doc
	doc.Cluster = want.Document
	if err := r.fillRoot(ctx, r.resolver.Using(proposed), cat.Tree, doc, run); err != nil {
		return err
	}
	if !run.SourceDigest.Equal(want.SourceDigest) {
		// It would be planned again and again.
		r.impacts.Drop(pr.PullRequestRef)
		return fmt.Errorf("plan what %s was assessed with: it is something else now: %w", pr.PullRequestRef, holdfast.ErrNotFound)
	}
	res := &catalog.Resolution{Doc: doc, Location: run.StateLocation}
	shared, err := r.lineage.SharedState(ctx, cat, res, in.Cluster)
	if err != nil {
		return err
	}
	if faults := slices.Concat(r.forbidden(want.Repo, res.Doc, res.Location), lineage.OwnedElsewhere(want.Repo, in.Cluster, res), shared); len(faults) > 0 {
		return fmt.Errorf("resolve: %w", faults)
	}
	return r.fillFormerState(ctx, want.Repo, in, run)
}
