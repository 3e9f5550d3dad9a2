package dispatch

// Attempts that a runner launches: nothing asks for them, so that they are claimed first,
// and what was started for one then exchanges its ticket for the assignment.

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Launches is the Dispatcher for those who launch attempts, with what was launched.
type Launches struct{ *Dispatcher }

// ClaimLaunch claims a run for a runner that launches what executes it, as Claim does for an
// agent, and does not wait: ErrNotFound if there is none. It returns the run and the ticket
// of its attempt.
func (d Launches) ClaimLaunch(ctx context.Context, runner, isolation string) (holdfast.Run, string, error) {
	req := protocol.ClaimRequest{Runner: runner, Isolation: isolation, Kinds: holdfast.AgentKinds()}
	place, leave := handout(d).place(req)
	defer leave()
	run, err := handout(d).claimRun(ctx, place, req, 0)
	if err != nil {
		return run, "", err
	}
	ctx = context.WithoutCancel(ctx)
	d.renewals.confirmed(run.ID)
	d.signs.heard(run.Ref(), "", d.opts.Now())
	handout(d).claimed(ctx, run)
	ticket, err := d.Ticket(ctx, runner, run.Ref())
	return run, ticket, err
}

// Ticket returns the ticket of an attempt, and records that there is one. It is the same
// each time, at all replicas.
func (d Launches) Ticket(ctx context.Context, runner string, ref holdfast.AttemptRef) (string, error) {
	mac := hmac.New(sha256.New, d.opts.TokenKey)
	fmt.Fprintf(mac, "ticket %s/%d/%d/%s", ref.Run, ref.Attempt, ref.Fence, runner)
	ticket := protocol.FormatRunToken(ref, hex.EncodeToString(mac.Sum(nil)))
	return ticket, d.opts.Store.PutTicket(ctx, ref, runner, ticket, d.opts.Now())
}

// Exchange gives the assignment of an attempt to the process that shows its ticket: it is
// good for one process. ErrUnauthorized if it is not a ticket, ErrFenced if the attempt is
// over, ErrConflict if another process has shown it before, an *AgentIsolationError or
// ErrForbidden if this one isolates engines too little for it.
func (d Launches) Exchange(ctx context.Context, ticket string, req protocol.TicketRequest) (protocol.Assignment, error) {
	ref, _, ok := protocol.ParseRunToken(ticket)
	if !ok || req.Process == "" {
		return protocol.Assignment{}, holdfast.ErrUnauthorized
	}
	run, err := d.opts.Store.ExchangeTicket(ctx, ref, ticket, req.Process, req.Host, d.opts.Now())
	if err != nil {
		return protocol.Assignment{}, err
	}
	weak := d.refusal(protocol.ClaimRequest{Isolation: req.Isolation})
	if weak == nil {
		if weak = d.forks.admit(ctx, run, req.Isolation); weak != nil {
			weak = fmt.Errorf("%w: %w", holdfast.ErrForbidden, weak)
		}
	}
	if weak != nil {
		_, err := d.end(ctx, run.Ref(), run, failedStart(holdfast.CauseNoIsolation, weak.Error(), false), d.opts.Store.EndAttempt)
		return protocol.Assignment{}, errors.Join(weak, err)
	}
	d.signs.heard(run.Ref(), "", d.opts.Now())
	d.opts.Logger.InfoContext(ctx, "ticket was exchanged", "run", run.ID, "attempt", run.Attempt,
		"cluster", run.Cluster, "agent", run.Agent, "host", req.Host)
	if run, err = d.notedLaunch(ctx, run, "", ""); err != nil {
		return protocol.Assignment{}, err
	}
	a, _, err := handout(d).assignment(context.WithoutCancel(ctx), run)
	if errors.Is(err, holdfast.ErrNotFound) {
		return a, fmt.Errorf("attempt %d of run %s could not be prepared: %w", ref.Attempt, ref.Run, holdfast.ErrFenced)
	}
	return a, err
}

