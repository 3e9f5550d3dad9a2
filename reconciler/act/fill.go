package act

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/record"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// filler gives runs what they execute.
type filler struct{ shared }

// fill gives a run what it executes: the root module as the tracked
// branch or the pull request's merge result has it, stored once.
func (f *filler) fill(ctx context.Context, in decision.Input, run *holdfast.Run) error {
	repo, treeish := in.Cluster.Owner, string(in.Cluster.Desired.Revision)
	run.Revision = in.Cluster.Desired.Revision
	want := holdfast.PullRequestCluster{
		SourceDigest: in.Cluster.Desired.SourceDigest, Document: in.Cluster.Desired.Document, Removed: in.Cluster.Desired.Removed,
	}
	if pr := in.PullRequest; pr != nil {
		repo, treeish = pr.Repo, pr.Result
		run.Revision, run.Base = pr.Head, pr.Base
		want, _ = decision.Affected(in)
		run.Provisional = decision.Unsettled(in.Parents)
	}
	run.Repo = repo
	run.SourceDigest, run.Document = want.SourceDigest, want.Document
	switch {
	case want.Removed:
		fillDestruction(in, run)
		return nil
	case want.Sample:
		return f.fillSample(ctx, in, want, run)
	}
	cat, err := f.Catalogs.Read(ctx, repo, treeish)
	if err != nil {
		return err
	}
	entries := cat.Named(run.Cluster)
	if len(entries) != 1 {
		return fmt.Errorf("find cluster in %s at %s: %w", repo, treeish, holdfast.ErrNotFound)
	}
	if err := f.fillRoot(ctx, f.Resolver, cat.Tree, entries[0].Doc, run); err != nil {
		return err
	}
	if in.PullRequest == nil {
		// The revision may be an older one of the same content, whose document had another
		// project or environment: credentials are those that Git says now.
		run.Document = want.Document
		return nil
	}
	return f.fillFormerState(ctx, repo, in, run)
}

// fillFormerState has a plan of a cluster that is being renamed made with the
// state where the former name has it: there it is until then.
func (f *filler) fillFormerState(ctx context.Context, repo string, in decision.Input, run *holdfast.Run) error {
	if !holdfast.OwnState(run.StateLocation) {
		return nil
	}
	former, err := f.Lineage.Former(ctx, repo, in.Cluster, run.Document)
	if err == nil && former.Name != "" {
		run.StateLocation = "clusters/" + former.Name
	}
	return err
}

// fillRoot gives a run the root module that a document renders to, and stores it.
func (f *filler) fillRoot(
	ctx context.Context, resolver *templates.Resolver, tree holdfast.Tree, doc document.Document, run *holdfast.Run,
) error {
	root, faults, err := resolver.Resolve(ctx, tree, doc)
	if err != nil {
		return fmt.Errorf("resolve: %w", err)
	}
	if len(faults) > 0 {
		return fmt.Errorf("resolve: %w", faults)
	}
	place, err := f.Places.Of(ctx, doc.Cluster, root.StateLocation)
	if err != nil {
		return fmt.Errorf("look where the state is: %w", err)
	}
	if place.Stored != nil {
		root = root.KeptIn(*place.Stored)
	}
	data, digest, err := root.Bundle()
	if err != nil {
		return fmt.Errorf("bundle root module: %w", err)
	}
	if err := f.opts.Store.PutBundle(ctx, digest, data); err != nil {
		return fmt.Errorf("store bundle: %w", err)
	}
	run.SourceDigest, run.Bundle, run.Dir = root.Digest, digest, root.Dir
	run.Document, run.StateLocation, run.Stored, run.Template = doc.Cluster, place.Location, place.Stored, root.Template
	run.OutputRoles = root.OutputRoles
	return nil
}

// fillDestruction gives a run what was last applied, to destroy it: whatever has
// become of the repositories that it came from.
func fillDestruction(in decision.Input, run *holdfast.Run) {
	rec, revision := in.Cluster, run.Revision
	rec.Applied = in.Last
	record.FillApplied(rec, run)
	run.Revision, run.SourceDigest = revision, decision.DestroyDigest(in.Cluster.Name, in.Last)
	run.Destroy = run.Kind == holdfast.RunPlan
}
