package datastore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/statelock"
)

// noise returns n bytes that no compression makes smaller.
func noise(n int) []byte {
	data := make([]byte, n)
	source := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range data {
		data[i] = byte(source.Uint32())
	}
	return data
}

func putArtefact(t testing.TB, store *datastore.Store, ref holdfast.AttemptRef, name string, data []byte) {
	t.Helper()
	if err := store.PutArtefact(t.Context(), ref, name, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
}

func artefact(t testing.TB, store *datastore.Store, run, name string) []byte {
	t.Helper()
	r := must[io.ReadCloser](t)(store.Artefact(t.Context(), run, name))
	defer r.Close()
	return must[[]byte](t)(io.ReadAll(r))
}

func testArtefacts(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	run := claim(t, store, newRun(1))

	// Sizes around what is kept in rows and around the segments of ciphertext.
	for _, size := range []int{0, 1, 16 << 10, 16<<10 + 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10, 1 << 20, 1<<20 + 7} {
		data := noise(size)
		putArtefact(t, store, run.Ref(), "plan", data)
		if got := artefact(t, store, run.ID, "plan"); !bytes.Equal(got, data) {
			t.Errorf("artefact of %d bytes came back as %d other bytes", size, len(got))
		}
	}
	if _, err := store.Artefact(ctx, run.ID, "none"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Artefact(none) = %v, want ErrNotFound", err)
	}

	// An upload that breaks off leaves what was there.
	cut := errors.New("connection reset")
	for _, size := range []int{10, 100 << 10} {
		broken := io.MultiReader(bytes.NewReader(noise(size)), iotest.ErrReader(cut))
		if err := store.PutArtefact(ctx, run.Ref(), "plan", broken); !errors.Is(err, cut) {
			t.Errorf("PutArtefact of a broken upload = %v, want its error", err)
		}
		if got := artefact(t, store, run.ID, "plan"); len(got) != 1<<20+7 {
			t.Errorf("artefact after a broken upload has %d bytes", len(got))
		}
	}

	plan := holdfast.Plan{Counts: holdfast.Counts{Create: 1}, Text: "+ x", Fingerprint: "sha256:f"}
	putArtefact(t, store, run.Ref(), protocol.ArtefactPlan, []byte(`{"counts":{"create":1},"text":"+ x","fingerprint":"sha256:f"}`))
	if diff := differ(plan, must[holdfast.Plan](t)(store.Plan(ctx, run.ID))); diff != "" {
		t.Errorf("Plan() (-want +got):\n%s", diff)
	}

	// The last attempt that has one counts; an attempt that is over adds nothing
	// but the state that it could not upload.
	retry := run
	retry.Status = holdfast.RunQueued
	retry = must[holdfast.Run](t)(store.EndAttempt(ctx, run.Ref(), retry, nil))
	if err := store.PutArtefact(ctx, run.Ref(), "plan", strings.NewReader("late")); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("PutArtefact of an attempt that is over = %v, want ErrFenced", err)
	}
	putArtefact(t, store, run.Ref(), protocol.ArtefactErrored, []byte(`{"serial":1}`))
	next := must[holdfast.Run](t)(store.ClaimRun(ctx, retry.ID, protocol.AgentRef{ID: "agent"}, noon, 0))
	putArtefact(t, store, next.Ref(), "plan", []byte("second"))
	for name, want := range map[string]string{"plan": "second", protocol.ArtefactErrored: `{"serial":1}`} {
		if got := artefact(t, store, run.ID, name); string(got) != want {
			t.Errorf("Artefact(%s) = %d bytes, want %q", name, len(got), want)
		}
	}
}

