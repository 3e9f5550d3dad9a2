package holdfast

import "time"

// UnsavedState is a state that an engine wrote and that its backend does not have: the
// apply ended in the middle of a failure of the store, or its upload to Holdfast's own
// backend was refused. While it is unresolved, nothing is planned or applied with that
// state.
type UnsavedState struct {
	Location string `json:"location"` // of the state
	Cluster  string `json:"cluster"`
	Run      string `json:"run"` // the apply or destroy that wrote it, or the name of the person who gave another one
	Attempt  int    `json:"attempt"`
	// Version is the quarantined version that holds it, of Location; zero: it is
	// the run's artefact protocol.ArtefactErrored, if there is one.
	Version int64     `json:"version,omitempty"`
	At      time.Time `json:"at"`
	Earlier int       `json:"earlier,omitempty"` // how many of the run were refused before this one, and are kept in quarantine
	// Job is the newest run that was to push it, Jobs how many there were.
	Job  string `json:"job,omitempty"`
	Jobs int    `json:"jobs,omitempty"`
}

// Same reports whether it is the same state as the one that another names.
func (u UnsavedState) Same(other UnsavedState) bool {
	return u.Location == other.Location && u.Run == other.Run && u.Attempt == other.Attempt && u.Version == other.Version
}

// StateAction is what a run of kind RunState or RunUnlock does.
type StateAction string

// The actions.
const (
	StatePush   StateAction = "push"   // push a state that an engine could not save
	StateUnlock StateAction = "unlock" // force-unlock the backend

	StateMigrate StateAction = "migrate" // move the state to another place
)

// StateJob is what a run of kind RunState or RunUnlock does with the state of a cluster.
type StateJob struct {
	Action StateAction `json:"action"`
	// From is the run whose root module, credentials and engine it has. EngineName
	// and EngineVersion are empty if that died before it could say.
	From          string `json:"from"`
	EngineName    string `json:"engineName,omitempty"`
	EngineVersion string `json:"engineVersion,omitempty"`
	// LockID is what unlock releases.
	LockID string `json:"lockID,omitempty"`
	// Unsaved is what push pushes; zero for another action.
	Unsaved UnsavedState `json:"unsaved,omitzero"`
	// Move is what migrate does; nil for another action.
	Move *StateMove `json:"move,omitempty"`
}

// Migrates reports whether it moves the state; nil does not.
func (j *StateJob) Migrates() bool { return j != nil && j.Action == StateMigrate && j.Move != nil }

// Unlocks reports whether it releases a lock; nil does not.
func (j *StateJob) Unlocks() bool { return j != nil && j.Action == StateUnlock }
