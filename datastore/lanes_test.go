package datastore_test

import (
	"fmt"
	"slices"
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
	if diff := differ(want, must[[]string](t)(store.Claimable(ctx, filter))); diff != "" {
		t.Errorf("Claimable() (-want +got):\n%s", diff)
	}
	if got := last.took[0]; got != lane(1, 2, small.CreatedAt) || !last.took[1].More || last.took[20].More || len(last.took) != 21 {
		t.Errorf("the first of %d turns is %+v", len(last.took), got)
	}
	filter.Capped = []string{"shop"}
	if got := must[[]string](t)(store.Claimable(ctx, filter)); len(got) > 0 {
		t.Errorf("Claimable() = %v of a project with all that it may have", got)
	}

	first := of(93, 0)
	first.PullRequest, first.Background = holdfast.PullRequestRef{}, true
	create(t, store, first)
	filter.Capped = nil
	for _, no := range []bool{false, true} {
		filter.NoFirst = no
		if got := must[[]string](t)(store.Claimable(ctx, filter)); slices.Contains(got, first.ID) == no || len(got) < 21 {
			t.Errorf("Claimable() = %v without first plans: %v", got, no)
		}
	}

	filter.Unplanned = []holdfast.PullRequestRef{{Repo: "fleet", Number: 1}}
	behind := of(95, 3)
	behind.StateLocation = "shared"
	before := of(0, 1)
	before.ID, before.StateLocation = "run-0000a", behind.StateLocation
	create(t, store, before, behind)
	if diff := differ([]string{behind.ID, small.ID}, must[[]string](t)(store.Claimable(ctx, filter))); diff != "" {
		t.Errorf("Claimable() without plans of a pull request (-want +got):\n%s", diff)
	}
	filter.Unplanned = nil

	apply := of(94, 3)
	apply.Kind = holdfast.RunApply
	create(t, store, apply)
	for _, unread := range [][]string{nil, {"fleet"}} {
		filter.Unread = unread
		got := must[[]string](t)(store.Claimable(ctx, filter))
		if slices.Contains(got, apply.ID) != (unread == nil) || len(got) < 21 {
			t.Errorf("Claimable() = %v while %v are unread, want the plans, and the apply only if all are read", got, unread)
		}
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

// testQueue: positions are those of the whole queue, whichever part and projects are
// asked for, and runs that may not be claimed yet are in it.
func testQueue(t *testing.T, open opener) {
	store := open(t)
	of := func(n, pr int, project string) holdfast.Run {
		run := newRun(n)
		run.PullRequest, run.Document.Project = holdfast.PullRequestRef{Repo: "fleet", Number: pr}, project
		return run
	}
	apply, retried := of(5, 3, "shop"), of(2, 1, "shop")
	apply.Kind = holdfast.RunApply
	retried.Status, retried.NotBefore = holdfast.RunRetrying, noon.Add(time.Hour)
	create(t, store, of(1, 1, "shop"), retried, of(3, 2, "web"), of(4, 1, "shop"), apply)
	type entry struct {
		Position int
		Run      string
		Ahead    holdfast.Ahead
	}
	whole := []entry{
		{1, "run-0005", holdfast.Ahead{}},
		{2, "run-0001", holdfast.Ahead{Priority: 1}},
		{3, "run-0002", holdfast.Ahead{Priority: 1, Own: 1}},
		{4, "run-0003", holdfast.Ahead{Priority: 1, Others: 2}},
		{5, "run-0004", holdfast.Ahead{Priority: 1, Own: 2, Others: 1}},
	}
	for name, test := range map[string]struct {
		filter holdfast.QueueFilter
		want   []entry
	}{
		"all":      {holdfast.QueueFilter{Limit: 9}, whole},
		"a part":   {holdfast.QueueFilter{After: 1, Limit: 2}, whole[1:3]},
		"projects": {holdfast.QueueFilter{Projects: []string{"web"}, Limit: 9}, whole[3:4]},
		"the end":  {holdfast.QueueFilter{After: 5, Limit: 9}, nil},
	} {
		test.filter.Now = noon
		var got []entry
		for _, queued := range must[[]holdfast.QueuedRun](t)(store.Queue(t.Context(), test.filter)) {
			got = append(got, entry{queued.Position, queued.Run.ID, queued.Ahead})
		}
		if diff := differ(test.want, got); diff != "" {
			t.Errorf("Queue(%s) (-want +got):\n%s", name, diff)
		}
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
		Project: "shop", Provider: "aws", Kind: holdfast.RunPlan, Runner: holdfast.LocalRunner, Since: since,
	}
}

func sequence(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// testAnyQueued: runs that may not be claimed yet are queued, those that run or have ended are
// not, and those of other kinds and projects are nothing to an agent.
func testAnyQueued(t *testing.T, open opener) {
	store := open(t)
	expect := func(when string, want bool, projects []string, kinds ...holdfast.RunKind) {
		t.Helper()
		if got := must[bool](t)(store.AnyQueued(t.Context(), holdfast.ClaimFilter{Kinds: kinds, Projects: projects})); got != want {
			t.Errorf("%s: AnyQueued(%v, %v) = %t", when, kinds, projects, got)
		}
	}
	expect("nothing", false, nil)
	run := newRun(1)
	run.Document.Project = "shop"
	run = claim(t, store, run)
	expect("one runs", false, nil)
	run.Status, run.NotBefore = holdfast.RunRetrying, noon.Add(time.Hour)
	must[holdfast.Run](t)(store.EndAttempt(t.Context(), run.Ref(), run, nil))
	expect("one is to be retried", true, nil)
	expect("a plan", true, nil, holdfast.RunPlan)
	expect("a plan", false, nil, holdfast.RunApply, holdfast.RunDrift)
	for n := range 20 { // lanes before it
		apply := newRun(10 + n)
		apply.Kind, apply.PullRequest = holdfast.RunApply, holdfast.PullRequestRef{Repo: "fleet", Number: n + 1}
		apply.Document.Project = "web"
		create(t, store, apply)
	}
	expect("a plan behind applies", true, []string{"shop"}, holdfast.RunPlan)
	expect("a plan behind applies", false, []string{"web"}, holdfast.RunPlan)
	expect("applies", true, []string{"none", "web"}, holdfast.RunApply)
	expect("applies", false, []string{"none"})
}
