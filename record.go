package holdfast

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Phase is where a cluster is in its life, for people.
type Phase string

// The phases.
const (
	PhasePending      Phase = "Pending"
	PhaseProvisioning Phase = "Provisioning"
	PhaseConfiguring  Phase = "Configuring"
	PhaseActive       Phase = "Active"
	PhaseUpdating     Phase = "Updating"
	PhaseDeleting     Phase = "Deleting"
	PhaseDeleted      Phase = "Deleted"
	PhaseFailed       Phase = "Failed"
)

// Phases returns all phases, in the order of a cluster's life.
func Phases() []Phase {
	return []Phase{PhasePending, PhaseProvisioning, PhaseConfiguring, PhaseActive, PhaseUpdating, PhaseDeleting, PhaseDeleted, PhaseFailed}
}

// ClusterRecord is what Holdfast remembers of a cluster.
type ClusterRecord struct {
	Name string `json:"name"`
	// Owner is the repository that the name belongs to. It is provisional until
	// the first apply: Applied.Run is empty.
	Owner string `json:"owner"`
	// Unwatched: the configuration no longer has that repository. The server fills it in;
	// it is not part of the record.
	Unwatched  bool       `json:"-"`
	PlannedRun string     `json:"-"` // as Unwatched: whose plan an apply would be of; empty: none waits
	Desired    Desired    `json:"desired"`
	Applied    Applied    `json:"applied,omitzero"` // zero: never
	Drift      DriftState `json:"drift,omitzero"`
	// StateSerial is that of the newest state version in Holdfast's own backend; zero elsewhere.
	StateSerial int64 `json:"stateSerial,omitempty"`
	OwnSuspension
	// Waiting says why desired and applied differ while nothing runs, such as
	// Unreviewed; empty when there is nothing to wait for.
	Waiting       Reason `json:"waiting,omitempty"`
	WaitingDetail string `json:"waitingDetail,omitempty"`
	// WaitingFor is the revision that Waiting is about. Until a decision was made
	// about a newer one, nobody knows what that waits for.
	WaitingFor Revision `json:"waitingFor,omitempty"`
	Phase      Phase    `json:"phase"`
	// Conditions are one of each type, in the order of their constants; none in
	// a record that no decision was made about yet.
	Conditions []Condition `json:"conditions,omitempty"`
	// Life is the run that ended the cluster's former life: those before it no longer count.
	Life string `json:"life,omitempty"`
	// Left is what applies have left that died, those under a former name included.
	Left Leftover `json:"left,omitzero"`
	// FormerParents are the clusters on which Desired no longer depends, while an apply
	// does that has begun since the last one that ended well, or has not ended: what that
	// makes is to be destroyed before them.
	FormerParents []string `json:"formerParents,omitempty"`
	// Deletion is how the cluster went; nil while it is there. A document of the
	// same name begins a new life.
	Deletion  *Deletion `json:"deletion,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"` // optimistic
}

// Parents are the clusters that this one depends on, as it is desired, was applied or is
// being applied, sorted.
func (r ClusterRecord) Parents() []string {
	parents := slices.Concat(r.Desired.Document.DependsOn, r.Applied.Document.DependsOn, r.FormerParents)
	slices.Sort(parents)
	return slices.Compact(parents)
}

// OwnSuspension says whether a cluster was suspended by its name, by whom, when and why.
type OwnSuspension struct {
	Suspended    bool      `json:"suspended,omitempty"`
	SuspendedWhy string    `json:"suspendedWhy,omitempty"`
	SuspendedBy  string    `json:"suspendedBy,omitempty"`
	SuspendedAt  time.Time `json:"suspendedAt,omitzero"`
}

// Leftover is what applies that died may have created without its being in the state.
// The zero value: nothing.
type Leftover struct {
	Addresses []string `json:"addresses,omitempty"`
	Any       bool     `json:"any,omitempty"` // what they created is not known, so that it may be anything
	// Source is what they were to apply; empty: it is not known, or not the same of all.
	Source Digest `json:"source,omitempty"`
	// Run is the newest run that was counted: one of them, or one that settled some of them.
	Run string `json:"run,omitempty"`
}

