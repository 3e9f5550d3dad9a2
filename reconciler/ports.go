package reconciler

import (
	"context"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/breaker"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/reconciler/leader"
	"github.com/holdfast-dev/holdfast/reconciler/places"
	"github.com/holdfast-dev/holdfast/reconciler/publish"
	"github.com/holdfast-dev/holdfast/reconciler/record"
	"github.com/holdfast-dev/holdfast/reconciler/relay"
	"github.com/holdfast-dev/holdfast/reconciler/rescue"
	"github.com/holdfast-dev/holdfast/reconciler/runners"
	"github.com/holdfast-dev/holdfast/reconciler/trace"
	"github.com/holdfast-dev/holdfast/replica"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/statelock"
)

// What the reconciler asks of the others. Every method is safe for concurrent
// use. A record that does not exist is a holdfast.ErrNotFound, a write with an
// old version a holdfast.ErrConflict.

// Store is everything that must survive; *datastore.Store is one.
type Store interface {
	Runs
	Claims
	dispatch.Columns
	breaker.Store
	Attempts
	dispatch.Tickets
	Clusters
	ClusterNames
	DriftSchedule
	Suspensions
	Repositories
	TagPins
	PullRequests
	publish.Briefs
	Outbox
	Commands
	Artefacts
	StateLocks
	Inventory
	Impacts
	Upgrades
	Runners
	StatePlaces
	rescue.Tries
	rescue.Unsaved
	record.Trail
	Feed
	// ClockSetBack has what waits for a time wait no longer than it was to, when the
	// clock was set back by so much just now.
	ClockSetBack(ctx context.Context, by time.Duration) error
}

// Runs are the records of runs and their attempts.
type Runs interface {
	// CreateRun stores a new run, and appends to the audit trail in the same
	// transaction; the run's Version becomes 1.
	CreateRun(ctx context.Context, run holdfast.Run, trail ...holdfast.AuditEntry) error
	Run(ctx context.Context, id string) (holdfast.Run, error)
	RunLists
	// UpdateRun stores run if its Version is the stored one, and returns it with
	// the next Version.
	UpdateRun(ctx context.Context, run holdfast.Run) (holdfast.Run, error)
}

// RunLists say which runs there are.
type RunLists interface {
	// NewestRun returns the id of the newest run of what a request names; empty if there
	// is none.
	NewestRun(ctx context.Context, of holdfast.Request) (id string, err error)
	// CreateRunAfter is CreateRun if newest is what NewestRun says, otherwise an
	// ErrConflict: somebody else has queued a run since that was asked.
	CreateRunAfter(ctx context.Context, run holdfast.Run, newest string, trail ...holdfast.AuditEntry) error
	// Runs returns the runs that match, newest first.
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
}

// Claims tell which runs may be handed out, and hand one out.
type Claims interface {
	// Claimable returns the ids of the runs that an agent may claim, in the order of
	// filter.Turns; at most one for each state location, none for a location where a
	// run is running or, unless it is that one, where one that writes waits.
	Claimable(ctx context.Context, filter holdfast.ClaimFilter) (ids []string, err error)
	// Queue returns runs that wait to be handed out, in the order of filter.Turns,
	// those that may not be claimed yet among them; without what holds them back.
	Queue(ctx context.Context, filter holdfast.QueueFilter) ([]holdfast.QueuedRun, error)
	// Served returns the lane of each running run, and each lane from which a run was
	// handed out within the last hour, at Since.
	Served(ctx context.Context, now time.Time) (running, lately []holdfast.Lane, err error)
	// ClaimRun makes a queued run (or a retrying one whose time has come)
	// running for agent: next attempt, next fence of the fleet, a row in the
	// attempts. It is an ErrConflict if the run is no longer claimable, its
	// state location has a running run, or limit runs are running already.
	ClaimRun(ctx context.Context, id string, agent protocol.AgentRef, now time.Time, limit int) (holdfast.Run, error)
}

