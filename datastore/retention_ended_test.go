package datastore_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// kept says of each table of the schema what bounds it: a retention, or why it does
// not grow, or has to.
var kept = map[string]string{
	"goose_db_version":  "a row for each migration",
	"sqlite_sequence":   "a row for each table that counts",
	"sqlite_stat1":      "a few rows for each index",
	"identity":          "one row",
	"counters":          "a row for each counter",
	"issuer":            "one row",
	"issuer_keys":       "the key that signs, the next one, and former ones whose tokens may live: a few",
	"rebuilds":          "a row for each rebuild to come",
	"leases":            "a row for each kind of work, and repository",
	"suspensions":       "a row for each project that is suspended",
	"repository_states": "a row for each repository",
	"tags":              "a row for each tag that was used: that it was moved is known by it",
	"people":            "a row for each person who has ever logged in: bindings and links name them",
	"person_links":      "a row for each account of a code host that somebody has logged in with",
	"personal_tokens":   "those that are not over, 50 of each owner: each new one deletes the others",
	"login_requests":    "1,000, for ten minutes",
	"sessions":          "those that are not over, of each person the newest 50: each login deletes the others",
	"runners":           "a row for each document",
	"runner_rules":      "a row for each document",
	"environments":      "a row for each environment that has ever run: it stays where it is",
	"breakers":          "a row for each provider that has throttled",
	"deliveries":        "the newest 5,000",
	"state_places":      "a row for each cluster that is applied",
	"upgrades":          "a row for each version that was proposed: what people declined is not proposed again",

	"clusters":             "a row for each cluster that there ever was: its name and history stay",
	"summaries":            "as clusters",
	"cluster_labels":       "as clusters",
	"cluster_dependencies": "as clusters",
	"transitions":          "the newest 100 of each cluster",
	"resources":            "those that there are",
	"states":               "a row for each location",
	"state_versions":       "the newest 50 of each location, of clusters that are gone one after retention.pullRequests; and in quarantine the newest 20 of each attempt, for a person to judge",
	"state_locks":          "a row for each location that is locked",
	"changes":              "a row for each cluster, run and pull request, and for the newest 10,000 that were deleted",
	"unsaved_states":       "a row for each location with a state that is to be saved",

	"notifications": "those that wait, 1,000 of each channel; others for 30 days after they were noticed last",

	"runs":           "retention.runs, retention.driftRuns; of clusters that are gone retention.pullRequests",
	"attempts":       "as runs",
	"tickets":        "as runs",
	"artefacts":      "as runs",
	"run_references": "as runs, and as clusters",
	"log_chunks":     "as runs, retention.logs",
	"bundles":        "those that a run or a cluster refers to",
	"audit":          "retention.audit",

	"pull_requests":         "retention.pullRequests",
	"pull_request_clusters": "as pull_requests",
	"impacts":               "as pull_requests",
	"requesters":            "as pull_requests",
	"posts":                 "retention.pullRequests; those of issues are a row for each cluster",
	"commands":              "retention.pullRequests",
	"local_comments":        "retention.pullRequests",
	"local_statuses":        "retention.pullRequests",
	"lane_turns":            "an hour: each claim deletes what is older",
	"local_pull_requests":   "retention.pullRequests; one for each branch that is left behind, which is not proposed again; and the last, as no number is given twice",
}

// TestEveryTableHasABound names one for each table; TestWhatIsGoneLeavesLittle sees that
// they hold.
func TestEveryTableHasABound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(memory.Dir(t), "holdfast.db")
	openAt(t, datastore.Options{Path: path})
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if n++; kept[name] == "" {
			t.Errorf("table %s has neither a retention nor a reason why it does not grow", name)
		}
	}
	if err := rows.Err(); err != nil || n < 30 {
		t.Errorf("%d tables were found: %v", n, err)
	}
}

