package kubetest_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/kubeserver"
	"github.com/holdfast-dev/holdfast/templates"
)

// TestStatesInSecrets: the block that Holdfast writes for the storage of a runner keeps a state in
// a Secret of the namespace, under a lock, with the name that it has for the cluster.
func TestStatesInSecrets(t *testing.T) {
	engine := ""
	for _, name := range []string{"terraform", "tofu"} {
		if path, err := exec.LookPath(name); err == nil && engine == "" {
			engine = path
		}
	}
	if engine == "" {
		t.Skip("neither terraform nor tofu is on PATH")
	}
	s := newSpace(t, "states")
	stored := holdfast.StoredState{StateStorage: holdfast.StateStorage{Type: "kubernetes", Namespace: s.name}}
	stored.Key = stored.KeyOf(holdfast.EnvironmentKey{Project: "payments", Name: "production"}, "prod-eu", 1)
	dir := t.TempDir()
	code := templates.BackendCode(stored.Backend()) + "resource \"terraform_data\" \"x\" { input = \"made\" }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, api.Kubeconfig(kubeserver.AdminToken), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), engine, args...)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1",
			"KUBE_CONFIG_PATH=" + config,
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("init", "-input=false", "-no-color")
	run("apply", "-input=false", "-no-color", "-auto-approve")
	var state struct{ Lineage string }
	if err := json.Unmarshal([]byte(run("state", "pull")), &state); err != nil || state.Lineage == "" {
		t.Errorf("the state that is read: %+v, %v", state, err)
	}
	secret, err := admin.CoreV1().Secrets(s.name).Get(t.Context(), "tfstate-default-"+stored.Key, meta.GetOptions{})
	if err != nil || len(secret.Data) == 0 {
		t.Errorf("the Secret of the state: %v", err)
	}
}
