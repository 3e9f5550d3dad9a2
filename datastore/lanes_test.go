package datastore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// turns is an order of lanes that records what it was asked.
type turns struct {
	next func(lanes []holdfast.Lane) int
	took []holdfast.Lane
}

func (t *turns) Next(lanes []holdfast.Lane) int { return t.next(lanes) }
func (t *turns) Took(lane holdfast.Lane)        { t.took = append(t.took, lane) }

// testLanes: runs come in the order of the turns, each lane's the oldest first, and
// more of a lane than are read at once; what was served is known afterwards.
func testLanes(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	of := func(n, pr int) holdfast.Run {
		run := newRun(n)
		run.PullRequest = holdfast.PullRequestRef{Repo: "fleet", Number: pr}
		run.Document.Project, run.Document.Provider = "shop", "aws"
		return run
	}
	for n := range 20 {
		create(t, store, of(n, 1))
	}
	busy, held, small := of(90, 2), of(91, 2), of(92, 2)
	held.StateLocation = busy.StateLocation
	create(t, store, held, small)
	claim(t, store, busy)

	last := &turns{next: func(lanes []holdfast.Lane) int { return len(lanes) - 1 }}
	var want []string
	for _, n := range append([]int{92}, sequence(20)...) {
		want = append(want, fmt.Sprintf("run-%04d", n))
	}
	filter := holdfast.ClaimFilter{Now: noon, Limit: 50, Turns: last}
	if diff := differ(want, ids(must[[]holdfast.Run](t)(store.Claimable(ctx, filter)))); diff != "" {
		t.Errorf("Claimable() (-want +got):\n%s", diff)
	}
	if got := last.took[0]; got != lane(1, 2, small.CreatedAt) || !last.took[1].More || last.took[20].More || len(last.took) != 21 {
		t.Errorf("the first of %d turns is %+v", len(last.took), got)
	}
	filter.Capped = []string{"shop"}
	if got := must[[]holdfast.Run](t)(store.Claimable(ctx, filter)); len(got) > 0 {
		t.Errorf("Claimable() = %v of a project with all that it may have", ids(got))
	}

	running, lately, err := store.Served(ctx, noon.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if diff := differ([]holdfast.Lane{lane(1, 2, time.Time{})}, running); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	if diff := differ([]holdfast.Lane{lane(1, 2, noon)}, lately); diff != "" {
		t.Errorf("served lately (-want +got):\n%s", diff)
	}
	if _, lately, err = store.Served(ctx, noon.Add(2*time.Hour)); err != nil || len(lately) > 0 {
		t.Errorf("served within the last hour = %+v, %v", lately, err)
	}
}

// testLaneOfAnApply: an apply takes the turn of the pull request whose review it
// applies, of the one that was asked for where there are several.
func testLaneOfAnApply(t *testing.T, open opener) {
	store := open(t)
	apply, asked := newRun(1), newRun(2)
	for _, run := range []*holdfast.Run{&apply, &asked} {
		run.Kind = holdfast.RunApply
		run.Document.Project, run.Document.Provider = "shop", "aws"
		for _, n := range []int{7, 8} {
			run.Reviews = append(run.Reviews, holdfast.Review{
				Run: fmt.Sprint("plan-", n), PullRequest: holdfast.PullRequestRef{Repo: "fleet", Number: n},
			})
		}
	}
	asked.Shown = "plan-8"
	claim(t, store, apply)
	claim(t, store, asked)
	running, _, err := store.Served(t.Context(), noon)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]bool{7: true, 8: true}
	for _, lane := range running {
		if !want[lane.PullRequest.Number] || lane.Priority != 0 || lane.Kind != holdfast.RunApply {
			t.Errorf("an apply runs in %+v", lane)
		}
		delete(want, lane.PullRequest.Number)
	}
	if len(want) > 0 {
		t.Errorf("nothing runs for %v", want)
	}
}

func lane(priority, pr int, since time.Time) holdfast.Lane {
	return holdfast.Lane{
		Priority: priority, PullRequest: holdfast.PullRequestRef{Repo: "fleet", Number: pr},
		Project: "shop", Provider: "aws", Kind: holdfast.RunPlan, Since: since,
	}
}

func sequence(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
