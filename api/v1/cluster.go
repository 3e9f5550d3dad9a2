package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Cluster is what Holdfast knows of a cluster.
type Cluster struct {
	Name  string `json:"name"`
	Owner string `json:"owner"` // The repository that the name belongs to; provisional before the first apply.
	// The repository is no longer in the configuration: the cluster is not managed.
	Unwatched bool       `json:"unwatched,omitempty"`
	Desired   Desired    `json:"desired"`
	Applied   Applied    `json:"applied,omitzero"` // Absent: it was never applied, or its state is of a project that the token does not have.
	UpToDate  bool       `json:"upToDate"`         // The desired state is applied.
	Drift     DriftState `json:"drift,omitzero"`   // Absent: it was never checked.

	StateSerial   int64     `json:"stateSerial,omitempty"` // Of the newest version in Holdfast's own backend.
	Suspended     bool      `json:"suspended,omitempty"`   // The cluster itself, apart from its project and the fleet.
	SuspendReason string    `json:"suspendReason,omitempty"`
	SuspendedBy   string    `json:"suspendedBy,omitempty"`
	SuspendedAt   time.Time `json:"suspendedAt,omitzero"`
	ClusterWaiting
	Phase      holdfast.Phase `json:"phase"`
	Conditions []Condition    `json:"conditions,omitempty"` // At most one of each type.
	Life       string         `json:"life,omitempty"`       // The run that ended a former life under this name: runs before it do not count.
	Deletion   *Deletion      `json:"deletion,omitempty"`   // How the cluster ended; absent while it exists.
	MayExist   *MayExist      `json:"mayExist,omitempty"`   // Resources that dead applies may have created without recording them in the state; absent: none.
	UpdatedAt  time.Time      `json:"updatedAt"`
	Version    int64          `json:"version"` // Grows with each change of the cluster.
}

// MayExist are resources that dead applies may have created without recording them in the state.
type MayExist struct {
	Addresses []string `json:"addresses,omitempty"`
	Any       bool     `json:"any,omitempty"` // Not all of them are known.
}

// ClusterWaiting is what a cluster waits for.
type ClusterWaiting struct {
	Waiting       holdfast.Reason   `json:"waiting,omitempty"` // Why desired and applied differ while nothing runs; absent: nothing waits.
	WaitingDetail string            `json:"waitingDetail,omitempty"`
	WaitingFor    holdfast.Revision `json:"waitingFor,omitempty"` // The revision that waits.
	PlannedRun    string            `json:"plannedRun,omitempty"` // Of GET /clusters/{name}: the run whose plan an apply would be of now; absent: no plan waits.
}

// ClusterOf returns what the API says of a cluster.
func ClusterOf(r holdfast.ClusterRecord) Cluster {
	cluster := Cluster{
		Name: r.Name, Owner: r.Owner, Unwatched: r.Unwatched, Drift: DriftStateOf(r.Drift), StateSerial: r.StateSerial,
		Suspended: r.Suspended, SuspendReason: r.SuspendedWhy, SuspendedBy: r.SuspendedBy, SuspendedAt: r.SuspendedAt,
		ClusterWaiting: ClusterWaiting{Waiting: r.Waiting, WaitingDetail: r.WaitingDetail, WaitingFor: r.WaitingFor, PlannedRun: r.PlannedRun},
		Phase:          r.Phase, Conditions: all(r.Conditions, conditionOf), Life: r.Life, UpdatedAt: r.UpdatedAt, Version: r.Version,
		Desired: Desired{
			Revision: r.Desired.Revision, SourceDigest: r.Desired.SourceDigest, Document: DocumentOf(r.Desired.Document),
			Removed: r.Desired.Removed, RemovedWith: r.Desired.RemovedWith, ConfirmedBy: r.Desired.Confirmed, Missing: r.Desired.Missing,
			Faults: all(r.Desired.Faults, faultOf),
		},
	}
	if a := r.Applied; a.Run != "" || a.Revision != "" {
		cluster.Applied = appliedOf(a)
		cluster.UpToDate = !r.Desired.Removed && a.SourceDigest.Equal(r.Desired.SourceDigest)
	}
	if len(r.Left.Addresses) > 0 || r.Left.Any {
		cluster.MayExist = &MayExist{Addresses: r.Left.Addresses, Any: r.Left.Any}
	}
	if r.Deletion != nil {
		ending := Deletion(*r.Deletion)
		cluster.Deletion = &ending
	}
	return cluster
}

