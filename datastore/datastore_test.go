package datastore_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/emptystore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/protocol"
)

// noon is when the tests' clocks stand.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// opener opens a fresh store that is closed with the test. The suite runs on
// whatever database it opens.
type opener func(t testing.TB) *datastore.Store

// TestStore runs the suite that every database has to pass.
func TestStore(t *testing.T) {
	t.Parallel()
	suite := map[string]func(t *testing.T, open opener){
		"runs":            testRuns,
		"claims":          testClaims,
		"claimable":       testClaimable,
		"attempts":        testAttempts,
		"tickets":         testTickets,
		"updates":         testUpdates,
		"clusters":        testClusters,
		"sources":         testSources,
		"leases":          testLeases,
		"pull requests":   testPullRequests,
		"outbox":          testOutbox,
		"outbox failures": testOutboxFailures,
		"outbox deferred": testOutboxDeferred,
		"outbox order":    testOutboxOrder,
		"outbox runs":     testOutboxRuns,
		"outbox edited":   testOutboxEdited,
		"outbox unshown":  testOutboxUnshown,
		"outbox faults":   testWantedFaults,
		"posts of others": testPostsOfOthers,
		"turns of posts":  testTurnsOfPosts,
		"posts left":      testPostsLeft,
		"retried posts":   testRetriedPosts,
		"dropped posts":   testDroppedPosts,
		"notifications":   testNotifications,
		"commands":        testCommands,
		"artefacts":       testArtefacts,
		"bundles":         testBundles,
		"logs":            testLogs,
		"states":          testStates,
		"state refusals":  testStateRefusals,
		"quarantine":      testQuarantine,
		"state locks":     testStateLocks,
		"local forge":     testLocalForge,
		"audit":           testAudit,
		"sweep":           testSweep,
		"summaries":       testSummaries,
		"changes":         testChanges,
		"drift due":       testDriftDue,
		"history":         testHistory,
		"resources":       testResources,
		"suspensions":     testSuspensions,
		"issuer":          testIssuer,
		"sessions":        testSessions,
		"sessions end":    testSessionsEnd,
		"people":          testPeople,
		"tokens":          testPersonalTokens,
		"login requests":  testLoginRequests,
		"requesters":      testRequesters,
		"claim filters":   testClaimFilters,
		"lanes":           testLanes,
		"breakers":        testBreakers,
		"deserted":        testDesertedEnvironments,
		"any queued":      testAnyQueued,
		"runners":         testRunners,
		"removed runners": testRemovedRunners,
		"environments":    testEnvironments,
		"queue":           testQueue,
		"lane of applies": testLaneOfAnApply,
		"writes go first": testWritesGoFirst,
		"unlocks first":   testUnlocksGoFirst,
		"issues":          testIssues,
		"impacts":         testImpacts,
		"upgrades":        testUpgrades,
		"samples":         testSamples,
		"places":          testPlaces,
		"rename":          testRename,
		"rename refusals": testRenameRefusals,
		"rename, empty":   testRenameOverEmpty,
		"pages":           testPages,
	}
	runSuite(t, suite)
}

// TestStoreAtOnce is the part of the suite in which many call the store at the same time.
func TestStoreAtOnce(t *testing.T) {
	t.Parallel()
	runSuite(t, map[string]func(t *testing.T, open opener){
		"many claims":   testManyClaims,
		"many posters":  testManyPosters,
		"many upgrades": testManyUpgrades,
		"log waits":     testLogWaits,
		"issuer keys":   testIssuerAtOnce,
		"rotations":     testRotationAtOnce,
		"everything":    testEverythingAtOnce,
	})
}

func runSuite(t *testing.T, suite map[string]func(t *testing.T, open opener)) {
	t.Helper()
	for name, test := range suite {
		for database, open := range map[string]opener{
			"sqlite": openSQLite, "sqlite and a bucket": openBucket, "sqlite, twice": openRehearsed,
			"postgresql": openPostgres,
		} {
			t.Run(database+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(t, open)
			})
		}
	}
}

func openSQLite(t testing.TB) *datastore.Store {
	t.Helper()
	return openAt(t, datastore.Options{Path: emptyPath(t)})
}

// openRehearsed opens a store each of whose transactions is rolled back once and made again,
// as those of PostgreSQL may be.
func openRehearsed(t testing.TB) *datastore.Store {
	t.Helper()
	store := openSQLite(t)
	datastore.Rehearse(store)
	return store
}

