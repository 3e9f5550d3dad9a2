package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// PullRequestRef names a pull request.
type PullRequestRef struct {
	Repo   string `json:"repo,omitempty"`   // The repository, as holdfast.yaml names it.
	Number int    `json:"number,omitempty"` // Zero or absent: the tracked branch.
}

// IsZero reports whether p names no pull request.
func (p PullRequestRef) IsZero() bool { return p.Number == 0 }

// String returns "repo#number", nothing for the tracked branch.
func (p PullRequestRef) String() string { return holdfast.PullRequestRef(p).String() }

// Run is one execution for one cluster: a plan, an apply, a drift check, a destroy, or
// a run that repairs a state.
type Run struct {
	ID      string             `json:"id"`
	Cluster string             `json:"cluster"`
	Kind    holdfast.RunKind   `json:"kind"`
	Status  holdfast.RunStatus `json:"status"`
	Reason  holdfast.Reason    `json:"reason,omitempty"` // Why it has this status.
	Detail  string             `json:"detail,omitempty"` // The reason in a sentence.
	Runner  string             `json:"runner"`           // Whose agents execute it: that of its environment.

	RunSpec
	RunProgress
	RunOutcome

	CreatedAt  time.Time `json:"createdAt"`
	StartedAt  time.Time `json:"startedAt,omitzero"`  // When its first attempt was claimed.
	FinishedAt time.Time `json:"finishedAt,omitzero"` // When it ended.
	Version    int64     `json:"version"`             // Grows with each change of the run.
}

// RunSpec is what a run was made for. It stays as it was when the run was queued.
type RunSpec struct {
	PullRequest  PullRequestRef    `json:"pullRequest,omitzero"`   // What it was made for; absent: the tracked branch.
	Repo         string            `json:"repo"`                   // The repository that the cluster's document comes from.
	Revision     holdfast.Revision `json:"revision"`               // The head of the pull request, or of the tracked branch.
	Base         holdfast.Revision `json:"base,omitempty"`         // What Revision was merged with, for a pull request.
	SourceDigest holdfast.Digest   `json:"sourceDigest,omitempty"` // Of what Git says of the cluster at that revision.
	Project      string            `json:"project"`                // The project of the cluster.
	Environment  string            `json:"environment"`            // The environment of the cluster.
	Document     Document          `json:"document,omitzero"`      // The cluster's document as it was planned or applied.
	Template     string            `json:"template,omitempty"`     // The template as "name@version" and its commit.
	// What the run excludes others from: the location of the state.
	StateLocation string `json:"stateLocation,omitempty"`

	Reviews []Review `json:"reviews,omitempty"` // Of an apply: plans of which one must be what it finds.
	// Of an apply: the run whose plan it must match, as a person asked for that plan or
	// as it reverts a drift; absent: any of Reviews.
	Shown       string    `json:"shown,omitempty"`
	Provisional []string  `json:"provisional,omitempty"` // Clusters that it depends on and that were still to be applied when it was planned.
	State       *StateJob `json:"state,omitempty"`       // Of the kinds state and unlock: what it does.
	Actor       string    `json:"actor,omitempty"`       // Who asked for it; absent: a merge or the schedule.
	TraceParent string    `json:"traceParent,omitempty"` // W3C trace context of what caused it.

	RunMode
}

// RunMode is how a run differs from others of its kind.
type RunMode struct {
	Resume  bool `json:"resume,omitempty"`  // Of an apply: it continues a failed one; a part of a review suffices.
	Destroy bool `json:"destroy,omitempty"` // Of a plan: it is a plan of a destroy.
	Sample  bool `json:"sample,omitempty"`  // Of a plan: it shows what a change of a template would do, and reviews nothing.
	// Of a plan, such as the first one of a cluster that was found in Git: nobody waits for
	// it, and everything else goes before it.
	Background bool `json:"background,omitempty"`
}

