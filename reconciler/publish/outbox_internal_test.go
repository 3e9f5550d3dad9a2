package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// records has posts by key, and what became of the last one.
type records struct {
	Store
	posts  map[string]holdfast.Post
	wanted []holdfast.Post
	pull   holdfast.PullRequestRecord
	others []holdfast.PullRequestRecord // open

	edited      *holdfast.Post // by somebody else
	seen, since time.Time

	failed    string
	notBefore time.Time
	posted    time.Time
}

func (r *records) Want(_ context.Context, post holdfast.Post) error {
	r.wanted = append(r.wanted, post)
	if r.posts == nil {
		r.posts = make(map[string]holdfast.Post)
	}
	r.posts[post.Key] = post
	return nil
}

func (r *records) Post(_ context.Context, key string) (holdfast.Post, error) {
	post, ok := r.posts[key]
	if !ok {
		return post, holdfast.ErrNotFound
	}
	return post, nil
}

func (r *records) Posts(context.Context, holdfast.PostFilter) ([]holdfast.Post, error) {
	var out []holdfast.Post
	for _, post := range r.posts {
		out = append(out, post)
	}
	return out, nil
}

func (r *records) PullRequest(context.Context, holdfast.PullRequestRef) (holdfast.PullRequestRecord, error) {
	return r.pull, nil
}

func (r *records) PullRequests(context.Context, holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error) {
	return r.others, nil
}

func (r *records) PostFailed(_ context.Context, _ string, cause string, notBefore time.Time) error {
	r.failed, r.notBefore = cause, notBefore
	return nil
}

func (r *records) Posted(_ context.Context, _ holdfast.Post, at time.Time) error {
	r.posted = at
	return nil
}

func (r *records) PostEdited(_ context.Context, post holdfast.Post, seen, since time.Time) (bool, error) {
	r.edited, r.seen, r.since = &post, seen, since
	return true, nil
}

type watcher struct{ gaveUp int }

func (*watcher) Wanted(context.Context)                 {}
func (*watcher) Posted(holdfast.Post, time.Time, error) {}
func (w *watcher) GaveUp(holdfast.Post)                 { w.gaveUp++ }

// host is a code host that takes every comment, and gives it back as it does. It has one
// as it is now.
type host struct {
	Forge
	back, now holdfast.Comment
	gone      error
}

func (h host) Comment(context.Context, holdfast.PullRequestRef, string) (holdfast.Comment, error) {
	return h.now, h.gone
}

func (h host) PutComment(context.Context, holdfast.PullRequestRef, string, string, string) (holdfast.Comment, error) {
	return h.back, nil
}

var (
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ref  = holdfast.PullRequestRef{Repo: "acme/clusters", Number: 7}
)

func publisher(r *records, w *watcher, h Forge) *Publisher {
	return New(Options{
		Store: r, Watcher: w, Logger: slog.New(slog.DiscardHandler), Settings: Settings{Now: func() time.Time { return noon }},
		Forges: map[string]Forge{ref.Repo: h},
	})
}