// Pull requests that ended long ago go with all that was shown of them and said in
// them; those that somebody still needs stay, and so do newer ones.
func TestRetentionOfClustersThatAreGone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		retention time.Duration
		days      int
		record    func(rec *holdfast.ClusterRecord) // nil: it has none
		want      bool
	}{
		"long ago":                 {0, 200, func(rec *holdfast.ClusterRecord) { rec.Phase = holdfast.PhaseDeleted }, false},
		"of a pull request alone":  {0, 200, nil, false},
		"a while ago":              {0, 100, func(rec *holdfast.ClusterRecord) { rec.Phase = holdfast.PhaseDeleted }, true},
		"all are kept":             {-1, 2000, nil, true},
		"a cluster that there is":  {0, 200, func(*holdfast.ClusterRecord) {}, true},
		"it waits to be destroyed": {0, 200, func(rec *holdfast.ClusterRecord) { rec.Phase = holdfast.PhaseDeleting }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := memory.Dir(t)
			p := openPast(t, dir, datastore.Retention{Ended: tt.retention})
			p.run(holdfast.RunPlan, nil)
			p.states("c", 3)
			for range 150 { // it had been there for long
				p.now.Add(int64(24 * time.Hour))
			}
			run := p.run(holdfast.RunPlan, nil)
			if tt.record != nil {
				rec := holdfast.ClusterRecord{Name: run.Cluster}
				rec.Applied = holdfast.Applied{Run: "another"}
				tt.record(&rec)
				must[holdfast.ClusterRecord](t)(p.SaveCluster(t.Context(), rec))
			}
			for range tt.days {
				p.now.Add(int64(24 * time.Hour))
			}
			p.sweep()
			if got := len(p.left()); got != map[bool]int{true: 3}[tt.want] {
				t.Errorf("%d of its runs are there, want all: %v", got, tt.want)
			}
			versions := must[[]holdfast.StateVersion](t)(p.StateVersions(t.Context(), "clusters/c"))
			if len(versions) != map[bool]int{true: 3, false: 1}[tt.want] || versions[0].Serial != 3 {
				t.Errorf("of its state there is %+v, want all: %v", versions, tt.want)
			}
			if data, _, err := p.State(t.Context(), "clusters/c"); err != nil || !bytes.Contains(data, aState) {
				t.Errorf("its state is %d bytes, %v", len(data), err)
			}
			if n := len(blobFiles(t, dir)); n != map[bool]int{true: 5, false: 1}[tt.want] {
				t.Errorf("the bucket holds %d blobs, want all: %v", n, tt.want)
			}
		})
	}
}

