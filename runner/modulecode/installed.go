package modulecode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/runner/planfile"
)

// InstalledFile is where init says which modules it has found, next to those that it has
// fetched.
const InstalledFile = "modules.json"

// maxInstalled bounds that file, in bytes.
const maxInstalled = 16 << 20

// Installed are the modules that init has found for a root module: those of its bundle, and
// those that it has fetched.
type Installed struct {
	Bundle  *os.Root
	Root    string // the root module in the bundle
	Data    string // what init has fetched, as the root module's code sees it
	Fetched string // the same, where it is
	Engine  string
}

// Dirs returns the folders of the modules, relative to the root module, by their keys.
func (i Installed) Dirs() (map[string]string, error) {
	dirs := map[string]string{"": "."}
	file, err := i.Bundle.Open(filepath.Join(i.Root, filepath.FromSlash(i.Data), InstalledFile))
	if errors.Is(err, os.ErrNotExist) {
		return dirs, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	var list struct{ Modules []struct{ Key, Dir string } }
	if err := json.NewDecoder(io.LimitReader(file, maxInstalled)).Decode(&list); err != nil {
		return nil, err
	}
	for _, m := range list.Modules {
		dirs[m.Key] = path.Clean(filepath.ToSlash(m.Dir))
	}
	return dirs, nil
}

// Modules returns the modules by their keys.
func (i Installed) Modules() (map[string]planfile.Module, error) {
	dirs, err := i.Dirs()
	if err != nil {
		return nil, err
	}
	modules := make(map[string]planfile.Module, len(dirs))
	for key, dir := range dirs {
		if modules[key], err = i.module(dir); err != nil {
			return nil, err
		}
	}
	return modules, nil
}

// module returns the module in a folder, which is relative to the root module.
func (i Installed) module(dir string) (planfile.Module, error) {
	m := planfile.Module{Dir: dir, Open: func(name string) (file io.ReadCloser, err error) {
		err = i.in(dir, func(root *os.Root, dir string) (err error) {
			file, err = root.Open(path.Join(dir, name))
			return err
		})
		return file, err
	}}
	err := i.in(dir, func(root *os.Root, dir string) error {
		entries, err := fs.ReadDir(root.FS(), dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // of a test that is not in the bundle
		}
		var names []string
		for _, entry := range entries {
			if name := entry.Name(); !entry.IsDir() && !strings.HasPrefix(name, ".") && IsFile(name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if UsedBy(i.Engine, name, names) {
				m.Files = append(m.Files, name)
			}
		}
		return err
	})
	return m, err
}

// in does something in the folder of a module, which no link leads out of.
func (i Installed) in(dir string, do func(root *os.Root, dir string) error) error {
	if rest, ok := strings.CutPrefix(dir, i.Data+"/"); ok {
		fetched, err := os.OpenRoot(i.Fetched)
		if err != nil {
			return err
		}
		defer fetched.Close()
		return do(fetched, rest)
	}
	in := filepath.Join(i.Root, filepath.FromSlash(dir))
	if !filepath.IsLocal(in) {
		return fmt.Errorf("module in %s: it is not in the bundle", dir)
	}
	return do(i.Bundle, filepath.ToSlash(in))
}