// A post is tried again for what may pass, and given up for what will not.
func TestPostFailed(t *testing.T) {
	t.Parallel()
	locked, ours := fmt.Errorf("issue is locked: %w", holdfast.ErrRejected), errors.New("disk full")
	limited := &holdfast.RateLimitError{RetryAt: noon.Add(time.Hour)}
	for name, test := range map[string]struct {
		kind     holdfast.PostKind
		failures int
		last     string // the error before
		cause    error
		state    holdfast.PullRequestState
		gaveUp   bool
		wait     time.Duration // at least
	}{
		"out of reach, for hours":         {holdfast.PostComment, 29, "unavailable", holdfast.ErrUnavailable, holdfast.PullRequestOpen, false, time.Minute},
		"until nobody waits for it":       {holdfast.PostComment, 30, "unavailable", holdfast.ErrUnavailable, holdfast.PullRequestClosed, true, 0},
		"of an open one never":            {holdfast.PostComment, 300, "unavailable", holdfast.ErrUnavailable, holdfast.PullRequestOpen, false, time.Minute},
		"limited until a time":            {holdfast.PostComment, 5, "", limited, holdfast.PullRequestOpen, false, time.Hour},
		"limited is not refused":          {holdfast.PostComment, 29, limited.Error(), limited, holdfast.PullRequestOpen, false, time.Hour},
		"a comment refused twice":         {holdfast.PostComment, 2, locked.Error(), locked, holdfast.PullRequestOpen, true, 0},
		"refused in other words":          {holdfast.PostComment, 2, "other", locked, holdfast.PullRequestOpen, false, time.Second},
		"trouble of our own":              {holdfast.PostComment, 29, ours.Error(), ours, holdfast.PullRequestOpen, false, time.Second},
		"a status is refused for longer":  {holdfast.PostStatus, 9, locked.Error(), locked, holdfast.PullRequestOpen, false, time.Second},
		"a status refused for good":       {holdfast.PostStatus, 10, locked.Error(), locked, holdfast.PullRequestOpen, true, 0},
		"not found may be hidden":         {holdfast.PostComment, 9, "not found", holdfast.ErrNotFound, holdfast.PullRequestOpen, false, time.Second},
		"not found for a quarter an hour": {holdfast.PostComment, 10, "not found", holdfast.ErrNotFound, holdfast.PullRequestOpen, true, 0},
		"issues are turned off":           {holdfast.PostIssue, 0, "", holdfast.ErrForbidden, holdfast.PullRequestOpen, true, 0},
		"what a host does not have":       {holdfast.PostCheck, 3, "", errors.ErrUnsupported, holdfast.PullRequestOpen, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := &records{}, &watcher{}
			r.pull.State = test.state
			post := holdfast.Post{Key: "k", Kind: test.kind, Repo: ref.Repo, PullRequest: ref}
			post.Failures, post.LastError = test.failures, test.last
			p := publisher(r, w, nil)
			if err := p.postFailed(t.Context(), post, test.cause); err != nil {
				t.Fatal(err)
			}
			if test.gaveUp != r.notBefore.IsZero() || test.gaveUp != (w.gaveUp == 1) || r.failed != test.cause.Error() {
				t.Errorf("given up: %t (%d heard of it), again at %v, as %q", r.notBefore.IsZero(), w.gaveUp, r.notBefore, r.failed)
			}
			if wait := r.notBefore.Sub(noon); !test.gaveUp && wait < test.wait {
				t.Errorf("tried again in %v, want at least %v", wait, test.wait)
			}
			if shows := p.shows.Depth() == 1; shows != (test.gaveUp && test.kind == holdfast.PostComment) {
				t.Errorf("the status says that the plan was not seen: %t", shows)
			}
		})
	}
}

// A comment counts as shown by the clock of the code host, as merges do.
func TestPostedByTheHostsClock(t *testing.T) {
	t.Parallel()
	r := &records{}
	theirs := noon.Add(-3 * time.Second)
	p := publisher(r, &watcher{}, host{back: holdfast.Comment{ID: "1", Body: "as the host has it", UpdatedAt: theirs}})
	post := holdfast.Post{Key: "comment", Kind: holdfast.PostComment, Repo: ref.Repo, PullRequest: ref, Body: "as it was sent"}
	if err := p.post(t.Context(), post); err != nil || !r.posted.Equal(theirs) {
		t.Errorf("posted at %v, %v, want %v", r.posted, err, theirs)
	}
	post.PostedAt = r.posted
	for body, want := range map[string]bool{
		"as it was sent": true, "as it was sent\r\n": true, "as the host has it": true, "as somebody has edited it": false, "": false,
	} {
		for at, unedited := range map[time.Time]bool{{}: true, theirs: true, theirs.Add(time.Second): true, theirs.Add(2 * time.Second): false} {
			if got := p.Untouched(post, holdfast.Comment{Body: body, UpdatedAt: at}); got != (want && unedited) {
				t.Errorf("%q, written at %v and edited at %v, is untouched: %t", body, theirs, at, got)
			}
		}
	}
}

