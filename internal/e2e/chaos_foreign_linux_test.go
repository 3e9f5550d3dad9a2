package e2e_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	_ "modernc.org/sqlite"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
)

// bucket is somebody's object store, which serves the backend "s3" with locks. It can
// go away.
type bucket struct {
	*httptest.Server
	outage
	objects *s3mem.Backend
}

const bucketOfStates = "states"

func newBucket(w *world) *bucket {
	w.t.Helper()
	b := &bucket{objects: s3mem.New()}
	if err := b.objects.CreateBucket(bucketOfStates); err != nil {
		w.t.Fatal(err)
	}
	store := gofakes3.New(b.objects).Server()
	b.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !b.admit(rw, r) {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		store.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(b.Close)
	return b
}

// backend is the code that puts a cluster's state here.
func (b *bucket) backend(name string) string {
	return fmt.Sprintf(`
terraform {
  backend "s3" {
    bucket                      = %q
    key                         = %q
    region                      = "us-east-1"
    use_lockfile                = true
    endpoints                   = { s3 = %q }
    access_key                  = "a"
    secret_key                  = "b"
    use_path_style              = true
    skip_credentials_validation = true
    skip_metadata_api_check     = true
    skip_region_validation      = true
    skip_requesting_account_id  = true
    skip_s3_checksum            = true
    max_retries                 = 1
  }
}
`, bucketOfStates, name, b.URL)
}

// state is what was saved last, or why there is nothing.
func (b *bucket) state(name string) string {
	object, err := b.objects.GetObject(bucketOfStates, name, nil)
	if err != nil {
		return err.Error()
	}
	defer object.Contents.Close()
	text, err := io.ReadAll(object.Contents)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// postgres is somebody's PostgreSQL, which serves the backend "pg" with locks.
type postgres struct{ *postgresserver.Server }

func newPostgres(w *world) postgres {
	w.t.Helper()
	p := postgres{postgresserver.Start(w.t)}
	w.t.Cleanup(w.end) // before PostgreSQL ends
	return p
}

// backend is the code that puts a cluster's state here, into a schema with its name.
func (p postgres) backend(name string) string {
	return fmt.Sprintf(`
terraform {
  backend "pg" {
    conn_str    = %q
    schema_name = %q
  }
}
`, p.URL(), name)
}

// state is what was saved last, or why there is nothing.
func (p postgres) state(name string) string {
	text, err := p.Query(fmt.Sprintf(`SELECT data FROM %q.states WHERE name = 'default'`, name))
	if err != nil {
		return err.Error()
	}
	return text
}

// whileConnected begins a fault of PostgreSQL as soon as an engine has a session with it.
func (m *monkey) whileConnected(begin, end func()) func() bool {
	m.w.t.Helper()
	m.inWork()
	if !m.soon(func() bool { return m.postgres.Sessions() > 0 }) {
		return nil
	}
	begin()
	return then(end)
}

// lockDatabase keeps the server from writing to its database, by a transaction of another
// process: a tool of the machine's administrator that copies it, for example. The server
// waits at first; what lasts longer is an error to it.
func (m *monkey) lockDatabase() func() bool {
	m.w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+m.w.path("data", "db", "holdfast.db")+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		m.w.t.Fatal(err)
	}
	tx, err := db.BeginTx(m.w.t.Context(), nil)
	if err != nil {
		m.w.t.Fatalf("lock the server's database: %v", err)
	}
	const serverWaits = 10 * time.Second
	if m.luck.IntN(2) == 0 {
		time.Sleep(serverWaits)
	}
	return func() bool {
		defer db.Close()
		if err := tx.Rollback(); err != nil {
			m.w.t.Error(err)
		}
		return true
	}
}

// PostgreSQL, which has the state of a cluster, is killed in the middle of an apply: what that
// has made is in the state that could not be saved, which is pushed, and nothing is made twice.
func TestPostgresIsKilledDuringApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.lockTimeout": "0s"})
	store := newPostgres(w)
	w.start()
	code := worker("epsilon", "1", w.gated("work"))
	code["infra/epsilon/main.tf"] += store.backend("epsilon")
	pr := w.fleet().open(code)
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilSaid("work", "start")

	store.Kill()
	w.openGate("work")
	w.untilWaiting("epsilon", holdfast.ReasonStateUnsaved)
	pr.untilComment("StateUnsaved", "holdfast state get epsilon")
	store.Restart()
	w.until("the state is pushed", func() (bool, string) { // which is refused while a push is under way
		out, errs, _ := w.cli("state", "push", "epsilon")
		return w.record("epsilon").Waiting != holdfast.ReasonStateUnsaved, out + errs
	})
	pr.untilApplied()
	w.untilWaiting("epsilon", "")
	newStateCheck(func(text string) { t.Error(text) }).see("epsilon", store.state("epsilon"), "1")
	if said := w.said("work"); said != "start stop" {
		t.Errorf("the script said %q, want it to run once", said)
	}
}
