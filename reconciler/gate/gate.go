package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Terms are what the apply of a cluster has to meet.
type Terms struct {
	Cluster  string
	Requires []string // names of conditions, which may be there several times
	Lifted   []string // those of them that the change itself takes away
	Details  holdfast.GateTerms
	Now      time.Time
}

// Of returns the conditions of terms, in order and each once, with how far they are met
// for that cluster of a pull request. Plan is what would be applied, the zero Run if
// there is nothing yet, and runs are the cluster's others: an approval of one that came
// to the same counts for plan, too.
func Of(pr holdfast.PullRequestRecord, terms Terms, plan holdfast.Run, runs []holdfast.Run) []holdfast.Gate {
	var gates []holdfast.Gate
	for _, name := range terms.Requires {
		if slices.ContainsFunc(gates, func(g holdfast.Gate) bool { return g.Name == name }) {
			continue
		}
		switch name {
		case holdfast.GateApproved:
			gates = append(gates, approved(name, terms.Details.Approvals, pr, terms.Cluster, plan, runs))
		case holdfast.GateDestroy:
			g := holdfast.Gate{Name: name, Met: true, Idle: true}
			if plan.Destroys() {
				g = approved(name, terms.Details.Destroys, pr, terms.Cluster, plan, runs)
			}
			gates = append(gates, g)
		case holdfast.GateMergeable:
			gates = append(gates, mergeable(pr, terms.Cluster))
		case holdfast.GatePolicy:
			gates = append(gates, policies(pr, terms, plan, runs))
		case holdfast.GateCost:
			gates = append(gates, cost(pr, terms, plan, runs))
		default:
			continue
		}
		gates[len(gates)-1].Lifted = slices.Contains(terms.Lifted, name)
	}
	return gates
}

// approved: as many as are asked for, at least one, have approved what plan does, after it was
// shown, and nobody who may write asks for changes. An approval does not answer such a request.
func approved(
	name string, count int, pr holdfast.PullRequestRecord, cluster string, plan holdfast.Run, runs []holdfast.Run,
) holdfast.Gate {
	g := holdfast.Gate{Name: name}
	given, void := approvals(pr, cluster, plan, runs)
	for _, a := range given {
		g.Given = append(g.Given, a.how)
	}
	if by := Objectors(pr); len(by) > 0 {
		g.Missing = strings.Join(by, " and ") + " requested changes"
		g.From = "their next review, or the dismissal of that one"
		return g
	}
	wanted, got := max(count, 1), people(given)
	if g.Met = got >= wanted; g.Met {
		return g
	}
	g.From = "an approving review or `/holdfast approve` from anyone with write permission, except " + cmp.Or(pr.Author, "its author")
	switch {
	case got > 0:
		g.Missing = fmt.Sprintf("%d of %d approvals", got, wanted)
		g.From = strings.Replace(g.From, "anyone", "anyone else", 1)
		if mixed(given) {
			g.Missing += ": one through the API and one on the code host may be the same person's"
		}
	case len(void) == 0:
		g.Missing = "nobody has approved it"
	}
	if len(void) > 0 {
		g.Missing = strings.TrimPrefix(g.Missing+"; "+strings.Join(void, "; "), "; ")
	}
	return g
}

// approval is one that counts. Api: it was given through the API, by a name that is not the
// code host's. Person: by somebody who is called as an identity provider says.
type approval struct {
	by, how     string
	api, person bool
}

// people is how many different ones have certainly given approvals. Somebody with an account on
// the code host and a token of the API has two names, which nobody knows to be one person's:
// those of one kind count, whichever are more.
func people(given []approval) int {
	seen := map[bool]map[string]bool{false: {}, true: {}}
	for _, a := range given {
		seen[a.api][strings.ToLower(a.by)] = true
	}
	return max(len(seen[false]), len(seen[true]))
}

// mixed reports whether approvals were given both on the code host and through the API.
func mixed(given []approval) bool {
	api := func(a approval) bool { return a.api }
	return slices.ContainsFunc(given, api) && slices.ContainsFunc(given, func(a approval) bool { return !a.api })
}

// approvals are those that count for what plan does, each once, and why others do not.
func approvals(pr holdfast.PullRequestRecord, cluster string, plan holdfast.Run, runs []holdfast.Run) (given []approval, void []string) {
	give := func(by, how string, api, person bool) {
		if a := (approval{by, by + how, api, person}); !slices.Contains(given, a) {
			given = append(given, a)
		}
	}
	for _, v := range pr.Verdicts {
		switch {
		case !v.Approves:
		case v.Head != pr.Head:
			void = append(void, fmt.Sprintf("%s approved an older commit", v.By))
		case !shownBefore(v.At, pr, plan, runs):
			void = append(void, fmt.Sprintf("%s approved before this plan was shown", v.By))
		default:
			give(v.By, " approved in a review", false, false)
		}
	}
	for _, a := range pr.Approvals {
		switch {
		case a.Waives != "":
		case a.Head != pr.Head:
			void = append(void, fmt.Sprintf("%s approved an older commit", a.By))
		case a.Ended != "":
			void = append(void, fmt.Sprintf("the approval of %s ended: %s", a.By, a.Ended))
		case !isFor(a, cluster):
			void = append(void, a.By+" approved other clusters")
		case !covers(a, pr, plan, runs):
			void = append(void, fmt.Sprintf("%s approved before this plan was shown", a.By))
		default:
			give(a.By, " approved by command", a.CommentID == "", a.Person)
		}
	}
	return given, unique(void)
}