// Desired is what the tracked branch says of a cluster.
type Desired struct {
	Revision     Revision `json:"revision"`
	SourceDigest Digest   `json:"sourceDigest"` // empty: Faults say why
	Document     Cluster  `json:"document"`
	// StateLocation is where the state is to be; empty if it is not known. Stored says how it
	// is reached, if that is in the storage of a runner.
	StateLocation string       `json:"stateLocation,omitempty"`
	Stored        *StoredState `json:"stored,omitempty"`
	// SecretEnv are the names of credentials that the root module's secret variables refer
	// to. With Faults, they are the ones that the document and the last root module refer
	// to.
	SecretEnv   []string `json:"secretEnv,omitempty"`
	Removed     bool     `json:"removed,omitempty"`     // proven gone from a tree that parsed
	RemovedWith int      `json:"removedWith,omitempty"` // how many clusters went with the same revision, itself included
	RemovedFrom int      `json:"removedFrom,omitempty"` // how many clusters of the repository were applied by then
	// Confirmed is who has asked for the destruction while others, which depend
	// on it, had to go first: it need not be confirmed again then.
	Confirmed string `json:"confirmed,omitempty"`
	// Missing says why a document that is not there is not taken for removed;
	// empty if it is there, or Removed.
	Missing string `json:"missing,omitempty"`
	// HeldFor is the name of the document that may be this cluster's, and NewNames are those
	// under which documents said that it continues. What Missing has said of them stays on
	// record here until it is settled, whatever else Missing says meanwhile.
	HeldFor  string   `json:"heldFor,omitempty"`
	NewNames []string `json:"newNames,omitempty"`
	// HeirIn is the other repository that continues the cluster, if it is missing for that.
	HeirIn string `json:"heirIn,omitempty"`
	Faults Faults `json:"faults,omitempty"`
}

// Applied is the last applied configuration of a cluster.
type Applied struct {
	Run           string   `json:"run"` // the apply, or the empty plan by which it was adopted
	Revision      Revision `json:"revision"`
	SourceDigest  Digest   `json:"sourceDigest"`
	InputDigest   Digest   `json:"inputDigest"`
	Bundle        Digest   `json:"bundle"`
	Dir           string   `json:"dir"`
	StateLocation string   `json:"stateLocation,omitempty"`
	// Stored says how the state is reached, if it is in the storage of a runner; Migrated, that
	// the state has moved since: what was applied says where it was before.
	Migrated      bool         `json:"migrated,omitempty"`
	Stored        *StoredState `json:"stored,omitempty"`
	Template      string       `json:"template,omitempty"` // "name@version" and its commit, for people
	EngineName    string       `json:"engineName"`
	EngineVersion string       `json:"engineVersion"`
	// Document is the one that was applied, or a later one that came to the same content.
	Document Cluster   `json:"document"`
	At       time.Time `json:"at"`

	// OutputsRun is the run that the outputs are of, if that is not Run: an apply after it
	// that has begun and failed, or a check that has found everything as it was applied.
	OutputsRun string `json:"outputsRun,omitempty"`
	// OutputRoles is that run's, and the others are what its outputs said: Endpoint and
	// NodeCount the values, Kubeconfig the name of the output that has it.
	OutputRoles map[string]string `json:"outputRoles,omitempty"`
	Endpoint    string            `json:"endpoint,omitempty"`
	NodeCount   int               `json:"nodeCount,omitempty"`
	Kubeconfig  string            `json:"kubeconfig,omitempty"`
	// OutputsUnread: that run has kept its outputs, and they could not be read so far.
	OutputsUnread bool `json:"outputsUnread,omitempty"`
}

// OutputsOf is the run whose outputs are the newest that are known of the state; empty
// if there is none.
func (a Applied) OutputsOf() string { return cmp.Or(a.OutputsRun, a.Run) }

