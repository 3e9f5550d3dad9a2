package datastore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func testClusters(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	record := func(name, owner, environment, team, waiting string) holdfast.ClusterRecord {
		return holdfast.ClusterRecord{
			Name: name, Owner: owner, Waiting: holdfast.Reason(waiting), Phase: holdfast.PhaseActive, UpdatedAt: noon,
			Desired: holdfast.Desired{Document: holdfast.Cluster{
				Name: name, Project: "payments", Environment: environment, Labels: map[string]string{"team": team, "tier": "1"},
				Variables: map[string]any{"node_count": 3.0},
			}},
		}
	}
	var saved []holdfast.ClusterRecord
	for _, c := range []holdfast.ClusterRecord{
		record("prod-eu", "fleet", "production", "blue", ""),
		record("dev-us", "fleet", "development", "blue", "Unreviewed"),
		record("dev-eu", "other", "development", "red", "Locked"),
	} {
		c = must[holdfast.ClusterRecord](t)(store.SaveCluster(ctx, c))
		if c.Version != 1 {
			t.Errorf("SaveCluster() of a new record = version %d, want 1", c.Version)
		}
		saved = append(saved, c)
	}
	if diff := differ(saved[0], must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "prod-eu"))); diff != "" {
		t.Errorf("Cluster() (-saved +got):\n%s", diff)
	}
	if _, err := store.Cluster(ctx, "none"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Cluster(none) = %v, want ErrNotFound", err)
	}

	for name, test := range map[string]struct {
		filter holdfast.ClusterFilter
		want   []string
	}{
		"all, by name":  {holdfast.ClusterFilter{}, []string{"dev-eu", "dev-us", "prod-eu"}},
		"names":         {holdfast.ClusterFilter{Names: []string{"prod-eu", "none", "dev-us", "prod-eu"}}, []string{"dev-us", "prod-eu"}},
		"owner":         {holdfast.ClusterFilter{Owner: "other"}, []string{"dev-eu"}},
		"environment":   {holdfast.ClusterFilter{Environment: "development", Project: "payments"}, []string{"dev-eu", "dev-us"}},
		"phase":         {holdfast.ClusterFilter{Phase: holdfast.PhaseFailed}, nil},
		"waiting":       {holdfast.ClusterFilter{Waiting: "Locked"}, []string{"dev-eu"}},
		"waiting, any":  {holdfast.ClusterFilter{Waiting: "*"}, []string{"dev-eu", "dev-us"}},
		"labels":        {holdfast.ClusterFilter{Labels: map[string]string{"team": "blue", "tier": "1"}}, []string{"dev-us", "prod-eu"}},
		"labels, other": {holdfast.ClusterFilter{Labels: map[string]string{"team": ""}}, nil},
	} {
		var got []string
		for _, c := range must[[]holdfast.ClusterRecord](t)(store.Clusters(ctx, test.filter)) {
			got = append(got, c.Name)
		}
		if diff := differ(test.want, got); diff != "" {
			t.Errorf("Clusters(%s) (-want +got):\n%s", name, diff)
		}
	}

	c := saved[0]
	c.Desired.Document.Environment, c.StateSerial = "staging", 99
	c = must[holdfast.ClusterRecord](t)(store.SaveCluster(ctx, c))
	if _, err := store.SaveCluster(ctx, saved[0]); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("SaveCluster with an old version = %v, want ErrConflict", err)
	}
	fresh := record("prod-eu", "thief", "", "", "")
	if _, err := store.SaveCluster(ctx, fresh); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("SaveCluster of a second record of a name = %v, want ErrConflict", err)
	}
	got := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "prod-eu"))
	if got.Version != c.Version || got.Desired.Document.Environment != "staging" || got.StateSerial != 0 {
		t.Errorf("Cluster() after SaveCluster() = version %d, environment %q, serial %d", got.Version, got.Desired.Document.Environment, got.StateSerial)
	}
}

