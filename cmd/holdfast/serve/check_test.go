package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

// TestCheckReadsFiles: what a server would miss at its start, or at its first delivery,
// is reported at once, each with its place.
func TestCheckReadsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pem, hook := filepath.Join(dir, "app.pem"), filepath.Join(dir, "hook")
	cfg := &config.Config{
		Forges:       []config.Forge{{Name: "github", App: config.App{PrivateKeyFile: pem}}},
		Repositories: []config.Repository{{Name: "acme/clusters", WebhookSecret: config.Secret{File: hook}}},
		Credentials:  []config.Credential{{Secrets: map[string]config.Secret{"TOKEN": {Env: "HOLDFAST_NOT_SET_HERE"}}}},
	}
	err := Check(cfg, time.Now())
	if err == nil {
		t.Fatal("nothing is missed")
	}
	for _, want := range []string{"forges[0].app.privateKeyFile: open " + pem, "repositories[0].webhookSecret: read secret: open " + hook, "credentials[0].secrets.TOKEN: environment variable HOLDFAST_NOT_SET_HERE is not set"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	for _, file := range []string{pem, hook} {
		if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Credentials = nil
	if err := Check(cfg, time.Now()); err == nil || !strings.HasSuffix(err.Error(), pem+" is not a private key in PEM") {
		t.Errorf("a file that is not a key: %v", err)
	}
	cfg.Forges = nil
	if err := Check(cfg, time.Now()); err != nil {
		t.Errorf("all is there: %v", err)
	}
}
