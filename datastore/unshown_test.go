package datastore_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// testOutboxUnshown: when a comment showed none of the plans is remembered by the times of the
// forge, whoever saves the pull request meanwhile.
func testOutboxUnshown(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	pr := must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{PullRequestRef: thePullRequest, State: holdfast.PullRequestOpen},
	}))
	second := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	post := func(body string, unshown bool, at int) {
		t.Helper()
		wanted := commentPost(body, "abc")
		wanted.Unshown = unshown
		want(t, store, wanted)
		claimed := claimPosts(t, store, noon)
		if len(claimed) != 1 || claimed[0].Unshown != unshown {
			t.Fatalf("ClaimPosts() = %+v", claimed)
		}
		posted(t, store, claimed[0], second(at))
	}
	expect := func(when string, times ...time.Time) {
		t.Helper()
		got := must[holdfast.PullRequestRecord](t)(store.PullRequest(ctx, thePullRequest))
		if diff := differ(times, got.Unshown); diff != "" {
			t.Errorf("%s, it turned at (-want +got):\n%s", when, diff)
		}
	}
	refuse := func(key string) {
		t.Helper()
		claimPosts(t, store, noon)
		if err := store.PostFailed(ctx, failedPost(key, "locked", 1), time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	first := commentPost("never seen", "abc", "run-0001")
	want(t, store, first)
	refuse(first.Key)
	expect("refused before anything was shown")
	post("plans", false, 1)
	expect("with plans")
	post("none", true, 2)
	expect("with none", second(2))
	post("still none", true, 3)
	expect("with none again", second(2))
	// Who has read it before saves it, and who has read an older version does not.
	saved := must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, pr))
	if diff := differ([]time.Time{second(2)}, saved.Unshown); diff != "" {
		t.Errorf("SavePullRequest() = turned at (-want +got):\n%s", diff)
	}
	if _, err := store.SavePullRequest(ctx, pr); err == nil {
		t.Error("an old version was saved")
	}
	expect("saved by others", second(2))
	post("plans", false, 5)
	expect("with plans again", second(2), second(5))

	// An attempt whose end is not on record is noticed once.
	seen := must[outgoing.Post](t)(store.Post(ctx, first.Key))
	for _, news := range []bool{true, false} {
		if got := must[bool](t)(store.PostUnshown(ctx, seen, second(6))); got != news {
			t.Errorf("PostUnshown() = %t, want %t", got, news)
		}
	}
	post("more plans", false, 4) // by a clock that is behind
	turns := []time.Time{second(2), second(5), second(6), second(6)}
	expect("by another clock", turns...)

	// What is refused counts from now on, unless it came after the merge or something else
	// is wanted meanwhile.
	change := commentPost("refused", "abc", "run-0001")
	want(t, store, change)
	claimPosts(t, store, noon)
	want(t, store, commentPost("meanwhile", "abc", "run-0001"))
	refuse(change.Key)
	expect("refused, and wanted otherwise", turns...)
	saved.State = holdfast.PullRequestMerged
	saved = must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, saved))
	refuse(change.Key)
	expect("refused after the merge", turns...)
	saved.State = holdfast.PullRequestOpen
	must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, saved))
	refuse(change.Key)
	expect("refused, by our clock, which is behind", append(turns, second(6))...)
}
