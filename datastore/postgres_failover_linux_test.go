package datastore_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
)

// TestReplacedPrimaryComesBack: after a failover the old primary is started again, takes writes as
// before, and is first in the URL. Nothing is written to it or read from it, neither by the server that has
// seen the failover nor by one that starts later, with the new primary or without it.
func TestReplacedPrimaryComesBack(t *testing.T) {
	t.Parallel()
	old := postgresserver.StartGuarded(t, true).New(t, "")
	standby := old.Standby()
	opts := datastore.Options{
		Path: filepath.Join(memory.Dir(t), "holdfast.db"), Keys: testKeys(t, 'k'),
		Postgres: postgres.Address{URL: old.URLOf(old.Server, standby), Password: old.Password},
	}
	open := func() *datastore.Store { return must[*datastore.Store](t)(openOptions(t, opts)) }
	store := open()
	put := func(id string) error {
		return store.CreateRun(t.Context(), holdfast.Run{
			ID: id, Cluster: id, Kind: holdfast.RunApply, Status: holdfast.RunQueued, CreatedAt: noon,
			RunSpec: holdfast.RunSpec{StateLocation: "clusters/" + id},
		})
	}
	if err := put("before"); err != nil {
		t.Fatal(err)
	}
	standby.CatchUp()
	old.Kill()
	standby.Promote()
	if err := put("after"); err != nil {
		t.Fatal(err)
	}

	old.Restart()
	datastore.RenewSessions(store) // as sessions end sooner or later
	for _, id := range []string{"third", "fourth"} {
		if err := put(id); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Run(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	count := func(server *postgresserver.Server) string {
		return must[string](t)(old.QueryOn(server, `SELECT COUNT(*) FROM runs`))
	}
	if was, is := count(old.Server), count(standby); was != "1" || is != "4" {
		t.Errorf("the old primary has %s runs, the new one %s; want 1 and 4", was, is)
	}

	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = open()
	if err := put("fifth"); err != nil {
		t.Fatal(err)
	}
	if is := count(standby); is != "5" {
		t.Errorf("after a restart the new primary has %s runs, want 5", is)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	standby.Kill()
	if _, err := openOptions(t, opts); !errors.Is(err, postgres.ErrReplaced) || !strings.Contains(err.Error(), "make it a standby") {
		t.Errorf("with the old primary alone: %v", err)
	}
}
