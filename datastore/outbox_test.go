package datastore_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/outgoing"
)

var thePullRequest = holdfast.PullRequestRef{Repo: "fleet", Number: 7}

func commentPost(body string, head holdfast.Revision, runs ...string) outgoing.Post {
	return outgoing.Post{
		Key: "comment:fleet#7", Kind: outgoing.PostComment, Repo: "fleet", PullRequest: thePullRequest,
		Body: body, Head: head, Runs: runs,
	}
}

func want(t testing.TB, store *datastore.Store, post outgoing.Post) {
	t.Helper()
	if err := store.Want(t.Context(), post); err != nil {
		t.Fatal(err)
	}
}

func claimPosts(t testing.TB, store *datastore.Store, at time.Time) []outgoing.Post {
	t.Helper()
	return must[[]outgoing.Post](t)(store.ClaimPosts(t.Context(), "poster", at, time.Minute, 10))
}

// failedPost is a post as it is on record after failures that say why, each a refusal.
func failedPost(key, why string, failures int) outgoing.Post {
	return outgoing.Post{Key: key, PostDelivery: outgoing.PostDelivery{
		Failures: failures, Refusal: "refused", Refusals: failures, LastError: why,
	}}
}

func posted(t testing.TB, store *datastore.Store, post outgoing.Post, at time.Time) {
	t.Helper()
	if err := store.Posted(t.Context(), post, at); err != nil {
		t.Fatal(err)
	}
}

func testOutbox(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	if _, err := store.Post(ctx, "comment:fleet#7"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Post(unknown) = %v, want ErrNotFound", err)
	}
	if got := claimPosts(t, store, noon); len(got) != 0 {
		t.Errorf("ClaimPosts() of nothing = %+v", got)
	}
	want(t, store, commentPost("planning", "abc"))
	want(t, store, commentPost("planning", "abc"))
	first := claimPosts(t, store, noon)
	if len(first) != 1 || first[0].Wanted != 1 || first[0].Posted != 0 || first[0].Body != "planning" {
		t.Fatalf("ClaimPosts() = %+v", first)
	}
	if got := claimPosts(t, store, noon.Add(59*time.Second)); len(got) != 0 {
		t.Errorf("ClaimPosts() of what is claimed = %+v", got)
	}

	// The content changes while it is being posted: it is posted again.
	want(t, store, commentPost("planned", "abc", "run-1"))
	first[0].ExternalID = "77"
	posted(t, store, first[0], noon.Add(time.Second))
	again := claimPosts(t, store, noon.Add(2*time.Second))
	if len(again) != 1 || again[0].Wanted != 2 || again[0].Posted != 1 || again[0].ExternalID != "77" || again[0].Body != "planned" {
		t.Fatalf("ClaimPosts() after a change = %+v", again)
	}
	posted(t, store, again[0], noon.Add(3*time.Second))
	expected := commentPost("planned", "abc", "run-1")
	expected.ExternalID, expected.Wanted, expected.Posted, expected.PostedAt = "77", 2, 2, noon.Add(3*time.Second)
	expected.WantedAt = noon
	if diff := differ(expected, must[outgoing.Post](t)(store.Post(ctx, expected.Key))); diff != "" {
		t.Errorf("Post() (-want +got):\n%s", diff)
	}

	// An answer that comes late does not take a later content back.
	first[0].ExternalID = "66"
	posted(t, store, first[0], noon)
	if got := must[outgoing.Post](t)(store.Post(ctx, expected.Key)); got.Posted != 2 || got.ExternalID != "77" {
		t.Errorf("Post() after a late answer = posted %d under %s", got.Posted, got.ExternalID)
	}

	// A claim whose holder died ends automatically; status and reaction are content
	// too.
	status := outgoing.Post{Key: "status:fleet:abc", Kind: outgoing.PostStatus, Status: holdfast.CommitStatus{State: holdfast.StatusPending}}
	want(t, store, status)
	claimPosts(t, store, noon)
	if got := claimPosts(t, store, noon.Add(time.Minute)); len(got) != 1 || got[0].Status.State != holdfast.StatusPending {
		t.Errorf("ClaimPosts() after a claim ended = %+v", got)
	}
	status.Status.State = holdfast.StatusSuccess
	want(t, store, status)
	if got := must[outgoing.Post](t)(store.Post(ctx, status.Key)); got.Wanted != 2 {
		t.Errorf("Want() of another status = wanted %d, want 2", got.Wanted)
	}
}

