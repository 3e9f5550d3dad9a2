package comparison

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/reconciler/places"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// Clusters are the records of clusters; *datastore.Store has them.
type Clusters interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
}

// Options are what a Comparer needs. All are required.
type Options struct {
	Store    Clusters
	Catalogs *catalog.Reader
	Lineage  *lineage.Reader
	Places   *places.Keeper
	// HeirElsewhere is why a cluster that is gone must not be destroyed: by the tracked
	// branch of another repository a document there continues it.
	HeirElsewhere func(ctx context.Context, rec holdfast.ClusterRecord) (lineage.Doubt, error)
	// Waiting are the clusters of a repository that are looked at again with each head.
	Waiting func(repo string) []string
}

// Comparer compares trees. It is safe for concurrent use.
type Comparer struct{ opts Options }

// New returns a Comparer.
func New(opts Options) *Comparer { return &Comparer{opts: opts} }

// Compare fills in the clusters that differ between two trees, and what is
// wrong with the files that the pull request brings. Proven are clusters whose removal
// needs no further proof.
func (m *Comparer) Compare(
	ctx context.Context, from, to *catalog.Catalog, rec *holdfast.PullRequestRecord, proven ...string,
) error {
	differ, err := m.opts.Catalogs.Diff(ctx, from, to)
	if err != nil {
		return err
	}
	for _, path := range differ.Files {
		if f := to.File(path); f != nil {
			rec.Faults = append(rec.Faults, f.Faults...)
		}
	}
	unsettled, err := m.unsettled(ctx, from, differ)
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(differ.Names, unsettled) {
		res, err := m.opts.Catalogs.Resolve(ctx, to, name)
		if err != nil {
			return err
		}
		known, err := m.opts.Store.Cluster(ctx, name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read cluster %q: %w", name, err)
		}
		c := holdfast.PullRequestCluster{Name: name, Removed: res == nil}
		if res == nil {
			heirs, err := m.opts.Lineage.Heirs(ctx, to, name)
			if err != nil {
				return err
			}
			if len(heirs) > 0 || known.Name != "" && known.Owner != to.Repo {
				continue // it continues under another name, or in another repository
			}
			if !slices.Contains(proven, name) {
				if err := m.compareGone(ctx, from, to, known, &c, rec); err != nil {
					return err
				}
			}
		} else {
			faults, err := m.faultsOf(ctx, to, res, known)
			if err != nil {
				return err
			}
			c.Document = res.Doc.Cluster
			if len(faults) == 0 {
				place, err := m.opts.Places.Of(ctx, res.Doc.Cluster, res.Location)
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
	if err := m.comparePolicies(ctx, to, differ, rec); err != nil {
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
func (m *Comparer) unsettled(ctx context.Context, from *catalog.Catalog, differ catalog.Difference) ([]string, error) {
	faulty := slices.ContainsFunc(differ.Files, func(path string) bool { f := from.File(path); return f != nil && len(f.Faults) > 0 })
	changed := slices.Concat(differ.Names, differ.Documents)
	if !faulty && len(changed) == 0 {
		return nil, nil
	}
	waiting, err := m.opts.Store.Clusters(ctx, holdfast.ClusterFilter{Owner: from.Repo, Waiting: holdfast.ReasonMissing})
	if err != nil {
		return nil, fmt.Errorf("list clusters of %q whose documents are missing: %w", from.Repo, err)
	}
	var names []string
	for _, rec := range waiting {
		if slices.Contains(changed, rec.Name) || len(from.Named(rec.Name)) > 0 {
			continue
		}
		others, err := m.opts.Lineage.Retitled(ctx, from, string(rec.Desired.Revision), rec.Desired.Document, rec)
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
func (m *Comparer) compareGone(
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
		if doubt, err = m.opts.Lineage.Unproven(ctx, to, since, c.Document, known); err != nil {
			return err
		}
		others, err := m.opts.Lineage.Retitled(ctx, to, since, c.Document, known)
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
		if doubt, err = m.opts.HeirElsewhere(ctx, known); err != nil {
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
func (m *Comparer) comparePolicies(
	ctx context.Context, to *catalog.Catalog, differ catalog.Difference, rec *holdfast.PullRequestRecord,
) error {
	for _, name := range differ.Documents {
		if len(to.Named(name)) == 0 || slices.Contains(differ.Names, name) {
			continue
		}
		res, err := m.opts.Catalogs.Resolve(ctx, to, name)
		if err != nil {
			return err
		}
		known, err := m.opts.Store.Cluster(ctx, name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read cluster %q: %w", name, err)
		}
		faults, err := m.faultsOf(ctx, to, res, known)
		if err != nil {
			return err
		}
		rec.Faults = append(rec.Faults, faults...)
	}
	return nil
}

// faultsOf are all faults of a cluster in a tree: those of its document, and those that
// the document has next to others and to what is on record.
func (m *Comparer) faultsOf(
	ctx context.Context, to *catalog.Catalog, res *catalog.Resolution, known holdfast.ClusterRecord,
) (holdfast.Faults, error) {
	others, err := m.opts.Lineage.Faults(ctx, to, res, known, lineage.Branch{Waiting: m.opts.Waiting(to.Repo)})
	if err != nil {
		return nil, err
	}
	owned, err := m.opts.Lineage.OwnedElsewhere(ctx, to.Repo, known, res)
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
