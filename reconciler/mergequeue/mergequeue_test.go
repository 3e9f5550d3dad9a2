package mergequeue_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/mergequeue"
)

func TestEntries(t *testing.T) {
	t.Parallel()
	got := mergequeue.Entries(holdfast.Refs{
		"refs/heads/main": "m",
		"refs/heads/gh-readonly-queue/main/pr-12-abc":        "b",
		"refs/heads/gh-readonly-queue/main/pr-3-def":         "a",
		"refs/heads/gh-readonly-queue/release/main/pr-4-abc": "c",
		"refs/heads/gh-readonly-queue/main/else":             "d",
		"refs/heads/gh-readonly-queue/main/pr-x-abc":         "e",
		"refs/tags/gh-readonly-queue/main/pr-5-abc":          "f",
	}, "main")
	if diff := cmp.Diff([]mergequeue.Entry{{Number: 3, Commit: "a"}, {Number: 12, Commit: "b"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	digest := func(s string) holdfast.Digest {
		d := holdfast.NewDigester("test")
		d.Add(s)
		return d.Digest()
	}
	c := func(name, content string) holdfast.PullRequestCluster {
		if content == "" {
			return holdfast.PullRequestCluster{Name: name, Removed: true}
		}
		return holdfast.PullRequestCluster{Name: name, SourceDigest: digest(content)}
	}
	pr := func(number int, state holdfast.StatusState, clusters ...holdfast.PullRequestCluster) mergequeue.Member {
		return mergequeue.Member{Number: number, Plan: holdfast.CommitStatus{State: state, Description: "as it is"}, Clusters: clusters}
	}
	const ok, fails, waits = holdfast.StatusSuccess, holdfast.StatusFailure, holdfast.StatusPending
	sample := c("a", "1")
	sample.Sample = true
	tests := map[string]struct {
		members  []mergequeue.Member
		clusters []holdfast.PullRequestCluster
		faults   int
		want     holdfast.StatusState
		says     string
	}{
		"as planned":             {[]mergequeue.Member{pr(1, ok, c("a", "1"))}, []holdfast.PullRequestCluster{c("a", "1")}, 0, ok, "1 cluster as planned: #1"},
		"no cluster":             {[]mergequeue.Member{pr(1, ok)}, nil, 0, ok, "no cluster is affected: #1"},
		"two, of their own":      {[]mergequeue.Member{pr(1, ok, c("a", "1")), pr(2, ok, c("b", "2"))}, []holdfast.PullRequestCluster{c("a", "1"), c("b", "2")}, 0, ok, "2 clusters as planned: #1, #2"},
		"two, the same":          {[]mergequeue.Member{pr(1, ok, c("a", "1")), pr(2, ok, c("a", "1"))}, []holdfast.PullRequestCluster{c("a", "1")}, 0, ok, "#1, #2"},
		"two of one cluster":     {[]mergequeue.Member{pr(1, ok, c("a", "1")), pr(2, ok, c("a", "2"))}, []holdfast.PullRequestCluster{c("a", "3")}, 0, fails, "#1 and #2 change it"},
		"a removal":              {[]mergequeue.Member{pr(1, ok, c("a", ""))}, []holdfast.PullRequestCluster{c("a", "")}, 0, ok, ""},
		"removed, and kept":      {[]mergequeue.Member{pr(1, ok, c("a", ""))}, []holdfast.PullRequestCluster{c("a", "1")}, 0, fails, "since the plan of #1"},
		"kept, and removed":      {[]mergequeue.Member{pr(1, ok, c("a", "1"))}, []holdfast.PullRequestCluster{c("a", "")}, 0, fails, "since the plan of #1"},
		"nobody's":               {[]mergequeue.Member{pr(1, ok)}, []holdfast.PullRequestCluster{c("a", "1")}, 0, fails, "no pull request of the group has planned it"},
		"a sample is not a plan": {[]mergequeue.Member{pr(1, ok, sample)}, []holdfast.PullRequestCluster{c("a", "1")}, 0, fails, "no pull request"},
		"one is red":             {[]mergequeue.Member{pr(1, waits), pr(2, fails)}, nil, 0, fails, "the plan of #2 is not green: as it is"},
		"one is an error":        {[]mergequeue.Member{pr(1, holdfast.StatusError)}, nil, 0, fails, "#1"},
		"one waits":              {[]mergequeue.Member{pr(1, ok), pr(2, waits)}, []holdfast.PullRequestCluster{c("a", "1")}, 1, waits, "waits for the plan of #2"},
		"one is not known":       {[]mergequeue.Member{{Number: 4}}, nil, 0, waits, "waits for the plan of #4"},
		"a fault of them all":    {[]mergequeue.Member{pr(1, ok), pr(2, ok)}, nil, 2, fails, "2 faults"},
	}
	removals := []holdfast.PullRequestCluster{c("a", ""), c("b", "")}
	both := mergequeue.Judge("g", []mergequeue.Member{pr(1, ok, removals[0]), pr(2, ok, removals[1])}, removals, 0, "nothing is left")
	if both.State != fails || both.Description != "nothing is left" {
		t.Errorf("removals that prove nothing together: %+v", both)
	}
	for name, test := range tests {
		got := mergequeue.Judge("g", test.members, test.clusters, test.faults, "")
		if got.State != test.want || got.Revision != "g" || got.Context != holdfast.ContextPlan || !strings.Contains(got.Description, test.says) {
			t.Errorf("%s: %+v; want %s with %q", name, got, test.want, test.says)
		}
	}
}
