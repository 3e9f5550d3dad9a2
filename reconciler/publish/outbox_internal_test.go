package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// records has posts by key, and what became of the last one.
type records struct {
	Store
	posts  map[string]outgoing.Post
	wanted []outgoing.Post
	pull   holdfast.PullRequestRecord
	others []holdfast.PullRequestRecord // open

	edited      *outgoing.Post // by somebody else
	seen, since time.Time

	failed    outgoing.Post
	deferred  bool
	dropped   bool
	notBefore time.Time
	posted    time.Time
	echo      holdfast.Digest
	tried     []string
	unshown   time.Time
}

func (r *records) Want(_ context.Context, posts ...outgoing.Post) error {
	r.wanted = append(r.wanted, posts...)
	if r.posts == nil {
		r.posts = make(map[string]outgoing.Post)
	}
	for _, post := range posts {
		r.posts[post.Key] = post
	}
	return nil
}

func (r *records) Post(_ context.Context, key string) (outgoing.Post, error) {
	post, ok := r.posts[key]
	if !ok {
		return post, holdfast.ErrNotFound
	}
	return post, nil
}

func (r *records) Posts(context.Context, outgoing.PostFilter) ([]outgoing.Post, error) {
	var out []outgoing.Post
	for _, post := range r.posts {
		out = append(out, post)
	}
	return out, nil
}

func (r *records) PullRequest(context.Context, holdfast.PullRequestRef) (holdfast.PullRequestRecord, error) {
	return r.pull, nil
}

func (r *records) PullRequests(context.Context, holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error) {
	return slices.Clone(r.others), nil
}

func (r *records) PostFailed(_ context.Context, post outgoing.Post, notBefore time.Time) error {
	r.failed, r.notBefore = post, notBefore
	return nil
}

func (r *records) PostDeferred(_ context.Context, _ string, cause string, notBefore time.Time) error {
	r.failed.LastError, r.notBefore, r.deferred = cause, notBefore, true
	return nil
}

func (r *records) PostDropped(context.Context, outgoing.Post) error {
	r.dropped = true
	return nil
}

func (r *records) Posted(_ context.Context, post outgoing.Post, at time.Time) error {
	r.posted, r.echo = at, post.Echo
	return nil
}

func (r *records) PostEdited(_ context.Context, post outgoing.Post, seen, since time.Time) (bool, error) {
	r.edited, r.seen, r.since = &post, seen, since
	return true, nil
}

func (r *records) PostTried(_ context.Context, _ string, attempts []string) error {
	r.tried = attempts
	return nil
}

func (r *records) PostUnshown(_ context.Context, _ outgoing.Post, at time.Time) (bool, error) {
	news := r.unshown.IsZero()
	r.unshown = at
	return news, nil
}

type watcher struct{ gaveUp, posted, failed int }

func (*watcher) Wanted(context.Context) {}
func (w *watcher) GaveUp(outgoing.Post) { w.gaveUp++ }

func (w *watcher) Posted(_ outgoing.Post, _ time.Time, err error) {
	if w.posted++; err != nil {
		w.failed++
	}
}

// host is a code host that takes every comment, and gives it back as it does. It has one
// as it is now.
type host struct {
	Forge
	back, now holdfast.Comment
	gone      error
	hidden    bool
	refused   error
	puts      *int
}

func (h host) PullRequest(context.Context, holdfast.PullRequestRef) (holdfast.PullRequest, error) {
	if h.hidden {
		return holdfast.PullRequest{}, holdfast.ErrNotFound
	}
	return holdfast.PullRequest{}, nil
}

func (h host) Comment(context.Context, holdfast.PullRequestRef, string) (holdfast.Comment, error) {
	return h.now, h.gone
}