// Objectors are the people whose request for changes is in force, sorted.
func Objectors(pr holdfast.PullRequestRecord) []string {
	var by []string
	for _, v := range pr.Verdicts {
		if !v.Approves {
			by = append(by, v.By)
		}
	}
	slices.Sort(by)
	return slices.Compact(by)
}

// mergeable: the forge's last word before the merge was that it would let the pull
// request be merged. After a merge for which it did not say so (an admin can bypass
// branch protection) somebody may approve it instead.
func mergeable(pr holdfast.PullRequestRecord, cluster string) holdfast.Gate {
	g := holdfast.Gate{Name: holdfast.GateMergeable, Met: pr.Mergeable}
	merged := pr.State == holdfast.PullRequestMerged
	for _, a := range pr.Approvals {
		if merged && a.Waives == "" && a.Ended == "" && a.Head == pr.Head && a.At.After(pr.MergedAt) && isFor(a, cluster) {
			g.Met, g.Given = true, append(g.Given, a.By+" approved the merge by command")
		}
	}
	g.Given = unique(g.Given)
	switch {
	case g.Met:
		return g
	case pr.Blocked != "":
		g.Missing = fmt.Sprintf("the code host blocks the merge: %q", pr.Blocked)
	default:
		g.Missing = "the code host has not reported yet whether it can be merged"
	}
	if g.From = "what the code host asks for: checks, reviews, no conflicts"; merged {
		g.Missing = "the code host did not report before the merge that it could be merged"
		if pr.Blocked != "" {
			g.Missing = fmt.Sprintf("before the merge, the code host last reported it as not mergeable: %q", pr.Blocked)
		}
		g.From = "`/holdfast approve` from anyone with write permission, except " + cmp.Or(pr.Author, "its author")
	}
	return g
}

// isFor reports whether an approval by command was given for a cluster. One from before
// that was recorded is for all.
func isFor(a holdfast.Approval, cluster string) bool {
	return len(a.Clusters) == 0 || slices.Contains(a.Clusters, cluster)
}

// covers reports whether an approval by command was of what plan does: of the
// runs that our comment showed when it was given. One in a comment is of what its author
// had read: not if our comment turned out to be edited, and counts as shown later. One
// from before these were recorded counts by its time.
func covers(a holdfast.Approval, pr holdfast.PullRequestRecord, plan holdfast.Run, runs []holdfast.Run) bool {
	switch {
	case len(a.Runs) == 0:
		return a.CommentID == "" && shownBefore(a.At, pr, plan, runs)
	case a.CommentID != "" && !shownBefore(a.At, pr, plan, runs):
		return false
	}
	return IsOf(a.Runs, pr, plan, runs)
}

// IsOf reports whether what plan does is what one of the runs named in seen has planned.
func IsOf(seen []string, pr holdfast.PullRequestRecord, plan holdfast.Run, runs []holdfast.Run) bool {
	return slices.ContainsFunc(same(pr, plan, runs), func(run holdfast.Run) bool { return slices.Contains(seen, run.ID) })
}

// shownBefore reports whether what plan does was on the forge in an earlier
// second than at, the stamps of forges have no more, and nobody had edited our comment,
// nor did it show none of the plans at some time in that second or just before.
func shownBefore(at time.Time, pr holdfast.PullRequestRecord, plan holdfast.Run, runs []holdfast.Run) bool {
	at = at.Truncate(time.Second)
	if pr.UnshownAt(at.Add(-time.Nanosecond)) || pr.UnshownAt(at.Add(time.Second-time.Nanosecond)) {
		return false
	}
	return pr.ShownSince.Before(at) && slices.ContainsFunc(same(pr, plan, runs), func(run holdfast.Run) bool {
		return !run.PostedAt.IsZero() && run.PostedAt.Truncate(time.Second).Before(at)
	})
}

// same returns plan and the runs that came to the same: those of its revision and, after
// the merge, those of the pull request's head and of its merge.
func same(pr holdfast.PullRequestRecord, plan holdfast.Run, runs []holdfast.Run) []holdfast.Run {
	if plan.ID == "" {
		return nil
	}
	out := []holdfast.Run{plan}
	for _, run := range runs {
		about := run.Revision == plan.Revision || run.PullRequest.IsZero() && run.StandsFor(pr.PullRequestRef) ||
			plan.PullRequest.IsZero() && run.PullRequest == pr.PullRequestRef && run.Revision == pr.Head
		if about && run.ID != plan.ID && !run.Sample && run.Destroys() == plan.Destroys() &&
			plan.Fingerprint != "" && run.Fingerprint.Equal(plan.Fingerprint) && run.PlanDigest == plan.PlanDigest {
			out = append(out, run)
		}
	}
	return out
}

// Alike reports whether two records of a pull request have the same reviews, and the same
// approvals in force.
func Alike(a, b holdfast.PullRequestRecord) bool {
	reviews := slices.EqualFunc(a.Verdicts, b.Verdicts, func(v, w holdfast.Verdict) bool {
		return v.By == w.By && v.Approves == w.Approves && v.Head == w.Head && v.At.Equal(w.At)
	})
	return reviews && slices.EqualFunc(a.Approvals, b.Approvals, func(x, y holdfast.Approval) bool { return x.Ended == y.Ended })
}

// unique drops what is there already.
func unique(words []string) []string {
	var out []string
	for _, word := range words {
		if !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}
