package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/uplink"
)

// UndeliveredError says that not all that came of an attempt was delivered.
type UndeliveredError struct{ Attempt string }

func (e *UndeliveredError) Error() string {
	return fmt.Sprintf("not all of attempt %s was delivered to the server", e.Attempt)
}

// RunOne executes the one attempt that the agent's token, which is a ticket, stands for, and
// returns once the server has all that came of it. Nothing is started before the ticket was
// exchanged; a *RefusedError says that it is not good. When ctx is done the engine is
// interrupted, as after a grace of zero, and what came of it is delivered for DeliverWait; an
// *UndeliveredError says that this was too short.
func (a *Agent) RunOne(ctx context.Context) error {
	if err := a.kept.Make(); err != nil {
		return err
	}
	release, err := lockFolder(a.opts.Dir)
	if err != nil {
		return err
	}
	defer release()
	if a.proxy, err = uplink.NewStateEndpoint(a.opts.Logger); err != nil {
		return err
	}
	defer a.proxy.Close()
	deliver, stopDelivering := context.WithCancel(context.WithoutCancel(ctx))
	defer stopDelivering()
	if err := a.recover(deliver); err != nil { // this container was started again in its Pod
		return err
	}
	assignment, serverTime, err := a.exchange(ctx)
	if err != nil {
		a.shutDown(stopDelivering)
		return err
	}
	ended := make(chan struct{})
	a.start(deliver, assignment, serverTime, func() { close(ended) })
	select {
	case <-ended:
	case <-ctx.Done():
		a.opts.Logger.WarnContext(ctx, "agent was asked to stop: the engine is interrupted", "run", assignment.Run)
		a.shutDown(stopDelivering)
	}
	select {
	case <-done(&a.delivering):
	case <-ctx.Done():
		a.shutDown(stopDelivering)
	}
	if left, err := a.kept.Left(); err != nil || len(left) > 0 {
		return &UndeliveredError{assignment.Owner()}
	}
	return nil
}

// exchange asks until the server has answered the ticket.
func (a *Agent) exchange(ctx context.Context) (protocol.Assignment, time.Time, error) {
	host := os.Getenv(protocol.HostVariable)
	if host == "" {
		host, _ = os.Hostname() // for people
	}
	req := protocol.TicketRequest{
		Process: a.process, Protocol: protocol.Version, Isolation: a.opts.About.Isolation, Platform: runtime.GOOS + "_" + runtime.GOARCH,
		Host: host, Version: a.opts.About.Version,
	}
	var serverTime time.Time
	told := false
	assignment, err := uplink.Retry(ctx, func(err error) {
		if !told {
			told = true
			a.opts.Logger.WarnContext(ctx, "ticket was not answered yet", "err", err)
		}
	}, func() (protocol.Assignment, error) {
		got, at, err := a.client.Exchange(ctx, req)
		serverTime = at
		return got, err
	})
	var answer *uplink.AnswerError
	if errors.As(err, &answer) && uplink.Final(err) {
		return assignment, serverTime, &RefusedError{Server: a.opts.Server.URL, Err: err}
	}
	return assignment, serverTime, err
}
