package intake

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// createdAtOnce is how many new clusters are recorded in one transaction. Whoever else
// writes waits for it.
const createdAtOnce = 500

// taking takes in the clusters of a head.
type taking struct {
	*branches
	repo    Repository
	now     branchHead
	counted *tally
	all     int // clusters that are to be looked at

	done    int
	news    []taken         // of new clusters, to be recorded together
	asked   map[string]bool // there is something to decide about; true: they were recorded
	again   map[string]bool // they are looked at again with the next head
	claimed []string        // their names were nobody's
	faults  holdfast.Faults // of the documents of those that were looked at
}

// takeAll looks at clusters, in the order of names. What was found before an error is recorded.
func (t *taking) takeAll(ctx context.Context, names []string) error {
	err := t.look(ctx, names)
	for len(t.news) > 0 {
		if createErr := t.create(ctx); createErr != nil {
			return errors.Join(err, createErr)
		}
	}
	return err
}

func (t *taking) look(ctx context.Context, names []string) error {
	for some := range slices.Chunk(names, byname.AtOnce) {
		records, err := byname.Records(ctx, t.opts.Store, some)
		if err != nil {
			return err
		}
		if t.now.places, err = t.Places.Moment(ctx); err != nil {
			return err
		}
		for _, name := range some {
			if err := t.lookAt(ctx, name, records[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAt records what the head says of a cluster, or has it wait for other new ones. Before
// one that is not new all that wait are recorded: what is done with it may depend on the
// records of others, and a process that ends in between leaves what those before it say.
func (t *taking) lookAt(ctx context.Context, name string, rec holdfast.ClusterRecord) error {
	if !isNew(t.now.cat, name, rec) {
		if err := t.create(ctx); err != nil {
			return err
		}
	}
	took, err := t.desire(ctx, t.repo, t.now, name, rec)
	if err != nil {
		return err
	}
	if took.created == nil {
		t.note(ctx, name, took)
		return nil
	}
	if t.news = append(t.news, took); len(t.news) < createdAtOnce {
		return nil
	}
	return t.create(ctx)
}

// isNew reports whether a tree defines a cluster that is not on record, and says of none of
// its documents that it had another name: no other record says how it is to be taken.
func isNew(cat *catalog.Catalog, name string, rec holdfast.ClusterRecord) bool {
	renamed := func(e catalog.Entry) bool { return e.Doc.Cluster.RenamedFrom != "" }
	named := cat.Named(name)
	return rec.Version == 0 && len(named) > 0 && !slices.ContainsFunc(named, renamed)
}

// create records the new clusters that wait. Those that somebody else has recorded since
// they were looked at, such as another replica, are looked at again.
func (t *taking) create(ctx context.Context) error {
	news := t.news
	t.news = nil
	if len(news) == 0 {
		return nil
	}
	records := make([]holdfast.ClusterRecord, len(news))
	for i, took := range news {
		records[i] = *took.created
	}
	created, err := t.Records.Create(ctx, records)
	if err != nil {
		return err
	}
	byName := make(map[string]holdfast.ClusterRecord, len(created))
	for _, rec := range created {
		byName[rec.Name] = rec
	}
	var overtaken []string
	for _, took := range news {
		name := took.created.Name
		rec, ok := byName[name]
		if !ok {
			overtaken = append(overtaken, name)
			continue
		}
		if err := t.Agenda.RequestRelated(ctx, holdfast.ClusterRecord{}, rec); err != nil {
			return err
		}
		t.note(ctx, name, took)
	}
	return t.look(ctx, overtaken)
}

// note adds what came of a cluster.
func (t *taking) note(ctx context.Context, name string, took taken) {
	if t.faults = append(t.faults, took.faults...); took.doubt {
		t.again[name] = true
	}
	if took.ask {
		t.asked[name] = took.news
	}
	if took.claimed {
		t.claimed = append(t.claimed, name)
	}
	t.done++
	t.counted.set(ctx, progressRecorded, t.done, t.all)
}
