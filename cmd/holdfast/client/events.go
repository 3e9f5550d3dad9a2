package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// The types of events that are not changes of an object.
const (
	EventReady = "ready" // the stream has begun; its ID is where
	EventReset = "reset" // too much was deleted since: read everything again, then continue
)

// Event is one of the events that a server streams.
type Event struct {
	ID   int64  // what to resume after
	Type string // EventReady, EventReset, or the kind of the object
	v1.Event
}

// EventsOptions say which events are wanted.
type EventsOptions struct {
	After   *int64                // the ID of the last event that was seen; nil: only what changes from now on
	Kinds   []holdfast.ChangeKind // empty: all
	Silence time.Duration         // after which a stream is taken for dead; zero means 45 s: the server writes every 15 s
}

// errSilent is why a stream is given up in which nothing has come.
var errSilent = errors.New("nothing arrives on the event stream")

// Events calls each for what changes, one event after the other, until ctx is done, the
// server refuses, or each returns an error: that is returned. A stream that breaks off is
// resumed after the last event that each has taken, for as long as it takes; only the
// first connection has to succeed at once.
func (c *Client) Events(ctx context.Context, opts EventsOptions, each func(Event) error) error {
	follower := &follower{client: c, opts: opts, each: each}
	if opts.After != nil {
		follower.last = strconv.FormatInt(*opts.After, 10)
	}
	if follower.opts.Silence <= 0 {
		follower.opts.Silence = 45 * time.Second
	}
	const shortest, longest = 200 * time.Millisecond, 30 * time.Second
	pause := shortest
	for {
		before := follower.last
		err := follower.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !follower.begun || !errors.Is(err, holdfast.ErrUnavailable):
			return err
		case follower.last != before:
			pause = shortest
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause/2 + rand.N(pause)): // clients of one server do not come back together
		}
		pause = min(2*pause, longest)
	}
}

// follower is one call of Events.
type follower struct {
	client *Client
	opts   EventsOptions
	each   func(Event) error
	last   string // the ID of the last event that was taken; empty: none
	begun  bool   // a stream was opened
}

// follow reads one stream to its end. A stream that breaks off is an UnreachableError.
func (f *follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(f.opts.Silence, func() { cancel(errSilent) })
	defer silence.Stop()

	query, header := url.Values{}, http.Header{"Accept": {"text/event-stream"}}
	for _, kind := range f.opts.Kinds {
		query.Add("kind", string(kind))
	}
	if f.last != "" {
		header.Set("Last-Event-ID", f.last)
	}
	res, err := f.client.sendWith(ctx, http.MethodGet, "events", query, nil, header)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSilent) {
			err = &UnreachableError{errSilent}
		}
		return err
	}
	defer res.Body.Close()
	first := !f.begun
	f.begun = true
	lines := bufio.NewReader(res.Body)
	for {
		event, err := readEvent(lines, func() { silence.Reset(f.opts.Silence) })
		if err != nil {
			return &UnreachableError{fmt.Errorf("follow events of %s: %w", f.client.base.Host, err)}
		}
		if event.Type == EventReady && !first {
			continue
		}
		if err := f.each(event); err != nil {
			return err
		}
		f.last = strconv.FormatInt(event.ID, 10)
	}
}

// maxEvent bounds a line of a stream.
const maxEvent = 1 << 20

// readEvent reads until an event is complete; alive is called for every line.
func readEvent(lines *bufio.Reader, alive func()) (event Event, err error) {
	for {
		line, err := readLine(lines)
		if err != nil {
			return event, err
		}
		alive()
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimPrefix(value, " "); {
		case line == "" && event.Type != "":
			return event, nil
		case name == "id":
			event.ID, err = strconv.ParseInt(value, 10, 64)
		case name == "event":
			event.Type = value
		case name == "data":
			err = json.Unmarshal([]byte(value), &event.Event)
		default: // a comment, or what a newer server adds
		}
		if err != nil {
			return event, fmt.Errorf("%.80q: %w", line, err)
		}
	}
}

func readLine(lines *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		part, more, err := lines.ReadLine()
		if err != nil {
			return "", err
		}
		if b.Write(part); b.Len() > maxEvent {
			return "", fmt.Errorf("a line is longer than %d bytes: %w", maxEvent, io.ErrShortBuffer)
		}
		if !more {
			return b.String(), nil
		}
	}
}
