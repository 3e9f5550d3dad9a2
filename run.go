package holdfast

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RunKind says what a run is for.
type RunKind string

// The kinds of runs.
const (
	RunPlan    RunKind = "plan"    // speculative: changes nothing
	RunApply   RunKind = "apply"   // plans inside its lock, compares with what was reviewed, applies
	RunDrift   RunKind = "drift"   // plans the last applied root
	RunDestroy RunKind = "destroy" // destroys from the last applied root
	RunState   RunKind = "state"   // puts the state right: pushes one that could not be saved, or unlocks it
	RunUnlock  RunKind = "unlock"  // unlocks a state with code that may be of a pull request: what a plan of it may do, and no more
)

// AgentKinds returns the kinds of runs that agents are configured to execute, in the order
// in which people read them. Others go with one of these: see AgentKind.
func AgentKinds() []RunKind { return []RunKind{RunPlan, RunApply, RunDrift, RunDestroy} }

// ParseAgentKinds returns the kinds among AgentKinds that words name; an error says
// which word is not one of them.
func ParseAgentKinds(words []string) ([]RunKind, error) {
	var kinds []RunKind
	for _, word := range words {
		if !slices.Contains(AgentKinds(), RunKind(word)) {
			return nil, fmt.Errorf("there is no kind of run %q: want one of %s", word, KindNames(AgentKinds()))
		}
		kinds = append(kinds, RunKind(word))
	}
	return kinds, nil
}

// KindNames are kinds of runs in a line, such as "plan, drift".
func KindNames(kinds []RunKind) string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	return strings.Join(names, ", ")
}

// Writes reports whether runs of this kind may change infrastructure or state.
func (k RunKind) Writes() bool { return k.Applies() || k == RunState }

// Applies reports whether runs of this kind change infrastructure.
func (k RunKind) Applies() bool { return k == RunApply || k == RunDestroy }

// Plans reports whether runs of this kind make a plan. Others put a state right.
func (k RunKind) Plans() bool { return k != RunState && k != RunUnlock }

// OnlyPlans reports whether runs of this kind make a plan and change nothing.
func (k RunKind) OnlyPlans() bool { return k.Plans() && !k.Writes() }

// AgentKind is the one of AgentKinds whose agents execute runs of this kind, too: who may
// apply puts states right, and who may plan releases locks.
func (k RunKind) AgentKind() RunKind {
	switch k {
	case RunState:
		return RunApply
	case RunUnlock:
		return RunPlan
	default:
		return k
	}
}

// RunStatus is where a run is in its life:
//
//	queued → running → planned | applied | no_changes | errored | canceled | interrupted
//
// with retrying (a backoff) between two attempts. A wait for a person, a window or
// another run is the cluster's: a run has no status for that.
type RunStatus string

// The statuses of runs.
const (
	RunQueued      RunStatus = "queued"      // an agent may claim it
	RunRunning     RunStatus = "running"     // an agent executes it
	RunRetrying    RunStatus = "retrying"    // failed for a transient cause; claimable again at NotBefore
	RunPlanned     RunStatus = "planned"     // ended: there is a plan with changes, nothing was applied
	RunApplied     RunStatus = "applied"     // ended: the changes were made
	RunNoChanges   RunStatus = "no_changes"  // ended: there was nothing to do
	RunErrored     RunStatus = "errored"     // ended: the engine or the workspace failed
	RunCanceled    RunStatus = "canceled"    // ended: by a person, a newer head or a pre-empting apply
	RunInterrupted RunStatus = "interrupted" // ended: its agent or engine died; what it did may be unrecorded
)

// Done reports whether the run has ended. The zero status has not begun.
func (s RunStatus) Done() bool {
	switch s {
	case RunPlanned, RunApplied, RunNoChanges, RunErrored, RunCanceled, RunInterrupted:
		return true
	default:
		return false
	}
}

