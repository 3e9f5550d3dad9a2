package verify_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/datastore/verify"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/internal/testenv/objectserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

func TestMain(m *testing.M) { os.Exit(postgresserver.Main(m)) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func must[T any](t testing.TB) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func keys(t testing.TB, b byte) *seal.Keyring {
	t.Helper()
	return must[*seal.Keyring](t)(seal.NewKeyring(bytes.Repeat([]byte{b}, seal.KeySize)))
}

// filled opens a store, which stays open, with large and small contents of each kind: an
// artefact, a bundle, two states, one of which has moved.
func filled(t testing.TB, opts datastore.Options) *datastore.Store {
	t.Helper()
	opts.Now = func() time.Time { return noon }
	store := must[*datastore.Store](t)(datastore.Open(t.Context(), opts))
	t.Cleanup(func() { _ = store.Close() })
	for i, size := range []int{100, 100 << 10} {
		run := holdfast.Run{
			ID: fmt.Sprintf("run-%d", i), Cluster: fmt.Sprintf("c%d", i), Kind: holdfast.RunApply, Status: holdfast.RunQueued, CreatedAt: noon,
			RunSpec: holdfast.RunSpec{StateLocation: fmt.Sprintf("clusters/c%d", i), Document: holdfast.Cluster{Name: fmt.Sprintf("c%d", i)}},
		}
		large := strings.Repeat("x", size)
		err := store.CreateRun(t.Context(), run)
		if err == nil {
			run, err = store.ClaimRun(t.Context(), run.ID, protocol.AgentRef{ID: "agent"}, noon, 0)
		}
		if err == nil {
			err = store.PutArtefact(t.Context(), run.Ref(), "document", strings.NewReader(large))
		}
		if err == nil {
			err = store.PutBundle(t.Context(), holdfast.Digest("sha256:"+run.ID), []byte(large))
		}
		if err == nil {
			_, err = store.PutState(t.Context(), holdfast.StateWrite{
				Location: run.StateLocation, By: run.Ref(), Data: []byte(`{"version":4,"serial":1,"lineage":"l","outputs":{"x":{"value":"` + large + `"}}}`),
			})
		}
		if err == nil {
			_, err = store.SaveCluster(t.Context(), holdfast.ClusterRecord{Name: run.Cluster})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// places are where records and blobs may be.
func places(t *testing.T) map[string]func(t *testing.T) datastore.Options {
	t.Helper()
	files := func(t *testing.T) datastore.Options {
		dir := filepath.Join(memory.Dir(t), "db")
		return datastore.Options{Path: filepath.Join(dir, "holdfast.db"), Blobs: objects.Options{Dir: filepath.Join(dir, "blobs")}, Keys: keys(t, 'k')}
	}
	return map[string]func(t *testing.T) datastore.Options{
		"SQLite and files": files,
		"PostgreSQL and S3": func(t *testing.T) datastore.Options {
			opts, d, server := files(t), postgresserver.New(t, ""), objectserver.StartS3(t)
			opts.Postgres = postgres.Address{URL: d.URL(), Password: d.Password}
			opts.Blobs = objects.Options{
				URL: server.MakeBucket("holdfast"), AccessKey: server.AccessKey,
				Secret: func() (string, error) { return server.Secret, nil },
			}
			return opts
		},
	}
}

func check(t testing.TB, opts datastore.Options, deep bool) verify.Result {
	t.Helper()
	return must[verify.Result](t)(verify.Check(t.Context(), verify.Options{
		Path: opts.Path, Postgres: opts.Postgres, Blobs: opts.Blobs, Keys: opts.Keys, Deep: deep,
		Now: func() time.Time { return time.Now().Add(2 * time.Hour) },
	}))
}

// TestCheck finds what is missing, damaged, of another size and left over, while the store is
// open, and nothing where nothing is wrong.
func TestCheck(t *testing.T) {
	t.Parallel()
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := place(t)
			store := filled(t, opts)
			for _, deep := range []bool{false, true} {
				r := check(t, opts, deep)
				if !r.OK() || r.Records != 3 || r.Blobs != 3 || len(r.Problems) > 0 || deep != (r.Inline == 3) || deep != (r.Decrypted > 300<<10) {
					t.Errorf("deep %t: %+v", deep, r)
				}
			}
			bucket := must[*objects.Bucket](t)(objects.Open(t.Context(), opts.Blobs))
			defer bucket.Close()
			blobs := byPurpose(t, bucket)

			replace(t, bucket, blobs["artefact"], func(data []byte) []byte { data[70_000] ^= 1; return data })
			replace(t, bucket, blobs["bundle"], func(data []byte) []byte { return data[:len(data)-1] })
			replace(t, bucket, blobs["state"], nil)
			orphan := strings.Split(blobs["state"], "/")[0] + "/state/ff/orphan"
			replace(t, bucket, orphan, func([]byte) []byte { return []byte("left over") })
			for _, deep := range []bool{false, true} {
				want := map[string]string{blobs["bundle"]: verify.Damaged, blobs["state"]: verify.Missing, orphan: verify.Orphaned}
				if deep {
					want[blobs["artefact"]] = verify.Damaged
				}
				r, got := check(t, opts, deep), make(map[string]string)
				for _, p := range r.Problems {
					got[p.Blob] = p.Problem
				}
				if r.OK() || !maps.Equal(want, got) {
					t.Errorf("deep %t: %v, want %v", deep, got, want)
				}
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// byPurpose are the keys of the blobs by what they are for.
func byPurpose(t testing.TB, bucket *objects.Bucket) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := bucket.List(t.Context(), "", func(page []objects.Object) error {
		for _, o := range page {
			if parts := strings.Split(o.Key, "/"); len(parts) == 4 {
				found[parts[1]] = o.Key
			}
		}
		return nil
	})
	if err != nil || len(found) != 3 {
		t.Fatalf("the bucket has %v: %v", found, err)
	}
	return found
}

// replace changes a blob; nil removes it.
func replace(t testing.TB, bucket *objects.Bucket, key string, change func([]byte) []byte) {
	t.Helper()
	var data []byte
	if r, err := bucket.Read(t.Context(), key); err == nil {
		data = must[[]byte](t)(io.ReadAll(r))
		_ = r.Close()
	}
	if err := bucket.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if change == nil {
		return
	}
	data = change(data)
	_, err := bucket.Write(t.Context(), key, func(w io.Writer) (int64, error) { n, err := w.Write(data); return int64(n), err })
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckOfAMovedState: it was encrypted for where it was.
func TestCheckOfAMovedState(t *testing.T) {
	t.Parallel()
	opts := places(t)["SQLite and files"](t)
	store := filled(t, opts)
	run := must[holdfast.Run](t)(store.Run(t.Context(), "run-1"))
	run.Status = holdfast.RunApplied
	must[holdfast.Run](t)(store.EndAttempt(t.Context(), run.Ref(), run, nil))
	record := must[holdfast.ClusterRecord](t)(store.Cluster(t.Context(), "c1"))
	if err := store.RenameCluster(t.Context(), record, holdfast.ClusterRecord{Name: "renamed"}); err != nil {
		t.Fatal(err)
	}
	if r := check(t, opts, true); !r.OK() || r.Records != 3 {
		t.Errorf("after a rename: %+v", r)
	}
}

// TestCheckRefusesOtherKeys, as everything would be damaged.
func TestCheckRefusesOtherKeys(t *testing.T) {
	t.Parallel()
	opts := places(t)["SQLite and files"](t)
	filled(t, opts)
	opts.Keys = keys(t, 'x')
	_, err := verify.Check(t.Context(), verify.Options{Path: opts.Path, Blobs: opts.Blobs, Keys: opts.Keys})
	if err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("Check() = %v", err)
	}
}

// TestKindsAreAll: whatever table refers to blobs is checked.
func TestKindsAreAll(t *testing.T) {
	t.Parallel()
	opts := places(t)["SQLite and files"](t)
	filled(t, opts)
	db := must[*sql.DB](t)(sql.Open("sqlite", "file:"+opts.Path))
	defer db.Close()
	rows := must[*sql.Rows](t)(db.QueryContext(t.Context(), `SELECT t.name FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c WHERE t.type = 'table' AND c.name = 'inline'`))
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	slices.Sort(tables)
	if got := verify.Tables(); !slices.Equal(got, tables) || rows.Err() != nil {
		t.Errorf("checked are %v, and these have blobs: %v", got, tables)
	}
}