// Attempts are the records of what agents execute.
type Attempts interface {
	// Beat records a sign of life and the step, and returns the run. It leaves
	// Version alone. ErrFenced if ref is not the run's running attempt.
	Beat(ctx context.Context, ref holdfast.AttemptRef, step string, now time.Time) (holdfast.Run, error)
	// EndAttempt stores run, whose running attempt ref ends with it, as
	// UpdateRun does, closes the attempt's row, and releases the state lock that
	// the attempt holds in Holdfast's own backend. ErrFenced if ref is not the
	// run's running attempt. Resources, unless nil, are stored with it as
	// SaveResources does.
	EndAttempt(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (holdfast.Run, error)
	// EndUnlocked is EndAttempt for an attempt that may still be executed: a
	// *statelock.StateLockedError, and nothing is stored, if it holds the state's
	// lock in Holdfast's own backend.
	EndUnlocked(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (holdfast.Run, error)
	// EndSilent is EndAttempt for an attempt whose last sign of life was at heard, by the
	// records: an ErrHeard, and nothing is stored, if another one has come since. If it writes
	// it is EndUnlocked.
	EndSilent(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource, heard time.Time) (holdfast.Run, error)
}

// Clusters are the records of clusters.
type Clusters interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
	// CountClusters counts those that match.
	CountClusters(ctx context.Context, filter holdfast.ClusterFilter) (int, error)
	// SaveCluster creates (Version 0) or replaces a record, and adds to its
	// history in the same transaction. StateSerial is not stored: it is read from
	// the newest state version.
	SaveCluster(ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition) (holdfast.ClusterRecord, error)
}

// ClusterNames are the names of clusters, and what changes them.
type ClusterNames interface {
	// ClusterNames returns the names of those that match, sorted.
	ClusterNames(ctx context.Context, filter holdfast.ClusterFilter) ([]string, error)
	// ClustersAt returns the names of the clusters that had a run with a state
	// which is not in Holdfast's own backend.
	ClustersAt(ctx context.Context, location string) ([]string, error)
	// CreateClusters stores new records (Version 0), each with its history, in one
	// transaction, and returns them without those of which there is a record already.
	CreateClusters(ctx context.Context, records []holdfast.ClusterRecord, history ...holdfast.Transition) ([]holdfast.ClusterRecord, error)
	// RenameCluster saves both records, each at its Version, and gives the state in
	// Holdfast's own backend, if there is any, the resources and the history of from to
	// to. It is an ErrConflict if a run is running for either, or to has its own state.
	RenameCluster(ctx context.Context, from, to holdfast.ClusterRecord, history ...holdfast.Transition) error
}

// DriftSchedule is when clusters are due, and who does what comes due.
type DriftSchedule interface {
	// DriftDue returns the clusters whose Drift.Due has come and that have no run
	// which has not ended, those checked longest ago first.
	DriftDue(ctx context.Context, now time.Time, limit int) ([]holdfast.ClusterRecord, error)
	// NextDriftDue is the earliest Drift.Due after now; zero if there is none.
	NextDriftDue(ctx context.Context, now time.Time) (time.Time, error)
}

// Suspensions are those of more than one cluster.
type Suspensions interface {
	Suspensions(ctx context.Context) ([]holdfast.Suspension, error)
	// Suspend stores a suspension, in place of one of the same project.
	Suspend(ctx context.Context, s holdfast.Suspension) error
	// Resume removes the one of that project (empty: of all clusters); ErrNotFound
	// if there is none.
	Resume(ctx context.Context, project string) error
}

// Repositories are the records of repositories.
type Repositories interface {
	RepositoryState(ctx context.Context, repo string) (holdfast.RepositoryState, error)
	SaveRepositoryState(ctx context.Context, s holdfast.RepositoryState) error
}

// TagPins are the commits that tags were recorded with.
type TagPins interface {
	// PinTag records that a repository's tag is rev and returns rev; if the tag
	// was recorded before, it returns what was recorded.
	PinTag(ctx context.Context, repo, tag string, rev holdfast.Revision) (holdfast.Revision, error)
	// MovePin records that a tag is to, if it is recorded as from.
	MovePin(ctx context.Context, repo, tag string, from, to holdfast.Revision) error
	// TagPins returns the commits that a repository's tags were recorded with.
	TagPins(ctx context.Context, repo string) (map[string]holdfast.Revision, error)
}

// PullRequests are the records of pull requests.
type PullRequests interface {
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error)
	PullRequests(ctx context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error)
	// SavePullRequest creates (Version 0) or replaces a record.
	SavePullRequest(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.PullRequestRecord, error)
	// OpenPullRequests returns the versions of a repository's open pull requests, by number.
	OpenPullRequests(ctx context.Context, repo string) (map[int]int64, error)
	publish.Merges
}