func testOutboxFailures(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	fail := func(notBefore time.Time) {
		t.Helper()
		if err := store.PostFailed(ctx, failedPost("comment:fleet#7", "502 Bad Gateway", 1), notBefore); err != nil {
			t.Fatal(err)
		}
	}
	want(t, store, commentPost("one", "abc"))
	claimPosts(t, store, noon)
	fail(noon.Add(time.Minute))
	if got := claimPosts(t, store, noon.Add(59*time.Second)); len(got) != 0 {
		t.Errorf("ClaimPosts() before NotBefore = %+v", got)
	}
	got := claimPosts(t, store, noon.Add(time.Minute))
	if len(got) != 1 || got[0].Failures != 1 || got[0].Refusals != 1 || got[0].Refusal != "refused" || got[0].LastError != "502 Bad Gateway" {
		t.Fatalf("ClaimPosts() at NotBefore = %+v", got)
	}

	// Given up, but only on what was tried: a content that came meanwhile is posted.
	want(t, store, commentPost("two", "abc"))
	fail(time.Time{})
	if got := claimPosts(t, store, noon.Add(time.Minute)); len(got) != 1 || got[0].Body != "two" {
		t.Fatalf("ClaimPosts() of a later content = %+v", got)
	}
	fail(time.Time{})
	if got := claimPosts(t, store, noon.Add(time.Hour)); len(got) != 0 {
		t.Errorf("ClaimPosts() of what was given up = %+v", got)
	}
	want(t, store, commentPost("two", "abc"))
	if got := claimPosts(t, store, noon.Add(time.Hour)); len(got) != 0 {
		t.Errorf("ClaimPosts() of what was given up and is wanted again = %+v", got)
	}
	want(t, store, commentPost("three", "abc"))
	got = claimPosts(t, store, noon.Add(time.Hour))
	if len(got) != 1 || got[0].Body != "three" || got[0].Failures != 0 || got[0].Refusals != 0 {
		t.Errorf("ClaimPosts() of new content after giving up = %+v", got)
	}
	posted(t, store, got[0], noon)
	if got := must[outgoing.Post](t)(store.Post(ctx, "comment:fleet#7")); got.LastError != "" || got.Failures != 0 || got.Refusals != 0 || got.Refusal != "" {
		t.Errorf("Post() after success = %+v", got)
	}
	if err := store.PostFailed(ctx, failedPost("none", "x", 1), noon); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("PostFailed(unknown) = %v, want ErrNotFound", err)
	}
}

// testOutboxDeferred: what the forge was not asked for has not failed, and does not hide
// why it did before.
func testOutboxDeferred(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	post := commentPost("one", "abc")
	want(t, store, post)
	later := noon
	again := func(failures int, says string) {
		t.Helper()
		claimPosts(t, store, later)
		if err := store.PostDeferred(ctx, post.Key, "other writes come first", later.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got := claimPosts(t, store, later.Add(59*time.Second)); len(got) != 0 {
			t.Errorf("ClaimPosts() of what was deferred = %+v", got)
		}
		later = later.Add(time.Minute)
		got := claimPosts(t, store, later)
		if len(got) != 1 || got[0].Failures != failures || got[0].LastError != says {
			t.Fatalf("ClaimPosts() after a deferral = %+v; want %d failures and %q", got, failures, says)
		}
	}
	again(0, "other writes come first")
	again(0, "other writes come first")
	if err := store.PostFailed(ctx, failedPost(post.Key, "502 Bad Gateway", 4), later); err != nil {
		t.Fatal(err)
	}
	again(4, "502 Bad Gateway")
	if err := store.PostDeferred(ctx, "none", "x", noon); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("PostDeferred(unknown) = %v, want ErrNotFound", err)
	}
}