func (h host) PutComment(_ context.Context, _ holdfast.PullRequestRef, id, _, _ string) (holdfast.Comment, error) {
	h.back.ID = cmp.Or(h.back.ID, id)
	if h.puts != nil {
		*h.puts++
	}
	return h.back, h.refused
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
	refusing := &holdfast.RateLimitError{RetryAt: noon.Add(time.Hour), Err: holdfast.ErrForbidden}
	for name, test := range map[string]struct {
		kind     outgoing.PostKind
		failures int
		last     string // the error before
		refusal  string // its kind
		cause    error
		state    holdfast.PullRequestState
		gaveUp   bool
		wait     time.Duration // at least
	}{
		"out of reach, for hours":         {outgoing.PostComment, 29, "unavailable", "", holdfast.ErrUnavailable, holdfast.PullRequestOpen, false, time.Minute},
		"until nobody waits for it":       {outgoing.PostComment, 30, "unavailable", "", holdfast.ErrUnavailable, holdfast.PullRequestClosed, true, 0},
		"of an open one never":            {outgoing.PostComment, 300, "unavailable", "", holdfast.ErrUnavailable, holdfast.PullRequestOpen, false, time.Minute},
		"limited until a time":            {outgoing.PostComment, 5, "", "", limited, holdfast.PullRequestOpen, false, time.Hour},
		"limited is not refused":          {outgoing.PostComment, 29, limited.Error(), "", limited, holdfast.PullRequestOpen, false, time.Hour},
		"limited is not turned off":       {outgoing.PostIssue, 0, "", "", refusing, holdfast.PullRequestOpen, false, time.Hour},
		"limited, and closed":             {outgoing.PostStatus, 0, "", "", limited, holdfast.PullRequestClosed, false, time.Hour},
		"a comment refused twice":         {outgoing.PostComment, 2, locked.Error(), "refused", locked, holdfast.PullRequestOpen, true, 0},
		"refused in other words":          {outgoing.PostComment, 2, "other", "refused", locked, holdfast.PullRequestOpen, false, time.Second},
		"trouble of our own":              {outgoing.PostComment, 29, ours.Error(), "", ours, holdfast.PullRequestOpen, false, time.Second},
		"a status is refused for longer":  {outgoing.PostStatus, 9, locked.Error(), "refused", locked, holdfast.PullRequestOpen, false, time.Second},
		"a status refused for good":       {outgoing.PostStatus, 10, locked.Error(), "refused", locked, holdfast.PullRequestOpen, true, 0},
		"not found may be hidden":         {outgoing.PostComment, 9, "not found", "not found", holdfast.ErrNotFound, holdfast.PullRequestOpen, false, time.Second},
		"not found for a quarter an hour": {outgoing.PostComment, 10, "not found", "not found", holdfast.ErrNotFound, holdfast.PullRequestOpen, true, 0},
		"not found after other failures":  {outgoing.PostComment, 29, "unavailable", "", holdfast.ErrNotFound, holdfast.PullRequestOpen, false, time.Second},
		"a reaction, not found yet":       {outgoing.PostReaction, 0, "", "", holdfast.ErrNotFound, holdfast.PullRequestOpen, false, time.Second},
		"a reaction to what was deleted":  {outgoing.PostReaction, 1, "not found", "not found", holdfast.ErrNotFound, holdfast.PullRequestOpen, true, 0},
		"a reaction, not found at last":   {outgoing.PostReaction, 9, "unavailable", "", holdfast.ErrNotFound, holdfast.PullRequestOpen, false, time.Second},
		"a reaction, out of reach":        {outgoing.PostReaction, 9, "unavailable", "", holdfast.ErrUnavailable, holdfast.PullRequestOpen, false, time.Second},
		"issues are turned off":           {outgoing.PostIssue, 0, "", "", holdfast.ErrForbidden, holdfast.PullRequestOpen, true, 0},
		"what a host does not have":       {outgoing.PostCheck, 3, errors.ErrUnsupported.Error(), "unsupported", errors.ErrUnsupported, holdfast.PullRequestOpen, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := &records{}, &watcher{}
			r.pull.State = test.state
			post := outgoing.Post{Key: "k", Kind: test.kind, Repo: ref.Repo, PullRequest: ref}
			post.Failures, post.LastError, post.WantedAt = test.failures, test.last, noon.Add(-2*time.Hour)
			if post.Refusal = test.refusal; test.refusal != "" {
				post.Refusals = test.failures
			}
			p := publisher(r, w, nil)
			var logged bytes.Buffer
			p.outbox.opts.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			if err := p.postFailed(t.Context(), post, test.cause); err != nil {
				t.Fatal(err)
			}
			if test.gaveUp != r.notBefore.IsZero() || test.gaveUp != (w.gaveUp == 1) || r.failed.LastError != test.cause.Error() {
				t.Errorf("given up: %t (%d heard of it), again at %v, as %q", r.notBefore.IsZero(), w.gaveUp, r.notBefore, r.failed.LastError)
			}
			if later := (*holdfast.RateLimitError)(nil); r.deferred != errors.As(test.cause, &later) {
				t.Errorf("deferred without being a failure: %t", r.deferred)
			}
			if wait := r.notBefore.Sub(noon); !test.gaveUp && wait < test.wait {
				t.Errorf("tried again in %v, want at least %v", wait, test.wait)
			}
			deleted := test.kind == outgoing.PostReaction && errors.Is(test.cause, holdfast.ErrNotFound)
			if warned := strings.Contains(logged.String(), "level=WARN"); warned == (deleted || r.deferred) {
				t.Errorf("logged %s", logged.String())
			}
			if shows := p.shows.Depth() == 1; shows != (test.gaveUp && test.kind == outgoing.PostComment) {
				t.Errorf("the status says that the plan was not seen: %t", shows)
			}
		})
	}
}

