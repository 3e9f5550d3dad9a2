package byname_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
)

type store struct {
	asked []string
	fails error
}

func (s *store) Clusters(_ context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	s.asked = filter.Names
	return []holdfast.ClusterRecord{{Name: "b", Owner: "o"}, {Name: "a"}}, s.fails
}

func TestRecords(t *testing.T) {
	t.Parallel()
	s := &store{}
	names := []string{"a", "b", "none"}
	got, err := byname.Records(t.Context(), s, names)
	if err != nil || len(got) != 2 || got["b"].Owner != "o" || !slices.Equal(s.asked, names) {
		t.Errorf("Records() = %+v, %v", got, err)
	}
	s.fails = errors.New("no records")
	if _, err := byname.Records(t.Context(), s, names); !errors.Is(err, s.fails) {
		t.Errorf("Records() = %v", err)
	}
}

// pages is a store of so many clusters, which counts those that were read.
type pages struct {
	names []string
	read  int
	fails error
}

func (p *pages) Clusters(_ context.Context, filter holdfast.ClusterFilter) (list []holdfast.ClusterRecord, err error) {
	for _, name := range p.names {
		if name > filter.After && len(list) < filter.Limit {
			list = append(list, holdfast.ClusterRecord{Name: name, Owner: filter.Owner})
		}
	}
	p.read += len(list)
	return list, p.fails
}

// Of many clusters no more are read than are looked at, and never many at once.
func TestEach(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 2*byname.AtOnce + 1 {
		names = append(names, fmt.Sprintf("c%04d", i))
	}
	for _, n := range []int{0, 1, byname.AtOnce, byname.AtOnce + 1, 2 * byname.AtOnce, len(names)} {
		p := &pages{names: names[:n]}
		var seen []string
		err := byname.Each(t.Context(), p, holdfast.ClusterFilter{Owner: "fleet"}, func(rec holdfast.ClusterRecord) bool {
			if rec.Owner != "fleet" {
				t.Errorf("%s does not match the filter", rec.Name)
			}
			seen = append(seen, rec.Name)
			return false
		})
		if err != nil || !slices.Equal(seen, names[:n]) || p.read != n {
			t.Errorf("of %d clusters %d are looked at, and %d read: %v", n, len(seen), p.read, err)
		}
	}
	p := &pages{names: names}
	looked := 0
	if err := byname.Each(t.Context(), p, holdfast.ClusterFilter{}, func(holdfast.ClusterRecord) bool { looked++; return looked == 3 }); err != nil {
		t.Error(err)
	}
	if looked != 3 || p.read != byname.AtOnce {
		t.Errorf("three are enough, and %d are looked at, %d read", looked, p.read)
	}
	p.fails = errors.New("no records")
	if err := byname.Each(t.Context(), p, holdfast.ClusterFilter{}, func(holdfast.ClusterRecord) bool { return false }); !errors.Is(err, p.fails) {
		t.Errorf("Each() = %v", err)
	}
}
