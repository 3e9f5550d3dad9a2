package lineage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// retitled is why a cluster that is gone must not be destroyed: its document is perhaps
// still there, with another name.
func (r *Reader) retitled(
	ctx context.Context, cat *catalog.Catalog, since string, gone holdfast.Cluster, rec holdfast.ClusterRecord,
) (Doubt, error) {
	others, err := r.Retitled(ctx, cat, since, gone, rec)
	if err != nil || len(others) == 0 {
		return Doubt{}, err
	}
	other, is := others[0], "may be"
	if cat.Says(other.Name, gone) {
		is = "is"
	}
	why := fmt.Sprintf("%s:%d %s its document", other.Path, other.Line, is) + withName + other.Name + `"` + sameOr +
		fmt.Sprintf("correct the name, or set metadata.renamedFrom: %[1]s there; if it is another one, add it in a later change "+
			"than the one that removes %[1]s (once merged, `holdfast apply %[2]s` settles it, too)", rec.Name, other.Name)
	return Doubt{Why: why, HeldFor: other.Name}, nil
}

// HeldFor returns which of some clusters of a repository are held for the document of another
// one, by the name of that.
func (r *Reader) HeldFor(ctx context.Context, repo string, names []string) (map[string][]string, error) {
	records, err := r.store.Clusters(ctx, holdfast.ClusterFilter{Owner: repo, Names: names})
	if err != nil {
		return nil, fmt.Errorf("read clusters of %q: %w", repo, err)
	}
	held := make(map[string][]string)
	for _, rec := range records {
		if document := holder(rec.Desired); document != "" {
			held[document] = append(held[document], rec.Name)
		}
	}
	return held, nil
}

// Retitled returns the documents that are perhaps that of a cluster which was applied and
// is gone, with another name: they say what it said, are in its place, or it was held for
// them before, whatever they say by now. Those that were next to it are separate
// clusters, and so are those whose clusters were applied in its place by now.
func (r *Reader) Retitled(
	ctx context.Context, cat *catalog.Catalog, since string, gone holdfast.Cluster, rec holdfast.ClusterRecord,
) ([]holdfast.Cluster, error) {
	if rec.Name == "" {
		return nil, nil
	}
	applied, err := r.Inherited(ctx, rec)
	if err != nil || applied.Run == "" {
		return nil, err
	}
	before, err := r.at(ctx, cat.Repo, since)
	if err != nil {
		return nil, err
	}
	var out []holdfast.Cluster
	for _, other := range candidates(cat, before, gone, holder(rec.Desired)) {
		is, err := r.isAnother(ctx, cat, gone, other)
		if err != nil {
			return nil, err
		}
		if !is {
			out = append(out, other)
		}
	}
	return out, nil
}

// candidates are the documents of a tree that may be one which is gone, and which an
// earlier tree had; nil if nobody knows that tree. Held is the name of one that was
// taken for it before.
func candidates(cat, before *catalog.Catalog, gone holdfast.Cluster, held string) []holdfast.Cluster {
	out := cat.Retitled(gone)
	var others []catalog.Entry
	if before == nil {
		others = cat.Named(held)
	} else {
		others = cat.NewClaims(before)
		out = newSince(before, others, gone, out)
	}
	for _, e := range others {
		c := e.Doc.Cluster
		is := c.Name == held || before != nil && inPlace(cat, before, gone, c)
		if !is || c.RenamedFrom == gone.Name {
			continue
		}
		listed := func(o holdfast.Cluster) bool { return o.Path == c.Path && o.Line == c.Line }
		if !slices.ContainsFunc(out, listed) {
			out = append(out, c)
		}
	}
	return out
}

// newSince returns those of some documents that say what one did which is gone, and are
// among the new ones, unless the earlier tree says the same of these names elsewhere.
func newSince(before *catalog.Catalog, claims []catalog.Entry, gone holdfast.Cluster, docs []holdfast.Cluster) []holdfast.Cluster {
	type place struct {
		path string
		line int
	}
	claimed := make(map[place]bool)
	for _, e := range claims {
		claimed[place{e.Doc.Cluster.Path, e.Doc.Cluster.Line}] = true
	}
	return slices.DeleteFunc(docs, func(c holdfast.Cluster) bool {
		return !claimed[place{c.Path, c.Line}] || before.Says(c.Name, gone)
	})
}

// inPlace reports whether a new document has taken the place of one which is gone, by the
// same change: to its file; to a new file that is called after it; or anywhere, if its name
// is the former one with a slip. What it says does not matter. One that was only moved, or
// that continues another cluster, is accounted for. A change after that of the removal
// brings nothing to its place: then the earlier tree does not have it either.
func inPlace(cat, before *catalog.Catalog, gone, c holdfast.Cluster) bool {
	from := c.RenamedFrom
	continues := from != "" && len(before.Named(from)) > 0 && len(cat.Named(from)) == 0
	if continues || len(before.Named(gone.Name)) == 0 || before.Says(c.Name, c) {
		return false
	}
	if c.Path == gone.Path {
		return true
	}
	if len(before.Named(c.Name)) > 0 {
		return false
	}
	base := path.Base(c.Path)
	return base[:len(base)-len(path.Ext(base))] == gone.Name && before.File(c.Path) == nil || slip(gone.Name, c.Name)
}

// slip reports whether a name is another one with a letter more or less, or with a wrong
// one, or with two swapped, or with other hyphens. Numbers and words of less than three letters
// are how names of several clusters differ (shop-01, prod-eu).
func slip(a, b string) bool {
	if len(a) > len(b)+1 || len(b) > len(a)+1 {
		return false
	}
	if strings.ReplaceAll(a, "-", "") == strings.ReplaceAll(b, "-", "") {
		return true
	}
	was, is := strings.Split(a, "-"), strings.Split(b, "-")
	if len(was) != len(is) {
		return false
	}
	slips := 0
	for i := range was {
		if was[i] == is[i] {
			continue
		}
		if min(len(was[i]), len(is[i])) < 3 || strings.ContainsAny(was[i]+is[i], "0123456789") || nearest.Distance(was[i], is[i]) > 1 {
			return false
		}
		slips++
	}
	return slips == 1
}

// isAnother reports whether a document that may be one which is gone is another cluster's:
// that was applied as it says, or from where it is, without the one that is gone. Somebody
// has answered then, whatever was changed since.
func (r *Reader) isAnother(ctx context.Context, cat *catalog.Catalog, gone, c holdfast.Cluster) (bool, error) {
	known, err := r.store.Cluster(ctx, c.Name)
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read cluster %q: %w", c.Name, err)
	}
	if known.Applied.Run == "" {
		return false, nil
	}
	res, err := r.catalogs.Resolve(ctx, cat, c.Name)
	if err != nil {
		return false, err
	}
	if res != nil && (known.Applied.SourceDigest.Equal(res.Digest) || slices.ContainsFunc(res.Others, known.Applied.SourceDigest.Equal)) {
		return true, nil
	}
	then, err := r.at(ctx, cat.Repo, string(known.Applied.Revision))
	if err != nil || then == nil || len(then.Named(gone.Name)) > 0 {
		return false, err
	}
	return slices.ContainsFunc(then.Named(c.Name), func(e catalog.Entry) bool { return e.File.Path == c.Path }), nil
}