// What somebody else has made of a comment of ours is noticed before it is written over:
// people have read it meanwhile.
func TestEditsAreNotWrittenOver(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection refused")
	later := holdfast.Comment{ID: "1", Body: "as the host has it", UpdatedAt: noon.Add(time.Hour)}
	for name, test := range map[string]struct {
		host   host
		change func(*holdfast.Post)
		edited bool
		id     string
		failed string
	}{
		"as we wrote it":           {host: host{now: holdfast.Comment{Body: "as the host has it", UpdatedAt: noon}}},
		"edited at once":           {host: host{now: holdfast.Comment{Body: "no changes", UpdatedAt: noon}}, edited: true, id: "1"},
		"edited, and put back":     {host: host{now: later}, edited: true, id: "1"},
		"deleted":                  {host: host{gone: holdfast.ErrNotFound}, edited: true},
		"out of reach":             {host: host{gone: broken}, failed: "read the comment before it is written again: connection refused"},
		"written by another":       {host: host{now: holdfast.Comment{Body: "what it wrote", UpdatedAt: noon}}, change: func(p *holdfast.Post) { p.Posted = 4 }},
		"written, perhaps, before": {host: host{now: later}, change: func(p *holdfast.Post) { p.Tried = true }},
		"not there yet":            {host: host{gone: broken}, change: func(p *holdfast.Post) { p.Posted, p.ExternalID = 0, "" }},
		"a reply":                  {host: host{now: later}, change: func(p *holdfast.Post) { p.Kind = holdfast.PostReply }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &records{}
			test.host.back = holdfast.Comment{ID: "1", Body: "as the host has it", UpdatedAt: noon}
			p := publisher(r, &watcher{}, test.host)
			post := holdfast.Post{Key: "comment", Kind: holdfast.PostComment, Repo: ref.Repo, PullRequest: ref, Body: "as it was sent"}
			post.Wanted = 1
			if err := p.post(t.Context(), post); err != nil || r.edited != nil {
				t.Fatalf("the first post: %v, edited %+v", err, r.edited)
			}
			post.Posted, post.Wanted, post.PostedAt, post.ExternalID, post.Body = 1, 2, noon, "1", "the next plans"
			if test.change != nil {
				test.change(&post)
			}
			if err := p.post(t.Context(), post); err != nil || r.failed != test.failed {
				t.Fatalf("the next post: %v, failed with %q, want %q", err, r.failed, test.failed)
			}
			if test.edited != (r.edited != nil) || r.edited != nil && r.edited.ExternalID != test.id {
				t.Errorf("edited: %+v", r.edited)
			}
		})
	}
}

// What an edited comment showed counts as shown from when it is there again. After the merge
// that is so only of what it showed since, if it was looked at in between.
func TestCommentEdited(t *testing.T) {
	t.Parallel()
	before, after := holdfast.Comment{UpdatedAt: noon.Add(-time.Minute)}, holdfast.Comment{UpdatedAt: noon.Add(time.Minute)}
	const open, merged = holdfast.PullRequestOpen, holdfast.PullRequestMerged
	for name, test := range map[string]struct {
		was, state  holdfast.PullRequestState
		id          string
		found       holdfast.Comment
		seen, since time.Time
	}{
		"open":                      {was: open, state: open, id: "1", found: before},
		"deleted while open":        {was: open, state: open},
		"merged meanwhile":          {was: open, state: merged, id: "1", found: before, since: noon.Add(time.Second)},
		"after, and perhaps before": {was: open, state: merged, id: "1", found: after, since: noon.Add(time.Second)},
		"deleted before or after":   {was: open, state: merged, since: noon.Add(time.Second)},
		"after the merge":           {was: merged, state: merged, id: "1", found: after, seen: noon},
		"deleted after the merge":   {was: merged, state: merged, seen: noon},
		"before it, and not known":  {was: merged, state: merged, id: "1", found: before, since: noon.Add(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &records{}
			p := publisher(r, &watcher{}, host{})
			pr := holdfast.PullRequest{PullRequestRef: ref, State: test.state, MergedAt: noon}
			edited, err := p.CommentEdited(t.Context(), holdfast.Post{ExternalID: test.id}, pr, test.was, test.found)
			if err != nil || !edited {
				t.Fatalf("%t, %v", edited, err)
			}
			if !r.seen.Equal(test.seen) || !r.since.Equal(test.since) {
				t.Errorf("seen %v, since %v", r.seen, r.since)
			}
		})
	}
}