// Pending reports whether the run is still to be executed.
func (s RunStatus) Pending() bool {
	return s == RunQueued || s == RunRetrying
}

// Good reports whether a run that ended with this status did what it was for.
func (s RunStatus) Good() bool {
	return s == RunPlanned || s == RunApplied || s == RunNoChanges
}

// Run is one execution for one cluster. It is durable; its attempts are the
// tries of agents at it.
type Run struct {
	ID      string    `json:"id"`
	Cluster string    `json:"cluster"`
	Kind    RunKind   `json:"kind"`
	Status  RunStatus `json:"status"`
	Reason  Reason    `json:"reason,omitempty"` // PascalCase, stable: why it has this status
	Detail  string    `json:"detail,omitempty"` // the reason in a sentence, for people
	// Runner is the one whose agents execute it, which is that of its environment: the store
	// fills it in with the run. One from before there were runners has none: see RunnerName.
	Runner string `json:"runner,omitempty"`

	RunSpec
	RunProgress
	RunOutcome

	CreatedAt  time.Time `json:"createdAt"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	Version    int64     `json:"version"` // optimistic: a write with another version is an ErrConflict
}

// RunSpec is what a run was made for. It stays as it was when the run was queued.
type RunSpec struct {
	PullRequest   PullRequestRef `json:"pullRequest,omitzero"` // zero: the tracked branch
	Repo          string         `json:"repo"`                 // the repository that the cluster's document comes from
	Revision      Revision       `json:"revision"`             // the pull request's head, or the tracked branch's
	Base          Revision       `json:"base,omitempty"`       // the base that Revision was merged with, for a pull request
	SourceDigest  Digest         `json:"sourceDigest"`         // what Git says
	Bundle        Digest         `json:"bundle"`               // the root module, content-addressed
	Dir           string         `json:"dir"`                  // the root module's folder inside the bundle
	Document      Cluster        `json:"document"`             // the cluster as it was planned or applied
	StateLocation string         `json:"stateLocation"`        // see StateKey
	Stored        *StoredState   `json:"stored,omitempty"`     // how it is reached, if that is in the storage of a runner
	Template      string         `json:"template,omitempty"`   // "name@version" and its commit, for people
	// OutputRoles says which outputs mean something to Holdfast: OutputRoleEndpoint and its
	// like to the output's name.
	OutputRoles map[string]string `json:"outputRoles,omitempty"`
	Reviews     []Review          `json:"reviews,omitempty"` // apply: plans of which one must be what this run finds
	// Shown is the run whose plan an apply has to match, whatever else was
	// reviewed: a person has asked for it, or it is what reverts a drift. Empty: any
	// of Reviews. It is one of Reviews.
	Shown string `json:"shown,omitempty"`
	// Provisional are clusters that this one depends on and whose own apply was
	// still to come when the plan was made.
	Provisional []string  `json:"provisional,omitempty"`
	State       *StateJob `json:"state,omitempty"`       // of kind RunState or RunUnlock: what it does; nil of any other
	Actor       string    `json:"actor,omitempty"`       // who asked for it; empty: a merge or the schedule
	TraceParent string    `json:"traceParent,omitempty"` // W3C trace context of the delivery

	RunMode
}

// RunMode is how a run differs from others of its kind. The zero value is the usual.
type RunMode struct {
	Resume  bool `json:"resume,omitempty"`  // apply: continues after a failed one; a subset of a review suffices
	Destroy bool `json:"destroy,omitempty"` // plan: of a destruction of what was last applied
	// Sample: the plan shows what a pull request of a template would do to a
	// cluster that its merge leaves as it is. It reviews nothing.
	Sample bool `json:"sample,omitempty"`
	// Background: nobody waits for it, and everything else goes first. On the tracked
	// branch it is the first plan of a cluster.
	Background bool `json:"background,omitempty"`
	// Exact: the engine is that of the last applied run, at its very version,
	// whatever the constraints say: drift and destruction.
	Exact bool `json:"exact,omitempty"`
}

// RunProgress is where a run is: its attempts, and what was on record when the newest
// of them claimed it.
type RunProgress struct {
	AppliedRun  string `json:"appliedRun,omitempty"`  // the cluster's newest apply that had begun
	StateSerial int64  `json:"stateSerial,omitempty"` // of Holdfast's own backend
	// PoliciesGiven is the set of policies that the newest attempt was to evaluate; empty: none.
	PoliciesGiven Digest `json:"policiesGiven,omitempty"`
	// PolicyWaivers are the documents that waived some of these then.
	PolicyWaivers []PolicyWaiver `json:"policyWaivers,omitempty"`

	Attempt int    `json:"attempt"` // of the current or last attempt, from 1; 0 before the first
	Fence   int64  `json:"fence"`   // grows with every claim in the fleet
	Agent   string `json:"agent,omitempty"`
	// AgentProcess and AgentFolder are those of the protocol.ClaimRequest that it was handed
	// out for.
	AgentProcess string    `json:"agentProcess,omitempty"`
	AgentFolder  string    `json:"agentFolder,omitempty"`
	Retries      int       `json:"retries"`              // attempts that failed for a transient cause
	NotBefore    time.Time `json:"notBefore,omitzero"`   // retrying: when it is claimable again
	LockedSince  time.Time `json:"lockedSince,omitzero"` // the first of the newest attempts that did not get the lock of the state's backend
	HeartbeatAt  time.Time `json:"heartbeatAt,omitzero"` // of the current attempt
	Cancel       Reason    `json:"cancel,omitempty"`     // the reason why the running attempt should stop; empty: continue
	Step         string    `json:"step,omitempty"`       // what the attempt does now: prepare, init, plan, apply, ...
	Begun        bool      `json:"begun,omitempty"`      // the engine's apply was started, or may have been: something may have changed
}

// RunOutcome is the outcome of a run. The plan itself is a separate document.
type RunOutcome struct {
	InputDigest   Digest   `json:"inputDigest,omitempty"`
	EngineName    string   `json:"engineName,omitempty"`
	EngineVersion string   `json:"engineVersion,omitempty"`
	Fingerprint   Digest   `json:"fingerprint,omitempty"`
	PlanDigest    Digest   `json:"planDigest,omitempty"` // of the plan document; empty: there is none
	Counts        Counts   `json:"counts,omitzero"`
	Matched       string   `json:"matched,omitempty"` // apply: the reviewed run that the plan was equal to
	Failure       *Failure `json:"failure,omitempty"`
	// Policies are what policies say of the plan; nil: none were evaluated.
	Policies *PolicyReport `json:"policies,omitempty"`
	// Cost is what the plan changes of the monthly price, as Cost.Brief; nil: it was not
	// estimated. It is not compared: a price that moves holds nobody.
	Cost     *Cost     `json:"cost,omitempty"`
	PostedAt time.Time `json:"postedAt,omitzero"` // when a comment that shows this plan was posted, by the forge's clock
}

// AttemptRef names one attempt of a run, with the fence that its writes carry.
type AttemptRef struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Fence   int64  `json:"fence"`
}

// RunBrief is what says what the current attempt at a run may do.
type RunBrief struct {
	AttemptRef
	Cluster       string
	Kind          RunKind
	Status        RunStatus
	StateLocation string // what it excludes others from
	Bundle        Digest
}

// Owner is the name of an attempt as the owner of a lock.
func (r AttemptRef) Owner() string { return r.Run + "/" + strconv.Itoa(r.Attempt) }

// RunnerName is the runner whose agents execute the run.
func (r Run) RunnerName() string { return cmp.Or(r.Runner, LocalRunner) }

// Destroys reports whether the run is about the destruction of its cluster.
func (r Run) Destroys() bool { return r.Kind == RunDestroy || r.Destroy }

// StandsFor reports whether the run is of the merge of a pull request, among others.
func (r Run) StandsFor(pr PullRequestRef) bool {
	return slices.ContainsFunc(r.Reviews, func(v Review) bool { return v.PullRequest == pr })
}

// Ref returns the run's current attempt.
func (r Run) Ref() AttemptRef {
	return AttemptRef{Run: r.ID, Attempt: r.Attempt, Fence: r.Fence}
}

// StoreOfEnvironment ends the location of a state that the arguments of its backend would
// name alone, if the environment of the engine did not lead to another store for another
// project or environment.
const StoreOfEnvironment = ",store=environment"

// StateKey is what those exclude each other from that have a state location: credentials
// that change while a run is executed, or an argument that a document is given, add
// StoreOfEnvironment to the location of the same state, or take it away.
func StateKey(location string) string { return strings.TrimSuffix(location, StoreOfEnvironment) }

// StateKey is that of a run: of its cluster's state in Holdfast's own backend if it does
// not say where its state is.
func (r Run) StateKey() string {
	if r.StateLocation == "" {
		return "clusters/" + r.Cluster
	}
	return StateKey(r.StateLocation)
}

// OwnState reports whether a state location is in Holdfast's own backend.
func OwnState(location string) bool {
	dir, _ := path.Split(location)
	return dir == "clusters/"
}

// Attempt is one try at a run, kept for its history.
type Attempt struct {
	Run       string    `json:"run"`
	Attempt   int       `json:"attempt"`
	Fence     int64     `json:"fence"`
	Agent     string    `json:"agent"`
	Status    RunStatus `json:"status"` // running, or how it ended
	Reason    Reason    `json:"reason,omitempty"`
	ClaimedAt time.Time `json:"claimedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
}

