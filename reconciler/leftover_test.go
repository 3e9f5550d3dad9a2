package reconciler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// An apply of the same code settles what it has in the state. What its files or data no
// longer ask for is in none, and still may exist.
func TestAnApplyWithoutItKeepsWhatMayExist(t *testing.T) {
	t.Parallel()
	f := laterDied(t)
	f.clock.Advance(time.Minute)
	f.ask("prod")
	f.found(f.claim(), withEngine(protocol.Assignment{Kind: holdfast.RunApply}), nil, "a.before")
	if rec := f.cluster("prod"); rec.Waiting != "" || rec.Phase != holdfast.PhaseActive || !slices.Equal(rec.Left.Addresses, []string{"a.work"}) {
		t.Fatalf("applied without it, prod is %s, waits for %q, and has left %v", rec.Phase, rec.Waiting, rec.Left)
	}
	f.open(2, map[string]string{"infra/prod/other.tf": module("other")})
	f.wantMayExist("prod", holdfast.RunPlan, "a.work")
}

// What an apply that died may have created is in no state that a destroy could read: it
// stays on record, the comment names it, and the next cluster of that name waits for it.
func TestADestroyKeepsWhatMayExist(t *testing.T) {
	t.Parallel()
	f := laterDied(t)
	f.open(2, map[string]string{"clusters/prod.yaml": gitserver.Delete, "infra/prod/main.tf": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(2, byMerge)
	f.executeAll(withEngine)
	rec := f.cluster("prod")
	if rec.Deletion == nil || !slices.Equal(rec.Left.Addresses, []string{"a.before", "a.work"}) {
		t.Fatalf("destroyed, prod is %s, waits for %q, and has left %v", rec.Phase, rec.Waiting, rec.Left)
	}
	if comment := f.comment(2); !strings.Contains(comment, "may exist without being in the state, because an apply died: a.before, a.work") {
		t.Errorf("the comment does not name it:\n%s", comment)
	}
	f.repo.Commit(master, "again", map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	f.look()
	f.wantMayExist("prod", holdfast.RunPlan, "a.before", "a.work")
}
