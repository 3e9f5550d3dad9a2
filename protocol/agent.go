package protocol

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// LogMask says which parts of an attempt's log are secret: it was known only after they
// had been sent. The server overwrites them.
type LogMask struct {
	Spans []LogSpan `json:"spans"`
}

// MaxLogSpans bounds the parts of a LogMask.
const MaxLogSpans = 4096

// LogSpan is a part of a log: the bytes from From up to To, that one not included.
type LogSpan struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// ClaimRequest asks for a run to execute.
type ClaimRequest struct {
	Agent string        `json:"agent"` // unique and stable over restarts of the agent
	Wait  time.Duration `json:"wait"`  // nanoseconds to wait for one; at most 30 s
	// Executing are the attempts that the agent executes now. An attempt that
	// the server believes to be with this agent and is not listed has ended
	// with a former process of the agent.
	Executing []holdfast.AttemptRef `json:"executing,omitempty"`
	// Kinds are the kinds of runs that the agent executes; empty means all that its
	// token is bound to. A claim for others is refused.
	Kinds []holdfast.RunKind `json:"kinds,omitempty"`
	// Projects are the projects that the agent's token is bound to; empty means all.
	// The server fills it in: it is not part of the message.
	Projects []string `json:"-"`
	// Bound are the kinds that the agent's token is bound to; empty means all. The
	// server fills it in, too.
	Bound []holdfast.RunKind `json:"-"`
	// Runner is the one that the agent's token belongs to. The server fills it in, too.
	Runner string `json:"-"`
	// Protocol is the version that the agent speaks; see Version. Zero is version 1.
	Protocol int `json:"protocol,omitempty"`
	// Platform is GOOS_GOARCH.
	Platform string `json:"platform"`
	// Isolation is the mode in which the agent keeps engines from all else, such as
	// "slots", IsolationNone or IsolationUnavailable. Empty counts as IsolationNone.
	Isolation string `json:"isolation,omitempty"`

	// Process is random and another one whenever the agent is started; Folder is
	// random and stays with the agent's folder, which one process uses at a time.
	// Two processes of one id and one folder are one after the other, two of one id
	// and two folders are a mistake. A server refuses claims without them.
	Process string `json:"process,omitempty"`
	Folder  string `json:"folder,omitempty"`

	// For people only.
	Host    string `json:"host,omitempty"`
	Version string `json:"version,omitempty"`
	Slots   int    `json:"slots,omitempty"` // attempts at once; 0: not known
}

// Ref returns the process that asks.
func (r ClaimRequest) Ref() AgentRef {
	return AgentRef{ID: r.Agent, Process: r.Process, Folder: r.Folder, Runner: r.Runner}
}

// MayHave reports whether the caller's token could ever have claimed run.
func (r ClaimRequest) MayHave(run holdfast.Run) bool {
	return (r.Runner == "" || r.Runner == run.RunnerName()) &&
		(len(r.Bound) == 0 || slices.Contains(r.Bound, run.Kind.AgentKind())) &&
		(len(r.Projects) == 0 || slices.Contains(r.Projects, run.Document.Project))
}

// What an agent says of its isolation besides the modes.
const (
	IsolationNone        = "none"        // it is not to isolate engines
	IsolationUnavailable = "unavailable" // no mode that it may use works: it starts no engine, and each of its runs says why
)

// AgentRef is a process of an agent.
type AgentRef struct {
	ID, Process, Folder string
	Runner              string // that it belongs to; empty: any
}

// maxAgentID bounds the id of an agent, in bytes.
const maxAgentID = 200

// agentIDChars are what ids of agents consist of: no two look alike in other scripts.
const agentIDChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@+-/"

// AgentIDOf returns a text with a dash for each character that an id cannot have.
func AgentIDOf(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(agentIDChars, r) {
			return r
		}
		return '-'
	}, text)
}

// CheckAgentID returns what is wrong with the id of an agent: it appears in logs and
// tables, and its parts are separated by slashes.
func CheckAgentID(id string) error {
	switch {
	case id == "":
		return errors.New("is empty")
	case len(id) > maxAgentID:
		return fmt.Errorf("has more than %d bytes", maxAgentID)
	case AgentIDOf(id) != id:
		return errors.New("has characters other than ASCII letters, digits and . _ : @ + - /")
	case strings.HasPrefix(id, "/") || strings.HasSuffix(id, "/") || strings.Contains(id, "//"):
		return errors.New("has a slash with nothing before or after it")
	}
	return nil
}

