package mergequeue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// prefix is where GitHub keeps the groups of its queues, by base branch.
const prefix = "refs/heads/gh-readonly-queue/"

// Entry is a branch that a queue has made: the base with the pull requests that
// come before, and this one.
type Entry struct {
	Number int // of the pull request
	Commit holdfast.Revision
}

// Entries returns the entries of the queue of a branch, by number.
func Entries(refs holdfast.Refs, branch string) []Entry {
	var entries []Entry
	for ref, commit := range refs {
		// gh-readonly-queue/BRANCH/pr-NUMBER-COMMIT
		name, ok := strings.CutPrefix(ref, prefix+branch+"/pr-")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(name, "-")
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			entries = append(entries, Entry{Number: n, Commit: commit})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(string(a.Commit), string(b.Commit)))
	})
	return entries
}

// Member is a pull request of a group.
type Member struct {
	Number int
	// Plan is the plan status of its head that is on the forge; the zero value:
	// there is none yet.
	Plan     holdfast.CommitStatus
	Clusters []holdfast.PullRequestCluster // as its own merge result has them
}

// Judge returns the plan status of a group's commit, which changes clusters and has
// that many faults. It is green if each pull request is, and each cluster equals
// what one of them has planned. Unproven is why what it removes would not count as
// removed; empty: it would.
func Judge(
	commit holdfast.Revision, members []Member, clusters []holdfast.PullRequestCluster, faults int, unproven string,
) holdfast.CommitStatus {
	if status, decided := JudgeMembers(commit, members); decided {
		return status
	}
	if faults > 0 {
		return says(commit, holdfast.StatusFailure, "the merge result has %d faults that no pull request of the group has alone", faults)
	}
	if unproven != "" {
		return says(commit, holdfast.StatusFailure, "%s", unproven)
	}
	for _, c := range clusters {
		if touching := unplanned(c, members); touching != "" {
			return says(commit, holdfast.StatusFailure, "%s would differ from the plan: %s", c.Name, touching)
		}
	}
	return says(commit, holdfast.StatusSuccess, "%s", green(members, clusters))
}

// JudgeMembers returns the plan status of a group's commit and true if its pull requests
// alone decide it: one is red, or its plan is still being made. It is red if one is,
// whatever the others wait for.
func JudgeMembers(commit holdfast.Revision, members []Member) (holdfast.CommitStatus, bool) {
	for _, m := range members {
		switch m.Plan.State {
		case holdfast.StatusSuccess, holdfast.StatusPending, "":
		default:
			return says(commit, holdfast.StatusFailure, "the plan of #%d is not green: %s", m.Number, m.Plan.Description), true
		}
	}
	for _, m := range members {
		if m.Plan.State != holdfast.StatusSuccess {
			return says(commit, holdfast.StatusPending, "waits for the plan of #%d", m.Number), true
		}
	}
	return holdfast.CommitStatus{}, false
}

// Unreadable returns the plan status of a group's commit that cannot be judged. Code hosts
// show the beginning only: the commit is named in short.
func Unreadable(commit holdfast.Revision, cause error) holdfast.CommitStatus {
	why := strings.ReplaceAll(cause.Error(), string(commit), commit.Short())
	return says(commit, holdfast.StatusError, "the merge result cannot be read: %s", why)
}

// Removed returns the clusters that pull requests remove, each of these alone: people were
// shown that, whatever takes the places of their documents with the others.
func Removed(members []Member) []string {
	var names []string
	for _, m := range members {
		for _, c := range m.Clusters {
			if c.Removed && !c.Sample {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func says(commit holdfast.Revision, state holdfast.StatusState, format string, args ...any) holdfast.CommitStatus {
	return holdfast.CommitStatus{Revision: commit, Context: holdfast.ContextPlan, State: state, Description: fmt.Sprintf(format, args...)}
}

// unplanned says why nobody has planned what a cluster renders to; empty: somebody
// has.
func unplanned(c holdfast.PullRequestCluster, members []Member) string {
	var touching []string
	for _, m := range members {
		for _, own := range m.Clusters {
			if own.Name != c.Name || own.Sample {
				continue
			}
			if own.Removed == c.Removed && (c.Removed || own.SourceDigest.Equal(c.SourceDigest)) {
				return ""
			}
			touching = append(touching, fmt.Sprintf("#%d", m.Number))
		}
	}
	switch len(touching) {
	case 0:
		return "no pull request of the group has planned it"
	case 1:
		return "it has changed since the plan of " + touching[0]
	default:
		return strings.Join(touching, " and ") + " change it; merge one, the other is planned again then"
	}
}

func green(members []Member, clusters []holdfast.PullRequestCluster) string {
	numbers := make([]string, len(members))
	for i, m := range members {
		numbers[i] = fmt.Sprintf("#%d", m.Number)
	}
	what := fmt.Sprintf("%d clusters as planned", len(clusters))
	if len(clusters) == 1 {
		what = "1 cluster as planned"
	} else if len(clusters) == 0 {
		what = "no cluster is affected"
	}
	return what + ": " + strings.Join(numbers, ", ")
}
