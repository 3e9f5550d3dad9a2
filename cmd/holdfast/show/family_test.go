package show

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
)

// TestRelatives states that a large family is cut, and which way up it stands.
func TestRelatives(t *testing.T) {
	t.Parallel()
	var many []v1.Relation
	for range maxRelatives + 5 {
		many = append(many, v1.Relation{Name: "x", Phase: holdfast.PhaseActive, Settled: true})
	}
	a := app{&cli.App{}}
	got := strings.Split(a.familyText(v1.Cluster{Name: "me"}, v1.Family{Parents: many, Dependents: many}), "\n")
	if len(got) != 2*(maxRelatives+1)+1 {
		t.Fatalf("%d lines", len(got))
	}
	for i, want := range map[int]string{
		0: "┌─ x  Active", maxRelatives: "├─ … 5 more", maxRelatives + 1: "me", maxRelatives + 2: "├─ x  Active", len(got) - 1: "└─ … 5 more",
	} {
		if got[i] != want {
			t.Errorf("line %d is %q, want %q", i, got[i], want)
		}
	}
}
