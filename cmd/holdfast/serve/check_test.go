package serve

import (
	"errors"
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
	err := Check(t.Context(), cfg, time.Now())
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
	if err := Check(t.Context(), cfg, time.Now()); err == nil || !strings.HasSuffix(err.Error(), pem+" is not a private key in PEM") {
		t.Errorf("a file that is not a key: %v", err)
	}
	cfg.Forges = nil
	key, short, missing := filepath.Join(dir, "key"), filepath.Join(dir, "short"), filepath.Join(dir, "missing")
	for file, mode := range map[string]os.FileMode{key: 0o604, short: 0o600} {
		if err := errors.Join(os.WriteFile(file, make([]byte, 31), 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{key: "everybody may read or write it", short: "it has 31 bytes"} {
		cfg.Encryption = config.Encryption{KeyFile: file}
		if err := Check(t.Context(), cfg, time.Now()); err == nil || !strings.HasPrefix(err.Error(), "encryption.keyFile: read key file "+file+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("with the key %s: %v, want %q", file, err, want)
		}
	}
	cfg.Encryption = config.Encryption{KeyFile: missing, OldKeyFiles: []string{short, missing}}
	if err := Check(t.Context(), cfg, time.Now()); err == nil || !strings.Contains(err.Error(), "encryption.oldKeyFiles[0]: read key file "+short) || !strings.Contains(err.Error(), "encryption.oldKeyFiles[1]: ") {
		t.Errorf("former keys that cannot be read: %v", err)
	}
	cfg.Encryption.OldKeyFiles = nil // the first start makes the current one
	if err := Check(t.Context(), cfg, time.Now()); err != nil {
		t.Errorf("all is there: %v", err)
	}
}