// Outbox is what we want to be seen on the forges.
type Outbox interface {
	publish.Wanted
	publish.Changed
	publish.Outbox
}

// Commands are what people asked for.
type Commands interface {
	// StoreCommand stores a command once per (repository, comment) and reports
	// whether it is new. It fills in Shown and ShownHead from the pull request's
	// comment post as it is now (what was posted, not what is wanted).
	StoreCommand(ctx context.Context, c holdfast.Command) (bool, error)
	Command(ctx context.Context, id string) (holdfast.Command, error)
	// Commands returns the commands with that status, oldest first.
	Commands(ctx context.Context, status holdfast.CommandStatus) ([]holdfast.Command, error)
	// FinishCommand stores Status, Reply and DoneAt.
	FinishCommand(ctx context.Context, c holdfast.Command) error
}

// Artefacts are what runs leave behind, and what they start from.
type Artefacts interface {
	// Artefact opens what a run's last attempt that stored it under name left.
	Artefact(ctx context.Context, run, name string) (io.ReadCloser, error)
	// PutArtefact keeps what is derived of what an attempt has left. ErrFenced if
	// the attempt is over.
	PutArtefact(ctx context.Context, ref holdfast.AttemptRef, name string, data io.Reader) error
	// PutBundle stores a bundle (tar, gzip) unless it is there and can be read; the
	// digest is that of its content, as templates computes it.
	PutBundle(ctx context.Context, digest holdfast.Digest, data []byte) error
	HasBundle(ctx context.Context, digest holdfast.Digest) (bool, error)
}

// StatePlaces are where the states of clusters are.
type StatePlaces interface {
	places.Places
	// Environment is an ErrNotFound of one that has not run.
	Environment(ctx context.Context, key holdfast.EnvironmentKey) (holdfast.Environment, error)
	// Bundle opens what PutBundle has stored.
	Bundle(ctx context.Context, digest holdfast.Digest) (io.ReadCloser, error)
}

// StateLocks are the locks on states in Holdfast's own backend.
type StateLocks interface {
	// StateLock returns the lock on a state in Holdfast's own backend; ErrNotFound
	// if it is free.
	StateLock(ctx context.Context, location string) (statelock.StateLock, error)
	// ReleaseStateLock removes a lock of Holdfast's own backend whose attempt is
	// over, and reports whether there was one.
	ReleaseStateLock(ctx context.Context, location string) (released bool, err error)
}

// Inventory is what clusters consist of.
type Inventory interface {
	// SaveResources replaces what is known of a cluster's resources. Those with
	// an empty Run keep the Run and ChangedAt that they had.
	SaveResources(ctx context.Context, cluster string, resources []holdfast.Resource) error
	Resources(ctx context.Context, filter holdfast.ResourceFilter) ([]holdfast.Resource, error)
}

// Impacts are what pull requests' changes of templates would do.
type Impacts interface {
	// SaveImpacts replaces what is known of a pull request's changes of
	// templates; none removes it.
	SaveImpacts(ctx context.Context, ref holdfast.PullRequestRef, impacts []rollout.Impact) error
	// Impacts returns what was saved, by the templates' names; none if there is
	// nothing.
	Impacts(ctx context.Context, ref holdfast.PullRequestRef) ([]rollout.Impact, error)
	// Requesters are those who have asked through Holdfast for what a pull request proposes.
	Requesters(ctx context.Context, ref holdfast.PullRequestRef) ([]string, error)
}

// Upgrades are the pull requests that we propose.
type Upgrades interface {
	// Upgrades returns the upgrades of a repository (empty: of all), by
	// repository and key.
	Upgrades(ctx context.Context, repo string) ([]rollout.Upgrade, error)
	// SaveUpgrade creates (Version 0) or replaces a record, by (Repo, Key).
	SaveUpgrade(ctx context.Context, u rollout.Upgrade) (rollout.Upgrade, error)
}

// Runners are the runners and rules in force, and the environments that are pinned to them.
type Runners interface {
	// Runner is an ErrNotFound of the local one, too.
	Runner(ctx context.Context, name string) (runnerspec.Record, error)
	runners.Records
	runners.Refresh
}

