package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// The clock of one replica is ten minutes ahead, that of another one as far behind: a pull
// request is planned and applied, once, and all times are right to within what takes place.
func TestReplicasWithWrongClocks(t *testing.T) {
	t.Parallel()
	began := time.Now()
	ahead, behind := &replica{name: "ahead"}, &replica{name: "behind"}
	s := newReplicas(t, 1, nil, ahead, behind)
	for r, off := range map[*replica]time.Duration{ahead: 10 * time.Minute, behind: -10 * time.Minute} {
		r.dir = s.w.path(r.name + "-clock")
		if err := os.MkdirAll(r.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		s.w.setClock(r.dir, off)
		r.launch()
	}
	s.all[0].end(syscall.SIGTERM) // one of the others leads, and both serve
	s.untilLed(s.all[0])
	pr := s.w.fleet().open(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("2 to create")
	pr.merge()
	pr.untilApplied("2 created")
	for _, run := range s.w.runs("alpha") {
		if run.Attempt != 1 {
			t.Errorf("run %s had %d attempts", run.ID, run.Attempt)
		}
		for what, at := range map[string]time.Time{"created": run.CreatedAt, "started": run.StartedAt, "finished": run.FinishedAt} {
			if at.Before(began.Add(-time.Minute)) || at.After(time.Now().Add(time.Minute)) {
				t.Errorf("run %s was %s at %s, between %s and now", run.ID, what, at, began)
			}
		}
	}
	if n := s.w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}
}

// builtOf is a holdfast that knows one migration more than this one: older servers can live with
// it ("compatible") or cannot.
func builtOf(t *testing.T, next string) string {
	t.Helper()
	program := filepath.Join(filepath.Dir(binary), "holdfast-"+next)
	const variable = "github.com/holdfast-dev/holdfast/datastore/migrations.next"
	out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X "+variable+"="+next, "-o", program, "github.com/holdfast-dev/holdfast/cmd/holdfast").CombinedOutput()
	if err != nil {
		t.Fatalf("build holdfast with a further migration: %v\n%s", err, out)
	}
	return program
}

// Replicas are replaced one by one by those of a version with a newer schema, which the older
// ones can use. One of the old version that starts meanwhile works with it. A version whose schema
// they cannot use is refused while they run, and refuses them afterwards.
func TestReplicasOfTwoSchemas(t *testing.T) {
	t.Parallel()
	later, unfit := &replica{name: "later", program: builtOf(t, "compatible")}, &replica{name: "unfit", program: builtOf(t, "incompatible")}
	s := newReplicas(t, 2, nil, later, unfit)
	w := s.w
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("2 to create")

	later.launch()
	if code := s.all[0].end(syscall.SIGTERM); code != 0 {
		t.Errorf("the first replica ended with code %d", code)
	}
	s.all[0].launch() // once more, on the newer schema
	schemas := func() map[int64]int {
		var replicas struct{ Items []v1.Replica }
		w.getJSON("replicas", nil, &replicas)
		count := make(map[int64]int)
		for _, r := range replicas.Items {
			if r.Living {
				count[r.Schema]++
			}
		}
		return count
	}
	var known map[int64]int
	w.until("two replicas of the old version and one of the new one live", func() (bool, string) {
		known = schemas()
		return len(known) == 2, ""
	})
	pr.merge()
	pr.untilApplied("2 created")
	w.untilPhase("alpha", holdfast.PhaseActive)

	refused := func(r *replica, says string) {
		t.Helper()
		out, err := r.command().CombinedOutput()
		if err == nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v: %s\nwant %q", r.name, err, out, says)
		}
	}
	if code := later.end(syscall.SIGTERM); code != 0 {
		t.Errorf("the newer replica ended with code %d", code)
	}
	// It has the same number as the one that they can use: back to before that.
	for _, undo := range []string{
		`DELETE FROM goose_db_version WHERE version_id = (SELECT MAX(version_id) FROM goose_db_version)`,
		`ALTER TABLE replicas DROP COLUMN later`, `UPDATE schema_use SET version = version - 1`,
	} {
		if _, err := s.database.Query(undo); err != nil {
			t.Fatal(err)
		}
	}
	refused(unfit, "stop it, and all replicas of its version, first")
	for _, r := range s.all[:2] {
		r.end(syscall.SIGTERM)
	}
	unfit.launch()
	refused(s.all[0], "run the version that wrote it, or a newer one")
}
