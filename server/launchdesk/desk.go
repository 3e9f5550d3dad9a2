package launchdesk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// Launches are the runs of runners that launch what executes them; dispatch.Launches is one.
type Launches interface {
	Claims
	Attempts
	Ends
}

// Claims hand out runs.
type Claims interface {
	// ClaimLaunch claims a run of a runner: ErrNotFound if there is none.
	ClaimLaunch(ctx context.Context, runner, isolation string) (run holdfast.Run, ticket string, err error)
	// Ticket returns the ticket of an attempt: the same each time.
	Ticket(ctx context.Context, runner string, ref holdfast.AttemptRef) (string, error)
	// Freed returns a channel that is closed when next a run was queued or has ended.
	Freed() <-chan struct{}
}

// Attempts are those that run.
type Attempts interface {
	LaunchedAttempts(ctx context.Context, runner string) ([]protocol.Ticket, error)
	Heartbeat(ctx context.Context, ref holdfast.AttemptRef, beat protocol.Heartbeat) (protocol.HeartbeatReply, error)
	NoteLaunch(ctx context.Context, ref holdfast.AttemptRef, reason holdfast.Reason, detail string) error
}

// Ends are how attempts end that send no result.
type Ends interface {
	// EndUnstarted is an ErrLocked if somebody has shown the attempt's ticket.
	EndUnstarted(ctx context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, detail string, final bool) error
	EndDead(ctx context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, detail string) error
}

// Runs are the records of runs; *datastore.Store is one.
type Runs interface {
	Run(ctx context.Context, id string) (holdfast.Run, error)
}

// Options are what a Desk needs. All are required.
type Options struct {
	Launches Launches
	Runs     Runs
	// Settings are what the configuration says of a runner's Jobs; an error says why there
	// can be none.
	Settings func(ctx context.Context, runner runnerspec.Runner) (protocol.LaunchSettings, error)
	// Limits are those of the runs of a cluster.
	Limits func(c holdfast.Cluster) holdfast.RunLimits
	Now    func() time.Time
}

// Desk answers launchers. It is safe for concurrent use.
type Desk struct {
	opts  Options
	calls map[string]call
}

// call answers one request about a runner.
type call func(ctx context.Context, runner runnerspec.Runner, req protocol.LaunchRequest) (any, error)

const (
	maxWait   = 30 * time.Second
	maxDetail = 4 << 10 // bytes of what a launcher says of an attempt
)

// New returns a Desk.
func New(opts Options) *Desk {
	d := &Desk{opts: opts}
	d.calls = map[string]call{
		"settings": d.settings, "news": d.news, "claims": d.claim, "attempts": d.attempts,
		"tickets": d.ticket, "runs": d.run, "notes": d.note, "ends": d.end,
	}
	return d
}

// Answer answers a request about a runner, whose launcher was recognised; nil: there is
// nothing to say. ErrNotFound if there is no such request, or nothing of that name.
func (d *Desk) Answer(ctx context.Context, runner runnerspec.Runner, name string, req protocol.LaunchRequest) (any, error) {
	answer, ok := d.calls[name]
	if !ok {
		return nil, holdfast.ErrorOf(holdfast.ErrNotFound, "no such path")
	}
	return answer(ctx, runner, req)
}

func (d *Desk) settings(ctx context.Context, runner runnerspec.Runner, _ protocol.LaunchRequest) (any, error) {
	settings, err := d.opts.Settings(ctx, runner)
	if err != nil {
		return nil, holdfast.ErrorOf(holdfast.ErrUnavailable, "runner %q cannot be used: %v", runner.Name, err)
	}
	settings.Runner = runner
	settings.Runner.Keys = nil // the launcher does not need them, and they change without changing Jobs
	for i := range settings.Former {
		settings.Former[i].Keys = nil
	}
	return settings, nil
}

