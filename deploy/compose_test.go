package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/lock"
)

// composeProject is what the tests read of a Compose file.
type composeProject struct {
	Services map[string]struct {
		Networks map[string]any `json:"networks"`
		Secrets  []struct {
			Source string `json:"source"`
		} `json:"secrets"`
		Command []string `json:"command"`
		Ports   []struct {
			HostIP    string `json:"host_ip"`
			Published string `json:"published"`
		} `json:"ports"`
	} `json:"services"`
	Networks map[string]struct {
		Internal bool `json:"internal"`
	} `json:"networks"`
	Secrets map[string]struct {
		File string `json:"file"`
	} `json:"secrets"`
}

// setUp is a copy of deploy/compose with its secrets.
func setUp(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("compose")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is there stays
		if out, err := exec.Command("bash", filepath.Join(dir, "setup.sh")).CombinedOutput(); err != nil {
			t.Fatalf("setup.sh: %v\n%s", err, out)
		}
	}
	return dir
}

func TestCompose(t *testing.T) {
	t.Parallel()
	dir := setUp(t)
	command := exec.Command(tool(t, "composeconfig"), filepath.Join(dir, "compose.yaml"))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var project composeProject
	if err := json.Unmarshal(out, &project); err != nil {
		t.Fatal(err)
	}
	want := []string{"agent-apply", "agent-plan", "holdfast", "objects", "postgres", "proxy", "redis"}
	if got := slices.Sorted(maps.Keys(project.Services)); !slices.Equal(got, want) {
		t.Errorf("services %q, want %q", got, want)
	}
	for name, secret := range project.Secrets {
		if _, err := os.Stat(secret.File); err != nil {
			t.Errorf("secret %s: setup.sh has not written it: %v", name, err)
		}
	}
	// Engines run with the agents: they reach no store.
	for _, store := range []string{"postgres", "redis", "objects"} {
		for network := range project.Services[store].Networks {
			if !project.Networks[network].Internal {
				t.Errorf("%s is in network %s, which leads outside", store, network)
			}
			for _, agent := range []string{"agent-plan", "agent-apply"} {
				if _, both := project.Services[agent].Networks[network]; both {
					t.Errorf("%s and %s are both in network %s", agent, store, network)
				}
			}
		}
		if ports := project.Services[store].Ports; len(ports) > 0 {
			t.Errorf("%s is published: %v", store, ports)
		}
	}
	for _, port := range project.Services["proxy"].Ports {
		if port.Published == "8081" && port.HostIP != "127.0.0.1" {
			t.Errorf("the API is published on %q, want 127.0.0.1 alone", port.HostIP)
		}
	}
	for agent, kept := range map[string]string{"agent-plan": "applier", "agent-apply": "planner"} {
		for _, secret := range project.Services[agent].Secrets {
			if secret.Source == kept || secret.Source == "key" {
				t.Errorf("%s has the secret %s", agent, secret.Source)
			}
		}
	}
}

// The servers' configuration is valid, with the secrets that setup.sh writes.
func TestComposeConfiguration(t *testing.T) {
	t.Parallel()
	dir := setUp(t)
	file := filepath.Join(dir, "holdfast.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	inside := strings.ReplaceAll(string(text), "/run/secrets/", filepath.Join(dir, "secrets")+"/")
	if err := os.WriteFile(file, []byte(inside), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range cfg.Server.Agents.Tokens {
		if value, err := token.Token.Value(); err != nil || len(value) < 32 {
			t.Errorf("token %s: %d characters, %v", token.Name, len(value), err)
		}
	}
}

// Redis gives its user the rights that the server needs, and no others.
func TestComposeRedisRights(t *testing.T) {
	t.Parallel()
	redis, err := lock.NewRedis(lock.Options{Server: lock.Server{URL: "redis://holdfast@127.0.0.1:1/0", Password: "unused"}})
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	rights := strings.TrimPrefix(redis.ACL(), "ACL SETUSER ")
	acl, err := os.ReadFile(filepath.Join(setUp(t), "secrets", "redis-acl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range strings.Fields(rights) {
		if !slices.Contains(strings.Fields(string(acl)), right) && right != "resetkeys" {
			t.Errorf("%q is missing in:\n%s", right, acl)
		}
	}
	for _, right := range strings.Fields(string(acl)) {
		if strings.HasPrefix(right, "+") && !slices.Contains(strings.Fields(rights), right) {
			t.Errorf("%q is not needed", right)
		}
	}
}
