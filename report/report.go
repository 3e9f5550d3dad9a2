package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// PullRequest is everything that the comment and the statuses of a pull request show.
type PullRequest struct {
	PullRequest holdfast.PullRequestRecord
	Clusters    []Cluster // those that it affects
	Now         time.Time

	// LogURL returns where a run's log can be read. Nil, or an empty answer,
	// leaves the link out.
	LogURL func(run string) string
	// URL is what the statuses link to; empty: nothing.
	URL string
	// Notices are sentences to be shown at the top, such as "planned again
	// because prod-eu was applied by #12".
	Notices []string
	// Had is true if there is a comment already: then Comment says that no
	// cluster is still affected, where it would have nothing to say.
	Had bool

	// Impacts are what it would do to the clusters that are made from the
	// templates that it changes.
	Impacts []Impact
	// AddCosts adds up the costs of several clusters. Nil: they are shown one by one.
	AddCosts func(...holdfast.Cost) []holdfast.CostTotal
}

// Cluster is what a pull request, or a push, means for one cluster.
type Cluster struct {
	Name     string
	Document holdfast.Cluster
	Removed  bool // its document is removed: plans and applies are those of its destruction
	Added    bool // it was changed while merging: the plans of the pull request do not have it
	// Sample: the merge leaves it as it is. Its plan shows what a template that
	// the pull request changes would do to it, and is a sample of an Impact. It
	// is an earlier one only if Previous says so.
	Sample bool

	Plan    *holdfast.Run  // the newest plan run; nil if there is none yet
	Summary *holdfast.Plan // its plan, or with Previous an older one; nil if there is none
	// Previous is true if Summary is of an older head, or of this one, which is planned again.
	Previous bool
	// Engine is what has written the state so far, such as "terraform 1.11.4"; empty if
	// nobody knows.
	Engine string
	// Waiting is the reason why nothing happens, such as Unreviewed, and
	// WaitingDetail the same in a sentence; empty if something does. Of an open
	// pull request with a good plan it is what a merge would wait for, such as
	// MassDeletion. NeverApplied, Renamed and Destroyed say how a deleted cluster
	// went.
	Waiting       holdfast.Reason
	WaitingDetail string
	Queue         int // how many runs go first

	// Gates are the conditions of apply.requires: of an open pull request, or of a merged
	// one whose apply waits for a person's word.
	Gates []holdfast.Gate
	// Waived are the ids of policies that were waived for what is planned.
	Waived []string

	Apply   *holdfast.Run  // on the tracked branch, after the merge; may be a plan that waits for a person
	Applied *holdfast.Plan // the plan of Apply

	// Failed is the apply, or the destroy, that failed in the middle, if Apply is
	// the plan of what it has left; nil if there is none.
	Failed *holdfast.Run

	// Superseded is what took the place of a merge whose Apply has failed or, without
	// one, that was not applied yet: a pull request (#3) or a commit. Nothing more is done for the merge itself.
	Superseded string

	Left string // of a destroyed cluster: what may exist of it, in a sentence; empty: nothing
}

// Planned is the run whose plan is still to be applied, if it is: after the merge it may be one
// that waits for a person; nil if there is none.
func (c Cluster) Planned() *holdfast.Run {
	if waits := c.Apply; waits != nil && waits.Status == holdfast.RunPlanned {
		return waits
	}
	return c.Plan
}

// Marker returns the hidden first line by which the comment of a pull request
// is found again.
func Marker(ref holdfast.PullRequestRef) string {
	return fmt.Sprintf("<!-- holdfast:pull-request %s -->", ref)
}

// commentLimit is GitHub's 65,536 characters less a margin. It is held in
// bytes, of which there are never fewer.
const commentLimit = 65_000

// detail is how much a comment shows. Each level shows less than the one
// before.
type detail struct {
	name     string // what is left out
	unmoved  bool   // details of clusters without changes
	diffs    int    // lines of a full plan; 0: none
	rows     int    // resources in a table; 0: none
	notes    int    // drift, warnings, faults: each so many
	clusters int    // rows of the summary
	effects  int    // of a template's change: so many with plans
	lines    int    // of a template's change: so many at all
	names    int    // of clusters that a template's change moves
}

var details = []detail{
	{"", true, 100_000, 100_000, 50, 1000, 1000, 1000, 500},
	{"details of clusters without changes", false, 100_000, 100_000, 50, 1000, 1000, 1000, 50},
	{"full plans beyond 1000 lines", false, 1000, 1000, 50, 1000, 100, 1000, 20},
	{"full plans beyond 200 lines", false, 200, 1000, 30, 1000, 50, 500, 20},
	{"full plans", false, 0, 1000, 20, 500, 50, 200, 20},
	{"full plans, and resources beyond the 30 most dangerous of a cluster", false, 0, 30, 10, 300, 50, 100, 10},
	{"full plans, and resources beyond the 8 most dangerous of a cluster", false, 0, 8, 5, 200, 25, 100, 5},
	{"plans; only the summary is left", false, 0, 0, 5, 1000, 25, 100, 5},
	{"plans; only the summary is left", false, 0, 0, 5, 400, 0, 60, 5},
	{"plans; only the summary is left", false, 0, 0, 5, 100, 0, 60, 5},
	{"plans, and most clusters; only the summary is left", false, 0, 0, 1, 20, 0, 10, 3},
}

// Comment returns the one comment of a pull request, for any time of its life.
// It begins with Marker and is never longer than 65,536 characters: what does
// not fit is left out step by step, and the comment says so. It is empty if
// there is nothing to say: no affected cluster, no changed template, setting or runner, no fault,
// and no comment that would become untrue.
func Comment(r PullRequest) string {
	if silent(r) {
		return ""
	}
	w := newWriter(r)
	for _, level := range details {
		if body := w.comment(level); len(body) <= commentLimit {
			return body
		}
	}
	return w.bare()
}

func silent(r PullRequest) bool {
	pr := r.PullRequest
	ordinary := slices.ContainsFunc(r.Clusters, func(c Cluster) bool { return !c.Sample })
	return !r.Had && !ordinary && len(r.Impacts) == 0 && len(pr.Faults) == 0 && len(pr.Settings) == 0 && len(pr.Runners) == 0 &&
		(pr.Reason == "" || !shownReason(pr.Reason))
}
