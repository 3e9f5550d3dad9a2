package queue_test

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// Each has its turn, whatever is opened and closed meanwhile.
func TestTurns(t *testing.T) {
	t.Parallel()
	all := queue.NewTurns()
	for i, step := range []struct{ open, want []int }{
		{nil, nil},
		{[]int{1, 2, 3}, []int{1, 2, 3}},
		{[]int{1, 2, 3, 4, 5, 6, 7, 8}, []int{4, 5, 6, 7, 8}},
		{[]int{2, 3, 5, 6, 7, 8}, []int{2, 3, 5, 6, 7}},
		{[]int{2, 3, 5, 6, 7, 8, 9}, []int{8, 9, 2, 3, 5}},
	} {
		if got := all.Next("fleet", step.open, 5); !slices.Equal(got, step.want) {
			t.Errorf("step %d: of %v it is the turn of %v, want %v", i, step.open, got, step.want)
		}
	}
	if got := all.Next("other", []int{1}, 5); !slices.Equal(got, []int{1}) {
		t.Errorf("of another repository it is the turn of %v", got)
	}
}
