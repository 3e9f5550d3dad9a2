package serve

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

// TestAgentEnv: an agent that serve starts reaches hosts as the server does, and has nothing
// else of its environment.
func TestAgentEnv(t *testing.T) {
	cert := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(cert, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"SSL_CERT_FILE": cert, "SSL_CERT_DIR": "/certs/one:/certs/two"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		want[name] = "of " + name
	}
	for name, value := range want {
		t.Setenv(name, value)
	}
	t.Setenv("HOLDFAST_TEST_SECRET", "of the server")
	s := &services{logger: slog.New(slog.DiscardHandler), cfg: &config.Config{Isolation: "none"}}
	if diff := cmp.Diff(want, s.agentCommand("holdfast", &localAgent{name: "agent"}).Env); diff != "" {
		t.Errorf("of the server's environment (-want +got):\n%s", diff)
	}
}

// TestCertificatesOfAgents: where agents or engines are other users than the server, they get
// the paths that everybody can read, and what is left out is named.
func TestCertificatesOfAgents(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "holdfast-certificates-") // that of a test is its user's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.Mkdir(at("open"), 0o700), os.Mkdir(at("closed"), 0o700),
		os.WriteFile(at("open/all.pem"), nil, 0o600), os.WriteFile(at("open/own.pem"), nil, 0o600), os.WriteFile(at("closed/all.pem"), nil, 0o600),
		os.Chmod(dir, 0o755), os.Chmod(at("open"), 0o755), os.Chmod(at("open/all.pem"), 0o644), os.Chmod(at("closed/all.pem"), 0o644), //nolint:gosec // everybody can read them
		os.Symlink(at("closed/all.pem"), at("open/link.pem")),
	); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		file, dirs string
		others     bool
		want       map[string]string
		says       string
	}{
		"everybody can read it":  {file: "open/all.pem", others: true, want: map[string]string{"SSL_CERT_FILE": at("open/all.pem")}},
		"one user can":           {file: "open/own.pem", others: true, says: "permissions of " + at("open/own.pem")},
		"and that is the agent":  {file: "open/own.pem", want: map[string]string{"SSL_CERT_FILE": at("open/own.pem")}},
		"the folder is closed":   {file: "closed/all.pem", others: true, says: "permissions of " + at("closed")},
		"a link to a closed one": {file: "open/link.pem", others: true, says: "permissions of " + at("closed")},
		"it is missing":          {file: "open/none.pem", others: true, says: "no such file"},
		"one folder of two": {
			dirs: at("closed") + ":" + at("open"), others: true,
			want: map[string]string{"SSL_CERT_DIR": at("open")}, says: "variable=SSL_CERT_DIR",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			got := networkEnv(func(name string) (string, bool) {
				value := map[string]string{"SSL_CERT_FILE": at(test.file), "SSL_CERT_DIR": test.dirs}[name]
				return value, value != "" && value != dir
			}, test.others, slog.New(slog.NewTextHandler(&log, nil)))
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if !strings.Contains(log.String(), test.says) || test.says == "" && log.Len() > 0 {
				t.Errorf("log %q, want %q", log.String(), test.says)
			}
		})
	}
}

// TestSlotUsersOfAgents: no engine is the user of an agent.
func TestSlotUsersOfAgents(t *testing.T) {
	t.Parallel()
	as := &accounts{plan: &account{uid: 2003}, apply: &account{uid: 3000}}
	agent := func(plan, apply int) config.Agent {
		return config.Agent{Slots: 4, SlotUsers: config.SlotUsers{Plan: plan, Apply: apply}}
	}
	for want, cfg := range map[string]config.Agent{
		"agent.slotUsers.plan: the users from 2000 to 2003 include 2003":  agent(2000, 4000),
		"agent.slotUsers.plan: the users from 2997 to 3000 include 3000":  agent(2997, 4000),
		"agent.slotUsers.apply: the users from 2003 to 2006 include 2003": agent(4000, 2003),
	} {
		if err := slotUsersFault(cfg, as); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, cfg := range []config.Agent{agent(2004, 3001), agent(1999, 2996)} {
		if err := slotUsersFault(cfg, as); err != nil {
			t.Error(err)
		}
	}
	if err := slotUsersFault(agent(2000, 4000), nil); err != nil {
		t.Errorf("agents that run as the server: %v", err)
	}
}
