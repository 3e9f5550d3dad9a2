package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/reconciler/places"
	"github.com/holdfast-dev/holdfast/reconciler/record"
)

// desireAll brings the records of the clusters that differ between two heads up to
// date; of all clusters, if this process has not seen the former head. Some are looked
// at each time: those with faults, as the correction may be elsewhere, and those that
// are gone, but not from a tree that proved it. It returns the names of those to decide
// about; true: their records were changed.
func (b *branches) desireAll(
	ctx context.Context, repo Repository, former holdfast.Revision, now branchHead, retagged catalog.TagSet,
) (map[string]bool, error) {
	cat, counted := now.cat, newTally(repo.Name, b.opts.Logger, b.opts.Now)
	b.marks.begin(repo.Name, counted)
	changed, err := b.namesSince(ctx, repo, former, now.revision, cat)
	if err != nil {
		return nil, err
	}
	if changed == nil || now.rewritten {
		if changed, err = b.allNames(ctx, repo, cat); err != nil {
			return nil, err
		}
	}
	if len(retagged) > 0 {
		for name, entries := range cat.All() {
			if retagged.Release(entries) {
				changed[name] = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(changed))
	isGone := func(name string) bool { return len(cat.Named(name)) == 0 }
	now.adopted = now.adopted && !slices.ContainsFunc(names, isGone) // that may be what was renamed
	if now.removed, now.applied, err = b.removedBy(ctx, repo, now, names); err != nil {
		return nil, err
	}
	// Sooner than one by one; what fails is reported there.
	_ = b.Catalogs.ResolveEach(ctx, cat, func(done, of int) { counted.set(ctx, progressRead, done, of) })
	t := &taking{
		branches: b, repo: repo, now: now, counted: counted, all: len(names),
		asked: make(map[string]bool), again: make(map[string]bool),
	}
	defer func() { b.recheckHeirs(ctx, repo.Name, t.claimed) }()
	if err := t.takeAll(ctx, names); err != nil {
		return nil, err
	}
	b.marks.setRecheck(repo.Name, t.again) // those at fault among them
	err = b.Publisher.HeadTaken(ctx, repo.Name, now.former, now.revision, slices.Concat(cat.Faults(), t.faults))
	return t.asked, errors.Join(err, b.recheckFormer(ctx, cat))
}

// branchHead is what is taken in: the head of a tracked branch and what its tree
// says.
type branchHead struct {
	revision  holdfast.Revision
	former    holdfast.Revision // the head before it; empty: there was none
	cat       *catalog.Catalog
	rewritten bool  // it does not continue from the head before it
	removed   int   // how many clusters it has removed
	applied   int   // of how many that were applied; zero: it has removed none
	adopted   bool  // nothing of the branch was ever taken in
	push      *push // what it brings, if that has not to do with everything
	places    places.Moment
}

// namesSince returns the clusters of which head may say something else than
// former; nil if that is not known.
func (b *branches) namesSince(
	ctx context.Context, repo Repository, former, head holdfast.Revision, cat *catalog.Catalog,
) (map[string]bool, error) {
	if former == "" || !b.marks.isReady(repo.Name) {
		return nil, nil
	}
	old, err := b.Catalogs.Read(ctx, repo.Name, string(former))
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil // a forced push has taken the former head away
	} else if err != nil {
		return nil, err
	}
	changed, err := b.Catalogs.Diff(ctx, old, cat)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", former.Short(), head.Short(), err)
	}
	names := make(map[string]bool)
	for _, name := range slices.Concat(b.marks.recheckIn(repo.Name), changed.Names) {
		names[name] = true
	}
	for _, name := range changed.Documents { // moved files, labels and policies
		if len(cat.Named(name)) > 0 {
			names[name] = true
		}
	}
	return names, nil
}

// allNames returns the clusters of a tree and those on record.
func (b *branches) allNames(ctx context.Context, repo Repository, cat *catalog.Catalog) (map[string]bool, error) {
	known, err := b.opts.Store.ClusterNames(ctx, holdfast.ClusterFilter{Owner: repo.Name})
	if err != nil {
		return nil, fmt.Errorf("list clusters of %q: %w", repo.Name, err)
	}
	names := make(map[string]bool, max(len(known), cat.Len()))
	for _, name := range known {
		names[name] = true
	}
	for name := range cat.All() {
		names[name] = true
	}
	return names, nil
}

