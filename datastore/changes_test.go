package datastore_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// testChanges: each write of a cluster, a run or a pull request is a change, a
// heartbeat is not, and of an object only the newest change is kept.
func testChanges(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	seen := int64(0)
	expect := func(what string, want ...holdfast.Change) {
		t.Helper()
		got := must[[]holdfast.Change](t)(store.Changes(ctx, seen, 100))
		for i := range got {
			if got[i].Seq <= seen {
				t.Errorf("%s: change %d is numbered %d, want more than %d", what, i, got[i].Seq, seen)
			}
			seen, got[i].Seq = got[i].Seq, 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if last := must[int64](t)(store.LastChange(ctx)); last != seen {
			t.Errorf("%s: the last change is %d, want %d", what, last, seen)
		}
	}
	expect("nothing yet")

	run := newRun(1)
	ofRun := holdfast.Change{Kind: holdfast.ChangeRun, Name: run.ID, Cluster: run.Cluster}
	create(t, store, run)
	expect("a new run", ofRun)
	claimed := must[holdfast.Run](t)(store.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent-a"}, noon, 2))
	expect("a claim", ofRun)
	_ = must[holdfast.Run](t)(store.Beat(ctx, claimed.Ref(), "init", noon.Add(time.Second)))
	expect("a step", ofRun)
	_ = must[holdfast.Run](t)(store.Beat(ctx, claimed.Ref(), "init", noon.Add(2*time.Second)))
	expect("a heartbeat")

	cluster := must[holdfast.ClusterRecord](t)(store.SaveCluster(ctx, holdfast.ClusterRecord{Name: "c001"}))
	_ = must[holdfast.ClusterRecord](t)(store.SaveCluster(ctx, cluster))
	expect("two writes of a cluster", holdfast.Change{Kind: holdfast.ChangeCluster, Name: "c001", Cluster: "c001"})
	ref := holdfast.PullRequestRef{Repo: "fleet", Number: 7}
	_ = must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: ref, State: holdfast.PullRequestOpen}}))
	expect("a pull request", holdfast.Change{Kind: holdfast.ChangePullRequest, Name: "fleet#7"})

	if got := must[[]holdfast.Change](t)(store.Changes(ctx, 0, 2)); len(got) != 2 || got[0].Name != run.ID || got[1].Name != "c001" {
		t.Errorf("the first two of all changes = %+v, want the run's newest and the cluster's", got)
	}
	if _, err := store.Changes(ctx, seen+1, 1); !errors.Is(err, holdfast.ErrExpired) {
		t.Errorf("after a number that is yet to come: %v, want ErrExpired", err)
	}
}

func TestDeletionsAreForgotten(t *testing.T) {
	t.Parallel()
	dir := memory.Dir(t)
	store := openAt(t, datastore.Options{Path: filepath.Join(dir, "holdfast.db")})
	ctx := t.Context()
	_ = must[holdfast.ClusterRecord](t)(store.SaveCluster(ctx, holdfast.ClusterRecord{Name: "c001"}))
	execute(t, filepath.Join(dir, "holdfast.db"), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10005)
		INSERT INTO changes (kind, name, cluster, deleted) SELECT 'Run', 'run-' || i, 'c001', 1 FROM n`)
	if _, err := store.Sweep(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Changes(ctx, 5, 1); !errors.Is(err, holdfast.ErrExpired) {
		t.Errorf("after a deletion that is forgotten: %v, want ErrExpired", err)
	}
	first := must[[]holdfast.Change](t)(store.Changes(ctx, 6, 1))
	if diff := cmp.Diff([]holdfast.Change{{Seq: 7, Kind: holdfast.ChangeRun, Name: "run-6", Cluster: "c001", Deleted: true}}, first); diff != "" {
		t.Errorf("the oldest deletion that is kept (-want +got):\n%s", diff)
	}
	all := must[[]holdfast.Change](t)(store.Changes(ctx, 10_000, 100))
	if len(all) != 6 {
		t.Errorf("after 10,000: %d changes, want 6", len(all))
	}
}

// TestChangesHaveNoHoles: several servers that ask at once while others write see each object as
// it is in the end, and no change before those that have a lower number.
func TestChangesHaveNoHoles(t *testing.T) {
	t.Parallel()
	const writers, runs, pollers = 4, 25, 3
	d, ctx := postgresserver.New(t, emptyPostgres(t)), t.Context()
	var group, asking sync.WaitGroup
	written := make(chan struct{})
	stores := make([]*datastore.Store, pollers)
	seen := make([]map[string]int64, pollers)
	for i := range stores {
		stores[i], seen[i] = must[*datastore.Store](t)(openOptions(t, asReplica(t, d, string(rune('a'+i))))), make(map[string]int64)
		asking.Go(func() {
			for after, over := int64(0), false; ; {
				select {
				case <-written:
					over = true
				default:
				}
				changes, err := stores[i].Changes(ctx, after, 7)
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range changes {
					if c.Seq <= after {
						t.Errorf("change %d comes after %d", c.Seq, after)
					}
					after, seen[i][c.Name] = c.Seq, c.Seq
				}
				if over && len(changes) == 0 {
					return
				}
			}
		})
	}
	for worker := range writers {
		group.Go(func() {
			for n := range runs {
				run := newRun(worker*1000 + n)
				err := stores[n%pollers].CreateRun(ctx, run)
				for range 3 {
					if err == nil {
						run, err = stores[n%pollers].Run(ctx, run.ID)
					}
					if err == nil {
						_, err = stores[(n+1)%pollers].UpdateRun(ctx, run)
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	close(written)
	asking.Wait()
	last := make(map[string]int64)
	for _, c := range must[[]holdfast.Change](t)(stores[0].Changes(ctx, 0, 10_000)) {
		last[c.Name] = c.Seq
	}
	if len(last) != writers*runs {
		t.Errorf("%d objects have changed, want %d", len(last), writers*runs)
	}
	for i := range seen {
		if diff := cmp.Diff(last, seen[i]); diff != "" {
			t.Errorf("server %d has seen other last changes (-last +seen):\n%s", i, diff)
		}
	}
}