// After an outage, what a code host refuses or does not find is tried as often as without
// one, also if the outage interrupts that.
func TestRefusedAfterAnOutage(t *testing.T) {
	t.Parallel()
	locked := fmt.Errorf("issue is locked: %w", holdfast.ErrRejected)
	for name, test := range map[string]struct {
		kind  outgoing.PostKind
		cause error
		tries int
	}{
		"a comment, not found":      {outgoing.PostComment, holdfast.ErrNotFound, 11},
		"a reaction, not found":     {outgoing.PostReaction, holdfast.ErrNotFound, 2},
		"a comment, refused":        {outgoing.PostComment, locked, 3},
		"a status, refused":         {outgoing.PostStatus, holdfast.ErrForbidden, 11},
		"a check, nothing for that": {outgoing.PostCheck, errors.ErrUnsupported, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := &records{}, &watcher{}
			r.pull.State = holdfast.PullRequestOpen
			p := publisher(r, w, nil)
			post := outgoing.Post{Key: "k", Kind: test.kind, Repo: ref.Repo, PullRequest: ref}
			fail := func(cause error) {
				t.Helper()
				if err := p.postFailed(t.Context(), post, cause); err != nil {
					t.Fatal(err)
				}
				post = r.failed
			}
			for range 2 {
				for range 40 {
					fail(holdfast.ErrUnavailable)
				}
				for range test.tries - 1 {
					fail(test.cause)
				}
			}
			if w.gaveUp > 0 {
				t.Fatalf("given up before %d tries in a row", test.tries)
			}
			if fail(test.cause); w.gaveUp != 1 || !r.notBefore.IsZero() {
				t.Errorf("after %d tries in a row it is tried again at %v", test.tries, r.notBefore)
			}
		})
	}
}

