package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// creatingStore has something happen before new clusters are recorded, and notes in which
// order names are given.
type creatingStore struct {
	reconciler.Store
	before func() error // nil: nothing happens
	writes []string
}

func (s *creatingStore) CreateClusters(
	ctx context.Context, records []holdfast.ClusterRecord, history ...holdfast.Transition,
) ([]holdfast.ClusterRecord, error) {
	if before := s.before; before != nil {
		s.before = nil
		if err := before(); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, rec := range records {
		names = append(names, rec.Name)
	}
	s.writes = append(s.writes, "create "+strings.Join(names, " "))
	return s.Store.CreateClusters(ctx, records, history...)
}

func (s *creatingStore) RenameCluster(ctx context.Context, from, to holdfast.ClusterRecord, history ...holdfast.Transition) error {
	s.writes = append(s.writes, "rename "+from.Name+" to "+to.Name)
	return s.Store.RenameCluster(ctx, from, to, history...)
}

// names are the clusters on record.
func (f *fleet) names() []string {
	f.t.Helper()
	names, err := f.store.ClusterNames(f.t.Context(), holdfast.ClusterFilter{})
	f.must(err)
	return names
}

// TestFirstStartOfManyClusters: a fleet that is new is recorded some hundred clusters at a
// time; what was recorded before the server died stays, and the next one records the rest.
func TestFirstStartOfManyClusters(t *testing.T) {
	t.Parallel()
	const n = 1001
	files := webTemplate("one")
	for i := range n {
		name := fmt.Sprintf("c%04d", i)
		files["clusters/"+name+".yaml"] = templated(name, "{path: ../templates/web}")
	}
	f := newFleet(t, files)
	store, w := &creatingStore{Store: f.store}, &work{}
	w.reset()
	died := errors.New("the server has died")
	store.before = func() error {
		store.before = func() error { return died }
		return nil
	}
	f.restart(func(o *reconciler.Options) { o.Store = workedStore{store, w} })
	if err := f.r.TakeIn(t.Context(), infra, 0); !errors.Is(err, died) {
		t.Fatalf("the server did not die: %v", err)
	}
	if names := f.names(); len(names) != 500 || names[499] != "c0499" {
		t.Errorf("%d clusters are on record then", len(names))
	}

	w.reset()
	f.restart()
	f.must(f.r.TakeIn(t.Context(), infra, 0))
	if got := w.done()["writes"]; got != 2 {
		t.Errorf("501 clusters are recorded in %d transactions, want 2", got)
	}
	if names := f.names(); len(names) != n || len(f.r.Ready()) > 0 {
		t.Errorf("%d clusters are on record, and the server waits for %v", len(names), f.r.Ready())
	}
	for _, name := range []string{"c0000", "c0499", "c0500", "c1000"} {
		if rec := f.cluster(name); rec.Version != 1 || rec.Owner != infra || rec.Phase != holdfast.PhasePending {
			t.Errorf("%s is %s, of %q, at version %d", name, rec.Phase, rec.Owner, rec.Version)
		}
	}
}

// TestFirstStartOfTwoServers: of what another server records meanwhile nothing is recorded
// twice, and each cluster is planned once.
func TestFirstStartOfTwoServers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	other, store := f.r, &creatingStore{Store: f.store}
	store.before = func() error { return other.TakeIn(t.Context(), infra, 0) }
	f.restart(func(o *reconciler.Options) { o.Store, o.Replica.Identity = store, "second" })
	f.look()
	f.must(other.Settle(t.Context()))
	if want := []string{"create preprod prod"}; !slices.Equal(store.writes, want) {
		t.Errorf("it records %q, want %q", store.writes, want)
	}
	for _, name := range []string{"prod", "preprod"} {
		f.expectRuns(name, "plan queued Unreviewed")
	}
}

// TestFirstStartMeetsAnotherRepository: a name that another repository has taken meanwhile
// stays its own, and the other clusters are recorded.
func TestFirstStartMeetsAnotherRepository(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	store := &creatingStore{Store: f.store}
	store.before = func() error {
		_, err := f.store.SaveCluster(t.Context(), holdfast.ClusterRecord{
			Name: "prod", Owner: "other", Applied: holdfast.Applied{Run: "run-1"},
		})
		return err
	}
	f.restart(func(o *reconciler.Options) { o.Store = store })
	f.look()
	if rec := f.cluster("prod"); rec.Owner != "other" || rec.Version != 1 || len(f.runs("prod")) > 0 {
		t.Errorf("prod belongs to %q, at version %d, and has the runs %v", rec.Owner, rec.Version, f.runs("prod"))
	}
	f.expectRuns("preprod", "plan queued Unreviewed")
}

// TestNewClustersAroundARename: clusters that are new in the push that renames another one
// are recorded in the order of names, and take part in no rename.
func TestNewClustersAroundARename(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		heirs  []string
		writes []string
	}{
		"to one name":  {[]string{"heir"}, []string{"create a b", "rename prod to heir", "create x"}},
		"to two names": {[]string{"heir", "other"}, []string{"create a b", "create x"}}, // neither takes over
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := built(t, twoClusters())
			store := &creatingStore{Store: f.store}
			f.restart(func(o *reconciler.Options) { o.Store = store })
			f.look()
			before := f.cluster("prod").Applied.Run
			files := map[string]string{"clusters/prod.yaml": gitserver.Delete}
			for _, name := range []string{"a", "b", "x"} {
				maps.Copy(files, map[string]string{"clusters/" + name + ".yaml": document(name), "infra/" + name + "/main.tf": module("one")})
			}
			for _, heir := range test.heirs {
				maps.Copy(files, map[string]string{"clusters/" + heir + ".yaml": renamedDocument(heir, "prod"), "infra/" + heir + "/main.tf": module("one")})
			}
			f.repo.Commit(master, "rename", files)
			f.look()
			if !slices.Equal(store.writes, test.writes) {
				t.Errorf("the names are given in the order %q, want %q", store.writes, test.writes)
			}
			for _, name := range []string{"a", "b", "x"} {
				if rec := f.cluster(name); rec.Applied.Run != "" || len(rec.Desired.Faults) > 0 {
					t.Errorf("%s was applied by %q, and has the faults %v", name, rec.Applied.Run, rec.Desired.Faults)
				}
			}
			alone := len(test.heirs) == 1
			for _, heir := range test.heirs {
				rec := f.cluster(heir)
				if took, valid := rec.Applied.Run == before, len(rec.Desired.Faults) == 0; took != alone || valid != alone {
					t.Errorf("%s was applied by %q, and has the faults %v", heir, rec.Applied.Run, rec.Desired.Faults)
				}
			}
			if rec := f.cluster("prod"); (rec.Deletion != nil) != alone || rec.Desired.Removed != alone {
				t.Errorf("prod is removed %t, and its end is %+v", rec.Desired.Removed, rec.Deletion)
			}
		})
	}
}
