package holdfast

import (
	"strconv"
	"time"
)

// Launch is an attempt that a runner executes by starting something for it, such as a
// Job: what is started exchanges the ticket for the assignment.
type Launch struct {
	AttemptRef
	Runner  string
	Kind    RunKind
	Cluster Cluster // as its document says
	Ticket  string  // proves that its holder was started for the attempt; good for one exchange
	Limits  RunLimits
	// Timeout is for how long it may exist at all, whatever becomes of it.
	Timeout time.Duration
}

// Launched is what a runner says of what it has started for an attempt. That it is gone
// proves nothing: see Dead.
type Launched struct {
	Run     string
	Attempt int
	Name    string // of the Job or task, for people and to stop it
	Place   string // where it runs, for people: a Pod and its node
	// Over: nothing more will be started for the attempt.
	Over bool
	// Dead: whoever has run its processes says that they have ended. Without it one that
	// is Over may still be executed, on a machine that nobody hears of.
	Dead bool
	// Begun: its process was started.
	Begun bool
	// Reason is why it is not started, or has ended; empty: it is about to start, runs,
	// or has ended well. Detail says it in a sentence, with what is known of it.
	Reason Reason
	Detail string
	// Waits: it does not start because of a quota that others use up; it starts when
	// they have ended.
	Waits bool
}

// Ref is the attempt without its fence.
func (l Launched) Ref() AttemptRef { return AttemptRef{Run: l.Run, Attempt: l.Attempt} }

// LaunchError says why something could not be started, or a runner not be asked.
type LaunchError struct {
	Reason Reason // empty: the runner was not asked yet
	Waits  bool   // as in Launched
	Err    error
}

func (e *LaunchError) Error() string { return e.Err.Error() }
func (e *LaunchError) Unwrap() error { return e.Err }

// TicketRequest is sent with a ticket, as a bearer token, to POST /agent/v1/tickets. The
// answer is an Assignment. A ticket is good for one process: that may ask again, as the
// answer may have got lost; another one is refused.
type TicketRequest struct {
	Process   string `json:"process"` // random and secret
	Isolation string `json:"isolation,omitempty"`
	Platform  string `json:"platform,omitempty"`
	Host      string `json:"host,omitempty"`
	Version   string `json:"version,omitempty"`
}

// Ticket is what the server knows of the ticket of an attempt.
type Ticket struct {
	AttemptRef
	Runner      string
	Agent       string
	CreatedAt   time.Time
	ExchangedAt time.Time // zero: it was not
	Host        string    // that has exchanged it, for people
}

// LaunchAgent is the id of what executes an attempt that was launched.
func LaunchAgent(runner string, ref AttemptRef) string {
	return AgentIDOf(runner) + "/" + ref.Run + "-" + strconv.Itoa(ref.Attempt)
}
