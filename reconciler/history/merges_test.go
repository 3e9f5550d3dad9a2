package history_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// merges is a store of so many merges, the last one with the highest number; it counts
// those that it was asked for.
type merges struct{ n, read int }

func (m *merges) PullRequests(_ context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error) {
	if !filter.ByMerge || filter.Cluster != "prod" || filter.Repo != "fleet" || !slices.Equal(filter.States, []holdfast.PullRequestState{holdfast.PullRequestMerged}) {
		return nil, errors.New("that was not meant")
	}
	var out []holdfast.PullRequestRecord
	for i := m.n; i > max(m.n-filter.Limit, 0); i-- {
		var pr holdfast.PullRequestRecord
		pr.Repo, pr.Number = "fleet", i
		out = append(out, pr)
	}
	m.read += len(out)
	return out, nil
}

// However many merges wait, each is looked at, and once; of a long past no more is read
// than what comes first.
func TestMergesContinueWhileMergesWait(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		merges, waiting int // those with a number above waiting are done
		looked, read    int
	}{
		"none":                             {0, 0, 0, 0},
		"a few":                            {3, 3, 3, 3},
		"all done":                         {500, 0, 20, 20},
		"the oldest of what is read waits": {500, 481, 80, 100},
		"all wait":                         {500, 500, 500, 20 + 80 + 320 + 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &merges{n: tt.merges}
			var looked []int
			err := history.Merges(t.Context(), store, "fleet", "prod", func(pr holdfast.PullRequestRecord) (bool, error) {
				looked = append(looked, pr.Number)
				return tt.waiting != tt.merges && pr.Number != tt.waiting, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(looked) != tt.looked || store.read != tt.read {
				t.Errorf("looked at %d and read %d, want %d and %d", len(looked), store.read, tt.looked, tt.read)
			}
			for i, number := range looked {
				if number != tt.merges-i {
					t.Fatalf("looked at %v", looked)
				}
			}
		})
	}
	failed := errors.New("out of reach")
	err := history.Merges(t.Context(), &merges{n: 3}, "fleet", "prod", func(holdfast.PullRequestRecord) (bool, error) { return false, failed })
	if !errors.Is(err, failed) {
		t.Errorf("Merges() = %v, want what look says", err)
	}
}
