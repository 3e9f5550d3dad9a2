package datastore_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// A command that reaches us late, by a poll after a lost delivery or a time of
// being away, must not come to mean a plan that was posted after it was written.
func TestStoreCommandThatComesLate(t *testing.T) {
	t.Parallel()
	store, ctx := openSQLite(t), t.Context()
	for n := range 2 {
		run := newRun(n + 1)
		run.Status, run.FinishedAt = holdfast.RunPlanned, noon
		create(t, store, run)
	}
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	post := func(text string, head holdfast.Revision, minute int, runs ...string) {
		want(t, store, commentPost(text, head, runs...))
		posted(t, store, claimPosts(t, store, at(minute))[0], at(minute))
	}
	post("plan 1", "abc", 0, "run-0001")
	post("plan 1, and something else", "abc", 10, "run-0001")
	post("plan 1 and plan 2", "abc", 20, "run-0001", "run-0002")

	for _, test := range []struct {
		name    string
		written time.Time
		comment string
		shown   []string
		head    holdfast.Revision
	}{
		{"before anything was shown", at(-1), "1", nil, ""},
		{"before the second plan was shown", at(15), "2", []string{"run-0001"}, ""},
		{"after all", at(21), "3", []string{"run-0001", "run-0002"}, "abc"},
		{"not in a comment", at(-1), "", nil, ""},
	} {
		must[bool](t)(store.StoreCommand(ctx, holdfast.Command{
			ID: test.name, PullRequest: thePullRequest, CommentID: test.comment, CreatedAt: test.written,
		}))
		got := must[holdfast.Command](t)(store.Command(ctx, test.name))
		if diff := differ(test.shown, got.Shown); diff != "" || got.ShownHead != test.head {
			t.Errorf("command written %s: shown %v at %q, want %v at %q", test.name, got.Shown, got.ShownHead, test.shown, test.head)
		}
	}
}
