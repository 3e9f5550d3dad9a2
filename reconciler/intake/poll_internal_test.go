package intake

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
)

// noting fails to read what is remembered of a repository until it has been asked so often.
type noting struct {
	Store
	fails int
	asked int
	done  context.CancelFunc
}

func (l *noting) RepositoryState(context.Context, string) (holdfast.RepositoryState, error) {
	if l.asked++; l.asked <= l.fails {
		return holdfast.RepositoryState{}, errors.New("disk is full")
	}
	if l.asked > l.fails+3 {
		l.done()
	}
	return holdfast.RepositoryState{}, nil
}

func (l *noting) SaveRepositoryState(context.Context, holdfast.RepositoryState) error { return nil }

// silentForge has nothing to tell.
type silentForge struct{ Forge }

func (silentForge) PullRequests(context.Context, string, time.Time) ([]holdfast.PullRequest, error) {
	return nil, nil
}

func (silentForge) Comments(context.Context, string, time.Time) (holdfast.CommentList, error) {
	return holdfast.CommentList{}, nil
}

// leadsAll leads every repository.
type leadsAll struct{}

func (leadsAll) Leads(string) bool                              { return true }
func (leadsAll) Took(string)                                    {}
func (leadsAll) Taken(string) bool                              { return false }
func (leadsAll) Fetched(context.Context, string, holdfast.Refs) {}

// What keeps a repository from being polled is not logged with each poll, but once, and once
// when it is over.
func TestALastingFaultOfPollsIsLoggedOnce(t *testing.T) {
	t.Parallel()
	ctx, done := context.WithCancel(t.Context())
	defer done()
	var logged bytes.Buffer
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	p := &poller{shared: shared{
		saving: new(sync.Mutex), Rooms: Rooms{Agenda: agenda.New(agenda.Options{})}, opts: Options{
			Store: &noting{fails: 50, done: done}, Logger: slog.New(slog.NewTextHandler(&logged, nil)), Leading: leadsAll{},
			Sources: Sources{Forges: map[string]Forge{"fleet": silentForge{}}}, Now: func() time.Time { return at },
		},
	}}
	p.pollRepository(ctx, Repository{Name: "fleet", Local: true, Poll: time.Microsecond})
	for text, want := range map[string]int{"repository was not polled": 1, "disk is full": 1, "repository is polled again": 1} {
		if n := strings.Count(logged.String(), text); n != want {
			t.Errorf("%q is logged %d times, want %d", text, n, want)
		}
	}
}
