package intake

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
)

// What documents of other repositories say of a cluster that is gone from its own.

// heirElsewhere is why a cluster that is gone must not be destroyed: in the head of another
// repository that was fetched last, a document there continues it. For a repository that
// was not fetched yet, or cannot be read, what was said before holds.
func (s shared) heirElsewhere(ctx context.Context, rec holdfast.ClusterRecord) (lineage.Doubt, error) {
	none := lineage.Doubt{}
	if rec.Name == "" || rec.Deletion != nil {
		return none, nil
	}
	applied, err := s.Lineage.Inherited(ctx, rec)
	if err != nil || applied.Run == "" {
		return none, err // there is nothing to keep
	}
	for _, name := range slices.Sorted(maps.Keys(s.repos)) {
		if name == rec.Owner {
			continue
		}
		cat, known := s.lastRead(ctx, name)
		if !known {
			if lineage.SaidIn(rec.Desired, name) {
				return lineage.Doubt{Why: rec.Desired.Missing, HeirIn: name}, nil
			}
			continue
		}
		if cat == nil {
			continue
		}
		if why, err := s.Lineage.HeirElsewhere(ctx, cat, rec, applied); err != nil {
			return none, err
		} else if why != "" {
			return lineage.Doubt{Why: why, HeirIn: name}, nil
		}
	}
	return none, nil
}

// lastRead returns what the tracked branch of a repository says by the head that was fetched
// last, nil if there is no such branch; false if that is not known.
func (s shared) lastRead(ctx context.Context, repo string) (cat *catalog.Catalog, known bool) {
	refs := s.mirror.last(repo)
	if refs == nil {
		return nil, false
	}
	head := refs["refs/heads/"+s.repos[repo].Branch]
	if head == "" {
		return nil, true
	}
	cat, err := s.Catalogs.Read(ctx, repo, string(head))
	return cat, err == nil
}

// recheckFormer asks for another look at the clusters of other repositories that documents of
// this one continue, or continued when they were last read: whether such a cluster is to be
// destroyed depends on it.
func (b *branches) recheckFormer(ctx context.Context, cat *catalog.Catalog) error {
	now := make(map[string]bool)
	for _, name := range cat.Renaming() {
		for _, e := range cat.Named(name) {
			now[e.Doc.Cluster.RenamedFrom] = true
		}
	}
	changed := b.marks.setFormer(cat.Repo, now)
	for some := range slices.Chunk(changed, byname.AtOnce) {
		records, err := byname.Records(ctx, b.opts.Store, some)
		if err != nil {
			b.marks.setFormer(cat.Repo, nil)
			return fmt.Errorf("look for clusters that %s continues: %w", cat.Repo, err)
		}
		for _, name := range some {
			rec := records[name]
			gone := rec.Desired.Removed || rec.Desired.Missing != ""
			if _, watched := b.repos[rec.Owner]; watched && gone && rec.Owner != cat.Repo && rec.Deletion == nil {
				b.marks.addRecheck(rec.Owner, name)
				b.marks.setRelook(rec.Owner)
				b.Agenda.Look(agenda.Look{Repo: rec.Owner})
			}
		}
	}
	return nil
}
