package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// compare fills in the clusters that differ between two trees, and what is
// wrong with the files that the pull request brings. Proven are clusters whose removal
// needs no further proof.
func (p *pullRequests) compare(
	ctx context.Context, from, to *catalog.Catalog, rec *holdfast.PullRequestRecord, proven ...string,
) error {
	differ, err := p.Catalogs.Diff(ctx, from, to)
	if err != nil {
		return err
	}
	for _, path := range differ.Files {
		if f := to.File(path); f != nil {
			rec.Faults = append(rec.Faults, f.Faults...)
		}
	}
	unsettled, err := p.unsettled(ctx, from, differ)
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(differ.Names, unsettled) {
		res, err := p.Catalogs.Resolve(ctx, to, name)
		if err != nil {
			return err
		}
		known, err := p.opts.Store.Cluster(ctx, name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read cluster %q: %w", name, err)
		}
		c := holdfast.PullRequestCluster{Name: name, Removed: res == nil}
		if res == nil {
			heirs, err := p.Lineage.Heirs(ctx, to, name)
			if err != nil {
				return err
			}
			if len(heirs) > 0 || known.Name != "" && known.Owner != to.Repo {
				continue // it continues under another name, or in another repository
			}
			if !slices.Contains(proven, name) {
				if err := p.compareGone(ctx, from, to, known, &c, rec); err != nil {
					return err
				}
			}
		} else {
			faults, err := p.faultsOf(ctx, to, res, known)
			if err != nil {
				return err
			}
			c.Document = res.Doc.Cluster
			if len(faults) == 0 {
				place, err := p.Places.Of(ctx, res.Doc.Cluster, res.Location)
				if err != nil {
					return fmt.Errorf("look where the state of %q is: %w", name, err)
				}
				c.SourceDigest, c.StateLocation = res.Digest, place.Location
			}
			rec.Faults = append(rec.Faults, faults...)
		}
		rec.Clusters = append(rec.Clusters, c)
	}
	withoutDoubtful(rec)
	if err := p.comparePolicies(ctx, to, differ, rec); err != nil {
		return err
	}
	rec.Settings = changedSettings(from, to, differ.Documents)
	slices.SortStableFunc(rec.Faults, byPosition)
	rec.Faults = slices.CompactFunc(rec.Faults, func(a, b holdfast.Fault) bool { return a == b })
	return nil
}

// unsettled are the clusters of which neither tree has a document, and which wait for what
// differs between the two: for the file that had theirs, and cannot be read, or for a document
// that may be theirs.
func (p *pullRequests) unsettled(ctx context.Context, from *catalog.Catalog, differ catalog.Difference) ([]string, error) {
	faulty := slices.ContainsFunc(differ.Files, func(path string) bool { f := from.File(path); return f != nil && len(f.Faults) > 0 })
	changed := slices.Concat(differ.Names, differ.Documents)
	if !faulty && len(changed) == 0 {
		return nil, nil
	}
	waiting, err := p.opts.Store.Clusters(ctx, holdfast.ClusterFilter{Owner: from.Repo, Waiting: holdfast.ReasonMissing})
	if err != nil {
		return nil, fmt.Errorf("list clusters of %q whose documents are missing: %w", from.Repo, err)
	}
	var names []string
	for _, rec := range waiting {
		if slices.Contains(changed, rec.Name) || len(from.Named(rec.Name)) > 0 {
			continue
		}
		others, err := p.Lineage.Retitled(ctx, from, string(rec.Desired.Revision), rec.Desired.Document, rec)
		if err != nil {
			return nil, err
		}
		held := slices.ContainsFunc(others, func(other holdfast.Cluster) bool { return slices.Contains(changed, other.Name) })
		if held || faulty && slices.Contains(differ.Files, rec.Desired.Document.Path) {
			names = append(names, rec.Name)
		}
	}
	return names, nil
}