// Where refusals and other failures take turns, no kind of them ends a post. It is tried
// as seldom as in an outage, and of a pull request that was closed it ends as in one.
func TestRefusedInTurn(t *testing.T) {
	t.Parallel()
	unavailable, hidden, forbidden := holdfast.ErrUnavailable, holdfast.ErrNotFound, holdfast.ErrForbidden
	for name, causes := range map[string][]error{
		"forbidden, out of reach":         {forbidden, unavailable},
		"not found, out of reach":         {hidden, unavailable},
		"not found, forbidden":            {hidden, forbidden},
		"forbidden, rejected, no network": {forbidden, holdfast.ErrRejected, errors.New("connection refused")},
	} {
		for _, state := range []holdfast.PullRequestState{holdfast.PullRequestOpen, holdfast.PullRequestClosed} {
			t.Run(name+", "+string(state), func(t *testing.T) {
				t.Parallel()
				r, w := &records{}, &watcher{}
				r.pull.State = state
				p, now, tries := publisher(r, w, nil), noon, 0
				p.outbox.opts.Settings.Now = func() time.Time { return now }
				post := outgoing.Post{Key: "k", Kind: outgoing.PostStatus, Repo: ref.Repo, PullRequest: ref}
				for ; w.gaveUp == 0 && now.Before(noon.Add(48*time.Hour)) && tries < 10_000; tries++ {
					if err := p.postFailed(t.Context(), post, causes[tries%len(causes)]); err != nil {
						t.Fatal(err)
					}
					post, now = r.failed, r.notBefore
				}
				closed := state == holdfast.PullRequestClosed
				if most := map[bool]int{true: 31, false: 700}[closed]; tries > most || closed != (w.gaveUp == 1) {
					t.Errorf("tried %d times in two days, want at most %d; given up: %d", tries, most, w.gaveUp)
				}
			})
		}
	}
}

// What is deferred again and again ends a day after its pull request was closed. What fails
// is tried again also then: the server may not have run for that day.
func TestWantedADayAgo(t *testing.T) {
	t.Parallel()
	limited := &holdfast.RateLimitError{RetryAt: noon.Add(time.Hour)}
	for name, test := range map[string]struct {
		state  holdfast.PullRequestState
		cause  error
		gaveUp bool
	}{
		"open, and deferred":   {holdfast.PullRequestOpen, limited, false},
		"closed, and deferred": {holdfast.PullRequestClosed, limited, true},
		"closed, and failed":   {holdfast.PullRequestClosed, holdfast.ErrUnavailable, false},
	} {
		r, w := &records{}, &watcher{}
		r.pull.State = test.state
		post := outgoing.Post{Key: "k", Kind: outgoing.PostStatus, Repo: ref.Repo, PullRequest: ref}
		post.WantedAt = noon.Add(-closedWait)
		err := publisher(r, w, nil).postFailed(t.Context(), post, test.cause)
		if err != nil || test.gaveUp != (w.gaveUp == 1) || test.gaveUp != r.notBefore.IsZero() {
			t.Errorf("%s: given up %d times, tried again at %v: %v", name, w.gaveUp, r.notBefore, err)
		}
	}
}

// What is deferred is not measured as an attempt: an alert on failures would never end where
// a permission is missing.
func TestDeferredIsNotMeasured(t *testing.T) {
	t.Parallel()
	limited := &holdfast.RateLimitError{RetryAt: noon.Add(time.Hour), Err: holdfast.ErrForbidden}
	for name, test := range map[string]struct {
		cause          error
		posted, failed int
	}{
		"made":     {posted: 1},
		"failed":   {cause: holdfast.ErrForbidden, posted: 1, failed: 1},
		"deferred": {cause: fmt.Errorf("set check: %w", limited)},
	} {
		r, w := &records{}, &watcher{}
		p := publisher(r, w, checker{refused: test.cause, calls: new(int)})
		post := outgoing.Post{Key: "check", Kind: outgoing.PostCheck, Repo: ref.Repo, PullRequest: ref}
		post.WantedAt = noon
		if err := p.post(t.Context(), post); err != nil || w.posted != test.posted || w.failed != test.failed {
			t.Errorf("%s: %d attempts, %d failed, want %d and %d: %v", name, w.posted, w.failed, test.posted, test.failed, err)
		}
	}
}