// LaunchedAttempts returns the running attempts of a runner that launches them.
func (d Launches) LaunchedAttempts(ctx context.Context, runner string) ([]protocol.Ticket, error) {
	return d.opts.Store.LaunchedAttempts(ctx, runner)
}

// NoteLaunch says on the run of an attempt, for people to see, what its start waits for;
// with an empty reason, nothing.
func (d Launches) NoteLaunch(ctx context.Context, ref holdfast.AttemptRef, reason holdfast.Reason, detail string) error {
	run, err := d.opts.Store.Run(ctx, ref.Run)
	if err != nil || run.Status != holdfast.RunRunning || run.Ref() != ref {
		return err
	}
	_, err = d.notedLaunch(ctx, run, reason, detail)
	return err
}

func (d Launches) notedLaunch(ctx context.Context, run holdfast.Run, reason holdfast.Reason, detail string) (holdfast.Run, error) {
	detail = cut(detail, maxLine)
	if run.Reason == reason && run.Detail == detail || run.Reason == holdfast.ReasonAgentSilent {
		return run, nil
	}
	noted := run
	noted.Reason, noted.Detail = reason, detail
	noted, err := d.opts.Store.UpdateRun(ctx, noted)
	if errors.Is(err, holdfast.ErrConflict) {
		return d.opts.Store.Run(ctx, run.ID) // it says something else by now
	} else if err != nil {
		return run, fmt.Errorf("record what run %s waits for: %w", run.ID, err)
	}
	d.opts.Fleet.Look(holdfast.Request{Cluster: run.Cluster, PullRequest: run.PullRequest})
	return noted, nil
}

// EndUnstarted ends an attempt whose ticket nobody has shown, which nobody can after this:
// nothing has begun. An ErrLocked if somebody has. Unless it is final it is tried again, as
// transient failures are.
func (d Launches) EndUnstarted(ctx context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, detail string, final bool) error {
	run, err := d.opts.Store.Run(ctx, ref.Run)
	if err != nil {
		return fmt.Errorf("read run %s: %w", ref.Run, err)
	}
	result := failedStart(cause, detail, !final)
	if cause == holdfast.ReasonCanceled {
		result = protocol.Result{Status: holdfast.RunCanceled, Detail: detail}
	}
	_, err = d.end(ctx, ref, run, result, d.opts.Store.EndUnexchanged)
	return err
}

// failedStart is the result of an attempt that nobody executes.
func failedStart(cause holdfast.Reason, detail string, again bool) protocol.Result {
	return protocol.Result{
		Status: holdfast.RunErrored, Reason: cause, Detail: detail,
		Failure: &holdfast.Failure{
			Step: "prepare", Summary: "the run was not started: " + cause.Info().Words, Detail: detail,
			Cause: cause, Transient: again, Hint: cause.Info().Hint,
		},
	}
}

// EndDead ends an attempt whose processes are proven to be dead and that has sent no
// result. An apply may have begun.
func (d Launches) EndDead(ctx context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, detail string) error {
	run, err := d.opts.Store.Run(ctx, ref.Run)
	if err != nil {
		return fmt.Errorf("read run %s: %w", ref.Run, err)
	}
	result := killed(d.LastSign(run), detail)
	if cause != "" && cause != holdfast.ReasonAgentKilled {
		result.Failure.Summary, result.Failure.Cause, result.Failure.Hint = cause.Info().Words, cause, cause.Info().Hint
		result.Reason = cause
	}
	// With the same limit the next one would end in the same way.
	if cause == holdfast.CauseOutOfMemory {
		result.Failure.Transient = false
		if !run.Kind.Writes() {
			result.Status = holdfast.RunErrored
		}
	}
	_, err = d.end(ctx, ref, run, result, d.opts.Store.EndAttempt)
	return err
}
