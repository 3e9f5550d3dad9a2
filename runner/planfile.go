package runner

import (
	"bytes"
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

	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/planfile"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// checkPlanned compares what is in the plan file with what the run was given, in
// the workspace that has just been laid out: an engine that applies the file takes
// code, variables and backend from it, whoever wrote it.
func (t *attempt) checkPlanned(ctx context.Context) error {
	archive, err := planfile.Open(t.planFile, t.exec.opts.MaxPlan)
	if err != nil {
		return err
	}
	defer archive.Close()
	bundle, err := os.OpenRoot(t.bundle)
	if err != nil {
		return err
	}
	defer bundle.Close()
	modules, err := t.modules(bundle)
	if err != nil {
		return fmt.Errorf("read the modules: %w", err)
	}
	if err := archive.CheckCode(modules, t.inRepository); err != nil {
		return err
	}
	if err := archive.CheckLock(t.lockFile); err != nil {
		return err
	}
	planned, err := archive.Plan(t.engine.Name == modulecode.Tofu)
	if err != nil {
		return err
	}
	if err := t.checkPlan(planned); err != nil {
		return err
	}
	return t.checkState(ctx, archive, planned)
}

// checkPlan compares what the plan was made with.
func (t *attempt) checkPlan(planned *planfile.Plan) error {
	settings, err := readIfExists(filepath.Join(t.root, dataDir, "terraform.tfstate"))
	if err != nil {
		return err
	}
	backend, err := planfile.ReadBackend(settings)
	if err != nil {
		return err
	}
	given, err := t.givenVariables(t.env())
	if err != nil {
		return err
	}
	return errors.Join(planned.CheckBackend(backend), planned.CheckMode(t.destroys()), planned.CheckVariables(given))
}

// noteState keeps the state as it is before the plan, where we do not see it on its
// way to the engine: nothing that a plan executes has been there yet.
func (t *attempt) noteState(ctx context.Context) (err error) {
	if !t.watched && !t.withoutState() {
		t.pulled, err = t.pullState(ctx)
	}
	return err
}

// withoutState reports whether an empty state stands in for one that no server
// has been asked for.
func (t *attempt) withoutState() bool {
	addr, _, _ := t.session.StateAddress()
	return t.a.OwnState && addr == ""
}

// pullState returns the state as the engine reads it from its backend.
func (t *attempt) pullState(ctx context.Context) ([]byte, error) {
	raw := journal.NewBounded(workspace.MaxState)
	if err := t.start(ctx, raw, true, "state", "pull"); err != nil {
		return nil, err
	}
	document, err := raw.Bytes()
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return document, nil
}

// checkState compares the state that the plan's changes start from with the one
// that the engine was given.
func (t *attempt) checkState(ctx context.Context, archive *planfile.Archive, planned *planfile.Plan) (err error) {
	state := t.pulled
	switch {
	case t.withoutState():
	case t.sealed.Load(): // only an engine can read it
		if state, err = t.pullState(ctx); err != nil {
			return err
		}
	case t.watched:
		state = t.newest.get()
	}
	given, err := planfile.ReadState(bytes.NewReader(state))
	if err != nil {
		return fmt.Errorf("read the state: %w: that is %w", err, planfile.ErrUnsupported)
	}
	prior, err := archive.State()
	if err != nil {
		return err
	}
	found, err := planned.CheckState(given, prior)
	t.compared = comparedOf(found, given)
	return err
}

func comparedOf(found planfile.Differences, given *planfile.State) plan.Compared {
	c := plan.Compared{Outputs: map[string]plan.GivenOutput{}}
	for _, u := range found.Unshown {
		c.Unshown = append(c.Unshown, plan.Unshown(u))
	}
	for _, use := range found.Providers {
		c.Providers = append(c.Providers, plan.ProviderUse(use))
	}
	for _, d := range found.Drifted {
		drifted := plan.Drifted{Address: d.Address, Deposed: d.Deposed, Type: d.Type, Provider: d.Provider}
		for _, a := range d.Attributes {
			drifted.Attributes = append(drifted.Attributes, plan.DriftedAttribute(a))
		}
		c.Drifted = append(c.Drifted, drifted)
	}
	for name, output := range given.Outputs {
		c.Outputs[name] = plan.GivenOutput(output)
	}
	return c
}

// modules returns the modules that init has found, by their keys.
func (t *attempt) modules(bundle *os.Root) (map[string]planfile.Module, error) {
	dirs := map[string]string{"": "."}
	file, err := bundle.Open(filepath.Join(folders.Below(t.bundle, t.root), dataDir, initcache.Modules, modulesFile))
	if err == nil {
		defer file.Close()
		var list struct{ Modules []struct{ Key, Dir string } }
		if err := json.NewDecoder(io.LimitReader(file, maxLockFile)).Decode(&list); err != nil {
			return nil, err
		}
		for _, m := range list.Modules {
			dirs[m.Key] = path.Clean(filepath.ToSlash(m.Dir))
		}
	} else if !errors.Is(err, os.ErrNotExist) {
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
func (t *attempt) moduleIn(bundle *os.Root, dir string) (planfile.Module, error) {
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
