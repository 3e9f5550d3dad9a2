package datastore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/protocol"
)

// aPlan is too large for a row.
var aPlan = noise(20 << 10)

// past is a store whose clock stands where the test puts it, and the runs of
// one cluster, one every hour.
type past struct {
	*datastore.Store
	t    testing.TB
	now  atomic.Int64
	runs int
}

func openPast(t testing.TB, dir string, retention datastore.Retention) *past {
	t.Helper()
	p := &past{t: t}
	p.now.Store(noon.UnixNano())
	p.Store = openAt(t, datastore.Options{
		Path: filepath.Join(dir, "holdfast.db"), Retention: retention,
		Now: func() time.Time { return time.Unix(0, p.now.Load()).UTC() },
	})
	return p
}

// run makes a run that has ended, with a log and two artefacts, one of them in
// the bucket.
func (p *past) run(kind holdfast.RunKind, change func(run *holdfast.Run)) holdfast.Run {
	p.t.Helper()
	p.now.Add(int64(time.Hour))
	run := newRun(p.runs)
	run.Kind, run.Cluster, run.StateLocation, run.CreatedAt = kind, "c", "clusters/c", time.Unix(0, p.now.Load()).UTC()
	p.runs++
	if change != nil {
		change(&run)
	}
	if run.Status != holdfast.RunQueued {
		create(p.t, p.Store, run)
		return run
	}
	run = claim(p.t, p.Store, run)
	putArtefact(p.t, p.Store, run.Ref(), "plan", aPlan)
	putArtefact(p.t, p.Store, run.Ref(), "summary", []byte(`{}`))
	must[int64](p.t)(p.AppendLog(p.t.Context(), run.Ref(), 0, []byte("line\n")))
	run.FinishedAt = run.CreatedAt
	return end(p.t, p.Store, run, holdfast.RunPlanned)
}

// sweep sweeps as it is done days after the last run.
func (p *past) sweep() int {
	p.t.Helper()
	p.now.Add(int64(72 * time.Hour))
	return must[int](p.t)(p.Sweep(p.t.Context(), 24*time.Hour))
}

// left are the ids of the runs that are there, oldest first.
func (p *past) left() []string {
	p.t.Helper()
	list := ids(must[[]holdfast.Run](p.t)(p.Runs(p.t.Context(), holdfast.RunFilter{Limit: 10_000})))
	slices.Reverse(list)
	return list
}

func TestRetentionCounts(t *testing.T) {
	t.Parallel()
	dir := memory.Dir(t)
	p := openPast(t, dir, datastore.Retention{Runs: 1, DriftRuns: 3})
	var branch, plans, drift, others []string
	pr := holdfast.PullRequestRef{Repo: "fleet", Number: 7}
	for i := range 55 {
		branch = append(branch, p.run([]holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply}[i%2], nil).ID)
		plans = append(plans, p.run(holdfast.RunPlan, func(run *holdfast.Run) { run.PullRequest = pr }).ID)
	}
	for range 5 {
		drift = append(drift, p.run(holdfast.RunDrift, nil).ID)
		others = append(others, p.run(holdfast.RunDrift, func(run *holdfast.Run) { run.Cluster, run.StateLocation = "d", "clusters/d" }).ID)
	}
	// Fifty are always kept: decisions look back so far.
	want := slices.Concat(branch[5:], plans[5:], drift[2:], others[2:])
	slices.Sort(want)
	if n := p.sweep(); n != 14 {
		t.Errorf("Sweep() removed %d, want 14 runs", n)
	}
	if diff := differ(want, p.left()); diff != "" {
		t.Errorf("runs after Sweep() (-want +got):\n%s", diff)
	}
	if n := len(blobFiles(t, dir)); n != len(want) {
		t.Errorf("the bucket holds %d blobs of %d runs", n, len(want))
	}
	gone := branch[0]
	for name, err := range map[string]error{
		"Run":      second(p.Run(t.Context(), gone)),
		"Artefact": second(p.Artefact(t.Context(), gone, "summary")),
		"Log":      second(p.Log(t.Context(), gone, 1, 0, false)),
	} {
		if !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("%s of a run that was removed = %v, want ErrNotFound", name, err)
		}
	}
	if got := must[[]holdfast.Attempt](t)(p.Attempts(t.Context(), gone)); len(got) != 0 {
		t.Errorf("attempts of a run that was removed = %+v", got)
	}
	for _, id := range want {
		if got := artefact(t, p.Store, id, "plan"); len(got) != 20<<10 {
			t.Errorf("the plan of %s, which is kept, has %d bytes", id, len(got))
		}
		if got := readLog(t, p.Store, id, 1, 0); string(got.Data) != "line\n" || !got.Done {
			t.Errorf("the log of %s, which is kept, is %q", id, got.Data)
		}
	}
	if n := p.sweep(); n != 0 {
		t.Errorf("a second Sweep() removed %d", n)
	}
}