// Locker excludes across replicas. Keys are those of states, owners "run/attempt".
type Locker interface {
	// Acquire does not wait: a *holdfast.LockedError says who has it. Acquiring
	// what owner holds already renews it.
	Acquire(ctx context.Context, key, owner string, ttl time.Duration) error
	// Renew is ErrLockLost if owner does not hold it.
	Renew(ctx context.Context, key, owner string, ttl time.Duration) error
	// Release is nil if owner does not hold it.
	Release(ctx context.Context, key, owner string) error
	// Holder is ErrNotFound if nobody holds it.
	Holder(ctx context.Context, key string) (holdfast.LockHolder, error)
}

// Waker wakes the other replicas. Messages are hints: they may be lost.
type Waker interface {
	Wake(ctx context.Context, topic string) error
	// Subscribe calls woken with each topic until ctx is done. It returns nil
	// then, and reconnects automatically until then.
	Subscribe(ctx context.Context, woken func(topic string)) error
}

// Git reads repositories; *gitsource.Source is one. Repositories are named as
// in holdfast.yaml.
type Git interface {
	Mirrors
	Trees
	Commits
}

// Mirrors are brought up to date.
type Mirrors interface {
	// Fetch brings branches and tags up to date and returns them. An empty
	// repository has none.
	Fetch(ctx context.Context, repo string) (holdfast.Refs, error)
	// FetchPullRequest fetches refs/pull/N/head and, if there is one, /merge,
	// together with branches and tags.
	FetchPullRequest(ctx context.Context, repo string, number int) (holdfast.PullRequestRefs, error)
}

// Trees are what revisions say.
type Trees interface {
	// Tree opens a revision, or a tree that Merge made by its id.
	Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error)
	// Merge returns the id of the tree that merging head into base gives, file
	// by file. ErrMergeConflict names the files in conflict.
	Merge(ctx context.Context, repo string, base, head holdfast.Revision) (tree string, err error)
	// Diff returns the files that differ between two revisions or trees; an
	// empty from is the empty tree.
	Diff(ctx context.Context, repo, from, to string) ([]holdfast.TreeChange, error)
}

// Commits come one after another.
type Commits interface {
	// Parents returns a commit's parents.
	Parents(ctx context.Context, repo string, rev holdfast.Revision) ([]holdfast.Revision, error)
	// IsAncestor reports whether a is b or an ancestor of it.
	IsAncestor(ctx context.Context, repo string, a, b holdfast.Revision) (bool, error)
	// Ahead returns the commits that head has and base does not, and perhaps others, and
	// the one that both continue from; empty if there is none, or several.
	Ahead(ctx context.Context, repo string, base, head holdfast.Revision) (commits []holdfast.Revision, from holdfast.Revision, err error)
}

// Forge is a code host. Errors: ErrNotFound, ErrUnauthorized, ErrForbidden,
// ErrUnavailable (*holdfast.RateLimitError says until when), ErrRejected (final for
// that call); any other is trouble on this side, and says nothing of the call.
type Forge interface {
	Proposals
	Conversation
	Display
	Proposer
}

// Proposals are what people propose.
type Proposals interface {
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequest, error)
	// PullRequests returns the open pull requests of a repository and those
	// updated since.
	PullRequests(ctx context.Context, repo string, since time.Time) ([]holdfast.PullRequest, error)
	// PullRequestsOf returns the merged pull requests that brought a commit to
	// the base branch, by whatever way of merging. None for a direct push.
	PullRequestsOf(ctx context.Context, repo string, commit holdfast.Revision) ([]holdfast.PullRequest, error)
}

// Conversation is what people write, and who they are.
type Conversation interface {
	// Comments returns the comments of all pull requests created or edited
	// since, oldest first. A list that was cut has More.
	Comments(ctx context.Context, repo string, since time.Time) (holdfast.CommentList, error)
	// Comment returns one comment as it is now, by its id.
	Comment(ctx context.Context, ref holdfast.PullRequestRef, id string) (holdfast.Comment, error)
	Permission(ctx context.Context, repo, user string) (holdfast.Permission, error)
}