// ownRecord returns a cluster's record if the repository owns it, otherwise the zero
// one.
func (b *branches) ownRecord(ctx context.Context, repo Repository, name string) (holdfast.ClusterRecord, error) {
	rec, err := b.opts.Store.Cluster(ctx, name)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && rec.Owner != repo.Name {
		return holdfast.ClusterRecord{}, nil
	} else if err != nil {
		return rec, fmt.Errorf("read cluster %q: %w", name, err)
	}
	return rec, nil
}

// taken is what comes of taking in one cluster.
type taken struct {
	ask     bool            // there is something to decide about
	news    bool            // it was recorded
	doubt   bool            // it is looked at again with the next head
	claimed bool            // its name was nobody's
	faults  holdfast.Faults // of its documents
	// created is the record of a new cluster, which is still to be stored; nil: there is
	// nothing to store any longer.
	created *holdfast.ClusterRecord
}

// desire records what the head says of one cluster, whose record was read before:
// the zero one if there was none. The record of a new one is still to be stored.
func (b *branches) desire(
	ctx context.Context, repo Repository, now branchHead, name string, rec holdfast.ClusterRecord,
) (taken, error) {
	for {
		var took taken
		var err error
		if len(now.cat.Named(name)) > 0 {
			took, err = b.desireOnce(ctx, repo, now, name, rec)
		} else if rec.Owner == repo.Name {
			took, err = b.desireGone(ctx, repo, now, rec)
		}
		if !errors.Is(err, holdfast.ErrConflict) {
			return took, err
		}
		// A conflict is a decision about it that was recorded meanwhile: it must not
		// repeat all the others.
		records, err := byname.Records(ctx, b.opts.Store, []string{name})
		if err != nil {
			return taken{}, err
		}
		rec = records[name]
	}
}

// desireGone records that a cluster's document is not there.
func (b *branches) desireGone(ctx context.Context, repo Repository, now branchHead, rec holdfast.ClusterRecord) (taken, error) {
	if rec.Name == "" || rec.Deletion != nil {
		return taken{ask: rec.Name != ""}, nil
	}
	doubt, err := b.missing(ctx, repo, now, rec)
	if err == nil && doubt.Why == "" {
		doubt, err = b.Lineage.WaitsForHeir(ctx, now.cat, rec)
	}
	if err == nil && doubt.Why == "" {
		doubt, err = b.heirElsewhere(ctx, rec)
	}
	if err != nil {
		return taken{}, err
	}
	// What was removed is looked at with each head until it is gone: by then its
	// document may be in a file that cannot be read.
	before, took := rec, taken{ask: true, doubt: true}
	rec.Desired = lineage.Held(rec.Desired, doubt)
	switch {
	case record.Same(before.Desired, rec.Desired):
		return took, nil
	case rec.Desired.Removed:
		rec.Desired.Revision, rec.Desired.Faults = now.revision, nil
		rec.Desired.RemovedWith, rec.Desired.RemovedFrom = max(rec.Desired.RemovedWith, now.removed), now.applied
	default:
		rec.Desired.Confirmed = ""
		if before.Desired.Missing == "" && !before.Desired.Removed && now.former != "" && !now.rewritten {
			rec.Desired.Revision = now.former // the last that had it: what it said there has to be gone
		}
	}
	took.news = true
	return took, b.saveDesired(ctx, before, rec)
}

