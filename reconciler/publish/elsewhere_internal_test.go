package publish

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/replica"
)

// What another replica writes to is asked of that one, in full; and of a repository that it has
// written to nothing is remembered.
func TestShownElsewhere(t *testing.T) {
	t.Parallel()
	var asks []replica.Ask
	settings := Settings{
		Now: time.Now, Leads: func(repo string) bool { return repo == "ours" },
		HandOver: func(_ context.Context, ask replica.Ask) error {
			asks = append(asks, ask)
			return nil
		},
	}
	there := New(Options{Settings: settings})
	there.Show(holdfast.PullRequestRef{Repo: "theirs", Number: 7})
	there.shows.Add(showKey{repo: "theirs", revision: "abc", left: true})
	there.UpdateIssue("theirs", "prod")
	if err := there.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(asks) != 3 {
		t.Fatalf("asked is %+v, want three things", asks)
	}
	here := New(Options{Settings: settings})
	for _, ask := range asks {
		if err := here.Take(ask); err != nil {
			t.Error(err)
		}
	}
	var shown []showKey
	for here.shows.Depth() > 0 {
		if _, err := here.shows.Step(t.Context(), func(_ context.Context, key showKey) error { shown = append(shown, key); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	want := []showKey{{pullRequest: holdfast.PullRequestRef{Repo: "theirs", Number: 7}}, {repo: "theirs", revision: "abc", left: true}}
	if len(shown) != 2 || shown[0] != want[0] || shown[1] != want[1] || here.drifts.Depth() != 1 {
		t.Errorf("taken in is %+v and %d issues", shown, here.drifts.Depth())
	}

	for _, repo := range []string{"ours", "theirs"} {
		ref := holdfast.PullRequestRef{Repo: repo, Number: 7}
		here.working[ref], here.statusesEnded[ref] = workLook{last: "run-1"}, headState{head: "abc"}
		here.issueState[repo], here.checkedAt[showKey{repo: repo}] = issuesWritten{clusters: 3}, pushLook{}
	}
	here.Forget("theirs")
	if len(here.working) != 1 || len(here.statusesEnded) != 1 || len(here.issueState) != 1 || len(here.checkedAt) != 1 {
		t.Errorf("remembered are %v, %v, %v and %v", here.working, here.statusesEnded, here.issueState, here.checkedAt)
	}
}
