package datastore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/protocol"
)

// What several writers do to one another on PostgreSQL: each place that leans on SQLite's one
// writer. Where chance would decide, a session of the test holds a row that one of the two
// needs halfway, until the other has come as far as it gets.

// writers is a store on PostgreSQL, and a session of the test's own.
type writers struct {
	*datastore.Store
	t       *testing.T
	d       postgresserver.Database
	session *sql.DB
}

func openWriters(t *testing.T) *writers {
	t.Helper()
	w := &writers{t: t, d: postgresserver.New(t, emptyPostgres(t))}
	w.Store = openAt(t, optionsOf(t, w.d))
	w.session = connect(t, postgres.Address{URL: w.d.URL(), Password: w.d.Password})
	t.Cleanup(func() { _ = w.session.Close() })
	return w
}

// hold runs statements in a transaction, and returns what commits it.
func (w *writers) hold(statements ...string) (let func()) {
	w.t.Helper()
	tx := must[*sql.Tx](w.t)(w.session.Begin())
	for _, statement := range statements {
		if _, err := tx.Exec(statement); err != nil {
			w.t.Fatalf("%s: %v", statement, err)
		}
	}
	return func() {
		w.t.Helper()
		if err := tx.Commit(); err != nil {
			w.t.Error(err)
		}
	}
}

