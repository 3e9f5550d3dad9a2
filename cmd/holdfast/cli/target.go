package cli

import (
	"regexp"
	"strconv"
	"strings"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

var (
	runID = regexp.MustCompile(`^run-[0-9a-hjkmnp-tv-z]{20}$`)
	// ClusterName is what a cluster can be called.
	ClusterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// target is what a command's arguments name: a run, a pull request, or
// clusters.
type target struct {
	Run         string
	PullRequest v1.PullRequestRef
	Clusters    []string
}

// ParseTarget reads arguments such as run-…, shop#7, or cluster names.
func ParseTarget(args []string) (target, error) {
	var t target
	for _, arg := range args {
		switch {
		case strings.Contains(arg, "#"):
			ref, err := ParsePullRequest(arg)
			if err != nil {
				return t, err
			}
			t.PullRequest = ref
		case runID.MatchString(arg):
			t.Run = arg
		case ClusterName.MatchString(arg):
			t.Clusters = append(t.Clusters, arg)
		default:
			return t, UsageError("%q is neither a cluster's name, nor a run's ID, nor a pull request such as shop#7", arg)
		}
	}
	if len(args) > 1 && len(t.Clusters) < len(args) {
		return t, UsageError("give one run, or one pull request, or clusters")
	}
	return t, nil
}

// ParsePullRequest reads repository#number.
func ParsePullRequest(arg string) (v1.PullRequestRef, error) {
	i := strings.LastIndex(arg, "#")
	if i > 0 {
		if n, err := strconv.Atoi(arg[i+1:]); err == nil && n > 0 {
			return v1.PullRequestRef{Repo: arg[:i], Number: n}, nil
		}
	}
	return v1.PullRequestRef{}, UsageError("%q is not a pull request: want repository#number, such as shop#7", arg)
}
