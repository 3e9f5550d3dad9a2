package reconciler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// However many runs came after a merge, its pull request says what became of it, also
// while one of its clusters is about to be applied again, and when it waits.
func TestAMergeOfLongAgoStaysReported(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("has many pull requests")
	}
	f := newFleet(t, twoClusters())
	f.adopt()
	mergeBoth := func(number int, text string) {
		f.open(number, map[string]string{"infra/prod/main.tf": module(text), "infra/preprod/main.tf": module(text)})
		f.executeAll(good)
		f.merge(number, byMerge)
	}
	mergeBoth(2, "two")
	f.executeAll(good)
	f.ticks()
	merged := f.forge.get(2).MergeCommit
	before, told := f.forge.comment(2), f.forge.told(merged, holdfast.ContextApply)
	if !strings.HasPrefix(told[len(told)-1], "success applied 2 clusters") {
		t.Fatalf("it was told %q", told)
	}

	last := 3 + decision.HistoryDepth
	for number := 3; number < last; number++ {
		f.repo.Commit(master, "again", map[string]string{"infra/prod/main.tf": module(fmt.Sprint(number))})
		f.look()
		f.executeAll(good)
	}
	mergeBoth(last, "last")
	f.lookAt(2)
	f.post()
	if now := f.forge.comment(2); now != before {
		t.Errorf("while its clusters are applied again it says\n%s", now)
	}
	f.executeAll(failing)
	f.ticks()
	if f.cluster("prod").Waiting == "" {
		t.Fatal("it waits for nothing")
	}
	if now := f.forge.comment(2); now != before {
		t.Errorf("in the end it says\n%s", now)
	}
	if now := f.forge.told(merged, holdfast.ContextApply); len(now) != len(told) {
		t.Errorf("its status was %q in the end", now)
	}
}
