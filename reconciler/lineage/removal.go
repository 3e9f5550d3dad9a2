package lineage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// Unproven is why a tree without a document does not prove that its cluster, whose
// record is rec, was removed, whatever branch the tree is of; empty if it does. Since is
// a revision or a tree that had the document; empty if none is known.
func (r *Reader) Unproven(
	ctx context.Context, cat *catalog.Catalog, since string, gone holdfast.Cluster, rec holdfast.ClusterRecord,
) (Doubt, error) {
	for _, why := range []func() (string, error){
		func() (string, error) { return cat.Unproven(gone.Name, gone.Path) },
		func() (string, error) { return r.misplaced(ctx, cat, since, gone) },
		func() (string, error) { return r.takenName(ctx, cat, since, gone, rec) },
		func() (string, error) { return r.doubtfulHeir(ctx, cat, rec) },
	} {
		if text, err := why(); err != nil || text != "" {
			return Doubt{Why: text}, err
		}
	}
	if doubt, err := r.retitled(ctx, cat, since, gone, rec); err != nil || doubt.Why != "" {
		return doubt, err
	}
	why, err := r.stateElsewhere(ctx, cat, rec)
	return Doubt{Why: why}, err
}

// DocumentsAt returns what claimed the name of a cluster, whose record is rec, at a
// revision; what is on record if nobody knows that, or nothing did.
func (r *Reader) DocumentsAt(
	ctx context.Context, repo string, at holdfast.Revision, rec holdfast.ClusterRecord,
) ([]holdfast.Cluster, error) {
	cat, err := r.at(ctx, repo, string(at))
	if err != nil {
		return nil, err
	}
	if cat == nil || len(cat.Named(rec.Name)) == 0 {
		return []holdfast.Cluster{rec.Desired.Document}, nil
	}
	var docs []holdfast.Cluster
	for _, e := range cat.Named(rec.Name) {
		docs = append(docs, e.Doc.Cluster)
	}
	return docs, nil
}

// at returns the catalog of a revision or a tree; nil if nobody knows that.
func (r *Reader) at(ctx context.Context, repo, treeish string) (*catalog.Catalog, error) {
	if treeish == "" {
		return nil, nil
	}
	cat, err := r.catalogs.Read(ctx, repo, treeish)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	}
	return cat, err
}

// takenName is why a cluster that is gone must not be destroyed: a document that came
// meanwhile, or got another name, has the name of another one or of another repository's
// cluster, and is perhaps its own. Empty if there is none, of several the one in its file.
func (r *Reader) takenName(
	ctx context.Context, cat *catalog.Catalog, since string, gone holdfast.Cluster, rec holdfast.ClusterRecord,
) (string, error) {
	if rec.Name == "" {
		return "", nil
	}
	before, err := r.at(ctx, cat.Repo, since)
	if err != nil {
		return "", err
	}
	claims := cat.NewClaims(before)
	if len(claims) == 0 {
		return "", nil
	}
	if applied, err := r.Inherited(ctx, rec); err != nil || applied.Run == "" {
		return "", err
	}
	owners, err := r.ownersElsewhere(ctx, cat, before, claims)
	if err != nil {
		return "", err
	}
	why := ""
	for _, e := range claims {
		whose := ""
		if others := cat.Named(e.Doc.Cluster.Name); len(others) > 1 {
			at := others[0].Doc.Cluster
			if at.Path == e.Doc.Cluster.Path && at.Line == e.Doc.Cluster.Line {
				at = others[1].Doc.Cluster
			}
			whose = fmt.Sprintf("is also that of %s:%d", at.Path, at.Line)
		} else if owner := owners[e.Doc.Cluster.Name]; owner != "" {
			whose = fmt.Sprintf("belongs to repository %q", owner)
		}
		if whose != "" && (why == "" || e.File.Path == gone.Path) {
			why = fmt.Sprintf("%s:%d may be its document, with the name %q, which %s: correct that name, or delete the document",
				e.Doc.Cluster.Path, e.Doc.Cluster.Line, e.Doc.Cluster.Name, whose)
		}
	}
	return why, nil
}

// ownersElsewhere returns the repositories that the names of some documents belong to, if
// these are others. What an earlier tree called so, too, is left out.
func (r *Reader) ownersElsewhere(
	ctx context.Context, cat, before *catalog.Catalog, claims []catalog.Entry,
) (map[string]string, error) {
	var names []string
	for _, e := range claims {
		if name := e.Doc.Cluster.Name; before == nil || len(before.Named(name)) == 0 {
			names = append(names, name)
		}
	}
	owners := make(map[string]string)
	for some := range slices.Chunk(names, byname.AtOnce) {
		records, err := byname.Records(ctx, r.store, some)
		if err != nil {
			return nil, err
		}
		for name, rec := range records {
			if elsewhere, err := r.BelongsElsewhere(ctx, cat.Repo, rec); err != nil {
				return nil, err
			} else if elsewhere {
				owners[name] = rec.Owner
			}
		}
	}
	return owners, nil
}

// misplaced is why a cluster that is gone must not be destroyed: its document has left the
// configured paths, and is still in the tree. Empty if it is not.
func (r *Reader) misplaced(ctx context.Context, cat *catalog.Catalog, since string, gone holdfast.Cluster) (string, error) {
	if since == "" {
		return "", nil
	}
	at, err := r.catalogs.Misplaced(ctx, cat, since, gone.Name)
	if err != nil || at == "" {
		return "", err
	}
	return at + " is its document, outside the configured paths: move it back, or delete it if the cluster should be removed", nil
}