// openBucket opens a store whose blobs are in a bucket that is not a folder.
func openBucket(t testing.TB) *datastore.Store {
	t.Helper()
	return openAt(t, datastore.Options{Path: emptyPath(t), Blobs: fakeBucket(t)})
}

// fakeBucket is an empty bucket of a fake of S3.
func fakeBucket(t testing.TB) objects.Options {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("holdfast"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	return objects.Options{
		URL: "s3://holdfast?endpoint=" + server.URL, AccessKey: "any", Secret: func() (string, error) { return "any", nil },
	}
}

// emptyDatabase is that of openAt. How a store makes its schema is for the tests of Open.
var emptyDatabase = emptystore.New(func(path string) datastore.Options {
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{'k'}, seal.KeySize))
	if err != nil {
		panic(err) // such a key is one
	}
	return datastore.Options{Path: path, Keys: keys, Now: func() time.Time { return noon }}
})

// emptyPath returns the path of a database of the test's own.
func emptyPath(t testing.TB) string {
	t.Helper()
	path := filepath.Join(memory.Dir(t), "holdfast.db")
	if os.Getenv(insteadOfSQLite) == "" {
		emptyDatabase.Write(t, path)
	}
	return path
}

// openAt opens a store with the test's key and clock unless opts say otherwise.
func openAt(t testing.TB, opts datastore.Options) *datastore.Store {
	t.Helper()
	if opts.Keys == nil {
		opts.Keys = testKeys(t, 'k')
	}
	if opts.Now == nil {
		opts.Now = func() time.Time { return noon }
	}
	if os.Getenv(insteadOfSQLite) != "" && opts.Postgres.URL == "" {
		opts.Postgres = databaseOf(t, opts.Path)
	}
	store, err := datastore.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return store
}

// testKeys returns a ring of keys that each consist of one byte.
func testKeys(t testing.TB, keys ...byte) *seal.Keyring {
	t.Helper()
	var secrets [][]byte
	for _, b := range keys {
		secret := make([]byte, seal.KeySize)
		for i := range secret {
			secret[i] = b
		}
		secrets = append(secrets, secret)
	}
	ring, err := seal.NewKeyring(secrets[0], secrets[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// newRun returns a queued plan run of a cluster of the same number.
func newRun(n int) holdfast.Run {
	cluster := fmt.Sprintf("c%03d", n)
	return holdfast.Run{
		ID: fmt.Sprintf("run-%04d", n), Cluster: cluster, Kind: holdfast.RunPlan, Status: holdfast.RunQueued,
		CreatedAt: noon.Add(time.Duration(n) * time.Second),
		RunSpec: holdfast.RunSpec{
			Repo: "fleet", Revision: "abc", StateLocation: "clusters/" + cluster,
			Document: holdfast.Cluster{Name: cluster, Variables: map[string]any{"node_count": 3.0}},
		},
	}
}

// create stores runs.
func create(t testing.TB, store *datastore.Store, runs ...holdfast.Run) {
	t.Helper()
	for _, run := range runs {
		if err := store.CreateRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
}

// claim creates a run and makes it running.
func claim(t testing.TB, store *datastore.Store, run holdfast.Run) holdfast.Run {
	t.Helper()
	create(t, store, run)
	claimed, err := store.ClaimRun(t.Context(), run.ID, protocol.AgentRef{ID: "agent"}, noon, 0)
	if err != nil {
		t.Fatal(err)
	}
	return claimed
}

// end ends the running attempt of run with a status.
func end(t testing.TB, store *datastore.Store, run holdfast.Run, status holdfast.RunStatus) holdfast.Run {
	t.Helper()
	run.Status = status
	ended, err := store.EndAttempt(t.Context(), run.Ref(), run, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// must returns value, or ends the test.
func must[T any](t testing.TB) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func ids(runs []holdfast.Run) []string {
	var list []string
	for _, run := range runs {
		list = append(list, run.ID)
	}
	return list
}

// ended returns a context that is done.
func ended(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// An unknown digest equals nothing, by its Equal method; as a value it does.
var digests = cmp.Comparer(func(a, b holdfast.Digest) bool { return a == b })

func differ(want, got any) string { return cmp.Diff(want, got, digests) }

func same(a, b any) bool { return cmp.Equal(a, b, digests) }