func testSources(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	if _, err := store.RepositoryState(ctx, "fleet"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Source(unknown) = %v, want ErrNotFound", err)
	}
	for _, want := range []holdfast.RepositoryState{
		{Repo: "fleet", Head: "abc", CommentsSeen: noon, PolledAt: noon.Add(1)},
		{Repo: "fleet", Head: "def", LastError: "gone"},
	} {
		if err := store.SaveRepositoryState(ctx, want); err != nil {
			t.Fatal(err)
		}
		if diff := differ(want, must[holdfast.RepositoryState](t)(store.RepositoryState(ctx, "fleet"))); diff != "" {
			t.Errorf("Source() (-saved +got):\n%s", diff)
		}
	}

	for _, test := range []struct {
		tag       string
		rev, want holdfast.Revision
	}{{"v1.0.0", "abc", "abc"}, {"v1.0.0", "moved", "abc"}, {"v1.0.1", "def", "def"}} {
		if got := must[holdfast.Revision](t)(store.PinTag(ctx, "templates", test.tag, test.rev)); got != test.want {
			t.Errorf("PinTag(%s, %s) = %s, want %s", test.tag, test.rev, got, test.want)
		}
	}
	must[holdfast.Revision](t)(store.PinTag(ctx, "other", "v1.0.0", "fed"))
	if err := store.MovePin(ctx, "other", "v1.0.0", "abc", "def"); err != nil {
		t.Fatal(err)
	}
	if got := must[holdfast.Revision](t)(store.PinTag(ctx, "other", "v1.0.0", "x")); got != "fed" {
		t.Errorf("moved from another commit, it is %s", got)
	}
	if err := store.MovePin(ctx, "other", "v1.0.0", "fed", "def"); err != nil {
		t.Fatal(err)
	}
	if got := must[holdfast.Revision](t)(store.PinTag(ctx, "other", "v1.0.0", "x")); got != "def" {
		t.Errorf("moved, it is %s", got)
	}
	pins := must[map[string]holdfast.Revision](t)(store.TagPins(ctx, "templates"))
	if diff := differ(map[string]holdfast.Revision{"v1.0.0": "abc", "v1.0.1": "def"}, pins); diff != "" {
		t.Errorf("TagPins() (-want +got):\n%s", diff)
	}
	if pins := must[map[string]holdfast.Revision](t)(store.TagPins(ctx, "none")); len(pins) != 0 {
		t.Errorf("TagPins() of a repository without = %v", pins)
	}
}

func testLeases(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	for i, test := range []struct {
		owner string
		at    time.Time
		ttl   time.Duration
		want  bool
	}{
		{"a", noon, time.Minute, true},
		{"b", noon.Add(30 * time.Second), time.Minute, false},
		{"a", noon.Add(45 * time.Second), time.Minute, true}, // renewed
		{"b", noon.Add(70 * time.Second), time.Minute, false},
		{"b", noon.Add(105 * time.Second), time.Minute, true}, // ended
		{"a", noon.Add(110 * time.Second), time.Minute, false},
		{"b", noon.Add(110 * time.Second), 0, true}, // given back
		{"a", noon.Add(110 * time.Second), time.Minute, true},
	} {
		if got := must[bool](t)(store.Lease(ctx, "repo/fleet", test.owner, test.at, test.ttl)); got != test.want {
			t.Errorf("step %d: Lease(%s) = %v, want %v", i, test.owner, got, test.want)
		}
	}
}

