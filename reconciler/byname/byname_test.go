package byname_test

import (
	"context"
	"errors"
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
