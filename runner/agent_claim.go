package runner

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/uplink"
)

const (
	claimWait    = 25 * time.Second
	presentEvery = 10 * time.Second // reports an agent that wants no run
	tellEvery    = time.Minute      // says the log again that the server gives no answer
)

// RefusedError says that the server, or whatever answers in its place, accepts nothing
// from this agent until somebody changes its settings.
type RefusedError struct {
	Server string
	Err    error
}

// Error says what to look at, too.
func (e *RefusedError) Error() string {
	check := "is --token-file the one of this server, or --key one of its runner's?"
	var (
		untrusted *tls.CertificateVerificationError
		answer    *uplink.AnswerError
	)
	switch {
	case errors.As(e.Err, &untrusted):
		check = "is --ca-file the authority of the server's certificate, and --server a name in it?"
	case errors.As(e.Err, &answer) && answer.Status == http.StatusForbidden:
		check = "do --id, --kinds and --isolation fit server.agents.tokens and isolation in the server's holdfast.yaml, and the command the runner's type?"
	}
	return fmt.Sprintf("server %s refuses this agent: %v; %s", e.Server, e.Err, check)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// refused reports whether another try is useless: the token is wrong or bound to
// something else, or the server is not trusted. An expired certificate may be renewed,
// and an id that another agent has may become free.
func (a *Agent) refused(err error) bool {
	var answer *uplink.AnswerError
	if errors.As(err, &answer) {
		return answer.Ours && (answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden)
	}
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
	)
	return !a.accepted && (errors.As(err, &authority) || errors.As(err, &name))
}

// claimAll claims runs while slots are free, and otherwise reports now and then that
// the agent is there. It returns nil when ctx is done, a *RefusedError if the server
// has refused the agent.
func (a *Agent) claimAll(ctx, deliver context.Context) error {
	slots := make(chan struct{}, a.opts.Claims.Slots)
	defer a.turn.end()
	for {
		a.turn.begin()
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		case <-time.After(a.presentEvery):
			a.present(ctx)
			continue
		}
		assignment, serverTime, err := a.claim(ctx)
		var refused *RefusedError
		if errors.As(err, &refused) {
			return err
		} else if err != nil {
			return nil // ctx is done: all else is tried again
		}
		a.start(deliver, assignment, serverTime, func() { <-slots })
	}
}

// request is what the agent says of itself when it asks for a run.
func (a *Agent) request() protocol.ClaimRequest {
	host, _ := os.Hostname() // for people
	return protocol.ClaimRequest{
		Agent: a.opts.About.ID, Protocol: protocol.Version, Wait: claimWait, Executing: a.refs(), Kinds: a.opts.Claims.Kinds,
		Platform: runtime.GOOS + "_" + runtime.GOARCH, Isolation: a.opts.About.Isolation,
		Process: a.process, Folder: a.folder, Host: host, Version: a.opts.About.Version, Slots: a.opts.Claims.Slots,
	}
}

// present reports that the agent is there. If that fails, its heartbeats or the next
// claim do.
func (a *Agent) present(ctx context.Context) {
	try, cancel := context.WithTimeout(ctx, presentEvery)
	defer cancel()
	if err := a.client.Present(try, a.request()); err != nil && ctx.Err() == nil {
		a.opts.Logger.DebugContext(ctx, "presence was not reported to the server", "agent", a.opts.About.ID, "err", err)
	}
}

// claim asks until there is a run or ctx is done, or until the server has refused
// the agent for good and nothing is left to deliver: a *RefusedError then.
func (a *Agent) claim(ctx context.Context) (protocol.Assignment, time.Time, error) {
	var troubleLoggedAt time.Time // when the log last said that there is trouble; zero: there is none
	for ctx.Err() == nil {
		a.turn.begin()
		asked := time.Now()
		try, cancel := context.WithTimeout(ctx, claimWait+uplink.AnswerTimeout)
		assignment, serverTime, err := a.client.Claim(try, a.request())
		cancel()
		if ctx.Err() != nil && err != nil {
			break
		}
		pause := time.Duration(0)
		switch {
		case err == nil:
			a.accepted = true
			return assignment, serverTime, nil
		case errors.Is(err, holdfast.ErrNotFound) && !uplink.Final(err):
			if !troubleLoggedAt.IsZero() {
				a.opts.Logger.InfoContext(ctx, "server was reached again", "agent", a.opts.About.ID)
			}
			a.accepted, troubleLoggedAt = true, time.Time{}
			// A server that does not wait must not be asked without a pause.
			pause = time.Second - time.Since(asked)
		default:
			if a.refused(err) && len(a.all()) == 0 {
				return protocol.Assignment{}, time.Time{}, &RefusedError{Server: a.opts.Server.URL, Err: err}
			}
			if troubleLoggedAt.IsZero() || time.Since(troubleLoggedAt) >= tellEvery {
				a.opts.Logger.WarnContext(ctx, "claim was not answered", "agent", a.opts.About.ID, "err", err)
				troubleLoggedAt = time.Now()
			}
			pause = time.Second
			if uplink.Final(err) { // somebody has to act
				pause = 10 * time.Second
			}
		}
		if pause > 0 && !uplink.Sleep(ctx, pause) {
			break
		}
	}
	return protocol.Assignment{}, time.Time{}, context.Cause(ctx)
}