// waiting is how many sessions wait for a lock of another one.
func (w *writers) waiting() int {
	w.t.Helper()
	var n int
	err := w.session.QueryRow(`SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
	if err != nil {
		w.t.Error(err)
	}
	return n
}

// task is something that is done while the test continues.
type task struct {
	done chan struct{}
	err  error
}

func begin(do func() error) *task {
	k := &task{done: make(chan struct{})}
	go func() {
		defer close(k.done)
		k.err = do()
	}()
	return k
}

func (k *task) over() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// blocked waits until so many sessions wait, or a task is over, and reports whether it is not.
func (w *writers) blocked(k *task, sessions int) bool {
	w.t.Helper()
	for w.waiting() < sessions {
		if k.over() {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

func (k *task) wait(t *testing.T) error {
	t.Helper()
	<-k.done
	return k.err
}

// TestWritersClaimFarFromTheLimit: claims that share the lock do not pass the limit together.
func TestWritersClaimFarFromTheLimit(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	const runs, limit = 60, 45
	for i := range runs {
		create(t, w.Store, newRun(i))
	}
	var granted atomic.Int64
	var group sync.WaitGroup
	for worker := range 24 {
		group.Go(func() {
			for i := range runs {
				id := newRun((i + worker*7) % runs).ID
				_, err := w.ClaimRun(ctx, id, protocol.AgentRef{ID: "agent"}, noon, limit)
				if err == nil {
					granted.Add(1)
				} else if !errors.Is(err, holdfast.ErrConflict) {
					t.Errorf("ClaimRun() = %v", err)
				}
			}
		})
	}
	group.Wait()
	if granted.Load() != limit {
		t.Errorf("%d runs are running, want %d", granted.Load(), limit)
	}
}

// TestWritersFencesGrow: at one location a later claim has a greater fence, and claims of
// other locations do not wait for it.
func TestWritersFencesGrow(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			last := int64(0)
			for i := range 10 {
				run := newRun(worker*100 + i)
				run.StateLocation = fmt.Sprint("clusters/", worker)
				if err := w.CreateRun(ctx, run); err != nil {
					t.Error(err)
					return
				}
				run, err := w.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent"}, noon, 0)
				if err != nil || run.Fence <= last {
					t.Errorf("fence %d after %d, %v", run.Fence, last, err)
					return
				}
				last, run.Status = run.Fence, holdfast.RunPlanned
				if _, err := w.EndAttempt(ctx, run.Ref(), run, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()

	one, other := newRun(9001), newRun(9002)
	other.StateLocation = one.StateLocation
	create(t, w.Store, one, other)
	let := w.hold(`SELECT 1 FROM runs WHERE id = 'run-9001' FOR UPDATE`)
	first := begin(func() error {
		return second(w.ClaimRun(ctx, "run-9001", protocol.AgentRef{ID: "agent"}, noon, 100))
	})
	if !w.blocked(first, 1) {
		t.Fatal("a claim of a run that is locked did not wait")
	}
	next := must[holdfast.Run](t)(w.ClaimRun(ctx, "run-9002", protocol.AgentRef{ID: "agent"}, noon, 100))
	end(t, w.Store, next, holdfast.RunPlanned)
	let()
	if err := first.wait(t); err != nil {
		t.Error(err)
	}
	if got := must[holdfast.Run](t)(w.Run(ctx, "run-9001")); got.Fence <= next.Fence {
		t.Errorf("fence %d of a claim after one with %d", got.Fence, next.Fence)
	}
}

// TestWritersRenameAndClaim: no run starts at a state that is about to move.
func TestWritersRenameAndClaim(t *testing.T) {
	t.Parallel()
	for name, location := range map[string]string{"own backend": "clusters/a", "elsewhere": "s3:bucket/a"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx := openWriters(t), t.Context()
			from := save(t, w.Store, holdfast.ClusterRecord{Name: "a"}, holdfast.Transition{What: "phase", To: "Active"})
			run := newRun(1)
			run.Cluster, run.StateLocation = "a", location
			create(t, w.Store, run)

			// The rename has seen that nobody runs, and cannot continue.
			let := w.hold(`SELECT 1 FROM transitions FOR UPDATE`)
			rename := begin(func() error { return w.RenameCluster(ctx, from, holdfast.ClusterRecord{Name: "b"}) })
			if !w.blocked(rename, 1) {
				t.Fatalf("the rename did not wait: %v", rename.wait(t))
			}
			claim := begin(func() error {
				return second(w.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent"}, noon, 0))
			})
			if !w.blocked(claim, 2) && claim.err == nil {
				t.Error("a run was claimed whose cluster was being renamed")
			}
			let()
			if err := errors.Join(rename.wait(t), claim.wait(t)); err != nil {
				t.Error(err) // one after the other, both are right
			}
		})
	}
}

// TestWritersReferToARunThatGoes: what something refers to by now is not removed.
func TestWritersReferToARunThatGoes(t *testing.T) {
	t.Parallel()
	for name, refer := range map[string]func(w *writers, run string) error{
		"run": func(w *writers, run string) error {
			other := newRun(2)
			other.Shown = run
			return w.CreateRun(w.t.Context(), other)
		},
		"cluster": func(w *writers, run string) error {
			return second(w.SaveCluster(w.t.Context(), holdfast.ClusterRecord{Name: "a", Applied: holdfast.Applied{Run: run}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx := openWriters(t), t.Context()
			run := end(t, w.Store, claim(t, w.Store, newRun(1)), holdfast.RunPlanned)
			if err := w.PutArtefact(ctx, run.Ref(), protocol.ArtefactErrored, strings.NewReader("x")); err != nil && !errors.Is(err, holdfast.ErrFenced) {
				t.Fatal(err)
			}
			// The removal has seen that nothing refers to the run, and cannot continue.
			let := w.hold(`SELECT 1 FROM attempts FOR UPDATE`)
			removal := begin(func() error { return datastore.RemoveRun(ctx, w.Store, run.ID) })
			if !w.blocked(removal, 1) {
				t.Fatalf("the removal did not wait: %v", removal.wait(t))
			}
			reference := begin(func() error { return refer(w, run.ID) })
			referred := !w.blocked(reference, 2)
			let()
			if err := errors.Join(removal.wait(t), reference.wait(t)); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Run(ctx, run.ID); referred && err != nil {
				t.Errorf("a run that something referred to was removed: %v", err)
			}
		})
	}
}

// TestWritersNumberLocalPullRequests: each has one of its own.
func TestWritersNumberLocalPullRequests(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	const made = 20
	var group sync.WaitGroup
	for i := range made {
		group.Go(func() {
			pr := holdfast.PullRequest{Title: fmt.Sprint(i), State: holdfast.PullRequestOpen}
			pr.Repo = "fleet"
			if _, err := w.SaveLocalPullRequest(ctx, pr); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := must[[]holdfast.PullRequest](t)(w.LocalPullRequests(ctx, "fleet")); len(got) != made {
		t.Errorf("%d pull requests are left of %d", len(got), made)
	}
}

// TestWritersWantTheSame: what is wanted for the first time by several is wanted once.
func TestWritersWantTheSame(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	for round := range 10 {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				issue := outgoing.Post{Key: fmt.Sprint("issue:", round), Kind: outgoing.PostIssue, Repo: "fleet", Body: "drift"}
				status := outgoing.Post{Key: fmt.Sprint("status:", round), Kind: outgoing.PostStatus, Repo: "fleet", PullRequest: thePullRequest, Body: "s"}
				if err := w.Want(ctx, status, issue); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	for _, post := range must[[]outgoing.Post](t)(w.Posts(ctx, outgoing.PostFilter{})) {
		if post.Wanted != 1 {
			t.Errorf("%s is wanted %d times", post.Key, post.Wanted)
		}
	}
}

// TestWritersPostTheSameRuns: posts that show the same runs in another order do not wait for
// one another in a circle.
func TestWritersPostTheSameRuns(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	const runs = 12
	var shown []string
	for i := range runs {
		create(t, w.Store, newRun(i))
		shown = append(shown, newRun(i).ID)
	}
	reversed := slices.Clone(shown)
	slices.Reverse(reversed)
	for round := range 20 {
		if _, err := w.session.Exec(`UPDATE runs SET posted_at = 0`); err != nil {
			t.Fatal(err)
		}
		var posts []outgoing.Post
		for i, list := range [][]string{shown, reversed} {
			post := outgoing.Post{Key: fmt.Sprint("issue:", round, i), Kind: outgoing.PostIssue, Repo: "fleet", Body: "b", Runs: list}
			want(t, w.Store, post)
			posts = append(posts, must[outgoing.Post](t)(w.Post(ctx, post.Key)))
		}
		var group sync.WaitGroup
		for _, post := range posts {
			group.Go(func() {
				if err := w.Posted(ctx, post, noon); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	if n := w.deadlocks(); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

func (w *writers) deadlocks() int {
	w.t.Helper()
	text := must[string](w.t)(w.d.Query(`SELECT deadlocks FROM pg_stat_database WHERE datname = '` + w.d.Name + `'`))
	return must[int](w.t)(strconv.Atoi(text))
}

// TestWritersClaimOtherPosts: a poster does not wait for posts that another one is at.
func TestWritersClaimOtherPosts(t *testing.T) {
	t.Parallel()
	w := openWriters(t)
	for _, key := range []string{"issue:a", "issue:b"} {
		want(t, w.Store, outgoing.Post{Key: key, Kind: outgoing.PostIssue, Repo: "fleet", Body: "b"})
	}
	let := w.hold(`SELECT 1 FROM posts WHERE post_key = 'issue:a' FOR UPDATE`)
	defer let()
	var got []outgoing.Post
	look := begin(func() (err error) {
		got, err = w.ClaimPosts(t.Context(), "poster", noon, time.Minute, 10)
		return err
	})
	if w.blocked(look, 1) {
		t.Error("a poster waits for another one")
	} else if err := look.wait(t); err != nil || len(got) != 1 || got[0].Key != "issue:b" {
		t.Errorf("ClaimPosts() = %+v, %v", got, err)
	}
}

// TestWritersSaveResources: of two lists that are saved at once one is left, and not both.
func TestWritersSaveResources(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	list := func(kind string) (list []holdfast.Resource) {
		for i := range 20 {
			list = append(list, holdfast.Resource{Address: fmt.Sprint(kind, ".", i), Type: kind})
		}
		return list
	}
	for range 10 {
		var group sync.WaitGroup
		for _, kind := range []string{"a", "b", "c"} {
			group.Go(func() {
				if err := w.SaveResources(ctx, "prod", list(kind)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := must[[]holdfast.Resource](t)(w.Resources(ctx, holdfast.ResourceFilter{Cluster: "prod"})); len(got) != 20 {
			t.Fatalf("%d resources are left, want one list of 20", len(got))
		}
	}
}

// TestWritersWithdrawACommand: a command that comes while its comment is withdrawn is not
// carried out.
func TestWritersWithdrawACommand(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	command := func(comment string) holdfast.Command {
		return holdfast.Command{
			ID: "c" + comment, PullRequest: thePullRequest, CommentID: comment, Verb: holdfast.VerbApply, Text: "/holdfast apply", CreatedAt: noon, Said: noon,
		}
	}
	must[bool](t)(w.StoreCommand(ctx, command("1")))
	// The withdrawal is on record, if it ends, and cannot continue.
	let := w.hold(`SELECT 1 FROM commands FOR UPDATE`)
	withdrawal := begin(func() error {
		return w.WithdrawCommands(ctx, holdfast.Comment{ID: "2", PullRequest: thePullRequest}, noon.Add(time.Second), "edited")
	})
	if !w.blocked(withdrawal, 1) {
		t.Fatalf("the withdrawal did not wait: %v", withdrawal.wait(t))
	}
	late := begin(func() error { return second(w.StoreCommand(ctx, command("2"))) })
	w.blocked(late, 2)
	let()
	if err := errors.Join(withdrawal.wait(t), late.wait(t)); err != nil {
		t.Fatal(err)
	}
	for _, c := range must[[]holdfast.Command](t)(w.Commands(ctx, holdfast.CommandReceived)) {
		if c.CommentID == "2" && c.Barred == "" {
			t.Error("a command of a comment that was withdrawn is carried out")
		}
	}
}

// TestWritersNumberChanges: who has seen a change has seen all with smaller numbers, whenever
// they were committed.
func TestWritersNumberChanges(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	create(t, w.Store, newRun(1), newRun(2))
	last := must[int64](t)(w.LastChange(ctx))
	commit := w.hold(`UPDATE runs SET version = version + 1 WHERE id = 'run-0001'`)
	if _, err := w.session.Exec(`UPDATE runs SET version = version + 1 WHERE id = 'run-0002'`); err != nil {
		t.Fatal(err)
	}
	seen := must[[]holdfast.Change](t)(w.Changes(ctx, last, 10))
	if len(seen) != 1 || seen[0].Name != "run-0002" {
		t.Fatalf("Changes() = %+v", seen)
	}
	commit()
	seen = must[[]holdfast.Change](t)(w.Changes(ctx, seen[0].Seq, 10))
	if len(seen) != 1 || seen[0].Name != "run-0001" {
		t.Errorf("Changes() after a commit of what was made before = %+v", seen)
	}
	if got := must[int64](t)(w.LastChange(ctx)); len(seen) > 0 && got != seen[0].Seq {
		t.Errorf("LastChange() = %d, want %d", got, seen[0].Seq)
	}
}

// TestWritersKeepASnapshot: queries that are read together see one state of the records.
func TestWritersKeepASnapshot(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	before, after, err := datastore.CountTwice(ctx, w.Store, func() { create(t, w.Store, newRun(1)) })
	if err != nil || before != after {
		t.Errorf("%d runs, then %d on the same snapshot, %v", before, after, err)
	}
}

// uploading is a running apply, the first state of which is saved.
func (w *writers) uploading() (run holdfast.Run, put func(serial int64) error) {
	w.t.Helper()
	run = newRun(1)
	run.Kind = holdfast.RunApply
	run = claim(w.t, w.Store, run)
	put = func(serial int64) error {
		return second(w.PutState(w.t.Context(), holdfast.StateWrite{Location: run.StateLocation, By: run.Ref(), Data: stateJSON(serial, "l", fmt.Sprint(serial))}))
	}
	if err := put(1); err != nil {
		w.t.Fatal(err)
	}
	return run, put
}

// TestWritersUploadAStateTwice: of two uploads at once the one with the greater serial is the
// newest state.
func TestWritersUploadAStateTwice(t *testing.T) {
	t.Parallel()
	w := openWriters(t)
	run, put := w.uploading()
	// The first upload has seen what is newest, and cannot continue.
	let := w.hold(`SELECT 1 FROM states FOR UPDATE`)
	newer := begin(func() error { return put(3) })
	if !w.blocked(newer, 1) {
		t.Fatalf("the upload did not wait: %v", newer.wait(t))
	}
	older := begin(func() error { return put(2) })
	w.blocked(older, 2)
	let()
	if err := newer.wait(t); err != nil {
		t.Error(err)
	}
	if err := older.wait(t); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("the upload of an older state = %v, want ErrConflict", err)
	}
	if _, v, err := w.State(t.Context(), run.StateLocation); err != nil || v.Serial != 3 {
		t.Errorf("the newest state has serial %d, want 3: %v", v.Serial, err)
	}
}

// TestWritersEndAndUpload: an attempt does not end while a state of it is stored.
func TestWritersEndAndUpload(t *testing.T) {
	t.Parallel()
	w := openWriters(t)
	run, put := w.uploading()
	let := w.hold(`SELECT 1 FROM states FOR UPDATE`)
	upload := begin(func() error { return put(2) })
	if !w.blocked(upload, 1) {
		t.Fatalf("the upload did not wait: %v", upload.wait(t))
	}
	last := run
	last.Status = holdfast.RunInterrupted
	ending := begin(func() error { return second(w.EndAttempt(t.Context(), run.Ref(), last, nil)) })
	if !w.blocked(ending, 2) && ending.err == nil {
		t.Error("an attempt has ended, and a state of it is stored after that")
	}
	let()
	if err := errors.Join(upload.wait(t), ending.wait(t)); err != nil {
		t.Error(err)
	}
}

// TestWritersWaitInACircle: PostgreSQL ends one of two transactions that wait for one another,
// and it is made again.
func TestWritersWaitInACircle(t *testing.T) {
	t.Parallel()
	w, ctx := openWriters(t), t.Context()
	post := func(key, body string) outgoing.Post {
		return outgoing.Post{Key: key, Kind: outgoing.PostIssue, Repo: "fleet", Body: body}
	}
	want(t, w.Store, post("issue:x", "0"))
	want(t, w.Store, post("issue:y", "0"))
	let := w.hold(`SELECT 1 FROM posts WHERE post_key = 'issue:x' FOR UPDATE`)
	one := begin(func() error { return w.Want(ctx, post("issue:x", "1"), post("issue:y", "1")) })
	if !w.blocked(one, 1) {
		t.Fatal("it did not wait")
	}
	two := begin(func() error { return w.Want(ctx, post("issue:y", "2"), post("issue:x", "2")) })
	if !w.blocked(two, 2) {
		t.Fatal("it did not wait")
	}
	let()
	if err := errors.Join(one.wait(t), two.wait(t)); err != nil {
		t.Error(err)
	}
	if w.deadlocks() == 0 {
		t.Error("they did not wait for one another")
	}
	for _, got := range must[[]outgoing.Post](t)(w.Posts(ctx, outgoing.PostFilter{})) {
		if got.Wanted != 3 {
			t.Errorf("%s was wanted %d times, want 3", got.Key, got.Wanted)
		}
	}
}

// TestWritersStartAtOnce: of two first starts on one database one has it, and makes its schema.
func TestWritersStartAtOnce(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, "")
	var stores atomic.Int64
	var group sync.WaitGroup
	for range 3 {
		opts := optionsOf(t, d)
		opts.Keys, opts.Now = testKeys(t, 'k'), func() time.Time { return noon }
		group.Go(func() {
			store, err := datastore.Open(context.WithoutCancel(t.Context()), opts)
			switch {
			case err == nil:
				stores.Add(1)
				t.Cleanup(func() { _ = store.Close() })
			case !errors.Is(err, holdfast.ErrLocked):
				t.Errorf("Open() = %v, want ErrLocked", err)
			}
		})
	}
	group.Wait()
	if stores.Load() != 1 {
		t.Errorf("%d servers have the database, want 1", stores.Load())
	}
}

// BenchmarkClaimsOfMany is 24 claimers on PostgreSQL, who each end what they have claimed:
// without a limit, with one that is far, and with one that is near.
func BenchmarkClaimsOfMany(b *testing.B) {
	for name, limit := range map[string]int{"no limit": 0, "far": 1000, "near": 25} {
		b.Run(name, func(b *testing.B) {
			store := openPostgres(b)
			ctx := b.Context()
			for i := range b.N {
				run := newRun(i)
				run.PullRequest = holdfast.PullRequestRef{Repo: "fleet", Number: i%50 + 1}
				create(b, store, run)
			}
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for range 24 {
				group.Go(func() {
					for i := int(next.Add(1)) - 1; i < b.N; i = int(next.Add(1)) - 1 {
						run, err := store.ClaimRun(ctx, newRun(i).ID, protocol.AgentRef{ID: "agent"}, noon, limit)
						if err == nil {
							run.Status = holdfast.RunPlanned
							_, err = store.EndAttempt(ctx, run.Ref(), run, nil)
						}
						if err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
		})
	}
}