func testPullRequests(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	record := func(repo string, number int, state holdfast.PullRequestState, clusters ...string) holdfast.PullRequestRecord {
		pr := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: repo, Number: number}, State: state, Head: "abc", UpdatedAt: noon,
		}}
		for _, name := range clusters {
			pr.Clusters = append(pr.Clusters, holdfast.PullRequestCluster{
				Name: name, Document: holdfast.Cluster{Name: name, Variables: map[string]any{"a": "b"}},
			})
		}
		return pr
	}
	merged := record("fleet", 6, holdfast.PullRequestMerged, "dev-us")
	merged.MergedAt = noon.Add(time.Hour)
	earlier := record("fleet", 8, holdfast.PullRequestMerged, "dev-us")
	earlier.MergedAt = noon
	for _, pr := range []holdfast.PullRequestRecord{
		merged, earlier,
		record("fleet", 7, holdfast.PullRequestOpen, "prod-eu", "dev-us"),
		record("other", 9, holdfast.PullRequestOpen, "dev-eu"),
	} {
		saved := must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, pr))
		if diff := differ(saved, must[holdfast.PullRequestRecord](t)(store.PullRequest(ctx, pr.PullRequestRef))); diff != "" {
			t.Errorf("PullRequest() (-saved +got):\n%s", diff)
		}
	}
	if _, err := store.PullRequest(ctx, holdfast.PullRequestRef{Repo: "fleet", Number: 9}); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("PullRequest(unknown) = %v, want ErrNotFound", err)
	}
	list := func(filter holdfast.PullRequestFilter) []int {
		var numbers []int
		for _, pr := range must[[]holdfast.PullRequestRecord](t)(store.PullRequests(ctx, filter)) {
			numbers = append(numbers, pr.Number)
		}
		return numbers
	}
	for name, test := range map[string]struct {
		filter holdfast.PullRequestFilter
		want   []int
	}{
		"all":     {holdfast.PullRequestFilter{}, []int{9, 8, 7, 6}},
		"limit":   {holdfast.PullRequestFilter{Limit: 2}, []int{9, 8}},
		"repo":    {holdfast.PullRequestFilter{Repo: "fleet"}, []int{8, 7, 6}},
		"open":    {holdfast.PullRequestFilter{States: []holdfast.PullRequestState{holdfast.PullRequestOpen}}, []int{9, 7}},
		"cluster": {holdfast.PullRequestFilter{Cluster: "dev-us"}, []int{8, 7, 6}},
		"merges":  {holdfast.PullRequestFilter{ByMerge: true, Limit: 2}, []int{6, 8}},
		"merges of a cluster": {holdfast.PullRequestFilter{
			States: []holdfast.PullRequestState{holdfast.PullRequestMerged}, Cluster: "dev-us", ByMerge: true, Limit: 1,
		}, []int{6}},
	} {
		if diff := differ(test.want, list(test.filter)); diff != "" {
			t.Errorf("PullRequests(%s) (-want +got):\n%s", name, diff)
		}
	}

	old := must[holdfast.PullRequestRecord](t)(store.PullRequest(ctx, holdfast.PullRequestRef{Repo: "fleet", Number: 7}))
	changed := old
	changed.Clusters = changed.Clusters[:1]
	must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, changed))
	if _, err := store.SavePullRequest(ctx, old); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("SavePullRequest with an old version = %v, want ErrConflict", err)
	}
	if diff := differ(map[int]int64{7: 2}, must[map[int]int64](t)(store.OpenPullRequests(ctx, "fleet"))); diff != "" {
		t.Errorf("OpenPullRequests() (-want +got):\n%s", diff)
	}
	if got := must[map[int]int64](t)(store.OpenPullRequests(ctx, "none")); len(got) != 0 {
		t.Errorf("OpenPullRequests() of another repository = %v", got)
	}
	if diff := differ([]int{8, 6}, list(holdfast.PullRequestFilter{Cluster: "dev-us"})); diff != "" {
		t.Errorf("PullRequests of a cluster that one affects no more (-want +got):\n%s", diff)
	}
}

