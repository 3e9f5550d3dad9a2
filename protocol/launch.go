package protocol

import (
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// Launch is an attempt that a runner executes by starting something for it, such as a
// Job: what is started exchanges the ticket for the assignment.
type Launch struct {
	holdfast.AttemptRef
	Runner  string
	Kind    holdfast.RunKind
	Cluster holdfast.Cluster // as its document says
	Ticket  string           // proves that its holder was started for the attempt; good for one exchange
	Limits  holdfast.RunLimits
	// Timeout is how long it may exist at all, whatever becomes of it.
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
	// Host is the name of the machine as its processes see it: they exchange the ticket
	// by that name. Empty: not known.
	Host string
	// Begun: its process was started.
	Begun bool
	// Reason is why it is not started, or has ended; empty: it is about to start, runs,
	// or has ended well. Detail describes it in a sentence, with what is known of it.
	Reason holdfast.Reason
	Detail string
	// Waits: it does not start because of a quota that others use up; it starts when
	// they have ended.
	Waits bool
}

// Ref is the attempt without its fence.
func (l Launched) Ref() holdfast.AttemptRef {
	return holdfast.AttemptRef{Run: l.Run, Attempt: l.Attempt}
}

// LaunchError says why something could not be started, or a runner not be asked.
type LaunchError struct {
	Reason holdfast.Reason // empty: the runner was not asked yet
	Waits  bool            // as in Launched
	Err    error
}

func (e *LaunchError) Error() string { return e.Err.Error() }

func (e *LaunchError) Unwrap() error { return e.Err }

// TicketRequest is sent with a ticket, as a bearer token, to POST /agent/v1/tickets. The
// answer is an Assignment. A ticket is good for one process: that may ask again, as the
// answer may have got lost; another one is refused.
type TicketRequest struct {
	Process   string `json:"process"`            // random and secret
	Protocol  int    `json:"protocol,omitempty"` // as in ClaimRequest
	Isolation string `json:"isolation,omitempty"`
	Platform  string `json:"platform,omitempty"`
	Host      string `json:"host,omitempty"`
	Version   string `json:"version,omitempty"`
}

// Ticket is what the server knows of the ticket of an attempt.
type Ticket struct {
	holdfast.AttemptRef
	Runner      string
	Agent       string
	CreatedAt   time.Time
	ExchangedAt time.Time // zero: it was not
	Host        string    // that has exchanged it
}

// HostVariable is the variable that says to the process that exchanges a ticket what its Host
// is called; without it that is the machine's name.
const HostVariable = "HOLDFAST_HOST"

// LaunchAgent is the id of what executes an attempt that was launched.
func LaunchAgent(runner string, ref holdfast.AttemptRef) string {
	return AgentIDOf(runner) + "/" + ref.Run + "-" + strconv.Itoa(ref.Attempt)
}

// What a launcher elsewhere asks of the server, by POST to /agent/v1/launches/…; all of it is
// about the runner of its credential alone.

// LaunchRequest is each of its requests. Which fields count besides Protocol depends on the
// path.
type LaunchRequest struct {
	Protocol int           `json:"protocol,omitempty"` // as in ClaimRequest
	Wait     time.Duration `json:"wait,omitempty"`     // news: nanoseconds; at most 30 s
	// AttemptRef is of tickets, notes and ends; of runs only Run counts.
	holdfast.AttemptRef
	Reason holdfast.Reason `json:"reason,omitempty"` // notes, ends
	Detail string          `json:"detail,omitempty"`
	Dead   bool            `json:"dead,omitempty"`  // ends: its processes have ended; otherwise nobody has shown its ticket
	Final  bool            `json:"final,omitempty"` // ends, of one that is not dead: it is not tried again
}

// LaunchSettings answer settings: what the server's configuration says of Jobs.
type LaunchSettings struct {
	Runner       runnerspec.Runner `json:"runner"`       // as its document in force says
	Installation string            `json:"installation"` // tells its Jobs from those of others
	Isolation    string            `json:"isolation"`    // the weakest that runs are claimed for
	// Former are its documents that said another place, where something may be left.
	Former []runnerspec.Runner `json:"former,omitempty"`

	Start   time.Duration `json:"start"` // nanoseconds, all three
	Timeout time.Duration `json:"timeout"`
	Grace   time.Duration `json:"grace"`

	Agent LaunchedAgent `json:"agent"`
}

// LaunchedAgent is how the agent of a Job is started.
type LaunchedAgent struct {
	ServerURL string   `json:"serverURL"`
	CA        []byte   `json:"ca,omitempty"`    // PEM
	Image     string   `json:"image"`           // where the runner names none
	Isolation string   `json:"isolation"`       // its flag
	Flags     []string `json:"flags,omitempty"` // further ones
}

// LaunchRun answers runs: what a launcher has to know of a run.
type LaunchRun struct {
	holdfast.AttemptRef
	Runner string             `json:"runner"`
	Kind   holdfast.RunKind   `json:"kind"`
	Status holdfast.RunStatus `json:"status"`
	Cancel holdfast.Reason    `json:"cancel,omitempty"` // why it is to stop
	Reason holdfast.Reason    `json:"reason,omitempty"`
	Detail string             `json:"detail,omitempty"`

	Cluster     string                  `json:"cluster"`
	Project     string                  `json:"project"`
	Environment string                  `json:"environment"`
	Ask         *holdfast.ClusterRunner `json:"ask,omitempty"` // what its document asks of the runner
	Limits      holdfast.RunLimits      `json:"limits,omitzero"`
}

// LaunchTicket answers claims and tickets. There is no Run in the latter.
type LaunchTicket struct {
	Run    *LaunchRun `json:"run,omitempty"`
	Ticket string     `json:"ticket"`
}

// LaunchAttempts answer attempts: those of the runner that are running.
type LaunchAttempts struct {
	Attempts []LaunchAttempt `json:"attempts"`
}

// LaunchAttempt is one of them.
type LaunchAttempt struct {
	holdfast.AttemptRef
	Agent     string          `json:"agent"`
	Age       time.Duration   `json:"age,omitempty"`    // nanoseconds since its ticket was made; 0: it has none
	Exchanged bool            `json:"exchanged"`        // its agent has called
	Host      string          `json:"host,omitempty"`   // that has
	Cancel    holdfast.Reason `json:"cancel,omitempty"` // why it is to stop, if it has not called
}
