package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/statelock"
)

// CommandRequest is a command, like /holdfast in a comment. It is for one of: a pull
// request (with clusters: only for these), clusters, or a run.
type CommandRequest struct {
	Verb        holdfast.Verb  `json:"verb"` // plan, apply, approve, cancel or unlock.
	PullRequest PullRequestRef `json:"pullRequest,omitzero"`
	Clusters    []string       `json:"clusters,omitempty"` // Names; a run is given as run.
	Shown       []string       `json:"shown,omitzero"`     // With apply and approve: the values of plannedRun that the caller has seen; an empty list: there was none. Another plan is refused. Absent, without a run: only what pull requests have shown is applied.
	Run         string         `json:"run,omitempty"`      // The run whose plan to use, or which to cancel. It implies its cluster and pull request.
	Force       bool           `json:"force,omitempty"`    // Requires the role admin.
	All         bool           `json:"all,omitempty"`      // With plan and a pull request that changes a template: every cluster that the change would change. Refused to a token that is bound to projects.
}

// Command is a command and its outcome.
type Command struct {
	ID          string                 `json:"id"`
	PullRequest PullRequestRef         `json:"pullRequest,omitzero"` // Absent: it is for clusters.
	Author      string                 `json:"author"`
	Verb        holdfast.Verb          `json:"verb"`
	Clusters    []string               `json:"clusters,omitempty"` // Absent: all of the pull request.
	Force       bool                   `json:"force,omitempty"`
	All         bool                   `json:"all,omitempty"`
	Text        string                 `json:"text"`            // The command as it would be written in a comment.
	Shown       []string               `json:"shown,omitempty"` // The runs whose plans were shown when it was given.
	ShownHead   holdfast.Revision      `json:"shownHead,omitempty"`
	Status      holdfast.CommandStatus `json:"status"`             // received: it was not carried out yet.
	Reply       string                 `json:"reply,omitempty"`    // Why it was refused, or its result.
	Reason      holdfast.Reason        `json:"reason,omitempty"`   // The reason of the refusal, of the first cluster in refused or of all.
	Refused     []string               `json:"refused,omitempty"`  // Clusters for which the command was refused although it was carried out for others.
	UpToDate    []string               `json:"upToDate,omitempty"` // Clusters that had nothing left to apply.
	CreatedAt   time.Time              `json:"createdAt"`
	DoneAt      time.Time              `json:"doneAt,omitzero"`
}

// CommandOf returns what the API says of a command.
func CommandOf(c holdfast.Command) Command {
	return Command{
		ID: c.ID, PullRequest: PullRequestRef(c.PullRequest), Author: c.Author, Verb: c.Verb, Clusters: c.Clusters, Force: c.Force, All: c.All,
		Text: c.Text, Shown: c.Shown, ShownHead: c.ShownHead, Status: c.Status, Reply: c.Reply, Reason: c.Reason, Refused: c.Refused, UpToDate: c.UpToDate,
		CreatedAt: c.CreatedAt, DoneAt: c.DoneAt,
	}
}

// ReconcileRequest asks for another look: at exactly one of these.
type ReconcileRequest struct {
	Repo    string `json:"repo,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	All     bool   `json:"all,omitempty"` // All repositories.
}

// SuspendClusterRequest is the body of a request to suspend or to resume one cluster. It
// may be left out.
type SuspendClusterRequest struct {
	Reason string `json:"reason,omitempty"`
}

// SuspendRequest asks to suspend or to resume many clusters: exactly one of project and
// all.
type SuspendRequest struct {
	Project string `json:"project,omitempty"`
	All     bool   `json:"all,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// TransferRequest moves a cluster to a repository.
type TransferRequest struct {
	Repo string `json:"repo"` // The repository whose document defines the cluster from then on.
}

// UnlockRequest asks for a lock of a state's own backend to be released.
type UnlockRequest struct {
	Lock  string `json:"lock"`            // The ID of the lock.
	Force bool   `json:"force,omitempty"` // Requires the role admin.
}

// WaiveRequest gives up a state that could not be saved.
type WaiveRequest struct {
	Reason string `json:"reason"` // At most 1,000 bytes.
}

// Lock is the lock of a cluster and its holder.
type Lock struct {
	Cluster string     `json:"cluster"`
	Holder  LockHolder `json:"holder"`
	Run     Run        `json:"run"`
	Alive   bool       `json:"alive"` // The run's agent still sends heartbeats.
}

// LockHolder is who holds a lock.
type LockHolder struct {
	Owner   string    `json:"owner"` // "run/attempt".
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires"` // When the lease ends unless it is renewed.
}

// LockOf returns what the API says of a cluster's lock.
func LockOf(cluster string, holder holdfast.LockHolder, run holdfast.Run, alive bool) Lock {
	return Lock{Cluster: cluster, Holder: LockHolder(holder), Run: RunOf(run), Alive: alive}
}

// BackendLock is the lock of a state's own backend, as printed by an engine that could not get it.
type BackendLock struct {
	ID      string    `json:"id"`
	Who     string    `json:"who,omitempty"`    // Absent where the engine does not print it.
	Created time.Time `json:"created,omitzero"` // Absent where the engine does not print it.
	Run     string    `json:"run,omitempty"`    // The run that found the state locked.
	Dead    string    `json:"dead,omitempty"`   // The run that probably left it; absent: somebody else may hold it.
}

// BackendLockOf returns what the API says of a backend's lock.
func BackendLockOf(l statelock.BackendLock) BackendLock { return BackendLock(l) }

// MigrateStateRequest asks for the migration of a state to its new place.
type MigrateStateRequest struct {
	DryRun bool `json:"dryRun,omitempty"` // Only show what would happen.
	Copied bool `json:"copied,omitempty"` // The state was already copied by hand: the run only verifies the copy.
}

// StateMigration is the result of the request.
type StateMigration struct {
	Cluster string `json:"cluster"`
	From    string `json:"from"`          // Where the state is.
	To      string `json:"to"`            // Its new place.
	Run     string `json:"run,omitempty"` // The run that moves it; absent: a dry run.
}

// StateMigrationOf returns what the API says of a migration.
func StateMigrationOf(m holdfast.StateMigration) StateMigration {
	return StateMigration{Cluster: m.Cluster, From: m.From, To: m.To, Run: m.Run}
}

// UnsavedState is a state that an engine wrote and that is not in its backend. Nothing
// is planned or applied with that state before it is pushed or given up.
type UnsavedState struct {
	Location string    `json:"location"` // Of the state.
	Cluster  string    `json:"cluster"`
	Run      string    `json:"run"` // The apply or destroy that wrote it, or the name of the person who uploaded another one.
	Attempt  int       `json:"attempt"`
	Version  int64     `json:"version,omitempty"` // The quarantined version that holds it; absent: it is kept with the run.
	At       time.Time `json:"at"`
	Earlier  int       `json:"earlier,omitempty"` // How many of the run were refused before this one, and are kept in quarantine.
	Job      string    `json:"job,omitempty"`     // The newest run that tried to push it.
	Jobs     int       `json:"jobs,omitempty"`    // How many there were.
}

// UnsavedStateOf returns what the API says of an unsaved state.
func UnsavedStateOf(u holdfast.UnsavedState) UnsavedState { return UnsavedState(u) }