// PullRequestRecord is what Holdfast remembers of a pull request.
type PullRequestRecord struct {
	PullRequest
	Base   Revision `json:"base"`   // head of the base branch that Result was made with
	Result string   `json:"result"` // the tree of the merge result; empty: not mergeable, or not looked at
	// Clusters are the clusters that the pull request affects, with what its merge result says
	// of each.
	Clusters []PullRequestCluster `json:"clusters,omitempty"`
	Faults   Faults               `json:"faults,omitempty"`
	// Settings are sentences on what else the documents say differently: no plan shows it.
	Settings []string `json:"settings,omitempty"`
	// Runners are the changes of runners and rules that it makes.
	Runners []RunnerChange `json:"runners,omitempty"`
	// AllSamples: somebody has asked for plans of all clusters that a change of a
	// template would change, not only of samples. It holds for the head of then.
	AllSamples bool `json:"allSamples,omitempty"`
	// Assessed is of all that the impact on record was made from; empty: there is none.
	Assessed Digest `json:"assessed,omitempty"`
	// Approvals are those given by /holdfast approve.
	Approvals  []Approval `json:"approvals,omitempty"`
	ShownSince time.Time  `json:"-"`              // our comment is as we wrote it since then, by the forge's clock; zero: always
	Left       Revision   `json:"left,omitempty"` // the head that no longer has its merge, after a forced push
	// Unshown are times by the forge's clock, by turns: when our comment came to show none of the
	// plans, as they do not fit or are refused, and when it showed them again. The outbox sets it.
	Unshown []time.Time `json:"unshown,omitempty"`
	// Reason says why nothing is planned: NotMergeable, Fork, Draft, Unreadable, ...
	Reason  Reason `json:"reason,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Version int64  `json:"version"` // optimistic
	// Damaged: what is stored of it cannot be read. Reason and Detail say so, and the rest is
	// what allows least. It is not stored again as it is.
	Damaged bool `json:"-"`
}

// UnshownAt reports whether our comment showed none of the plans at a time.
func (r PullRequestRecord) UnshownAt(at time.Time) bool {
	return len(slices.DeleteFunc(slices.Clone(r.Unshown), at.Before))%2 == 1
}

// Approval is somebody's word that a pull request's head may be applied, as far
// as they had seen what that does.
type Approval struct {
	By   string    `json:"by"`
	Head Revision  `json:"head"`
	At   time.Time `json:"at"`             // by the forge's clock, if it was given in a comment
	Runs []string  `json:"runs,omitempty"` // whose plans were shown then: it is of what these do
	// Clusters are the clusters that it was given for; none: all, as before they were
	// recorded.
	Clusters []string `json:"clusters,omitempty"`

	// CommentID is the comment that gave it, and Said when that got its text. It
	// ends with the comment, and when its giver may no longer write; Ended says
	// how, in words.
	CommentID string    `json:"commentId,omitempty"`
	Said      time.Time `json:"said,omitzero"`
	Ended     string    `json:"ended,omitempty"`
	// Person: By is a name that an identity provider gives, which is nobody's on the code host.
	Person bool `json:"person,omitempty"`

	// Waiver: it approves nothing, and has a policy not count for what it is of.
	Waiver
}

// PullRequestCluster is a cluster as a pull request's merge result has it.
type PullRequestCluster struct {
	Name         string  `json:"name"`
	SourceDigest Digest  `json:"sourceDigest"` // empty: deleted, or at fault
	Removed      bool    `json:"removed,omitempty"`
	Document     Cluster `json:"document"`
	// StateLocation is where its state is to be; empty if it is not known.
	StateLocation string `json:"stateLocation,omitempty"`
	// Added: it was changed while merging. What was seen before the merge did not have
	// it, or said another thing of it.
	Added bool `json:"added,omitempty"`
	// Sample: the pull request changes the template that this cluster is made
	// from, and its merge leaves the cluster as it is. It is planned to show what
	// the new template would do, and its plan is not a review of anything.
	Sample   bool     `json:"sample,omitempty"`
	Repo     string   `json:"repo,omitempty"`     // of a sample: where its document is
	Revision Revision `json:"revision,omitempty"` // of a sample: of Repo
}

// AuditEntry is one line of the audit trail: who did what to what, and why.
type AuditEntry struct {
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`  // a person, a token's name, or "holdfast"
	Action string    `json:"action"` // such as "run.cancel", "cluster.suspend", "cluster.resume"
	Object string    `json:"object"` // a cluster, a run, a pull request
	Detail string    `json:"detail,omitempty"`
	Origin string    `json:"origin,omitempty"` // an address, and what was shown there; empty: OriginOf the context
}

// NewAuditEntry returns an entry; without an actor, Holdfast did it.
func NewAuditEntry(at time.Time, actor, action, object, detail string) AuditEntry {
	return AuditEntry{At: at.UTC(), Actor: cmp.Or(actor, "holdfast"), Action: action, Object: object, Detail: detail}
}