// Review is a plan that people have seen before they merged, or approved.
type Review struct {
	PullRequest PullRequestRef `json:"pullRequest,omitzero"`
	Run         string         `json:"run"`
	InputDigest Digest         `json:"inputDigest"`
	Fingerprint Digest         `json:"fingerprint"`
	// PlanDigest is of the plan document that was shown. Empty: the plan was made
	// before there were any, and nothing is equal to it.
	PlanDigest Digest `json:"planDigest,omitempty"`
	// Policies is the Verdict of the policies on the plan; empty: none were evaluated.
	Policies Digest `json:"policies,omitempty"`
}

// Failure says why a run did not do what it was for.
type Failure struct {
	Step        string       `json:"step"`    // prepare, init, plan, show, apply, outputs
	Summary     string       `json:"summary"` // one line
	Detail      string       `json:"detail,omitempty"`
	Hint        string       `json:"hint,omitempty"` // what to do about it
	Cause       Reason       `json:"cause"`          // PascalCase, stable: Throttled, Network, InvalidConfiguration, Timeout, ...
	Transient   bool         `json:"transient"`      // a later attempt may succeed without a change
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	Unrecorded  []string     `json:"unrecorded,omitempty"` // addresses of what may exist without being in the state
	Address     string       `json:"address,omitempty"`    // the resource that it failed at
	Completed   []string     `json:"completed,omitempty"`  // what was done before: "aws_vpc.main: created", in the order of its doing, at most MaxCompleted
	Remaining   []string     `json:"remaining,omitempty"`  // a destroy: addresses that are left in the state, at most 200
	// ProgressLost says that the apply may have begun or completed more than is listed.
	ProgressLost bool `json:"progressLost,omitempty"`
	Crashed      bool `json:"crashed,omitempty"` // the engine was killed or died: it may not have released the state's lock
}

