package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/datastore"
)

// The agent is another user: a service manager's strict umask must not keep it
// from the folders that it passes through. Not parallel: the umask is the
// process's.
func TestMakeFolderWhateverTheUmask(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	old := syscall.Umask(0o077)
	err := makeFolder(dir, 0o711)
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o711 {
		t.Fatalf("mode %v, %v; want 0711", info.Mode().Perm(), err)
	}
	if err := makeFolder(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if info, err = os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("mode of a folder that was there is %v, %v; want 0700", info.Mode().Perm(), err)
	}
}

// Zero in holdfast.yaml keeps all; in the store it means the default.
func TestRetention(t *testing.T) {
	t.Parallel()
	if got := retention(config.Retention{Runs: 70}); got != (datastore.Retention{Runs: 70, DriftRuns: -1, Ended: -1}) {
		t.Errorf("retention = %+v", got)
	}
}

// Pull requests from forks are planned only where each engine is isolated, whoever the
// agents are; and agents must have the mode of holdfast.yaml, or a stronger one.
func TestForksAndAgentsNeedIsolation(t *testing.T) {
	t.Parallel()
	elsewhere, others := config.Agent{Off: true}, &accounts{plan: &account{uid: 1}, apply: &account{uid: 2}}
	for name, test := range map[string]struct {
		isolation string
		agent     config.Agent
		accounts  *accounts
		forks     bool
		demanded  []string
	}{
		"auto":                  {isolation: "auto", forks: true, demanded: []string{"slots", "range", "user-namespace", "landlock", "users"}},
		"a named mode":          {isolation: "user-namespace", agent: elsewhere, forks: true, demanded: []string{"slots", "range", "user-namespace"}},
		"the strongest":         {isolation: "slots", accounts: others, forks: true, demanded: []string{"slots"}},
		"none":                  {isolation: "none"},
		"none as root":          {isolation: "none", accounts: others},
		"none, agents far away": {isolation: "none", agent: elsewhere},
	} {
		s := &services{cfg: &config.Config{Isolation: test.isolation, Agent: test.agent}, accounts: test.accounts}
		if got := s.watched(config.Repository{Name: "infra", Forks: true}).Forks; got != test.forks {
			t.Errorf("%s: forks are planned: %t", name, got)
		}
		if got := s.demanded(); !slices.Equal(got, test.demanded) {
			t.Errorf("%s: agents need one of %q", name, got)
		}
	}
}

// Who starts a server without isolation reads what that means, whoever executes runs.
func TestNoIsolationIsLogged(t *testing.T) {
	t.Parallel()
	for isolation, want := range map[string]string{"auto": "", "none": "pull requests from forks are not planned"} {
		for _, off := range []bool{false, true} {
			log := &strings.Builder{}
			s := &services{
				cfg:    &config.Config{DataDir: t.TempDir(), Isolation: isolation, Agent: config.Agent{Off: off}},
				logger: slog.New(slog.NewTextHandler(log, nil)),
			}
			s.warnOfNoIsolation()
			if (log.String() != "") != (want != "") || !strings.Contains(log.String(), want) {
				t.Errorf("isolation %s, no agents here %t: %q", isolation, off, log)
			}
		}
	}
}
