package datastore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/protocol"
)

// placeAt is where the state of a cluster is on record; empty if nowhere.
func placeAt(t *testing.T, store *datastore.Store, cluster string) string {
	t.Helper()
	place, err := store.StatePlace(t.Context(), cluster)
	if errors.Is(err, holdfast.ErrNotFound) {
		return ""
	} else if err != nil {
		t.Fatal(err)
	}
	return place.Location
}

// claimedRun is a run that is running.
func claimedRun(t *testing.T, store *datastore.Store, run holdfast.Run) holdfast.Run {
	t.Helper()
	create(t, store, run)
	return must[holdfast.Run](t)(store.ClaimRun(t.Context(), run.ID, protocol.AgentRef{ID: "agent"}, noon, 0))
}

// testPlaces: a cluster has its place from its first apply that has begun to its end, and keeps
// it through renames; it moves with the end of a run that has proven that its state has moved,
// and runs that were made for the former place end with that.
func testPlaces(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	stored := &holdfast.StoredState{StateStorage: holdfast.StateStorage{Type: "s3", Bucket: "b"}, Key: "k"}
	apply := newRun(1)
	apply.Cluster, apply.Kind, apply.StateLocation, apply.Stored = "a", holdfast.RunApply, "s3:bucket=b,key=k", stored
	apply = claimedRun(t, store, apply)
	end := func(run holdfast.Run, status holdfast.RunStatus, begun bool) {
		t.Helper()
		ref := run.Ref()
		run.Status, run.Begun, run.FinishedAt = status, begun, noon.Add(time.Minute)
		must[holdfast.Run](t)(store.EndAttempt(ctx, ref, run, nil))
	}
	if got := placeAt(t, store, "a"); got != "" {
		t.Errorf("while its first apply is running, the state is at %q", got)
	}
	end(apply, holdfast.RunErrored, true)
	if place := must[holdfast.StatePlace](t)(store.StatePlace(ctx, "a")); place.Location != apply.StateLocation || place.Stored == nil || *place.Stored != *stored || place.Run != apply.ID {
		t.Errorf("after it, the state is at %+v", place)
	}
	rec := save(t, store, holdfast.ClusterRecord{
		Name: "a", Owner: "fleet", Applied: holdfast.Applied{Run: "run-0001", StateLocation: apply.StateLocation, Stored: stored, Bundle: "sha256:old"},
	})

	waits := newRun(2)
	waits.Cluster, waits.StateLocation = "a", apply.StateLocation
	create(t, store, waits)
	moves := newRun(3)
	moves.Cluster, moves.Kind, moves.StateLocation, moves.Bundle = "a", holdfast.RunState, "clusters/a", "sha256:new"
	moves.State = &holdfast.StateJob{Action: holdfast.StateMigrate, From: "run-0001", Move: &holdfast.StateMove{From: apply.StateLocation, To: "clusters/a"}}
	moves = claimedRun(t, store, moves)
	if _, err := store.ClaimRun(ctx, waits.ID, protocol.AgentRef{ID: "agent"}, noon, 0); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("while the state is being moved, a run of it is claimed: %v", err)
	}
	failed := moves
	end(failed, holdfast.RunErrored, false)
	if got := placeAt(t, store, "a"); got != apply.StateLocation {
		t.Errorf("after a migration that failed, the state is at %q", got)
	}
	moves.ID = "run-0004"
	moves.Status, moves.Attempt, moves.Version = holdfast.RunQueued, 0, 0
	end(claimedRun(t, store, moves), holdfast.RunApplied, false)
	if place := must[holdfast.StatePlace](t)(store.StatePlace(ctx, "a")); place.Location != "clusters/a" || place.Stored != nil || place.Former != apply.StateLocation {
		t.Errorf("after the migration, the state is at %+v", place)
	}
	if now := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "a")).Applied; now.StateLocation != "clusters/a" || now.Bundle != "sha256:new" || !now.Migrated || now.Stored != nil {
		t.Errorf("what was applied is %+v", now)
	}
	if run := must[holdfast.Run](t)(store.Run(ctx, waits.ID)); run.Status != holdfast.RunCanceled || run.Reason != holdfast.ReasonSuperseded {
		t.Errorf("what was made for the former place is %s, %s", run.Status, run.Reason)
	}
	late := newRun(5)
	late.Cluster, late.StateLocation = "a", apply.StateLocation
	newest := must[string](t)(store.NewestRun(ctx, holdfast.Request{Cluster: "a", PullRequest: late.PullRequest}))
	if err := store.CreateRunAfter(ctx, late, newest); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("a run of the former place that comes late is created: %v", err)
	}
	if _, err := store.SaveCluster(ctx, rec); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("what was read before the migration is saved: %v", err)
	}

	rec = must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "a"))
	to := holdfast.ClusterRecord{Name: "b", Applied: rec.Applied}
	rec.Deletion = &holdfast.Deletion{At: noon, Reason: holdfast.ReasonRenamed, To: "b"}
	if err := store.RenameCluster(ctx, rec, to); err != nil {
		t.Fatal(err)
	}
	if was, is := placeAt(t, store, "a"), placeAt(t, store, "b"); was != "" || is != "clusters/b" {
		t.Errorf("after a rename the states are at %q and %q", was, is)
	}
	if got := must[[]string](t)(store.StatePlacesAt(ctx, "clusters/b")); len(got) != 1 || got[0] != "b" {
		t.Errorf("at its location are %v", got)
	}
	gone := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "b"))
	gone.Applied, gone.Life = holdfast.Applied{}, "run-0009"
	must[holdfast.ClusterRecord](t)(store.RecordCluster(ctx, gone, holdfast.NewAuditEntry(noon, "", "cluster.destroyed", "b", "")))
	if got := placeAt(t, store, "b"); got != "" {
		t.Errorf("after its destruction the state is at %q", got)
	}
}