// RunProgress is where a run is.
type RunProgress struct {
	StateSerial int64           `json:"stateSerial,omitempty"` // Of Holdfast's own backend, when it was claimed.
	Attempt     int             `json:"attempt"`               // The number of the current or last attempt; 0: none has begun.
	Fence       int64           `json:"fence"`                 // Grows with each claim in the fleet.
	Agent       string          `json:"agent,omitempty"`       // Who executes the current or last attempt.
	Retries     int             `json:"retries"`               // Attempts that failed for a transient cause.
	NotBefore   time.Time       `json:"notBefore,omitzero"`    // When a run that is retrying may be claimed again.
	HeartbeatAt time.Time       `json:"heartbeatAt,omitzero"`  // When the agent last reported on the current attempt.
	Cancel      holdfast.Reason `json:"cancel,omitempty"`      // Why the running attempt has to stop; absent: it continues.
	Step        string          `json:"step,omitempty"`        // What the attempt does now: prepare, init, plan, apply, outputs.
	Begun       bool            `json:"begun,omitempty"`       // The engine's apply was started: something may have changed.
}

// RunOutcome is what came of a run. Its plan is read apart.
type RunOutcome struct {
	InputDigest   holdfast.Digest `json:"inputDigest,omitempty"`   // Of all that the plan was made from.
	EngineName    string          `json:"engineName,omitempty"`    // "terraform" or "tofu".
	EngineVersion string          `json:"engineVersion,omitempty"` // The exact version.
	Fingerprint   holdfast.Digest `json:"fingerprint,omitempty"`   // Of what the plan would do.
	PlanDigest    holdfast.Digest `json:"planDigest,omitempty"`    // Of the plan document; absent: there is none.
	Counts        Counts          `json:"counts,omitzero"`         // What its plan changes; absent: nothing, or there is no plan.
	Matched       string          `json:"matched,omitempty"`       // Of an apply: the reviewed run that its plan was equal to.
	Failure       *Failure        `json:"failure,omitempty"`
	Policies      *PolicyReport   `json:"policies,omitempty"` // What policies say of its plan; absent: none were evaluated.
	Cost          *Cost           `json:"cost,omitempty"`     // What its plan changes of the monthly price; absent: it was not estimated.
	PostedAt      time.Time       `json:"postedAt,omitzero"`  // When a comment showed this plan, by the code host's clock.
}

// RunOf returns what the API says of a run.
func RunOf(r holdfast.Run) Run {
	return Run{
		ID: r.ID, Cluster: r.Cluster, Kind: r.Kind, Status: r.Status, Reason: r.Reason, Detail: r.Detail, Runner: r.RunnerName(),
		RunSpec: runSpecOf(r.RunSpec), RunProgress: runProgressOf(r.RunProgress), RunOutcome: runOutcomeOf(r.RunOutcome),
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, Version: r.Version,
	}
}

func runSpecOf(r holdfast.RunSpec) RunSpec {
	spec := RunSpec{
		PullRequest: PullRequestRef(r.PullRequest), Repo: r.Repo, Revision: r.Revision, Base: r.Base, SourceDigest: r.SourceDigest,
		Project: r.Document.Project, Environment: r.Document.Environment, Document: DocumentOf(r.Document), Template: r.Template,
		StateLocation: r.StateLocation, Reviews: all(r.Reviews, reviewOf), Shown: r.Shown, Provisional: r.Provisional,
		RunMode: RunMode{Resume: r.Resume, Destroy: r.Destroy, Sample: r.Sample, Background: r.Background}, Actor: r.Actor, TraceParent: r.TraceParent,
	}
	if r.State != nil {
		spec.State = &StateJob{Action: r.State.Action, From: r.State.From, LockID: r.State.LockID}
		if r.State.Move != nil {
			spec.State.MovedFrom, spec.State.MovedTo = r.State.Move.From, r.State.Move.To
		}
	}
	return spec
}

