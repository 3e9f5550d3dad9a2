package holdfast

import "time"

// DriftStatus is what the last drift check found.
type DriftStatus string

// The statuses of drift.
const (
	DriftUnchecked DriftStatus = ""        // not checked since the cluster was first applied
	DriftNone      DriftStatus = "none"    // the infrastructure is as it was applied
	DriftFound     DriftStatus = "drifted" // it is not
	DriftFailed    DriftStatus = "failed"  // the check failed: nothing is known
)

// DriftState is what is remembered of a cluster's drift.
type DriftState struct {
	Status    DriftStatus `json:"status,omitempty"`
	Run       string      `json:"run,omitempty"`      // the last check that ended
	Applied   string      `json:"applied,omitempty"`  // Applied.Run as it was checked
	CheckedAt time.Time   `json:"checkedAt,omitzero"` // when Run ended
	// Due is when the next check is: the zero time while there is none, as
	// without a schedule, before the first apply, or while the cluster goes away.
	Due time.Time `json:"due,omitzero"`
	// Since is when Status became what it is. While drift is known of, failed
	// checks leave it alone.
	Since time.Time `json:"since,omitzero"`
	// Fingerprint is of what was found and is not ignored: while it stays the
	// same nobody is notified again. It is kept while checks fail.
	Fingerprint Digest      `json:"fingerprint,omitempty"`
	Counts      DriftCounts `json:"counts,omitzero"`
	// Destroys is true if reverting the drift would destroy or replace something.
	Destroys bool `json:"destroys,omitempty"`
	// Hides is true if reverting it would also change what an ignore rule hides.
	Hides bool `json:"hides,omitempty"`
	// Causes are what drifted, without where: "aws_eks_node_group scaling_config",
	// sorted, at most 20. Clusters that share one may have a common cause.
	Causes []string `json:"causes,omitempty"`
	// Rules is of the ignore rules that it was seen through, without those that
	// had expired; empty if there were none.
	Rules    Digest `json:"rules,omitempty"`
	Failures int    `json:"failures,omitempty"` // failed checks in a row
	Detail   string `json:"detail,omitempty"`   // of a failed check: why
	// Revert is the apply that reverted the drift of this fingerprint, or tried to.
	Revert string `json:"revert,omitempty"`
	// Hold is why a drift that should be reverted (onDrift: apply) is not.
	Hold string `json:"hold,omitempty"`
}

// DriftCounts are numbers of resources.
type DriftCounts struct {
	Changed  int `json:"changed"`  // attributes differ from what was applied
	Gone     int `json:"gone"`     // no longer exist
	Input    int `json:"input"`    // an apply would change them as what the code reads from elsewhere has changed
	Harmless int `json:"harmless"` // differ, and an apply would leave them so
	Ignored  int `json:"ignored"`  // hidden by rules, wholly or in part
}

// Drifted is how many count as drift.
func (c DriftCounts) Drifted() int { return c.Changed + c.Gone + c.Input }

// DriftKind says how a resource has drifted.
type DriftKind string

// The kinds of drift.
const (
	DriftChanged DriftKind = "changed"
	DriftGone    DriftKind = "gone"
	DriftInput   DriftKind = "input"
)

// DriftItem is one resource that is not as it was applied.
type DriftItem struct {
	Address string    `json:"address"`
	Type    string    `json:"type"`
	Kind    DriftKind `json:"kind"`
	// Action is what an apply would do about it; empty: nothing, it is harmless.
	Action ChangeAction `json:"action,omitempty"`
	// Attributes are what differs: Before as it was applied, After as it is. For
	// DriftInput: Before as it is, After as an apply would make it.
	Attributes []AttributeChange `json:"attributes,omitempty"`
	// Ignored is the reason of the rule that hides it; empty: none does. A resource
	// that is hidden in part has two items.
	Ignored string `json:"ignored,omitempty"`
}

// DriftReport is what a check has found of one cluster.
type DriftReport struct {
	Cluster  string      `json:"cluster"`
	Document Cluster     `json:"document"` // as it was applied
	State    DriftState  `json:"state"`
	Items    []DriftItem `json:"items,omitempty"` // most dangerous first
	// NotApplied is true if what is desired is not what was applied: a change
	// that waits, which is not drift. Waiting says for what.
	NotApplied bool   `json:"notApplied,omitempty"`
	Waiting    Reason `json:"waiting,omitempty"`
	Windows    string `json:"windows,omitempty"`  // "closed", and until when, if its apply windows let no apply begin now
	Template   string `json:"template,omitempty"` // "name@version" that was applied
	// Revision is the one that was applied.
	Revision Revision `json:"revision,omitempty"`
	// Failure is why the last check failed; nil if it did not.
	Failure *Failure `json:"failure,omitempty"`
	// Revert is the apply of State.Revert; nil if there is none.
	Revert *Run `json:"revert,omitempty"`
}

// DriftRule hides drift that is intended.
type DriftRule struct {
	// Address is a glob of resource addresses: * stands for anything but a dot,
	// ** for anything.
	Address string `json:"address"`
	// Attribute is a path such as scaling_config[0].desired_size, with all below
	// it; * stands for one step. Empty means the whole resource.
	Attribute string    `json:"attribute,omitempty"`
	Reason    string    `json:"reason"`
	Expires   time.Time `json:"expires,omitzero"` // from then on it hides nothing; zero: never
}
