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

// A comment that was deleted or edited no longer commands, whatever of it comes late;
// what it says since is another thing.
func TestWithdrawCommands(t *testing.T) {
	t.Parallel()
	store, ctx := openSQLite(t), t.Context()
	comment := holdfast.Comment{ID: "5", PullRequest: thePullRequest}
	give := func(n int, text string, said time.Time) (stored bool) {
		return must[bool](t)(store.StoreCommand(ctx, holdfast.Command{
			ID: holdfast.CommandID(thePullRequest.Repo, comment.ID, n), PullRequest: thePullRequest, CommentID: comment.ID,
			Text: text, CreatedAt: noon, Said: said,
		}))
	}
	waiting := func() (texts []string) {
		for _, c := range must[[]holdfast.Command](t)(store.Commands(ctx, holdfast.CommandReceived)) {
			texts = append(texts, c.Text+c.Barred)
		}
		return texts
	}
	must[bool](t)(store.StoreCommand(ctx, holdfast.Command{ID: "other", PullRequest: thePullRequest, CommentID: "6", Text: "other", CreatedAt: noon, Said: noon}))
	give(0, "first", noon)
	edited := noon.Add(time.Minute)
	for range 2 { // as deliveries may come twice
		if err := store.WithdrawCommands(ctx, comment, edited, " was edited"); err != nil {
			t.Fatal(err)
		}
	}
	if give(1, "late", noon) {
		t.Error("what was said before the edit is stored after it")
	}
	if !give(2, "new", edited) {
		t.Error("what is said since the edit is not stored")
	}
	if diff := differ([]string{"first was edited", "new", "other"}, waiting()); diff != "" {
		t.Error(diff)
	}
	for _, before := range []time.Time{edited.Add(time.Second), noon} {
		if err := store.WithdrawCommands(ctx, comment, before, " was deleted"); err != nil {
			t.Fatal(err)
		}
	}
	if give(3, "late", edited) {
		t.Error("what was said before it was deleted is stored after that")
	}
	if diff := differ([]string{"first was edited", "new was deleted", "other"}, waiting()); diff != "" {
		t.Error(diff)
	}
}
