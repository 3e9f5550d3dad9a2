package datastore_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
)

// openPostgres opens a store with its own database, in which nothing is.
func openPostgres(t testing.TB) *datastore.Store {
	t.Helper()
	return openAt(t, onPostgres(t))
}

// onPostgres are the options of a store with its own database, in which nothing is.
func onPostgres(t testing.TB) datastore.Options {
	t.Helper()
	return optionsOf(t, postgresserver.New(t, emptyPostgres(t)))
}

func optionsOf(t testing.TB, d postgresserver.Database) datastore.Options {
	t.Helper()
	return datastore.Options{
		Path:     filepath.Join(memory.Dir(t), "db", "holdfast.db"),
		Postgres: postgres.Address{URL: d.URL(), Password: d.Password},
	}
}

var emptyTemplate struct {
	sync.Mutex
	name string
}

// emptyPostgres is the database that those of tests are copies of: to make its schema takes
// longer than most of them do. It is made once, with the first test.
func emptyPostgres(t testing.TB) string {
	t.Helper()
	emptyTemplate.Lock()
	defer emptyTemplate.Unlock()
	if emptyTemplate.name != "" {
		return emptyTemplate.name
	}
	d := postgresserver.NewKept(t, "")
	opts := optionsOf(t, d)
	opts.Keys = testKeys(t, 'k')
	store, err := datastore.Open(t.Context(), opts)
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	emptyTemplate.name = d.Name
	return d.Name
}

// insteadOfSQLite is a variable of the environment with which openAt opens a database of
// PostgreSQL for each path.
const insteadOfSQLite = "DATASTORE_TEST_POSTGRES"

// aboutSQLite are tests of SQLite's file, of what it has that PostgreSQL has not, and of
// upgrades from versions that knew no other database; and those that open both.
var aboutSQLite = []string{
	"TestStore", "TestWriters", "TestPostgres", "TestReplica", "TestChangesHaveNoHoles", "TestTimeOfTheDatabase", "TestSchemas", "TestRestOnPostgres", "TestDataFolder",
	"TestUpgrade", "TestOpen", "TestKilled", "TestCommitsOfARun", "TestWhatWaitsForTheDisk", "TestCreateClusters",
	"TestLocksLeftBehind", "TestRenameWithLocksLeftBehind", "TestWhatIsGoneLeavesLittle", "TestEveryTableHasABound",
	"TestClustersOfAPullRequestAreWrittenOnce", "TestPullRequestsOf", "TestDocumentsAreReadOnce", "TestPullRequestsAreDecodedOnce",
	"TestReplacedPlanStaysUntilSwept", "TestReplaceUnsavedKeepsTheBlob",
}

// TestRestOnPostgres: what the other tests say of a store is so on PostgreSQL, too. They run
// again in another process, each with its own databases.
func TestRestOnPostgres(t *testing.T) {
	t.Parallel()
	postgresserver.New(t, emptyPostgres(t)) // or the test is skipped
	tests := child(t, insteadOfSQLite+"=yes")
	tests.Args = append(tests.Args, "-test.skip=^("+strings.Join(aboutSQLite, "|")+")")
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("on PostgreSQL: %v\n%s", err, out)
	}
}

var databases sync.Map // by the path of SQLite's file

func databaseOf(t testing.TB, path string) postgres.Address {
	t.Helper()
	if known, ok := databases.Load(path); ok {
		return known.(postgres.Address)
	}
	d := postgresserver.New(t, emptyPostgres(t))
	address := postgres.Address{URL: d.URL(), Password: d.Password}
	databases.Store(path, address)
	return address
}

// executeInstead runs a query on the database of a path, if that is one of PostgreSQL.
func executeInstead(t testing.TB, path, query string) bool {
	t.Helper()
	known, ok := databases.Load(path)
	if !ok {
		return false
	}
	db := connect(t, known.(postgres.Address))
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(query, "x'00'", `'\x00'::bytea`)); err != nil {
		t.Fatal(err)
	}
	return true
}

// connect opens sessions of the test's own.
func connect(t testing.TB, address postgres.Address) *sql.DB {
	t.Helper()
	password := must[string](t)(address.Password())
	return must[*sql.DB](t)(sql.Open("pgx", strings.Replace(address.URL, "@", ":"+password+"@", 1)))
}