func testOutboxRuns(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	create(t, store, newRun(1), newRun(2))
	postedAt := func(id string) time.Time {
		t.Helper()
		return must[holdfast.Run](t)(store.Run(ctx, id)).PostedAt
	}
	version := must[holdfast.Run](t)(store.Run(ctx, "run-0001")).Version

	want(t, store, commentPost("plan", "abc", "run-0001", "run-gone"))
	post := claimPosts(t, store, noon)[0]
	if got := postedAt("run-0001"); !got.IsZero() {
		t.Errorf("PostedAt of a run whose comment is wanted = %s", got)
	}
	posted(t, store, post, noon.Add(time.Second))
	run := must[holdfast.Run](t)(store.Run(ctx, "run-0001"))
	if !run.PostedAt.Equal(noon.Add(time.Second)) || run.Version != version {
		t.Errorf("run after Posted() = posted at %s, version %d", run.PostedAt, run.Version)
	}
	want(t, store, commentPost("plan!", "abc", "run-0001"))
	posted(t, store, claimPosts(t, store, noon)[0], noon.Add(time.Hour))
	if got := postedAt("run-0001"); !got.Equal(noon.Add(time.Second)) {
		t.Errorf("PostedAt after the second post = %s, want that of the first", got)
	}

	// A write with a record from before the post does not take PostedAt back.
	run.PostedAt = time.Time{}
	if got := must[holdfast.Run](t)(store.UpdateRun(ctx, run)).PostedAt; !got.Equal(noon.Add(time.Second)) {
		t.Errorf("PostedAt after UpdateRun() without it = %s", got)
	}

	// The plan was made again and reads the same: what is on the forge shows it.
	again := newRun(3)
	again.Status, again.FinishedAt = holdfast.RunPlanned, noon.Add(2*time.Hour)
	create(t, store, again)
	want(t, store, commentPost("plan!", "def", "run-0003"))
	if got := claimPosts(t, store, noon.Add(3*time.Hour)); len(got) != 0 {
		t.Errorf("ClaimPosts() of the same content = %+v", got)
	}
	if got := postedAt("run-0003"); !got.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("PostedAt of a run that the posted content shows = %s, want its end", got)
	}
	must[bool](t)(store.StoreCommand(ctx, holdfast.Command{ID: "c", PullRequest: thePullRequest, CommentID: "1", CreatedAt: noon.Add(4 * time.Hour)}))
	command := must[holdfast.Command](t)(store.Command(ctx, "c"))
	if diff := differ([]string{"run-0003"}, command.Shown); diff != "" || command.ShownHead != "def" {
		t.Errorf("StoreCommand() = shown %v at %s", command.Shown, command.ShownHead)
	}
}

