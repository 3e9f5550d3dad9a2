package datastore_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// testTurnsOfPosts: replies and reactions, which anybody can cause, wait for what merges
// wait for, and not forever.
func testTurnsOfPosts(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	post := func(kind outgoing.PostKind, name string) {
		want(t, store, outgoing.Post{
			Key: string(kind) + ":" + name, Kind: kind, Repo: "fleet", PullRequest: thePullRequest, Title: "t", Body: "b",
			Status: holdfast.CommitStatus{Revision: "abc"}, Reaction: holdfast.ReactionSeen, CommentID: "1",
		})
	}
	for i := range 20 {
		post(outgoing.PostReaction, fmt.Sprintf("%02d", i))
		post(outgoing.PostReply, fmt.Sprintf("%02d", i))
	}
	post(outgoing.PostIssue, "1")
	comment := commentPost("b", "abc")
	want(t, store, comment)
	want(t, store, outgoing.Post{
		Key: "status:1", Kind: outgoing.PostStatus, Repo: "fleet", Status: holdfast.CommitStatus{Revision: "abc"}, After: comment.Key,
	})
	post(outgoing.PostStatus, "2")
	post(outgoing.PostCheck, "1")

	claim := func(at time.Time, limit int) (keys []string, posts []outgoing.Post) {
		posts = must[[]outgoing.Post](t)(store.ClaimPosts(ctx, "me", at, time.Hour, limit))
		for _, p := range posts {
			keys = append(keys, p.Key)
		}
		return keys, posts
	}
	keys, posts := claim(noon, 6)
	if want := "[check:1 comment:fleet#7 status:2 issue:1 reply:00 reply:01]"; fmt.Sprint(keys) != want {
		t.Fatalf("first come %v, want %s", keys, want)
	}
	posted(t, store, posts[1], noon)
	if keys, _ = claim(noon, 2); fmt.Sprint(keys) != "[status:1 reply:02]" {
		t.Errorf("once the comment is there come %v, want its status and a reply", keys)
	}
	for i := range 4 {
		post(outgoing.PostStatus, fmt.Sprint("new-", i))
	}
	if keys, _ = claim(noon.Add(time.Second), 2); fmt.Sprint(keys) != "[status:new-0 status:new-1]" {
		t.Errorf("before reactions have waited for long come %v", keys)
	}
	if keys, _ = claim(noon.Add(postsPatience), 2); fmt.Sprint(keys) != "[status:new-2 reaction:00]" {
		t.Errorf("when reactions have waited for long come %v, want one of them", keys)
	}
}

// testPostsLeft: a server that ends waits for what is worth it and can be posted.
func testPostsLeft(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	left := func(since time.Time) int { return must[int](t)(store.PostsLeft(ctx, noon, since)) }
	comment := commentPost("b", "abc")
	want(t, store, comment)
	want(t, store, outgoing.Post{
		Key: "status:1", Kind: outgoing.PostStatus, Repo: "fleet", Status: holdfast.CommitStatus{Revision: "abc"}, After: comment.Key,
	})
	want(t, store, outgoing.Post{Key: "reply:1", Kind: outgoing.PostReply, Repo: "fleet", Body: "b"})
	want(t, store, outgoing.Post{Key: "reaction:1", Kind: outgoing.PostReaction, Repo: "fleet", Reaction: holdfast.ReactionSeen})
	if got := left(noon); got != 2 {
		t.Errorf("left are %d, want the comment and the status that waits for it", got)
	}
	if got := left(noon.Add(1)); got != 0 {
		t.Errorf("left are %d that were wanted before", got)
	}
	if err := store.PostDeferred(ctx, comment.Key, "other writes come first", noon); err != nil {
		t.Fatal(err)
	}
	if got := left(noon); got != 0 {
		t.Errorf("left are %d once the comment was deferred", got)
	}
	if err := store.PostFailed(ctx, failedPost(comment.Key, "locked", 1), noon); err != nil {
		t.Fatal(err)
	}
	if got := left(noon); got != 0 {
		t.Errorf("left are %d once the comment has failed", got)
	}
}

