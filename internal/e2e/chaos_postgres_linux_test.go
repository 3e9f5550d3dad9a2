package e2e_test

import (
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
)

// usePostgres makes the server keep its records in its own PostgreSQL.
func (w *world) usePostgres() postgresserver.Database {
	w.t.Helper()
	database := postgresserver.StartGuarded(w.t, true).New(w.t, "")
	w.t.Cleanup(w.end) // before PostgreSQL ends
	password, err := database.Password()
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("postgres.password", password, 0o600)
	w.set(settings{"datastore.url": database.URL(), "datastore.password": map[string]any{"file": "postgres.password"}})
	return database
}

// The records are in PostgreSQL: a pull request is planned, merged and applied, and what
// happens while the database is unavailable for ten seconds in the middle of the plan, and in
// the middle of the apply, is known when it is back. Then the server is killed, and started
// again.
func TestRecordsInPostgres(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	database := w.usePostgres()
	w.start()
	away := func(meanwhile func()) {
		database.Stop()
		meanwhile()
		time.Sleep(10 * time.Second)
		database.Restart()
	}

	w.hold("plan", "alpha")
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	w.untilHeld("plan", "alpha")
	away(func() { w.release("plan", "alpha") })
	pr.untilPlanned("1 cluster: 2 to create")

	w.hold("apply", "alpha")
	pr.merge()
	w.untilHeld("apply", "alpha")
	away(func() { w.release("apply", "alpha") })
	pr.untilApplied("applied 1 cluster: 2 created")
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}
	if rec := w.untilPhase("alpha", holdfast.PhaseActive); rec.Applied.Revision != holdfast.Revision(pr.merged) {
		t.Errorf("alpha is applied at %q, want %q", rec.Applied.Revision, pr.merged)
	}

	w.kill()
	w.start()
	if rec := w.untilPhase("alpha", holdfast.PhaseActive); rec.Applied.Revision != holdfast.Revision(pr.merged) {
		t.Errorf("after a restart alpha is applied at %q, want %q", rec.Applied.Revision, pr.merged)
	}
	if status, body := w.get(w.api + "/readyz"); status != http.StatusOK || strings.Contains(body, "database") {
		t.Errorf("/readyz is %d: %s", status, body)
	}
	if _, err := os.Stat(w.path("data", "db", "holdfast.db")); err == nil {
		t.Error("there is a database of SQLite as well")
	}
	password, _ := database.Password()
	if strings.Contains(w.log.all(), password) {
		t.Error("the password is in the server's log")
	}
}

// A second server on one database is refused. One that has lost the database, as it was out
// of reach for long, ends.
func TestOneServerHasTheDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	database := w.usePostgres()
	w.start()

	config := maps.Clone(w.config)
	config["dataDir"], config["encryption"] = "other", map[string]any{"keyFile": "data/key"}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	w.write("other.yaml", string(text), 0o600)
	out, err := exec.Command(binary, "serve", "--config", w.path("other.yaml")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "only one server may use a database") {
		t.Errorf("a second server: %v: %s", err, out)
	}

	if _, err := database.Query(`UPDATE leases SET owner = 'x y another machine' WHERE name = 'server'`); err != nil {
		t.Fatal(err)
	}
	<-w.exited
	if code := w.signal(syscall.SIGTERM); code == 0 || !strings.Contains(w.log.all(), "another server has taken the database") {
		t.Errorf("a server that has lost its database: code %d: %s", code, w.log.all())
	}
}
