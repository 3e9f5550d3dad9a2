// What a run reads of its machine by functions such as file.

package attempt

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// filesRead returns hashes of those files that the code of the module in dir reads by
// functions and that are not of the workspace: what a run reads by sandbox.paths, or of
// the machine. name is path.module. It does not wait beyond ctx for a file system that
// does not answer.
func (t *space) filesRead(ctx context.Context, dir, name string) (map[string]string, error) {
	view := t.view()
	reader := modulecode.Reader{
		Engine: t.engine.Name, Module: name, Cwd: view.Cwd, Open: view.Open,
		Workspace: cmp.Or(t.a.Env["TF_WORKSPACE"], t.exec.opts.Engines.Env["TF_WORKSPACE"], "default"),
	}
	return folders.Await(ctx, func() (map[string]string, error) {
		names, err := reader.FilesRead(ctx, dir)
		if err != nil {
			return nil, err
		}
		return view.Sums(ctx, names)
	})
}

// view is how an engine sees files.
func (t *space) view() folders.View {
	v := folders.View{
		Cwd: t.seen(t.root), Home: t.seen(filepath.Join(t.work, workspace.HomeDir)),
		Host: map[string]string{}, Own: []string{t.work, folders.Real(t.work)},
	}
	if t.exec.mode() == sandbox.ModeNone {
		v.Home = cmp.Or(t.a.Env["HOME"], t.exec.opts.Engines.Env["HOME"], "/")
	}
	if t.exec.mode().OwnRoot() {
		v.Host[seenWork], v.Host[seenPrepared] = t.work, t.prepared.Dir
	} else {
		v.Cwd = folders.Real(t.root) // from which the kernel follows relative names
	}
	if t.prepared.Dir != "" {
		v.Own = append(v.Own, t.prepared.Dir)
		v.Host[filepath.Join(v.Cwd, dataDir, initcache.Modules)] = filepath.Join(t.prepared.Dir, initcache.Modules)
	}
	return v
}
