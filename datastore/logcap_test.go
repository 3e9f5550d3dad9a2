//go:build !race

package datastore_test

import (
	"bytes"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestLogCap fills a log, of one attempt by one goroutine. With the race detector that
// takes as long as half of the other tests.
func TestLogCap(t *testing.T) {
	t.Parallel()
	for database, open := range map[string]opener{"sqlite": openSQLite, "sqlite and a bucket": openBucket} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			testLogCap(t, open)
		})
	}
}

func testLogCap(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	run := claim(t, store, newRun(1))
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	var offset int64
	for range 66 {
		next := must[int64](t)(store.AppendLog(ctx, run.Ref(), offset, chunk))
		if next != offset+int64(len(chunk)) {
			t.Fatalf("AppendLog(%d) = %d: beyond the cap a log is taken and dropped", offset, next)
		}
		offset = next
	}
	end(t, store, run, holdfast.RunErrored)
	var size, markers int
	for at, done := int64(0), false; !done; {
		part := readLog(t, store, run.ID, 0, at)
		size += len(part.Data)
		markers += bytes.Count(part.Data, []byte("the rest is not kept"))
		if part.Next == at && !part.Done {
			t.Fatalf("Log(%d) makes no progress", at)
		}
		at, done = part.Next, part.Done
	}
	if size < 64<<20 || size > 64<<20+200 || markers != 1 {
		t.Errorf("the log has %d bytes and %d markers, want 64 MiB and one", size, markers)
	}
}