// MaxCompleted is how many entries Failure.Completed has at most. CreatedSuffix is how
// that of a created resource ends, after its address.
const (
	MaxCompleted  = 200
	CreatedSuffix = ": created"
)

// Diagnostic is an error or a warning of the engine.
type Diagnostic struct {
	Severity string `json:"severity"` // error or warning
	Summary  string `json:"summary"`
	Detail   string `json:"detail,omitempty"`
	Address  string `json:"address,omitempty"`
	File     string `json:"file,omitempty"` // in the repository, or in the root module if that is rendered
	Line     int    `json:"line,omitempty"`
	Snippet  string `json:"snippet,omitempty"` // the code that it is about, and what is in it, as the engine shows them
}

// RunFilter selects runs. Zero fields select all.
type RunFilter struct {
	Cluster     string
	PullRequest *PullRequestRef // the zero PullRequestRef selects runs of tracked branches
	Kinds       []RunKind
	Statuses    []RunStatus
	Projects    []string `json:",omitempty"` // of clusters of these; empty means all
	Limit       int      // newest first; zero means 100
	After       RunMark  `json:",omitzero"` // only those that the list has after this place
}

// RunMark is a place in a list of runs: that of the run with this ID.
type RunMark struct {
	CreatedAt time.Time
	ID        string
}