func testBundles(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	for _, size := range []int{100, 100 << 10} {
		data := noise(size)
		digest := holdfast.DigestOf(data)
		if must[bool](t)(store.HasBundle(ctx, digest)) {
			t.Error("HasBundle() before PutBundle()")
		}
		for range 2 {
			if err := store.PutBundle(ctx, digest, data); err != nil {
				t.Fatal(err)
			}
		}
		if !must[bool](t)(store.HasBundle(ctx, digest)) {
			t.Error("no HasBundle() after PutBundle()")
		}
		r := must[io.ReadCloser](t)(store.Bundle(ctx, digest))
		if got := must[[]byte](t)(io.ReadAll(r)); !bytes.Equal(got, data) {
			t.Errorf("bundle of %d bytes came back as %d other bytes", size, len(got))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := store.Bundle(ctx, "sha256:none"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Bundle(none) = %v, want ErrNotFound", err)
	}
}

func readLog(t testing.TB, store *datastore.Store, run string, attempt int, offset int64) holdfast.LogRange {
	t.Helper()
	return must[holdfast.LogRange](t)(store.Log(t.Context(), run, attempt, offset, false))
}

func testLogs(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	queued := newRun(2)
	create(t, store, queued)
	if got := readLog(t, store, queued.ID, 0, 0); got.Done || len(got.Data) != 0 {
		t.Errorf("Log() of a queued run = %+v", got)
	}
	if _, err := store.Log(ctx, "none", 0, 0, false); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Log(unknown run) = %v, want ErrNotFound", err)
	}
	run := claim(t, store, newRun(1))
	for _, test := range []struct {
		offset int64
		data   string
		next   int64
	}{
		{0, "init\n", 5},
		{0, "init\n", 5},          // sent again
		{3, "t\nplan\n", 10},      // overlaps
		{2, "i", 10},              // inside
		{11, "lost before\n", 10}, // a gap
		{10, "", 10},
		{10, "done\n", 15},
	} {
		if got := must[int64](t)(store.AppendLog(ctx, run.Ref(), test.offset, []byte(test.data))); got != test.next {
			t.Errorf("AppendLog(%d, %q) = %d, want %d", test.offset, test.data, got, test.next)
		}
	}
	whole := "init\nplan\ndone\n"
	for offset := range len(whole) + 1 {
		got := readLog(t, store, run.ID, 1, int64(offset))
		if string(got.Data) != whole[offset:] || got.Next != int64(len(whole)) || got.Done {
			t.Errorf("Log(%d) = %q, next %d, done %v", offset, got.Data, got.Next, got.Done)
		}
	}
	// "t\nplan" in two chunks, and what is beyond the end.
	if err := store.MaskLog(ctx, run.Ref(), []protocol.LogSpan{{From: 3, To: 8}, {From: 14, To: 99}}); err != nil {
		t.Errorf("MaskLog() = %v", err)
	}
	whole = "ini*\n***n\ndone\n"
	run = end(t, store, run, holdfast.RunPlanned)
	if err := store.MaskLog(ctx, run.Ref(), []protocol.LogSpan{{To: 5}}); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("MaskLog of an attempt that is over = %v, want ErrFenced", err)
	}
	if got := readLog(t, store, run.ID, 0, 0); !got.Done || string(got.Data) != whole {
		t.Errorf("Log() after the end = %q, done %v", got.Data, got.Done)
	}
	if _, err := store.AppendLog(ctx, run.Ref(), 15, []byte("late")); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("AppendLog of an attempt that is over = %v, want ErrFenced", err)
	}
	if _, err := store.Log(ctx, run.ID, 2, 0, false); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Log(attempt 2) = %v, want ErrNotFound", err)
	}
}

