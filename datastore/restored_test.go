package datastore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestRestoredPostgres: after the statements of docs/backup.md no fence is given twice, and the next
// start, and no later one, suspends everything.
func TestRestoredPostgres(t *testing.T) {
	t.Parallel()
	page := string(must[[]byte](t)(os.ReadFile("../docs/backup.md")))
	_, rest, _ := strings.Cut(page, "```sql\n")
	statements, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/backup.md has no statements")
	}
	d := postgresserver.New(t, "")
	dir := memory.Dir(t)
	opts := datastore.Options{Path: filepath.Join(dir, "holdfast.db"), Postgres: postgres.Address{URL: d.URL(), Password: d.Password}}
	reopened := func(store *datastore.Store) *datastore.Store {
		if store != nil {
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return must[*datastore.Store](t)(openOptions(t, opts))
	}
	fence := func(store *datastore.Store, id string) int64 {
		run := holdfast.Run{
			ID: id, Cluster: id, Kind: holdfast.RunApply, Status: holdfast.RunQueued, CreatedAt: noon, RunSpec: holdfast.RunSpec{StateLocation: "clusters/" + id},
		}
		if err := store.CreateRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		return must[holdfast.Run](t)(store.ClaimRun(t.Context(), id, protocol.AgentRef{ID: "agent"}, noon, 0)).Fence
	}
	store := reopened(nil)
	before := fence(store, "before")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	must[string](t)(d.Query(statements))
	store = reopened(nil)
	if after := fence(store, "after"); after < before+1_000_000 {
		t.Errorf("the fence after the restore is %d, that before it %d", after, before)
	}
	held := must[[]holdfast.Suspension](t)(store.Suspensions(t.Context()))
	if len(held) != 1 || held[0].Project != "" || !strings.Contains(held[0].Reason, "docs/backup.md") {
		t.Errorf("after the restore %+v is suspended, want everything", held)
	}
	if trail := must[[]holdfast.AuditEntry](t)(store.AuditTrail(t.Context(), "fleet", 0)); len(trail) != 1 || trail[0].Action != "fleet.suspend" {
		t.Errorf("the audit trail is %+v", trail)
	}
	// What was stored after the backup is not removed before somebody has looked.
	store = reopened(store)
	orphan := filepath.Join(dir, "blobs", identityIn(t, dir), "state", "ab", "later")
	if err := errors.Join(os.MkdirAll(filepath.Dir(orphan), 0o700), os.WriteFile(orphan, []byte("x"), 0o600), os.Chtimes(orphan, noon, noon.Add(-48*time.Hour))); err != nil {
		t.Fatal(err)
	}
	sweep := func() int { return must[int](t)(store.Sweep(t.Context(), 24*time.Hour)) }
	if n := sweep(); n != 0 {
		t.Errorf("a sweep of what was restored removes %d blobs", n)
	}
	if err := store.Resume(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if n := sweep(); n != 1 {
		t.Errorf("a sweep after everything was resumed removes %d blobs, want 1", n)
	}
	if held := must[[]holdfast.Suspension](t)(reopened(store).Suspensions(t.Context())); len(held) != 0 {
		t.Errorf("after the next start %+v is suspended", held)
	}
}

// identityIn is the name of the installation whose data folder it is.
func identityIn(t testing.TB, dir string) string {
	t.Helper()
	return strings.TrimSpace(string(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "postgres")))))
}