// news waits for something that may interest the launcher of runs.
func (d *Desk) news(ctx context.Context, _ runnerspec.Runner, req protocol.LaunchRequest) (any, error) {
	select {
	case <-d.opts.Launches.Freed():
	case <-time.After(min(max(req.Wait, 0), maxWait)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return nil, nil
}

func (d *Desk) claim(ctx context.Context, runner runnerspec.Runner, _ protocol.LaunchRequest) (any, error) {
	settings, err := d.opts.Settings(ctx, runner)
	if err != nil {
		return nil, holdfast.ErrorOf(holdfast.ErrUnavailable, "runner %q cannot be used: %v", runner.Name, err)
	}
	run, ticket, err := d.opts.Launches.ClaimLaunch(ctx, runner.Name, settings.Isolation)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("claim a run of runner %q: %w", runner.Name, err)
	}
	shown := d.shown(run)
	return protocol.LaunchTicket{Run: &shown, Ticket: ticket}, nil
}

// attempts are those of the runner. For one whose agent has not called, this is the sign
// of life.
func (d *Desk) attempts(ctx context.Context, runner runnerspec.Runner, _ protocol.LaunchRequest) (any, error) {
	list, err := d.opts.Launches.LaunchedAttempts(ctx, runner.Name)
	if err != nil {
		return nil, err
	}
	now := d.opts.Now()
	answer := protocol.LaunchAttempts{Attempts: []protocol.LaunchAttempt{}}
	for _, t := range list {
		a := protocol.LaunchAttempt{AttemptRef: t.AttemptRef, Agent: t.Agent, Exchanged: !t.ExchangedAt.IsZero(), Host: t.Host}
		if !t.CreatedAt.IsZero() {
			a.Age = max(now.Sub(t.CreatedAt), 1)
		}
		if !a.Exchanged {
			if _, err := d.own(ctx, runner, t.AttemptRef); errors.Is(err, holdfast.ErrFenced) || errors.Is(err, holdfast.ErrNotFound) {
				continue
			}
			reply, err := d.opts.Launches.Heartbeat(ctx, t.AttemptRef, protocol.Heartbeat{Fence: t.Fence})
			if errors.Is(err, holdfast.ErrFenced) || errors.Is(err, holdfast.ErrDamaged) {
				continue // it has ended, or is unknown: that does not keep the others from continuing
			} else if err != nil {
				return nil, fmt.Errorf("keep run %s: %w", t.Run, err)
			}
			a.Cancel = reply.Cancel
		}
		answer.Attempts = append(answer.Attempts, a)
	}
	return answer, nil
}

func (d *Desk) ticket(ctx context.Context, runner runnerspec.Runner, req protocol.LaunchRequest) (any, error) {
	if _, err := d.own(ctx, runner, req.AttemptRef); err != nil {
		return nil, err
	}
	ticket, err := d.opts.Launches.Ticket(ctx, runner.Name, req.AttemptRef)
	if err != nil {
		return nil, err
	}
	return protocol.LaunchTicket{Ticket: ticket}, nil
}

func (d *Desk) run(ctx context.Context, runner runnerspec.Runner, req protocol.LaunchRequest) (any, error) {
	run, err := d.ofRunner(ctx, runner, req.Run)
	if err != nil {
		return nil, err
	}
	return d.shown(run), nil
}

func (d *Desk) note(ctx context.Context, runner runnerspec.Runner, req protocol.LaunchRequest) (any, error) {
	if err := says(req, true); err != nil {
		return nil, err
	}
	if _, err := d.own(ctx, runner, req.AttemptRef); err != nil {
		return nil, err
	}
	return nil, d.opts.Launches.NoteLaunch(ctx, req.AttemptRef, req.Reason, req.Detail)
}

func (d *Desk) end(ctx context.Context, runner runnerspec.Runner, req protocol.LaunchRequest) (any, error) {
	if err := says(req, req.Dead); err != nil {
		return nil, err
	}
	if _, err := d.own(ctx, runner, req.AttemptRef); err != nil {
		return nil, err
	}
	if req.Dead {
		return nil, d.opts.Launches.EndDead(ctx, req.AttemptRef, req.Reason, req.Detail)
	}
	return nil, d.opts.Launches.EndUnstarted(ctx, req.AttemptRef, req.Reason, req.Detail, req.Final)
}

// says limits what a launcher says of an attempt to the known words for it.
func says(req protocol.LaunchRequest, orNothing bool) error {
	known := req.Reason.Reportable() || req.Reason == holdfast.ReasonCanceled
	if !known || req.Reason == "" && !orNothing {
		return holdfast.ErrorOf(holdfast.ErrForbidden, "%.60q is not a reason for which an attempt does not start, or ends", string(req.Reason))
	}
	if len(req.Detail) > maxDetail {
		return holdfast.ErrorOf(holdfast.ErrForbidden, "the detail is longer than %d bytes", maxDetail)
	}
	return nil
}

// ofRunner is a run that the runner has; ErrNotFound if there is none of that id.
func (d *Desk) ofRunner(ctx context.Context, runner runnerspec.Runner, id string) (holdfast.Run, error) {
	run, err := d.opts.Runs.Run(ctx, id)
	if err == nil && run.RunnerName() != runner.Name {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("run %.100q of runner %q: %w", id, runner.Name, err)
	}
	return run, nil
}

// own is the run of an attempt that was launched for the runner; ErrFenced if the attempt is
// over, or an agent of the runner has claimed it.
func (d *Desk) own(ctx context.Context, runner runnerspec.Runner, ref holdfast.AttemptRef) (holdfast.Run, error) {
	run, err := d.ofRunner(ctx, runner, ref.Run)
	if err == nil && (run.Status != holdfast.RunRunning || run.Ref() != ref || run.Agent != protocol.LaunchAgent(runner.Name, ref)) {
		err = fmt.Errorf("attempt %d of run %s: %w", ref.Attempt, ref.Run, holdfast.ErrFenced)
	}
	return run, err
}

// shown is what a launcher has to know of a run.
func (d *Desk) shown(run holdfast.Run) protocol.LaunchRun {
	c := run.Document
	return protocol.LaunchRun{
		AttemptRef: run.Ref(), Runner: run.RunnerName(), Kind: run.Kind, Status: run.Status, Cancel: run.Cancel, Reason: run.Reason, Detail: run.Detail,
		Cluster: cmp.Or(c.Name, run.Cluster), Project: c.Project, Environment: c.Environment, Ask: c.Runner, Limits: d.opts.Limits(c),
	}
}