// testDroppedPosts: what nobody would see is new when it is wanted again. What is there, or
// has changed meanwhile, is not forgotten.
func testDroppedPosts(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	check := outgoing.Post{Key: "check:fleet:abc", Kind: outgoing.PostCheck, Repo: "fleet", Status: holdfast.CommitStatus{Revision: "abc"}}
	drop := func(post outgoing.Post) {
		t.Helper()
		if err := store.PostDropped(ctx, post); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(when string) outgoing.Post {
		t.Helper()
		claimed := claimPosts(t, store, noon)
		if len(claimed) != 1 {
			t.Fatalf("%s, claimed are %+v", when, claimed)
		}
		return claimed[0]
	}
	want(t, store, check)
	drop(claim("wanted"))
	if _, err := store.Post(ctx, check.Key); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Post() of what was dropped = %v, want ErrNotFound", err)
	}
	want(t, store, check)
	post := claim("wanted again")
	check.Status.State = holdfast.StatusSuccess
	want(t, store, check)
	drop(post)
	post = claim("changed meanwhile")
	posted(t, store, post, noon)
	check.Status.State = holdfast.StatusFailure
	want(t, store, check)
	drop(claim("on the forge, and changed"))
	if got := claim("on the forge, and dropped"); got.Posted == 0 {
		t.Errorf("it is on record as %+v", got.PostDelivery)
	}
}

// testRetriedPosts: what was given up and is to be posted again says no longer why it was,
// and a server that ends waits for it as for what was not tried yet.
func testRetriedPosts(t *testing.T, open opener) {
	ctx := t.Context()
	for name, again := range map[string]func(*datastore.Store) error{
		"asked for":          func(s *datastore.Store) error { return s.RetryPosts(ctx, thePullRequest) },
		"with other runs":    func(s *datastore.Store) error { return s.Want(ctx, commentPost("b", "abc", "run-2")) },
		"with other content": func(s *datastore.Store) error { return s.Want(ctx, commentPost("c", "abc", "run-1")) },
	} {
		store := open(t)
		comment := commentPost("b", "abc", "run-1")
		want(t, store, comment)
		claimPosts(t, store, noon)
		if err := store.PostFailed(ctx, failedPost(comment.Key, "locked", 3), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if got := must[int](t)(store.PostsLeft(ctx, noon, noon)); got != 0 {
			t.Errorf("%s: left are %d that were given up", name, got)
		}
		if err := again(store); err != nil {
			t.Fatal(err)
		}
		if got := must[int](t)(store.PostsLeft(ctx, noon, noon)); got != 1 {
			t.Errorf("%s: left are %d, want the comment", name, got)
		}
		if got := must[outgoing.Post](t)(store.Post(ctx, comment.Key)); got.LastError != "" || got.Failures != 0 || got.GivenUp {
			t.Errorf("%s: it is on record as %+v", name, got.PostDelivery)
		}
	}
}

// Somebody who asks for what was given up wants it from then: it is not too old at once.
func TestRetriedPostsAreWantedNow(t *testing.T) {
	t.Parallel()
	now := noon
	store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db"), Now: func() time.Time { return now }})
	comment := commentPost("b", "abc")
	want(t, store, comment)
	claimPosts(t, store, now)
	if err := store.PostFailed(t.Context(), failedPost(comment.Key, "locked", 3), time.Time{}); err != nil {
		t.Fatal(err)
	}
	now = noon.Add(48 * time.Hour)
	if err := store.RetryPosts(t.Context(), thePullRequest); err != nil {
		t.Fatal(err)
	}
	if got := must[outgoing.Post](t)(store.Post(t.Context(), comment.Key)); !got.WantedAt.Equal(now) {
		t.Errorf("it is wanted since %v, want %v", got.WantedAt, now)
	}
}

// postsPatience is how long a post waits for those that come before it.
const postsPatience = 2 * time.Minute
