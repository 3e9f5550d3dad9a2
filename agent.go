package holdfast

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The messages of the agent protocol, JSON over HTTP, in the version that Protocol says:
//
//	POST /agent/v1/claims                                 ClaimRequest → 200 Assignment | 204 nothing to do | 409 its id is taken
//	POST /agent/v1/presence                               ClaimRequest → 204 | 409 its id is taken: alive, and wants no run now
//	POST /agent/v1/tickets                                TicketRequest → 200 Assignment | 401, 403 the ticket is not valid
//	POST /agent/v1/runs/{run}/attempts/{n}/heartbeat      Heartbeat → 200 HeartbeatReply | 409 fenced off
//	POST /agent/v1/runs/{run}/attempts/{n}/logs?offset=N  bytes → 200 {"next": offset} | 409 fenced off
//	POST /agent/v1/runs/{run}/attempts/{n}/logs/mask      LogMask → 204 | 409 fenced off
//	PUT  /agent/v1/runs/{run}/attempts/{n}/artefacts/{a}  bytes → 204 | 409 fenced off
//	POST /agent/v1/runs/{run}/attempts/{n}/tokens         TokenRequest → 200 IdentityToken | 403 not for that audience | 409 fenced off
//	POST /agent/v1/runs/{run}/attempts/{n}/result         Result → 204 | 409 fenced off
//	GET  /agent/v1/runs/{run}/artefacts/{a}               bytes of a run of the same cluster
//	GET  /agent/v1/bundles/{digest}                       tar, gzip
//	*    /agent/v1/state/{location}                       GET POST LOCK UNLOCK, as the engines' http backend speaks
//
// Claims and presence carry the agent's token, tickets the ticket, all else the run's
// (Assignment.Token), all as "Authorization: Bearer". Errors are {"error": text}: 401 unknown token,
// 403 not this run's, 404 no such thing, 409 fenced off, 503 try again.