// compareGone says of a cluster whose document is gone why that is not a removal, if it
// is not; and of the documents that may be its own that this is to be settled first.
func (p *pullRequests) compareGone(
	ctx context.Context, from, to *catalog.Catalog, known holdfast.ClusterRecord, c *holdfast.PullRequestCluster, rec *holdfast.PullRequestRecord,
) error {
	var doubt lineage.Doubt
	since := from.ID
	var documents []holdfast.Cluster
	for _, gone := range from.Named(c.Name) { // several are a fault, and each may still be there
		documents = append(documents, gone.Doc.Cluster)
	}
	if len(documents) == 0 && known.Name != "" { // it is held by what the branch says
		documents, since = append(documents, known.Desired.Document), string(known.Desired.Revision)
	}
	for _, document := range documents {
		var err error
		c.Document = document
		if doubt, err = p.Lineage.Unproven(ctx, to, since, c.Document, known); err != nil {
			return err
		}
		others, err := p.Lineage.Retitled(ctx, to, since, c.Document, known)
		if err != nil {
			return err
		}
		for _, other := range others {
			rec.Faults = append(rec.Faults, holdfast.Fault{
				File: other.Path, Line: other.Line, Cluster: other.Name,
				Message: fmt.Sprintf("cluster %q may be %q, whose document is gone: it is not planned", other.Name, c.Name),
				Hint: fmt.Sprintf("correct the name, or set metadata.renamedFrom: %[1]s if it is the same cluster; "+
					"else add it in a later change than the one that removes %[1]s", c.Name),
			})
		}
		if doubt.Why != "" {
			break
		}
	}
	if doubt.Why == "" {
		var err error
		if doubt, err = p.heirElsewhere(ctx, known); err != nil {
			return err
		}
	}
	if doubt.Why != "" {
		c.Removed = false
		rec.Faults = append(rec.Faults, holdfast.Fault{
			File: c.Document.Path, Cluster: c.Name, Message: fmt.Sprintf("cluster %q is gone, and not removed: %s", c.Name, doubt.Why),
			Hint: "fix the file; to remove a cluster, delete its document, and the file if nothing else is in it",
		})
	}
	return nil
}

// withoutDoubtful takes from clusters what they would be planned with, if another one's
// absence is a fault of theirs: a merge has no reviewed plan of them.
func withoutDoubtful(rec *holdfast.PullRequestRecord) {
	for i := range rec.Clusters {
		c := &rec.Clusters[i]
		if c.SourceDigest != "" && slices.ContainsFunc(rec.Faults, func(f holdfast.Fault) bool { return f.Cluster == c.Name }) {
			c.SourceDigest, c.StateLocation = "", ""
		}
	}
}

// comparePolicies adds what is wrong with documents that a pull request changes
// without a change of what they render: a label, a comment, what they depend on.
func (p *pullRequests) comparePolicies(
	ctx context.Context, to *catalog.Catalog, differ catalog.Difference, rec *holdfast.PullRequestRecord,
) error {
	for _, name := range differ.Documents {
		if len(to.Named(name)) == 0 || slices.Contains(differ.Names, name) {
			continue
		}
		res, err := p.Catalogs.Resolve(ctx, to, name)
		if err != nil {
			return err
		}
		known, err := p.opts.Store.Cluster(ctx, name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read cluster %q: %w", name, err)
		}
		faults, err := p.faultsOf(ctx, to, res, known)
		if err != nil {
			return err
		}
		rec.Faults = append(rec.Faults, faults...)
	}
	return nil
}

// faultsOf are all faults of a cluster in a tree: those of its document, and those that
// the document has next to others and to what is on record.
func (p *pullRequests) faultsOf(
	ctx context.Context, to *catalog.Catalog, res *catalog.Resolution, known holdfast.ClusterRecord,
) (holdfast.Faults, error) {
	others, err := p.Lineage.Faults(ctx, to, res, known, lineage.Branch{Waiting: p.marks.recheckIn(to.Repo)})
	if err != nil {
		return nil, err
	}
	owned, err := p.Lineage.OwnedElsewhere(ctx, to.Repo, known, res)
	return slices.Concat(res.Faults, owned, others), err
}

// changedSettings says what the documents of two trees say differently that no plan shows.
func changedSettings(from, to *catalog.Catalog, names []string) []string {
	var out []string
	for _, name := range names {
		before, after := from.Named(name), to.Named(name)
		if len(before) != 1 || len(after) != 1 {
			continue
		}
		for _, text := range document.ChangedSettings(before[0].Doc.Cluster, after[0].Doc.Cluster) {
			out = append(out, name+" changes "+text)
		}
	}
	return out
}

// byPosition also tells apart what is at one position, so that the same
// faults are side by side.
func byPosition(a, b holdfast.Fault) int {
	return cmp.Or(
		cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Message, b.Message),
	)
}