// Desired is the configuration of a cluster on the tracked branch.
type Desired struct {
	Revision     holdfast.Revision `json:"revision"`
	SourceDigest holdfast.Digest   `json:"sourceDigest,omitempty"` // Absent: faults say why.
	Document     Document          `json:"document,omitzero"`
	Removed      bool              `json:"removed,omitempty"`     // The document was removed, and the rest of the tree could be read.
	RemovedWith  int               `json:"removedWith,omitempty"` // How many clusters the same revision removed, including this one.
	ConfirmedBy  string            `json:"confirmedBy,omitempty"` // Who confirmed the destroy while dependents had to be destroyed first.
	Missing      string            `json:"missing,omitempty"`     // Why a document that is not found does not count as removed.
	Faults       []Fault           `json:"faults,omitempty"`
}

// Applied is the last applied configuration of a cluster.
type Applied struct {
	Run           string            `json:"run"` // The apply, or the empty plan by which the cluster was adopted.
	Revision      holdfast.Revision `json:"revision"`
	SourceDigest  holdfast.Digest   `json:"sourceDigest"`
	InputDigest   holdfast.Digest   `json:"inputDigest"`
	StateLocation string            `json:"stateLocation,omitempty"`
	Template      string            `json:"template,omitempty"` // "name@version" and its commit.
	EngineName    string            `json:"engineName"`
	EngineVersion string            `json:"engineVersion"`
	Document      Document          `json:"document,omitzero"`
	At            time.Time         `json:"at"`
	Endpoint      string            `json:"endpoint,omitempty"`   // URL of the cluster's API server, if an output has it.
	NodeCount     int               `json:"nodeCount,omitempty"`  // Absent: no output has it.
	Kubeconfig    string            `json:"kubeconfig,omitempty"` // The name of the output that has the kubeconfig.
	// The run that outputs, endpoint and nodeCount are of, if it is not run: an apply since that failed partway through, or a drift check.
	OutputsRun string `json:"outputsRun,omitempty"`
}

func appliedOf(a holdfast.Applied) Applied {
	return Applied{
		Run: a.Run, Revision: a.Revision, SourceDigest: a.SourceDigest, InputDigest: a.InputDigest, StateLocation: a.StateLocation,
		Template: a.Template, EngineName: a.EngineName, EngineVersion: a.EngineVersion, Document: DocumentOf(a.Document), At: a.At,
		Endpoint: a.Endpoint, NodeCount: a.NodeCount, Kubeconfig: a.Kubeconfig, OutputsRun: a.OutputsRun,
	}
}

// Condition is a statement about a cluster that is true, false or unknown.
type Condition struct {
	Type    holdfast.ConditionType   `json:"type"`
	Status  holdfast.ConditionStatus `json:"status"`
	Reason  holdfast.Reason          `json:"reason"`
	Message string                   `json:"message,omitempty"`
	Since   time.Time                `json:"since"` // When the status became what it is.
}

func conditionOf(c holdfast.Condition) Condition { return Condition(c) }

// Deletion is how a cluster ended.
type Deletion struct {
	At       time.Time         `json:"at"`
	Reason   holdfast.Reason   `json:"reason"`        // Destroyed, NeverApplied or Renamed.
	Run      string            `json:"run,omitempty"` // The destroy.
	Revision holdfast.Revision `json:"revision"`      // The first one without the document.
	To       string            `json:"to,omitempty"`  // Of a renamed cluster: its new name.
}

// ClusterSummary is a cluster in a list.
type ClusterSummary struct {
	Name        string               `json:"name"`
	Owner       string               `json:"owner"`               // The repository that the name belongs to.
	Unwatched   bool                 `json:"unwatched,omitempty"` // The repository is no longer in the configuration.
	Project     string               `json:"project"`
	Environment string               `json:"environment"`
	Provider    string               `json:"provider,omitempty"`
	Labels      map[string]string    `json:"labels,omitempty"`
	Template    string               `json:"template,omitempty"` // "name@version" that is desired.
	Phase       holdfast.Phase       `json:"phase"`
	Waiting     holdfast.Reason      `json:"waiting,omitempty"`   // Why desired and applied differ while nothing runs.
	Suspended   bool                 `json:"suspended,omitempty"` // The cluster itself, its project, or the fleet.
	Invalid     bool                 `json:"invalid,omitempty"`   // Its document has faults.
	Removed     bool                 `json:"removed,omitempty"`   // Its document was removed.
	UpToDate    bool                 `json:"upToDate"`            // The desired state is applied.
	Drift       holdfast.DriftStatus `json:"drift,omitempty"`     // What the last drift check found; absent: there was none.
	DriftCounts DriftCounts          `json:"driftCounts,omitzero"`
	CheckedAt   time.Time            `json:"checkedAt,omitzero"` // When it was checked for drift last.
	DriftDue    time.Time            `json:"driftDue,omitzero"`  // When the next drift check is.
	Applied     AppliedRevision      `json:"applied,omitzero"`   // Absent: it was never applied.
	UpdatedAt   time.Time            `json:"updatedAt"`
}

