// The modules of a root module, as they are compared with a plan file.

package attempt

import (
	"context"
	"errors"
	"fmt"
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
)

// installed are the modules that init has found.
func (t *space) installed(bundle *os.Root) modulecode.Installed {
	return modulecode.Installed{
		Bundle: bundle, Root: folders.Below(t.bundle, t.root), Engine: t.engine.Name,
		Data: path.Join(dataDir, initcache.Modules), Fetched: filepath.Join(t.prepared.Dir, initcache.Modules),
	}
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
	dirs, err := t.installed(bundle).Dirs()
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