func testLogWaits(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	create(t, store, newRun(1))
	type answer struct {
		part holdfast.LogRange
		err  error
	}
	follow := func(offset int64) <-chan answer {
		answers := make(chan answer, 1)
		go func() {
			part, err := store.Log(ctx, "run-0001", 0, offset, true)
			answers <- answer{part, err}
		}()
		return answers
	}

	waiting := follow(0) // from before the claim
	run := must[holdfast.Run](t)(store.ClaimRun(ctx, "run-0001", protocol.AgentRef{ID: "agent"}, noon, 0))
	must[int64](t)(store.AppendLog(ctx, run.Ref(), 0, []byte("hello")))
	if got := <-waiting; got.err != nil || string(got.part.Data) != "hello" || got.part.Done {
		t.Errorf("Log() that waited for a line = %+v", got)
	}
	waiting = follow(5)
	end(t, store, run, holdfast.RunNoChanges)
	if got := <-waiting; got.err != nil || len(got.part.Data) != 0 || !got.part.Done || got.part.Next != 5 {
		t.Errorf("Log() that waited for the end = %+v", got)
	}

	create(t, store, newRun(2))
	if got, err := store.Log(ended(t), "run-0002", 0, 0, true); err != nil || got.Done || got.Next != 0 {
		t.Errorf("Log() whose context is done = %+v, %v; want nothing and no error", got, err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if got, err := store.Log(short, "run-0002", 0, 0, true); err != nil || got.Done {
		t.Errorf("Log() whose context ends = %+v, %v; want nothing and no error", got, err)
	}
}

func stateJSON(serial int64, lineage, secret string) []byte {
	return fmt.Appendf(nil, `{"version":4,"serial":%d,"lineage":%q,"outputs":{"password":{"value":%q}}}`, serial, lineage, secret)
}

func testStates(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	must[holdfast.ClusterRecord](t)(store.SaveCluster(ctx, holdfast.ClusterRecord{Name: "c001"}))
	if _, _, err := store.State(ctx, "clusters/c001"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("State(unknown) = %v, want ErrNotFound", err)
	}
	run := newRun(1)
	run.Kind = holdfast.RunApply
	run = claim(t, store, run)
	write := holdfast.StateWrite{Location: run.StateLocation, By: run.Ref()}

	large := strings.Repeat("x", 100<<10)
	for i, secret := range []string{"one", large, "three"} {
		write.Data = stateJSON(int64(10+i), "lin", secret)
		expected := holdfast.StateVersion{
			Location: run.StateLocation, Version: int64(i + 1), Serial: int64(10 + i), Lineage: "lin",
			Size: int64(len(write.Data)), Run: run.ID, CreatedAt: noon,
		}
		// The second time is an upload whose answer was lost.
		for range 2 {
			if diff := differ(expected, must[holdfast.StateVersion](t)(store.PutState(ctx, write))); diff != "" {
				t.Errorf("PutState() (-want +got):\n%s", diff)
			}
		}
		data, version, err := store.State(ctx, run.StateLocation)
		if err != nil || !bytes.Equal(data, write.Data) || !same(version, expected) {
			t.Errorf("State() = %d bytes, %+v, %v", len(data), version, err)
		}
	}
	if got := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "c001")).StateSerial; got != 12 {
		t.Errorf("StateSerial = %d, want 12", got)
	}
	if data, _, err := store.StateAt(ctx, run.StateLocation, 2); err != nil || !bytes.Equal(data, stateJSON(11, "lin", large)) {
		t.Errorf("StateAt(2) = %d bytes, %v", len(data), err)
	}

	for serial := int64(13); serial < 70; serial++ {
		write.Data = stateJSON(serial, "lin", "s")
		must[holdfast.StateVersion](t)(store.PutState(ctx, write))
	}
	versions := must[[]holdfast.StateVersion](t)(store.StateVersions(ctx, run.StateLocation))
	if len(versions) != 50 || versions[0].Serial != 69 || versions[49].Serial != 20 {
		t.Errorf("StateVersions() = %d versions, serial %d to %d; want the last 50", len(versions), versions[0].Serial, versions[len(versions)-1].Serial)
	}
	// Who sent it has gone: the state is kept all the same.
	write.Data = stateJSON(70, "lin", "s")
	must[holdfast.StateVersion](t)(store.PutState(ended(t), write))
	next := newRun(2)
	next.StateLocation = run.StateLocation
	end(t, store, run, holdfast.RunApplied)
	if got := claim(t, store, next); got.StateSerial != 70 {
		t.Errorf("ClaimRun() = state serial %d, want 70", got.StateSerial)
	}
}