// TestRetentionKeeps makes runs that something still needs and buries each under newer
// ones: they stay, until nothing needs them.
func TestRetentionKeeps(t *testing.T) {
	t.Parallel()
	p := openPast(t, memory.Dir(t), datastore.Retention{Runs: 50, DriftRuns: 2})
	ctx := t.Context()
	open, merged := holdfast.PullRequestRef{Repo: "fleet", Number: 1}, holdfast.PullRequestRef{Repo: "fleet", Number: 2}
	sample := holdfast.PullRequestRef{Repo: "templates", Number: 1} // its merge leaves the cluster as it is
	state := func(ref holdfast.PullRequestRef, state holdfast.PullRequestState) {
		t.Helper()
		old, err := p.PullRequest(ctx, ref)
		if err != nil {
			old = holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: ref}}
			old.Clusters = []holdfast.PullRequestCluster{{Name: "c", Sample: ref == sample}}
		}
		old.State = state
		must[holdfast.PullRequestRecord](t)(p.SavePullRequest(ctx, old))
	}
	state(open, holdfast.PullRequestOpen)
	state(merged, holdfast.PullRequestMerged)
	state(sample, holdfast.PullRequestMerged)
	on := func(ref holdfast.PullRequestRef) func(*holdfast.Run) {
		return func(run *holdfast.Run) { run.PullRequest = ref }
	}

	applied := p.run(holdfast.RunApply, nil)
	reviewed := p.run(holdfast.RunPlan, on(holdfast.PullRequestRef{Repo: "fleet", Number: 3})) // closed, unknown by now
	stored := p.run(holdfast.RunPlan, nil)
	waiting := p.run(holdfast.RunApply, func(run *holdfast.Run) {
		run.Status, run.Reviews, run.Shown = holdfast.RunRetrying, []holdfast.Review{{Run: reviewed.ID}}, stored.ID
	})
	drift, checked, revert := p.run(holdfast.RunDrift, nil), p.run(holdfast.RunDrift, nil), p.run(holdfast.RunApply, nil)
	ending := p.run(holdfast.RunDestroy, nil)
	ofOpen := p.run(holdfast.RunPlan, on(open))
	ofMerged := p.run(holdfast.RunPlan, func(run *holdfast.Run) { run.PullRequest, run.PostedAt = merged, noon })
	unseen := p.run(holdfast.RunPlan, on(merged)) // nobody has seen it: nobody has reviewed it
	tried := p.run(holdfast.RunPlan, func(run *holdfast.Run) { run.PullRequest, run.PostedAt = sample, noon })
	nobody := p.run(holdfast.RunPlan, nil)
	record := save(t, p.Store, holdfast.ClusterRecord{
		Name: "c", Applied: holdfast.Applied{Run: applied.ID, At: applied.CreatedAt},
		Drift:    holdfast.DriftState{Run: drift.ID, Applied: checked.ID, Revert: revert.ID},
		Deletion: &holdfast.Deletion{Run: ending.ID},
	})
	var newest []string
	for range 50 {
		for _, ref := range []holdfast.PullRequestRef{{}, {Repo: "fleet", Number: 9}} {
			newest = append(newest, p.run(holdfast.RunPlan, on(ref)).ID)
		}
	}
	for range 2 {
		newest = append(newest, p.run(holdfast.RunDrift, nil).ID)
	}

	check := func(when string, want ...holdfast.Run) {
		t.Helper()
		p.sweep()
		all := append(ids(want), newest...)
		slices.Sort(all)
		if diff := differ(all, p.left()); diff != "" {
			t.Errorf("%s: runs after Sweep() (-want +got):\n%s", when, diff)
		}
	}
	check("all needed", applied, reviewed, stored, waiting, drift, checked, revert, ending, ofOpen, ofMerged)
	for _, run := range []holdfast.Run{unseen, tried, nobody} {
		if _, err := p.Run(ctx, run.ID); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("Run(%s) = %v, want ErrNotFound", run.ID, err)
		}
	}

	state(open, holdfast.PullRequestClosed)
	record.Deletion, record.Drift.Revert, record.Drift.Applied = nil, "", ""
	record = save(t, p.Store, record)
	check("the pull request is closed, the record speaks of less", applied, reviewed, stored, waiting, drift, ofMerged)

	// The apply comes to it: the reviewed plans go with the next sweep but one,
	// after the run that names them.
	record.Applied.At, record.Drift.Run = time.Unix(0, p.now.Load()), ""
	record = save(t, p.Store, record)
	run := must[holdfast.Run](t)(p.Run(ctx, waiting.ID))
	run.Status, run.Reviews = holdfast.RunCanceled, nil
	must[holdfast.Run](t)(p.UpdateRun(ctx, run))
	check("an apply has come to it", applied, stored)
	record.Applied.Run = newest[0]
	save(t, p.Store, record)
	check("nothing is needed")
}

