package intake

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
)

// missingStore has clusters that are held for documents, or not, and counts which records are
// read.
type missingStore struct {
	Store
	held map[string]string // the document, by the cluster
	read []string
	err  error
}

func (s *missingStore) ClusterNames(_ context.Context, filter holdfast.ClusterFilter) (names []string, err error) {
	for name := range s.held {
		if filter.Owner == "fleet" && filter.Waiting == holdfast.ReasonMissing {
			names = append(names, name)
		}
	}
	return names, nil
}

func (s *missingStore) Clusters(_ context.Context, filter holdfast.ClusterFilter) (records []holdfast.ClusterRecord, err error) {
	for _, name := range filter.Names {
		s.read = append(s.read, name)
		records = append(records, holdfast.ClusterRecord{
			Name: name, Desired: holdfast.Desired{Missing: "it is gone", HeldFor: s.held[name]},
		})
	}
	return records, s.err
}

// missingRecords are the same clusters as lineage reads them.
type missingRecords struct {
	lineage.Store
	of *missingStore
}

func (r missingRecords) Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	return r.of.Clusters(ctx, filter)
}

// With each apply of a cluster those are looked at again that were held for its document.
// What is missing, or at fault, is not read with each of them, but once it has changed.
func TestAppliesReadWhatIsHeldOnce(t *testing.T) {
	t.Parallel()
	store := &missingStore{held: map[string]string{"a": "web", "b": "db", "c": ""}, err: errors.New("no records")}
	i := New(Options{Store: store, Rooms: Rooms{
		Lineage: lineage.NewReader(missingRecords{of: store}, nil), Agenda: agenda.New(agenda.Options{}),
	}, Now: time.Now})
	apply := func(name string, read int, held ...string) {
		t.Helper()
		store.read = nil
		i.marks.begin("fleet", nil)
		i.marks.setRecheck("fleet", nil)
		if err := i.Applied(t.Context(), holdfast.ClusterRecord{Name: name, Owner: "fleet"}); !errors.Is(err, store.err) {
			t.Errorf("Applied() = %v", err)
		}
		if got := i.marks.recheckIn("fleet"); !slices.Equal(got, held) || len(store.read) != read {
			t.Errorf("after %s was applied, %q are looked at again, and %q were read", name, got, store.read)
		}
	}
	apply("web", 3)
	store.err = nil
	apply("web", 3, "a")
	apply("db", 0, "b")
	apply("other", 0)
	store.held["c"] = "web"
	i.holds.changed("fleet")
	apply("web", 3, "a", "c")
	delete(store.held, "a")
	apply("web", 2, "c")
	store.held = nil
	apply("web", 0)
}
