// The modules of a root module, as they are compared with a plan file.

package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/planfile"
)

// moduleDirs returns the folders of the modules that init has found, relative to the root
// module, by their keys.
func (t *space) moduleDirs(bundle *os.Root) (map[string]string, error) {
	dirs := map[string]string{"": "."}
	file, err := bundle.Open(filepath.Join(folders.Below(t.bundle, t.root), dataDir, initcache.Modules, modulesFile))
	if errors.Is(err, os.ErrNotExist) {
		return dirs, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	var list struct{ Modules []struct{ Key, Dir string } }
	if err := json.NewDecoder(io.LimitReader(file, maxLockFile)).Decode(&list); err != nil {
		return nil, err
	}
	for _, m := range list.Modules {
		dirs[m.Key] = path.Clean(filepath.ToSlash(m.Dir))
	}
	return dirs, nil
}

// modules returns the modules that init has found, by their keys.
func (t *space) modules(bundle *os.Root) (map[string]planfile.Module, error) {
	dirs, err := t.moduleDirs(bundle)
	if err != nil {
		return nil, err
	}
	modules := make(map[string]planfile.Module, len(dirs))
	for key, dir := range dirs {
		if modules[key], err = t.moduleIn(bundle, dir); err != nil {
			return nil, err
		}
	}
	return modules, nil
}

// moduleIn returns the module in a folder, which is relative to the root module:
// it is of the bundle, or one that init fetched.
func (t *space) moduleIn(bundle *os.Root, dir string) (planfile.Module, error) {
	open := func(do func(root *os.Root, dir string) error) error {
		if rest, ok := strings.CutPrefix(dir, path.Join(dataDir, initcache.Modules)+"/"); ok {
			fetched, err := os.OpenRoot(filepath.Join(t.prepared.Dir, initcache.Modules))
			if err != nil {
				return err
			}
			defer fetched.Close()
			return do(fetched, rest)
		}
		in, err := filepath.Rel(t.bundle, filepath.Join(t.root, filepath.FromSlash(dir)))
		if err != nil || !filepath.IsLocal(in) {
			return fmt.Errorf("module in %s: it is not in the bundle", dir)
		}
		return do(bundle, filepath.ToSlash(in))
	}
	m := planfile.Module{Dir: dir, Open: func(name string) (file io.ReadCloser, err error) {
		err = open(func(root *os.Root, dir string) (err error) {
			file, err = root.Open(path.Join(dir, name))
			return err
		})
		return file, err
	}}
	err := open(func(root *os.Root, dir string) error {
		entries, err := fs.ReadDir(root.FS(), dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // of a test that is not in the bundle
		}
		var names []string
		for _, entry := range entries {
			if name := entry.Name(); !entry.IsDir() && !strings.HasPrefix(name, ".") && modulecode.IsFile(name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if modulecode.UsedBy(t.engine.Name, name, names) {
				m.Files = append(m.Files, name)
			}
		}
		return err
	})
	return m, err
}

// moduleCode reads of a module's code what the engine's JSON of a plan does not have: its
// locals, and what connections are given. False: it is not known. The error is of code that
// is beyond what can be read without the engine. It does not look at other modules: it is
// called for each of them.
func (t *space) moduleCode(ctx context.Context, module []string) (code plan.ModuleCode, ok bool, err error) {
	bundle, err := os.OpenRoot(t.bundle)
	if err != nil {
		return plan.ModuleCode{}, false, nil //nolint:nilerr // it is not known
	}
	defer bundle.Close()
	dirs, err := t.moduleDirs(bundle)
	if err != nil {
		return plan.ModuleCode{}, false, nil //nolint:nilerr // as above
	}
	name, ok := dirs[strings.Join(module, ".")]
	dir := t.view().On(name)
	if !ok || !folders.Within([]string{t.bundle, folders.Real(t.bundle), t.prepared.Dir}, dir) {
		return plan.ModuleCode{}, false, nil
	}
	if code, err = modulecode.ReadReferences(ctx, dir, t.engine.Name); err == nil {
		code.Files, err = t.filesRead(ctx, dir, name)
	}
	switch {
	case ctx.Err() != nil:
		return plan.ModuleCode{}, false, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist):
		return plan.ModuleCode{}, false, nil
	case err != nil:
		return plan.ModuleCode{}, false, &failure.Error{
			Cause: holdfast.CauseInvalidConfiguration,
			Err:   fmt.Errorf("read what the plan depends on: %s/%w", t.inRepository(name), err),
			Hint: fmt.Sprintf("files with code, and templates, can have %d MiB, and expressions can be nested %d deep, to be compared with what was reviewed: divide the file, or nest less",
				modulecode.MaxFile>>20, modulecode.MaxNesting),
		}
	}
	return code, true, nil
}
