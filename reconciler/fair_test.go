package reconciler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// TestPullRequestsTakeTurns: one of a single cluster, opened after two of three, is
// planned in the next free slot.
func TestPullRequestsTakeTurns(t *testing.T) {
	t.Parallel()
	files, changes := map[string]string{}, map[int]map[string]string{}
	for n := range 7 {
		name := fmt.Sprintf("c-%d", n)
		files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
		pr := 1 + n/3
		if changes[pr] == nil {
			changes[pr] = map[string]string{}
		}
		changes[pr]["infra/"+name+"/main.tf"] = module("two")
	}
	f := newFleet(t, files)
	f.adopt()
	f.open(1, changes[1])
	f.open(2, changes[2])
	for _, want := range []int{1, 2, 1} {
		if run := f.execute(planned); run.PullRequest.Number != want {
			t.Fatalf("%s of #%d is planned, want one of #%d", run.Cluster, run.PullRequest.Number, want)
		}
		f.clock.Advance(time.Second)
	}
	f.open(3, changes[3])
	for _, want := range []int{3, 2, 1, 2} {
		if run := f.execute(planned); run.PullRequest.Number != want {
			t.Fatalf("then %s of #%d is planned, want one of #%d", run.Cluster, run.PullRequest.Number, want)
		}
		f.clock.Advance(time.Second)
	}
}

// TestLastRunIsKeptForOthers: clusters of one project whose runs hang do not take the last
// run from another project, and say what they wait for.
func TestLastRunIsKeptForOthers(t *testing.T) {
	t.Parallel()
	files, changes := make(map[string]string), make(map[string]string)
	for _, name := range []string{"a-1", "a-2", "a-3", "b-1"} {
		files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
		changes["infra/"+name+"/main.tf"] = module("two")
	}
	files["clusters/b-1.yaml"] = strings.Replace(document("b-1"), "project: p", "project: q", 1)
	other := map[string]string{"infra/b-1/main.tf": changes["infra/b-1/main.tf"]}
	delete(changes, "infra/b-1/main.tf")
	f := newFleet(t, files, func(opts *reconciler.Options) { opts.Limits.Runs = 3 })
	f.adopt()
	f.open(1, changes)
	first := f.claim()
	second := f.claim(first.AttemptRef)
	if second.Run == "" {
		t.Fatal("the second run is not handed out")
	}
	if third := f.claim(first.AttemptRef, second.AttemptRef); third.Run != "" {
		t.Fatalf("%s has the last run", third.Cluster)
	}
	queue, err := f.r.Dispatcher().Queue(t.Context(), holdfast.QueueFilter{Limit: 10})
	f.must(err)
	if len(queue) != 1 || queue[0].Reason != holdfast.ReasonProjectCapped || !strings.Contains(queue[0].Detail, "project p") {
		t.Errorf("the queue is %+v", queue)
	}
	f.open(2, other)
	third := f.claim(first.AttemptRef, second.AttemptRef)
	if third.Cluster != "b-1" {
		t.Fatalf("%q has the last run, want the other project's", third.Cluster)
	}
	f.finish(first, planned(first))
	if fourth := f.claim(second.AttemptRef, third.AttemptRef); !strings.HasPrefix(fourth.Cluster, "a-") {
		t.Errorf("beside the other project %q is handed out", fourth.Cluster)
	}
}

// TestCapOfAProject: the runs of a project that has all that it may wait, and the
// comment says for what; those of others do not.
func TestCapOfAProject(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	for _, name := range []string{"a-1", "a-2", "b-1"} {
		files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
	}
	files["clusters/b-1.yaml"] = strings.Replace(document("b-1"), "project: p", "project: q", 1)
	f := newFleet(t, files, func(opts *reconciler.Options) { opts.Limits.Project = 1 })
	f.adopt()
	f.open(1, map[string]string{
		"infra/a-1/main.tf": module("two"), "infra/a-2/main.tf": module("two"), "infra/b-1/main.tf": module("two"),
	})
	second := f.claim() // its project had its last turn before the other one
	first := f.claim(second.AttemptRef)
	if first.Cluster != "a-1" || second.Cluster != "b-1" {
		t.Fatalf("claimed %q, then %q", second.Cluster, first.Cluster)
	}
	if third := f.claim(first.AttemptRef, second.AttemptRef); third.Run != "" {
		t.Fatalf("%s is claimed over the cap", third.Cluster)
	}
	queue, err := f.r.Dispatcher().Queue(t.Context(), holdfast.QueueFilter{Limit: 10})
	f.must(err)
	if len(queue) != 1 || queue[0].Run.Cluster != "a-2" || queue[0].Reason != holdfast.ReasonProjectCapped {
		t.Errorf("the queue is %+v", queue)
	}
	f.clock.Advance(11 * time.Second)
	f.lookAt(1)
	f.post()
	if body := f.forge.ours()[0].Body; !strings.Contains(body, "1 of 1 runs of project p") {
		t.Errorf("the comment does not say why it waits:\n%s", body)
	}
	f.finish(first, planned(first))
	if third := f.claim(second.AttemptRef); third.Cluster != "a-2" {
		t.Errorf("then %q is claimed", third.Cluster)
	}
}

// TestQueueSaysWhatHoldsARunBack besides its turn.
func TestQueueSaysWhatHoldsARunBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, clouds("aws-1", "aws-2", "google-1"), of("aws"))
	f.look()
	check := func(want ...string) {
		t.Helper()
		queue, err := f.r.Dispatcher().Queue(t.Context(), holdfast.QueueFilter{Limit: 10})
		f.must(err)
		var got []string
		for _, entry := range queue {
			got = append(got, fmt.Sprintf("%d %s %s", entry.Position, entry.Run.Cluster, entry.Reason))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the queue is %q, want %q", got, want)
		}
	}
	check("1 aws-1 ", "2 aws-2 ", "3 google-1 ")
	first := f.claim()
	check("1 aws-2 ProviderCapped", "2 google-1 ")
	f.finish(first, ends("Throttled")(first))
	check("1 aws-1 Throttled", "2 aws-2 ", "3 google-1 ")
	lock := f.newest("google-1").StateLocation
	second := f.claim() // aws-2: aws-1 waits for its retry
	if second.Cluster != "aws-2" {
		t.Fatalf("%s is claimed", second.Cluster)
	}
	third := f.claim(second.AttemptRef)
	if third.Cluster != "google-1" || third.StateLocation != lock {
		t.Fatalf("%s is claimed", third.Cluster)
	}
	check("1 aws-1 Throttled")
}
