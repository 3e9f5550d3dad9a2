package serve

import (
	"os"
	"path/filepath"
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