// A comment counts as shown by the clock of the code host, as merges do.
func TestPostedByTheHostsClock(t *testing.T) {
	t.Parallel()
	r := &records{}
	theirs := noon.Add(-3 * time.Second)
	p := publisher(r, &watcher{}, host{back: holdfast.Comment{ID: "1", Body: "as the host has it", UpdatedAt: theirs}})
	post := outgoing.Post{Key: "comment", Kind: outgoing.PostComment, Repo: ref.Repo, PullRequest: ref, Body: "as it was sent"}
	if err := p.post(t.Context(), post); err != nil || !r.posted.Equal(theirs) || r.echo != holdfast.DigestOf([]byte("as the host has it")) {
		t.Errorf("posted at %v as %s, %v, want %v", r.posted, r.echo, err, theirs)
	}
	post.Echo = r.echo
	p = publisher(r, &watcher{}, host{back: holdfast.Comment{ID: "1"}})
	if err := p.post(t.Context(), post); err != nil || r.echo != "" {
		t.Errorf("of what the host does not give back it is known as %s, %v", r.echo, err)
	}
}

// What somebody else has made of a comment of ours is noticed, also while it is written:
// people have read it. What was written here, and what is read late, is not an edit.
func TestIntact(t *testing.T) {
	t.Parallel()
	broken, hour := errors.New("connection refused"), time.Hour
	was := holdfast.Comment{ID: "1", Body: "the plans", UpdatedAt: noon}
	as := func(body string, after time.Duration) host {
		return host{now: holdfast.Comment{ID: "1", Body: body, UpdatedAt: noon.Add(after)}}
	}
	attempt := func(p *outgoing.Post) {
		p.Attempts, p.Wanted = []string{string(holdfast.DigestOf([]byte("the next plans")))}, 2
	}
	for name, test := range map[string]struct {
		host   host
		change func(*outgoing.Post)
		edited bool
		failed string
	}{
		"as we wrote it":               {host: host{now: was}},
		"with other ends of lines":     {host: as("the plans\r\n", 0)},
		"stamped late":                 {host: as("the plans", time.Second)},
		"edited at once":               {host: as("no changes", 0), edited: true},
		"edited, and put back":         {host: as("the plans", hour), edited: true},
		"deleted":                      {host: host{gone: holdfast.ErrNotFound}, edited: true},
		"hidden with its repository":   {host: host{gone: holdfast.ErrNotFound, hidden: true}, failed: "not found"},
		"out of reach":                 {host: host{gone: broken}, failed: "connection refused"},
		"read late":                    {host: as("the plans before", -hour), failed: "as it was before"},
		"older for good":               {host: as("the plans before", -hour), change: func(p *outgoing.Post) { p.PostedAt, p.WantedAt = noon.Add(-2*hour), noon.Add(-2*hour) }, edited: true},
		"edited while it is written":   {host: as("no changes", hour), change: attempt, edited: true},
		"put back while it is written": {host: as("the plans", hour), change: attempt, edited: true},
		"written, and not on record":   {host: as("the next plans", hour), change: attempt},
		"put back after attempts": {host: as("the plans", hour), change: func(p *outgoing.Post) {
			attempt(p)
			p.Attempts = append(p.Attempts, string(holdfast.DigestOf([]byte("the plans"))))
		}, edited: true},
		"given back otherwise":           {host: as("the next plans\r\n", hour), change: attempt},
		"given up, and edited":           {host: as("no changes", hour), change: func(p *outgoing.Post) { attempt(p); p.GivenUp = true }, edited: true},
		"from before echoes were kept":   {host: as("the plans", 0), change: func(p *outgoing.Post) { p.Echo = "" }},
		"edited before echoes were kept": {host: as("no changes", 0), change: func(p *outgoing.Post) { p.Echo = "" }, edited: true},
		"not there yet":                  {host: host{gone: broken}, change: func(p *outgoing.Post) { p.Posted, p.ExternalID = 0, "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			post := outgoing.Post{Key: "comment:" + ref.String(), Kind: outgoing.PostComment, Repo: ref.Repo, PullRequest: ref, Body: "the plans", ExternalID: "1"}
			post.Posted, post.Wanted, post.PostedAt, post.WantedAt, post.Echo = 1, 1, noon, noon, echoOf(was)
			if test.change != nil {
				test.change(&post)
			}
			pr := holdfast.PullRequest{PullRequestRef: ref, State: holdfast.PullRequestOpen}
			r := &records{posts: map[string]outgoing.Post{post.Key: post}, pull: holdfast.PullRequestRecord{PullRequest: pr}}
			p := publisher(r, &watcher{}, test.host)
			intact, err := p.Intact(t.Context(), pr, pr.State)
			if (err != nil) != (test.failed != "") || err != nil && !strings.Contains(err.Error(), test.failed) {
				t.Fatalf("it failed: %v", err)
			}
			if err == nil && intact == test.edited || test.edited != (r.edited != nil) {
				t.Errorf("intact: %t, edited: %+v", intact, r.edited)
			}
			// Who writes it finds the same before that.
			r.edited, post.Body, post.Wanted = nil, "the next plans", 2
			if err := p.post(t.Context(), post); err != nil || (r.failed.LastError != "") != (test.failed != "") || !strings.Contains(r.failed.LastError, test.failed) {
				t.Fatalf("it was written: %v, failed with %q", err, r.failed.LastError)
			}
			if test.edited != (r.edited != nil) && (post.Echo != "" || post.Posted != 1) {
				t.Errorf("written over: %+v", r.edited)
			}
		})
	}
}

