package datastore

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// TestFieldsOfFormerNames has records as they were written before their fields
// had the present names.
func TestFieldsOfFormerNames(t *testing.T) {
	t.Parallel()
	ring, err := seal.NewKeyring(bytes.Repeat([]byte{'k'}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ctx, opts := t.Context(), Options{Path: filepath.Join(t.TempDir(), "holdfast.db"), Keys: ring}
	open := func() *Store {
		store, err := Open(ctx, opts)
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	store := open()
	ref := holdfast.PullRequestRef{Repo: "fleet", Number: 7}
	pr, err := store.SavePullRequest(ctx, holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{PullRequestRef: ref}, AllSamples: true,
		Clusters: []holdfast.PullRequestCluster{{Name: "a"}, {Name: "b", Sample: true}, {Name: "c", Removed: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := store.SaveCluster(ctx, holdfast.ClusterRecord{
		Name: "a", Drift: holdfast.DriftState{Revert: "run-1"}, Deletion: &holdfast.Deletion{Reason: holdfast.ReasonDestroyed, Run: "run-2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	run := holdfast.Run{ID: "run-3", Cluster: "a", Kind: holdfast.RunPlan, Status: holdfast.RunQueued, RunSpec: holdfast.RunSpec{RunMode: holdfast.RunMode{Sample: true}}}
	if err := store.CreateRun(ctx, run); err != nil {
		t.Fatal(err)
	}
	former := strings.NewReplacer(`"allSamples":`, `"allTrials":`, `"sample":`, `"trial":`, `"removed":true`, `"deleted":true`, `"deletion":{"at"`, `"ending":{"at"`, `"revert":`, `"remedy":`)
	write := func(kind, table, key, name string, rec any) {
		plain, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		was := former.Replace(string(plain))
		doc, err := ring.SealJSON(kind, name, json.RawMessage(was))
		if err != nil || was == string(plain) {
			t.Fatalf("%s without a former name, %v", was, err)
		}
		err = store.db.write(ctx, func(ctx context.Context, q querier) error {
			_, err := q.exec(ctx, `UPDATE `+table+` SET doc = ? WHERE `+key+` = ?`, doc, name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write("pull request", "pull_requests", "repo || '#' || number", ref.String(), pr)
	write("cluster", "clusters", "name", "a", cluster)
	write("run", "runs", "id", run.ID, run)
	err = store.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO rebuilds (name) VALUES ('names')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		store = open()
	}
	t.Cleanup(func() { _ = store.Close() })
	compare := func(want, got any, err error) {
		t.Helper()
		wanted, _ := json.Marshal(want)
		if text, _ := json.Marshal(got); string(text) != string(wanted) || err != nil {
			t.Errorf("got %s, %v, want %s", text, err, wanted)
		}
	}
	gotPR, err := store.PullRequest(ctx, ref)
	compare(pr, gotPR, err)
	gotCluster, err := store.Cluster(ctx, "a")
	compare(cluster, gotCluster, err)
	gotRun, err := store.Run(ctx, run.ID)
	compare(run, gotRun, err)
}
