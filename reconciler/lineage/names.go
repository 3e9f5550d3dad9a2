package lineage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// Former returns the record of the name that a document says its cluster had
// before, if that is what it continues from: the cluster is not applied under the
// new name yet, and was under the old one, in the same repository. Its Applied is
// what there is, half applied or not, and its Left what applies that died may have
// created. Otherwise the zero record.
func (r *Reader) Former(ctx context.Context, repo string, rec holdfast.ClusterRecord, doc holdfast.Cluster) (holdfast.ClusterRecord, error) {
	none := holdfast.ClusterRecord{}
	if doc.RenamedFrom == "" || rec.Applied.Run != "" {
		return none, nil
	}
	old, err := r.store.Cluster(ctx, doc.RenamedFrom)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("read cluster %q: %w", doc.RenamedFrom, err)
	case old.Deletion != nil || old.Owner != repo:
		return none, nil
	}
	runs, err := history.Branch(ctx, r.store, old.Name)
	if err != nil {
		return none, err
	}
	if old.Applied = inherited(old, runs); old.Applied.Run == "" {
		return none, nil
	}
	old.Left, err = history.Left(ctx, r.store, old, runs)
	return old, err
}

// Inherited is what a cluster continues from under another name: what was last
// applied. What a run has left half done is not as any document says: it has no
// digest, so that it is planned, and keeps the guard and the parents that it had.
func (r *Reader) Inherited(ctx context.Context, rec holdfast.ClusterRecord) (holdfast.Applied, error) {
	runs, err := history.Branch(ctx, r.store, rec.Name)
	if err != nil {
		return holdfast.Applied{}, err
	}
	return inherited(rec, runs), nil
}

func inherited(rec holdfast.ClusterRecord, runs []holdfast.Run) holdfast.Applied {
	applied := decision.LastApplied(rec, runs)
	if decision.Begun(decision.Input{Cluster: rec, Runs: runs}) != nil {
		applied.SourceDigest, applied.InputDigest = "", ""
		applied.Document = decision.InForce(applied.Document, rec.Applied)
		applied.Document.Deletion.Protected = applied.Document.Deletion.Protected || rec.Applied.Document.Deletion.Protected
		parents := slices.Concat(applied.Document.DependsOn, rec.Applied.Document.DependsOn, rec.FormerParents)
		slices.Sort(parents)
		applied.Document.DependsOn = slices.Compact(parents)
	}
	return applied
}

// Heirs are the names under which a tree says that a cluster continues, without those
// that have taken over from an earlier one of that name: renamedFrom may stay in a
// document forever.
func (r *Reader) Heirs(ctx context.Context, cat *catalog.Catalog, name string) ([]string, error) {
	var out []string
	for _, to := range cat.Renamed(name) {
		rec, err := r.store.Cluster(ctx, to)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, fmt.Errorf("read cluster %q: %w", to, err)
		}
		if !hadName(rec, name) {
			out = append(out, to)
		}
	}
	return out, nil
}

// hadName reports whether a cluster had that name before.
func hadName(rec holdfast.ClusterRecord, name string) bool {
	return rec.Applied.Run != "" && rec.Applied.Document.RenamedFrom == name
}

