package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// offline runs a command of holdfast that needs no server, in the world's folder.
func (w *world) offline(args ...string) (output string, code int) {
	w.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = w.dir, []string{"HOME=" + w.dir, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// succeeds runs a command that needs no server and that has to say all of that.
func (w *world) succeeds(command string, says ...string) {
	w.t.Helper()
	out, code := w.offline(strings.Fields(command)...)
	if code != 0 {
		w.t.Fatalf("holdfast %s: code %d: %s", command, code, out)
	}
	for _, words := range says {
		if !strings.Contains(out, words) {
			w.t.Errorf("holdfast %s does not say %q:\n%s", command, words, out)
		}
	}
}

// writeConfig writes holdfast.yaml as the next start would.
func (w *world) writeConfig(name string) {
	w.t.Helper()
	text, err := yaml.Marshal(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(name, string(text), 0o600)
}

// A backup is made while the server plans. The data folder is lost, the backup is put back, and
// the server continues: what is applied is not planned again, what was running is, and the
// next pull request is applied.
func TestBackupIsPutBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start()
	applied := w.fleet().open(cluster("alpha", "nodes: 300")) // what it leaves does not fit into rows
	applied.untilPlanned("300 to create")
	applied.merge()
	applied.untilApplied("300 created")
	w.untilIdle()
	calls := w.countCalls("plan alpha")

	w.hold("plan", "beta")
	pr := w.fleet().open(cluster("beta", "nodes: 2"))
	w.untilHeld("plan", "beta")
	w.succeeds("backup saved.tar.gz", "1 cluster", "The encryption key is not in it")
	w.succeeds("datastore check --deep", "0 missing, 0 damaged")
	if info, err := os.Stat(w.path("saved.tar.gz")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", info, err)
	}
	if out, code := w.offline("restore", "saved.tar.gz"); code != 1 || !strings.Contains(out, "has records already") {
		t.Errorf("restore over what is there: code %d: %s", code, out)
	}
	w.kill()
	w.killLeftBehind()
	w.release("plan", "beta")

	w.putBack("saved.tar.gz")
	w.succeeds("datastore check --deep", "0 missing, 0 damaged")
	w.start()
	w.do("resume --all")
	if rec := w.untilPhase("alpha", holdfast.PhaseActive); rec.Applied.Revision != holdfast.Revision(applied.merged) {
		t.Errorf("alpha is applied at %q, want %q", rec.Applied.Revision, applied.merged)
	}
	pr.untilPlanned("1 cluster: 2 to create")
	pr.merge()
	pr.untilApplied("2 created")
	w.untilIdle()
	if n := w.countCalls("plan alpha"); n != calls {
		t.Errorf("alpha was planned %d times, want %d", n, calls)
	}
	next := w.fleet().open(cluster("alpha", "nodes: 301")) // its state is the restored one
	next.untilPlanned("1 to create")
}

// The records of a server move to PostgreSQL: it continues there with what is applied, and the
// next pull request is planned and applied.
func TestRecordsMoveToPostgres(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start()
	applied := w.fleet().open(cluster("alpha", "nodes: 300"))
	applied.untilPlanned("300 to create")
	applied.merge()
	applied.untilApplied("300 created")
	w.untilIdle()
	calls := w.countCalls("plan alpha")

	database := w.usePostgres()
	w.writeConfig("new.yaml")
	if out, code := w.offline("datastore", "copy", "--to", "new.yaml"); code != 1 || !strings.Contains(out, "stop the server") {
		t.Errorf("copy while the server runs: code %d: %s", code, out)
	}
	w.stop()
	w.succeeds("datastore copy --from holdfast.yaml --to new.yaml", "the same as in SQLite", "holdfast.db.copied-")
	w.succeeds("datastore check --deep --config new.yaml", "0 missing, 0 damaged")
	if out, code := w.offline("backup", "saved.tar.gz", "--config", "new.yaml"); code != 1 || !strings.Contains(out, "pg_dump") {
		t.Errorf("backup of PostgreSQL: code %d: %s", code, out)
	}
	if out, code := w.offline("serve"); code != 1 || !strings.Contains(out, "set datastore.url") {
		t.Errorf("a start on SQLite: code %d: %s", code, out)
	}

	w.start()
	if rec := w.untilPhase("alpha", holdfast.PhaseActive); rec.Applied.Revision != holdfast.Revision(applied.merged) {
		t.Errorf("alpha is applied at %q, want %q", rec.Applied.Revision, applied.merged)
	}
	w.untilIdle()
	if n := w.countCalls("plan alpha"); n != calls {
		t.Errorf("alpha was planned %d times, want %d", n, calls)
	}
	next := w.fleet().open(cluster("alpha", "nodes: 302"))
	next.untilPlanned("2 to create")
	next.merge()
	next.untilApplied("2 created")
	if n, err := database.Query(`SELECT COUNT(*) FROM pull_requests`); err != nil || n != "2" {
		t.Errorf("PostgreSQL has %s pull requests, %v", n, err)
	}
}

// A backup is made, and what was planned until then is merged and applied. The backup is put
// back: to the server the merge was not applied yet, and neither it nor a drift check begins
// anything until a person has looked.
func TestNothingIsAppliedAgainAfterARestore(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, quick)
	fleet := w.addLocalRepo("fleet")
	fleet.commit(files{"clusters/README": "none yet"})
	w.start()
	head := fleet.git.CommitOn("more", "main", "Add alpha", cluster("alpha", "nodes: 2", "drift: {onDrift: apply}"))
	planned := w.until1("alpha is planned", "alpha", func(run v1.Run) bool {
		return !run.PullRequest.IsZero() && run.Status == holdfast.RunPlanned && !run.PostedAt.IsZero()
	})
	w.untilIdle()
	w.succeeds("backup saved.tar.gz")

	fleet.git.Merge("main", head)
	applied := func(times int) {
		t.Helper()
		w.until("the merge is applied", func() (bool, string) {
			run, n := w.newest("alpha", holdfast.RunApply), w.countCalls("apply alpha")
			return run.Matched == planned.ID && run.Status == holdfast.RunApplied && n == times, fmt.Sprintf("%s %q, %d calls", run.Status, run.Matched, n)
		})
	}
	applied(1)
	w.kill()
	w.killLeftBehind()
	w.putBack("saved.tar.gz")

	w.start()
	w.untilWaiting("alpha", holdfast.ReasonSuspended)
	w.untilIdle()
	w.do("get suspensions", "all clusters", "docs/backup.md")
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("alpha was applied %d times before anybody has resumed, want once", n)
	}
	w.kill()
	w.start() // once is enough
	w.do("resume --all")
	applied(2)
	w.kill()
	w.start()
	w.do("get suspensions", "nothing is suspended")
}

// putBack replaces the data folder of a server that does not run by a backup, and keeps the key.
func (w *world) putBack(file string) {
	w.t.Helper()
	if err := os.Rename(w.path("data"), w.path("lost")); err != nil {
		w.t.Fatal(err)
	}
	w.succeeds("restore "+file, "put it at", "docs/backup.md")
	key, err := os.ReadFile(w.path("lost", "key"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("data/key", string(key), 0o600)
}
