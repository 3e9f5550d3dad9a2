package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// DriftState is the drift of a cluster.
type DriftState struct {
	Status    holdfast.DriftStatus `json:"status,omitempty"`   // Absent: not checked since the cluster was first applied.
	Run       string               `json:"run,omitempty"`      // The last drift check that ended.
	Applied   string               `json:"applied,omitempty"`  // The apply that it was compared with.
	CheckedAt time.Time            `json:"checkedAt,omitzero"` // When that check ended.
	Due       time.Time            `json:"due,omitzero"`       // When the next check is; absent: none is planned.
	Since     time.Time            `json:"since,omitzero"`     // When the status became what it is.
	// The digest of drift that is not ignored: nobody is notified again until it changes.
	Fingerprint holdfast.Digest `json:"fingerprint,omitempty"`
	Counts      DriftCounts     `json:"counts,omitzero"`
	Destroys    bool            `json:"destroys,omitempty"` // Reverting the drift would destroy or replace something.
	Hides       bool            `json:"hides,omitempty"`    // Reverting it would also change what an ignore rule hides.
	Causes      []string        `json:"causes,omitempty"`   // What drifted, without where, such as "aws_eks_node_group scaling_config"; at most 20.
	Failures    int             `json:"failures,omitempty"` // Failed checks in a row.
	Detail      string          `json:"detail,omitempty"`   // Why the last check failed.
	Revert      string          `json:"revert,omitempty"`   // The apply that reverted this drift, or tried to.
	Hold        string          `json:"hold,omitempty"`     // Why drift that should be reverted is not.
}

// DriftStateOf returns what the API says of a cluster's drift.
func DriftStateOf(s holdfast.DriftState) DriftState {
	return DriftState{
		Status: s.Status, Run: s.Run, Applied: s.Applied, CheckedAt: s.CheckedAt, Due: s.Due, Since: s.Since, Fingerprint: s.Fingerprint,
		Counts: DriftCounts(s.Counts), Destroys: s.Destroys, Hides: s.Hides, Causes: s.Causes, Failures: s.Failures, Detail: s.Detail,
		Revert: s.Revert, Hold: s.Hold,
	}
}

func (s DriftState) state() holdfast.DriftState {
	return holdfast.DriftState{
		Status: s.Status, Run: s.Run, Applied: s.Applied, CheckedAt: s.CheckedAt, Due: s.Due, Since: s.Since, Fingerprint: s.Fingerprint,
		Counts: holdfast.DriftCounts(s.Counts), Destroys: s.Destroys, Hides: s.Hides, Causes: s.Causes, Failures: s.Failures, Detail: s.Detail,
		Revert: s.Revert, Hold: s.Hold,
	}
}

// DriftCounts are numbers of resources.
type DriftCounts struct {
	Changed  int `json:"changed"`  // Attributes differ from what was applied.
	Gone     int `json:"gone"`     // They no longer exist.
	Input    int `json:"input"`    // An apply would change them, because an input that the code reads from elsewhere has changed.
	Harmless int `json:"harmless"` // They differ, and an apply would not change them.
	Ignored  int `json:"ignored"`  // Hidden by rules, wholly or in part.
}

// Drifted is how many count as drift.
func (c DriftCounts) Drifted() int { return holdfast.DriftCounts(c).Drifted() }

// DriftLine is a cluster in the list of drifted clusters.
type DriftLine struct {
	Cluster     string `json:"cluster"`
	Owner       string `json:"owner"`
	Project     string `json:"project"`
	Environment string `json:"environment"`
	// Whole for clusters that have drifted or whose check failed. Of others it has the
	// status, the counts, and when the checks were and will be.
	State      DriftState      `json:"state"`
	OnDrift    string          `json:"onDrift,omitempty"`    // report, apply or ignore: of clusters that have drifted or whose check failed.
	NotApplied bool            `json:"notApplied,omitempty"` // Desired and applied differ, which is not drift.
	Waiting    holdfast.Reason `json:"waiting,omitempty"`    // What the cluster waits for.
	Issue      string          `json:"issue,omitempty"`      // The number of its open issue, or of the one of many clusters.
}

