// Runs that a launcher elsewhere launches: what it asks of its server.

package uplink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

const (
	// newsWait is how long the server may keep a request for news waiting.
	newsWait = 25 * time.Second
	// newsPause is the shortest time between two of them.
	newsPause = 500 * time.Millisecond
	// launchTimeout bounds the other requests: a look is made of several.
	launchTimeout = 30 * time.Second
)

// Launches are the runs of one runner, by its server: what a launch.Launcher needs besides
// Jobs. It is safe for concurrent use. It tries each request once: the next look of the
// launcher asks again, and what was done before is not done twice.
type Launches struct {
	client *Client

	mu    sync.Mutex
	freed chan struct{}
	beats map[holdfast.AttemptRef]protocol.HeartbeatReply // by the server's last list of attempts
}

// NewLaunches returns the runs of the runner that the client's credential is of.
func NewLaunches(client *Client) *Launches {
	return &Launches{client: client, freed: make(chan struct{}), beats: map[holdfast.AttemptRef]protocol.HeartbeatReply{}}
}

func (l *Launches) ask(ctx context.Context, call string, req protocol.LaunchRequest, out any) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, launchTimeout+req.Wait)
	defer cancel()
	req.Protocol = protocol.Version
	status, _, err = l.client.ask(ctx, "/agent/v1/launches/"+call, req, out)
	return status, err
}

// Settings are what the server's configuration and the runner's document say of Jobs.
func (l *Launches) Settings(ctx context.Context) (settings protocol.LaunchSettings, err error) {
	_, err = l.ask(ctx, "settings", protocol.LaunchRequest{}, &settings)
	if errors.Is(err, holdfast.ErrNotFound) {
		err = fmt.Errorf("%w: is the server older than this agent? upgrade it first", err)
	}
	return settings, err
}

// Listen wakes those who wait for Freed whenever the server has news, until ctx is done.
func (l *Launches) Listen(ctx context.Context) error {
	for ctx.Err() == nil {
		_, err := l.ask(ctx, "news", protocol.LaunchRequest{Wait: newsWait}, nil)
		pause := newsPause
		if err != nil {
			pause = 5 * time.Second // the looks continue, and say what is wrong
		}
		l.mu.Lock()
		close(l.freed)
		l.freed = make(chan struct{})
		l.mu.Unlock()
		Sleep(ctx, pause)
	}
	return nil
}

// Freed returns a channel that is closed when next the server has news.
func (l *Launches) Freed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.freed
}

// ClaimLaunch claims a run of the runner: ErrNotFound if there is none. If the answer gets
// lost the run is among the attempts.
func (l *Launches) ClaimLaunch(ctx context.Context, _, _ string) (holdfast.Run, string, error) {
	var claimed protocol.LaunchTicket
	_, err := l.ask(ctx, "claims", protocol.LaunchRequest{}, &claimed)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return holdfast.Run{}, "", fmt.Errorf("%w: %v", holdfast.ErrUnavailable, err) //nolint:errorlint // a path that is not there is not an empty queue
	case err != nil:
		return holdfast.Run{}, "", err
	case claimed.Run == nil:
		return holdfast.Run{}, "", holdfast.ErrNotFound
	}
	return runOf(*claimed.Run), claimed.Ticket, nil
}

// Ticket returns the ticket of an attempt.
func (l *Launches) Ticket(ctx context.Context, _ string, ref holdfast.AttemptRef) (string, error) {
	var answer protocol.LaunchTicket
	_, err := l.ask(ctx, "tickets", protocol.LaunchRequest{AttemptRef: ref}, &answer)
	if err == nil && answer.Ticket == "" {
		err = fmt.Errorf("ticket of run %s: %w", ref.Run, holdfast.ErrUnavailable)
	}
	return answer.Ticket, err
}

// Present says that a launcher is there.
func (l *Launches) Present(ctx context.Context, req protocol.ClaimRequest) error {
	req.Protocol = protocol.Version
	return l.client.Present(ctx, req)
}

