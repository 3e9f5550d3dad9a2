package verify

import "testing"

// TestOrphansHideNothing: however many there are, what is missing is listed first.
func TestOrphansHideNothing(t *testing.T) {
	t.Parallel()
	r := Result{Counts: make(map[string]int)}
	for range MaxProblems + 500 {
		r.add(Orphaned, "o", "", "")
	}
	r.add(Missing, "m", "run", "")
	r.add(Damaged, "d", "run", "")
	got := r.listed()
	if len(got.Problems) != MaxProblems || got.Problems[0].Problem != Missing || got.Problems[1].Problem != Damaged || got.Counts[Orphaned] != MaxProblems+500 {
		t.Errorf("%d problems are listed, the first are %v", len(got.Problems), got.Problems[:2])
	}
}