func testStateRefusals(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	run := newRun(1)
	run.Kind = holdfast.RunApply
	run = claim(t, store, run)
	location := run.StateLocation
	put := func(by holdfast.AttemptRef, lockID string, data []byte) (holdfast.StateVersion, error) {
		return store.PutState(ctx, holdfast.StateWrite{Location: location, LockID: lockID, By: by, Data: data})
	}
	lock := statelock.StateLock{ID: "lock-1", Who: "root@agent", Created: noon, Info: []byte(`{"ID":"lock-1"}`), By: run.Ref()}
	if err := store.LockState(ctx, location, lock); err != nil {
		t.Fatal(err)
	}
	if _, err := put(run.Ref(), "lock-1", stateJSON(5, "lin", "good")); err != nil {
		t.Fatal(err)
	}
	stale := run.Ref()
	stale.Fence--
	for i, test := range []struct {
		name   string
		by     holdfast.AttemptRef
		lockID string
		data   []byte
		want   error
	}{
		{"another lock", run.Ref(), "lock-2", stateJSON(6, "lin", "a"), holdfast.ErrLocked},
		{"an older fence", stale, "lock-1", stateJSON(6, "lin", "b"), holdfast.ErrFenced},
		{"an unknown run", holdfast.AttemptRef{Run: "run-gone", Attempt: 1, Fence: 1}, "", stateJSON(6, "lin", "c"), holdfast.ErrFenced},
		{"an older serial", run.Ref(), "lock-1", stateJSON(4, "lin", "d"), holdfast.ErrConflict},
		{"no state", run.Ref(), "lock-1", []byte("<html>"), nil},
	} {
		v, err := put(test.by, test.lockID, test.data)
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("PutState(%s) = %v, want %v", test.name, err, test.want)
		}
		again, _ := put(test.by, test.lockID, test.data)
		if !v.Quarantined || v.Version != int64(i+2) || again.Version != v.Version {
			t.Errorf("PutState(%s) = %+v, then %+v; want it in quarantine once", test.name, v, again)
		}
		kept, _, err := store.StateAt(ctx, location, v.Version)
		if err != nil || !bytes.Equal(kept, test.data) {
			t.Errorf("quarantined %s = %q, %v", test.name, kept, err)
		}
	}
	if data, v, err := store.State(ctx, location); err != nil || v.Version != 1 || !bytes.Equal(data, stateJSON(5, "lin", "good")) {
		t.Errorf("State() after refusals = version %d, %v", v.Version, err)
	}
	if _, err := store.PutState(ctx, holdfast.StateWrite{Location: "clusters/other", By: run.Ref(), Data: stateJSON(1, "l", "x")}); !errors.Is(err, holdfast.ErrForbidden) {
		t.Errorf("PutState elsewhere = %v, want ErrForbidden", err)
	}
	if got := must[[]holdfast.StateVersion](t)(store.StateVersions(ctx, "clusters/other")); len(got) != 0 {
		t.Errorf("a forbidden state was stored: %+v", got)
	}

	// Without an id the attempt that holds the lock may write, and after a
	// forced unlock too: nobody else can run. Ended, it may not.
	if _, err := put(run.Ref(), "", stateJSON(7, "lin", "e")); err != nil {
		t.Errorf("PutState by the lock's holder without an id = %v", err)
	}
	if err := store.UnlockState(ctx, location, "lock-1", run.Ref()); err != nil {
		t.Fatal(err)
	}
	if _, err := put(run.Ref(), "lock-1", stateJSON(8, "lin", "f")); err != nil {
		t.Errorf("PutState under a lock that was removed = %v", err)
	}
	end(t, store, run, holdfast.RunInterrupted)
	if _, err := put(run.Ref(), "lock-1", stateJSON(9, "lin", "g")); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("PutState by an attempt that is over = %v, want ErrFenced", err)
	}
}

// testQuarantine: what an attempt keeps in quarantine is bounded by count and bytes,
// and neither its newest state, nor the one that is to be pushed, nor what others have
// there is removed.
func testQuarantine(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	const location = "clusters/a"
	dead := func(n int) holdfast.AttemptRef {
		run := newRun(n)
		run.Cluster, run.Kind, run.StateLocation = "a", holdfast.RunApply, location
		run = claim(t, store, run)
		end(t, store, run, holdfast.RunInterrupted)
		return run.Ref()
	}
	put := func(by holdfast.AttemptRef, serial int, resources string) int64 {
		v, err := store.PutState(ctx, holdfast.StateWrite{Location: location, By: by, Data: stateJSON(int64(serial), "lin", resources)})
		if !errors.Is(err, holdfast.ErrFenced) {
			t.Fatalf("PutState() by an attempt that is over = %v", err)
		}
		return v.Version
	}
	first, second := dead(1), dead(2)
	others := put(first, 1, "others")
	u := must[[]holdfast.UnsavedState](t)(store.UnsavedStates(ctx, "a"))
	if len(u) != 1 || u[0].Version != others {
		t.Fatalf("unsaved states = %+v", u)
	}
	if err := store.WaiveUnsaved(ctx, u[0], holdfast.AuditEntry{At: noon, Actor: "admin", Action: "state.waive", Object: "a"}); err != nil {
		t.Fatal(err)
	}
	pushed := put(second, 1000, "is to be pushed")

	has := func(want ...int64) {
		t.Helper()
		var got []int64
		for _, v := range must[[]holdfast.StateVersion](t)(store.StateVersions(ctx, location)) {
			got = append(got, v.Version)
		}
		if !slices.Equal(got, want) {
			t.Errorf("versions %v are kept, want %v", got, want)
		}
	}
	var newest []int64
	for i := range 30 { // what is not a state is never the one that is to be pushed
		v, err := store.PutState(ctx, holdfast.StateWrite{Location: location, By: second, Data: fmt.Appendf(nil, `{"junk":%d}`, i)})
		if err == nil {
			t.Fatal("what is not a state was taken")
		}
		newest = append([]int64{v.Version}, newest...)
	}
	has(append(newest[:20:20], pushed, others)...)

	datastore.SetQuarantine(store, 1<<20)
	half := strings.Repeat("x", 600<<10)
	put(second, 1002, half+"a")
	last := put(second, 1003, half+"b")
	big := put(second, 1004, half+half)
	has(big, last, others)
	put(second, 1005, "small")
	has(big+1, big, others) // until then big was to be pushed
	put(second, 1006, "small too")
	has(big+2, big+1, others)
	if _, _, err := store.StateAt(ctx, location, big); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("StateAt() of what is no longer kept = %v", err)
	}
}