func testOutboxEdited(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	create(t, store, newRun(1), newRun(2))
	must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: thePullRequest}}))
	postedAt := func(id string) time.Time {
		t.Helper()
		return must[holdfast.Run](t)(store.Run(ctx, id)).PostedAt
	}
	edit := func(post outgoing.Post, seen, since time.Time, want bool) {
		t.Helper()
		if got := must[bool](t)(store.PostEdited(ctx, post, seen, since)); got != want {
			t.Errorf("PostEdited(%d of %d) = %v, want %v", post.Posted, post.Wanted, got, want)
		}
	}
	edited := func(posted int64, seen, since time.Time, want bool) {
		t.Helper()
		post := must[outgoing.Post](t)(store.Post(ctx, "comment:fleet#7"))
		post.Posted = posted
		edit(post, seen, since, want)
	}
	want(t, store, commentPost("one", "abc", "run-0001"))
	edited(1, time.Time{}, time.Time{}, false) // it is not there
	posted(t, store, claimPosts(t, store, noon)[0], noon)
	want(t, store, commentPost("two", "abc", "run-0001", "run-0002"))
	posted(t, store, claimPosts(t, store, noon)[0], noon.Add(time.Minute))
	if seen := postedAt("run-0002"); !seen.Equal(noon.Add(time.Minute)) {
		t.Fatalf("posted at %s", seen)
	}

	edited(1, noon.Add(time.Second), time.Time{}, false) // it was written meanwhile
	edited(2, noon.Add(time.Second), time.Time{}, true)
	if since := must[holdfast.PullRequestRecord](t)(store.PullRequest(ctx, thePullRequest)).ShownSince; !since.After(noon.Add(10000 * time.Hour)) {
		t.Errorf("what nobody sees is shown since %s", since)
	}
	if first, second := postedAt("run-0001"), postedAt("run-0002"); !first.Equal(noon) || !second.IsZero() {
		t.Errorf("what was seen before counts as posted at %s, the other at %s", first, second)
	}
	must[bool](t)(store.StoreCommand(ctx, holdfast.Command{ID: "c", PullRequest: thePullRequest, CommentID: "1", CreatedAt: noon.Add(4 * time.Hour)}))
	if command := must[holdfast.Command](t)(store.Command(ctx, "c")); len(command.Shown) > 0 || command.ShownHead != "" {
		t.Errorf("a command speaks of %v at %q, which nobody saw", command.Shown, command.ShownHead)
	}
	again := claimPosts(t, store, noon)
	if len(again) != 1 || again[0].Body != "two" {
		t.Fatalf("what is posted again is %+v", again)
	}
	posted(t, store, again[0], noon.Add(time.Hour))
	if first, second := postedAt("run-0001"), postedAt("run-0002"); !first.Equal(noon) || !second.Equal(noon.Add(time.Hour)) {
		t.Errorf("posted again at %s and %s", first, second)
	}
	if since := must[holdfast.PullRequestRecord](t)(store.PullRequest(ctx, thePullRequest)).ShownSince; !since.Equal(noon.Add(time.Hour)) {
		t.Errorf("posted again it is shown since %s", since)
	}
	edited(3, time.Time{}, noon.Add(time.Minute), true)
	posted(t, store, claimPosts(t, store, noon)[0], noon)
	if first := postedAt("run-0001"); !first.Equal(noon.Add(time.Minute)) {
		t.Errorf("of an edit before the merge it counts as posted at %s", first)
	}

	// Whoever has claimed the next content finds the edit before it is written over.
	want(t, store, commentPost("three", "abc", "run-0002"))
	over := claimPosts(t, store, noon)[0]
	over.ExternalID = "" // deleted
	sent := over
	sent.Attempts = []string{string(holdfast.DigestOf([]byte(over.Body)))}
	if err := store.PostTried(ctx, over.Key, sent.Attempts); err != nil {
		t.Fatal(err)
	}
	edit(over, time.Time{}, time.Time{}, false) // it was sent since it was read
	over = sent
	edit(over, time.Time{}, time.Time{}, true)
	if first, second := postedAt("run-0001"), postedAt("run-0002"); !first.IsZero() || !second.IsZero() {
		t.Errorf("what was deleted counts as posted at %s and %s", first, second)
	}
	if post := must[outgoing.Post](t)(store.Post(ctx, over.Key)); post.Wanted != over.Wanted+1 || post.ExternalID != "" {
		t.Errorf("wanted is %d under %q, want %d under none: the edit may come after the write", post.Wanted, post.ExternalID, over.Wanted+1)
	}
	over.ExternalID = "43"
	posted(t, store, over, noon.Add(2*time.Hour))
	if first, second := postedAt("run-0001"), postedAt("run-0002"); !first.IsZero() || !second.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("after it was written over, posted at %s and %s", first, second)
	}
	if post := must[outgoing.Post](t)(store.Post(ctx, over.Key)); len(post.Attempts) > 0 {
		t.Errorf("attempts after the last one is on record: %v", post.Attempts)
	}
}

