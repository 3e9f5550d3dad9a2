package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gin-contrib/sse"
	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

const (
	// feedPoll is how soon a change is seen. It is looked for, and not signalled,
	// since another replica may have made it.
	feedPoll = 200 * time.Millisecond
	// feedPulse keeps proxies from closing a stream in which nothing happens.
	feedPulse = 15 * time.Second
	// maxStreams bounds how many follow at once; a browser's tab is one.
	maxStreams = 512
	// maxStreamsOfOne bounds those of one token, so that nobody takes all.
	maxStreamsOfOne = 64
	// feedBatch is how many changes are read at once.
	feedBatch = 500
)

// Events that are not changes of an object.
const (
	eventReady = "ready" // the stream has begun; its ID is where
	eventReset = "reset" // some changes are no longer known: read everything again
)

// eventAPI follows what changes.
type eventAPI struct {
	*apiServer
	feed feedWatch
}

// stream sends server-sent events for what changes: the event is the kind of
// the object, the data a v1.Event as JSON, the ID its number. It begins after
// the header Last-Event-ID or the parameter after; without them, now. The parameter
// kind, which may be repeated, leaves the other kinds out.
func (s *eventAPI) stream(c *gin.Context) {
	kinds, err := wordsOf(c, "kind", changeKinds)
	if err != nil {
		s.fail(c, err)
		return
	}
	ctx, done := s.whileAllowed(c)
	defer done()
	after, err := s.beginning(ctx, c)
	if err != nil {
		s.fail(c, err)
		return
	}
	moved, leave, ok := s.feed.join(caller(c).Name, s.opts.Records.LastChange)
	if !ok {
		s.fail(c, holdfast.ErrorOf(holdfast.ErrUnavailable, "%d clients follow events already, or %d with this token", maxStreams, maxStreamsOfOne))
		return
	}
	defer leave()

	c.Header("Content-Type", sse.ContentType)
	c.Header("Cache-Control", "no-store")
	c.Header("X-Accel-Buffering", "no") // nginx would keep events back
	c.Status(http.StatusOK)
	if len(kinds) == 0 {
		kinds = changeKinds
	}
	stream := &eventStream{out: c.Writer, feed: s.records(c), kinds: kinds, after: after}
	if err := stream.run(ctx, moved); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "stream of events was cut off", "err", err)
	}
}

var changeKinds = []holdfast.ChangeKind{holdfast.ChangeCluster, holdfast.ChangeRun, holdfast.ChangePullRequest}

// beginning returns the number of the last change that the client has seen.
func (s *eventAPI) beginning(ctx context.Context, c *gin.Context) (int64, error) {
	text := c.GetHeader("Last-Event-ID")
	if text == "" {
		text = c.Query("after")
	}
	if text == "" {
		return s.opts.Records.LastChange(ctx)
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return 0, badRequest("want the ID of an event, not %q", text)
	}
	return after, nil
}

// eventStream is what one client gets.
type eventStream struct {
	out   gin.ResponseWriter
	feed  Feed
	kinds []holdfast.ChangeKind
	after int64
}

// run sends until ctx is done or the client has gone. moved returns a channel that
// is closed when there may be more.
func (e *eventStream) run(ctx context.Context, moved func() <-chan struct{}) error {
	if err := e.send(eventReady, e.after, struct{}{}); err != nil {
		return err
	}
	pulse := time.NewTicker(feedPulse)
	defer pulse.Stop()
	for {
		more := moved() // before reading: what comes after must not be missed
		if err := e.catchUp(ctx); err != nil {
			return err
		}
		e.out.Flush()
		select {
		case <-ctx.Done():
			return nil
		case <-more:
		case <-pulse.C:
			if _, err := io.WriteString(e.out, ": pulse\n\n"); err != nil {
				return err
			}
		}
	}
}

// catchUp sends what has changed since.
func (e *eventStream) catchUp(ctx context.Context) error {
	for {
		changes, err := e.feed.Changes(ctx, e.after, feedBatch)
		if errors.Is(err, holdfast.ErrExpired) {
			if e.after, err = e.feed.LastChange(ctx); err != nil {
				return err
			}
			return e.send(eventReset, e.after, struct{}{})
		}
		if err != nil {
			return err
		}
		for _, change := range changes {
			e.after = change.Seq
			if !slices.Contains(e.kinds, change.Kind) {
				continue
			}
			if err := e.send(string(change.Kind), change.Seq, v1.EventOf(change)); err != nil {
				return err
			}
		}
		if len(changes) < feedBatch {
			return nil
		}
	}
}

func (e *eventStream) send(event string, id int64, data any) error {
	return sse.Encode(e.out, sse.Event{Event: event, Id: strconv.FormatInt(id, 10), Data: data})
}

// feedWatch looks for changes on behalf of all streams: they ask the database only
// when there is one.
type feedWatch struct {
	mu      sync.Mutex
	streams int
	of      map[string]int // streams by token
	moved   chan struct{}  // closed when there is a newer change
	stop    context.CancelFunc
}

// join begins to look if nobody has yet. It reports false if too many follow, in all
// or with one token.
func (f *feedWatch) join(token string, last func(context.Context) (int64, error)) (moved func() <-chan struct{}, leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams >= maxStreams || f.of[token] >= maxStreamsOfOne {
		return nil, nil, false
	}
	if f.of == nil {
		f.of = map[string]int{}
	}
	f.of[token]++
	if f.streams++; f.streams == 1 {
		ctx, stop := context.WithCancel(context.Background())
		f.moved, f.stop = make(chan struct{}), stop
		go f.look(ctx, last)
	}
	return f.next, func() { f.leave(token) }, true
}

func (f *feedWatch) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.moved
}

func (f *feedWatch) leave(token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[token]--; f.of[token] == 0 {
		delete(f.of, token)
	}
	if f.streams--; f.streams == 0 {
		f.stop()
	}
}

func (f *feedWatch) look(ctx context.Context, last func(context.Context) (int64, error)) {
	tick := time.NewTicker(feedPoll)
	defer tick.Stop()
	seen := int64(-1)
	for {
		// A failure is not the streams' end: what they read themselves tells them.
		if seq, err := last(ctx); err != nil || seq != seen {
			f.mu.Lock()
			close(f.moved)
			f.moved = make(chan struct{})
			f.mu.Unlock()
			seen = seq
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
