package publish

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/rollout"
)

// What the Publisher asks of the others. Every method is safe for concurrent use.
// The contracts of the Store's methods and of the Forge's are those of
// reconciler.Store and reconciler.Forge.

// Store are the records; *datastore.Store is one.
type Store interface {
	Wanted
	Changed
	Outbox
	Clusters
	Runs
	PullRequests
	Briefs
}

// Wanted is what should be seen on the forges.
type Wanted interface {
	// Want stores what posts should say, all of them or none: Wanted grows if the content
	// (Title, Closed, Body, Status, Faults, Reaction) differs from what was wanted last,
	// otherwise nothing happens. Runs and Head are stored with it in any case; what was given
	// up is tried again when it shows other runs. With After the content is posted when the
	// post of that key has posted what is wanted of it now.
	Want(ctx context.Context, posts ...outgoing.Post) error
	Post(ctx context.Context, key string) (outgoing.Post, error)
	// Posts returns the posts that match, by key.
	Posts(ctx context.Context, filter outgoing.PostFilter) ([]outgoing.Post, error)
	// RetryPosts has what was given up of a pull request or, without a number, of all
	// of a repository claimed again as if it had never failed and were wanted since now.
	RetryPosts(ctx context.Context, ref holdfast.PullRequestRef) error
}

// Changed is what others have done to what is seen.
type Changed interface {
	// PostEdited has a post made again that somebody else has edited or deleted on the
	// forge, and reports whether that was so of what is on record: nothing was posted of
	// it, or begun to be, since post was read. It was found under post.ExternalID, or
	// under none. Of the runs that it showed, those that count as posted later than seen
	// do so since another time or, if that is zero, from when it is there again.
	PostEdited(ctx context.Context, post outgoing.Post, seen, since time.Time) (bool, error)
	// PostTried records what may be on the forge of a comment besides what was posted
	// last: the digests of the bodies that were sent since, and whose end is not known.
	PostTried(ctx context.Context, key string, attempts []string) error
	// PostUnshown records that a comment shows none of the plans on the forge since at,
	// where the end of writing it is not on record, and reports whether nobody has
	// noticed that before.
	PostUnshown(ctx context.Context, post outgoing.Post, at time.Time) (bool, error)
}

// Outbox is what of it is still to be done.
type Outbox interface {
	// ClaimPosts returns up to limit posts with Wanted > Posted whose NotBefore
	// has come and whose After is on the forge, and hides them from other claims
	// for ttl: first those that merges wait for, and one that has waited for minutes.
	// Those of the repositories in except are passed over.
	ClaimPosts(ctx context.Context, owner string, now time.Time, ttl time.Duration, limit int, except ...string) ([]outgoing.Post, error)
	// PostsLeft counts the statuses, checks, comments and issues that were wanted at
	// since or later and can be posted now: none that has failed or was deferred, or
	// waits for one that has.
	PostsLeft(ctx context.Context, now, since time.Time) (int, error)
	Outcomes
}

// Outcomes end the claim of a post.
type Outcomes interface {
	// Posted records that the content of post (its Wanted, as it was claimed) is
	// on the forge under post.ExternalID since at (the forge's clock), ends the
	// claim, and sets PostedAt of post.Runs where it is not set. A comment that is
	// Unshown begins a time in which no plan counts as shown, another one ends it.
	Posted(ctx context.Context, post outgoing.Post, at time.Time) error
	// PostFailed ends the claim, records the Failures, Refusal, Refusals and LastError of
	// post, and hides it until notBefore. The zero time gives up on this content: it is not
	// posted until it changes, and of a comment none of the plans that it has shown before
	// counts as shown.
	PostFailed(ctx context.Context, post outgoing.Post, notBefore time.Time) error
	// PostDeferred ends the claim and hides the post until notBefore, as the forge
	// takes nothing now: that is not a failure, and the cause of the last one stays on record.
	PostDeferred(ctx context.Context, key string, cause string, notBefore time.Time) error
	// PostDropped ends the claim, and forgets the post if nothing of it is on the forge
	// and nothing else is wanted of it since it was claimed.
	PostDropped(ctx context.Context, post outgoing.Post) error
}

// Clusters are the records of clusters.
type Clusters interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
	ClusterNames(ctx context.Context, filter holdfast.ClusterFilter) ([]string, error)
}

// Runs are the records of runs.
type Runs interface {
	Run(ctx context.Context, id string) (holdfast.Run, error)
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
}