// notRenamed is the fault of a document whose former name is still defined, goes to
// another one as well, belongs to nothing, or cannot go to this one, which is a cluster
// already.
func (r *Reader) notRenamed(
	ctx context.Context, cat *catalog.Catalog, doc document.Document, rec holdfast.ClusterRecord, branch Branch,
) (holdfast.Faults, error) {
	c := doc.Cluster
	if c.RenamedFrom == "" || hadName(rec, c.RenamedFrom) {
		return nil, nil
	}
	fault := func(hint, message string, args ...any) holdfast.Faults {
		message = fmt.Sprintf(formerPrefix+"%q, ", c.RenamedFrom) + fmt.Sprintf(message, args...)
		return holdfast.Faults{doc.Fault(message, hint, "metadata", "renamedFrom")}
	}
	if still := cat.Named(c.RenamedFrom); len(still) > 0 {
		at := still[0].Doc.Fault("", "", "metadata", "name")
		return fault("remove the one, or renamedFrom from the other", "which is still defined at %s", at.Position()), nil
	}
	known, err := r.store.Cluster(ctx, c.RenamedFrom)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return nil, fmt.Errorf("read cluster %q: %w", c.RenamedFrom, err)
	}
	if known.Name == "" {
		if first, err := r.firstNameOf(ctx, cat.Repo, c.RenamedFrom, branch.Waiting); err != nil {
			return nil, err
		} else if first != "" {
			return fault(fmt.Sprintf("set renamedFrom: %s, its recorded name", first), "which has not taken over from %q", first), nil
		}
		if branch.Adopted || settled(cat.Repo, rec, c) {
			return nil, nil
		}
	}
	heirs, err := r.Heirs(ctx, cat, c.RenamedFrom)
	if err != nil {
		return nil, err
	}
	if others := slices.DeleteFunc(heirs, func(name string) bool { return name == c.Name }); len(others) > 0 {
		return fault("a cluster can be renamed to one name only: remove renamedFrom from the other", "and so it is of %q", others[0]), nil
	}
	if wrong, err := r.formerNotFound(ctx, cat, c, rec); err != nil {
		return nil, err
	} else if wrong.message != "" {
		return fault(wrong.hint, "%s", wrong.message), nil
	}
	if elsewhere, err := r.BelongsElsewhere(ctx, cat.Repo, known); err != nil {
		return nil, err
	} else if elsewhere {
		return fault("transfer it under its old name first, then rename it; remove renamedFrom if it is another cluster",
			"which belongs to repository %q", known.Owner), nil
	}
	old, err := r.Former(ctx, cat.Repo, holdfast.ClusterRecord{}, c)
	if err != nil || old.Name == "" || rec.Name == "" {
		return nil, err // there is nothing to take over, or nothing that it would meet
	}
	own, err := r.Inherited(ctx, rec)
	if err != nil || own.Run == "" {
		return nil, err
	}
	return fault("remove renamedFrom, or choose a new metadata.name", "and %s was applied already: two clusters do not become one", c.Name), nil
}

// WaitsForHeir is why a cluster that has a new name is not gone: that has not
// taken over yet.
func (r *Reader) WaitsForHeir(ctx context.Context, cat *catalog.Catalog, rec holdfast.ClusterRecord) (Doubt, error) {
	heirs, err := r.Heirs(ctx, cat, rec.Name)
	if err != nil {
		return Doubt{}, err
	}
	if len(heirs) == 0 { // a new name that came and went is not a removal
		names := newNames(rec.Desired)
		if len(names) == 0 {
			return Doubt{}, nil
		}
		why := heirPrefix + strings.Join(names, heirOr) + heirGone + rec.Name + " where it continues, or restore it before it is removed"
		return Doubt{Why: why, NewNames: names}, nil
	}
	if applied, err := r.Inherited(ctx, rec); err != nil || applied.Run == "" {
		return Doubt{}, err // there is nothing to take over
	}
	heirText := heirPrefix + strings.Join(heirs, heirOr)
	if why := rec.Desired.Missing; strings.HasPrefix(why, heirText+", ") && !strings.HasPrefix(why, heirText+heirGone) {
		return Doubt{Why: why, NewNames: heirs}, nil // it says why that is not so yet
	}
	return Doubt{Why: heirText + ", takes over when nothing runs and it has no faults", NewNames: heirs}, nil
}

// firstNameOf returns the cluster whose new name has not taken over from it yet;
// empty if there is none. One of which a run is executed is among those that wait.
func (r *Reader) firstNameOf(ctx context.Context, repo, name string, waiting []string) (string, error) {
	records, err := missing(ctx, r.store, repo, waiting)
	if err != nil {
		return "", err
	}
	for _, rec := range records {
		if names := newNames(rec.Desired); len(names) == 1 && names[0] == name {
			return rec.Name, nil
		}
	}
	return "", nil
}

// missing returns the clusters of a repository whose documents are missing, and those that
// wait, some of them twice. While a run is executed, a cluster waits for that.
func missing(ctx context.Context, store Records, repo string, waiting []string) ([]holdfast.ClusterRecord, error) {
	records, err := store.Clusters(ctx, holdfast.ClusterFilter{Owner: repo, Waiting: holdfast.ReasonMissing})
	if err != nil {
		return nil, fmt.Errorf("list missing clusters of %q: %w", repo, err)
	}
	if len(waiting) > 0 {
		more, err := store.Clusters(ctx, holdfast.ClusterFilter{Owner: repo, Names: waiting})
		if err != nil {
			return nil, fmt.Errorf("read waiting clusters of %q: %w", repo, err)
		}
		records = append(records, more...)
	}
	return records, nil
}
