package act

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
)

// fillSample gives a run the root module that a cluster would have with a pull
// request's template, at the state that the cluster has. It may not be a plan of
// what its repository may not define: its credentials and its state are somebody
// else's then.
func (f *filler) fillSample(ctx context.Context, in decision.Input, want holdfast.PullRequestCluster, run *holdfast.Run) error {
	pr := in.PullRequest
	run.Repo, run.Sample = want.Repo, true
	treeish := string(want.Revision)
	if want.Repo == pr.Repo {
		treeish = pr.Result // the same documents, and the tree that is surely there
	}
	cat, err := f.Catalogs.Read(ctx, want.Repo, treeish)
	if err != nil {
		return err
	}
	entries := cat.Named(run.Cluster)
	if len(entries) != 1 || want.Document.Template == nil {
		return fmt.Errorf("find cluster in %s at %s: %w", want.Repo, want.Revision, holdfast.ErrNotFound)
	}
	tree, err := f.opts.Git.Tree(ctx, pr.Repo, pr.Result)
	if err != nil {
		return fmt.Errorf("open %s at %s: %w", pr.Repo, pr.Result, err)
	}
	name := want.Document.Template.Name
	proposed := releases.Proposed{
		Released: f.Releases, Name: name, Repo: pr.Repo, Tree: tree, Dir: path.Clean(f.opts.Settings.Templates[pr.Repo][name]),
	}
	doc := entries[0].Doc
	doc.Cluster = want.Document
	if err := f.fillRoot(ctx, f.Resolver.Using(proposed), cat.Tree, doc, run); err != nil {
		return err
	}
	if !run.SourceDigest.Equal(want.SourceDigest) {
		// It would be planned again and again.
		f.Impacts.Drop(pr.PullRequestRef)
		return fmt.Errorf("plan what %s was assessed with: it is something else now: %w", pr.PullRequestRef, holdfast.ErrNotFound)
	}
	res := &catalog.Resolution{Doc: doc, Location: run.StateLocation}
	shared, err := f.Lineage.SharedState(ctx, cat, res, in.Cluster)
	if err != nil {
		return err
	}
	owned, err := f.Lineage.OwnedElsewhere(ctx, want.Repo, in.Cluster, res)
	if err != nil {
		return err
	}
	if faults := slices.Concat(f.opts.Grants.Forbidden(want.Repo, res.Doc, res.Location), owned, shared); len(faults) > 0 {
		return fmt.Errorf("resolve: %w", faults)
	}
	return f.fillFormerState(ctx, want.Repo, in, run)
}