// ClaimFilter says which runs an agent may be offered. Zero fields exclude
// nothing.
type ClaimFilter struct {
	Now       time.Time
	Kinds     []RunKind // only these; empty means all
	Projects  []string  // only those of clusters of these projects; empty means all
	Capped    []string  // not those of clusters of these projects
	Providers []string  // not those of clusters with these providers
	Runner    string    // only those of this runner; empty means all
	Limit     int       // at most so many
	Turns     Turns     // the order of the lanes; nil: by priority, then the oldest run

	CappedRepos []string         // not those of pull requests of these repositories
	NoFirst     bool             // not those of PriorityFirst
	Unread      []string         // no applies and destroys of pull requests of these repositories
	Unplanned   []PullRequestRef // no plans of these pull requests
}

// PriorityFirst is the priority of the first plans of clusters: all others go first.
const PriorityFirst = 5

// First reports whether r is the first plan of a cluster that was found in Git, was never
// applied, and that no merge brought.
func (r Run) First() bool { return r.Kind == RunPlan && r.Background && r.PullRequest.IsZero() }

// Lane is the runs that are in one line to be handed out, the oldest first: those of
// one priority, pull request, project, provider, kind and runner.
type Lane struct {
	Priority    int            // lower ones go first; 0 is of what writes, less of what releases a lock
	PullRequest PullRequestRef // that they were made for, or whose reviews they apply; zero: none
	Project     string         // of their clusters
	Provider    string         // of their clusters
	Kind        RunKind
	Runner      string
	More        bool // others wait behind the first
	// Since is when the first of them was created that may be handed out; of a lane that
	// was served, when it last was.
	Since time.Time
}

// QueueFilter says which part of the queue is wanted.
type QueueFilter struct {
	Now      time.Time
	Projects []string // only runs of clusters of these; empty: all. Positions are those in the whole queue.
	Runner   string   // only runs of this runner; empty: all. As with Projects, positions are those in the whole queue.
	After    int      // only those behind this position
	Limit    int      // at most so many
	Turns    Turns    // as in ClaimFilter
}

// QueuedRun is a run that waits to be handed out.
type QueuedRun struct {
	Position int // from 1, if nothing that waits is held back and nothing else comes
	Run      Run
	Ahead    Ahead
	Reason   Reason // what holds it back besides its turn; empty: nothing
	Detail   string // that in a sentence
}

// Ahead counts the runs that go before a run, by the reason.
type Ahead struct {
	Priority int // their kind goes first
	Own      int // older ones of the same pull request, or project
	Others   int // turns of other pull requests and projects
	Overdue  int // of a kind that goes later, and that has waited for too long
}

// Turns say which lane is next. They are not safe for concurrent use.
type Turns interface {
	// Next returns the index of the lane whose first run is next; there is at least one.
	Next(lanes []Lane) int
	// Took is notified that the first run of that lane comes next.
	Took(lane Lane)
}