// TestPlacesOfAFormerVersion: clusters that were applied before places were on record are where
// they were, and so are those whose first apply has failed.
func TestPlacesOfAFormerVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/holdfast.db"
	store := openAt(t, datastore.Options{Path: dir})
	save(t, store, holdfast.ClusterRecord{Name: "applied", Applied: holdfast.Applied{Run: "run-0001", StateLocation: "s3:bucket=b,key=k"}})
	save(t, store, holdfast.ClusterRecord{Name: "own", Applied: holdfast.Applied{Run: "run-0002", StateLocation: "clusters/own"}})
	save(t, store, holdfast.ClusterRecord{Name: "failed"})
	save(t, store, holdfast.ClusterRecord{Name: "never"})
	failed := newRun(3)
	failed.Cluster, failed.Kind, failed.StateLocation = "failed", holdfast.RunApply, "clusters/failed"
	failed = claimedRun(t, store, failed)
	ref := failed.Ref()
	failed.Status, failed.Begun = holdfast.RunErrored, true
	must[holdfast.Run](t)(store.EndAttempt(t.Context(), ref, failed, nil))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, dir, `DROP TABLE state_places; DROP TABLE breakers; DROP TABLE deliveries; DROP TABLE notifications; DROP TABLE people; DROP TABLE person_links; DROP TABLE sessions; DROP TABLE personal_tokens; DROP TABLE login_requests; DROP TABLE requesters; ALTER TABLE audit DROP COLUMN origin; DELETE FROM goose_db_version WHERE version_id >= 26`)
	store = openAt(t, datastore.Options{Path: dir})
	for name, want := range map[string]string{"applied": "s3:bucket=b,key=k", "own": "clusters/own", "failed": "clusters/failed", "never": ""} {
		if got := placeAt(t, store, name); got != want {
			t.Errorf("the state of %s is at %q, not %q", name, got, want)
		}
	}
}
