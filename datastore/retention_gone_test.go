package datastore_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// aState is too large for a row.
var aState = fmt.Appendf(nil, "%x", noise(20<<10))

// states has an apply of a cluster write so many versions of its state.
func (p *past) states(cluster string, versions int) {
	p.t.Helper()
	p.now.Add(int64(time.Hour))
	run := newRun(p.runs)
	run.Kind, run.Cluster, run.StateLocation, run.CreatedAt = holdfast.RunApply, cluster, "clusters/"+cluster, time.Unix(0, p.now.Load()).UTC()
	p.runs++
	run = claim(p.t, p.Store, run)
	for serial := range versions {
		must[holdfast.StateVersion](p.t)(p.PutState(p.t.Context(), holdfast.StateWrite{
			Location: run.StateLocation, By: run.Ref(), Data: stateJSON(int64(serial+1), "lineage", string(aState)),
		}))
	}
	putArtefact(p.t, p.Store, run.Ref(), "summary", []byte(`{}`))
	run.FinishedAt = run.CreatedAt
	end(p.t, p.Store, run, holdfast.RunApplied)
}

// lives has the nth of many clusters come by a pull request and go, all that is kept of it
// included.
func (p *past) lives(n int) {
	p.t.Helper()
	ctx, name := p.t.Context(), fmt.Sprint("preview-", n)
	p.states(name, 3)
	rec := holdfast.ClusterRecord{Name: name, Phase: holdfast.PhaseDeleted}
	rec.Applied = holdfast.Applied{Run: "another"}
	must[holdfast.ClusterRecord](p.t)(p.SaveCluster(ctx, rec))

	at := time.Unix(0, p.now.Load()).UTC()
	ref := holdfast.PullRequestRef{Repo: "fleet", Number: n + 1}
	pr := holdfast.PullRequest{PullRequestRef: ref, State: holdfast.PullRequestMerged, Branch: name, UpdatedAt: at}
	must[holdfast.PullRequest](p.t)(p.SaveLocalPullRequest(ctx, pr))
	must[holdfast.PullRequestRecord](p.t)(p.SavePullRequest(ctx, holdfast.PullRequestRecord{
		PullRequest: pr, Clusters: []holdfast.PullRequestCluster{{Name: name}},
	}))
	status := holdfast.CommitStatus{Revision: holdfast.Revision(name), Context: holdfast.ContextPlan, State: holdfast.StatusSuccess}
	want(p.t, p.Store, outgoing.Post{Key: fmt.Sprintf("comment:fleet#%d", ref.Number), Kind: outgoing.PostComment, Repo: ref.Repo, PullRequest: ref, Body: "planned"})
	want(p.t, p.Store, outgoing.Post{Key: "status:fleet:" + name + ":plan", Kind: outgoing.PostStatus, Repo: ref.Repo, Status: status})
	for _, post := range claimPosts(p.t, p.Store, at) {
		posted(p.t, p.Store, post, at)
	}
	must[holdfast.Comment](p.t)(p.SaveLocalComment(ctx, holdfast.Comment{PullRequest: ref, Body: "planned"}))
	must[bool](p.t)(p.StoreCommand(ctx, holdfast.Command{
		ID: name, PullRequest: ref, CommentID: name, Text: "/holdfast plan", Status: holdfast.CommandDone, CreatedAt: at,
	}))
	for _, err := range []error{
		p.SaveLocalStatus(ctx, ref.Repo, status),
		p.Audit(ctx, holdfast.NewAuditEntry(at, "ana", "run.cancel", name, "")),
	} {
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

// rows counts those of each table of a database.
func rows(t testing.TB, path string) map[string]int {
	t.Helper()
	db := must[*sql.DB](t)(sql.Open("sqlite", "file:"+path+"?mode=ro"))
	defer db.Close()
	counts := make(map[string]int)
	for table := range kept {
		var n int
		if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
			if !strings.Contains(err.Error(), "no such table") { // what SQLite makes when it needs it
				t.Fatal(err)
			}
		}
		counts[table] = n
	}
	return counts
}

// TestWhatIsGoneLeavesLittle: of a cluster that came with a pull request and went there
// is, two years later, its record and its last state.
func TestWhatIsGoneLeavesLittle(t *testing.T) {
	t.Parallel()
	left := func(clusters int) map[string]int {
		dir := memory.Dir(t)
		p := openPast(t, dir, datastore.Retention{Audit: 365 * 24 * time.Hour})
		for n := range clusters {
			p.lives(n)
		}
		for range 3 { // of which the first finds that pull requests have ended
			p.now.Add(int64(200 * 24 * time.Hour))
			p.sweep()
		}
		p.ForgetLocalPullRequests(t.Context(), "fleet", func(holdfast.PullRequest) bool { return false })
		return rows(t, filepath.Join(dir, "holdfast.db"))
	}
	const more = 3
	few, many := left(1), left(1+more)
	each := map[string]int{"clusters": 1, "summaries": 1, "run_references": 1, "states": 1, "state_versions": 1}
	for table := range kept {
		if grown := many[table] - few[table]; table != "changes" && grown != each[table]*more {
			t.Errorf("%d clusters more have left %d rows more in %s, want %d", more, grown, table, each[table]*more)
		}
	}
	if few["clusters"] != 1 || few["audit"] != 0 || few["local_pull_requests"] != 1 {
		t.Errorf("one has left %v", few)
	}
}

// TestSweepSaysWhatItHasRemoved: it is gone for good, and after an upgrade or a change of
// the configuration it may be much.
func TestSweepSaysWhatItHasRemoved(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	p := &past{t: t}
	p.now.Store(noon.UnixNano())
	p.Store = openAt(t, datastore.Options{
		Path: filepath.Join(memory.Dir(t), "holdfast.db"), Retention: datastore.Retention{Audit: 365 * 24 * time.Hour, Logs: 100 * 24 * time.Hour},
		Now:    func() time.Time { return time.Unix(0, p.now.Load()).UTC() },
		Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	for n := range 2 {
		p.lives(n)
	}
	must[holdfast.ClusterRecord](t)(p.SaveCluster(t.Context(), holdfast.ClusterRecord{Name: "c"}))
	for range 12 {
		p.run(holdfast.RunDrift, nil)
	}
	p.sweep()
	if n := strings.Count(logged.String(), "key=retention."); n != 0 {
		t.Errorf("after days it says of what is kept longer\n%s", logged.String())
	}
	for range 2 {
		p.now.Add(int64(200 * 24 * time.Hour))
		p.sweep()
	}
	p.ForgetLocalPullRequests(t.Context(), "fleet", func(holdfast.PullRequest) bool { return false })
	for _, want := range []string{
		`records="audit entries" removed=2 key=retention.audit`,
		`records="pull requests" removed=2 key=retention.pullRequests`,
		`records=commands removed=2 key=retention.pullRequests`,
		`records=logs removed=5 key=retention.logs`,
		`records=posts removed=2 key=retention.pullRequests`,
		`records=runs removed=2 key=retention.pullRequests`,
		`records=runs removed=7 key="retention.runs, retention.driftRuns"`,
		`records=statuses removed=2 key=retention.pullRequests`,
		`records="versions of states of clusters that are gone" removed=4 key=retention.pullRequests`,
		`records="pull requests of a repository without a code host" removed=1 key=retention.pullRequests`,
	} {
		if n := strings.Count(logged.String(), want); n != 1 {
			t.Errorf("%q is there %d times", want, n)
		}
	}
	if t.Failed() {
		t.Log(logged.String())
	}
}

// TestRetentionOfLocalPullRequests: those that ended long ago go, except for one that
// is needed, one that a record is of, and the highest number.
func TestRetentionOfLocalPullRequests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		retention time.Duration
		days      int
		want      []int
	}{
		"long ago":     {0, 200, []int{6, 5, 3, 2}},
		"a while ago":  {0, 100, []int{6, 5, 4, 3, 2, 1}},
		"all are kept": {-1, 2000, []int{6, 5, 4, 3, 2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openPast(t, memory.Dir(t), datastore.Retention{Ended: tt.retention})
			ctx := t.Context()
			save := func(branch string, state holdfast.PullRequestState) holdfast.PullRequest {
				return must[holdfast.PullRequest](t)(p.SaveLocalPullRequest(ctx, holdfast.PullRequest{
					PullRequestRef: holdfast.PullRequestRef{Repo: "fleet"}, Branch: branch, State: state, UpdatedAt: noon,
				}))
			}
			save("merged", holdfast.PullRequestMerged)
			save("left behind", holdfast.PullRequestMerged)
			known := save("known", holdfast.PullRequestMerged)
			must[holdfast.PullRequestRecord](t)(p.SavePullRequest(ctx, holdfast.PullRequestRecord{PullRequest: known}))
			save("closed", holdfast.PullRequestClosed)
			save("open", holdfast.PullRequestOpen)
			save("last", holdfast.PullRequestClosed)
			must[[]holdfast.PullRequest](t)(p.LocalPullRequests(ctx, "fleet"))
			p.now.Add(int64(tt.days) * int64(24*time.Hour))
			p.ForgetLocalPullRequests(ctx, "fleet", func(pr holdfast.PullRequest) bool { return pr.Branch == "left behind" })
			var got []int
			for _, pr := range must[[]holdfast.PullRequest](t)(p.LocalPullRequests(ctx, "fleet")) {
				got = append(got, pr.Number)
			}
			if diff := differ(tt.want, got); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
			if next := save("next", holdfast.PullRequestOpen); next.Number != 7 {
				t.Errorf("the next one is #%d", next.Number)
			}
		})
	}
}