func runProgressOf(r holdfast.RunProgress) RunProgress {
	return RunProgress{
		StateSerial: r.StateSerial, Attempt: r.Attempt, Fence: r.Fence, Agent: r.Agent, Retries: r.Retries, NotBefore: r.NotBefore,
		HeartbeatAt: r.HeartbeatAt, Cancel: r.Cancel, Step: r.Step, Begun: r.Begun,
	}
}

func runOutcomeOf(r holdfast.RunOutcome) RunOutcome {
	return RunOutcome{
		InputDigest: r.InputDigest, EngineName: r.EngineName, EngineVersion: r.EngineVersion, Fingerprint: r.Fingerprint,
		PlanDigest: r.PlanDigest, Counts: Counts(r.Counts), Matched: r.Matched, Failure: failureOf(r.Failure), Policies: policyReportOf(r.Policies), Cost: costOf(r.Cost), PostedAt: r.PostedAt,
	}
}

// Run returns the run in the vocabulary of Holdfast, with what is needed to say in words
// what it did and what became of it.
func (r Run) Run() holdfast.Run {
	run := holdfast.Run{
		ID: r.ID, Cluster: r.Cluster, Kind: r.Kind, Status: r.Status, Reason: r.Reason, Detail: r.Detail,
		RunSpec: holdfast.RunSpec{
			PullRequest: holdfast.PullRequestRef(r.PullRequest), Repo: r.Repo, Revision: r.Revision, Base: r.Base, SourceDigest: r.SourceDigest,
			Template: r.Template, StateLocation: r.StateLocation, Reviews: all(r.Reviews, Review.review), Shown: r.Shown,
			Provisional: r.Provisional, Actor: r.Actor, RunMode: holdfast.RunMode{Resume: r.Resume, Destroy: r.Destroy, Sample: r.Sample, Background: r.Background},
		},
		RunProgress: holdfast.RunProgress{Attempt: r.Attempt, Retries: r.Retries, Step: r.Step, Begun: r.Begun},
		RunOutcome: holdfast.RunOutcome{
			Fingerprint: r.Fingerprint, PlanDigest: r.PlanDigest, Counts: holdfast.Counts(r.Counts), Matched: r.Matched, Failure: r.Failure.Failure(),
		},
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	}
	if r.State != nil {
		run.State = &holdfast.StateJob{Action: r.State.Action, From: r.State.From, LockID: r.State.LockID}
		if r.State.MovedTo != "" {
			run.State.Move = &holdfast.StateMove{From: r.State.MovedFrom, To: r.State.MovedTo}
		}
	}
	return run
}

// StateJob is what a run of the kind state or unlock does with the state of its cluster.
type StateJob struct {
	Action holdfast.StateAction `json:"action"`
	From   string               `json:"from"`             // The run whose root module, credentials and engine it has.
	LockID string               `json:"lockId,omitempty"` // What unlock releases.
	// Of migrate: the places of the state.
	MovedFrom string `json:"movedFrom,omitempty"`
	MovedTo   string `json:"movedTo,omitempty"`
}

// Review is a plan that people have seen before they merged, or approved.
type Review struct {
	PullRequest PullRequestRef  `json:"pullRequest,omitzero"` // Absent: it was approved by a command.
	Run         string          `json:"run"`                  // The run that made the plan.
	InputDigest holdfast.Digest `json:"inputDigest"`
	Fingerprint holdfast.Digest `json:"fingerprint"`
	PlanDigest  holdfast.Digest `json:"planDigest,omitempty"` // Of the document that was shown.
}

func reviewOf(r holdfast.Review) Review {
	return Review{
		PullRequest: PullRequestRef(r.PullRequest), Run: r.Run, InputDigest: r.InputDigest, Fingerprint: r.Fingerprint, PlanDigest: r.PlanDigest,
	}
}

func (r Review) review() holdfast.Review {
	return holdfast.Review{
		PullRequest: holdfast.PullRequestRef(r.PullRequest), Run: r.Run, InputDigest: r.InputDigest, Fingerprint: r.Fingerprint, PlanDigest: r.PlanDigest,
	}
}

