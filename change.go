package holdfast

// ChangeKind is the kind of an object whose changes clients can follow.
type ChangeKind string

// Kinds of objects.
const (
	ChangeCluster     ChangeKind = "Cluster"
	ChangeRun         ChangeKind = "Run"
	ChangePullRequest ChangeKind = "PullRequest"
)

// Change says that an object has changed, was created, or was deleted; what it is
// now is read from the object. Of an object only the newest change is kept.
type Change struct {
	Seq     int64      `json:"-"` // grows with each change; never used twice
	Kind    ChangeKind `json:"kind"`
	Name    string     `json:"name"`              // REPO#NUMBER of a pull request
	Cluster string     `json:"cluster,omitempty"` // of a cluster and of a run
	Deleted bool       `json:"deleted,omitempty"`
}
