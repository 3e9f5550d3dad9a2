// What init has prepared, linked into a workspace.

package attempt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// mirrors are the folders that links among prepared providers may lead to.
func (e *Executor) mirrors() []string {
	if e.mode() == sandbox.ModeNone {
		return []string{"/"}
	}
	mirrors := slices.Concat(e.cli.Mirrors, e.opts.Isolation.ReadOnly)
	return append(mirrors, "/usr/share/terraform", "/usr/local/share/terraform", "/usr/share/opentofu", "/usr/local/share/opentofu")
}

// link gives the root module the prepared folder's content: providers and
// fetched modules as links, the small files as copies. No engine has been in the
// workspace yet.
func (t *space) link() error {
	data := filepath.Join(t.root, dataDir)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(t.prepared.Dir, initcache.Providers)); err == nil {
		seen := filepath.Join(t.seen(t.prepared.Dir), initcache.Providers)
		if err := os.Symlink(seen, filepath.Join(data, initcache.Providers)); err != nil {
			return err
		}
	}
	if err := t.linkModules(filepath.Join(data, initcache.Modules)); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(data, "terraform.tfstate"), t.prepared.Backend); err != nil {
		return err
	}
	return replaceFile(filepath.Join(t.root, engineLockFile), t.prepared.Lock)
}

func (t *space) linkModules(dir string) error {
	from := filepath.Join(t.prepared.Dir, initcache.Modules)
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, entry := range entries {
		to := filepath.Join(dir, entry.Name())
		if entry.Name() != modulecode.InstalledFile || !entry.Type().IsRegular() {
			err = os.Symlink(filepath.Join(t.seen(t.prepared.Dir), initcache.Modules, entry.Name()), to)
		} else {
			var data []byte
			if data, err = os.ReadFile(filepath.Join(from, entry.Name())); err == nil {
				err = os.WriteFile(to, data, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a file, whatever was there; nothing if there is no data.
func replaceFile(name string, data []byte) error {
	if data == nil {
		return nil
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}