// What was sent may be there until the host says that it was not done.
func TestAttempts(t *testing.T) {
	t.Parallel()
	limited := &holdfast.RateLimitError{RetryAt: noon.Add(time.Hour)}
	next := string(holdfast.DigestOf([]byte("the next plans")))
	for name, test := range map[string]struct {
		refused error
		now     string // what is there
		tried   bool
		puts    int
		left    []string
	}{
		"done":                 {now: "the plans", puts: 1, left: []string{"sha256:before", next}}, // that it is posted ends them
		"no answer":            {now: "the plans", refused: errors.New("connection reset"), puts: 1, left: []string{"sha256:before", next}},
		"limited":              {now: "the plans", refused: limited, puts: 1, left: []string{"sha256:before"}},
		"refused":              {now: "the plans", refused: holdfast.ErrForbidden, puts: 1, left: []string{"sha256:before"}},
		"done, without answer": {now: "the next plans", tried: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			puts := 0
			h := host{now: holdfast.Comment{ID: "1", Body: test.now, UpdatedAt: noon}, refused: test.refused, puts: &puts}
			r := &records{}
			p := publisher(r, &watcher{}, h)
			post := outgoing.Post{Key: "comment", Kind: outgoing.PostComment, Repo: ref.Repo, PullRequest: ref, Body: "the next plans", ExternalID: "1"}
			post.Posted, post.Wanted, post.PostedAt, post.Attempts = 1, 2, noon, []string{"sha256:before"}
			if test.tried {
				post.Tried, post.Attempts = true, []string{next}
			}
			if err := p.post(t.Context(), post); err != nil {
				t.Fatal(err)
			}
			if puts != test.puts || !slices.Equal(r.tried, test.left) || r.edited != nil {
				t.Errorf("%d writes, attempts %v, edited %v", puts, r.tried, r.edited)
			}
		})
	}
}