// desireOnce records what a document says of its cluster, whose record is rec,
// whoever owns it. The record of a new one is still to be stored.
func (b *branches) desireOnce(
	ctx context.Context, repo Repository, now branchHead, name string, rec holdfast.ClusterRecord,
) (taken, error) {
	res, err := b.Catalogs.Resolve(ctx, now.cat, name)
	if err != nil {
		return taken{}, err
	}
	was := rec.Owner
	if ours, err := b.claimName(ctx, repo, res, &rec); err != nil || !ours {
		return taken{doubt: true}, err
	}
	before := rec
	branch := lineage.Branch{Waiting: b.marks.recheckIn(now.cat.Repo), Adopted: now.adopted}
	faults, err := b.Lineage.Faults(ctx, now.cat, res, rec, branch)
	if err != nil {
		return taken{}, err
	}
	rec.Desired = holdfast.Desired{
		Revision: before.Desired.Revision, SourceDigest: res.Digest,
		Document: ownDocument(now.cat.Named(name), before.Desired.Document.Path), StateLocation: res.Location,
		SecretEnv: res.SecretEnv, Faults: slices.Concat(res.Faults, faults),
	}
	if rec.Desired, err = now.places.Desired(ctx, rec.Desired, before); err != nil {
		return taken{}, err
	}
	if len(res.Faults) > 0 { // the defaults of its template may not be known
		rec.Desired.SecretEnv = slices.Compact(slices.Sorted(slices.Values(slices.Concat(res.SecretEnv, before.Desired.SecretEnv))))
	}
	if len(faults) > 0 {
		rec.Desired.SourceDigest = ""
	}
	if len(rec.Desired.Faults) == 0 {
		if rec.Applied, err = b.present(ctx, repo, rec, res); err != nil {
			return taken{}, err
		}
	}
	absent := before.Desired.Removed || before.Desired.Missing != "" || before.Desired.Revision == ""
	if before.Desired.SourceDigest != rec.Desired.SourceDigest || absent || now.rewritten {
		rec.Desired.Revision = now.revision
	}
	claimed := before.Version == 0 || before.Deletion != nil || was != repo.Name
	took := taken{ask: true, doubt: len(rec.Desired.Faults) > 0, claimed: claimed, faults: rec.Desired.Faults}
	old, err := b.Lineage.Former(ctx, repo.Name, rec, res.Doc.Cluster)
	switch {
	case err != nil:
		return taken{}, err
	case old.Name != "" && len(faults) == 0 && len(now.cat.Named(name)) == 1:
		over, err := b.takeOver(ctx, repo, now, old, rec)
		over.claimed = claimed
		return over, err
	case rec.Version > 0 && record.Same(before.Desired, rec.Desired) && rec.Deletion == nil &&
		rec.Applied.StateLocation == before.Applied.StateLocation && rec.Applied.SourceDigest == before.Applied.SourceDigest:
		return took, nil
	}
	rec.Deletion, took.news = nil, true // a new life
	if isNew(now.cat, name, before) {
		took.created = &rec
		return took, nil
	}
	if err := b.saveDesired(ctx, before, rec); err != nil {
		return taken{}, err
	}
	if former := before.Desired.Revision; former != "" && former != rec.Desired.Revision {
		b.Publisher.Left(repo.Name, former)
	}
	return took, nil
}

// ownDocument is what a cluster's document says. Of several with its name, none of which
// counts, it is the one in the file where it was: that file proves its removal, and not one
// that somebody has copied it to.
func ownDocument(named []catalog.Entry, was string) holdfast.Cluster {
	own := func(e catalog.Entry) bool { return e.Doc.Cluster.Path == was }
	return named[max(slices.IndexFunc(named, own), 0)].Doc.Cluster
}

func (b *branches) saveDesired(ctx context.Context, before, rec holdfast.ClusterRecord) error {
	var runs []holdfast.Run
	if before.Version > 0 { // otherwise there are none
		var err error
		if runs, err = history.Branch(ctx, b.opts.Store, rec.Name); err != nil {
			return err
		}
	}
	saved, err := b.Records.Save(ctx, before, rec, runs)
	if err != nil {
		return err
	}
	if before.Desired.Missing != saved.Desired.Missing || before.Desired.HeldFor != saved.Desired.HeldFor {
		b.holds.changed(saved.Owner)
	}
	return b.Agenda.RequestRelated(ctx, before, saved)
}

// claimName gives a cluster's name to a repository, unless it is another's.
func (b *branches) claimName(
	ctx context.Context, repo Repository, res *catalog.Resolution, rec *holdfast.ClusterRecord,
) (ours bool, err error) {
	name := res.Doc.Cluster.Name
	faults, err := b.Lineage.OwnedElsewhere(ctx, repo.Name, *rec, res)
	if err != nil {
		return false, err
	}
	if len(faults) > 0 {
		b.opts.Logger.WarnContext(ctx, "cluster was refused", "cluster", name, "repo", repo.Name, "err", faults.Err())
		return false, nil
	}
	rec.Name, rec.Owner = name, repo.Name
	return true, nil
}