// Display is what we show.
type Display interface {
	// PutComment creates (id empty) or updates a comment and returns it. Given
	// no id it looks for a comment of ours that has marker first, so that a
	// lost answer does not make a second one, and leaves it as it is if it says
	// body already; with an id that is gone it creates a new one. An empty marker
	// always creates.
	PutComment(ctx context.Context, ref holdfast.PullRequestRef, id, marker, body string) (holdfast.Comment, error)
	SetStatus(ctx context.Context, repo string, status holdfast.CommitStatus) error
	React(ctx context.Context, ref holdfast.PullRequestRef, commentID string, reaction holdfast.Reaction) error
	// PutIssue creates (id empty), updates, closes or opens again an issue and
	// returns it. As with comments, marker finds one whose answer was lost, and an
	// id that is gone makes a new one. One that is to be closed and is not there
	// is not made: the zero Issue. ErrForbidden if the repository has no issues.
	PutIssue(ctx context.Context, repo, id, marker string, issue holdfast.Issue) (holdfast.Issue, error)
}

// Proposer opens pull requests of ours.
type Proposer interface {
	// Propose makes a branch with one commit and a pull request for it, or brings
	// those that are there up to date; it returns the pull request, whose Head is
	// the commit. What is there already as proposed is not made again: a lost
	// answer brings no second pull request, and no second commit. If the branch's
	// last pull request is closed or merged and had the same Identity, that is
	// the answer, and nothing is made. ErrConflict if somebody else has pushed to
	// the branch; ErrForbidden if we may not push.
	Propose(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error)
	// Withdraw closes a pull request of ours with a comment that says why, and
	// deletes its branch if its head is still head. An empty head is whichever
	// commit of ours the branch is at; ErrConflict, and nothing is done, if it is at
	// somebody else's. Closed already is not an error.
	Withdraw(ctx context.Context, ref holdfast.PullRequestRef, branch string, head holdfast.Revision, why string) error
}

// Tracer records spans. Its methods must not block.
type Tracer = trace.Tracer

// Metrics hears of what happens. Its methods must not block.
type Metrics interface {
	dispatch.Metrics
	PostMetrics
	Step(name string, took time.Duration)
	Depth(queue string, n int)
	Decided(action decision.Action, reason holdfast.Reason)
}

// PostMetrics hears of what is posted.
type PostMetrics interface {
	Posted(kind outgoing.PostKind, ok bool)
	GaveUp(kind outgoing.PostKind)
}

type noMetrics struct{}

func (noMetrics) RunEnded(holdfast.RunKind, holdfast.RunStatus, holdfast.Reason) {}
func (noMetrics) RunClaimed(holdfast.RunKind, time.Duration)                     {}
func (noMetrics) Step(string, time.Duration)                                     {}
func (noMetrics) LockRefused()                                                   {}
func (noMetrics) Depth(string, int)                                              {}
func (noMetrics) Decided(decision.Action, holdfast.Reason)                       {}
func (noMetrics) Posted(outgoing.PostKind, bool)                                 {}
func (noMetrics) GaveUp(outgoing.PostKind)                                       {}
func (noMetrics) ProviderHeld(string, time.Time)                                 {}

// Peers are what replicas tell one another by way of the database; *peers.Peers is one.
type Peers interface {
	leader.Leases
	relay.Store
	PeerAgents
	Mirrored
	// Owner is the repository that a cluster belongs to.
	Owner(ctx context.Context, cluster string) (string, error)
	// TakeCommand reports whether owner is the first one to ask for a command of the API.
	TakeCommand(ctx context.Context, id, owner string) (bool, error)
	// Prune removes what nobody asks for any longer.
	Prune(ctx context.Context) error
}

// PeerAgents are the agents that replicas have heard of.
type PeerAgents interface {
	// HearAgent records a sign of life of an agent's process, unless another one that has
	// its id, and is not was, has given one for silence.
	HearAgent(ctx context.Context, req protocol.ClaimRequest, was string, silence time.Duration) (bool, error)
	// HeardAgents returns the agents that replicas have heard of; with an id that one only.
	HeardAgents(ctx context.Context, id string) ([]replica.AgentSign, error)
}

// Mirrored is what repositories had when their leaders took them in.
type Mirrored interface {
	SaveRefs(ctx context.Context, repo string, refs holdfast.Digest) error
	Refs(ctx context.Context) (map[string]holdfast.Digest, error)
}

// Feed are the numbers of changes.
type Feed interface {
	// LastChange is the number of the newest change of a record.
	LastChange(ctx context.Context) (int64, error)
}
