package launch

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Jobs starts what executes attempts of one runner, and says what became of it; see
// protocol.Launched. Its methods are safe for concurrent use.
type Jobs interface {
	// Start starts something for an attempt, once however often it is called. A
	// *protocol.LaunchError says why that cannot be.
	Start(ctx context.Context, l protocol.Launch) error
	// Stop asks what was started to end, if there is anything. It does not wait.
	Stop(ctx context.Context, ref holdfast.AttemptRef) error
	// Launched returns what was started by any process of this installation. With an error
	// it may be outdated, or empty.
	Launched(ctx context.Context) ([]protocol.Launched, error)
	// Changed returns a channel that is closed when next something has changed.
	Changed() <-chan struct{}
}

// Dispatcher has the runs; dispatch.Launches is one.
type Dispatcher interface {
	Claims
	Attempts
	Ends
}

// Claims hands out runs.
type Claims interface {
	// ClaimLaunch claims a run of a runner: ErrNotFound if there is none.
	ClaimLaunch(ctx context.Context, runner, isolation string) (run holdfast.Run, ticket string, err error)
	// Ticket returns the ticket of an attempt: the same each time.
	Ticket(ctx context.Context, runner string, ref holdfast.AttemptRef) (string, error)
	// Present reports that somebody is there for the runs of a runner.
	Present(ctx context.Context, req protocol.ClaimRequest) error
	// Freed returns a channel that is closed when next a run was queued or has ended.
	Freed() <-chan struct{}
}

// Attempts are those that run.
type Attempts interface {
	// LaunchedAttempts returns those of a runner that launches them.
	LaunchedAttempts(ctx context.Context, runner string) ([]protocol.Ticket, error)
	// Heartbeat keeps the lease of an attempt.
	Heartbeat(ctx context.Context, ref holdfast.AttemptRef, beat protocol.Heartbeat) (protocol.HeartbeatReply, error)
	// NoteLaunch says on a run what its start waits for.
	NoteLaunch(ctx context.Context, ref holdfast.AttemptRef, reason holdfast.Reason, detail string) error
}

// Ends are how attempts end that send no result.
type Ends interface {
	// EndUnstarted ends an attempt whose ticket nobody has shown: ErrLocked if somebody has.
	EndUnstarted(ctx context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, detail string, final bool) error
	// EndDead ends one whose processes are proven to be dead.
	EndDead(ctx context.Context, ref holdfast.AttemptRef, cause holdfast.Reason, detail string) error
}

// Runs are the records of runs.
type Runs interface {
	Run(ctx context.Context, id string) (holdfast.Run, error)
}
