package serve

import (
	"os"
	"path/filepath"
	"testing"
)

// A server that was moved to another host, or container, is the same one.
func TestIdentityStays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "identity")
	first, err := loadOrCreateIdentity(path)
	if err != nil || first == "" {
		t.Fatalf("identity %q, %v", first, err)
	}
	if again, err := loadOrCreateIdentity(path); err != nil || again != first {
		t.Errorf("identity %q, %v after a restart; want %q", again, err, first)
	}
	other, err := loadOrCreateIdentity(filepath.Join(t.TempDir(), "identity"))
	if err != nil || other == first {
		t.Errorf("another folder's identity is %q, %v", other, err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if mended, err := loadOrCreateIdentity(path); err != nil || mended == "" {
		t.Errorf("identity %q, %v from an empty file", mended, err)
	}
}
