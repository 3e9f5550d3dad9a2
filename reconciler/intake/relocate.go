package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// present is what was last applied as this version records it, given what its cluster
// renders to now: an earlier one, or the same with other credentials, called states
// otherwise, and left out of the digest what they are bound to, or had it there. If something else is desired by now, what was applied is resolved
// again, for its state not to be taken for another one.
func (b *branches) present(
	ctx context.Context, repo Repository, rec holdfast.ClusterRecord, res *catalog.Resolution,
) (holdfast.Applied, error) {
	last := asResolved(rec.Applied, res, rec.Desired)
	if last.SourceDigest.Equal(res.Digest) || !decision.OtherState(last, rec.Desired.StateLocation, res.Doc.Cluster) || rec.Owner != repo.Name {
		return last, nil
	}
	cat, err := b.Catalogs.Read(ctx, repo.Name, string(last.Revision))
	if errors.Is(err, holdfast.ErrNotFound) {
		return last, nil // a forced push has taken it away
	} else if err != nil {
		return last, err
	}
	was, err := b.Catalogs.Resolve(ctx, cat, rec.Name)
	if err != nil {
		return last, fmt.Errorf("resolve %q as it was applied: %w", rec.Name, err)
	}
	if was == nil {
		return last, nil
	}
	return asResolved(last, was, holdfast.Desired{SourceDigest: was.Digest, StateLocation: was.Location, Document: was.Doc.Cluster}), nil
}

// asResolved is what was applied, as a document that has the same source has it: to is what
// that asks for.
func asResolved(last holdfast.Applied, res *catalog.Resolution, to holdfast.Desired) holdfast.Applied {
	known := last.SourceDigest != "" && res.Digest != ""
	if known && slices.ContainsFunc(res.Others, last.SourceDigest.Equal) && location.ScopeOf(last.Document) == location.ScopeOf(res.Doc.Cluster) {
		last.SourceDigest = res.Digest
	}
	return decision.Relocated(last, to)
}