// AppliedRevision is what a list says of the last applied configuration.
type AppliedRevision struct {
	Revision holdfast.Revision `json:"revision"`
}

// ClusterSummaryOf returns what a list says of a cluster.
func ClusterSummaryOf(s holdfast.ClusterSummary) ClusterSummary {
	return ClusterSummary{
		Name: s.Name, Owner: s.Owner, Unwatched: s.Unwatched, Project: s.Project, Environment: s.Environment, Provider: s.Provider, Labels: s.Labels,
		Template: s.Template, Phase: s.Phase, Waiting: s.Waiting, Suspended: s.Suspended, Invalid: s.Invalid, Removed: s.Removed,
		UpToDate: s.UpToDate, Drift: s.Drift, DriftCounts: DriftCounts(s.DriftCounts), CheckedAt: s.CheckedAt, DriftDue: s.DriftDue,
		Applied: AppliedRevision(s.Applied), UpdatedAt: s.UpdatedAt,
	}
}

// Transition is a change of a cluster's phase or of one of its conditions.
type Transition struct {
	Cluster string          `json:"cluster"`
	At      time.Time       `json:"at"`
	What    string          `json:"what"` // "phase", or the type of a condition.
	From    string          `json:"from,omitempty"`
	To      string          `json:"to"`
	Reason  holdfast.Reason `json:"reason,omitempty"`
	Run     string          `json:"run,omitempty"` // The run that caused it.
}

// TransitionOf returns what the API says of a transition.
func TransitionOf(t holdfast.Transition) Transition { return Transition(t) }

// Relation is a cluster that another one depends on, or that depends on it.
type Relation struct {
	Name      string         `json:"name"`
	Phase     holdfast.Phase `json:"phase,omitempty"` // Absent: there is no such cluster.
	Waiting   string         `json:"waiting,omitempty"`
	Settled   bool           `json:"settled,omitempty"`   // What is desired of it is applied, and nothing runs.
	Failed    bool           `json:"failed,omitempty"`    // Its last apply, or the plan that an apply waits for, failed.
	Relations []Relation     `json:"relations,omitempty"` // Its own, in the same direction.
}

func relationOf(r holdfast.Relation) Relation {
	return Relation{Name: r.Name, Phase: r.Phase, Waiting: r.Waiting, Settled: r.Settled, Failed: r.Failed, Relations: all(r.Relations, relationOf)}
}

// Family is what a cluster depends on, and what depends on it.
type Family struct {
	Parents    []Relation `json:"parents,omitempty"`    // What it depends on.
	Dependents []Relation `json:"dependents,omitempty"` // What depends on it.
}

// FamilyOf returns what the API says of a family.
func FamilyOf(f holdfast.Family) Family {
	return Family{Parents: all(f.Parents, relationOf), Dependents: all(f.Dependents, relationOf)}
}

// Resource is one resource instance in a cluster's state.
type Resource struct {
	Cluster   string    `json:"cluster,omitempty"`
	Address   string    `json:"address"`
	Type      string    `json:"type"`
	Provider  string    `json:"provider,omitempty"` // Its source address, such as registry.terraform.io/hashicorp/aws.
	ID        string    `json:"id,omitempty"`       // The provider's; absent if it has none, or a secret one.
	Run       string    `json:"run,omitempty"`      // The apply that created or changed it last; absent: none of Holdfast's.
	ChangedAt time.Time `json:"changedAt,omitzero"`
}

// ResourceOf returns what the API says of a resource.
func ResourceOf(r holdfast.Resource) Resource { return Resource(r) }

// Suspension stops new runs: of a cluster, of a project's clusters, or of all.
type Suspension struct {
	Cluster string    `json:"cluster,omitempty"`
	Project string    `json:"project,omitempty"` // Absent, as the cluster is: all clusters.
	By      string    `json:"by,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// SuspensionOf returns what the API says of a suspension of many clusters.
func SuspensionOf(s holdfast.Suspension) Suspension {
	return Suspension{Project: s.Project, By: s.By, Reason: s.Reason, At: s.At}
}