// Briefs are what is known of records without decoding them.
type Briefs interface {
	// Brief returns what the columns say of a run.
	Brief(ctx context.Context, id string) (holdfast.RunBrief, error)
	// PullRequestVersion returns the Version of a pull request's record.
	PullRequestVersion(ctx context.Context, ref holdfast.PullRequestRef) (int64, error)
}

// PullRequests are the records of pull requests, and of what they are merged to.
type PullRequests interface {
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error)
	PullRequests(ctx context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error)
	Impacts(ctx context.Context, ref holdfast.PullRequestRef) ([]rollout.Impact, error)
	RepositoryState(ctx context.Context, repo string) (holdfast.RepositoryState, error)
	Merges
}

// Merges say which pull requests were merged.
type Merges interface {
	// MergesOf returns the numbers of the merged pull requests of a repository that change
	// a cluster, the last merged one first.
	MergesOf(ctx context.Context, repo, cluster string, limit int) ([]int, error)
}

// Git knows the order of commits.
type Git interface {
	// IsAncestor reports whether a is b or an ancestor of it.
	IsAncestor(ctx context.Context, repo string, a, b holdfast.Revision) (bool, error)
}

// Comments are those of pull requests on a forge.
type Comments interface {
	Comment(ctx context.Context, ref holdfast.PullRequestRef, id string) (holdfast.Comment, error)
	PutComment(ctx context.Context, ref holdfast.PullRequestRef, id, marker, body string) (holdfast.Comment, error)
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequest, error)
}

// Forge is where people look.
type Forge interface {
	Comments
	SetStatus(ctx context.Context, repo string, status holdfast.CommitStatus) error
	React(ctx context.Context, ref holdfast.PullRequestRef, commentID string, reaction holdfast.Reaction) error
	PutIssue(ctx context.Context, repo, id, marker string, issue holdfast.Issue) (holdfast.Issue, error)
}

// Checker is a Forge that shows faults at their lines. Where it cannot, PutCheck does
// nothing, and returns nil; where it may not now, a *holdfast.RateLimitError.
type Checker interface {
	PutCheck(ctx context.Context, repo string, status holdfast.CommitStatus, faults holdfast.Faults) error
}

// Labeler is a Forge whose pull requests have labels.
type Labeler interface {
	// SetLabels gives a pull request the labels that are wanted of ours, takes the others
	// of ours off it, and leaves all others alone.
	SetLabels(ctx context.Context, ref holdfast.PullRequestRef, ours, wanted []string) error
}

// Fleet is who knows the clusters: the reconciler.
type Fleet interface {
	// Foresee gathers what the merge of an open pull request would have to wait
	// for in one of its clusters: of one that it removes the last apply, those that
	// depend on it, and how many are removed; of another one its parents; of each the
	// merges that are not applied yet, without how they stand. Branch are
	// the newest runs of its tracked branch, as history.Branch returns them.
	Foresee(ctx context.Context, pr holdfast.PullRequestRecord, c holdfast.PullRequestCluster) (in decision.Input, branch []holdfast.Run, err error)
	// CapWait is why no run of a cluster is handed out now, because of its provider or
	// its project; empty if it is not that.
	CapWait(ctx context.Context, c holdfast.Cluster) (reason holdfast.Reason, detail string, err error)
	// DriftReport is everything that is known of a cluster's drift.
	DriftReport(ctx context.Context, rec holdfast.ClusterRecord) (holdfast.DriftReport, error)
	// Plan reads the plan that a run made; ErrNotFound if it was not kept.
	Plan(ctx context.Context, run string) (holdfast.Plan, error)
	Trees
}

// Trees know what the documents say.
type Trees interface {
	// Defines reports whether a revision has a document of a cluster.
	Defines(ctx context.Context, repo string, revision holdfast.Revision, cluster string) (bool, error)
}

// Watcher is notified of what the Publisher does. Its methods must not block.
type Watcher interface {
	// Wanted is notified that the outbox has something new: other replicas may post
	// it as well.
	Wanted(ctx context.Context)
	// Posted is notified of an attempt to make a post that began then; err says how
	// it ended. One that was deferred is not an attempt.
	Posted(post outgoing.Post, began time.Time, err error)
	// GaveUp is notified of a post that is not tried again until it changes, or somebody
	// asks for it.
	GaveUp(post outgoing.Post)
}
