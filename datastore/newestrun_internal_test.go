package datastore

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// A cluster has few runs, and a fleet has many that are of no pull request: the newest run is
// looked for among the former.
func TestNewestRunIsLookedForInItsCluster(t *testing.T) {
	t.Parallel()
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{'k'}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	store, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "holdfast.db"), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	for _, query := range []string{newestRun, newestRun + ` AND id <> ''`} {
		var id, parent, unused int
		var detail string
		if err := store.db.reader().row(t.Context(), `EXPLAIN QUERY PLAN `+query, "a", "", 0).Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(detail, "runs_by_cluster") {
			t.Errorf("%s: %s", query, detail)
		}
	}
}
