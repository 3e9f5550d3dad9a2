package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestExposedPlaces: each key that names what is the server's alone is reported where engines
// of the server's user can read that, and what is meant for engines is not.
func TestExposedPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("holdfast.yaml", dir, []byte(strings.ReplaceAll(`
dataDir: /opt/holdfast/data
encryption: {keyFile: /usr/local/etc/holdfast/key, oldKeyFiles: [old, /opt/old]}
server:
  api: {tls: {certFile: /opt/tls.crt, keyFile: /opt/tls.key}, tokens: [{name: me, token: {file: /opt/holdfast/data/me}}]}
  agents: {tokens: [{name: edge, kinds: [plan], token: {file: /opt/edge}}]}
forges: [{name: github, app: {id: 1, privateKeyFile: /opt/app.pem}}]
repositories:
  - {name: acme/fleet, forge: github, webhookSecret: {file: /opt/hook}}
  - {name: ours, url: /srv/ours, auth: {sshKeyFile: /opt/ssh, sshPassphrase: {file: /opt/phrase}, knownHostsFile: /opt/known}}
credentials:
  - secrets: {A: {file: /opt/a}, B: {file: b}, C: {file: /opt/c}, D: {file: DIR/shown/d}, E: {env: E}}
    env: {PATH_OF_C: /opt/c}
    git: {"https://git.example.com": {password: {file: /opt/git}}}
    secretDirs: [/opt/not-of-this-machine, DIR/secrets, /usr/local]
lock: {redis: {password: {file: /opt/redis}}}
sandbox: {paths: {readOnly: [/opt/c, DIR/shown]}}
engines: {dirs: [/opt/engines]}
`, "DIR", dir)))
	if err != nil {
		t.Fatal(err)
	}
	shown := shownPaths(cfg, nil)
	var got []string
	for _, fault := range exposedPlaces(privatePlaces(cfg), sandbox.ModeUserNamespace, shown) {
		key, _, _ := strings.Cut(fault.Error(), ": ")
		got = append(got, key)
	}
	want := []string{
		"dataDir", "encryption.keyFile", "encryption.oldKeyFiles[1]", "server.api.tls.keyFile", "server.agents.tokens[0].token",
		"forges[0].app.privateKeyFile", "repositories[0].webhookSecret", "repositories[1].auth.sshKeyFile",
		"repositories[1].auth.sshPassphrase", "credentials[0].secrets.A", "credentials[0].secrets.D", "credentials[0].secretDirs[2]",
		"credentials[0].git.https://git.example.com.password", "lock.redis.password",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for _, mode := range []sandbox.Mode{sandbox.ModeSlots, sandbox.ModeRange, sandbox.ModeUsers, sandbox.ModeNone} {
		if faults := exposedPlaces(privatePlaces(cfg), mode, shown); faults != nil {
			t.Errorf("mode %s: %v", mode, faults)
		}
	}
	faults := exposedPlaces(privatePlaces(cfg), sandbox.ModeLandlock, shown)
	const first = "dataDir: /opt/holdfast/data is in /opt, which the code of every plan can read: in mode landlock"
	if len(faults) != len(want) || !strings.HasPrefix(faults[0].Error(), first) {
		t.Errorf("mode landlock: %v, want %q first of %d", faults, first, len(want))
	}
}