// testPostsOfOthers: what waits for a repository that is passed over hides nothing.
func testPostsOfOthers(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	for i := range 3 {
		for _, repo := range []string{"busy", "hanging", "fleet"} {
			want(t, store, outgoing.Post{
				Key: fmt.Sprintf("status:%s:%d", repo, i), Kind: outgoing.PostStatus, Repo: repo, Status: holdfast.CommitStatus{Revision: "abc"},
			})
		}
	}
	claimed := must[[]outgoing.Post](t)(store.ClaimPosts(ctx, "me", noon, time.Minute, 2, "busy", "hanging"))
	claimed = append(claimed, must[[]outgoing.Post](t)(store.ClaimPosts(ctx, "me", noon, time.Minute, 2, "hanging", "busy"))...)
	for _, p := range claimed {
		if p.Repo != "fleet" {
			t.Errorf("claimed is a post to %q", p.Repo)
		}
	}
	rest := must[[]outgoing.Post](t)(store.ClaimPosts(ctx, "me", noon, time.Minute, 100))
	if len(claimed) != 3 || len(rest) != 6 {
		t.Errorf("claimed are %d posts to one repository and then %d, want 3 and 6", len(claimed), len(rest))
	}
}

func testManyPosters(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	const posts, posters = 60, 8
	for i := range posts {
		want(t, store, outgoing.Post{Key: fmt.Sprint("reply:", i), Kind: outgoing.PostReply, Body: "b"})
	}
	var mu sync.Mutex
	claimed := map[string]int{}
	var group sync.WaitGroup
	for i := range posters {
		group.Go(func() {
			for {
				got, err := store.ClaimPosts(ctx, fmt.Sprint(i), noon, time.Minute, 3)
				if err != nil {
					t.Errorf("ClaimPosts() = %v", err)
				}
				if len(got) == 0 {
					return
				}
				mu.Lock()
				for _, p := range got {
					claimed[p.Key]++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for key, n := range claimed {
		if n != 1 {
			t.Errorf("%s was claimed %d times", key, n)
		}
	}
	if len(claimed) != posts {
		t.Errorf("%d of %d posts were claimed", len(claimed), posts)
	}
}

func testCommands(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	want(t, store, commentPost("shown", "abc", "run-1", "run-2"))
	posted(t, store, claimPosts(t, store, noon)[0], noon.Add(-time.Second))
	want(t, store, commentPost("not yet shown", "def", "run-3"))

	command := holdfast.Command{
		ID: "cmd-1", PullRequest: thePullRequest, CommentID: "5", Author: "ana", Verb: holdfast.VerbApply,
		Text: "/holdfast apply", CreatedAt: noon,
	}
	other := func(change func(c *holdfast.Command)) holdfast.Command {
		c := command
		change(&c)
		return c
	}
	for _, test := range []struct {
		name    string
		command holdfast.Command
		want    bool
	}{
		{"first", command, true},
		{"again", command, false},
		{"again by another way", other(func(c *holdfast.Command) { c.ID = "cmd-x" }), false},
		{"edited", other(func(c *holdfast.Command) { c.Text = "/holdfast cancel" }), false},
		{"second line", other(func(c *holdfast.Command) { c.ID, c.Text = "a-hash", "/holdfast help" }), true},
		{"other comment", other(func(c *holdfast.Command) { c.ID, c.CommentID, c.CreatedAt = "cmd-3", "6", noon.Add(-time.Second) }), true},
		{"other repository", other(func(c *holdfast.Command) { c.ID, c.PullRequest.Repo = "cmd-4", "other" }), true},
		{"later comment of the same second", other(func(c *holdfast.Command) { c.ID, c.CommentID = "cmd-0", "10" }), true},
		{"API", holdfast.Command{ID: "cmd-5", Clusters: []string{"prod-eu"}, Trusted: true, CreatedAt: noon.Add(1)}, true},
		{"API, the same words", holdfast.Command{ID: "cmd-6", Clusters: []string{"prod-eu"}, Trusted: true, CreatedAt: noon.Add(2)}, true},
	} {
		if got := must[bool](t)(store.StoreCommand(ctx, test.command)); got != test.want {
			t.Errorf("StoreCommand(%s) = %v, want %v", test.name, got, test.want)
		}
	}

	received := must[[]holdfast.Command](t)(store.Commands(ctx, holdfast.CommandReceived))
	var order []string
	for _, c := range received {
		order = append(order, c.ID)
	}
	if diff := differ([]string{"cmd-3", "cmd-1", "a-hash", "cmd-4", "cmd-0", "cmd-5", "cmd-6"}, order); diff != "" {
		t.Fatalf("Commands() (-want +got):\n%s", diff)
	}
	expected := command
	expected.Shown, expected.ShownHead, expected.Status = []string{"run-1", "run-2"}, "abc", holdfast.CommandReceived
	if diff := differ(expected, received[1]); diff != "" {
		t.Errorf("stored command (-want +got):\n%s", diff)
	}
	if received[0].Shown != nil || received[0].ShownHead != "" {
		t.Errorf("a command written in the second in which the comment was posted has seen %v of %q", received[0].Shown, received[0].ShownHead)
	}
	if received[3].Shown != nil {
		t.Errorf("command of a pull request without a comment shows %v", received[3].Shown)
	}

	expected.Status, expected.Reply, expected.DoneAt = holdfast.CommandRefused, "the head has moved", noon.Add(time.Minute)
	if err := store.FinishCommand(ctx, holdfast.Command{
		ID: "cmd-1", Status: expected.Status, CommandResult: holdfast.CommandResult{Reply: expected.Reply}, DoneAt: expected.DoneAt, Text: "not stored",
	}); err != nil {
		t.Fatal(err)
	}
	if diff := differ([]holdfast.Command{expected}, must[[]holdfast.Command](t)(store.Commands(ctx, holdfast.CommandRefused))); diff != "" {
		t.Errorf("Commands(refused) (-want +got):\n%s", diff)
	}
	if err := store.FinishCommand(ctx, holdfast.Command{ID: "none"}); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("FinishCommand(unknown) = %v, want ErrNotFound", err)
	}
}

func testOutboxOrder(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	green := outgoing.Post{
		Key: "status:fleet:abc:holdfast/plan", Kind: outgoing.PostStatus, Repo: "fleet", PullRequest: thePullRequest,
		Status: holdfast.CommitStatus{Revision: "abc", Context: holdfast.ContextPlan, State: holdfast.StatusSuccess}, After: "comment:fleet#7",
	}
	keys := func(posts []outgoing.Post) (out []string) {
		for _, p := range posts {
			out = append(out, p.Key)
		}
		return out
	}
	want(t, store, commentPost("planned", "abc", "run-1"))
	want(t, store, green)
	claimed := claimPosts(t, store, noon)
	if diff := differ([]string{"comment:fleet#7"}, keys(claimed)); diff != "" {
		t.Fatalf("posts before the comment is there (-want +got):\n%s", diff)
	}
	if claimed[0].Tried {
		t.Error("what is claimed for the first time was tried before")
	}

	// An answer that was lost, a poster that died: the next one is told.
	if err := store.PostFailed(ctx, failedPost(claimed[0].Key, "no answer", 1), noon); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		at := noon.Add(time.Hour + time.Duration(i)*2*time.Minute)
		if claimed = claimPosts(t, store, at); len(claimed) != 1 || !claimed[0].Tried {
			t.Fatalf("posts after a lost answer = %+v", claimed)
		}
	}

	// Refused: it is not tried again, and what waits for it continues waiting.
	if err := store.PostFailed(ctx, failedPost(claimed[0].Key, "locked", 1), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := claimPosts(t, store, noon.Add(2*time.Hour)); len(got) != 0 {
		t.Errorf("posts after a refusal = %v", keys(got))
	}
	if got := must[outgoing.Post](t)(store.Post(ctx, "comment:fleet#7")); !got.GivenUp || got.LastError != "locked" {
		t.Errorf("the comment that was refused = %+v", got)
	}
	want(t, store, commentPost("planned", "abc", "run-1"))
	if got := claimPosts(t, store, noon.Add(2*time.Hour)); len(got) != 0 {
		t.Errorf("posts after the same was wanted again = %v", keys(got))
	}

	// It shows another run: it is tried again, and its status follows.
	want(t, store, commentPost("planned", "abc", "run-2"))
	claimed = claimPosts(t, store, noon.Add(2*time.Hour))
	if len(claimed) != 1 || claimed[0].GivenUp {
		t.Fatalf("posts after another run = %+v", claimed)
	}
	claimed[0].ExternalID = "77"
	posted(t, store, claimed[0], noon.Add(2*time.Hour))
	claimed = claimPosts(t, store, noon.Add(2*time.Hour))
	if len(claimed) != 1 || claimed[0].Key != green.Key {
		t.Fatalf("posts after the comment = %v", keys(claimed))
	}
	posted(t, store, claimed[0], noon.Add(2*time.Hour))

	// A status that waits for no comment, or for one that is there, does not wait.
	for _, after := range []string{"", "comment:fleet#7", "comment:unknown"} {
		green.Status.Description, green.After = "after "+after, after
		want(t, store, green)
		claimed = claimPosts(t, store, noon.Add(2*time.Hour))
		if len(claimed) != 1 || claimed[0].Status.Description != green.Status.Description {
			t.Fatalf("posts after %q = %v", after, keys(claimed))
		}
		posted(t, store, claimed[0], noon.Add(2*time.Hour))
	}

	want(t, store, outgoing.Post{Key: "status:fleet:def:holdfast/plan", Kind: outgoing.PostStatus, Repo: "fleet", Status: holdfast.CommitStatus{Revision: "def"}})
	found := must[[]outgoing.Post](t)(store.Posts(ctx, outgoing.PostFilter{Kind: outgoing.PostStatus, PullRequest: thePullRequest}))
	if diff := differ([]string{green.Key}, keys(found)); diff != "" {
		t.Errorf("Posts() (-want +got):\n%s", diff)
	}
	if all := must[[]outgoing.Post](t)(store.Posts(ctx, outgoing.PostFilter{})); len(all) != 3 {
		t.Errorf("Posts() of all = %v", keys(all))
	}
}

// The faults that a check run shows are a part of what is wanted.
func testWantedFaults(t *testing.T, open opener) {
	store := open(t)
	check := outgoing.Post{Key: "check:fleet:abc", Kind: outgoing.PostCheck, Repo: "fleet", Faults: holdfast.Faults{{File: "a.yaml", Line: 3, Message: "no"}}}
	for i, faults := range []holdfast.Faults{check.Faults, check.Faults, {{File: "a.yaml", Line: 4, Message: "no"}}, nil} {
		check.Faults = faults
		want(t, store, check)
		got, err := store.Post(t.Context(), check.Key)
		if wanted := []int64{1, 1, 2, 3}[i]; err != nil || got.Wanted != wanted || !slices.Equal(got.Faults, faults) {
			t.Errorf("wanted %d with %v, want %d with %v: %v", got.Wanted, got.Faults, wanted, faults, err)
		}
	}
}
