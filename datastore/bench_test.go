package datastore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

func BenchmarkCreateRun(b *testing.B) {
	store := openSQLite(b)
	for i := 0; b.Loop(); i++ {
		create(b, store, newRun(i))
	}
}

// BenchmarkClaimRun claims and ends runs beside thousands that have ended and
// thousands that wait.
func BenchmarkClaimRun(b *testing.B) {
	for _, history := range []int{0, 5000} {
		b.Run(fmt.Sprint("history=", history), func(b *testing.B) {
			store := openSQLite(b)
			fill(b, store, history)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				create(b, store, newRun(100_000+i))
				b.StartTimer()
				id := must[[]string](b)(store.Claimable(b.Context(), holdfast.ClaimFilter{Now: noon, Limit: 1}))[0]
				run := must[holdfast.Run](b)(store.ClaimRun(b.Context(), id, protocol.AgentRef{ID: "agent"}, noon, 10))
				end(b, store, run, holdfast.RunPlanned)
			}
		})
	}
}

// fill stores n runs that have ended and as many that wait.
func fill(b *testing.B, store *datastore.Store, n int) {
	b.Helper()
	for i := range n {
		run := newRun(i)
		run.Status = holdfast.RunPlanned
		waiting := newRun(n + i)
		waiting.Status, waiting.NotBefore = holdfast.RunRetrying, noon.AddDate(1, 0, 0)
		create(b, store, run, waiting)
	}
}

// fleet stores n clusters of a hundred environments, teams and projects, half of
// them in drift.
func fleet(b *testing.B, store *datastore.Store, n int) {
	b.Helper()
	for i := range n {
		must[holdfast.ClusterRecord](b)(store.SaveCluster(b.Context(), member(i)))
	}
}

func member(i int) holdfast.ClusterRecord {
	document := holdfast.Cluster{
		Name: fmt.Sprintf("cluster-%05d", i), Project: fmt.Sprint("p", i%100), Environment: fmt.Sprint("e", i%100),
		Provider: "aws", Template: &holdfast.TemplateRef{Name: "kubernetes", Version: "1.4.2"},
		Labels:    map[string]string{"team": fmt.Sprint("t", i%100), "tier": fmt.Sprint(i % 3)},
		DependsOn: []string{fmt.Sprint("network-", i%100)},
		Variables: map[string]any{"node_count": 3, "text": strings.Repeat("x", 200)},
	}
	c := holdfast.ClusterRecord{
		Name: document.Name, Owner: "fleet", Phase: holdfast.PhaseActive,
		Desired: holdfast.Desired{Document: document, SourceDigest: "sha256:d"},
		Applied: holdfast.Applied{Document: document, SourceDigest: "sha256:d", Run: fmt.Sprint("run-", i), Revision: "abc", At: noon},
		Drift:   holdfast.DriftState{Status: holdfast.DriftNone, CheckedAt: noon.Add(-time.Duration(i)), Due: noon.Add(-time.Duration(i%1000) * time.Second)},
	}
	if i%2 == 0 {
		c.Drift.Status, c.Drift.Counts = holdfast.DriftFound, holdfast.DriftCounts{Changed: 2, Ignored: 1}
	}
	if i%100 == 0 {
		c.Phase = holdfast.PhaseFailed
	}
	return c
}

func BenchmarkClusters(b *testing.B) {
	store := openSQLite(b)
	fleet(b, store, 10_000)
	ctx := b.Context()
	for name, filter := range map[string]holdfast.ClusterFilter{
		"all":         {},
		"environment": {Environment: "e7"},
		"label":       {Labels: map[string]string{"team": "t7"}},
		"phase":       {Phase: holdfast.PhaseFailed},
		"dependents":  {DependsOn: "network-7"},
		"drift":       {Drift: holdfast.DriftFound, Environment: "e8"},
		"waiting":     {Waiting: "*"},
	} {
		b.Run("records/"+name, func(b *testing.B) {
			for b.Loop() {
				must[[]holdfast.ClusterRecord](b)(store.Clusters(ctx, filter))
			}
		})
		b.Run("summaries/"+name, func(b *testing.B) {
			for b.Loop() {
				must[[]holdfast.ClusterSummary](b)(store.ClusterSummaries(ctx, filter))
			}
		})
		b.Run("count/"+name, func(b *testing.B) {
			for b.Loop() {
				must[int](b)(store.CountClusters(ctx, filter))
			}
		})
	}
	b.Run("one", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			must[holdfast.ClusterRecord](b)(store.Cluster(ctx, member(i%10_000).Name))
		}
	})
	b.Run("save", func(b *testing.B) {
		c := must[holdfast.ClusterRecord](b)(store.Cluster(ctx, member(0).Name))
		for b.Loop() {
			c = must[holdfast.ClusterRecord](b)(store.SaveCluster(ctx, c))
		}
	})
	b.Run("save with history", func(b *testing.B) {
		c := must[holdfast.ClusterRecord](b)(store.Cluster(ctx, member(0).Name))
		for b.Loop() {
			c = must[holdfast.ClusterRecord](b)(store.SaveCluster(ctx, c, holdfast.Transition{What: "phase", From: "Active", To: "Updating"}))
		}
	})
}

