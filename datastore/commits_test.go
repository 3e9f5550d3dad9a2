package datastore_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/protocol"
)

// commitsIn counts the transactions that the write-ahead log of a database has.
func commitsIn(t *testing.T, path string) int {
	t.Helper()
	wal, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const header, frameHeader = 32, 24
	if len(wal) < header {
		return 0
	}
	salts, frame := wal[16:24], frameHeader+int(binary.BigEndian.Uint32(wal[8:]))
	n := 0
	for at := header; at+frame <= len(wal) && bytes.Equal(wal[at+8:at+16], salts); at += frame {
		if binary.BigEndian.Uint32(wal[at+4:]) != 0 { // the database's size, in the last frame of a transaction
			n++
		}
	}
	return n
}

// TestCommitsOfARun: each step of a run's life is one transaction, whatever is written
// in it.
func TestCommitsOfARun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(memory.Dir(t), "holdfast.db")
	store, ctx := openAt(t, datastore.Options{Path: path}), t.Context()
	run := newRun(1)
	step := func(name string, want int, do func() error) {
		t.Helper()
		before := commitsIn(t, path)
		if err := do(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := commitsIn(t, path) - before; got != want {
			t.Errorf("%s: %d transactions, want %d", name, got, want)
		}
	}
	step("queue", 1, func() error {
		return store.CreateRun(ctx, run, holdfast.AuditEntry{Actor: "ann", Action: "run.queue", Object: run.ID})
	})
	if trail := must[[]holdfast.AuditEntry](t)(store.AuditTrail(ctx, run.ID, 0)); len(trail) != 1 || trail[0].Actor != "ann" {
		t.Errorf("the audit trail of the run is %+v", trail)
	}
	step("claimable", 0, func() error {
		_, err := store.Claimable(ctx, holdfast.ClaimFilter{Now: noon, Limit: 16})
		return err
	})
	step("claim", 1, func() (err error) {
		run, err = store.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent"}, noon, 0)
		return err
	})
	step("beat", 1, func() error {
		_, err := store.Beat(ctx, run.Ref(), "plan", noon)
		return err
	})
	step("artefact", 1, func() error {
		return store.PutArtefact(ctx, run.Ref(), protocol.ArtefactPlan, strings.NewReader("{}"))
	})
	step("end", 1, func() error {
		run.Status = holdfast.RunPlanned
		_, err := store.EndAttempt(ctx, run.Ref(), run, nil)
		return err
	})
	step("record what was applied", 1, func() error {
		entry := holdfast.AuditEntry{Actor: "ann", Action: "cluster.applied", Object: run.Cluster}
		_, err := store.RecordCluster(ctx, holdfast.ClusterRecord{Name: run.Cluster}, entry, holdfast.Transition{What: "phase", To: "Active"})
		return err
	})
	comment := outgoing.Post{Key: "comment", Kind: outgoing.PostComment, Repo: "r", Body: "applied"}
	status := outgoing.Post{
		Key: "status", Kind: outgoing.PostStatus, Repo: "r", After: comment.Key,
		Status: holdfast.CommitStatus{Revision: "abc", Context: holdfast.ContextApply, State: holdfast.StatusSuccess},
	}
	step("show", 1, func() error { return store.Want(ctx, comment, status) })
	step("show again", 0, func() error { return store.Want(ctx, comment, status) })
	due := must[[]outgoing.Post](t)(store.ClaimPosts(ctx, "us", noon, time.Minute, 10))
	if len(due) != 1 || due[0].Key != comment.Key {
		t.Errorf("%d posts are due, want the comment before the status that comes after it", len(due))
	}
	if trail := must[[]holdfast.AuditEntry](t)(store.AuditTrail(ctx, run.Cluster, 0)); len(trail) != 1 || trail[0].Action != "cluster.applied" {
		t.Errorf("the audit trail of the cluster is %+v", trail)
	}
}