// All commands of a comment are answered in one comment of ours, each once.
func TestReply(t *testing.T) {
	t.Parallel()
	r := &records{}
	p := publisher(r, &watcher{}, nil)
	one := holdfast.Command{PullRequest: ref, CommentID: "5", Verb: holdfast.VerbApply, Status: holdfast.CommandRefused, Reply: "not merged", Text: "/holdfast apply"}
	two := one
	two.Reply, two.Text = "no such cluster", "/holdfast apply nope"
	for _, c := range []holdfast.Command{one, two, one} {
		if err := p.Reply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	last := r.wanted[len(r.wanted)-1]
	if len(r.wanted) != 2 || len(r.posts) != 1 || !strings.Contains(last.Body, "not merged") || !strings.Contains(last.Body, "no such cluster") ||
		!strings.HasPrefix(last.Body, "<!-- holdfast:reply:") {
		t.Errorf("wrote %d times, last\n%s", len(r.wanted), last.Body)
	}
	if err := p.React(t.Context(), holdfast.Command{PullRequest: ref}, holdfast.ReactionSeen); err != nil || len(r.wanted) != 2 {
		t.Errorf("a command of the API has a reaction: %v", err)
	}
}

// A status that nobody will make final is ended, and no other.
func TestEndStatuses(t *testing.T) {
	t.Parallel()
	status := func(head holdfast.Revision, state holdfast.StatusState, about string) holdfast.Post {
		return holdfast.Post{
			Key: statusKey(ref.Repo, head, about), Kind: holdfast.PostStatus, Repo: ref.Repo,
			Status: holdfast.CommitStatus{Revision: head, Context: about, State: state},
		}
	}
	unseen := status("h0", holdfast.StatusSuccess, holdfast.ContextPlan)
	unseen.After, unseen.Wanted = "comment", 1
	for name, test := range map[string]struct {
		post  holdfast.Post
		state holdfast.PullRequestState
		other bool   // the commit is the head of another pull request
		want  string // the description; empty: it stays
	}{
		"of an older head":         {status("h1", holdfast.StatusPending, holdfast.ContextPlan), holdfast.PullRequestOpen, false, "superseded by h2"},
		"that waits for a comment": {unseen, holdfast.PullRequestOpen, false, "superseded by h2"},
		"of the head":              {status("h2", holdfast.StatusPending, holdfast.ContextPlan), holdfast.PullRequestOpen, false, ""},
		"of one that was closed":   {status("h2", holdfast.StatusPending, holdfast.ContextPlan), holdfast.PullRequestClosed, false, "closed before it was planned"},
		"that is final":            {status("h1", holdfast.StatusFailure, holdfast.ContextPlan), holdfast.PullRequestOpen, false, ""},
		"of an apply":              {status("h1", holdfast.StatusPending, holdfast.ContextApply), holdfast.PullRequestOpen, false, ""},
		"of another one's head":    {status("h1", holdfast.StatusPending, holdfast.ContextPlan), holdfast.PullRequestOpen, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &records{posts: map[string]holdfast.Post{test.post.Key: test.post}}
			if test.other {
				r.others = []holdfast.PullRequestRecord{{PullRequest: holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: ref.Repo, Number: 8}, Head: "h1"}}}
			}
			p := publisher(r, &watcher{}, nil)
			pr := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: ref, Head: "h2", State: test.state}}
			for range 2 { // the second look has nothing to do
				if err := p.endStatuses(t.Context(), pr); err != nil {
					t.Fatal(err)
				}
			}
			if test.want == "" {
				if len(r.wanted) > 0 {
					t.Errorf("ended it: %+v", r.wanted)
				}
				return
			}
			if len(r.wanted) != 1 || r.wanted[0].Status.State != holdfast.StatusError || r.wanted[0].After != "" ||
				!strings.Contains(r.wanted[0].Status.Description, test.want) {
				t.Errorf("wanted %+v, want %q", r.wanted, test.want)
			}
		})
	}
}