// DriftReport is what a drift check has found of one cluster.
type DriftReport struct {
	Cluster    string            `json:"cluster"`
	Document   Document          `json:"document,omitzero"` // As it was applied.
	State      DriftState        `json:"state"`
	Items      []DriftItem       `json:"items,omitempty"`      // The most dangerous first.
	NotApplied bool              `json:"notApplied,omitempty"` // Desired and applied differ, which is not drift.
	Waiting    holdfast.Reason   `json:"waiting,omitempty"`    // What the cluster waits for.
	Windows    string            `json:"windows,omitempty"`    // "closed", and until when if that is known: no apply may begin now. Absent: the windows are open.
	Template   string            `json:"template,omitempty"`   // "name@version" that was applied.
	Revision   holdfast.Revision `json:"revision,omitempty"`   // The one that was applied.
	Failure    *Failure          `json:"failure,omitempty"`    // Why the last check failed.
	Revert     *Run              `json:"revert,omitempty"`     // The apply that reverted this drift, or tried to.
}

// DriftReportOf returns what the API says of a drift report.
func DriftReportOf(r holdfast.DriftReport) DriftReport {
	report := DriftReport{
		Cluster: r.Cluster, Document: DocumentOf(r.Document), State: DriftStateOf(r.State), Items: all(r.Items, driftItemOf),
		NotApplied: r.NotApplied, Waiting: r.Waiting, Windows: r.Windows, Template: r.Template, Revision: r.Revision,
		Failure: failureOf(r.Failure),
	}
	if r.Revert != nil {
		revert := RunOf(*r.Revert)
		report.Revert = &revert
	}
	return report
}

// Report returns the report in the vocabulary of Holdfast, with what is needed to say it
// in words.
func (r DriftReport) Report() holdfast.DriftReport {
	report := holdfast.DriftReport{
		Cluster: r.Cluster, State: r.State.state(), Items: all(r.Items, DriftItem.item), NotApplied: r.NotApplied, Waiting: r.Waiting,
		Windows: r.Windows, Template: r.Template, Revision: r.Revision, Failure: r.Failure.Failure(),
		Document: holdfast.Cluster{
			Name: r.Document.Name, Project: r.Document.Project, Environment: r.Document.Environment,
			Drift: holdfast.DriftSettings{Schedule: r.Document.Drift.Schedule, TimeZone: r.Document.Drift.TimeZone, OnDrift: r.Document.Drift.OnDrift},
		},
	}
	if r.Revert != nil {
		revert := r.Revert.Run()
		report.Revert = &revert
	}
	return report
}

// DriftItem is one resource that differs from the last apply.
type DriftItem struct {
	Address string                `json:"address"`
	Type    string                `json:"type"`
	Kind    holdfast.DriftKind    `json:"kind"`
	Action  holdfast.ChangeAction `json:"action,omitempty"` // What an apply would do with it; absent: nothing.
	// What differs: before as it was applied, after as it is. Of the kind input: before as
	// it is, after as an apply would make it.
	Attributes []AttributeChange `json:"attributes,omitempty"`
	Ignored    string            `json:"ignored,omitempty"` // The reason of the rule that hides it. A partly hidden resource has two items.
}

func driftItemOf(i holdfast.DriftItem) DriftItem {
	return DriftItem{
		Address: i.Address, Type: i.Type, Kind: i.Kind, Action: i.Action, Attributes: all(i.Attributes, attributeChangeOf), Ignored: i.Ignored,
	}
}

func (i DriftItem) item() holdfast.DriftItem {
	return holdfast.DriftItem{
		Address: i.Address, Type: i.Type, Kind: i.Kind, Action: i.Action, Attributes: all(i.Attributes, AttributeChange.change), Ignored: i.Ignored,
	}
}