func TestRetentionBundles(t *testing.T) {
	t.Parallel()
	dir := memory.Dir(t)
	p := openPast(t, dir, datastore.Retention{})
	bundle := func(i int) (holdfast.Digest, []byte) {
		data := noise(20<<10 + i)
		return holdfast.DigestOf(data), data
	}
	var digests []holdfast.Digest
	for i := range 5 {
		digest, data := bundle(i)
		if err := p.PutBundle(t.Context(), digest, data); err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	run := newRun(1)
	run.Bundle = digests[0]
	create(t, p.Store, run)
	save(t, p.Store, holdfast.ClusterRecord{Name: "c", Applied: holdfast.Applied{Bundle: digests[1]}})

	// What was asked for today may be about to be used.
	p.now.Add(int64(23 * time.Hour))
	if !must[bool](t)(p.HasBundle(t.Context(), digests[2])) {
		t.Error("no HasBundle() of a bundle that is there")
	}
	_, data := bundle(3)
	if err := p.PutBundle(t.Context(), digests[3], data); err != nil {
		t.Fatal(err)
	}
	p.now.Add(int64(2 * time.Hour))
	if n := must[int](t)(p.Sweep(t.Context(), 24*time.Hour)); n != 1 {
		t.Errorf("Sweep() removed %d, want the bundle that nobody has asked for", n)
	}
	if n := p.sweep(); n != 2 {
		t.Errorf("Sweep() days later removed %d, want the two that nothing needs", n)
	}
	for i, digest := range digests {
		has := must[bool](t)(p.HasBundle(t.Context(), digest))
		if want := i < 2; has != want {
			t.Errorf("HasBundle(%d) after Sweep() = %v, want %v", i, has, want)
		}
	}
	for i := range 2 {
		_, want := bundle(i)
		r := must[io.ReadCloser](t)(p.Bundle(t.Context(), digests[i]))
		if got := must[[]byte](t)(io.ReadAll(r)); !bytes.Equal(got, want) {
			t.Errorf("bundle %d came back as %d other bytes", i, len(got))
		}
		r.Close()
	}
	if n := len(blobFiles(t, dir)); n != 2 {
		t.Errorf("the bucket holds %d blobs, want 2", n)
	}
	digest, data := bundle(4) // it comes back
	if err := p.PutBundle(t.Context(), digest, data); err != nil || !must[bool](t)(p.HasBundle(t.Context(), digest)) {
		t.Errorf("PutBundle() of a bundle that was removed = %v", err)
	}
}

func TestRetentionAges(t *testing.T) {
	t.Parallel()
	p := openPast(t, memory.Dir(t), datastore.Retention{Logs: 7 * 24 * time.Hour, Audit: 30 * 24 * time.Hour})
	ctx := t.Context()
	old := p.run(holdfast.RunPlan, nil)
	large := claim(t, p.Store, newRun(1000))
	var offset int64
	for range 5 { // more than goes at once
		offset = must[int64](t)(p.AppendLog(ctx, large.Ref(), offset, noise(1<<20)))
	}
	large.FinishedAt = noon
	end(t, p.Store, large, holdfast.RunErrored)
	living := claim(t, p.Store, newRun(2000))
	must[int64](t)(p.AppendLog(ctx, living.Ref(), 0, []byte("living\n")))
	for i := range 3 {
		if err := p.Audit(ctx, holdfast.AuditEntry{At: noon.Add(time.Duration(i) * 10 * 24 * time.Hour), Action: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	p.sweep()
	if got := readLog(t, p.Store, old.ID, 1, 0); string(got.Data) != "line\n" {
		t.Errorf("the log of days ago is %q", got.Data)
	}
	p.now.Store(noon.Add(35 * 24 * time.Hour).UnixNano())
	p.sweep()
	for _, id := range []string{old.ID, large.ID} {
		if got := readLog(t, p.Store, id, 1, 0); len(got.Data) != 0 || !got.Done {
			t.Errorf("the log of weeks ago of %s has %d bytes, done %v", id, len(got.Data), got.Done)
		}
		if got := must[holdfast.LogRange](t)(p.Log(ctx, id, 1, 0, true)); !got.Done {
			t.Errorf("Log() that waits for a log that is gone = %+v", got)
		}
	}
	if got := readLog(t, p.Store, living.ID, 1, 0); string(got.Data) != "living\n" {
		t.Errorf("the log of a run that continues is %q", got.Data)
	}
	trail := must[[]holdfast.AuditEntry](t)(p.AuditTrail(ctx, "", 0))
	if len(trail) != 2 || trail[1].Action != "1" {
		t.Errorf("AuditTrail() = %+v, want the last two", trail)
	}
}

// TestRetentionDuringWork sweeps all the time while runs live and die: nobody is
// told that the database is busy, and nothing that is needed goes.
func TestRetentionDuringWork(t *testing.T) {
	t.Parallel()
	p := openPast(t, memory.Dir(t), datastore.Retention{DriftRuns: 2})
	p.now.Store(noon.Add(1000 * time.Hour).UnixNano())
	const rounds = 40
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			if _, err := p.Sweep(t.Context(), time.Hour); err != nil {
				t.Error(err)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	var workers sync.WaitGroup
	for worker := range 3 {
		workers.Go(func() {
			for i := range rounds {
				run := newRun(worker*1000 + i)
				run.Kind, run.Cluster, run.StateLocation = holdfast.RunDrift, fmt.Sprint("c", worker), fmt.Sprint("clusters/c", worker)
				err := p.CreateRun(t.Context(), run)
				if err == nil {
					run, err = p.ClaimRun(t.Context(), run.ID, protocol.AgentRef{ID: "agent"}, noon, 0)
				}
				if err == nil {
					err = p.PutArtefact(t.Context(), run.Ref(), "plan", bytes.NewReader(aPlan))
				}
				if err == nil {
					run.Status = holdfast.RunPlanned
					_, err = p.EndAttempt(t.Context(), run.Ref(), run, nil)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	close(done)
	group.Wait()
	p.sweep()
	if got := p.left(); len(got) != 6 {
		t.Errorf("%d runs are left, want two of each cluster: %v", len(got), got)
	}
	for _, id := range p.left() {
		if got := artefact(t, p.Store, id, "plan"); len(got) != 20<<10 {
			t.Errorf("the plan of %s has %d bytes", id, len(got))
		}
	}
}

// pruneUntilKilled makes checks of one cluster, one after another, and sweeps
// after each.
func pruneUntilKilled(dir string) error {
	keys, err := childKeys()
	if err != nil {
		return err
	}
	ctx := context.Background()
	opts := datastore.Options{Path: filepath.Join(dir, "holdfast.db"), Keys: keys, Retention: datastore.Retention{DriftRuns: 2}}
	store, err := datastore.Open(ctx, opts)
	if err != nil {
		return err
	}
	runs, err := store.Runs(ctx, holdfast.RunFilter{})
	if err != nil {
		return err
	}
	n := 0
	for i, run := range runs {
		if i == 0 {
			if _, err := fmt.Sscanf(run.ID, "run-%d", &n); err != nil {
				return err
			}
		}
		if !run.Status.Done() { // it was killed in the midst of it
			run.Status = holdfast.RunCanceled
			if _, err := store.UpdateRun(ctx, run); err != nil {
				return err
			}
		}
	}
	for n++; ; n++ {
		run := newRun(n)
		run.Kind, run.Cluster, run.StateLocation = holdfast.RunDrift, "c", "clusters/c"
		err := store.CreateRun(ctx, run)
		if err == nil {
			run, err = store.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent"}, noon, 0)
		}
		if err == nil {
			err = store.PutArtefact(ctx, run.Ref(), "plan", bytes.NewReader(aPlan))
		}
		if err == nil {
			run.Status = holdfast.RunPlanned
			_, err = store.EndAttempt(ctx, run.Ref(), run, nil)
		}
		if err != nil {
			return err
		}
		fmt.Println("ended", run.ID)
		if _, err := store.Sweep(ctx, time.Nanosecond); err != nil {
			return err
		}
		fmt.Println("swept", run.ID)
	}
}

// TestKilledWhilePruning kills a server again and again while it prunes: what is
// there is whole, and the next sweep finds what was left behind.
func TestKilledWhilePruning(t *testing.T) {
	t.Parallel()
	dir := memory.Dir(t)
	for round := range 6 {
		cmd := child(t, "DATASTORE_TEST_PRUNER="+dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		for i := 0; lines.Scan(); i++ {
			if i == 10+round {
				_ = cmd.Process.Kill()
			}
		}
		if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
			t.Fatalf("child ended with %v: %s", err, stderr.Bytes())
		}
	}
	p := openPast(t, dir, datastore.Retention{DriftRuns: 2})
	plans := 0
	check := func() {
		t.Helper()
		plans = 0
		for _, run := range must[[]holdfast.Run](t)(p.Runs(t.Context(), holdfast.RunFilter{})) {
			r, err := p.Artefact(t.Context(), run.ID, "plan")
			if errors.Is(err, holdfast.ErrNotFound) && run.Status != holdfast.RunPlanned {
				continue // it was killed before
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, aPlan) {
				t.Errorf("the plan of %s is not whole: %d bytes, %v", run.ID, len(got), err)
			}
			r.Close()
			plans++
		}
	}
	check()
	p.now.Store(time.Now().Add(time.Hour).UnixNano())
	must[int](t)(p.Sweep(t.Context(), time.Minute))
	check()
	if n := len(blobFiles(t, dir)); n != plans {
		t.Errorf("the bucket holds %d blobs of %d plans", n, plans)
	}
}