func testStateLocks(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	run := claim(t, store, newRun(1))
	location := run.StateLocation
	lock := statelock.StateLock{
		ID: "lock-1", Operation: "OperationTypeApply", Who: "root@agent", Version: "1.11.4", Created: noon,
		Info: []byte(`{"ID":"lock-1","Path":""}`), By: run.Ref(),
	}
	for range 2 {
		if err := store.LockState(ctx, location, lock); err != nil {
			t.Fatalf("LockState() = %v", err)
		}
	}
	if diff := differ(lock, must[statelock.StateLock](t)(store.StateLock(ctx, location))); diff != "" {
		t.Errorf("StateLock() (-want +got):\n%s", diff)
	}
	other := lock
	other.ID = "lock-2"
	var locked *statelock.StateLockedError
	if err := store.LockState(ctx, location, other); !errors.As(err, &locked) || !same(locked.Lock, lock) {
		t.Errorf("LockState() of what is locked = %v", err)
	}
	if err := store.LockState(ctx, "clusters/other", lock); !errors.Is(err, holdfast.ErrForbidden) {
		t.Errorf("LockState elsewhere = %v, want ErrForbidden", err)
	}
	stranger := holdfast.AttemptRef{Run: "run-9999", Attempt: 1, Fence: 1}
	for name, err := range map[string]error{
		"another id":        store.UnlockState(ctx, location, "lock-2", run.Ref()),
		"no id":             store.UnlockState(ctx, location, "", run.Ref()),
		"another's attempt": store.UnlockState(ctx, location, "lock-1", stranger),
	} {
		if !errors.Is(err, holdfast.ErrLocked) {
			t.Errorf("UnlockState(%s) = %v, want ErrLocked", name, err)
		}
	}
	for range 2 { // again: its answer may have been lost
		if err := store.UnlockState(ctx, location, "lock-1", run.Ref()); err != nil {
			t.Errorf("UnlockState() = %v", err)
		}
	}
	if err := store.LockState(ctx, location, other); err != nil {
		t.Fatal(err)
	}
	if err := store.UnlockState(ctx, location, "lock-2", run.Ref()); err != nil {
		t.Errorf("UnlockState() of the attempt's own lock = %v", err)
	}

	// What a dead attempt left behind.
	if err := store.LockState(ctx, location, lock); err != nil {
		t.Fatal(err)
	}
	end(t, store, run, holdfast.RunInterrupted)
	if err := store.LockState(ctx, location, lock); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("LockState of an attempt that is over = %v, want ErrFenced", err)
	}
	if held, err := store.StateLock(ctx, location); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("StateLock() of an attempt that is over = %+v, %v, want it released with the attempt", held, err)
	}
}

func testSweep(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	run := claim(t, store, newRun(1))
	data := noise(100 << 10)
	putArtefact(t, store, run.Ref(), "plan", data)
	// The tests' clock stands in the past: nothing is old enough.
	if n := must[int](t)(store.Sweep(ctx, time.Hour)); n != 0 {
		t.Errorf("Sweep() removed %d blobs that are in use", n)
	}
	if _, err := store.Sweep(ctx, 0); err == nil {
		t.Error("Sweep(0) is not an error: it would remove what is being written")
	}
	if got := artefact(t, store, run.ID, "plan"); !bytes.Equal(got, data) {
		t.Error("Sweep() damaged an artefact")
	}
}
