package lineage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// notFound is a former name that leads to no cluster which could be continued.
type notFound struct {
	message string // completes "renamedFrom is "x", "; empty: there is nothing wrong
	hint    string
}

// formerNotFound says what is wrong with the former name of a document whose cluster,
// with the record rec, has no state yet: nobody knows that name, or its cluster has
// another one by now. It would begin with nothing, and its document says otherwise.
func (r *Reader) formerNotFound(
	ctx context.Context, cat *catalog.Catalog, doc holdfast.Cluster, rec holdfast.ClusterRecord,
) (notFound, error) {
	if doc.RenamedFrom == "" {
		return notFound{}, nil
	}
	if rec.Name != "" {
		if own, err := r.Inherited(ctx, rec); err != nil || own.Run != "" {
			return notFound{}, err // it was renamed long ago, or has its own state
		}
	}
	old, err := r.store.Cluster(ctx, doc.RenamedFrom)
	if errors.Is(err, holdfast.ErrNotFound) {
		if settled(cat.Repo, rec, doc) {
			return notFound{}, nil
		}
		hint, err := r.nearName(ctx, cat, doc)
		return notFound{"and no cluster has or had that name on this branch", hint}, err
	} else if err != nil {
		return notFound{}, fmt.Errorf("read cluster %q: %w", doc.RenamedFrom, err)
	}
	now, err := r.presentName(ctx, old)
	if err != nil || now.Name == old.Name || now.Name == doc.Name || now.Deletion != nil || now.Owner != cat.Repo {
		return notFound{}, err
	}
	if has, err := r.Inherited(ctx, now); err != nil || has.Run == "" {
		return notFound{}, err
	}
	hint := "write renamedFrom: " + now.Name
	if len(cat.Named(now.Name)) > 0 {
		hint = "remove renamedFrom in " + doc.Path
	}
	return notFound{fmt.Sprintf("whose cluster continues as %q", now.Name), hint}, nil
}

// formerPrefix is how each fault of a former name begins.
const formerPrefix = "renamedFrom is "

// settled reports whether a document has its former name, which nobody knows, from before
// its branch was taken in: it is on record so, without a fault of that name. Whatever the
// rename was, it was made then, and there is nothing to continue.
func settled(repo string, rec holdfast.ClusterRecord, doc holdfast.Cluster) bool {
	desired := rec.Desired
	return rec.Owner == repo && rec.Deletion == nil && !desired.Removed && desired.Document.RenamedFrom == doc.RenamedFrom &&
		!slices.ContainsFunc(desired.Faults, func(f holdfast.Fault) bool { return strings.HasPrefix(f.Message, formerPrefix) })
}

// nearName is the hint to a former name that nobody knows: the nearest of the clusters
// that a tree no longer has, or else of those that it has.
func (r *Reader) nearName(ctx context.Context, cat *catalog.Catalog, doc holdfast.Cluster) (string, error) {
	// Documents with faults are looked at with each head: only the record of the hint is
	// decoded.
	names, err := r.store.ClusterNames(ctx, holdfast.ClusterFilter{Owner: cat.Repo})
	if err != nil {
		return "", fmt.Errorf("list clusters of %q: %w", cat.Repo, err)
	}
	gone := slices.DeleteFunc(names, func(name string) bool { return len(cat.Named(name)) > 0 })
	remove := fmt.Sprintf("remove renamedFrom in %s if it is a new cluster", doc.Path)
	for near := nearest.Of(doc.RenamedFrom, gone); near != ""; near = nearest.Of(doc.RenamedFrom, gone) {
		records, err := byname.Records(ctx, r.store, []string{near})
		if err != nil {
			return "", err
		}
		if records[near].Deletion == nil {
			return fmt.Sprintf("set renamedFrom: %s if that is the cluster which continues; %s", near, remove), nil
		}
		gone = slices.DeleteFunc(gone, func(name string) bool { return name == near })
	}
	return "use its recorded name (`holdfast get clusters`); " + remove, nil
}

// doubtfulHeir is why a cluster that is gone must not be destroyed: a document of the
// tree says that it continues from a name, which is a fault, and may mean this one. Rec is
// the record of the cluster that is gone.
func (r *Reader) doubtfulHeir(ctx context.Context, cat *catalog.Catalog, rec holdfast.ClusterRecord) (string, error) {
	if rec.Name == "" {
		return "", nil
	}
	if applied, err := r.Inherited(ctx, rec); err != nil || applied.Run == "" {
		return "", err
	}
	for some := range slices.Chunk(cat.Renaming(), byname.AtOnce) {
		records, err := byname.Records(ctx, r.store, some)
		if err != nil {
			return "", err
		}
		for _, name := range some {
			if records[name].Applied.Run != "" {
				continue
			}
			for _, e := range cat.Named(name) {
				faults, err := r.notRenamed(ctx, cat, e.Doc, records[name], Branch{})
				if err != nil {
					return "", err
				}
				if len(faults) > 0 {
					return fmt.Sprintf("%s%q, in %s:%d: %s",
						elsewherePrefix, name, e.Doc.Cluster.Path, e.Doc.Cluster.Line, faults[0].Message), nil
				}
			}
		}
	}
	return "", nil
}

// HeirElsewhere is why a cluster that is gone from its repository must not be destroyed: a
// document of the tree of another one says that it continues from it. That is a fault there, and
// does not confirm its end. Applied is what there is of the cluster: a repository that may not
// define such a one does not keep it.
func (r *Reader) HeirElsewhere(
	ctx context.Context, cat *catalog.Catalog, rec holdfast.ClusterRecord, applied holdfast.Applied,
) (string, error) {
	for some := range slices.Chunk(cat.Renamed(rec.Name), byname.AtOnce) {
		records, err := byname.Records(ctx, r.store, some)
		if err != nil {
			return "", err
		}
		for _, name := range some {
			if records[name].Applied.Run != "" {
				continue // it has its own state
			}
			for _, e := range cat.Named(name) {
				c := e.Doc.Cluster
				if c.RenamedFrom == rec.Name && r.catalogs.MayDefine(cat.Repo, e.Doc, applied) {
					return fmt.Sprintf("%s%q, in %s:%d%stransfer it there before it is renamed, or remove renamedFrom there",
						elsewherePrefix, name, c.Path, c.Line, ofRepository(cat.Repo)), nil
				}
			}
		}
	}
	return "", nil
}

const elsewherePrefix = "it may be the one that continues as "

func ofRepository(repo string) string { return fmt.Sprintf(" of repository %q: ", repo) }

// SaidIn reports whether a cluster's document counts as missing for what HeirElsewhere has
// found in a repository. Records of an earlier version have that in its text only.
func SaidIn(d holdfast.Desired, repo string) bool {
	switch {
	case d.Missing == "":
		return false
	case d.HeirIn != "":
		return d.HeirIn == repo
	}
	return strings.HasPrefix(d.Missing, elsewherePrefix) && strings.Contains(d.Missing, ofRepository(repo))
}
