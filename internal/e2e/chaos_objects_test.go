package e2e_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/objectserver"
)

// useObjectStore makes the server keep what is large in a bucket of an S3 store.
func (w *world) useObjectStore() *objectserver.Server {
	w.t.Helper()
	store := objectserver.StartS3(w.t)
	w.t.Cleanup(w.end) // before the store ends
	w.write("blobs.secret", store.Secret, 0o600)
	w.set(settings{
		"datastore.blobs.url": store.MakeBucket("holdfast"), "datastore.blobs.accessKey": store.AccessKey,
		"datastore.blobs.secret": map[string]any{"file": "blobs.secret"},
	})
	return store
}

// untilStoreIsAway waits until /readyz says that the object store cannot be used, or no
// longer says it. The server stays ready.
func (w *world) untilStoreIsAway(away bool) {
	w.t.Helper()
	w.until("/readyz says how the object store is", func() (bool, string) {
		status, body := w.get(w.api + "/readyz")
		return status == 200 && strings.Contains(body, "object store") == away, body
	})
}

// The object store is stopped between the merge and the apply, and once more during an
// apply: nothing is lost and nothing is done twice.
func TestObjectStoreIsGoneForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	store := w.useObjectStore()
	w.start()
	// With so many nodes plan documents, states and bundles do not fit into rows.
	pr := w.fleet().open(cluster("alpha", "nodes: 300"))
	pr.untilPlanned("300 to create")
	if len(store.Files("holdfast")) < 2 {
		t.Error("the plan is not in the bucket")
	}

	store.Stop()
	pr.merge()
	w.untilStoreIsAway(true) // after half a minute; the agent holds what the apply leaves
	store.Restart()
	pr.untilApplied("300 created")
	w.untilStoreIsAway(false)

	// Now the engine waits for a state that the server cannot read.
	w.hold("apply", "alpha")
	next := w.fleet().open(cluster("alpha", "nodes: 301"))
	next.untilPlanned("1 to create")
	next.merge()
	w.untilHeld("apply", "alpha")
	store.Stop()
	w.release("apply", "alpha")
	w.untilStoreIsAway(true)
	store.Restart()
	next.untilApplied("1 created")
	if n := w.countCalls("apply alpha"); n != 2 {
		t.Errorf("the engine has applied %d times, want twice", n)
	}
	last := w.fleet().open(cluster("alpha", "nodes: 302"))
	last.untilPlanned("1 to create") // it reads the state of before
}