func testLocalForge(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	for i, repo := range []string{"fleet", "fleet", "other"} {
		pr := holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: repo}, Title: fmt.Sprint(i), State: holdfast.PullRequestOpen}
		if got := must[holdfast.PullRequest](t)(store.SaveLocalPullRequest(ctx, pr)); got.Number != i%2+1 {
			t.Errorf("SaveLocalPullRequest() number %d of %s = #%d", i, repo, got.Number)
		}
	}
	first := holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: "fleet", Number: 1}, Title: "changed", State: holdfast.PullRequestMerged}
	must[holdfast.PullRequest](t)(store.SaveLocalPullRequest(ctx, first))
	prs := must[[]holdfast.PullRequest](t)(store.LocalPullRequests(ctx, "fleet"))
	if len(prs) != 2 || prs[0].Number != 2 || !same(prs[1], first) {
		t.Errorf("LocalPullRequests() = %+v", prs)
	}

	ref := first.PullRequestRef
	comment := must[holdfast.Comment](t)(store.SaveLocalComment(ctx, holdfast.Comment{PullRequest: ref, Author: "ana", Body: "/holdfast plan"}))
	other := must[holdfast.Comment](t)(store.SaveLocalComment(ctx, holdfast.Comment{
		PullRequest: prs[0].PullRequestRef, Author: "bo", Body: "hm", CreatedAt: noon.Add(time.Second),
	}))
	comment.Body, comment.UpdatedAt = "/holdfast apply", noon.Add(time.Minute)
	must[holdfast.Comment](t)(store.SaveLocalComment(ctx, comment))
	if diff := differ([]holdfast.Comment{comment}, must[[]holdfast.Comment](t)(store.LocalComments(ctx, ref))); diff != "" {
		t.Errorf("LocalComments() (-want +got):\n%s", diff)
	}
	for since, want := range map[time.Time][]holdfast.Comment{
		noon:                        {comment, other},
		noon.Add(30 * time.Second):  {comment},
		noon.Add(600 * time.Second): nil,
	} {
		if diff := differ(want, must[[]holdfast.Comment](t)(store.LocalCommentsSince(ctx, "fleet", since))); diff != "" {
			t.Errorf("LocalCommentsSince(%s) (-want +got):\n%s", since, diff)
		}
	}
	for _, id := range []string{"99", "x"} {
		if _, err := store.SaveLocalComment(ctx, holdfast.Comment{ID: id, PullRequest: ref}); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("SaveLocalComment of unknown id %q = %v, want ErrNotFound", id, err)
		}
	}

	for _, state := range []holdfast.StatusState{holdfast.StatusPending, holdfast.StatusSuccess} {
		for _, name := range []string{holdfast.ContextPlan, holdfast.ContextApply} {
			if err := store.SaveLocalStatus(ctx, "fleet", holdfast.CommitStatus{Revision: "abc", Context: name, State: state}); err != nil {
				t.Fatal(err)
			}
		}
	}
	statuses := must[[]holdfast.CommitStatus](t)(store.LocalStatuses(ctx, "fleet", "abc"))
	if len(statuses) != 2 || statuses[0].Context != holdfast.ContextApply || statuses[1].State != holdfast.StatusSuccess {
		t.Errorf("LocalStatuses() = %+v", statuses)
	}
}

func testAudit(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	entries := []holdfast.AuditEntry{
		{At: noon, Actor: "ana", Action: "run.cancel", Object: "run-1", Detail: "too slow"},
		{At: noon.Add(-time.Hour), Actor: "bo", Action: "lock.release", Object: "prod-eu"},
	}
	for _, entry := range entries {
		if err := store.Audit(ctx, entry); err != nil {
			t.Fatal(err)
		}
	}
	if diff := differ([]holdfast.AuditEntry{entries[1], entries[0]}, must[[]holdfast.AuditEntry](t)(store.AuditTrail(ctx, "", 0))); diff != "" {
		t.Errorf("AuditTrail() (-want +got):\n%s", diff)
	}
	if diff := differ(entries[:1], must[[]holdfast.AuditEntry](t)(store.AuditTrail(ctx, "run-1", 5))); diff != "" {
		t.Errorf("AuditTrail(run-1) (-want +got):\n%s", diff)
	}
}