// Names of artefacts.
const (
	// ArtefactPlan is a Plan as JSON, which the server derives from the document:
	// agents do not store it.
	ArtefactPlan     = "summary"
	ArtefactLockFile = "lock.hcl" // .terraform.lock.hcl
	ArtefactOutputs  = "outputs"  // []Output as JSON
	ArtefactErrored  = "errored.tfstate"
	ArtefactDocument = "document" // a plandoc.Document, as its Encode writes it
	ArtefactInfo     = "info"     // the plandoc.Info next to it, as JSON
	ArtefactInput    = "input"    // what InputDigest is made of, as JSON: digests and versions
	// ArtefactResources is what the state holds after an apply or a destroy
	// (however it ended), a drift check, or a plan without changes: []Resource as
	// JSON with addresses, types, providers and ids.
	ArtefactResources = "resources"
	// ArtefactModules is a gzipped tar of the modules that the engine fetched for an
	// apply or a destroy, as it keeps them; kept if a source is not pinned.
	ArtefactModules = "modules"
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
	Executing []AttemptRef `json:"executing,omitempty"`
	// Kinds are the kinds of runs that the agent executes; empty means all that its
	// token is bound to. A claim for others is refused.
	Kinds []RunKind `json:"kinds,omitempty"`
	// Projects are those that the agent's token is bound to; empty means all. The
	// server fills it in: it is not part of the message.
	Projects []string `json:"-"`
	// Bound are the kinds that the agent's token is bound to; empty means all. The
	// server fills it in, too.
	Bound []RunKind `json:"-"`
	// Runner is the one that the agent's token belongs to. The server fills it in, too.
	Runner string `json:"-"`
	// Protocol is the version that the agent speaks; see Protocol. Zero is version 1.
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

// Ref returns the process that asks.
func (r ClaimRequest) Ref() AgentRef {
	return AgentRef{ID: r.Agent, Process: r.Process, Folder: r.Folder, Runner: r.Runner}
}

// MayHave reports whether the token of who asks could ever have claimed run.
func (r ClaimRequest) MayHave(run Run) bool {
	return (r.Runner == "" || r.Runner == run.RunnerName()) &&
		(len(r.Bound) == 0 || slices.Contains(r.Bound, run.Kind.AgentKind())) &&
		(len(r.Projects) == 0 || slices.Contains(r.Projects, run.Document.Project))
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
	ID       string    `json:"id"`
	Runner   string    `json:"runner,omitempty"`   // that it belongs to
	Living   bool      `json:"living"`             // it contacted the server recently, or waits for a run
	Kinds    []RunKind `json:"kinds"`              // that it executes
	Projects []string  `json:"projects,omitempty"` // of which alone it executes runs; empty means all
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
func (e *AgentTakenError) Is(target error) bool { return target == ErrConflict }

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
func (e *AgentIsolationError) Is(target error) bool { return target == ErrForbidden }

// Assignment is a run to execute. It carries no forge credential.
type Assignment struct {
	AttemptRef
	Token    string    `json:"token"` // this attempt's credential
	Kind     RunKind   `json:"kind"`
	Cluster  string    `json:"cluster"`
	Deadline time.Time `json:"deadline"` // the engine is interrupted then
	// Lease is how long the server believes in the attempt without a heartbeat.
	// The agent beats at a sixth of it, and has lost it when three quarters
	// have passed since a beat that was answered was sent.
	Lease time.Duration `json:"lease"`

	Bundle       Digest `json:"bundle"`
	Dir          string `json:"dir"`
	SourceDigest Digest `json:"sourceDigest"`

	// Destroy: a plan of the destruction of everything.
	Destroy bool `json:"destroy,omitempty"`
	// LockFile is the provider lock file to start from where the bundle has
	// none: of the reviewed plan, else of the last applied run.
	LockFile []byte `json:"lockFile,omitempty"`
	// Modules is the run whose fetched modules the attempt should have: the one that
	// was applied last, if that is what the attempt looks at. Empty: it fetches them,
	// or has those of a review.
	Modules string `json:"modules,omitempty"`

	EngineChoice
	AssignedEnv
	AssignedState

	// Limits bound each start of the engine, with all that it starts.
	Limits RunLimits `json:"limits,omitzero"`

	AssignedReviews
	AssignedResume

	FingerprintKey []byte `json:"fingerprintKey"` // 32 bytes
	TraceParent    string `json:"traceParent,omitempty"`
}

// AssignedReviews is what a plan is held against.
type AssignedReviews struct {
	// Reviews are the plans of which one must be what an apply finds: it plans
	// itself, always, inside its lock.
	Reviews []Review `json:"reviews,omitempty"`
	// Policies are evaluated over the plan; nil: none are.
	Policies *AssignedPolicies `json:"policies,omitempty"`
}

// AssignedResume is what an attempt has to know of the applies that failed before it.
type AssignedResume struct {
	// Resume: what remains of a reviewed plan suffices.
	Resume bool `json:"resume,omitempty"`
	// MayExist are addresses that must not be created without a person's word: an
	// apply that died was creating them, or may not have saved that it had. A plan
	// that would create one of them says so.
	MayExist []string `json:"mayExist,omitempty"`
	// AnyMayExist: what that apply had begun to create is not known, so that it may
	// be anything.
	AnyMayExist bool `json:"anyMayExist,omitempty"`
}

// EngineChoice says which engine an attempt has.
type EngineChoice struct {
	Engine EngineRef `json:"engine,omitzero"` // what the cluster asks for
	// PinName and PinVersion are the engine of the last applied run, kept as
	// long as the constraints allow it.
	PinName    string `json:"pinName,omitempty"`
	PinVersion string `json:"pinVersion,omitempty"`
	// Exact: PinName and PinVersion are the engine, whatever Engine and the code
	// ask for.
	Exact bool `json:"exact,omitempty"`
}

// AssignedEnv is the environment of an attempt, and where its secret variables are.
type AssignedEnv struct {
	Env     map[string]string `json:"env,omitempty"`     // credentials and settings of (project, environment, plan | apply)
	Secrets []string          `json:"secrets,omitempty"` // names in Env whose values are secret

	// Missing are names that are to be in Env, whose values could not be read. A
	// run that needs one of them fails before its engine starts.
	Missing []string `json:"missing,omitempty"`
	// Referenced are those of Missing that secret variables of clusters refer to: only
	// a run whose own do needs them. The others may be a provider's.
	Referenced []string `json:"referenced,omitempty"`

	// SecretDirs are the folders in which the secret variables' files may be, and
	// SecretStores the commands that print a secret of a store, by its name, with
	// "{key}" for which: see SecretFile.
	SecretDirs   []string            `json:"secretDirs,omitempty"`
	SecretStores map[string][]string `json:"secretStores,omitempty"`

	// Identities are whom the engine can prove to be without a stored credential.
	Identities Identities `json:"identities,omitzero"`
}

// AssignedState is where an attempt's state is.
type AssignedState struct {
	// OwnState is true if the state is in Holdfast's own backend at
	// StateLocation; else the code or the rendered root says where.
	OwnState      bool   `json:"ownState,omitempty"`
	StateLocation string `json:"stateLocation"`

	// LockTimeout is how long the engine waits for the state's lock, in
	// nanoseconds; nil: as the agent's own setting says.
	LockTimeout *time.Duration `json:"lockTimeout,omitempty"`
	// State is what a run of kind RunState or RunUnlock does; nil of any other kind.
	State *StateJob `json:"state,omitempty"`
}

// Credentials are the environment that a run gets.
type Credentials struct {
	Env     map[string]string // names and values
	Secrets []string          // names in Env whose values are secret
	Missing []string          // names that are to be in Env and whose values could not be read

	Identities Identities // whom it can prove to be without any of them
}

// RunLimits bound what an engine may use, together with all that it starts. Zero
// means no limit.
type RunLimits struct {
	Memory    int64   `json:"memory,omitempty"`    // bytes
	Processes int     `json:"processes,omitempty"` // and threads
	CPU       float64 `json:"cpu,omitempty"`       // processors
}

// Beyond returns the first of the limits that is more than most allows, as its key
// in a document, and what is allowed. A zero in most allows everything; the key is
// empty if all is allowed.
func (l RunLimits) Beyond(most RunLimits) (key, allowed string) {
	switch {
	case most.Memory > 0 && l.Memory > most.Memory:
		return "memory", sizeText(most.Memory)
	case most.Processes > 0 && l.Processes > most.Processes:
		return "processes", strconv.Itoa(most.Processes)
	case most.CPU > 0 && l.CPU > most.CPU:
		return "cpu", strconv.FormatFloat(most.CPU, 'g', -1, 64)
	}
	return "", ""
}

// sizeText writes a number of bytes with the largest unit that has no fraction.
func sizeText(bytes int64) string {
	for _, unit := range []string{"", "KiB", "MiB", "GiB"} {
		if bytes%1024 != 0 {
			return strconv.FormatInt(bytes, 10) + unit
		}
		bytes /= 1024
	}
	return strconv.FormatInt(bytes, 10) + "TiB"
}

// Heartbeat says that an attempt is alive.
type Heartbeat struct {
	Fence   int64  `json:"fence"`
	Step    string `json:"step"`
	Process string `json:"process,omitempty"` // as in ClaimRequest
}

// HeartbeatReply tells an attempt what the server wants of it.
type HeartbeatReply struct {
	Cancel Reason `json:"cancel,omitempty"` // why it should stop; empty: continue
	// MayApply is false while an apply must not begin: its lock cannot be
	// confirmed. A begun apply continues.
	MayApply bool `json:"mayApply"`
}

// Result is how an attempt ended. The plan document and what is next to it, the
// lock file and the outputs were uploaded as artefacts before. What the plan
// would do is not in here: the server reads it from the document.
type Result struct {
	Fence         int64     `json:"fence"`
	Status        RunStatus `json:"status"` // planned, applied, no_changes, errored, canceled or interrupted
	Reason        Reason    `json:"reason,omitempty"`
	Detail        string    `json:"detail,omitempty"`
	InputDigest   Digest    `json:"inputDigest,omitempty"`
	EngineName    string    `json:"engineName,omitempty"`
	EngineVersion string    `json:"engineVersion,omitempty"`
	PlanDigest    Digest    `json:"planDigest,omitempty"` // of the document that was uploaded; empty: it did not get that far
	Matched       string    `json:"matched,omitempty"`    // the reviewed run that the plan was equal to
	Failure       *Failure  `json:"failure,omitempty"`
	// Policies are what those of the assignment say of the plan; nil: none were evaluated.
	Policies *PolicyReport `json:"policies,omitempty"`
	Steps    []Step        `json:"steps,omitempty"`
	// Applying is true if the engine's apply was started: something may have
	// changed whatever Status says.
	Applying bool `json:"applying,omitempty"`
}

// Step is a part of an attempt and how long it took.
type Step struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration"`
}