// LaunchedAttempts returns the running attempts of the runner. The request is the sign of life
// of those whose agent has not called.
func (l *Launches) LaunchedAttempts(ctx context.Context, runner string) ([]protocol.Ticket, error) {
	var answer protocol.LaunchAttempts
	if _, err := l.ask(ctx, "attempts", protocol.LaunchRequest{}, &answer); err != nil {
		return nil, err
	}
	now := time.Now()
	list := make([]protocol.Ticket, len(answer.Attempts))
	beats := make(map[holdfast.AttemptRef]protocol.HeartbeatReply, len(answer.Attempts))
	for i, a := range answer.Attempts {
		list[i] = protocol.Ticket{AttemptRef: a.AttemptRef, Runner: runner, Agent: a.Agent, Host: a.Host}
		if a.Age > 0 {
			list[i].CreatedAt = now.Add(-a.Age) // clocks are not compared
		}
		if a.Exchanged {
			list[i].ExchangedAt = now
		}
		beats[a.AttemptRef] = protocol.HeartbeatReply{Cancel: a.Cancel}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beats = beats
	return list, nil
}

// Heartbeat returns what the server has said of an attempt in its last list: that was asked
// for a moment ago, for all attempts at once.
func (l *Launches) Heartbeat(_ context.Context, ref holdfast.AttemptRef, _ protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	reply, ok := l.beats[ref]
	if !ok {
		return reply, fmt.Errorf("attempt %d of run %s: %w", ref.Attempt, ref.Run, holdfast.ErrFenced)
	}
	return reply, nil
}

// NoteLaunch says on a run what its start waits for.
func (l *Launches) NoteLaunch(ctx context.Context, ref holdfast.AttemptRef, reason holdfast.Reason, detail string) error {
	_, err := l.ask(ctx, "notes", protocol.LaunchRequest{AttemptRef: ref, Reason: reason, Detail: short(detail)}, nil)
	return err
}

// EndUnstarted ends an attempt whose ticket nobody has shown: ErrLocked if somebody has.
func (l *Launches) EndUnstarted(ctx context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, detail string, final bool) error {
	_, err := l.ask(ctx, "ends", protocol.LaunchRequest{AttemptRef: ref, Reason: cause, Detail: short(detail), Final: final}, nil)
	return err
}

// EndDead ends one whose processes are proven to be dead.
func (l *Launches) EndDead(ctx context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, detail string) error {
	_, err := l.ask(ctx, "ends", protocol.LaunchRequest{AttemptRef: ref, Reason: cause, Detail: short(detail), Dead: true}, nil)
	return err
}

// RunOf returns what a launcher has to know of a run of the runner.
func (l *Launches) RunOf(ctx context.Context, id string) (holdfast.Run, error) {
	var run protocol.LaunchRun
	_, err := l.ask(ctx, "runs", protocol.LaunchRequest{AttemptRef: holdfast.AttemptRef{Run: id}}, &run)
	if err == nil && run.Run != id {
		err = fmt.Errorf("run %s: %w", id, holdfast.ErrUnavailable)
	}
	return runOf(run), err
}

// short cuts what is said of an attempt: a server takes 4 KiB of it.
func short(detail string) string { return detail[:min(len(detail), 4<<10)] }

// runOf is a run with what a launcher has to know of it.
func runOf(r protocol.LaunchRun) holdfast.Run {
	run := holdfast.Run{ID: r.Run, Kind: r.Kind, Status: r.Status, Cluster: r.Cluster, Runner: r.Runner}
	run.Attempt, run.Fence, run.Cancel, run.Reason, run.Detail = r.Attempt, r.Fence, r.Cancel, r.Reason, r.Detail
	run.Document = holdfast.Cluster{Name: r.Cluster, Project: r.Project, Environment: r.Environment, Runner: r.Ask, Limits: r.Limits}
	return run
}