// TestRetentionOfStatesThatAreSaved: a backend that refuses for days has a state pushed every
// few minutes, or a lock released, which takes nothing away of what people look for.
func TestRetentionOfStatesThatAreSaved(t *testing.T) {
	t.Parallel()
	for _, kind := range []holdfast.RunKind{holdfast.RunState, holdfast.RunUnlock} {
		p := openPast(t, memory.Dir(t), datastore.Retention{Runs: 50, DriftRuns: 3})
		apply := p.run(holdfast.RunApply, nil)
		want := []string{apply.ID}
		for i := range 60 {
			if id := p.run(kind, nil).ID; i >= 57 {
				want = append(want, id)
			}
		}
		p.sweep()
		if diff := differ(want, p.left()); diff != "" {
			t.Errorf("runs after Sweep() of those of kind %s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestRetentionOfPullRequests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		retention time.Duration
		days      int
		change    func(t *testing.T, store *datastore.Store, pr *holdfast.PullRequestRecord)
		want      bool
	}{
		"merged long ago": {0, 200, nil, false},
		"closed long ago": {0, 200, func(_ *testing.T, _ *datastore.Store, pr *holdfast.PullRequestRecord) {
			pr.State = holdfast.PullRequestClosed
		}, false},
		"merged a while ago":  {0, 100, nil, true},
		"as is configured":    {40 * 24 * time.Hour, 50, nil, false},
		"less than the least": {time.Hour, 20, nil, true},
		"all are kept":        {-1, 2000, nil, true},
		"open": {0, 400, func(_ *testing.T, _ *datastore.Store, pr *holdfast.PullRequestRecord) {
			pr.State = holdfast.PullRequestOpen
		}, true},
		"a cluster waits":             {0, 400, clusterWith(func(rec *holdfast.ClusterRecord) { rec.Waiting = "PlanChanged" }), true},
		"a cluster was never applied": {0, 400, clusterWith(func(rec *holdfast.ClusterRecord) { rec.Applied = holdfast.Applied{} }), true},
		"a cluster waits, of one that was closed": {0, 400, func(t *testing.T, store *datastore.Store, pr *holdfast.PullRequestRecord) {
			clusterWith(func(rec *holdfast.ClusterRecord) { rec.Waiting = "Suspended" })(t, store, pr)
			pr.State = holdfast.PullRequestClosed
		}, false},
		"a cluster is gone": {0, 400, clusterWith(func(rec *holdfast.ClusterRecord) { rec.Waiting, rec.Phase = "PlanChanged", holdfast.PhaseDeleted }), false},
		"a run has not ended": {0, 400, func(t *testing.T, store *datastore.Store, pr *holdfast.PullRequestRecord) {
			run := newRun(1)
			run.PullRequest = pr.PullRequestRef
			create(t, store, run)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openPast(t, memory.Dir(t), datastore.Retention{Ended: tt.retention})
			ctx := t.Context()
			pr := holdfast.PullRequestRecord{
				PullRequest: holdfast.PullRequest{PullRequestRef: thePullRequest, State: holdfast.PullRequestMerged, Head: "abc"},
				Clusters:    []holdfast.PullRequestCluster{{Name: "prod"}},
			}
			clusterWith(func(*holdfast.ClusterRecord) {})(t, p.Store, &pr)
			if tt.change != nil {
				tt.change(t, p.Store, &pr)
			}
			must[holdfast.PullRequestRecord](t)(p.SavePullRequest(ctx, pr))
			want(t, p.Store, commentPost("planned", "abc"))
			posted(t, p.Store, claimPosts(t, p.Store, noon)[0], noon)
			must[bool](t)(p.StoreCommand(ctx, holdfast.Command{
				ID: "command-1", PullRequest: thePullRequest, CommentID: "7", Text: "/holdfast plan", Status: holdfast.CommandDone, CreatedAt: noon,
			}))
			p.sweep() // it is found to have ended
			for range tt.days {
				p.now.Add(int64(24 * time.Hour))
			}
			p.sweep()
			for what, err := range map[string]error{
				"the record": second(p.PullRequest(ctx, thePullRequest)),
				"the post":   second(p.Post(ctx, "comment:fleet#7")),
				"a command":  second(p.Command(ctx, "command-1")),
			} {
				if there := err == nil; there != tt.want || err != nil && !errors.Is(err, holdfast.ErrNotFound) {
					t.Errorf("%s: %v, want it there: %v", what, err, tt.want)
				}
			}
		})
	}
}

func clusterWith(change func(*holdfast.ClusterRecord)) func(*testing.T, *datastore.Store, *holdfast.PullRequestRecord) {
	return func(t *testing.T, store *datastore.Store, _ *holdfast.PullRequestRecord) {
		t.Helper()
		rec, err := store.Cluster(t.Context(), "prod")
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			t.Fatal(err)
		}
		rec.Name, rec.Owner, rec.Phase = "prod", "fleet", holdfast.PhaseActive
		rec.Desired.Revision, rec.Applied.Run = "fed", "run-0"
		change(&rec)
		must[holdfast.ClusterRecord](t)(store.SaveCluster(t.Context(), rec))
	}
}

// What was said beside pull requests goes by its age, except for what is still looked
// at: the status of the commit that a cluster is of, issues, commands to come.
func TestRetentionWithPullRequests(t *testing.T) {
	t.Parallel()
	p := openPast(t, memory.Dir(t), datastore.Retention{})
	ctx := t.Context()
	clusterWith(func(*holdfast.ClusterRecord) {})(t, p.Store, nil)
	status := func(revision holdfast.Revision) outgoing.Post {
		return outgoing.Post{
			Key: fmt.Sprintf("status:fleet:%s:holdfast/apply", revision), Kind: outgoing.PostStatus, Repo: "fleet",
			Status: holdfast.CommitStatus{Revision: revision, Context: holdfast.ContextApply, State: holdfast.StatusSuccess},
		}
	}
	issue := outgoing.Post{Key: "issue:drift:prod", Kind: outgoing.PostIssue, Repo: "fleet", Title: "drift"}
	for _, post := range []outgoing.Post{status("fed"), status("old"), issue} {
		want(t, p.Store, post)
	}
	for _, post := range claimPosts(t, p.Store, noon) {
		posted(t, p.Store, post, noon)
	}
	for id, state := range map[string]holdfast.CommandStatus{"command-1": holdfast.CommandDone, "command-2": holdfast.CommandReceived} {
		must[bool](t)(p.StoreCommand(ctx, holdfast.Command{ID: id, Clusters: []string{"prod"}, Text: id, Status: state, CreatedAt: noon}))
	}
	for _, revision := range []holdfast.Revision{"fed", "old"} {
		if err := p.SaveLocalStatus(ctx, "fleet", status(revision).Status); err != nil {
			t.Fatal(err)
		}
	}
	p.now.Add(int64(200 * 24 * time.Hour))
	p.sweep()
	for what, there := range map[string]struct {
		err  error
		want bool
	}{
		"the status of a commit that a cluster is of": {second(p.Post(ctx, status("fed").Key)), true},
		"the status of another commit":                {second(p.Post(ctx, status("old").Key)), false},
		"an issue":                                    {second(p.Post(ctx, issue.Key)), true},
		"a command that was carried out":              {second(p.Command(ctx, "command-1")), false},
		"a command to come":                           {second(p.Command(ctx, "command-2")), true},
	} {
		if got := there.err == nil; got != there.want {
			t.Errorf("%s: %v, want it there: %v", what, there.err, there.want)
		}
	}
	for revision, n := range map[holdfast.Revision]int{"fed": 1, "old": 0} {
		if got := must[[]holdfast.CommitStatus](t)(p.LocalStatuses(ctx, "fleet", revision)); len(got) != n {
			t.Errorf("statuses of %s = %+v, want %d", revision, got, n)
		}
	}
}