// Attempt is one execution of a run by an agent.
type Attempt struct {
	Run       string             `json:"run"`
	Attempt   int                `json:"attempt"` // Its number, from 1.
	Fence     int64              `json:"fence"`
	Agent     string             `json:"agent"`
	Status    holdfast.RunStatus `json:"status"` // running, or how it ended.
	Reason    holdfast.Reason    `json:"reason,omitempty"`
	ClaimedAt time.Time          `json:"claimedAt"`
	EndedAt   time.Time          `json:"endedAt,omitzero"`
}

// AttemptOf returns what the API says of an attempt.
func AttemptOf(a holdfast.Attempt) Attempt { return Attempt(a) }

// Failure says why a run failed.
type Failure struct {
	Step        string          `json:"step"`    // Where it failed: prepare, init, plan, show, apply, outputs.
	Summary     string          `json:"summary"` // One line.
	Detail      string          `json:"detail,omitempty"`
	Hint        string          `json:"hint,omitempty"` // What to do about it.
	Cause       holdfast.Reason `json:"cause"`
	Transient   bool            `json:"transient"`             // A later attempt may succeed without a change.
	Diagnostics []Diagnostic    `json:"diagnostics,omitempty"` // Engine output.
	Unrecorded  []string        `json:"unrecorded,omitempty"`  // Addresses of resources that may exist without being in the state.
	Address     string          `json:"address,omitempty"`     // The resource that it failed at.
	Completed   []string        `json:"completed,omitempty"`   // Changes before the failure, such as "aws_vpc.main: created"; at most 200.
	Remaining   []string        `json:"remaining,omitempty"`   // Of a destroy: addresses that are left in the state; at most 200.

	ProgressLost bool `json:"progressLost,omitempty"` // The apply may have begun or completed more than is listed.
	Crashed      bool `json:"crashed,omitempty"`      // The engine was killed or died: it may not have released the state's lock.
}

func failureOf(f *holdfast.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{
		Step: f.Step, Summary: f.Summary, Detail: f.Detail, Hint: f.Hint, Cause: f.Cause, Transient: f.Transient,
		Diagnostics: all(f.Diagnostics, diagnosticOf), Unrecorded: f.Unrecorded, Address: f.Address, Completed: f.Completed, Remaining: f.Remaining,
		ProgressLost: f.ProgressLost, Crashed: f.Crashed,
	}
}

// Failure returns the failure in the vocabulary of Holdfast, nil for nil.
func (f *Failure) Failure() *holdfast.Failure {
	if f == nil {
		return nil
	}
	return &holdfast.Failure{
		Step: f.Step, Summary: f.Summary, Detail: f.Detail, Hint: f.Hint, Cause: f.Cause, Transient: f.Transient,
		Diagnostics: all(f.Diagnostics, Diagnostic.diagnostic), Unrecorded: f.Unrecorded, Address: f.Address, Completed: f.Completed, Remaining: f.Remaining,
		ProgressLost: f.ProgressLost, Crashed: f.Crashed,
	}
}

// Diagnostic is an error or a warning of the engine.
type Diagnostic struct {
	Severity string `json:"severity"` // error or warning
	Summary  string `json:"summary"`
	Detail   string `json:"detail,omitempty"`
	Address  string `json:"address,omitempty"`
	File     string `json:"file,omitempty"`    // In the repository, or in the root module if that is rendered.
	Line     int    `json:"line,omitempty"`    // From 1; absent: not known.
	Snippet  string `json:"snippet,omitempty"` // The code that it is about.
}

func diagnosticOf(d holdfast.Diagnostic) Diagnostic  { return Diagnostic(d) }
func (d Diagnostic) diagnostic() holdfast.Diagnostic { return holdfast.Diagnostic(d) }

// all converts the items of a list; nothing stays nothing.
func all[From, To any](items []From, convert func(From) To) []To {
	if items == nil {
		return nil
	}
	out := make([]To, len(items))
	for i, item := range items {
		out[i] = convert(item)
	}
	return out
}
