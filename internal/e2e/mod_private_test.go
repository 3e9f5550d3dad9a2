package e2e_test

import (
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// A module's source is a repository that only who has its password can read: the
// credentials of a project and environment have it, and nobody else's runs do, not
// even when it was fetched before.
func TestModulesOfAPrivateRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	host := gitserver.New(t)
	const password = "only-for-who-reads-modules"
	host.RequireAuth("reader", password)
	modules := host.CreateRepo("acme/modules")
	modules.Commit("main", "net", files{"net/main.tf": "resource \"terraform_data\" \"net\" {\n  input = \"a net\"\n}\n"})
	modules.Tag("v1.0.0", "main")
	w.write("modules-password", password, 0o600)
	w.set(settings{"runs.retries": 0, "credentials": []any{map[string]any{
		"project": "shop", "environment": "production", "git": map[string]any{
			host.URL(): map[string]any{"username": "reader", "password": map[string]any{"file": "modules-password"}},
		},
	}}})
	w.start()
	code := "module \"net\" {\n  source = \"git::" + modules.URL + "//net?ref=v1.0.0\"\n}\n"
	alpha := w.fleet().open(join(document("alpha"), moduleFile("alpha", code)))
	alpha.untilPlanned("2 to create")
	alpha.merge()
	alpha.untilApplied("2 created")

	other := document("beta")
	other["clusters/beta.yaml"] = strings.Replace(other["clusters/beta.yaml"], "production", "staging", 1)
	beta := w.fleet().open(join(other, moduleFile("beta", code)))
	w.fleet().untilStatus(beta.head, holdfast.ContextPlan, holdfast.StatusFailure, "beta")
	beta.untilComment("beta", "plan failed", "could not read Username")
	for what, text := range map[string]string{"alpha": alpha.comment(), "beta": beta.comment(), "server": w.log.all(), "agent": w.agentLog()} {
		if strings.Contains(text, password) {
			t.Errorf("the password is shown: %s", what)
		}
	}
	for _, name := range []string{"alpha", "beta"} {
		out, _, _ := w.cli("logs", w.runs(name)[0].ID)
		if strings.Contains(out, password) {
			t.Errorf("the password is in the log of %s", name)
		}
	}
}

// A module's source is a repository that is reached with ssh and a deploy key: the
// engine's Git has the key and the known hosts, and a name for its user.
func TestModulesOverSSH(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	modules := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "modules.git"))
	modules.Commit("main", "net", files{"net/main.tf": "resource \"terraform_data\" \"net\" {\n  input = \"a net\"\n}\n"})
	key, signer := gitserver.NewKey(t)
	host := gitserver.StartSSH(t, signer.PublicKey())
	private, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o600)
	if os.Getuid() == 0 {
		mode = 0o644 // the engine is another user, for whom ssh does not mind
	}
	w.write("deploy/key", string(pem.EncodeToMemory(private)), mode)
	w.write("deploy/known_hosts", knownhosts.Line([]string{host.Addr}, host.HostKey)+"\n", 0o644)
	command := fmt.Sprintf("ssh -i %s -o IdentitiesOnly=yes -o UserKnownHostsFile=%s", w.path("deploy", "key"), w.path("deploy", "known_hosts"))
	w.set(settings{
		"runs.retries": 0, "sandbox.paths.readOnly": []string{w.path("deploy")},
		"credentials": []any{map[string]any{"project": "shop", "environment": "production", "env": map[string]any{"GIT_SSH_COMMAND": command}}},
	})
	w.start()
	code := fmt.Sprintf("module \"net\" {\n  source = \"git::ssh://git@%s%s//net?ref=main\"\n}\n", host.Addr, modules.Path)
	alpha := w.fleet().open(join(document("alpha"), moduleFile("alpha", code)))
	alpha.untilPlanned("2 to create")
	alpha.merge()
	alpha.untilApplied("2 created")
}

// A module's source is a branch, which moves after the plan: applies and checks have
// the code that was reviewed, and the move is not taken for drift.
func TestModulesOfABranchThatMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	host := gitserver.New(t)
	modules := host.CreateRepo("acme/modules")
	size := func(n string) {
		t.Helper()
		modules.Commit("main", "size "+n, files{"net/main.tf": "resource \"terraform_data\" \"net\" {\n  input = \"size " + n + "\"\n}\n"})
	}
	size("1")
	w.start()
	code := "module \"net\" {\n  source = \"git::" + modules.URL + "//net?ref=main\"\n}\n"
	pr := w.fleet().open(join(document("alpha"), moduleFile("alpha", code)))
	pr.untilPlanned("2 to create")
	pr.merge()
	pr.untilApplied("2 created")

	size("2")
	out, errs, ended := w.cli("drift", "check", "alpha", "--wait")
	if ended != 0 || w.record("alpha").Drift.Status != holdfast.DriftNone {
		t.Errorf("a check after the move ends with %d, drift %q:\n%s%s", ended, w.record("alpha").Drift.Status, out, errs)
	}
	next := w.fleet().open(files{"infra/alpha/more.tf": "resource \"terraform_data\" \"more\" {}\n"})
	next.untilPlanned("1 to create")
	size("3")
	next.merge()
	next.untilApplied("1 created")
	out, errs, ended = w.cli("drift", "check", "alpha", "--wait")
	if ended != 0 || w.record("alpha").Drift.Status != holdfast.DriftNone {
		t.Errorf("a check after the second move ends with %d, drift %q:\n%s%s", ended, w.record("alpha").Drift.Status, out, errs)
	}
}