// AgentStatus is what a server knows of an agent.
type AgentStatus struct {
	ID       string             `json:"id"`
	Runner   string             `json:"runner,omitempty"`   // that it belongs to
	Living   bool               `json:"living"`             // it contacted the server recently, or waits for a run
	Kinds    []holdfast.RunKind `json:"kinds"`              // that it executes
	Projects []string           `json:"projects,omitempty"` // of which alone it executes runs; empty means all
	// Isolation is as in ClaimRequest.
	Isolation string    `json:"isolation,omitempty"`
	Refused   string    `json:"refused,omitempty"`  // why it gets no runs; empty: it gets them
	Platform  string    `json:"platform,omitempty"` // GOOS_GOARCH
	Host      string    `json:"host,omitempty"`
	Version   string    `json:"version,omitempty"`
	Slots     int       `json:"slots,omitempty"` // attempts at once; 0: not known
	Since     time.Time `json:"since"`           // when this process of it first contacted this server
	SeenAt    time.Time `json:"seenAt"`          // when it last contacted the server
	Runs      []string  `json:"runs,omitempty"`  // that it executes, by the records
}

// AgentTakenError says that a process claims with the id of another one that
// lives. It is an ErrConflict.
type AgentTakenError struct {
	Agent string
	Host  string // of the other one; empty: not known
	Same  bool   // both show the same folder, which can only be a copy
}

// Error says what to do, too.
func (e *AgentTakenError) Error() string {
	other := "another living process"
	if e.Host != "" {
		other += " on " + e.Host
	}
	if e.Same {
		return fmt.Sprintf("agent id %q is that of %s with a copy of this folder: give each agent an id (--id) and an empty folder (--dir) of its own",
			e.Agent, other)
	}
	return fmt.Sprintf("agent id %q is that of %s with another folder: give each agent an id of its own (--id), or stop the other one",
		e.Agent, other)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *AgentTakenError) Is(target error) bool { return target == holdfast.ErrConflict }

// AgentIsolationError says that an agent isolates engines less than the server demands.
// It is an ErrForbidden.
type AgentIsolationError struct {
	Isolation string   // of the agent; empty: it names none
	Demanded  []string // the modes of which one is enough, strong ones first
}

// Error says what to do, too.
func (e *AgentIsolationError) Error() string {
	has := "isolation " + e.Isolation
	if e.Isolation == "" {
		has = "an agent that names no isolation"
	}
	return fmt.Sprintf("%s is weaker than the server demands (%s): start the agent with --isolation %s where one of these works, "+
		"which holdfast agent probe prints, or change isolation in the server's holdfast.yaml",
		has, strings.Join(e.Demanded, ", "), e.Demanded[len(e.Demanded)-1])
}

// Is makes errors.Is(err, ErrForbidden) true.
func (e *AgentIsolationError) Is(target error) bool { return target == holdfast.ErrForbidden }

// Heartbeat says that an attempt is alive.
type Heartbeat struct {
	Fence   int64  `json:"fence"`
	Step    string `json:"step"`
	Process string `json:"process,omitempty"` // as in ClaimRequest
}

// HeartbeatReply is what the server wants an attempt to do.
type HeartbeatReply struct {
	Cancel holdfast.Reason `json:"cancel,omitempty"` // why it should stop; empty: continue
	// MayApply is false while an apply must not begin: its lock cannot be
	// confirmed. A begun apply continues.
	MayApply bool `json:"mayApply"`
}

// Result is how an attempt ended. The plan document and what is next to it, the
// lock file and the outputs were uploaded as artefacts before. What the plan
// would do is not in here: the server reads it from the document.
type Result struct {
	Fence         int64              `json:"fence"`
	Status        holdfast.RunStatus `json:"status"` // planned, applied, no_changes, errored, canceled or interrupted
	Reason        holdfast.Reason    `json:"reason,omitempty"`
	Detail        string             `json:"detail,omitempty"`
	InputDigest   holdfast.Digest    `json:"inputDigest,omitempty"`
	EngineName    string             `json:"engineName,omitempty"`
	EngineVersion string             `json:"engineVersion,omitempty"`
	PlanDigest    holdfast.Digest    `json:"planDigest,omitempty"` // of the document that was uploaded; empty: it did not get that far
	Matched       string             `json:"matched,omitempty"`    // the reviewed run that the plan was equal to
	Failure       *holdfast.Failure  `json:"failure,omitempty"`
	// Policies are what those of the assignment say of the plan; nil: none were evaluated.
	Policies *holdfast.PolicyReport `json:"policies,omitempty"`
	Steps    []Step                 `json:"steps,omitempty"`
	// Applying is true if the engine's apply was started: something may have
	// changed whatever Status says.
	Applying bool `json:"applying,omitempty"`
}

// Step is a part of an attempt and how long it took.
type Step struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration"`
}