// StateVersion is one version of a state in Holdfast's own backend.
type StateVersion struct {
	Location  string    `json:"location"`
	Version   int64     `json:"version"` // ours: 1, 2, 3, ...
	Serial    int64     `json:"serial"`  // the engine's
	Lineage   string    `json:"lineage"`
	Size      int64     `json:"size"` // bytes
	Run       string    `json:"run"`
	CreatedAt time.Time `json:"createdAt"`
	// Quarantined: refused because its writer had lost its lease; kept, never served.
	Quarantined bool `json:"quarantined,omitempty"`
}

// StateWrite is an upload of a state by a run's attempt.
type StateWrite struct {
	Location string
	LockID   string // the id under which the writer holds the state lock; empty: none given
	By       AttemptRef
	Data     []byte
}

// ClusterFilter selects clusters. Zero fields select all; they are combined by and.
type ClusterFilter struct {
	Names       []string
	Owner       string
	Revision    Revision // where what is desired of them comes from
	Project     string
	Environment string
	Phase       Phase
	Waiting     Reason            // a reason, or "*" for any
	Drift       DriftStatus       // as the last check found it
	Template    string            // name of the template that is desired
	DependsOn   string            // whose documents, desired or applied, name this cluster in dependsOn
	Labels      map[string]string // equal
	Applied     bool              // something was applied of it
	// Deleted selects clusters that are gone, too. Names and Phase select them in any case.
	Deleted bool
	After   string `json:",omitempty"` // only names after this one, of lists by name
	Limit   int    `json:",omitempty"` // zero means no limit
}

// PullRequestFilter selects pull requests, newest number first.
type PullRequestFilter struct {
	Repo    string
	States  []PullRequestState
	Cluster string         // that affect this cluster
	Limit   int            // zero means 100
	After   PullRequestRef `json:",omitzero"` // only those that the list has after this one
	ByMerge bool           // the last merged one first, rather than the newest; without After
}

// RepositoryState is what Holdfast remembers of a repository.
type RepositoryState struct {
	Repo         string    `json:"repo"`
	Head         Revision  `json:"head"`         // of the tracked branch, as it was last taken in
	CommentsSeen time.Time `json:"commentsSeen"` // comments up to then were read
	PolledAt     time.Time `json:"polledAt"`
	LastError    string    `json:"lastError,omitempty"` // why the last look failed
}

// NoBranch is the LastError of a repository that has no tracked branch of that name: it
// was read, and defines no clusters.
func NoBranch(name string) string { return fmt.Sprintf("branch %q does not exist", name) }

// LogRange is a part of an attempt's log.
type LogRange struct {
	Data []byte
	Next int64 // the offset to read from next
	Done bool  // the attempt has ended and there is no more
}

// AppliedLine is what a line says of ClusterRecord.Applied, in the same place.
type AppliedLine struct {
	Revision Revision `json:"revision"`
}

// ClusterSummary is a cluster in a line of a list: what there is to know of it
// without opening its record.
type ClusterSummary struct {
	// Unwatched: the configuration no longer has Owner. The server fills it in; it is not
	// part of the record.
	Unwatched   bool              `json:"-"`
	Name        string            `json:"name"`
	Owner       string            `json:"owner"`
	Project     string            `json:"project"`
	Environment string            `json:"environment"`
	Provider    string            `json:"provider,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Template    string            `json:"template,omitempty"` // "name@version" that is desired
	Phase       Phase             `json:"phase"`
	Waiting     Reason            `json:"waiting,omitempty"`
	Suspended   bool              `json:"suspended,omitempty"` // the cluster itself
	Invalid     bool              `json:"invalid,omitempty"`   // its document has faults
	Removed     bool              `json:"removed,omitempty"`
	UpToDate    bool              `json:"upToDate"` // what is desired is applied
	Drift       DriftStatus       `json:"drift,omitempty"`
	DriftCounts DriftCounts       `json:"driftCounts,omitzero"`
	CheckedAt   time.Time         `json:"checkedAt,omitzero"` // for drift
	DriftDue    time.Time         `json:"driftDue,omitzero"`
	Applied     AppliedLine       `json:"applied,omitzero"` // zero: never
	UpdatedAt   time.Time         `json:"updatedAt"`
}
