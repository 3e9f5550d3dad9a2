package main

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

var (
	runID       = regexp.MustCompile(`^run-[0-9a-hjkmnp-tv-z]{20}$`)
	clusterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// target is what a command's arguments name: a run, a pull request, or
// clusters.
type target struct {
	run         string
	pullRequest holdfast.PullRequestRef
	clusters    []string
}

// parseTarget reads arguments such as run-…, shop#7, or cluster names.
func parseTarget(args []string) (target, error) {
	var t target
	for _, arg := range args {
		switch {
		case strings.Contains(arg, "#"):
			ref, err := parsePullRequest(arg)
			if err != nil {
				return t, err
			}
			t.pullRequest = ref
		case runID.MatchString(arg):
			t.run = arg
		case clusterName.MatchString(arg):
			t.clusters = append(t.clusters, arg)
		default:
			return t, usageError("%q is neither a cluster's name, nor a run's id, nor a pull request such as shop#7", arg)
		}
	}
	if len(args) > 1 && len(t.clusters) < len(args) {
		return t, usageError("give one run, or one pull request, or clusters")
	}
	return t, nil
}

func parsePullRequest(arg string) (holdfast.PullRequestRef, error) {
	i := strings.LastIndex(arg, "#")
	if i > 0 {
		if n, err := strconv.Atoi(arg[i+1:]); err == nil && n > 0 {
			return holdfast.PullRequestRef{Repo: arg[:i], Number: n}, nil
		}
	}
	return holdfast.PullRequestRef{}, usageError("%q is not a pull request: want repository#number, such as shop#7", arg)
}