// BenchmarkDriftDue looks for what is due among ten thousand: all of them, few,
// none, and with a queue of checks already there.
func BenchmarkDriftDue(b *testing.B) {
	store := openSQLite(b)
	fleet(b, store, 10_000)
	look := func(name string, at time.Time) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must[[]holdfast.ClusterRecord](b)(store.DriftDue(b.Context(), at, 20))
			}
		})
	}
	look("all", noon)
	look("few", noon.Add(-998*time.Second))
	look("none", noon.Add(-2000*time.Second))
	for i := 9_000; i < 10_000; i++ { // those checked longest ago
		run := newRun(i)
		run.Kind, run.Cluster = holdfast.RunDrift, member(i).Name
		create(b, store, run)
	}
	look("busy", noon)
	b.Run("next", func(b *testing.B) {
		for b.Loop() {
			must[time.Time](b)(store.NextDriftDue(b.Context(), noon.Add(-500*time.Second)))
		}
	})
}

// BenchmarkClaimable looks for work in a queue of ten thousand, of which a
// thousand can be offered, and none.
func BenchmarkClaimable(b *testing.B) {
	store := openSQLite(b)
	for i := range 10_000 {
		run := newRun(i)
		run.Document.Provider = "aws"
		if i >= 9_000 {
			run.Document.Provider = "gcp"
		}
		create(b, store, run)
	}
	for name, providers := range map[string][]string{"all": nil, "the last": {"aws"}, "none": {"aws", "gcp"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must[[]string](b)(store.Claimable(b.Context(), holdfast.ClaimFilter{Now: noon, Limit: 16, Providers: providers}))
			}
		})
	}
	b.Run("running", func(b *testing.B) {
		for b.Loop() {
			_, _, err := store.Served(b.Context(), noon)
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLanes looks for work in a queue of a hundred thousand, most of them plans that
// nobody waits for, beside those of a thousand pull requests: a claim reads of each pull
// request only as much as it offers.
func BenchmarkLanes(b *testing.B) {
	store := openSQLite(b)
	for i := range 100_000 {
		run := newRun(i)
		run.Background = true
		if i%10 == 0 {
			run.Background, run.PullRequest = false, holdfast.PullRequestRef{Repo: "fleet", Number: 1 + i/10%1000}
		}
		create(b, store, run)
	}
	for b.Loop() {
		running, lately, err := store.Served(b.Context(), noon)
		if err != nil {
			b.Fatal(err)
		}
		filter := holdfast.ClaimFilter{Now: noon, Limit: 16, Turns: decision.NewTurns(noon, running, lately)}
		must[[]string](b)(store.Claimable(b.Context(), filter))
	}
}

// BenchmarkResources saves what a check has found, mostly as it was, and looks
// for one of two hundred thousand.
func BenchmarkResources(b *testing.B) {
	store := openSQLite(b)
	resources := func(cluster int) []holdfast.Resource {
		var list []holdfast.Resource
		for i := range 200 {
			list = append(list, holdfast.Resource{
				Address: fmt.Sprintf("module.kubernetes.aws_eks_node_group.pool[%d]", i), Type: fmt.Sprint("aws_t", i%20),
				Provider: "registry.terraform.io/hashicorp/aws", ID: fmt.Sprintf("id-%d-%d", cluster, i), Run: "run-1", ChangedAt: noon,
			})
		}
		return list
	}
	for cluster := range 1000 {
		if err := store.SaveResources(b.Context(), fmt.Sprintf("c%04d", cluster), resources(cluster)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("save the same", func(b *testing.B) {
		same := resources(7)
		for b.Loop() {
			if err := store.SaveResources(b.Context(), "c0007", same); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, filter := range map[string]holdfast.ResourceFilter{
		"cluster": {Cluster: "c0007"}, "type": {Type: "aws_t7"}, "id": {ID: "id-7-7"}, "address": {Address: "pool[77]"},
		"cluster and type": {Cluster: "c0007", Type: "aws_t7"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must[[]holdfast.Resource](b)(store.Resources(b.Context(), filter))
			}
		})
	}
}

func BenchmarkAppendLog(b *testing.B) {
	store := openSQLite(b)
	run := claim(b, store, newRun(1))
	line := []byte(strings.Repeat("x", 200) + "\n")
	var offset int64
	for b.Loop() {
		offset = must[int64](b)(store.AppendLog(b.Context(), run.Ref(), offset, line))
	}
}

// BenchmarkPullRequest reads the record of a pull request, as each decision and each view does,
// and what a word of progress needs of it.
func BenchmarkPullRequest(b *testing.B) {
	for _, clusters := range []int{10, 500} {
		store := openSQLite(b)
		pr := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: thePullRequest, State: holdfast.PullRequestOpen}}
		for i := range clusters {
			pr.Clusters = append(pr.Clusters, holdfast.PullRequestCluster{Name: member(i).Name, SourceDigest: "sha256:d", Document: member(i).Desired.Document})
		}
		must[holdfast.PullRequestRecord](b)(store.SavePullRequest(b.Context(), pr))
		b.Run(fmt.Sprintf("read/clusters=%d", clusters), func(b *testing.B) {
			for b.Loop() {
				must[holdfast.PullRequestRecord](b)(store.PullRequest(b.Context(), thePullRequest))
			}
		})
		b.Run(fmt.Sprintf("list/clusters=%d", clusters), func(b *testing.B) {
			for b.Loop() {
				must[[]holdfast.PullRequestRecord](b)(store.PullRequests(b.Context(), holdfast.PullRequestFilter{Cluster: member(0).Name}))
			}
		})
		b.Run(fmt.Sprintf("version/clusters=%d", clusters), func(b *testing.B) {
			for b.Loop() {
				must[int64](b)(store.PullRequestVersion(b.Context(), thePullRequest))
			}
		})
	}
}