// A comment that is deleted between the look and the write is written as another one: what it
// showed was not there meanwhile.
func TestDeletedWhileItIsWritten(t *testing.T) {
	t.Parallel()
	for id, deleted := range map[string]bool{"1": false, "2": true} {
		h := host{now: holdfast.Comment{ID: "1", Body: "the plans", UpdatedAt: noon}}
		h.back = holdfast.Comment{ID: id, Body: "the next plans", UpdatedAt: noon}
		r := &records{}
		p := publisher(r, &watcher{}, h)
		post := outgoing.Post{Key: "comment", Kind: outgoing.PostComment, Repo: ref.Repo, PullRequest: ref, Body: "the next plans", ExternalID: "1"}
		post.Posted, post.Wanted, post.PostedAt = 1, 2, noon
		if err := p.post(t.Context(), post); err != nil {
			t.Fatal(err)
		}
		if got := r.edited != nil; got != deleted || r.posted.IsZero() {
			t.Errorf("written as %s: noticed %t, posted at %v; want %t", id, got, r.posted, deleted)
		}
	}
}

// What an edited comment showed counts as shown from when it is there again. After the merge
// that is so only of what it showed since, if it was looked at in between.
func TestEditedAtTheMerge(t *testing.T) {
	t.Parallel()
	before, after := noon.Add(-time.Minute), noon.Add(time.Minute)
	const open, merged = holdfast.PullRequestOpen, holdfast.PullRequestMerged
	for name, test := range map[string]struct {
		was, state  holdfast.PullRequestState
		found       holdfast.Comment
		seen, since time.Time
	}{
		"open":                      {was: open, state: open, found: holdfast.Comment{ID: "1", UpdatedAt: before}},
		"deleted while open":        {was: open, state: open},
		"merged meanwhile":          {was: open, state: merged, found: holdfast.Comment{ID: "1", UpdatedAt: before}, since: noon.Add(time.Second)},
		"after, and perhaps before": {was: open, state: merged, found: holdfast.Comment{ID: "1", UpdatedAt: after}, since: noon.Add(time.Second)},
		"deleted before or after":   {was: open, state: merged, since: noon.Add(time.Second)},
		"after the merge":           {was: merged, state: merged, found: holdfast.Comment{ID: "1", UpdatedAt: after}, seen: noon},
		"deleted after the merge":   {was: merged, state: merged, seen: noon},
		"before it, and not known":  {was: merged, state: merged, found: holdfast.Comment{ID: "1", UpdatedAt: before}, since: noon.Add(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &records{}
			p := publisher(r, &watcher{}, host{})
			pr := holdfast.PullRequest{PullRequestRef: ref, State: test.state, MergedAt: noon}
			if edited, err := p.edited(t.Context(), outgoing.Post{ExternalID: "1"}, test.found, pr, test.was); err != nil || !edited {
				t.Fatalf("%t, %v", edited, err)
			}
			if !r.seen.Equal(test.seen) || !r.since.Equal(test.since) || r.edited.ExternalID != test.found.ID {
				t.Errorf("seen %v, since %v, under %q", r.seen, r.since, r.edited.ExternalID)
			}
		})
	}
}

// All commands of a comment are answered in one comment of ours, each once.
func TestReply(t *testing.T) {
	t.Parallel()
	r := &records{}
	p := publisher(r, &watcher{}, nil)
	one := holdfast.Command{PullRequest: ref, CommentID: "5", Verb: holdfast.VerbApply, Status: holdfast.CommandRefused, CommandResult: holdfast.CommandResult{Reply: "not merged"}, Text: "/holdfast apply"}
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
	status := func(head holdfast.Revision, state holdfast.StatusState, about string) outgoing.Post {
		return outgoing.Post{
			Key: statusKey(ref.Repo, head, about), Kind: outgoing.PostStatus, Repo: ref.Repo,
			Status: holdfast.CommitStatus{Revision: head, Context: about, State: state},
		}
	}
	unseen := status("h0", holdfast.StatusSuccess, holdfast.ContextPlan)
	unseen.After, unseen.Wanted = "comment", 1
	for name, test := range map[string]struct {
		post  outgoing.Post
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
			r := &records{posts: map[string]outgoing.Post{test.post.Key: test.post}}
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
